"""What comes in: from the first byte over the acks to the close. Sending: test_session_sending."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from bridge.model.verdict import DUPLICATE, Outcome, Verdict
from bridge.protocol.binary.session import SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close, FinalAcked, Opened, OrderAcked, Send
from bridge.protocol.events import BytesReceived, Congested, Decided, PeerClosed, Tick
from tests.outside.expected import (
    expected_cp_response,
    expected_ec_response,
    expected_session_ack,
)
from tests.outside.rawmsmq import SessionHeader, build, cp_request, direct, ec_request, private
from tests.protocol.binary.peer import (
    ADDRESS,
    CLIENT,
    EPOCH,
    QUEUE_NAME,
    REMOTE,
    SEQUENCE,
    SERVER,
    accepted,
    acceptor,
    acks,
    at,
    closed,
    decide,
    express,
    feed,
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

EC, CP = ec_request(CLIENT), cp_request()


def patched(raw: bytes, offset: int, layout: str, value: int) -> bytes:
    data = bytearray(raw)
    struct.pack_into(layout, data, offset, value)
    return bytes(data)


# -- opening ----------------------------------------------------------------------------------


def test_a_new_session_waits_for_ec_and_not_for_ever() -> None:  # QB-10
    session = acceptor()
    assert session.state is SessionState.WAITING_EC_MSG
    assert session.next_wakeup() == 60.0
    assert tick(session, 59.999) == []
    assert tick(session, 60.0) == [Close("init-timeout")]


def test_the_init_timer_runs_on_until_cp() -> None:  # QB-10, QB-16
    session = acceptor()
    feed(session, EC, 59.0)
    assert session.next_wakeup() == 60.0
    assert closed(tick(session, 60.0)) == "init-timeout"


def test_open_stops_the_init_timer() -> None:  # QB-16
    session = open_acceptor()
    assert tick(session, 60.0) == []
    assert session.state is SessionState.OPEN


def test_the_handshake_in_single_bytes() -> None:  # QB-13, QB-16
    session = acceptor()
    commands = [c for byte in EC + CP for c in feed(session, bytes((byte,)), 0.0)]
    assert commands == [
        Send(expected_ec_response(client=CLIENT, server=SERVER)),
        Send(expected_cp_response()),
        Opened(REMOTE),
    ]
    assert session.remote == REMOTE


def test_handshake_and_messages_in_one_read() -> None:
    session = acceptor()
    commands = feed(session, EC + CP + express(1) + recoverable(2), 0.0)
    assert [type(c) for c in commands] == [Send, Send, Opened, Accept]
    (accept,) = only(Accept, commands)
    assert [m.ordinal for m in accept.messages] == [1, 2]


def test_another_server_is_refused_then_closed() -> None:  # QB-12, QB-15
    session = acceptor()
    commands = feed(session, ec_request(CLIENT, CLIENT) + CP, 0.0)
    refusal = expected_ec_response(client=CLIENT, server=SERVER, refused=True)
    assert commands[0] == Send(refusal)
    assert closed(commands) == "refused"
    assert len(commands) == 2
    assert feed(session, EC, 1.0) == []


@pytest.mark.parametrize(
    "early", [express(), PACKETS["V2"].data, PACKETS["V3"].data, peer_ack(), CP]
)
@pytest.mark.parametrize("before", [b"", EC])
def test_nothing_may_come_before_its_turn(early: bytes, before: bytes) -> None:  # QB-17
    session = acceptor()
    feed(session, before, 0.0)
    if early == CP and before:
        early = EC  # QB-11
    commands = feed(session, early, 0.0)
    assert closed(commands) == "handshake"
    assert len(commands) == 1


@pytest.mark.parametrize("again", [EC, CP])
def test_an_open_session_shakes_no_hands(again: bytes) -> None:  # QB-11, QB-17
    assert closed(feed(open_acceptor(), again, 1.0)) == "unexpected-packet"


def test_large_packets_are_not_waited_for_before_open() -> None:
    header = build(message(1, body=bytes(5000)))[:16]
    assert closed(feed(acceptor(), header, 0.0)) == "malformed"


# -- malformed packets ------------------------------------------------------------------------

GOOD = build(replace(message(1, recoverable=True), label="label"))
FLAGS = 16 + 44
PROPERTIES = 16 + 48 + len(message().destination.data)
MALFORMED = {
    "QB-2 version": patched(GOOD, 0, "<B", 0x11),
    "QB-2 signature": patched(GOOD, 4, "<I", 0x524F494D),
    "QB-3 size 15": patched(GOOD, 8, "<I", 15),
    "QB-3 size above 4 MiB": patched(GOOD, 8, "<I", 0x400001),
    "QB-3 TR without DH": patched(GOOD, 2, "<H", 0x0103),
    "QB-3 MP=0": patched(GOOD, FLAGS, "<I", 0x00001C20),
    "QB-3 TH with DM=0": patched(GOOD, FLAGS, "<I", 0x00301C00),
    "QB-3 DM=2": patched(GOOD, FLAGS, "<I", 0x00201C40),
    "QB-3 DM=3": patched(GOOD, FLAGS, "<I", 0x00201C60),
    "QB-3 AH=1": patched(GOOD, FLAGS, "<I", 0x02201C20),
    "QB-3 DQ=6": patched(GOOD, FLAGS, "<I", 0x00201820),
    "QB-3 AQ=1": patched(GOOD, FLAGS, "<I", 0x00203C20),
    "QB-3 LabelLength 0xFB": patched(GOOD, PROPERTIES + 1, "<B", 0xFB),
    "QB-3 body past the end": patched(GOOD, PROPERTIES + 32, "<I", 100),
    "QB-3 name past the end": patched(GOOD, 64, "<H", 0xFFFE),
    "QB-4 PT=4": patched(CP, 18, "<H", 4),
    "QB-4 PT=0": patched(CP, 18, "<H", 0),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_packet_closes_without_a_word(raw: bytes) -> None:  # QB-2, QB-3
    session = open_acceptor()
    assert only(Accept, feed(session, GOOD, 1.0))
    commands = feed(session, raw, 2.0)
    assert closed(commands) == "malformed"
    assert len(commands) == 1  # no reply, no ack, no message


def test_a_fault_takes_nothing_back() -> None:
    """What came before it in the same read is still handed over."""
    session = open_acceptor()
    bad = MALFORMED["QB-2 version"]
    commands = feed(session, express(1) + recoverable(2) + bad + express(3), 1.0)
    assert [type(c) for c in commands] == [Accept, Close]
    assert [m.ordinal for m in only(Accept, commands)[0].messages] == [1, 2]
    assert decide(session, accepted(1, 2), 2.0) == []  # too late to say anything


def test_garbage_in_reserved_and_padding_bytes_is_welcome() -> None:  # section 1, 7 (7)
    session = open_acceptor()
    raw = build(replace(message(1, body=b"odd"), fill=0xCD))
    assert only(Accept, feed(session, raw, 1.0))


# -- kinds of user messages -------------------------------------------------------------------


def test_what_the_core_is_given() -> None:
    session = open_acceptor()
    (accept,) = only(Accept, feed(session, transactional(1), 2.5))
    (got,) = accept.messages
    assert (got.source, got.ordinal, got.destination) == (REMOTE, 1, QUEUE_NAME)
    assert (got.body, got.peer) == (b"body", ADDRESS)
    assert got.arrived_ms == (EPOCH * 1000) + 2500
    assert got.transaction is not None
    assert (got.transaction.sequence_id, got.transaction.number) == (SEQUENCE, 1)


def test_one_hand_over_per_read() -> None:
    session = open_acceptor()
    raw = b"".join(express(n) for n in range(1, 6))
    assert [len(a.messages) for a in only(Accept, feed(session, raw, 1.0))] == [5]
    assert feed(session, express(6)[:50], 1.0) == []
    assert [a.batch for a in only(Accept, feed(session, express(6)[50:], 1.0))] == [2]


@pytest.mark.parametrize("message_class", [0x0001, 0x0002, 0x00FF, 0x4000, 0x8000, 0xE1FF, 0x1234])
def test_any_class_is_a_message(message_class: int) -> None:  # QB-5
    session = open_acceptor()
    raw = build(replace(message(1), message_class=message_class))
    (accept,) = only(Accept, feed(session, raw, 1.0))
    assert accept.messages[0].message_class == message_class


ORDER_ACK = replace(
    message(1, queue=private(4), manager=SERVER, body=struct.pack("<QII20x", SEQUENCE, 9, 8)),
    label="QM Ordering Ack",
    message_class=0x00FF,
    priority=0,
)


@pytest.mark.parametrize(
    "queue",
    [
        private(4),
        direct("TCP:192.0.2.1\\PRIVATE$\\order_queue$"),
        direct("OS:Here\\private$\\ORDER_QUEUE$"),
    ],
)
@pytest.mark.parametrize("dm", [False, True])
def test_order_acks_are_told_and_not_handed_on(queue: object, dm: bool) -> None:  # QB-4, CONFLICT-8
    session = open_acceptor()
    raw = build(replace(ORDER_ACK, destination=queue, recoverable=dm))  # type: ignore[arg-type]
    commands = feed(session, raw, 1.0)
    (told,) = only(OrderAcked, commands)
    assert (told.cursor.sequence_id, told.cursor.number) == (SEQUENCE, 9)
    assert not only(Accept, commands)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ORDER_ACK, label="QM Ordering Ack "),
        replace(ORDER_ACK, destination=private(5)),
        replace(ORDER_ACK, destination=direct("OS:a\\order_queue$")),
        replace(ORDER_ACK, message_class=0x0002),
    ],
)
def test_what_only_looks_like_an_order_ack_is_a_message(changed: object) -> None:  # QB-4
    commands = feed(open_acceptor(), build(changed), 1.0)  # type: ignore[arg-type]
    assert len(only(Accept, commands)) == 1
    assert not only(OrderAcked, commands)


@pytest.mark.parametrize("message_class", [0x4000, 0x8000, 0x8009, 0xC001, 0xC004])
def test_final_acks_are_told(message_class: int) -> None:  # QB-4, CONFLICT-18
    body = struct.pack("<QII", SEQUENCE, 9, 8) + SERVER.bytes_le + struct.pack("<I", 77)
    raw = build(replace(ORDER_ACK, message_class=message_class, recoverable=True, body=body))
    commands = feed(open_acceptor(), raw, 1.0)
    assert only(FinalAcked, commands) == [
        FinalAcked(user_message(raw).user.queue_manager, 77, message_class)
    ]
    assert not only(Accept, commands)


@pytest.mark.parametrize("message_class", [0x00FF, 0x4000])
def test_their_bodies_have_36_bytes(message_class: int) -> None:  # 2.17, 2.18; QB-3
    raw = build(replace(ORDER_ACK, message_class=message_class, body=bytes(35)))
    assert closed(feed(open_acceptor(), raw, 1.0)) == "malformed"


def test_they_are_counted_and_acknowledged_like_any_other() -> None:  # QB-6
    session = open_acceptor()
    final = replace(ORDER_ACK, message_class=0x4000, recoverable=True, body=bytes(36))
    assert sent(feed(session, build(ORDER_ACK) + build(final), 1.0)) == []
    assert tick(session, 1.5) == [
        Send(expected_session_ack(ack=2, recoverable_ack=1, flags=0b1)),
    ]


def test_an_ack_between_messages_waits_for_them() -> None:  # QB-6, QB-46
    session = open_acceptor()
    feed(session, recoverable(1), 0.0)
    feed(session, build(replace(ORDER_ACK, recoverable=True)), 0.1)  # needs no verdict
    assert tick(session, 0.5) == []
    assert decide(session, accepted(1), 0.6) == [
        Send(expected_session_ack(ack=2, recoverable_ack=1, flags=0b11)),
    ]


# -- when session acks leave ------------------------------------------------------------------


def test_an_express_message_is_acked_after_half_the_ack_timeout() -> None:  # QB-41
    session = open_acceptor(ack_ms=30_000)
    assert sent(receive(session, express(1), 1.0)) == []
    assert sent(receive(session, express(2), 5.0)) == []  # does not restart it
    assert session.next_wakeup() == 16.0
    assert tick(session, 15.9) == []
    assert tick(session, 16.0) == [Send(expected_session_ack(ack=2))]


def test_the_first_recoverable_message_shortens_the_wait() -> None:  # QB-42
    session = open_acceptor(recoverable_ack_ms=2000)
    receive(session, express(1), 1.0)
    receive(session, recoverable(2), 3.0)
    receive(session, recoverable(3), 4.0)  # not the first: the timer runs on
    assert session.next_wakeup() == 5.0
    assert tick(session, 5.0) == [
        Send(expected_session_ack(ack=3, recoverable_ack=1, flags=0b11)),
    ]
    receive(session, recoverable(4), 6.0)  # the first since that ack
    assert tick(session, 8.0) == [
        Send(expected_session_ack(ack=4, recoverable_ack=3, flags=0b1)),
    ]


def test_a_long_recoverable_timeout_is_obeyed_too() -> None:  # QB-42: cancel and restart
    session = open_acceptor(recoverable_ack_ms=60_000)
    receive(session, express(1), 0.0)
    receive(session, recoverable(2), 1.0)
    assert tick(session, 60.9) == []
    assert acks(tick(session, 61.0))


def test_transactional_messages_count_as_recoverable() -> None:  # QB-40, QB-89
    session = open_acceptor()
    feed(session, transactional(1) + express(9) + recoverable(8), 0.0)
    decide(session, Decided(1, [taken(1), *accepted(1, 2).verdicts]), 0.0)
    assert acks(tick(session, 0.5))[0] == SessionHeader(ack=3, recoverable_ack=1, flags=0b11)


def test_the_timer_stops_when_all_is_acked() -> None:  # QB-44, CONFLICT-12
    session = open_acceptor()
    receive(session, recoverable(1), 1.0)
    assert acks(tick(session, 1.5))
    assert session.next_wakeup() == 300.0  # only the cleanup timer is left
    assert tick(session, 100.0) == []


@pytest.mark.parametrize(
    ("theirs", "ours", "threshold"),
    [
        (64, 64, 32),
        (0xFFFF, 64, 32),
        (10, 64, 5),
        (11, 64, 5),
        (2, 64, 1),
        (1, 64, 1),
        (0, 64, 1),
        (64, 8, 4),
    ],
)
def test_half_a_window_is_acked_at_once(theirs: int, ours: int, threshold: int) -> None:  # QB-45
    session = open_acceptor(window=theirs, settings=SessionSettings(window=ours))
    for n in range(1, 3 * threshold + 1):
        got = acks(receive(session, express(n), 2.0 * n))  # not busy
        expected = [SessionHeader(ack=n, window=ours)] if n % threshold == 0 else []
        assert got == expected


def test_a_busy_sender_hears_of_every_commit() -> None:
    """Half a window within a second, this one or the one before; then it is one of many again."""
    session = open_acceptor()
    for n in range(1, 32):
        assert acks(receive(session, recoverable(n), n / 1000)) == []
    assert [header.ack for header in acks(receive(session, recoverable(32), 0.1))] == [32]
    assert [header.ack for header in acks(receive(session, recoverable(33), 0.2))] == [33]
    assert [header.ack for header in acks(receive(session, recoverable(34), 1.5))] == [34]
    assert acks(receive(session, recoverable(35), 2.6)) == []
    assert [header.ack for header in acks(tick(session, 3.1))] == [35]  # QB-42


def test_who_was_busy_before_a_pause_is_not_busy_after_it() -> None:
    session = open_acceptor()
    receive(session, b"".join(recoverable(n) for n in range(1, 41)), 0.1)
    assert acks(receive(session, recoverable(41), 9.0)) == []


def test_a_window_that_shrinks_is_acked_sooner() -> None:  # QB-45, QB-50
    session = open_acceptor()
    feed(session, peer_ack(window=4), 0.0)
    assert acks(receive(session, express(1), 0.0)) == []
    assert acks(receive(session, express(2), 0.0)) == [SessionHeader(ack=2)]


def test_a_large_batch_is_acked_as_if_it_had_come_one_by_one() -> None:  # QB-45
    session = open_acceptor()
    commands = receive(session, b"".join(express(n) for n in range(1, 101)), 0.0)
    assert [header.ack for header in acks(commands)] == [32, 64, 96]
    assert acks(tick(session, 10.0)) == [SessionHeader(ack=100)]


def test_full_flags_are_told_at_once() -> None:  # QB-42: 32 bits, before counting the next
    session = open_acceptor(window=1000, settings=SessionSettings(window=1000))
    raw = b"".join(recoverable(n) + express(n + 500) for n in range(1, 41))
    assert acks(receive(session, raw, 0.0)) == [
        SessionHeader(ack=64, recoverable_ack=1, flags=0xFFFFFFFF, window=1000)
    ]
    assert acks(tick(session, 0.5)) == [
        SessionHeader(ack=80, recoverable_ack=33, flags=0xFF, window=1000)
    ]


def test_exactly_32_recoverable_ones_wait_for_the_timer() -> None:  # QB-42
    session = open_acceptor(window=1000, settings=SessionSettings(window=1000))
    assert acks(receive(session, b"".join(map(recoverable, range(1, 33))), 0.0)) == []
    assert acks(receive(session, recoverable(33), 0.1)) == [
        SessionHeader(ack=32, recoverable_ack=1, flags=0xFFFFFFFF, window=1000)
    ]


@pytest.mark.parametrize(
    "verdict",
    [
        DUPLICATE,
        Verdict(Outcome.REJECTED, 0x8000, "unknown-queue"),
        Verdict(Outcome.EXPIRED, 0x8002, "expired"),
    ],
)
def test_whatever_becomes_of_it_it_is_acked(verdict: Verdict) -> None:  # QB-60, QB-71
    session = open_acceptor()
    feed(session, recoverable(1) + recoverable(1), 0.0)
    decide(session, Decided(1, [verdict, verdict]), 0.0)
    assert acks(tick(session, 0.5)) == [SessionHeader(ack=2, recoverable_ack=1, flags=0b11)]


# -- verdicts that are late or out of order ---------------------------------------------------


def test_storage_comes_before_the_ack() -> None:  # QB-46
    session = open_acceptor()
    feed(session, recoverable(1), 0.0)
    assert tick(session, 0.5) == []
    assert tick(session, 100.0) == []
    assert decide(session, accepted(1), 101.0) == [
        Send(expected_session_ack(ack=1, recoverable_ack=1, flags=0b1)),
    ]


def test_even_express_messages_wait_for_their_verdict() -> None:  # QB-46
    session = open_acceptor()
    feed(session, express(1), 0.0)
    assert tick(session, 10.0) == []
    assert acks(decide(session, accepted(1), 10.5)) == [SessionHeader(ack=1)]


def test_the_base_never_passes_an_undecided_message() -> None:  # QB-46
    session = open_acceptor()
    for n in range(1, 5):
        feed(session, recoverable(n), 0.0)
    assert decide(session, accepted(3), 0.1) == []
    assert decide(session, accepted(2), 0.2) == []
    assert tick(session, 0.5) == []
    # The timer has run out, so the first verdict lets all go that is decided behind it.
    assert acks(decide(session, accepted(1), 0.6)) == [
        SessionHeader(ack=3, recoverable_ack=1, flags=0b111)
    ]
    assert decide(session, accepted(4), 0.7) == []
    assert acks(tick(session, 1.1)) == [SessionHeader(ack=4, recoverable_ack=4, flags=0b1)]


def test_an_ack_by_window_stops_at_the_undecided_one() -> None:  # QB-45, QB-46
    session = open_acceptor(window=8)
    for n in range(1, 9):
        feed(session, express(n), 0.0)
    for batch in (1, 2, 3, 5, 6, 7, 8):
        assert acks(decide(session, accepted(batch), 0.1)) == []
    assert acks(decide(session, accepted(4), 0.2)) == [
        SessionHeader(ack=4),
        SessionHeader(ack=8),
    ]


def test_what_is_left_undecided_gets_a_timer_of_its_own() -> None:  # QB-41, QB-42
    session = open_acceptor()
    feed(session, recoverable(1), 0.0)
    feed(session, recoverable(2), 0.1)
    decide(session, accepted(1), 0.2)
    assert acks(tick(session, 0.5)) == [SessionHeader(ack=1, recoverable_ack=1, flags=0b1)]
    assert tick(session, 1.0) == []
    assert acks(decide(session, accepted(2), 1.2)) == [
        SessionHeader(ack=2, recoverable_ack=2, flags=0b1)
    ]


def test_a_verdict_for_an_unknown_batch_is_ignored() -> None:
    session = open_acceptor()
    feed(session, recoverable(1), 0.0)
    assert decide(session, accepted(7), 0.1) == []
    assert tick(session, 0.5) == []


def test_a_message_after_the_timer_ran_out_changes_nothing() -> None:  # QB-46
    session = open_acceptor()
    feed(session, recoverable(1), 0.0)
    tick(session, 0.5)
    feed(session, express(2), 1.0)
    assert acks(decide(session, accepted(1), 1.1)) == [
        SessionHeader(ack=1, recoverable_ack=1, flags=0b1)
    ]
    decide(session, accepted(2), 1.2)
    assert acks(tick(session, 11.1)) == [SessionHeader(ack=2)]


# -- counts of the peer -----------------------------------------------------------------------


def test_an_honest_session_ack() -> None:  # QB-49
    session = open_acceptor()
    feed(session, express(1) + recoverable(2), 0.0)
    assert feed(session, peer_ack(sent=2, sent_recoverable=1), 1.0) == []


@pytest.mark.parametrize(("total", "stored"), [(1, 1), (3, 1), (2, 0), (2, 2)])
def test_a_count_that_is_not_ours_closes(total: int, stored: int) -> None:  # QB-49
    session = open_acceptor()
    feed(session, express(1) + recoverable(2), 0.0)
    commands = feed(session, peer_ack(sent=total, sent_recoverable=stored), 1.0)
    assert closed(commands) == "count-mismatch"


def test_a_carrier_counts_itself() -> None:  # QB-47, QB-49
    session = open_acceptor()
    commands = feed(session, express(1, SessionHeader(sent=1)), 0.0)
    assert [type(c) for c in commands] == [Accept]
    commands = feed(session, recoverable(2, SessionHeader(sent=2, sent_recoverable=1)), 0.0)
    assert [type(c) for c in commands] == [Accept]


def test_the_carrier_of_a_wrong_count_is_still_delivered() -> None:  # QB-49
    session = open_acceptor()
    commands = feed(session, express(1) + express(2, SessionHeader(sent=1)) + express(3), 0.0)
    assert [type(c) for c in commands] == [Accept, Close]
    assert [m.ordinal for m in only(Accept, commands)[0].messages] == [1, 2]
    assert closed(commands) == "count-mismatch"


def test_a_counted_piggyback_is_understood_too() -> None:  # CONFLICT-1
    session = open_acceptor()
    raw = build(message(1), SessionHeader(sent=1), counted=True) + express(2)
    (accept,) = only(Accept, feed(session, raw, 0.0))
    assert [m.ordinal for m in accept.messages] == [1, 2]


@pytest.mark.parametrize(
    "header", [{"ack": 1}, {"ack": 0xFFFF}, {"recoverable_ack": 1, "flags": 1}]
)
def test_an_ack_of_what_we_never_sent_closes(header: dict[str, int]) -> None:  # QB-48
    assert closed(feed(open_acceptor(), peer_ack(**header), 1.0)) == "bad-ack"


# -- congestion -------------------------------------------------------------------------------


def test_while_jammed_acks_say_one() -> None:  # QB-51
    session = open_acceptor()
    assert session.handle(Congested(True), at(0.0)) == []
    receive(session, recoverable(1), 0.1)
    assert tick(session, 0.6) == [
        Send(expected_session_ack(ack=1, recoverable_ack=1, flags=1, window=1)),
    ]
    # A peer with a window of one waits for an ack after each message.
    assert acks(receive(session, express(2), 1.0)) == [SessionHeader(ack=2, window=1)]
    assert acks(receive(session, express(3), 1.1)) == [SessionHeader(ack=3, window=1)]


def test_the_window_is_restored_at_once() -> None:  # QB-51
    session = open_acceptor()
    session.handle(Congested(True), at(0.0))
    receive(session, express(1), 0.1)
    assert acks(tick(session, 10.1)) == [SessionHeader(ack=1, window=1)]
    assert session.handle(Congested(False), at(20.0)) == [Send(expected_session_ack(ack=1))]
    assert session.handle(Congested(False), at(21.0)) == []
    assert acks(receive(session, express(2), 22.0)) == []  # half a window again


def test_a_jam_that_nobody_heard_of_needs_no_end() -> None:
    session = open_acceptor()
    session.handle(Congested(True), at(0.0))
    assert session.handle(Congested(False), at(1.0)) == []
    receive(session, express(1), 2.0)
    assert acks(tick(session, 12.0)) == [SessionHeader(ack=1)]


def test_restoring_tells_nothing_that_is_undecided() -> None:  # QB-46, QB-51
    session = open_acceptor()
    session.handle(Congested(True), at(0.0))
    feed(session, recoverable(1), 0.1)
    feed(session, recoverable(2), 0.1)
    decide(session, accepted(1), 0.2)
    assert acks(tick(session, 0.6))[0].window == 1
    assert session.handle(Congested(False), at(5.0)) == [Send(expected_session_ack(ack=1))]


def test_a_jam_before_open_is_no_secret() -> None:
    session = acceptor()
    session.handle(Congested(True), at(0.0))
    session.handle(Congested(False), at(0.5))
    session.handle(Congested(True), at(1.0))
    feed(session, EC + CP, 1.0)
    receive(session, recoverable(1), 2.0)
    assert acks(tick(session, 2.5))[0].window == 1


# -- idle and closed --------------------------------------------------------------------------


def test_an_idle_session_is_closed() -> None:  # QB-151
    session = open_acceptor()
    assert session.next_wakeup() == 300.0
    assert tick(session, 300.0) == [Close("idle")]


def test_messages_keep_it_alive_and_session_acks_do_not() -> None:  # QB-151
    session = open_acceptor()
    receive(session, express(1), 100.0)
    assert acks(tick(session, 110.0))
    assert tick(session, 300.0) == []
    assert session.next_wakeup() == 600.0
    feed(session, peer_ack(sent=1), 450.0)
    assert tick(session, 600.0) == [Close("idle")]


def test_the_peer_hangs_up() -> None:  # QB-150
    session = open_acceptor()
    assert session.handle(PeerClosed(), at(1.0)) == [Close("peer-closed")]
    assert session.state is SessionState.CLOSED


def test_the_owner_hangs_up() -> None:  # QB-150: no packet
    session = open_acceptor()
    feed(session, express(1), 0.0)
    assert session.close("shutdown") == [Close("shutdown")]
    assert session.close("shutdown") == []


def test_events_after_the_close_do_nothing() -> None:  # QB-150
    session = open_acceptor()
    feed(session, transactional(1) + express(2), 0.0)
    session.close("shutdown")
    assert session.next_wakeup() is None
    assert session.room == 0
    for event in (
        BytesReceived(express(3)),
        Decided(1, [taken(1), *accepted(1, 1).verdicts]),
        Congested(True),
        Congested(False),
        Tick(),
        PeerClosed(),
    ):
        assert session.handle(event, at(1000.0)) == []
    assert session.deliver([(user_message(express(4)), 4)], at(1001.0)) == []


def test_a_close_between_hand_over_and_verdict_acks_nothing() -> None:  # QB-150, DM-37
    session = open_acceptor()
    feed(session, transactional(1), 0.0)
    assert session.handle(PeerClosed(), at(0.1)) == [Close("peer-closed")]
    assert decide(session, Decided(1, [taken(1)]), 0.2) == []
    assert tick(session, 5.0) == []


def test_sessions_do_not_share_their_numbers() -> None:  # QB-40
    first, second = open_acceptor(), open_acceptor()
    receive(first, recoverable(1) + recoverable(2), 0.0)
    receive(second, recoverable(3), 0.0)
    assert acks(tick(first, 0.5))[0].ack == 2
    assert acks(tick(second, 0.5))[0].ack == 1


# -- all told, then the end -------------------------------------------------------------------


def test_who_finishes_tells_what_is_decided() -> None:  # QB-41, QB-85: before their timers
    session = open_acceptor()
    commands = feed(session, transactional(1) + transactional(2), 0.1)
    (accept,) = only(Accept, commands)
    assert acks(decide(session, Decided(accept.batch, [taken(1), taken(2)]), 0.2)) == []
    feed(session, recoverable(3), 0.25)  # not decided: not told
    commands = session.finish("shutdown", at(0.3))
    assert [ack.ack for ack in acks(commands)] == [2]
    assert [m.is_order_ack for m in user_messages(commands)] == [True]
    assert closed(commands) == "shutdown"
    assert session.finish("shutdown", at(0.4)) == []


def test_who_finishes_without_anything_to_tell() -> None:
    assert open_acceptor().finish("shutdown", at(1)) == [Close("shutdown")]
    assert acceptor().finish("shutdown", at(1)) == [Close("shutdown")]
