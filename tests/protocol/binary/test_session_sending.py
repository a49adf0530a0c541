"""What goes out: our own messages, order acks, piggybacked headers, and the wait for acks."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from bridge.protocol.binary.session import Session, SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close, Command, Delivered, Opened, Send
from bridge.protocol.events import Congested, Decided
from tests.outside.expected import (
    expected_cp_response,
    expected_ec_response,
    expected_order_ack,
    expected_session_ack,
)
from tests.outside.rawmsmq import (
    ZERO,
    Message,
    Name,
    SessionHeader,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    private,
)
from tests.protocol.binary.peer import (
    CLIENT,
    QUEUE,
    REMOTE,
    SEQUENCE,
    SERVER,
    accepted,
    acks,
    at,
    closed,
    decide,
    feed,
    initiator,
    message,
    only,
    open_acceptor,
    peer_ack,
    receive,
    recoverable,
    sent,
    taken,
    tick,
    transactional,
    user_message,
    user_messages,
)
from tests.vectors.binary import PACKETS


def ours(ordinal: int, *, stored: bool = False) -> Message:
    return message(ordinal, recoverable=stored, source=SERVER)


def deliver(session: Session, seconds: float, *messages: Message) -> list[Command]:
    """Each with its ordinal as the token."""
    packets = [(user_message(build(m)), m.message_id) for m in messages]
    return session.deliver(packets, at(seconds))


def delivered(commands: list[Command]) -> list[int]:
    return [token for command in only(Delivered, commands) for token in command.tokens]


# -- the initiator ----------------------------------------------------------------------------


def open_initiator(session: Session, *, window: int = 64) -> list[Command]:
    session.open(at(0))
    reply = expected_ec_response(client=SERVER, server=CLIENT, timestamp=0)
    assert sent(feed(session, reply, 0.0)) == [cp_request()]
    return feed(session, expected_cp_response(window=window), 0.0)


def test_the_initiator_opens() -> None:  # QB-23, QB-25, QB-26
    session = initiator()
    assert session.next_wakeup() == 60.0
    assert session.open(at(0)) == [Send(ec_request(SERVER, ZERO, timestamp=0))]
    reply = expected_ec_response(client=SERVER, server=CLIENT, timestamp=0)
    assert feed(session, reply, 1.0) == [Send(cp_request(recoverable_ack_ms=8000))]
    assert session.state is not SessionState.OPEN
    answer = expected_cp_response(recoverable_ack_ms=8000)
    assert feed(session, answer, 2.0) == [Opened(REMOTE)]
    assert session.remote == REMOTE
    assert session.next_wakeup() == 302.0


def test_the_initiator_gives_up() -> None:  # QB-23
    session = initiator()
    session.open(at(0))
    assert tick(session, 60.0) == [Close("init-timeout")]


@pytest.mark.parametrize(
    "reply",
    [
        expected_ec_response(client=SERVER, server=CLIENT, refused=True),
        expected_ec_response(client=CLIENT, server=SERVER),
    ],
)
def test_the_initiator_is_refused(reply: bytes) -> None:  # QB-24
    session = initiator()
    session.open(at(0))
    commands = feed(session, reply, 0.0)
    assert closed(commands) == "refused"
    assert len(commands) == 1


def test_what_waits_is_flushed_when_it_opens() -> None:  # QB-26
    session = initiator()
    assert deliver(session, 0.0, ours(1), ours(2)) == []
    assert session.room == 0
    commands = open_initiator(session)
    assert commands == [Opened(REMOTE), Send(build(ours(1))), Send(build(ours(2)))]
    assert session.room == 62


def test_once_open_both_sides_are_peers() -> None:
    session = initiator()
    open_initiator(session)
    receive(session, recoverable(1), 1.0)
    assert tick(session, 1.5) == [
        Send(expected_session_ack(ack=1, recoverable_ack=1, flags=0b1)),
    ]
    assert closed(feed(session, ec_request(CLIENT), 2.0)) == "unexpected-packet"


# -- the window of the peer -------------------------------------------------------------------


def test_messages_go_out_byte_for_byte_and_are_counted() -> None:  # QB-40, QB-43
    session = open_acceptor()
    assert deliver(session, 0.0, ours(1), ours(2, stored=True)) == [
        Send(build(ours(1))),
        Send(build(ours(2, stored=True))),
    ]
    receive(session, recoverable(1) + recoverable(2), 0.0)
    (header,) = acks(tick(session, 0.5))
    assert session_of_v4(header)


def session_of_v4(header: SessionHeader) -> bool:
    return (header.sent, header.sent_recoverable, header.flags) == (2, 1, 0b11)


@pytest.mark.parametrize(("own", "theirs", "limit"), [(64, 64, 64), (64, 10, 10), (5, 64, 5)])
def test_the_window_is_the_smaller_one(own: int, theirs: int, limit: int) -> None:  # QB-50
    session = open_acceptor(window=theirs, settings=SessionSettings(window=own))
    assert session.room == limit
    commands = deliver(session, 0.0, *[ours(n) for n in range(1, 101)])
    assert len(sent(commands)) == limit
    assert session.room <= 0
    commands = feed(session, peer_ack(ack=3, window=theirs), 1.0)
    assert delivered(commands) == [1, 2, 3]
    assert sent(commands) == [build(ours(n)) for n in range(limit + 1, limit + 4)]


def test_the_last_window_received_counts() -> None:  # QB-50, QB-51
    session = open_acceptor()
    assert len(sent(deliver(session, 0.0, *[ours(n) for n in range(1, 101)]))) == 64
    assert sent(feed(session, peer_ack(ack=32, window=1), 1.0)) == []
    assert sent(feed(session, peer_ack(ack=63, window=1), 2.0)) == []
    assert sent(feed(session, peer_ack(ack=64, window=1), 3.0)) == [build(ours(65))]
    assert len(sent(feed(session, peer_ack(ack=65, window=64), 4.0))) == 35


def test_room_is_never_negative() -> None:
    session = open_acceptor()
    deliver(session, 0.0, *[ours(n) for n in range(1, 11)])
    feed(session, peer_ack(ack=2, window=1), 1.0)
    assert session.room == 0


@pytest.mark.parametrize("shrunk_by", ["parameters", "session ack"])
def test_a_window_of_zero_lets_one_through(shrunk_by: str) -> None:
    """CP may say 0; a sender that obeyed would never hear of its order acks."""
    if shrunk_by == "parameters":
        session = open_acceptor(window=0)
    else:
        session = open_acceptor()
        feed(session, peer_ack(window=0), 0.0)
    assert session.room == 1
    assert sent(deliver(session, 0.0, ours(1), ours(2))) == [build(ours(1))]
    assert sent(feed(session, peer_ack(ack=1, window=0), 1.0)) == [build(ours(2))]


def test_express_and_recoverable_messages_are_delivered_differently() -> None:  # QB-48
    session = open_acceptor()
    deliver(session, 0.0, ours(1), ours(2, stored=True), ours(3), ours(4, stored=True))
    assert delivered(feed(session, peer_ack(ack=4), 1.0)) == [1, 3]
    commands = feed(session, peer_ack(ack=4, recoverable_ack=1, flags=0b1), 2.0)
    assert delivered(commands) == [2]
    commands = feed(session, peer_ack(ack=4, recoverable_ack=2, flags=0b1), 2.0)
    assert delivered(commands) == [4]


def test_an_ack_may_ride_on_a_message() -> None:  # QB-47, QB-48: V5
    session = open_acceptor()
    deliver(session, 0.0, ours(1))
    commands = feed(session, PACKETS["V5"].data, 1.0)
    assert commands[0] == Delivered([1])
    assert [type(c) for c in commands] == [Delivered, Accept]


@pytest.mark.parametrize("header", [{"ack": 3}, {"ack": 2, "recoverable_ack": 2, "flags": 1}])
def test_a_bad_ack_closes(header: dict[str, int]) -> None:  # QB-48
    session = open_acceptor()
    deliver(session, 0.0, ours(1), ours(2, stored=True))
    assert closed(feed(session, peer_ack(**header), 1.0)) == "bad-ack"


# -- order acks -------------------------------------------------------------------------------


def test_the_order_ack_of_v1_is_v2() -> None:  # digest section 6; QB-85, QB-86
    session = open_acceptor(recoverable_ack_ms=120_000)  # so that no session ack rides on it
    feed(session, PACKETS["V1"].data, 16.0)
    assert decide(session, Decided(1, [taken(1)]), 16.5) == []
    assert session.next_wakeup() == 17.0
    assert tick(session, 17.0) == [Send(PACKETS["V2"].data)]


def order_acks(commands: list[Command], *peers: str | UUID) -> list[tuple[int, int, int]]:
    """What they say, after each was compared with its expected bytes."""
    found = [m for m in user_messages(commands) if m.is_order_ack]
    for ack, peer in zip(found, peers, strict=True):
        sequence, number, _ = ack.sequence
        assert ack.raw == expected_order_ack(
            ack, server=SERVER, peer=peer, sequence_id=sequence, number=number
        )
    return [ack.sequence for ack in found]


@pytest.mark.parametrize(
    ("peer", "queue", "manager", "form"),
    [
        ("192.0.2.10", QUEUE, ZERO, "192.0.2.10"),
        ("2001:db8::7", QUEUE, ZERO, "2001:db8::7"),
        ("192.0.2.10", private(10), SERVER, CLIENT),
        ("2001:db8::7", private(10), SERVER, CLIENT),
    ],
)
def test_the_form_follows_the_sender(
    peer: str, queue: Name, manager: UUID, form: str | UUID
) -> None:  # QB-65, 2.17
    session = open_acceptor(peer=peer)
    feed(session, transactional(1, queue=queue, manager=manager), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    assert order_acks(tick(session, 0.5), form) == [(SEQUENCE, 1, 0)]


def test_several_streams_in_one_session() -> None:  # section 7 (9), DM-8
    session = open_acceptor()
    other = UUID("99999999-2222-3333-4444-555555555555")
    feed(session, transactional(1) + transactional(2), 0.0)
    feed(session, transactional(1, queue=direct("OS:appl\\private$\\q2")), 0.1)
    feed(session, transactional(1, queue=private(7), manager=SERVER, source=other), 0.2)
    decide(session, Decided(1, [taken(1), taken(2)]), 0.3)
    decide(session, Decided(2, [taken(1)]), 0.3)
    decide(session, Decided(3, [taken(1, SEQUENCE + 1)]), 0.4)
    tick(session, 0.5)
    commands = tick(session, 0.8)
    assert order_acks(commands, "192.0.2.10", "192.0.2.10") == [(SEQUENCE, 2, 1), (SEQUENCE, 1, 0)]
    assert order_acks(tick(session, 0.9), other) == [(SEQUENCE + 1, 1, 0)]


def test_order_acks_consume_our_numbers() -> None:  # QB-6, QB-43
    session = open_acceptor()
    feed(session, transactional(1), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    (ack,) = acks(tick(session, 0.45)) or acks(tick(session, 0.5))
    assert (ack.sent, ack.sent_recoverable) == (0, 0)  # the session ack left before it
    receive(session, recoverable(2), 1.0)
    (ack,) = acks(tick(session, 1.5))
    assert (ack.sent, ack.sent_recoverable) == (1, 0)  # DM=0: CONFLICT-8


def test_nothing_taken_nothing_said() -> None:  # QB-86
    session = open_acceptor()
    feed(session, transactional(5), 0.0)
    decide(session, Decided(1, [taken(0, 0)]), 0.0)
    assert user_messages(tick(session, 0.5)) == []


def test_duplicates_are_order_acked_again() -> None:  # QB-85, DM-16
    session = open_acceptor()
    feed(session, transactional(1), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    assert order_acks(tick(session, 0.5), "192.0.2.10")
    feed(session, transactional(1), 30.0)
    decide(session, Decided(2, [taken(1)]), 30.0)
    assert order_acks(tick(session, 30.5), "192.0.2.10") == [(SEQUENCE, 1, 0)]


def test_no_order_ack_before_the_verdict() -> None:  # QB-84, QB-86
    session = open_acceptor()
    feed(session, transactional(1), 0.0)
    feed(session, transactional(2), 0.0)
    decide(session, Decided(2, [taken(2)]), 0.0)
    assert sent(tick(session, 5.0)) == []  # 1 is not durable, so neither is the stream at 2
    decide(session, Decided(1, [taken(1)]), 6.0)
    assert order_acks(tick(session, 6.5), "192.0.2.10") == [(SEQUENCE, 2, 1)]


def test_the_first_ten_seconds_count_from_the_start_of_the_session() -> None:
    """MS-MQQB 3.1.3.2, QB-85: LastOrderAckSendTime is set when the session is."""
    session = open_acceptor(recoverable_ack_ms=120_000, window=0xFFFF)
    fired = []
    for n in range(1, 40):
        now = n * 0.4
        fired += [(now, ack.sequence[1]) for ack in user_messages(tick(session, now))]
        feed(session, transactional(n), now)
        decide(session, Decided(n, [taken(n)]), now)
    assert [(round(now, 1), number) for now, number in fired] == [(10.4, 25)]


def test_order_acks_wait_for_the_window() -> None:  # QB-6, QB-50
    session = open_acceptor(window=1)
    deliver(session, 0.0, ours(1))
    feed(session, transactional(1), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    assert user_messages(tick(session, 0.5)) == []
    commands = feed(session, peer_ack(ack=1, sent=1, sent_recoverable=1, window=1), 3.0)
    assert order_acks(commands, "192.0.2.10") == [(SEQUENCE, 1, 0)]


def test_a_peer_that_acknowledges_nothing_piles_up_no_order_acks() -> None:
    """Those beyond a window stay due, and a later one says what an earlier one would have said."""
    session = open_acceptor(settings=SessionSettings(window=4), window=4, recoverable_ack_ms=60_000)
    batch, found, count = 0, [], 40
    for second in range(3):
        for number in range(count):
            name = direct(f"OS:appl\\private$\\q{number}")
            feed(session, transactional(second + 1, queue=name), second)
            batch += 1
            decide(session, Decided(batch, [taken(second + 1)]), second)
        found += [m.sequence[1] for m in user_messages(tick(session, second + 0.6))]
        assert len(session._outgoing) <= 4
        due = session.next_wakeup()
        assert due is None or due > second + 0.6  # what cannot leave wakes nobody
    assert found == [1] * 4
    # Four that wait, of the first second, and then the rest as the window opens, up to date.
    for step in range(1, count):
        told = min(4 * step, session.sent.sent)
        header = peer_ack(ack=told, sent=120, sent_recoverable=120, window=4)
        found += [m.sequence[1] for m in user_messages(feed(session, header, 5.0))]
        found += [m.sequence[1] for m in user_messages(tick(session, 5.0))]
    assert found == [1] * 8 + [3] * count
    assert session._order_acks_waiting == 0


def test_a_verdict_finds_its_batch_wherever_it_is() -> None:
    session = open_acceptor(recoverable_ack_ms=60_000, window=0xFFFF)
    for number in range(1, 6):
        feed(session, recoverable(number), 0.0)
    for batch in (4, 2, 5, 99, 0):
        decide(session, accepted(batch), 0.0)
    assert session.received.decided == 0
    decide(session, accepted(1), 0.0)
    assert session.received.decided == 2
    decide(session, accepted(3), 0.0)
    assert session.received.decided == 5
    decide(session, accepted(3), 0.0)  # nothing waits any more
    assert session.received.decided == 5


def test_it_is_idle_when_nothing_is_unacknowledged_or_half_there() -> None:
    session = open_acceptor(recoverable_ack_ms=500)
    assert session.is_idle
    raw = recoverable(1)
    feed(session, raw[:40], 0.0)
    assert not session.is_idle
    feed(session, raw[40:], 0.0)
    decide(session, accepted(1), 0.0)
    assert not session.is_idle
    tick(session, 0.5)
    assert session.is_idle
    deliver(session, 1.0, ours(1))
    assert not session.is_idle
    feed(session, peer_ack(ack=1, sent=1, sent_recoverable=1), 1.5)
    assert session.is_idle


def test_no_token_is_told_for_our_own_order_acks() -> None:
    session = open_acceptor()
    feed(session, transactional(1), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    tick(session, 0.5)
    assert feed(session, peer_ack(ack=1, sent=1, sent_recoverable=1), 1.0) == []


# -- piggybacked headers ----------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "rides"), [(1.0, False), (1.5, False), (1.51, True)])
def test_an_ack_rides_when_three_quarters_are_gone(seconds: float, rides: bool) -> None:  # QB-47
    session = open_acceptor(recoverable_ack_ms=2000)
    receive(session, recoverable(1), 0.0)
    header = SessionHeader(ack=1, recoverable_ack=1, flags=1, sent=1) if rides else None
    assert deliver(session, seconds, ours(1)) == [Send(build(ours(1), header))]
    assert len(acks(tick(session, 2.0))) == (0 if rides else 1)


def test_the_header_counts_its_carrier() -> None:  # QB-47: and a recoverable one twice
    session = open_acceptor(recoverable_ack_ms=2000)
    receive(session, recoverable(1), 0.0)
    header = SessionHeader(ack=1, recoverable_ack=1, flags=1, sent=1, sent_recoverable=1)
    commands = deliver(session, 1.9, ours(1, stored=True), ours(2))
    assert commands == [Send(build(ours(1, stored=True), header)), Send(build(ours(2)))]


def test_nothing_unacked_nothing_rides() -> None:  # QB-47
    session = open_acceptor(recoverable_ack_ms=2000)
    feed(session, recoverable(1), 0.0)
    assert deliver(session, 1.9, ours(1)) == [Send(build(ours(1)))]  # no verdict yet: QB-46


def test_an_order_ack_carries_no_session_ack() -> None:
    """MS-MQQB 2.2.4: "The BaseHeader.Flags field MUST have all bits set to 0." A receiver knows an
    OrderAck Packet by that (3.1.5.1.1); the session ack leaves with its own timer."""
    session = open_acceptor(recoverable_ack_ms=600)
    feed(session, transactional(1), 0.0)
    decide(session, Decided(1, [taken(1)]), 0.0)
    (ack,) = user_messages(tick(session, 0.5))
    assert ack.session is None
    assert ack.raw[2:4] == b"\0\0"  # BaseHeader.Flags
    assert order_acks([Send(ack.raw)], "192.0.2.10") == [(SEQUENCE, 1, 0)]
    assert tick(session, 0.6) == [
        Send(expected_session_ack(ack=1, recoverable_ack=1, flags=1, sent=1)),
    ]


@pytest.mark.parametrize("queue", [private(4), direct("TCP:192.0.2.10\\PRIVATE$\\order_queue$")])
@pytest.mark.parametrize("message_class", [0x4000, 0x8000, 0x8004])
def test_a_final_ack_carries_no_session_ack(queue: Name, message_class: int) -> None:
    """MS-MQQB 2.2.5: "The BaseHeader.Flags field MUST have all bits set to 0." """
    session = open_acceptor(recoverable_ack_ms=2000)
    receive(session, recoverable(1), 0.0)
    final = replace(
        ours(1, stored=True),
        destination=queue,
        label="QM Ordering Ack",
        message_class=message_class,
        body=bytes(36),
    )
    assert deliver(session, 1.9, final) == [Send(build(final))]
    header = SessionHeader(ack=1, recoverable_ack=1, flags=1, sent=2, sent_recoverable=1)
    assert deliver(session, 1.9, ours(2)) == [Send(build(ours(2), header))]  # the next one does


def test_a_piggyback_restarts_the_timer() -> None:  # QB-47, MS-MQQB 3.1.7.11
    session = open_acceptor(recoverable_ack_ms=2000)
    receive(session, recoverable(1), 0.0)
    feed(session, recoverable(2), 1.0)
    header = SessionHeader(ack=1, recoverable_ack=1, flags=1, sent=1)
    assert sent(deliver(session, 1.8, ours(1))) == [build(ours(1), header)]
    decide(session, accepted(2), 1.9)
    assert tick(session, 2.0) == []
    assert tick(session, 3.7) == []
    assert acks(tick(session, 3.8)) == [SessionHeader(ack=2, recoverable_ack=2, flags=1, sent=1)]


def test_a_piggyback_tells_the_window_too() -> None:  # QB-51
    session = open_acceptor(recoverable_ack_ms=2000)
    session.handle(Congested(True), at(0.0))
    receive(session, recoverable(1), 0.0)
    (carrier,) = user_messages(deliver(session, 1.9, ours(1)))
    assert carrier.session is not None
    assert carrier.session.window == 1
    assert session.handle(Congested(False), at(3.0)) == [
        Send(expected_session_ack(ack=1, sent=1)),
    ]


# -- waiting for acks -------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "period"), [(ZERO, 40.0), (SERVER, 20.0)])
def test_a_peer_that_never_acks_is_left(asked: UUID, period: float) -> None:  # QB-52: k=2, k=1
    session = open_acceptor(asked=asked)
    deliver(session, 1.0, ours(1))
    assert session.next_wakeup() == 1.0 + period
    assert tick(session, 1.0 + period) == []  # the handshake was heard in this period
    assert session.next_wakeup() == 1.0 + 2 * period
    assert tick(session, 1.0 + 2 * period) == [Close("ack-wait")]


def test_the_initiator_is_patient_with_direct_names_too() -> None:  # QB-52
    for remote, period in ((initiator(), 40.0), (initiator(remote=REMOTE), 20.0)):
        open_initiator(remote)
        deliver(remote, 0.0, ours(1))
        assert remote.next_wakeup() == period


def test_any_packet_keeps_it_alive() -> None:  # QB-1, QB-52
    session = open_acceptor()
    deliver(session, 0.0, ours(1))
    assert tick(session, 40.0) == []
    receive(session, recoverable(1), 79.0)
    tick(session, 79.5)
    assert tick(session, 80.0) == []
    assert tick(session, 120.0) == [Close("ack-wait")]


def test_an_ack_of_all_stops_the_wait() -> None:  # QB-52
    session = open_acceptor()
    deliver(session, 0.0, ours(1), ours(2, stored=True))
    feed(session, peer_ack(ack=2), 1.0)
    assert session.next_wakeup() == 41.0  # the recoverable one is still ours
    feed(session, peer_ack(ack=2, recoverable_ack=1, flags=1), 2.0)
    assert session.next_wakeup() == 300.0
    assert tick(session, 200.0) == []


def test_an_ack_of_some_restarts_the_wait() -> None:  # MS-MQQB 3.1.5.5.5
    session = open_acceptor()
    deliver(session, 0.0, ours(1), ours(2))
    feed(session, peer_ack(ack=1), 15.0)
    assert session.next_wakeup() == 55.0
    assert tick(session, 55.0) == []
    assert tick(session, 95.0) == [Close("ack-wait")]


def test_our_messages_keep_the_session_from_being_idle() -> None:  # QB-151
    session = open_acceptor()
    deliver(session, 290.0, ours(1))
    feed(session, peer_ack(ack=1), 291.0)
    assert tick(session, 300.0) == []
    assert tick(session, 600.0) == [Close("idle")]


def test_a_new_session_counts_from_one() -> None:  # QB-53
    for _ in range(2):
        session = open_acceptor()
        tx = Tx(sequence_id=SEQUENCE, number=1, previous=0)
        deliver(session, 0.0, ours(1), message(2, tx=tx, source=SERVER))
        receive(session, recoverable(1), 0.0)
        (header,) = acks(tick(session, 0.5))
        assert (header.sent, header.sent_recoverable) == (2, 1)
        session.close("reconnect")
