"""Scalars by VARENUM; bytes are written by hand from MS-OAUT and the .NET documentation."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.variant import VariantRefused, read


@pytest.mark.parametrize(
    ("body_type", "data", "value"),
    [
        (2, "feff", -2),  # VT_I2
        (3, "05000000", 5),  # VT_I4
        (3, "00000080", -2147483648),
        (16, "80", -128),  # VT_I1
        (17, "ff", 255),  # VT_UI1
        (18, "ffff", 65535),  # VT_UI2
        (19, "ffffffff", 4294967295),  # VT_UI4
        (20, "ffffffffffffff7f", 9223372036854775807),  # VT_I8
        (21, "ffffffffffffffff", 18446744073709551615),  # VT_UI8
        (22, "ffffffff", -1),  # VT_INT
        (23, "ffffffff", 4294967295),  # VT_UINT
        (5, "000000000000f83f", 1.5),  # VT_R8
    ],
)
def test_numbers_keep_every_digit(body_type: int, data: str, value: float) -> None:
    assert read(bytes.fromhex(data), body_type) == (value, str(value))


@pytest.mark.parametrize(
    ("data", "value"),
    [("3333a340", 5.1), ("0000c03f", 1.5), ("cdcccc3d", 0.1), ("ffff7f7f", 3.4028235e38)],
)
def test_a_single_is_the_number_that_was_written(data: str, value: float) -> None:
    assert read(bytes.fromhex(data), 4) == (value, repr(value))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_is_no_other_single(value: float) -> None:
    body = struct.pack("<f", value)
    found = read(body, 4)
    assert found is not None
    assert struct.pack("<f", found[0]) == body


@pytest.mark.parametrize(
    ("body_type", "data", "name"),
    [
        (5, "000000000000f07f", "Infinity"),
        (5, "000000000000f0ff", "-Infinity"),
        (5, "000000000000f87f", "NaN"),
        (4, "0000807f", "Infinity"),
        (4, "0000c07f", "NaN"),
    ],
)
def test_what_json_has_no_number_for_is_a_name(body_type: int, data: str, name: str) -> None:
    assert read(bytes.fromhex(data), body_type) == (name, name)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("ffff", True),  # VARIANT_TRUE. MS-OAUT 2.2.27
        ("0000", False),
        ("ff", True),  # as .NET writes it
        ("00", False),
    ],
)
def test_boolean(data: str, value: bool) -> None:
    assert read(bytes.fromhex(data), 11) == (value, str(value).lower())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("08e2010000000000", "12.34"),  # 123400 ten-thousandths
        ("1027000000000000", "1"),
        ("0000000000000000", "0"),
        ("ffffffffffffffff", "-0.0001"),
        ("ffffffffffffff7f", "922337203685477.5807"),  # the largest. MS-OAUT 2.2.24
        ("0000000000000080", "-922337203685477.5808"),
    ],
)
def test_currency_is_exact(data: str, text: str) -> None:
    assert read(bytes.fromhex(data), 6) == (text, text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("0000020000000000d204000000000000", "12.34"),
        ("0000028000000000dc05000000000000", "-15.00"),  # a decimal keeps its scale
        ("00000000ffffffffffffffffffffffff", "79228162514264337593543950335"),  # MaxValue
        ("00001c00000000000100000000000000", "0.0000000000000000000000000001"),
    ],
)
def test_decimal_is_exact(data: str, text: str) -> None:  # MS-OAUT 2.2.26
    assert read(bytes.fromhex(data), 14) == (text, text)


@pytest.mark.parametrize("data", ["00001d" + "00" * 13, "00000001" + "00" * 12])
def test_a_decimal_that_cannot_be(data: str) -> None:
    with pytest.raises(VariantRefused, match="wrong-decimal"):
        read(bytes.fromhex(data), 14)


@pytest.mark.parametrize(
    ("data", "text"),
    [  # the table of COleDateTime's documentation
        ("0000000000000000", "1899-12-30T00:00:00"),
        ("0000000000000040", "1900-01-01T00:00:00"),  # 2.00
        ("0000000000001540", "1900-01-04T06:00:00"),  # 5.25
        ("0000000000801740", "1900-01-04T21:00:00"),  # 5.875
        ("000000000000f4bf", "1899-12-29T06:00:00"),  # -1.25
        ("000000000000fcbf", "1899-12-29T18:00:00"),  # -1.75
        # DateTime.Ticks, as .NET's formatter writes it
        ("0080b5f7f57f9f08", "1970-01-01T00:00:00"),  # 621355968000000000
        ("ff3f37f47528ca2b", "9999-12-31T23:59:59.9999999"),  # MaxValue
    ],
)
def test_date_of_com_and_of_dotnet(data: str, text: str) -> None:
    assert read(bytes.fromhex(data), 7) == (text, text)


@pytest.mark.parametrize("data", ["ffffffffffffef7f", "000000000000f87f", "0000000000f0efc7"])
def test_a_date_that_cannot_be(data: str) -> None:
    with pytest.raises(VariantRefused, match="wrong-date"):
        read(bytes.fromhex(data), 7)


def test_filetime_is_utc() -> None:  # MS-DTYP 2.3.3; 116444736000000000 is the Unix epoch
    assert read(bytes.fromhex("00803ed5deb19d01"), 64) == ("1970-01-01T00:00:00Z",) * 2
    with pytest.raises(VariantRefused, match="wrong-date"):
        read(b"\xff" * 8, 64)


def test_clsid() -> None:  # MS-DTYP 2.3.4.2
    data = bytes.fromhex("78563412341278561234567812345678")
    assert read(data, 72) == ("12345678-1234-5678-1234-567812345678",) * 2


@pytest.mark.parametrize("body_type", [2, 3, 4, 5, 6, 7, 11, 14, 16, 20, 64, 72])
def test_a_size_that_does_not_fit(body_type: int) -> None:
    with pytest.raises(VariantRefused, match="wrong-size"):
        read(bytes(3), body_type)


@pytest.mark.parametrize("body_type", [0, 8, 12, 31, 768, -1, 0xFFFFFFFF])
def test_no_scalar(body_type: int) -> None:
    assert read(b"", body_type) is None


@given(st.binary(max_size=17) | st.binary(min_size=8, max_size=8), st.integers(-1, 100))
def test_any_bytes_are_a_scalar_or_refused(body: bytes, body_type: int) -> None:
    try:
        found = read(body, body_type)
    except VariantRefused:
        return
    assert found is None or isinstance(found[1], str)
