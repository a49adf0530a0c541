from __future__ import annotations

import pytest

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire import cursor


@pytest.mark.parametrize(("size", "aligned"), [(0, 0), (1, 4), (3, 4), (4, 4), (5, 8)])
def test_alignment_is_four(size: int, aligned: int) -> None:  # MS-MQMQ 2.2.19
    assert cursor.align4(size) == aligned
    assert cursor.pad4(b"x" * size) == b"x" * size + bytes(aligned - size)


def test_every_wchar_is_a_text_that_can_be_encoded() -> None:
    for unit in range(0x10000):
        raw = unit.to_bytes(2, "little")
        text = cursor.decode_utf16(raw)
        text.encode()
        is_half = 0xD800 <= unit <= 0xDFFF
        assert cursor.encode_utf16(text) == (b"\xfd\xff" if is_half else raw)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x00\xd8", "\ufffd"),
        (b"\x00\xd8\x00\xd8", "\ufffd\ufffd"),
        (b"\x00\xdc\x00\xd8", "\ufffd\ufffd"),
        (b"\x00\xd8a\x00", "\ufffda"),
        (b"\x00\xd8\x3d\xd8\x00\xde", "\ufffd\U0001f600"),
        (b"a\x00\x00\xdc\x3d\xd8\x00\xde\x3d\xd8", "a\ufffd\U0001f600\ufffd"),
    ],
)
def test_each_half_of_a_surrogate_pair_is_replaced(raw: bytes, text: str) -> None:
    assert cursor.decode_utf16(raw) == text


def test_a_text_of_an_earlier_version_is_found_again() -> None:
    assert cursor.well_formed("a\ud800b\U0001f600\udfff") == "a\ufffdb\U0001f600\ufffd"


def test_a_text_of_an_earlier_version_can_be_sent() -> None:
    assert cursor.encode_utf16("a\ud800") == b"a\0\x00\xd8"


def test_text_and_its_terminator() -> None:
    assert cursor.encode_utf16z("a") == b"a\0\0\0"
    assert cursor.strip_nul("a\0\0") == "a\0"
    assert cursor.strip_nul("a") == "a"
    assert cursor.strip_nul("") == ""


def test_take_checks_before_it_slices() -> None:
    assert cursor.take("F", b"abcdef", 2, 1, 4, "rule") == b"bc"
    with pytest.raises(WireError) as caught:
        cursor.take("F", b"abcdef", 4, 1, 4, "rule")
    assert (caught.value.field, caught.value.value) == ("F", 4)
    with pytest.raises(WireError):
        cursor.require("F", 1, 9, 4, "rule")


def test_guids_are_made_once_and_not_kept_forever() -> None:
    raw = bytes(range(16))
    assert cursor.guid(raw) is cursor.guid(bytes(bytearray(raw)))
    assert cursor.guid(raw) == Guid(raw)
    assert cursor.guid(bytes(16)) is NULL_GUID
    for number in range(10_000):
        cursor.guid(number.to_bytes(16, "big"))
    assert len(cursor.known_guids) <= 4096
