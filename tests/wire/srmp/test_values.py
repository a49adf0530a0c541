from __future__ import annotations

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.srmp import values
from tests.wire.srmp.strategies import SOME, dates, guids, texts, u32, u64

QM = Guid.parse("32221eda-9376-46df-b6ed-783091123831")


def test_never_is_the_last_32_bit_second() -> None:  # srmp.md 2: 20380119T031407 = 0x7FFFFFFF
    assert values.parse_date("expiresAt", "20380119T031407") == values.NEVER
    assert values.date_text(values.NEVER) == "20380119T031407"


@SOME
@given(dates)
def test_dates_round_trip(seconds: int) -> None:
    text = values.date_text(seconds)
    assert len(text) == 15
    assert values.parse_date("sentAt", text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "20070608", "20070608T0237", "20070608T023719Z", "2007-06-08T02:37:19"),
        *("20070230T000000", "20071301T000000", "20070608T240000", "20070608T023760"),
        *("19691231T235959", "00000101T000000", "2007060\u0668T023719"),
    ],
)
def test_bad_dates(text: str) -> None:  # SR-5
    with pytest.raises(WireError):
        values.parse_date("sentAt", text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "0x10", "1 2", "²", "9" * 21])
def test_bad_numbers(text: str) -> None:  # SR-5
    with pytest.raises(WireError):
        values.parse_number("App", text)


def test_number_limits() -> None:  # xs:unsignedLong; 32 bits behind most of them
    assert values.parse_number("streamId", "18446744073709551615") == values.U64
    assert values.parse_number("App", "0004294967295", values.U32) == values.U32
    for most, text in ((values.U64, "18446744073709551616"), (values.U32, "4294967296")):
        with pytest.raises(WireError):
            values.parse_number("App", text, most)


@pytest.mark.parametrize("text", ["http://a", "HTTPS://a:1/msmq\\q", "http://a/msmq/my queue?x=Y"])
def test_urls(text: str) -> None:
    assert values.parse_url("to", text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "http://", "http:///msmq/q", "ftp://a/q", "//a/q", " http://a", "http://a/\r\nX: y"),
        *("http://a/\x7f", "http://a/\x85", "http://" + "a" * values.MAX_URL),
    ],
)
def test_no_urls(text: str) -> None:  # SR-5; a line break would reach the head of a receipt
    with pytest.raises(WireError):
        values.parse_url("sendTo", text)


def test_identifier() -> None:  # MC-MQSRM 2.2.4.3
    text = "uuid:32852@32221EDA-9376-46df-b6ed-783091123831"
    assert values.parse_id("id", text) == (QM, 32852)
    assert values.id_text(QM, 32852) == text.lower()


@pytest.mark.parametrize(
    "text",
    [
        *("", "uuid:", "uuid:1", f"1@{QM}", f"uuid:@{QM}", f"uuid:-1@{QM}", f"uuid:1@{{{QM}}}"),
        *(f"uuid:4294967296@{QM}", f"uuid:1@{'-' * 36}", f"UUID:1@{QM}", f"uuid:1@{QM} "),
    ],
)
def test_bad_identifiers(text: str) -> None:  # SR-5
    with pytest.raises(WireError):
        values.parse_id("id", text)


def test_correlation_of_an_identifier() -> None:  # V6, V2, SR-43
    assert values.base64_text(values.correlation_of(QM, 32852)) == "2h4iMnaT30a27XgwkRI4MVSAAAA="
    source = Guid.parse("caf195ea-615c-4264-ae08-11a4e60194c0")
    assert values.base64_text(values.correlation_of(source, 20503)) == (
        "6pXxylxhZEKuCBGk5gGUwBdQAAA="
    )
    assert values.base64_text(values.correlation_of(NULL_GUID, 1)) == "AAAAAAAAAAAAAAAAAAAAAAEAAAA="


def test_stream_id_is_time_and_ordinal() -> None:  # V4: 0x432B1643 and 6
    text = "uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830"
    stream_id = values.parse_stream_id("streamId", text)
    assert divmod(stream_id.number, 1 << 32) == (0x432B1643, 6)
    assert stream_id.text == text


def test_stream_id_keeps_its_spelling() -> None:  # SR 8.1 item 4: echoed byte for byte
    text = f"uid:{str(QM).upper()}\\007"
    stream_id = values.parse_stream_id("streamId", text)
    assert (stream_id.text, stream_id.guid, stream_id.number) == (text, QM, 7)


@pytest.mark.parametrize(
    "text", ["", f"uid:{QM}", f"uid:{QM}/1", f"uuid:{QM}\\1", f"uid:{QM}\\18446744073709551616"]
)
def test_bad_stream_ids(text: str) -> None:  # SR-5
    with pytest.raises(WireError):
        values.parse_stream_id("streamId", text)


@SOME
@given(guids, u32, u64)
def test_ids_round_trip(guid: Guid, ordinal: int, number: int) -> None:
    assert values.parse_id("id", values.id_text(guid, ordinal)) == (guid, ordinal)
    made = values.make_stream_id(guid, number)
    assert values.parse_stream_id("streamId", made.text) == made


def test_base64() -> None:
    assert values.parse_base64("Correlation", " AA\r\nAA ") == bytes(3)
    for text in ("A", "AAA", "A*==", "ÄAAA", "AAAA=AAA"):
        with pytest.raises(WireError):
            values.parse_base64("Correlation", text)


@SOME
@given(texts)
def test_escape_leaves_no_markup(text: str) -> None:
    assert not set("<>\r") & set(values.escape("action", text))


@pytest.mark.parametrize("text", ["\0", "a\x01", "\x1f", "\ud800", "\ufffe"])
def test_what_xml_cannot_say(text: str) -> None:  # XML 1.0 2.2; a label may hold any WCHAR
    with pytest.raises(WireError):
        values.escape("action", text)


def test_what_xml_cannot_hold_becomes_a_replacement_character() -> None:  # XML 1.0 2.2
    assert (
        values.legible("a\x00b\ud800c\ufffed\t\n\U0001f600")
        == "a\ufffdb\ufffdc\ufffdd\t\n\U0001f600"
    )
