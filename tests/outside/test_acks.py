"""Session, order and final acks, byte for byte. MS-MQQB 3.1.5.8.2, 3.1.5.8.7, 3.1.6.4, 3.1.6.9"""

import time
from dataclasses import replace
from itertools import count
from uuid import UUID

import pytest

from tests.outside.appliance import Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.expected import expected_final_ack, expected_order_ack, expected_session_ack
from tests.outside.rawmsmq import (
    Message,
    Name,
    SessionHeader,
    Tx,
    build,
    private,
    public,
    session_ack,
)
from tests.outside.rawparse import Packet, Received, SessionAck
from tests.outside.rawsender import RawSender, soon
from tests.outside.records import of_source, read_topic, until

pytestmark = pytest.mark.kafka
_ids = count(1)
SEQUENCE = 0x65000000_00000001


def plain(source: UUID, *, recoverable: bool = False) -> Message:
    return Message(
        source=source,
        message_id=next(_ids),
        destination=queue("plain"),
        body=b"x",
        recoverable=recoverable,
    )


def ordered(source: UUID, number: int, *, final_ack: bool = False, name: str = "orders") -> Message:
    return Message(
        source=source,
        message_id=next(_ids),
        destination=queue(name),
        body=b"number %d" % number,
        tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1, final_ack=final_ack),
    )


def check_session_acks(sender: RawSender, kinds: list[bool], deadline: float) -> int:
    """Reads until all are acked; each ack has exactly the bits its number says. QB-43, QB-46"""
    acked, flagged, packets = 0, 0, 0
    while acked < len(kinds):
        packet = sender.read_packet(deadline)
        assert isinstance(packet, SessionAck), packet
        acked = packet.session.ack
        durable = sum(kinds[:acked])
        fresh = durable - flagged
        assert packet.raw == expected_session_ack(
            ack=acked, recoverable_ack=flagged + 1 if fresh else 0, flags=(1 << fresh) - 1
        )
        flagged = durable
        packets += 1
    return packets


def test_half_a_window_of_express_is_acked_at_once(open_sender: OpenSender) -> None:  # QB-45
    sender = open_sender()
    sender.transmit([plain(sender.guid) for _ in range(32)])
    packet = sender.read_packet(soon(5))  # the timer would take AckWaitTimeout/2 = 10 s
    assert packet.raw == expected_session_ack(ack=32)
    sender.expect_nothing(0.5)  # QB-44


def test_a_small_window_is_acked_message_by_message(open_sender: OpenSender) -> None:  # QB-45
    sender = open_sender(window=2)
    for number in (1, 2, 3):
        sender.transmit([plain(sender.guid)])
        assert sender.read_packet(soon(5)).raw == expected_session_ack(ack=number)


def test_a_recoverable_message_is_acked_after_its_timeout(
    open_sender: OpenSender,
) -> None:  # QB-42, QB-43
    sender = open_sender()
    for number in (1, 2):
        sender.transmit([plain(sender.guid, recoverable=True)])
        assert sender.read_packet(soon(8)).raw == expected_session_ack(
            ack=number, recoverable_ack=number, flags=1
        )
    sender.expect_nothing(1)


def test_half_a_window_of_recoverables_without_timer(open_sender: OpenSender) -> None:  # QB-45
    sender = open_sender(recoverable_ack_ms=120_000)
    sender.transmit([plain(sender.guid, recoverable=True) for _ in range(32)])
    check_session_acks(sender, [True] * 32, soon(8))
    assert not sender.table


def test_express_and_recoverable_are_counted_apart(open_sender: OpenSender) -> None:  # QB-40
    kinds = [False, True, False, False, True, True, False, True]
    sender = open_sender()
    sender.transmit([plain(sender.guid, recoverable=kind) for kind in kinds])
    check_session_acks(sender, kinds, soon(8))
    assert not sender.table


def test_a_full_window_is_acked_without_timers(open_sender: OpenSender) -> None:  # QB-45
    sender = open_sender(recoverable_ack_ms=120_000)
    kinds = [n % 3 == 0 for n in range(64)]
    sender.transmit([plain(sender.guid, recoverable=kind) for kind in kinds])
    assert check_session_acks(sender, kinds, soon(8)) <= 8


def read_both(sender: RawSender, users: int) -> tuple[list[Received], SessionHeader]:
    """User messages and the last session ack, in whatever order they come, each checked."""
    received: list[Received] = []
    header: SessionHeader | None = None
    while len(received) < users or header is None:
        packet: Packet = sender.read_packet(soon(12))
        if isinstance(packet, Received):
            received.append(packet)
            header = packet.session or header
        else:
            assert isinstance(packet, SessionAck), packet
            header = packet.session
            assert packet.raw == session_ack(header)
    return received, header


def test_order_ack_to_a_direct_sender(appliance: Appliance, open_sender: OpenSender) -> None:
    """2.17, form DQ=7: the address is the one the peer connects from."""
    sender = open_sender()
    sender.transmit([ordered(sender.guid, 1)])
    [packet], header = read_both(sender, 1)
    assert packet.raw == expected_order_ack(
        packet, server=appliance.guid, peer=sender.local_ip, sequence_id=SEQUENCE, number=1
    )
    assert abs(packet.sent_time - time.time()) < 60
    assert (header.ack, header.recoverable_ack, header.flags) == (1, 1, 1)
    assert not sender.table


def indirect(sender: RawSender, appliance: Appliance, destination: Name) -> Message:
    """To a queue nobody knows; no direct name on this session."""
    return Message(
        source=sender.guid,
        message_id=next(_ids),
        destination=destination,
        queue_manager=appliance.guid,
        tx=Tx(sequence_id=SEQUENCE, number=1, previous=0),
    )


INDIRECT = pytest.mark.parametrize(
    "destination", [private(0x7777), public(UUID(int=0x7777))], ids=["DQ=3", "DQ=5"]
)


@INDIRECT
def test_order_ack_to_a_sender_that_uses_no_direct_name(
    appliance: Appliance, open_sender: OpenSender, destination: Name
) -> None:  # 2.17, form DQ=3; QB-87: refused and still order-acked
    sender = open_sender()
    sender.transmit([indirect(sender, appliance, destination)])
    packet = sender.read_user(soon(12))
    while not packet.is_order_ack:
        packet = sender.read_user(soon(12))
    assert packet.raw == expected_order_ack(
        packet, server=appliance.guid, peer=sender.guid, sequence_id=SEQUENCE, number=1
    )


@INDIRECT
def test_final_ack_to_a_sender_that_uses_no_direct_name(
    appliance: Appliance, open_sender: OpenSender, destination: Name
) -> None:  # 2.18, form DQ=3; QB-62
    sender = open_sender()
    message = indirect(sender, appliance, destination)
    assert message.tx is not None
    sender.transmit([message])
    packet = sender.read_user(soon(12))
    while not packet.is_final_ack:
        packet = sender.read_user(soon(12))
    assert packet.raw == expected_final_ack(
        packet,
        server=appliance.guid,
        peer=sender.guid,
        tx=message.tx,
        source=sender.guid,
        message_id=message.message_id,
        message_class=0x8000,
    )


def test_final_ack_when_it_is_asked_for(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-91, QB-92: consumed = the record is committed
    sender = open_sender()
    message = ordered(sender.guid, 1, final_ack=True)
    assert message.tx is not None
    sender.transmit([message])
    received, _ = read_both(sender, 2)
    [final] = [packet for packet in received if packet.is_final_ack]
    assert final.raw == expected_final_ack(
        final,
        server=appliance.guid,
        peer=sender.local_ip,
        tx=message.tx,
        source=sender.guid,
        message_id=message.message_id,
    )
    assert sum(packet.is_order_ack for packet in received) == 1
    assert len({packet.message_id for packet in received}) == 2


def test_order_ack_is_cumulative(open_sender: OpenSender) -> None:  # QB-86
    sender = open_sender()
    sender.transmit([ordered(sender.guid, number) for number in range(1, 11)])
    packet = sender.read_user(soon(12))
    while packet.sequence[1] < 10:  # a slow commit may have split them
        packet = sender.read_user(soon(12))
    assert packet.sequence == (SEQUENCE, 10, 9)


def test_duplicates_are_acked_again(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # DM-16, QB-85, CONFLICT-6
    sender = open_sender()
    message = ordered(sender.guid, 1)
    for number in (1, 2, 3):
        sender.transmit([message])
        [packet], header = read_both(sender, 1)
        assert packet.raw == expected_order_ack(
            packet, server=appliance.guid, peer=sender.local_ip, sequence_id=SEQUENCE, number=1
        )
        while header.ack != number:
            answer = sender.read_packet(soon(8))
            assert isinstance(answer, SessionAck), answer
            header = answer.session
        assert sender.acked == number
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("orders")), sender.guid)
    assert len(records) == 1


@pytest.mark.parametrize("counted", [False, True], ids=["behind PacketSize", "inside PacketSize"])
def test_a_message_that_carries_our_session_header(
    appliance: Appliance, open_sender: OpenSender, counted: bool
) -> None:  # QB-47, CONFLICT-1
    sender = open_sender(auto_ack=False)
    sender.transmit([ordered(sender.guid, 1)])
    read_both(sender, 1)
    carrier = ordered(sender.guid, 2)
    sender.transmit_with_header(carrier, counted=counted)
    [packet], _ = read_both(sender, 1)
    assert packet.sequence == (SEQUENCE, 2, 1)
    sender.transmit([ordered(sender.guid, 3)])  # the stream is still in step
    assert sender.read_user(soon(12)).sequence == (SEQUENCE, 3, 2)
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("orders")), sender.guid)
    assert [record.value for record in records] == [b"number 1", b"number 2", b"number 3"]


def test_a_wrong_count_closes(open_sender: OpenSender) -> None:  # QB-49
    sender = open_sender()
    sender.send(session_ack(SessionHeader(sent=1)))
    sender.expect_closed()


def test_a_carrier_with_a_wrong_count_is_delivered_before_the_close(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-49, MQ <14>
    sender = open_sender()
    message = ordered(sender.guid, 1)
    sender.sent = sender.sent_recoverable = 1
    sender.send(build(message, SessionHeader(sent=7, sent_recoverable=1)))
    sender.read_to_end(soon(12))
    records = until(
        lambda: of_source(read_topic(appliance.bootstrap, appliance.topic("orders")), sender.guid),
        lambda found: len(found) > 0,
    )
    assert [record.value for record in records] == [b"number 1"]


def test_the_bridge_keeps_to_our_window(open_sender: OpenSender) -> None:  # QB-6, QB-50
    sender = open_sender(window=4, auto_ack=False)
    for number in range(1, 11):
        sender.transmit([ordered(sender.guid, number, final_ack=True)])
    packets = [sender.read_user(soon(12)) for _ in range(4)]
    with pytest.raises(TimeoutError):
        packets.append(sender.read_user(soon(2)))
    sender.auto_ack = True
    sender.ack()
    while sum(packet.is_final_ack for packet in packets) < 10:
        packets.append(sender.read_user(soon(12)))
    finals = [packet.sequence[1] for packet in packets if packet.is_final_ack]
    assert finals == list(range(1, 11))


@pytest.mark.timeout(400)
def test_the_counters_wrap(appliance: Appliance, open_sender: OpenSender) -> None:  # QB-40
    sender = open_sender()
    total = 70_016
    messages = [
        Message(source=sender.guid, message_id=number, destination=queue("bulk"), body=b"")
        for number in range(1, total + 1)
    ]
    sender.send_all_windowed(messages, soon(300))
    assert sender.acked == total
    last = replace(messages[-1], message_id=total + 1, recoverable=True)
    sender.transmit([last])
    packet = sender.read_packet(soon(8))
    assert packet.raw == expected_session_ack(ack=total + 1, recoverable_ack=1, flags=1)
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("bulk")), sender.guid)
    assert len(records) == total + 1
