from __future__ import annotations

from uuid import UUID

import pytest

from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Cursor
from bridge.protocol.binary import order_acks as module
from bridge.protocol.binary.order_acks import OrderAcks, StreamRoom, order_ack
from tests.outside.expected import expected_order_ack
from tests.outside.rawparse import Received, parse
from tests.protocol.binary.peer import CLIENT, LOCAL, REMOTE, SEQUENCE, SERVER
from tests.vectors.binary import PACKETS

BY_NAME = Message(source=REMOTE, ordinal=1, destination="DIRECT=OS:appl\\private$\\q1")
BY_NUMBER = Message(source=REMOTE, ordinal=1, destination=f"PRIVATE={LOCAL}\\0000000a")
OTHER = UUID("99999999-2222-3333-4444-555555555555")


def due(order_acks: OrderAcks, now: float) -> list[Cursor]:
    return [stream.cursor for stream in order_acks.due(now)]


def packed(
    message: Message, cursor: Cursor, *, peer: str = "192.0.2.10", ordinal: int = 1
) -> bytes:
    order_acks = OrderAcks(0.0)
    order_acks.schedule(message, cursor, 0.0)
    (stream,) = order_acks.due(0.5)
    ack = order_ack(stream, local=LOCAL, peer=peer, ordinal=ordinal, now=0x60000011)
    return ack.pack()


def received(raw: bytes) -> Received:
    packet = parse(raw)
    assert isinstance(packet, Received)
    return packet


# -- when -------------------------------------------------------------------------------------


def test_half_a_second_after_the_message() -> None:  # QB-85, QB-86
    order_acks = OrderAcks(0.0)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 1.0)
    assert order_acks.next_wakeup() == 1.5
    assert due(order_acks, 1.499) == []
    assert due(order_acks, 1.5) == [Cursor(SEQUENCE, 1)]
    assert order_acks.next_wakeup() is None
    assert due(order_acks, 9.0) == []


def test_a_stream_in_flow_is_acknowledged_when_it_pauses() -> None:  # QB-85: restart
    order_acks = OrderAcks(0.0)
    for n in range(1, 21):
        order_acks.schedule(BY_NAME, Cursor(SEQUENCE, n), n * 0.4)
        assert due(order_acks, n * 0.4) == []
    assert order_acks.next_wakeup() == 8.5
    assert due(order_acks, 8.5) == [Cursor(SEQUENCE, 20)]  # one ack covers all


def test_it_is_not_put_off_for_longer_than_ten_seconds() -> None:  # QB-85, MS-MQQB 3.1.3.2
    """LastOrderAckSendTime is the start of the session as long as no ack was sent."""
    order_acks = OrderAcks(100.0)
    times = [100.0 + 0.4 * n for n in range(1, 40)]
    fired = []
    for n, now in enumerate(times, 1):
        fired += [(now, cursor.number) for cursor in due(order_acks, now)]
        order_acks.schedule(BY_NAME, Cursor(SEQUENCE, n), now)
    # The last restart was at 109.6; from 110.0 on the timer is left running.
    assert fired[0] == (times[25], 25)
    assert times[25] == pytest.approx(110.4)
    assert len(fired) == 1  # and the ten seconds count anew from there


def test_the_cap_counts_from_the_last_ack() -> None:  # QB-85, QB-86
    order_acks = OrderAcks(0.0)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 50.0)
    assert due(order_acks, 50.5) == [Cursor(SEQUENCE, 1)]
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 2), 60.1)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 3), 60.4)  # 9.9 s: restarted
    assert order_acks.next_wakeup() == pytest.approx(60.9)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 4), 60.5)  # 10.0 s: left running
    assert order_acks.next_wakeup() == pytest.approx(60.9)
    assert due(order_acks, 60.9) == [Cursor(SEQUENCE, 4)]


def test_long_after_the_start_the_timer_is_not_put_off_at_all() -> None:  # QB-85
    order_acks = OrderAcks(0.0)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 20.0)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 2), 20.4)
    assert order_acks.next_wakeup() == 20.5
    assert due(order_acks, 20.5) == [Cursor(SEQUENCE, 2)]


def test_a_quiet_stream_comes_back() -> None:
    order_acks = OrderAcks(0.0)
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 1.0)
    assert due(order_acks, 1.5) == [Cursor(SEQUENCE, 1)]
    assert due(order_acks, 12.0) == []
    assert order_acks.next_wakeup() is None
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 600.0)  # a duplicate: acked again
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 1), 600.3)
    assert due(order_acks, 600.5) == [Cursor(SEQUENCE, 1)]


def test_nothing_was_ever_taken() -> None:  # QB-86: Incoming.No is 0
    order_acks = OrderAcks(0.0)
    order_acks.schedule(BY_NAME, Cursor(), 1.0)
    assert due(order_acks, 1.5) == []
    assert order_acks.next_wakeup() is None
    order_acks.schedule(BY_NAME, Cursor(SEQUENCE, 5), 2.0)
    assert due(order_acks, 2.5) == [Cursor(SEQUENCE, 5)]


def test_streams_have_their_own_timers() -> None:  # DM-8: (source, destination name)
    order_acks = OrderAcks(0.0)
    upper = Message(source=REMOTE, ordinal=1, destination=BY_NAME.destination.upper())
    other = Message(source=Guid(OTHER.bytes_le), ordinal=1, destination=BY_NAME.destination)
    for n, message in enumerate((BY_NAME, BY_NUMBER, upper, other), 1):
        order_acks.schedule(message, Cursor(SEQUENCE, n), n / 10)
    assert order_acks.next_wakeup() == pytest.approx(0.6)
    assert due(order_acks, 0.65) == [Cursor(SEQUENCE, 1)]
    assert due(order_acks, 0.85) == [Cursor(SEQUENCE, 2), Cursor(SEQUENCE, 3)]
    assert due(order_acks, 0.95) == [Cursor(SEQUENCE, 4)]


# -- how many ---------------------------------------------------------------------------------


def named(number: int, length: int = 0) -> Message:
    name = f"DIRECT=OS:appl\\private$\\{number:0{length}}"
    return Message(source=REMOTE, ordinal=1, destination=name)


def test_at_the_bound_the_longest_quiet_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STREAMS", 3)
    order_acks = OrderAcks(0.0)
    for number in range(3):
        assert order_acks.schedule(named(number), Cursor(SEQUENCE, 1), number / 10) is None
    assert len(due(order_acks, 0.55)) == 1  # the first is quiet
    assert order_acks.schedule(named(3), Cursor(SEQUENCE, 1), 0.55) is None
    assert len(order_acks) == 3
    assert len(due(order_acks, 2.0)) == 3


def test_else_the_one_that_is_due_first_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ack is lost: its sender would send all again, much later."""
    monkeypatch.setattr(module, "MOST_STREAMS", 3)
    order_acks = OrderAcks(0.0)
    for number in range(3):
        order_acks.schedule(named(number), Cursor(SEQUENCE, number + 1), number / 10)
    order_acks.schedule(named(0), Cursor(SEQUENCE, 9), 0.3)  # put off: the second is first now
    early = order_acks.schedule(named(3), Cursor(SEQUENCE, 4), 0.4)
    assert early is not None
    assert early.cursor == Cursor(SEQUENCE, 2)
    assert sorted(cursor.number for cursor in due(order_acks, 9.0)) == [3, 4, 9]


def test_all_sessions_share_a_bound() -> None:
    room = StreamRoom(4)
    hog, other = OrderAcks(0.0, room), OrderAcks(0.0, room)
    for number in range(10):
        hog.schedule(named(number), Cursor(SEQUENCE, number + 1), 0.0)
    assert (len(hog), room.used) == (4, 4)
    early = other.schedule(BY_NAME, Cursor(SEQUENCE, 7), 0.0)  # not kept, and not lost
    assert early is not None
    assert early.cursor == Cursor(SEQUENCE, 7)
    assert (len(other), room.used) == (0, 4)
    hog.close()
    assert (len(hog), room.used, hog.next_wakeup()) == (0, 0, None)
    assert other.schedule(BY_NAME, Cursor(SEQUENCE, 8), 0.0) is None
    assert due(other, 1.0) == [Cursor(SEQUENCE, 8)]
    assert due(other, 20.0) == []
    assert room.used == 0


def test_long_names_take_no_more_room() -> None:
    order_acks = OrderAcks(0.0)
    for number in range(3):
        for _ in range(2):
            order_acks.schedule(named(number, 30_000), Cursor(SEQUENCE, number + 1), 0.0)
    assert all(len(name) <= 128 for _, name in order_acks._streams)
    assert [cursor.number for cursor in due(order_acks, 1.0)] == [1, 2, 3]


def test_a_busy_stream_among_thousands_costs_no_search() -> None:
    """A hundred thousand messages of one stream, while four thousand others wait."""
    order_acks = OrderAcks(0.0)
    for number in range(4_000):
        order_acks.schedule(named(number), Cursor(SEQUENCE, 1), 1e6)
    before, fired = order_acks._due.steps, 0
    for n in range(100_000):
        order_acks.schedule(BY_NAME, Cursor(SEQUENCE, n + 1), n / 1000)
        order_acks.next_wakeup()
        fired += len(due(order_acks, n / 1000))
    assert fired < 110 * 2  # seconds
    assert order_acks._due.steps - before < 3 * 100_000


# -- what -------------------------------------------------------------------------------------


def test_the_direct_form_byte_for_byte() -> None:  # digest section 6, V2
    assert packed(BY_NAME, Cursor(SEQUENCE, 1)) == PACKETS["V2"].data


def test_the_private_form_byte_for_byte() -> None:  # 2.17: DQ=3, flags 0x00200C00, number 4
    raw = packed(BY_NUMBER, Cursor(SEQUENCE, 7), ordinal=3)
    ack = received(raw)
    assert ack.user_flags == 0x00200C00
    assert ack.flags == 0
    assert raw[64:68] == b"\4\0\0\0"
    assert raw[32:48] == CLIENT.bytes_le
    expected = expected_order_ack(ack, server=SERVER, peer=CLIENT, sequence_id=SEQUENCE, number=7)
    assert raw == expected
    assert (ack.message_id, ack.sent_time) == (3, 0x60000011)


def test_public_destinations_get_the_private_form() -> None:  # QB-65: only DQ=7 is direct
    message = Message(source=REMOTE, ordinal=1, destination=f"PUBLIC={LOCAL}")
    assert received(packed(message, Cursor(SEQUENCE, 1))).destination.code == 3


@pytest.mark.parametrize("peer", ["2001:db8::10", "::1", "fe80::1"])
def test_ipv6_peers_have_no_brackets(peer: str) -> None:  # 2.17
    raw = packed(BY_NAME, Cursor(SEQUENCE, 1), peer=peer)
    name = f"TCP:{peer}\\PRIVATE$\\order_queue$\0".encode("utf-16-le")
    assert raw[64:66] == len(name).to_bytes(2, "little")
    assert raw[66 : 66 + len(name)] == name
    expected = expected_order_ack(
        received(raw), server=SERVER, peer=peer, sequence_id=SEQUENCE, number=1
    )
    assert raw == expected


def test_the_body_names_the_incoming_sequence() -> None:  # CONFLICT-8
    ack = received(packed(BY_NAME, Cursor(0xFFFFFFFF_FFFFFFFF, 0xFFFFFFFF)))
    assert ack.sequence == (0xFFFFFFFF_FFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE)
    assert ack.body[16:] == bytes(20)
    assert len(ack.body) == 0x24
