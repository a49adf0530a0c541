"""Receipts byte by byte, in the layout of srmp.md 3.7, and who gets which: SR-42 to SR-48."""

from base64 import b64encode
from itertools import count
from uuid import UUID

import pytest

from bridge.core.http_receipts import HttpReceipts
from bridge.core.ports import OutboxEntry, decode_entry
from bridge.core.posted import Posted
from bridge.model.classes import MessageClass
from bridge.model.guid import NULL_GUID
from bridge.model.message import JOURNAL_NEGATIVE, JOURNAL_POSITIVE, Message
from tests.core.messages import LOCAL, NOW, SENDER
from tests.core.posts import PEER, RECEIPTS, STREAM, TO, TO_PLAIN, mail, part

DELIVERED = "http://sender01/msmq/private$/delivered"
COMMITTED = "http://sender01/msmq/private$/committed"
STAMP, IN_FOUR_DAYS = "20231114T221320", "20231118T221320"  # NOW, and 345,600 s later
BOTH = {"delivery_to": DELIVERED, "commitment_to": COMMITTED, "positive": True, "negative": True}
ROW = Posted(id=STREAM, text=f"UID:{SENDER}\\{STREAM}", number=8, receipts_to=RECEIPTS)
ACK_RECEIVE = MessageClass.ACK_RECEIVE
NEGATIVE = {32769: "purged", 49152: "queue deleted", 49153: "queue purged", 49154: "timeout"}
ZEROS = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="


def correlation(ordinal: int) -> str:
    """GUID little-endian, then a 32-bit number. MS-MQMQ 2.2.8"""
    raw = UUID(str(SENDER)).bytes_le + ordinal.to_bytes(4, "little")
    return b64encode(raw).decode()


def envelope(
    *, to: str, via: str, ordinal: int, label: str, receipt: str, kind: int, priority: int, key: str
) -> bytes:
    """Digest 3.7, spelled out."""
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:{label}</action><to>{to}</to><rev><via>{via}</via></rev>"
        f"<id>uuid:{ordinal}@{LOCAL}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        f"<sentAt>{STAMP}</sentAt></properties>{receipt}"
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{kind}</Class><Priority>{priority}</Priority>'
        f"<Correlation>{key}</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>0</HashAlgorithm><SourceQmGuid>{LOCAL}</SourceQmGuid>"
        f"<TTrq>{IN_FOUR_DAYS}</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()


def made(message: Message) -> HttpReceipts:
    assert message.srmp is not None
    return HttpReceipts(message, message.srmp, LOCAL, count(501).__next__)


def left(message: Message, outcome: int, row: Posted | None = None) -> list[OutboxEntry]:
    return list(made(message).left(MessageClass(outcome), row))


# -- delivery -------------------------------------------------------------------------------


def test_a_delivery_receipt() -> None:  # SR-42: receivedAt = ArrivalTime, id = stored Identifier
    message = mail(9, asks={"delivery_to": DELIVERED}, label="a < b")
    (entry,) = made(message).delivered()
    assert entry == OutboxEntry(
        ordinal=501,
        host=PEER,  # who asked for it: SR-49 judges by that
        url=DELIVERED,
        expires=NOW + 345_600,  # TTrq: later nobody wants it
        packet=envelope(
            to=DELIVERED,
            via=TO_PLAIN,
            ordinal=501,
            label="a &lt; b",
            receipt=f"<deliveryReceipt><receivedAt>{STAMP}</receivedAt>"
            f"<id>uuid:9@{SENDER}</id></deliveryReceipt>",
            kind=2,
            priority=3,
            key=correlation(9),
        ),
    )


def test_nobody_asked() -> None:
    assert list(made(mail()).delivered()) == []
    only_commitment = {**BOTH, "delivery_to": ""}
    assert list(made(mail(asks=only_commitment)).delivered()) == []


def test_without_msmq_the_id_is_that_of_nobody() -> None:  # SR-43
    message = mail(1, source=NULL_GUID, asks={"delivery_to": DELIVERED})
    (entry,) = made(message).delivered()
    assert b"<id>uuid:1@00000000-0000-0000-0000-000000000000</id></deliveryReceipt>" in entry.packet
    assert b"<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>" in entry.packet
    assert b"<action>MSMQ:</action>" in entry.packet  # 2.2.4.1 <6>: a label without the prefix


def test_a_stream_message_gets_one_too() -> None:  # SR-42; 3.1.1.4.3
    (entry,) = made(part(4, asks={"delivery_to": DELIVERED})).delivered()
    assert f"<id>uuid:4@{SENDER}</id></deliveryReceipt>".encode() in entry.packet
    assert b"streamReceipt" not in entry.packet


def test_via_is_what_the_sender_wrote() -> None:  # SR-48: original <to>, whatever it stands for
    message = mail(asks=BOTH, to=TO_PLAIN, destination="DIRECT=http://other/msmq/q")
    entries = [*made(message).delivered(), *made(message).left(ACK_RECEIVE, None)]
    for entry in entries:
        assert f"<via>{TO_PLAIN}</via>".encode() in entry.packet


def test_case_and_query_of_urls_stay() -> None:  # srmp.md 8.1
    url = "http://Machine1:8080/MSMQ/Private$/Receipts?SenderStream=XRntV&amp=1"
    (entry,) = made(mail(asks={"delivery_to": url})).delivered()
    assert entry.url == url
    assert url.replace("&", "&amp;").encode() in entry.packet


# -- commitment -----------------------------------------------------------------------------


def committed(ordinal: int, decision: str) -> str:
    return (
        f"<commitmentReceipt><decidedAt>{STAMP}</decidedAt><decision>{decision}</decision>"
        f"<id>uuid:{ordinal}@{SENDER}</id></commitmentReceipt>"
    )


@pytest.mark.parametrize(
    ("outcome", "decision"), [(16384, "positive"), *((kind, "negative") for kind in NEGATIVE)]
)
def test_a_commitment_receipt(outcome: int, decision: str) -> None:  # SR-44
    (entry,) = left(mail(9, asks=BOTH, label="L"), outcome)
    assert (entry.ordinal, entry.host, entry.url) == (501, PEER, COMMITTED)
    assert entry.expires == NOW + 345_600
    assert entry.packet == envelope(
        to=COMMITTED,
        via=TO_PLAIN,
        ordinal=501,
        label="L",
        receipt=committed(9, decision),
        kind=outcome,
        priority=3,
        key=correlation(9),
    )


def test_rejected_is_negative_too() -> None:  # SR-44: NackReceiveRejected 49156
    (entry,) = left(mail(9, asks=BOTH), 49156)
    assert committed(9, "negative").encode() in entry.packet
    assert b"<Class>49156</Class>" in entry.packet


@pytest.mark.parametrize("outcome", [16384, 32769, 49152, 49153, 49154, 49156])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("negative", [False, True])
def test_only_what_was_asked_for(outcome: int, positive: bool, negative: bool) -> None:  # SR-44
    asks = {"commitment_to": COMMITTED, "positive": positive, "negative": negative}
    wanted = positive if outcome == 16384 else negative
    assert len(left(mail(asks=asks), outcome)) == wanted


def test_flags_without_a_url() -> None:
    assert left(mail(asks={"positive": True, "negative": True}), 16384) == []


@pytest.mark.parametrize("outcome", [2, 32768, 32770, 32771, 32772, 32774])
def test_any_other_reason_says_nothing(outcome: int) -> None:  # SR-44
    message = part(4, asks=BOTH, journal=JOURNAL_NEGATIVE)
    assert left(message, outcome, ROW) == []


def test_two_urls_are_kept_apart() -> None:  # SR-47
    one = made(mail(asks=BOTH))
    entries = [*one.delivered(), *one.left(ACK_RECEIVE, None)]
    assert [entry.url for entry in entries] == [DELIVERED, COMMITTED]
    assert [entry.ordinal for entry in entries] == [501, 502]  # own new Identifiers
    assert b"uuid:502@" in entries[1].packet


# -- the final stream receipt ---------------------------------------------------------------


def final(number: int, outcome: int, decision: str) -> bytes:
    receipt = (
        f"<streamReceipt><streamId>UID:{SENDER}\\{STREAM}</streamId>"
        f"<lastOrdinal>{number}</lastOrdinal></streamReceipt>" + committed(number, decision)
    )
    return envelope(
        to=RECEIPTS,
        via=TO,
        ordinal=501,
        label="QM Ordering Ack",
        receipt=receipt,
        kind=outcome,
        priority=0,
        key=ZEROS,
    )


@pytest.mark.parametrize(
    ("outcome", "decision"), [(16384, "positive"), *((kind, "negative") for kind in NEGATIVE)]
)
@pytest.mark.parametrize("journal", [JOURNAL_NEGATIVE, JOURNAL_NEGATIVE | JOURNAL_POSITIVE])
def test_a_final_stream_receipt(outcome: int, decision: str, journal: int) -> None:  # SR-45
    """The number is that of the message, though the stream may be further; its id is echoed."""
    (entry,) = left(part(4, journal=journal, label="L"), outcome, ROW)
    assert (entry.ordinal, entry.host, entry.url) == (501, PEER, RECEIPTS)
    assert entry.packet == final(4, outcome, decision)


@pytest.mark.parametrize(
    ("message", "row"),
    [
        (part(4), ROW),  # no DeadLetter
        (part(4, journal=JOURNAL_POSITIVE), ROW),
        (mail(4, journal=JOURNAL_NEGATIVE), None),  # no stream
        (mail(4, journal=JOURNAL_NEGATIVE), ROW),
    ],
)
def test_no_final_stream_receipt(message: Message, row: Posted | None) -> None:
    for outcome in (16384, 49154):
        assert left(message, outcome, row) == []


def test_it_is_additional_to_a_commitment_receipt() -> None:  # SR-45
    entries = left(part(4, journal=JOURNAL_NEGATIVE, asks=BOTH), 16384, ROW)
    assert [entry.url for entry in entries] == [COMMITTED, RECEIPTS]
    assert b"streamReceipt" not in entries[0].packet
    assert b"<Class>16384</Class>" in entries[1].packet
    silent = part(4, journal=JOURNAL_NEGATIVE, asks={**BOTH, "positive": False})
    assert [entry.url for entry in left(silent, 16384, ROW)] == [RECEIPTS]


def test_an_entry_survives_a_restart() -> None:  # SR-83
    entries = left(part(4, journal=JOURNAL_NEGATIVE, asks=BOTH), 16384, ROW)
    assert [decode_entry(entry.encode()) for entry in entries] == entries
