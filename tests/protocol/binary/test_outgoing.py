"""Messages for one peer: what is sent when, with which numbers, and when it is done."""

from __future__ import annotations

import struct
from itertools import count, pairwise

import pytest
from msgspec import structs

from bridge.model.message import (
    EXPRESS,
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    RECOVERABLE,
    Message,
    Transaction,
)
from bridge.protocol.binary.outgoing import RESEND_S, Outgoing
from bridge.protocol.binary.session import SessionSettings
from bridge.protocol.commands import Close, Command, FinalAcked, Opened, Send
from bridge.protocol.events import BytesReceived, PeerClosed, Tick
from bridge.wire.binary.packet import PacketReader, UserMessage
from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.outside.rawmsmq import ORDER_LABEL, SessionHeader, build, direct, session_ack
from tests.outside.rawmsmq import Message as RawMessage
from tests.protocol.binary.peer import (
    ADDRESS,
    CLIENT,
    DEFAULTS,
    LOCAL,
    QUEUE_NAME,
    REMOTE,
    SEQUENCE,
    SERVER,
    at,
    message,
    only,
)


def express(ordinal: int) -> Message:
    return Message(source=LOCAL, ordinal=ordinal, destination=QUEUE_NAME, delivery=EXPRESS)


def recoverable(ordinal: int) -> Message:
    return Message(source=LOCAL, ordinal=ordinal, destination=QUEUE_NAME, delivery=RECOVERABLE)


def step(ordinal: int) -> Message:
    return Message(
        source=LOCAL,
        ordinal=ordinal,
        destination=QUEUE_NAME,
        delivery=RECOVERABLE,
        priority=0,
        transaction=Transaction(sequence_id=0, number=0, first=True, last=True),
    )


def steps(last: int) -> list[Message]:
    return [step(ordinal) for ordinal in range(1, last + 1)]


def outgoing(*messages: Message, settings: SessionSettings = DEFAULTS) -> Outgoing:
    made = Outgoing(
        local=LOCAL,
        sequence_timestamp=SEQUENCE >> 32,
        ordinals=count(1000).__next__,
        settings=settings,
    )
    made.add(list(messages))
    return made


class Peer:
    """The other end of one session, played by hand. It counts as the specification says."""

    def __init__(self, sender: Outgoing, seconds: float, *, window: int = 64) -> None:
        self.sender = sender
        self.sent = 0  # by us to it
        self.commands: list[Command] = []
        (hello,) = sender.connected(ADDRESS, at(seconds))
        assert isinstance(hello, Send)
        stamp = struct.unpack_from("<I", hello.data, 52)[0]
        self.feed(expected_ec_response(client=SERVER, server=CLIENT, timestamp=stamp), seconds)
        self.commands.clear()
        self.first = self.feed(expected_cp_response(window=window), seconds)

    def feed(self, data: bytes, seconds: float) -> list[UserMessage]:
        return self.watch(self.sender.handle(BytesReceived(data), at(seconds)))

    def tick(self, seconds: float) -> list[UserMessage]:
        return self.watch(self.sender.handle(Tick(), at(seconds)))

    def watch(self, commands: list[Command]) -> list[UserMessage]:
        """The user messages among what was sent."""
        self.commands += commands
        packets = [p for c in only(Send, commands) for p in PacketReader().feed(c.data)]
        return [packet for packet in packets if isinstance(packet, UserMessage)]

    def ack(self, ack: int, seconds: float, *, stored: int = 0, window: int = 64) -> list[str]:
        """A session ack; `stored`: that many recoverable messages from the first on."""
        base = {"recoverable_ack": stored, "flags": 1} if stored else {}
        header = SessionHeader(ack=ack, sent=self.sent, window=window, **base)
        return shown(self.feed(session_ack(header), seconds))

    def order_ack(self, number: int, seconds: float, sequence: int = SEQUENCE) -> list[str]:
        self.sent += 1
        body = struct.pack("<QII20x", sequence, number, number - 1)
        return shown(self.feed(order_queue_packet(0x00FF, body), seconds))

    def keep_alive(self, seconds: float) -> None:
        """Any packet will do. QB-1"""
        self.sent += 1
        self.feed(build(message(self.sent + 5000)), seconds)


def order_queue_packet(message_class: int, body: bytes, *, recoverable: bool = False) -> bytes:
    return build(
        RawMessage(
            recoverable=recoverable,
            source=CLIENT,
            message_id=1,
            destination=direct("TCP:192.0.2.1\\PRIVATE$\\order_queue$"),
            label=ORDER_LABEL,
            priority=0,
            message_class=message_class,
            body=body,
        )
    )


def shown(packets: list[UserMessage]) -> list[str]:
    """`2<1` is number 2 with PreviousTxSequenceNumber 1, `#7` a message without a transaction.

    `+1:2<1` is in the sequence after the first (QB-96: its ordinal is 1, its time stamp ours).
    """
    names = []
    for packet in packets:
        header = packet.transaction
        if header is None:
            names.append(f"#{packet.user.message_id}")
        else:
            later = header.sequence_id - SEQUENCE
            prefix = f"+{later}:" if later else ""
            names.append(f"{prefix}{header.number}<{header.previous_number}")
    return names


# -- one session ------------------------------------------------------------------------------


def test_nothing_happens_without_a_session() -> None:
    sender = outgoing(step(1))
    assert sender.handle(Tick(), at(0)) == []
    assert sender.pump(at(0)) == []
    assert sender.next_wakeup() is None
    assert (sender.waiting, sender.done) == (1, 0)


def test_all_that_waits_leaves_when_the_session_opens() -> None:  # QB-26
    sender = outgoing(express(1), recoverable(2), step(3))
    peer = Peer(sender, 0.0)
    assert only(Opened, peer.commands) == [Opened(REMOTE)]
    assert shown(peer.first) == ["#1", "#2", "1<0"]
    assert [p.user.delivery for p in peer.first] == [EXPRESS, RECOVERABLE, RECOVERABLE]


def test_numbers_of_the_first_send() -> None:  # QB-95: n and n - 1, whatever is between them
    peer = Peer(outgoing(step(1), express(2), step(3), recoverable(4), step(5)), 0.0)
    assert shown(peer.first) == ["1<0", "#2", "2<1", "#4", "3<2"]


def test_the_first_send_says_n_minus_1_even_when_that_one_is_done() -> None:  # QB-95
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=2)
    peer.order_ack(1, 1.0)
    sender.add([step(3)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["3<2"]
    peer.order_ack(2, 2.0)
    assert sender.waiting == 1
    sender.add([step(4)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["4<3"]


# -- a new sequence ---------------------------------------------------------------------------


def test_a_new_sequence_begins_when_all_are_order_acked() -> None:  # QB-96
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=2)
    peer.order_ack(2, 1.0)
    sender.add([step(3), express(4), step(5)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["+1:1<0", "#4", "+1:2<1"]
    peer.ack(5, 3.0, stored=4)
    peer.order_ack(2, 3.0)  # of the first sequence: says nothing of this one
    assert sender.waiting == 2
    peer.order_ack(2, 3.0, SEQUENCE + 1)
    assert (sender.waiting, sender.done) == (0, 5)
    sender.add([step(6)])
    assert shown(peer.watch(sender.pump(at(4.0)))) == ["+2:1<0"]


def test_no_new_sequence_for_plain_messages() -> None:  # QB-96
    sender = outgoing(step(1))
    peer = Peer(sender, 0.0)
    peer.ack(1, 1.0, stored=1)
    peer.order_ack(1, 1.0)
    sender.add([recoverable(2), express(3)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["#2", "#3"]
    sender.add([step(4)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["+1:1<0"]


def test_a_message_keeps_the_sequence_it_was_first_sent_in() -> None:  # QB-53, QB-96
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    peer.order_ack(2, 1.0)  # in order, but not stored
    sender.add([step(3)])
    assert shown(peer.watch(sender.pump(at(2.0)))) == ["+1:1<0"]
    again = Peer(sender, 3.0)
    assert shown(again.first) == ["1<0", "2<1", "+1:1<0"]
    again.ack(3, 4.0, stored=3)
    assert sender.waiting == 1
    again.order_ack(1, 4.0, SEQUENCE + 1)
    assert (sender.waiting, sender.done) == (0, 3)


def test_where_the_sequences_begin() -> None:  # QB-96: a sender that keeps nothing on disk
    sender = Outgoing(
        local=LOCAL,
        sequence_timestamp=SEQUENCE >> 32,
        sequence_ordinal=7,
        ordinals=count(1000).__next__,
    )
    sender.add([step(1)])
    assert shown(Peer(sender, 0.0).first) == ["+6:1<0"]


# -- final acks -------------------------------------------------------------------------------


def asking(ordinal: int, *, journal: int = 0) -> Message:
    """One that asks for a final ack: by the FA bit, or by the journal of its source."""
    tx = Transaction(sequence_id=0, number=0, first=True, last=True, final_ack=not journal)
    return structs.replace(step(ordinal), transaction=tx, journal=journal)


def final_ack(peer: Peer, ordinal: int, seconds: float, message_class: int = 0x4000) -> None:
    peer.sent += 1
    body = struct.pack("<QII", SEQUENCE, ordinal, 0) + SERVER.bytes_le + struct.pack("<I", ordinal)
    peer.feed(order_queue_packet(message_class, body), seconds)


@pytest.mark.parametrize("journal", [0, JOURNAL_NEGATIVE, JOURNAL_POSITIVE])
@pytest.mark.parametrize("message_class", [0x4000, 0x8000, 0xC002])
@pytest.mark.parametrize("final_first", [False, True])
def test_one_that_asks_is_done_with_its_final_ack(
    journal: int, message_class: int, final_first: bool
) -> None:  # QB-91, QB-98, QB-99
    sender = outgoing(asking(1, journal=journal))
    peer = Peer(sender, 0.0)
    if final_first:
        final_ack(peer, 1, 1.0, message_class)
    peer.ack(1, 1.0, stored=1)
    peer.order_ack(1, 1.0)
    if not final_first:
        assert (sender.waiting, sender.done) == (1, 0)
        final_ack(peer, 1, 2.0, message_class)
    assert (sender.waiting, sender.done) == (0, 1)
    assert sender.told == [FinalAcked(LOCAL, 1, message_class)]


def test_a_final_ack_alone_is_not_enough() -> None:  # QB-98
    sender = outgoing(asking(1), asking(2))
    peer = Peer(sender, 0.0)
    final_ack(peer, 1, 1.0)
    final_ack(peer, 2, 1.0)
    peer.order_ack(2, 1.0)
    assert sender.done == 0
    peer.ack(1, 1.0, stored=1)
    assert (sender.waiting, sender.done) == (1, 1)


def test_final_acks_of_others_change_nothing() -> None:  # QB-99: matched by the message id
    sender = outgoing(asking(1), step(2))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=2)
    peer.order_ack(2, 1.0)
    final_ack(peer, 2, 1.0)
    final_ack(peer, 3, 1.0)
    assert (sender.waiting, sender.done) == (1, 1)
    final_ack(peer, 1, 1.0)
    final_ack(peer, 1, 1.0)  # again: it was not acknowledged in time
    assert (sender.waiting, sender.done) == (0, 2)


def test_who_waits_for_a_final_ack_is_not_sent_again() -> None:  # QB-53, QB-97, QB-98
    sender = outgoing(asking(1), asking(2), step(3))
    peer = Peer(sender, 0.0)
    peer.ack(3, 1.0, stored=3)
    peer.order_ack(2, 1.0)
    assert (sender.waiting, sender.done) == (3, 0)
    assert shown(peer.tick(31.0)) == ["3<0"]
    again = Peer(sender, 40.0)
    assert shown(again.first) == ["3<0"]
    final_ack(again, 1, 41.0)
    final_ack(again, 2, 41.0, 0x8003)
    again.order_ack(3, 41.0)
    again.ack(1, 41.0, stored=1)
    assert (sender.waiting, sender.done) == (0, 3)


def test_an_answer_is_acknowledged_before_it_is_over() -> None:  # QB-6: else it comes again
    sender = outgoing(asking(1))
    peer = Peer(sender, 0.0)
    peer.ack(1, 1.0, stored=1)
    peer.order_ack(1, 1.0)
    peer.sent += 1
    body = struct.pack("<QII", SEQUENCE, 1, 0) + SERVER.bytes_le + struct.pack("<I", 1)
    peer.feed(order_queue_packet(0x4000, body, recoverable=True), 2.0)
    assert (sender.waiting, sender.done) == (1, 1)
    assert not sender.all_handed_over  # who has said his last word cannot acknowledge
    peer.commands.clear()
    peer.tick(2.5)
    (ack,) = only(Send, peer.commands)
    expected = SessionHeader(ack=2, recoverable_ack=1, flags=1, sent=1, sent_recoverable=1)
    assert ack.data == session_ack(expected)
    assert sender.waiting == 0


def test_a_lost_session_owes_nothing() -> None:  # QB-53: the answer comes again on the next one
    sender = outgoing(recoverable(1))
    peer = Peer(sender, 0.0)
    peer.ack(1, 1.0, stored=1)
    peer.sent += 1
    peer.feed(order_queue_packet(0x8000, bytes(36), recoverable=True), 1.0)
    assert sender.waiting == 1
    sender.handle(PeerClosed(), at(1.1))
    assert sender.waiting == 0


def test_how_many_were_acknowledged() -> None:
    sender = outgoing(express(1), *(step(n) for n in range(2, 6)))
    peer = Peer(sender, 0.0)
    peer.ack(3, 1.0, stored=2)
    peer.order_ack(1, 1.0)
    peer.order_ack(3, 1.0)
    assert (sender.session_acked, sender.order_acked) == (3, 3)
    again = Peer(sender, 2.0)  # what a lost session acked, and no order ack followed, is sent anew
    assert shown(again.first) == ["3<0", "4<3"]
    assert (sender.session_acked, sender.order_acked) == (3, 3)
    again.ack(2, 3.0, stored=2)
    assert (sender.session_acked, sender.order_acked) == (5, 3)


def test_an_express_message_is_done_with_its_session_ack() -> None:  # QB-48
    sender = outgoing(express(1), express(2))
    peer = Peer(sender, 0.0)
    peer.ack(1, 1.0)
    assert (sender.waiting, sender.done) == (1, 1)
    peer.ack(2, 1.0)
    assert (sender.waiting, sender.done) == (0, 2)


def test_a_recoverable_message_is_done_when_it_is_stored() -> None:  # QB-48
    sender = outgoing(recoverable(1))
    peer = Peer(sender, 0.0)
    peer.ack(1, 1.0)
    assert sender.done == 0
    peer.ack(1, 1.0, stored=1)
    assert (sender.waiting, sender.done) == (0, 1)


@pytest.mark.parametrize("order_first", [False, True])
def test_a_transactional_message_needs_both_acks(order_first: bool) -> None:  # QB-48, QB-98
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    if order_first:
        peer.order_ack(2, 1.0)
        assert sender.done == 0
        peer.ack(2, 2.0, stored=2)
    else:
        peer.ack(2, 1.0, stored=2)
        assert sender.done == 0
        peer.order_ack(2, 2.0)
    assert (sender.waiting, sender.done) == (0, 2)


def test_an_order_ack_covers_all_before_it_and_nothing_else() -> None:  # QB-98
    sender = outgoing(step(1), express(2), step(3), step(4))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=3)
    assert sender.done == 1  # the express one
    peer.order_ack(2, 1.0)
    assert (sender.waiting, sender.done) == (1, 3)


@pytest.mark.parametrize("sequence", [SEQUENCE - 1, SEQUENCE + 1, SEQUENCE + (1 << 32), 0])
def test_an_order_ack_of_another_sequence_is_ignored(sequence: int) -> None:  # QB-98
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=2)
    peer.order_ack(2, 1.0, sequence)
    assert (sender.waiting, sender.done) == (2, 0)
    assert shown(peer.tick(30.0)) == ["1<0", "2<1"]


def test_what_the_peer_says_is_kept_and_acknowledged() -> None:  # QB-6: they are user messages
    sender = outgoing(step(7))
    peer = Peer(sender, 0.0)
    body = struct.pack("<QII", SEQUENCE, 1, 0) + SERVER.bytes_le + struct.pack("<I", 7)
    peer.feed(order_queue_packet(0x8000, body), 0.0)
    peer.feed(build(message(9, body=b"a report")), 0.0)
    final, report = sender.told
    assert final == FinalAcked(LOCAL, 7, 0x8000)
    assert isinstance(report, Message)
    assert report.body == b"a report"
    peer.commands.clear()
    peer.tick(10.0)
    (ack,) = only(Send, peer.commands)
    assert ack.data == session_ack(SessionHeader(ack=2, sent=1, sent_recoverable=1))


# -- the window -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "theirs", "window"), [(64, 4, 4), (4, 64, 4), (1, 1, 1), (64, 0, 1)]
)
def test_the_window_is_respected(own: int, theirs: int, window: int) -> None:  # QB-50, CONFLICT-10
    sender = outgoing(*map(express, range(1, 101)), settings=SessionSettings(window=own))
    peer = Peer(sender, 0.0, window=theirs)
    under_way = len(peer.first)
    assert under_way == window
    total = under_way
    while sender.waiting:
        assert total - sender.done <= window
        total += len(peer.ack(total, 1.0, window=theirs or 1))
    assert total == 100


def test_a_peer_that_shrinks_its_window_is_heard() -> None:  # QB-51
    sender = outgoing(*map(express, range(1, 101)))
    peer = Peer(sender, 0.0)
    assert len(peer.first) == 64
    assert peer.ack(63, 1.0, window=1) == []
    assert peer.ack(64, 1.0, window=1) == ["#65"]
    assert len(peer.ack(65, 1.0, window=8)) == 8


# -- several sessions -------------------------------------------------------------------------


def test_the_next_session_sends_what_is_left_in_the_old_order() -> None:  # QB-53
    sender = outgoing(step(1), express(2), recoverable(3), step(4), express(5), recoverable(6))
    peer = Peer(sender, 0.0)
    assert shown(peer.first) == ["1<0", "#2", "#3", "2<1", "#5", "#6"]
    peer.ack(2, 1.0, stored=2)  # 2 and 3 are done; 1 still needs its order ack
    assert sender.done == 2
    (close,) = sender.handle(PeerClosed(), at(2.0))
    assert close == Close("peer-closed")
    again = Peer(sender, 7.0)
    assert shown(again.first) == ["1<0", "2<1", "#5", "#6"]
    again.ack(4, 8.0, stored=3)  # fresh session numbers: 4 messages, 3 of them recoverable
    again.order_ack(2, 8.0)
    assert (sender.waiting, sender.done) == (0, 6)


def test_previous_at_a_resend_is_the_one_still_in_the_table() -> None:  # QB-95
    sender = outgoing(*steps(5))
    peer = Peer(sender, 0.0)
    peer.ack(5, 1.0, stored=5)
    peer.order_ack(2, 1.0)
    assert sender.done == 2
    assert shown(Peer(sender, 2.0).first) == ["3<0", "4<3", "5<4"]


def test_an_order_ack_alone_leaves_it_in_the_table() -> None:  # QB-95, QB-98
    sender = outgoing(*steps(4))
    peer = Peer(sender, 0.0)
    peer.order_ack(3, 1.0)
    peer.ack(2, 1.0, stored=1)  # the first is done; 2 and 3 are in order but not stored
    assert sender.done == 1
    again = Peer(sender, 2.0)
    assert shown(again.first) == ["2<0", "3<2", "4<3"]
    again.ack(3, 3.0, stored=2)
    assert sender.done == 3


def test_a_session_ack_of_a_lost_session_counts_for_nothing() -> None:  # QB-53
    sender = outgoing(*steps(2))
    Peer(sender, 0.0).ack(2, 1.0, stored=2)
    again = Peer(sender, 2.0)
    assert shown(again.first) == ["1<0", "2<1"]
    again.order_ack(2, 3.0)
    assert sender.done == 0
    again.ack(2, 3.0, stored=2)
    assert sender.done == 2


def test_one_that_was_never_sent_keeps_n_minus_1() -> None:  # QB-95
    sender = outgoing(*steps(4))
    peer = Peer(sender, 0.0, window=2)
    assert shown(peer.first) == ["1<0", "2<1"]
    again = Peer(sender, 1.0, window=3)
    assert shown(again.first) == ["1<0", "2<1", "3<2"]
    again.order_ack(3, 2.0)
    assert again.ack(3, 2.0, stored=3) == ["4<3"]


def test_many_sessions() -> None:  # QB-53
    sender = outgoing(*steps(10))
    for lost in range(10):
        peer = Peer(sender, float(lost))
        live = range(lost + 1, 11)
        previous = [0, *live]
        assert shown(peer.first) == [f"{n}<{p}" for n, p in zip(live, previous, strict=False)]
        peer.order_ack(lost + 1, float(lost))
        peer.ack(1, float(lost), stored=1)
    assert (sender.waiting, sender.done) == (0, 10)


def test_a_refused_handshake_sends_nothing() -> None:  # QB-24
    sender = outgoing(step(1))
    sender.connected(ADDRESS, at(0))
    reply = expected_ec_response(client=SERVER, server=CLIENT, timestamp=0, refused=True)
    (close,) = sender.handle(BytesReceived(reply), at(0))
    assert isinstance(close, Close)
    assert close.reason == "refused"
    assert sender.waiting == 1
    assert shown(Peer(sender, 5.0).first) == ["1<0"]


# -- express messages are handed over ---------------------------------------------------------


def test_express_messages_are_handed_over_once_all_are_sent() -> None:
    sender = outgoing(*map(express, range(1, 4)))
    assert not sender.all_handed_over
    peer = Peer(sender, 0.0, window=2)
    assert not sender.all_handed_over
    peer.ack(1, 1.0, window=2)
    assert sender.all_handed_over
    sender.forget_express()
    assert (sender.waiting, sender.done) == (0, 3)


def test_others_are_not() -> None:
    sender = outgoing(express(1), recoverable(2), step(3))
    peer = Peer(sender, 0.0)
    assert not sender.all_handed_over
    sender.forget_express()
    assert (sender.waiting, sender.done) == (2, 1)
    peer.ack(2, 1.0, stored=2)
    assert not sender.all_handed_over
    peer.order_ack(1, 1.0)
    assert (sender.waiting, sender.done) == (0, 3)


def test_an_express_message_that_waits_is_not_forgotten() -> None:
    sender = outgoing(express(1), express(2))
    Peer(sender, 0.0, window=1)
    sender.forget_express()
    assert (sender.waiting, sender.done) == (1, 1)
    assert shown(Peer(sender, 1.0).first) == ["#2"]


# -- the resend timer -------------------------------------------------------------------------


def resends(sender: Outgoing, peer: Peer, seconds: float, until: float) -> list[float]:
    """When all that has no order ack was sent again."""
    times = []
    while seconds < until:
        wakeup = sender.next_wakeup()
        assert wakeup is not None
        seconds = max(seconds, wakeup)
        peer.keep_alive(seconds)
        again = peer.tick(seconds)
        if again:
            times.append(seconds)
            peer.ack(peer_count(sender), seconds, stored=peer_count(sender))
    return times


def peer_count(sender: Outgoing) -> int:
    assert sender._session is not None
    return sender._session.sent.sent


def test_the_intervals_of_the_specification() -> None:  # QB-97
    assert RESEND_S == (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600)
    sender = outgoing(*steps(3))
    peer = Peer(sender, 0.0)
    peer.ack(3, 0.0, stored=3)
    times = [0.0, *resends(sender, peer, 0.0, 71_190.0)]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600, 21600, 21600]


def test_all_without_an_order_ack_go_again_in_order() -> None:  # QB-97, on the same session
    sender = outgoing(*steps(4), express(5), recoverable(6))
    peer = Peer(sender, 0.0)
    peer.ack(6, 1.0, stored=5)
    peer.order_ack(2, 1.0)
    assert peer.tick(30.9) == []
    assert shown(peer.tick(31.0)) == ["3<0", "4<3"]
    assert not only(Close, peer.commands)
    peer.ack(8, 32.0, stored=7)
    peer.order_ack(4, 32.0)
    assert (sender.waiting, sender.done) == (0, 6)


def test_progress_resets_the_interval() -> None:  # QB-97, CONFLICT-11
    sender = outgoing(*steps(3))
    peer = Peer(sender, 0.0)
    peer.ack(3, 0.0, stored=3)
    assert resends(sender, peer, 0.0, 390.0) == [30, 60, 90, 390]
    peer.order_ack(1, 400.0)
    assert resends(sender, peer, 400.0, 1090.0) == [430, 460, 490, 790, 1090]


def test_an_order_ack_that_says_nothing_new_does_not() -> None:  # QB-97, CONFLICT-11
    sender = outgoing(*steps(3))
    peer = Peer(sender, 0.0)
    peer.ack(3, 0.0, stored=3)
    peer.order_ack(1, 0.0)
    assert resends(sender, peer, 0.0, 90.0) == [30, 60, 90]
    peer.order_ack(1, 91.0)
    assert resends(sender, peer, 91.0, 390.0) == [390]


def test_nothing_to_resend_when_all_is_acknowledged() -> None:  # QB-98
    sender = outgoing(*steps(2))
    peer = Peer(sender, 0.0)
    peer.ack(2, 1.0, stored=2)
    peer.order_ack(2, 1.0)
    peer.keep_alive(30.0)
    assert peer.tick(40.0) == []


def test_plain_messages_neither_need_the_timer_nor_tire_it() -> None:  # QB-95, QB-97
    sender = outgoing()
    peer = Peer(sender, 0.0)
    for number in range(1, 5):
        sender.add([recoverable(number)])
        assert shown(peer.watch(sender.pump(at(35.0 * number)))) == [f"#{number}"]
        peer.keep_alive(35.0 * number + 34)
        assert peer.tick(35.0 * number + 34) == []
    sender.add([step(5)])
    assert shown(peer.watch(sender.pump(at(180.0)))) == ["1<0"]
    peer.keep_alive(209.0)
    assert shown(peer.tick(210.0)) == ["1<0"]


def test_a_new_session_begins_a_new_wait() -> None:  # QB-95: the timer starts with the send
    sender = outgoing(*steps(2))
    Peer(sender, 0.0)
    peer = Peer(sender, 29.0)
    assert shown(peer.first) == ["1<0", "2<1"]
    assert peer.tick(30.0) == []
    assert shown(peer.tick(59.0)) == ["1<0", "2<1"]


def test_the_timer_does_not_run_out_during_a_handshake() -> None:  # QB-97
    sender = outgoing(*steps(2))
    Peer(sender, 0.0)
    sender.connected(ADDRESS, at(29.0))
    assert sender.next_wakeup() == 89.0  # of the handshake
    assert sender.handle(Tick(), at(35.0)) == []
    peer = Peer(sender, 36.0)
    assert shown(peer.first) == ["1<0", "2<1"]


def test_what_waits_for_the_window_is_not_sent_twice() -> None:  # QB-53, QB-97
    sender = outgoing(*steps(6))
    Peer(sender, 0.0)
    peer = Peer(sender, 1.0, window=2)
    assert shown(peer.first) == ["1<0", "2<1"]
    peer.keep_alive(30.0)
    assert peer.tick(31.0) == []  # the window is full
    assert peer.ack(2, 32.0, stored=2, window=64) == ["1<0", "2<1", "3<2", "4<3", "5<4", "6<5"]
