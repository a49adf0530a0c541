"""What the bridge may not take: no record, a trace, and no blocked stream. data-model 2.4, D6"""

import time
from dataclasses import replace
from itertools import count
from uuid import UUID

import pytest

from tests.outside.appliance import QUEUES, Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.expected import expected_final_ack
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_PA,
    ACK_PR,
    USER_JN,
    Message,
    Name,
    Tx,
    direct,
    private,
    public,
)
from tests.outside.rawparse import Received, SessionAck
from tests.outside.rawsender import LOCAL, RawSender, soon
from tests.outside.records import Record, identity, of_source, read_topic

pytestmark = pytest.mark.kafka
_ids = count(1)
SEQUENCE = 0x65000000_00000009


def message(source: UUID, destination: Name, number: int | None = None) -> Message:
    """Transactional with a number, recoverable without."""
    tx = Tx(sequence_id=SEQUENCE, number=number, previous=number - 1) if number else None
    return Message(
        source=source,
        message_id=next(_ids),
        destination=destination,
        body=b"refuse me",
        label="refused",
        recoverable=True,
        tx=tx,
    )


def expired(original: Message) -> Message:
    return replace(original, sent_time=int(time.time()) - 1000, ttrq=10)


def delivered(appliance: Appliance, source: UUID) -> list[Record]:
    """In any topic of any mapping."""
    topics = [appliance.topic(name) for name in QUEUES]
    records = [read_topic(appliance.bootstrap, topic) for topic in topics]
    return of_source([record for records in records for record in records], source)


def check_trace(appliance: Appliance, refused: Message, *verdicts: str) -> None:
    """A record in the rejects topic and a verdict in the audit topic."""
    rejects = read_topic(appliance.bootstrap, appliance.rejects_topic)
    wanted = identity(refused.source, refused.message_id)
    [record] = [record for record in rejects if record.header.get("msmq.id") == wanted]
    assert record.value == refused.body
    assert record.header["msmq.label"] == b"refused"
    assert any("error" in name for name in record.header), list(record.header)  # Connect style
    audit = read_topic(appliance.bootstrap, appliance.audit_topic)
    entries = [entry for entry in audit if entry.mentions(str(refused.source))]
    assert entries, "no verdict"
    assert any(entry.mentions(verdict) for entry in entries for verdict in verdicts), entries


PLAIN = {
    "unknown private queue": (queue("nowhere"), False),
    "unknown public queue": (direct("OS:BRIDGE01\\nowhere"), False),
    "unknown number": (private(0x7777), True),
    "unknown queue guid": (public(UUID(int=0x7777)), True),
    "plain to a transactional queue": (queue("orders"), False),
}


@pytest.mark.parametrize(("destination", "addressed"), PLAIN.values(), ids=PLAIN.keys())
def test_a_plain_message_is_refused(
    appliance: Appliance, open_sender: OpenSender, destination: Name, addressed: bool
) -> None:  # QB-62, QB-64: session-acked all the same (CONFLICT-6), no other answer
    sender = open_sender()
    refused = message(sender.guid, destination)
    if addressed:
        refused = replace(refused, queue_manager=appliance.guid)
    sender.transmit([refused])
    while sender.table:
        assert isinstance(sender.read_packet(soon(12)), SessionAck)
    sender.expect_nothing(0.7)
    assert delivered(appliance, sender.guid) == []
    check_trace(appliance, refused, "rejected")


def test_an_expired_plain_message(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-100, QB-101
    sender = open_sender()
    refused = expired(message(sender.guid, queue("plain")))
    sender.send_all_windowed([refused])
    assert delivered(appliance, sender.guid) == []
    check_trace(appliance, refused, "expired", "rejected")


def test_the_last_second_is_not_expired(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-100: strictly later; signed, so a clock ahead of ours is fine
    sender = open_sender()
    now = int(time.time())
    late = replace(message(sender.guid, queue("plain")), sent_time=now - 3500, ttrq=3600)
    early = replace(message(sender.guid, queue("plain")), sent_time=now + 900, ttrq=5)
    sender.send_all_windowed([late, early])
    assert len(delivered(appliance, sender.guid)) == 2


TRANSACTIONAL = {
    "unknown queue": (queue("nowhere"), False, 0x8000),
    "transactional to a plain queue": (queue("plain"), False, 0x8009),
    "expired": (queue("orders"), True, 0x8002),
}


REFUSED = pytest.mark.parametrize(
    ("destination", "late", "message_class"), TRANSACTIONAL.values(), ids=TRANSACTIONAL.keys()
)


def refuse(source: UUID, destination: Name, number: int, *, late: bool) -> Message:
    refused = message(source, destination, number)
    return expired(refused) if late else refused


@REFUSED
def test_a_transactional_message_is_refused_and_its_stream_goes_on(
    appliance: Appliance,
    open_sender: OpenSender,
    destination: Name,
    late: bool,
    message_class: int,
) -> None:  # QB-87, DM-9: settled means order-acked too
    sender = open_sender()
    for number in (1, 2):
        refused = refuse(sender.guid, destination, number, late=late)
        sender.send_all_windowed([refused])
        check_trace(appliance, refused, "expired" if late else "rejected", "rejected")
    assert delivered(appliance, sender.guid) == []


@REFUSED
def test_a_refused_transactional_message_gets_its_final_ack(
    appliance: Appliance,
    open_sender: OpenSender,
    destination: Name,
    late: bool,
    message_class: int,
) -> None:  # QB-62, QB-63, QB-90, QB-101
    sender = open_sender()
    for number in (1, 2):
        refused = refuse(sender.guid, destination, number, late=late)
        assert refused.tx is not None
        sender.transmit([refused])
        packet = sender.read_user(soon(12))
        while not packet.is_final_ack:
            packet = sender.read_user(soon(12))
        assert packet.raw == expected_final_ack(
            packet,
            server=appliance.guid,
            peer=sender.local_ip,
            tx=refused.tx,
            source=sender.guid,
            message_id=refused.message_id,
            message_class=message_class,
        )


def test_a_stream_with_an_expired_message_in_the_middle(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # DM-9
    sender = open_sender()
    one, two, three = (message(sender.guid, queue("orders"), number) for number in (1, 2, 3))
    sender.send_all_windowed([one, expired(two), three])
    found = delivered(appliance, sender.guid)
    assert [record.header["msmq.tx.seq"] for record in found] == [b"1", b"3"]


def test_a_refused_message_out_of_order_moves_nothing(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # DM-7: only an in-order one advances the cursor
    sender = open_sender()
    one = message(sender.guid, queue("orders"), 1)
    sender.send_all_windowed([one])
    sender.transmit([expired(message(sender.guid, queue("orders"), 3))], keep=False)
    packet = sender.read_user(soon(12))
    while not packet.is_order_ack:
        packet = sender.read_user(soon(12))
    assert packet.sequence == (SEQUENCE, 1, 0)


def administration_ack(sender: RawSender) -> Received:
    packet = sender.read_user(soon(12))
    while packet.is_order_ack or packet.is_final_ack:
        packet = sender.read_user(soon(12))
    return packet


@pytest.mark.parametrize(
    "admin", [private(0x55, code=2), direct(f"TCP:{LOCAL}\\private$\\acks")], ids=["AQ=2", "AQ=7"]
)
def test_arrival_and_receipt_are_acknowledged(
    open_sender: OpenSender, admin: Name
) -> None:  # QB-110, QB-113: over the session the sender opened
    sender = open_sender()
    asked = replace(
        message(sender.guid, queue("plain")), admin=admin, acks=ACK_PA | ACK_PR | ACK_NA
    )
    sender.transmit([asked])
    acks = [administration_ack(sender) for _ in range(2)]
    assert [ack.message_class for ack in acks] == [0x0002, 0x4000]
    for ack in acks:
        check_administration_ack(ack, asked)
        assert ack.body == b""


def check_administration_ack(ack: Received, asked: Message) -> None:
    acked = asked.source.bytes_le + asked.message_id.to_bytes(4, "little")
    assert ack.correlation == acked
    assert ack.is_recoverable == asked.is_recoverable
    assert (ack.ttrq, ack.acks) == (0xFFFFFFFF, 0)
    assert ack.user_flags & 0x300 == 0  # no journaling


def test_a_refusal_is_told_to_the_administration_queue(
    open_sender: OpenSender,
) -> None:  # QB-64, QB-113: a nack carries the body
    sender = open_sender()
    asked = replace(
        message(sender.guid, queue("orders")),
        admin=private(0x55, code=2),
        acks=ACK_NA,
        journal=USER_JN,
    )
    sender.transmit([asked])
    nack = administration_ack(sender)
    assert nack.message_class == 0x800A
    assert nack.body == asked.body
    check_administration_ack(nack, asked)


def test_an_unknown_queue_is_not_told(open_sender: OpenSender) -> None:  # QB-111, DM-13
    sender = open_sender()
    asked = replace(
        message(sender.guid, queue("nowhere")), admin=private(0x55, code=2), acks=ACK_NA
    )
    sender.send_all_windowed([asked])
    sender.expect_nothing(0.7)
