"""What a sender is told: 2.12 of data-model.md; QB-90 to QB-92, QB-110 to QB-115, QB-122.

The packets are compared with bytes that the tests' own builders make from the tables.
"""

import struct
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from bridge.core.ports import OutboxEntry
from bridge.model.classes import MessageClass
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from tests.core.messages import LOCAL, NOW, ORDERS, OTHER, PLAIN, SENDER, plain, receipts, step
from tests.outside import rawmsmq as raw
from tests.outside.expected import expected_final_ack
from tests.outside.rawparse import Received, parse

PEER = "10.1.2.3"
NEXT_DOOR = Guid.parse("99999999-0000-4000-8000-000000000001")  # a neighbour that routes
ADMIN = "DIRECT=TCP:10.1.2.3\\private$\\admin"
TRACER = Guid.parse("77777777-0000-4000-8000-000000000005")
PA, PR, NA, NR = 1, 2, 4, 8
STARRED = (0x8000, 0x8004, 0x8006, 0x8007, 0x800B)
OTHERS = (0x8001, 0x8002, 0x8003, 0x8005, 0x8009, 0x800A)
LARGEST = 4 << 20  # BaseHeader.PacketSize


def asked(ack: int = 0, **fields: Any) -> Message:
    return plain(5, **{"ack": ack, "admin_queue": ADMIN, "peer": PEER, **fields})


def streamed(number: int = 3, final_ack: bool = False, **fields: Any) -> Message:
    message = step(number, **{"peer": PEER, "ordinal": 5, "delivery": 1, **fields})
    assert message.transaction is not None
    tx = msgspec.structs.replace(message.transaction, final_ack=final_ack)
    return msgspec.structs.replace(message, transaction=tx)


def uuid(guid: Guid) -> UUID:
    return UUID(bytes_le=bytes(guid))


def read(entry: OutboxEntry) -> Received:
    packet = parse(entry.packet)
    assert isinstance(packet, Received)
    return packet


def classes(entries: Iterable[OutboxEntry]) -> list[int]:
    return [read(entry).message_class for entry in entries]


def the(entries: Iterable[OutboxEntry]) -> OutboxEntry:
    (entry,) = entries
    return entry


# -- bytes ----------------------------------------------------------------------------------


def administration_ack(message_class: int, **changes: Any) -> bytes:
    """QB-113 from the byte tables; `changes` are what differs from an ack on arrival."""
    known: dict[str, Any] = {
        "source": uuid(LOCAL),
        "message_id": 7001,
        "sent_time": NOW,
        "destination": raw.direct("TCP:10.1.2.3\\private$\\admin"),
        "response": raw.direct("OS:bridge01\\private$\\plain"),
        "message_class": message_class,
        "correlation": uuid(SENDER).bytes_le + struct.pack("<I", 5),
        "label": "L",
        "ttrq": raw.INFINITE,
        "ttbr": raw.INFINITE,
    }
    return raw.build(raw.Message(**{**known, **changes}))


@pytest.mark.parametrize(("ack", "message_class"), [(PA, 0x0002), (PR, 0x4000)])
def test_a_positive_ack_byte_for_byte(ack: int, message_class: int) -> None:
    message = asked(ack, label="L", body_type=8)
    entry = the(receipts().accepted(message, SENDER))
    assert entry.packet == administration_ack(message_class)  # DM-19: no body, no body type
    assert (entry.ordinal, entry.key) == (7001, "outbox/7001")


def test_a_negative_ack_has_the_body_byte_for_byte() -> None:  # QB-113
    message = asked(NA, label="L", body=b"b\0", body_type=8)
    entry = the(receipts().refused(message, 0x8002, SENDER))
    assert entry.packet == administration_ack(0x8002, body=b"b\0", body_type=8)


def test_an_encrypted_body_is_not_repeated() -> None:  # QB-113: unless EB was set
    message = asked(NA, label="L", body=b"b\0", body_type=8, encrypted=True)
    entry = the(receipts(insecure_nacks=True).refused(message, 0x8007, SENDER))
    assert entry.packet == administration_ack(0x8007)


def test_delivery_is_that_of_the_message() -> None:  # QB-113: DM as original
    entry = the(receipts().accepted(asked(PA, label="L", delivery=1), SENDER))
    assert entry.packet == administration_ack(0x0002, recoverable=True)


def test_nothing_else_of_the_message_is_repeated() -> None:  # QB-113: no acks, no journaling
    rich: dict[str, Any] = {
        "journal": 3,
        "extension": b"e",
        "app_specific": 9,
        "response_queue": "DIRECT=OS:else\\q",
        "correlation_id": bytes(range(20)),
        "priority": 7,
        "signature": b"s",
        "privacy_level": 5,
        "time_to_be_received": 7,
        "trace_queue": TRACER,
        "hops": 3,
    }
    entry = the(receipts().accepted(asked(PA, label="L", **rich), SENDER))
    assert entry.packet == administration_ack(0x0002)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("message_class", [0x4000, 0x8000, 0x8003, 0x8009])
def test_a_final_ack_byte_for_byte(direct: bool, message_class: int) -> None:  # 2.18
    message = streamed(
        destination=ORDERS if direct else f"PRIVATE={LOCAL}\\0000000a", final_ack=True
    )
    made = receipts()
    if message_class == 0x4000:
        entry = the(made.accepted(message, SENDER))
    else:
        entry = the(made.refused(message, message_class, SENDER))
    tx = message.transaction
    assert tx is not None
    expected = expected_final_ack(
        replace(read(entry), message_id=7001, sent_time=NOW),
        server=uuid(LOCAL),
        peer=PEER if direct else uuid(SENDER),  # QB-65: the address form follows the name
        tx=raw.Tx(sequence_id=tx.sequence_id, number=3, previous=2),
        source=uuid(SENDER),
        message_id=5,
        message_class=message_class,
    )
    assert entry.packet == expected
    flags = 0x00201C20 if direct else 0x00200C20  # DQ 7 or 3, recoverable
    assert struct.unpack_from("<I", entry.packet, 16 + 44) == (flags,)


# -- which acks -----------------------------------------------------------------------------


@pytest.mark.parametrize("ack", range(16))
def test_every_value_of_the_flags(ack: int) -> None:  # QB-110
    expected = [0x0002] * (ack & PA) + [0x4000] * (ack >> 1 & 1)  # design D5: both at once
    assert classes(receipts().accepted(asked(ack), SENDER)) == expected
    refused = classes(receipts().refused(asked(ack), 0x8002, SENDER))
    assert refused == ([0x8002] if ack & NA else [])


@pytest.mark.parametrize("ack", range(16))
def test_a_message_whose_time_was_over_in_its_queue(ack: int) -> None:
    """MS-MQDMPR 3.1.7.2.7: NackReceiveTimeout; it had reached its queue before."""
    wanted = [0x0002] * bool(ack & 1) + [0xC002] * bool(ack & 8)
    assert classes(receipts().expired(asked(ack), SENDER)) == wanted
    final = [0xC002]
    assert classes(receipts().expired(streamed(final_ack=True), SENDER)) == final
    assert classes(receipts().expired(streamed(), SENDER)) == []


def test_reserved_flags_ask_for_nothing() -> None:  # MS-MQMQ 2.2.19.3
    assert classes(receipts().accepted(asked(0xF0), SENDER)) == []
    assert classes(receipts().refused(asked(0xF0), 0x8002, SENDER)) == []


@pytest.mark.parametrize("insecure", [False, True])
def test_starred_classes_only_if_asked_for(insecure: bool) -> None:  # DM-13, QB-111
    made = receipts(insecure_nacks=insecure)
    for number in STARRED:
        told = classes(made.refused(asked(NA), number, SENDER))
        assert told == ([number] if insecure else [])
        # Finals are never suppressed (QB-90).
        final = classes(made.refused(streamed(), number, SENDER))
        assert final == [number]
    for number in OTHERS:
        assert classes(made.refused(asked(NA), number, SENDER)) == [number]


def test_starred_classes_are_off_by_default() -> None:  # note 28: since Vista SP1
    assert classes(receipts().refused(asked(NA), 0x8000, SENDER)) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"final_ack": True}, [0x4000]),
        ({"journal": 1}, [0x4000]),
        ({"journal": 2}, [0x4000]),
        ({"journal": 3, "final_ack": True}, [0x4000]),
    ],
)
def test_a_final_ack_if_anybody_waits_for_it(
    fields: dict[str, Any], expected: list[int]
) -> None:  # DM-18, QB-91, QB-92
    assert classes(receipts().accepted(streamed(**fields), SENDER)) == expected


def test_plain_messages_get_no_final_ack() -> None:  # QB-64
    assert classes(receipts().accepted(asked(journal=3), SENDER)) == []
    assert classes(receipts().refused(asked(journal=3), 0x800A, SENDER)) == []


def test_administration_and_final_acks_have_ids_of_their_own() -> None:
    message = streamed(ack=PA | PR, admin_queue=ADMIN, final_ack=True)
    entries = list(receipts().accepted(message, SENDER))
    assert classes(entries) == [0x0002, 0x4000, 0x4000]
    assert [entry.ordinal for entry in entries] == [7001, 7002, 7003]
    assert [read(entry).message_id for entry in entries] == [7001, 7002, 7003]


@pytest.mark.parametrize(
    "changes",
    [
        {"admin_queue": ""},  # QB-115: flags without a queue
        {"message_class": 0x0001},  # a report
        {"message_class": 0x0002},
        {"message_class": 0x00FF},
        {"message_class": 0x4000},
        {"message_class": 0x8003},
        {"message_class": 0xC001},
        {"destination": "DIRECT=OS:bridge01\\private$\\order_queue$"},  # QB-114, note 62
        {"destination": "DIRECT=OS:bridge01\\PRIVATE$\\Notify_Queue$"},
        {"destination": "DIRECT=OS:bridge01\\private$\\admin_queue$"},
    ],
)
def test_no_ack_of_an_ack(changes: dict[str, Any]) -> None:  # DM-19
    made = receipts(insecure_nacks=True)
    assert classes(made.accepted(asked(PA | PR, **changes), SENDER)) == []
    assert classes(made.refused(asked(NA, **changes), 0x8000, SENDER)) == []


@pytest.mark.parametrize("message_class", [0x0000, 0x0100, 0x0200])
def test_other_classes_are_no_acks(message_class: int) -> None:
    message = asked(PA, message_class=message_class)
    assert classes(receipts().accepted(message, SENDER)) == [0x0002]


# -- where to: QB-112 -----------------------------------------------------------------------


def test_back_to_the_sender_the_way_it_came() -> None:  # AQ 2
    message = asked(PA, admin_queue=f"PRIVATE={SENDER}\\0000000a")
    entry = the(receipts().accepted(message, NEXT_DOOR))
    assert (entry.queue_manager, entry.host) == (str(NEXT_DOOR), PEER)
    packet = read(entry)
    assert (packet.queue_manager, packet.destination) == (uuid(SENDER), raw.private(10))


def test_a_private_queue_here() -> None:  # AQ 3: on QueueManagerAddress
    for owner in (LOCAL, NULL_GUID):  # zero is local (CONFLICT-3)
        message = asked(PA, admin_queue=f"PRIVATE={owner}\\0000000a")
        entry = the(receipts().accepted(message, SENDER))
        assert (entry.queue_manager, entry.host) == (str(LOCAL), "")


def test_a_private_queue_of_a_third_one() -> None:  # AQ 6
    entry = the(receipts().accepted(asked(PA, admin_queue=f"PRIVATE={OTHER}\\0000000a"), SENDER))
    assert (entry.queue_manager, entry.host) == (str(OTHER), "")
    packet = read(entry)
    assert (packet.queue_manager, packet.destination) == (uuid(OTHER), raw.private(10))


def test_a_public_queue_only_if_somebody_says_where_it_is() -> None:  # AQ 5, no directory
    message = asked(PA, admin_queue=f"PUBLIC={TRACER}")
    assert classes(receipts().accepted(message, SENDER)) == []  # QB-114: discarded
    entry = the(receipts(peers=[str(TRACER)]).accepted(message, SENDER))
    # The GUID is the queue's: a session that asks for a queue manager of that name is refused.
    assert (entry.queue_manager, entry.host) == ("", str(TRACER))
    packet = read(entry)
    assert packet.destination == raw.public(uuid(TRACER))
    assert packet.queue_manager == raw.ZERO


def test_a_public_queue_of_ours() -> None:
    made = receipts()
    made.serves = lambda name: name == f"PUBLIC={TRACER}"
    entry = the(made.accepted(asked(PA, admin_queue=f"PUBLIC={TRACER}"), SENDER))
    assert (entry.queue_manager, entry.host) == (str(LOCAL), "")
    assert read(entry).destination == raw.public(uuid(TRACER))


# -- over HTTP ------------------------------------------------------------------------------

OVER_HTTP = "DIRECT=HTTP://sender01/msmq/private$/acks"
URL = "HTTP://sender01/msmq/private$/acks"


def receipt(decided: str, message_class: int) -> bytes:
    """MC-MQSRM 4.3: what Windows sends, for a message that came over a binary session."""
    day = "20231114T221320"  # NOW
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>MSMQ:L</action><to>{URL}</to>"
        "<rev><via>MSMQ:DIRECT=OS:bridge01\\private$\\plain</via></rev>"
        f"<id>uuid:7001@{LOCAL}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        f"<sentAt>{day}</sentAt></properties>{decided}"
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{message_class}</Class>'
        "<Priority>3</Priority>"
        f"<Correlation>{b64encode(bytes(SENDER) + struct.pack('<I', 5)).decode()}</Correlation>"
        "<App>0</App><BodyType>0</BodyType><HashAlgorithm>0</HashAlgorithm>"
        f"<SourceQmGuid>{LOCAL}</SourceQmGuid><TTrq>20231118T221320</TTrq></Msmq>"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()


def test_an_ack_on_arrival_is_a_delivery_receipt() -> None:
    """MC-MQSRM 2.2.5.4, 3.1.5.1.5: deliveryReceipt and Class 2."""
    entry = the(receipts().accepted(asked(PA, admin_queue=OVER_HTTP, label="L"), SENDER))
    assert (entry.url, entry.host, entry.queue_manager) == (URL, PEER, "")
    assert entry.expires > NOW
    when = "<receivedAt>20231114T221320</receivedAt>"
    told = f"<deliveryReceipt>{when}<id>uuid:5@{SENDER}</id></deliveryReceipt>"
    assert entry.packet == receipt(told, 2)


@pytest.mark.parametrize(
    ("outcome", "decision"),
    [
        (0x4000, "positive"),
        (0xC000, "negative"),
        (0xC001, "negative"),
        (0xC002, "negative"),
        (0xC004, "negative"),
    ],
)
def test_an_ack_on_leaving_is_a_commitment_receipt(outcome: int, decision: str) -> None:
    """MC-MQSRM 2.2.5.5, 3.1.5.1.5: commitmentReceipt and the class that says why."""
    message = asked(PR | NR, admin_queue=OVER_HTTP, label="L")
    made = receipts().left(message, MessageClass(outcome), SENDER, admin=True, final=False)
    when = "<decidedAt>20231114T221320</decidedAt>"
    told = f"{when}<decision>{decision}</decision><id>uuid:5@{SENDER}</id>"
    assert the(made).packet == receipt(f"<commitmentReceipt>{told}</commitmentReceipt>", outcome)


def test_srmp_has_no_receipt_for_what_did_not_arrive() -> None:
    """MC-MQSRM 3.1.5.1.5: "Any message that does not match one of the types defined below MUST be
    ignored", and none of them has a class 0x80nn that we send."""
    made = receipts(insecure_nacks=True)
    told: list[tuple[str, str, str]] = []
    made.undeliverable = lambda *what: told.append(what)
    for message_class in (0x8000, 0x8002, 0x8003, 0x800A):
        assert list(made.refused(asked(NA, admin_queue=OVER_HTTP), message_class, SENDER)) == []
    assert len(told) == 4
    assert told[0][:2] == (OVER_HTTP, PEER)


def test_texts_that_xml_cannot_hold() -> None:
    message = asked(PA, admin_queue=OVER_HTTP, label="a\x00b\ud800c<&")
    entry = the(receipts().accepted(message, SENDER))
    assert "<action>MSMQ:a\ufffdb\ufffdc&lt;&amp;</action>".encode() in entry.packet


def test_a_url_of_ours_is_a_queue_of_ours() -> None:
    made = receipts(names=["bridge01"])
    admin = "DIRECT=HTTP://Bridge01/msmq/private$/plain"
    entry = the(made.accepted(asked(PA, admin_queue=admin), SENDER))
    assert (entry.queue_manager, entry.url) == (str(LOCAL), "")


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("DIRECT=TCP:10.9.9.9\\private$\\a", "10.9.9.9"),
        ("DIRECT=OS:Server\\private$\\a", "Server"),
        ("DIRECT=OS:server\\a", "server"),
    ],
)
def test_a_direct_name_says_it_itself(name: str, host: str) -> None:  # AQ 7
    entry = the(receipts().accepted(asked(PA, admin_queue=name), SENDER))
    assert (entry.queue_manager, entry.host) == ("", host)
    assert entry.cause == PEER  # whether it may be dialed depends on who named it
    packet = read(entry)
    assert packet.destination == raw.direct(name.removeprefix("DIRECT="))
    assert packet.queue_manager == raw.ZERO


@pytest.mark.parametrize("host", ["bridge01", "BRIDGE01.example.org", "."])
def test_a_direct_name_of_ours(host: str) -> None:
    made = receipts(names=["Bridge01", "bridge01.EXAMPLE.org"])
    message = asked(PA, admin_queue=f"DIRECT=OS:{host}\\private$\\plain")
    assert the(made.accepted(message, SENDER)).queue_manager == str(LOCAL)


@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=nonsense",
        "PRIVATE=nonsense",
        "MULTICAST=234.1.1.1:8001",
        f"DL={OTHER}",
        "x",
    ],
)
def test_what_cannot_be_delivered_is_told(name: str) -> None:
    """MS-MQQB 3.1.7.15: an ack whose destination cannot be opened is not sent."""
    made = receipts()
    told: list[tuple[str, str, str]] = []
    made.undeliverable = lambda *what: told.append(what)
    assert classes(made.accepted(asked(PA | PR, admin_queue=name), SENDER)) == []
    assert told == [(name, PEER, "it is not known where that is")] * 2
    # The final ack has a way of its own.
    final = streamed(ack=PA | NA, admin_queue=name, final_ack=True)
    assert classes(receipts().accepted(final, SENDER)) == [0x4000]
    assert classes(receipts().refused(final, 0x8003, SENDER)) == [0x8003]


@pytest.mark.parametrize("destination", [ORDERS, f"PRIVATE={LOCAL}\\0000000a"])
def test_a_final_ack_goes_back_the_way_it_came(destination: str) -> None:
    entry = the(receipts().refused(streamed(destination=destination), 0x8000, NEXT_DOOR))
    assert (entry.queue_manager, entry.host) == (str(NEXT_DOOR), PEER)


# -- reports --------------------------------------------------------------------------------


def traced(**fields: Any) -> Message:
    at = int(datetime(2026, 3, 8, 15, 4, 5, tzinfo=UTC).timestamp() * 1000)
    return plain(0xBEEF, **{"trace_queue": TRACER, "arrived_ms": at + 999, "hops": 3, **fields})


def test_a_report_says_what_arrived() -> None:  # QB-122, MS-MQQB 3.1.5.8.9
    entry = the(receipts(peers=[str(TRACER)]).report(traced()))
    body = f"<MESSAGE ID>0000BEEF</MESSAGE ID>\r\n<TARGET QUEUE>{PLAIN}</TARGET QUEUE>\r\n"
    expected = raw.Message(
        source=uuid(LOCAL),
        message_id=7001,
        sent_time=int(datetime(2026, 3, 8, 15, 4, 5, tzinfo=UTC).timestamp()),
        destination=raw.public(uuid(TRACER)),
        message_class=0x0001,
        label="1111:0000BEEF:03 received by 11111111-2222-3333-4444-555555555555 "
        "at 03:04:05 PM Sun,Mar 08 26",
        body=body.encode("utf-16-le"),
    )
    assert entry.packet == raw.build(expected)
    assert (entry.queue_manager, entry.host) == ("", str(TRACER))


def test_hex_digits_are_capital_letters() -> None:
    source = Guid.parse("abcdef01-2222-3333-4444-555555555555")
    entry = the(receipts(peers=[str(TRACER)]).report(traced(source=source)))
    assert read(entry).label.startswith("ABCD:0000BEEF:03 received by ABCDEF01-2222-")


@pytest.mark.parametrize("queue", [None, NULL_GUID, TRACER])
def test_no_report_to_nowhere(queue: Guid | None) -> None:
    """QT 0: no queue in the DebugHeader. And without a directory only `peers` knows others."""
    assert list(receipts().report(traced(trace_queue=queue))) == []


# -- sizes ----------------------------------------------------------------------------------


def test_a_nack_too_large_for_a_packet_leaves_its_body_out() -> None:
    """The names of the ack are longer than those of the message that came."""
    message = asked(NA, label="L", body=bytes(LARGEST - 100), body_type=8)
    entry = the(receipts().refused(message, 0x8003, SENDER))
    assert entry.packet == administration_ack(0x8003)


def test_the_largest_body_that_fits_is_there() -> None:
    empty = len(administration_ack(0x8003))
    body = bytes(LARGEST - empty)
    entry = the(receipts().refused(asked(NA, label="L", body=body), 0x8003, SENDER))
    assert len(entry.packet) == LARGEST
    entry = the(receipts().refused(asked(NA, label="L", body=body + b"\0"), 0x8003, SENDER))
    assert len(entry.packet) == empty
