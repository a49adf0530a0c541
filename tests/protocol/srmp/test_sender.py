"""An outgoing queue of SRMP: what is POSTed when, and when a message is done. Digest srmp.md"""

from __future__ import annotations

from itertools import pairwise

import pytest

from bridge.model.classes import MessageClass
from bridge.model.errors import WireError
from bridge.model.message import INFINITE, JOURNAL_NEGATIVE, JOURNAL_POSITIVE, RECOVERABLE, Message
from bridge.protocol.commands import Close
from bridge.protocol.srmp.sender import State, Timing
from bridge.protocol.srmp.sending import Answered, Fate, NoAnswer, Settled
from bridge.wire.srmp.values import make_stream_id
from tests.protocol.srmp.peer import (
    EPOCH,
    LOCAL,
    RECEIPTS,
    TO,
    Shell,
    message,
    regular,
    request_of,
    step,
    steps,
    stream_of,
)
from tests.vectors.srmp import multipart

RETRANSMIT_S = 20.0
DEAD = {"journal": JOURNAL_NEGATIVE}


def durable(ordinal: int) -> Message:
    return message(ordinal, delivery=RECOVERABLE)


def sent_and_taken(*messages: Message, seconds: float = 0.0) -> Shell:
    """Each has had its 200."""
    shell = Shell(*messages)
    while shell.sender.state is State.SENDING:
        shell.answer(200, seconds)
    return shell


# -- bytes ------------------------------------------------------------------------------------

HEAD = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1"><action>MSMQ:%s</action>'
    f"<to>{TO}</to><id>uuid:%d@{LOCAL}</id></path>"
    '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
    "<sentAt>20070608T023719</sentAt></properties>"
)
BLOCK = (
    '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>%d</Priority>'
    "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App><BodyType>8</BodyType>"
    f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{LOCAL}</SourceQmGuid>"
    "<TTrq>20070612T023719</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
)
STREAM = (
    '<services se:mustUnderstand="1"><durable/></services>'
    f'<stream se:mustUnderstand="1"><streamId>uid:{LOCAL}\\%d</streamId>%s</stream>'
)


def framed(number: int, envelope: str, body: bytes) -> tuple[str, bytes]:
    content_type = f'multipart/related; boundary="MSMQ - SOAP boundary, {number}"; type=text/xml'
    return content_type, multipart(number, envelope.encode(), body, str(LOCAL))


def test_a_regular_message_as_windows_writes_it() -> None:  # srmp.md 1.3, V5
    shell = Shell(regular(4494, label="mqsender label", body_type=8, body=b"a\0"))
    (post,) = shell.posts
    expected = framed(4594, HEAD % ("mqsender label", 4494) + BLOCK % 3, b"a\0")
    assert (post.content_type, post.body) == expected


def test_the_start_of_a_stream() -> None:  # MC-MQSRM 3.1.7.2.4
    shell = Shell(*steps(2, body_type=8))
    shell.answer(200)
    number = EPOCH << 32 | 6  # id64 = (unix time at creation << 32) | StreamIdOrdinal
    start = f"<current>1</current><start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>"
    next_one = "<current>2</current><previous>1</previous>"
    expected = [
        framed(101, HEAD % ("", 1) + STREAM % (number, start) + BLOCK % 0, b"1"),
        framed(102, HEAD % ("", 2) + STREAM % (number, next_one) + BLOCK % 0, b"2"),
    ]
    assert [(post.content_type, post.body) for post in shell.posts] == expected


def test_the_other_spelling_of_a_stream() -> None:
    """MC-MQSRM 4.4"""
    shell = Shell(*steps(1), stream_tag="Stream")
    assert b'<Stream se:mustUnderstand="1"><streamId>' in shell.posts[0].body
    assert b"</Stream>" in shell.posts[0].body


def test_an_empty_body_is_a_bare_envelope() -> None:  # srmp.md 1.3: a plain text/xml user message
    shell = Shell(regular(1, body=b""))
    assert shell.posts[0].content_type == "text/xml"
    assert shell.posts[0].body.startswith(b"<se:Envelope ")


def test_a_message_that_srmp_cannot_carry_is_refused_at_once() -> None:
    shell = Shell()
    with pytest.raises(WireError):
        shell.add(regular(1, label="\0"))
    with pytest.raises(WireError):
        shell.add(regular(1, destination=r"DIRECT=OS:machine2\private$\q"))
    assert (shell.sender.waiting, shell.posts) == (0, [])


# -- regular and durable: one POST at a time --------------------------------------------------


def test_one_after_the_other() -> None:  # SR-70: POST, wait for the answer, next; no window
    shell = Shell(regular(1), durable(2), regular(3))
    assert (shell.bodies, shell.sender.state) == ([1], State.SENDING)
    shell.answer(200)
    assert shell.bodies == [1, 2]
    shell.answer(202)  # 1.4: 2xx = success
    shell.answer(200)
    assert shell.bodies == [1, 2, 3]
    assert shell.fates == [(1, "reached"), (2, "reached"), (3, "reached")]
    assert (shell.sender.waiting, shell.sender.done) == (0, 3)
    assert shell.sender.state is State.NO_STREAM


def test_400_is_the_end_of_a_message() -> None:  # 1.4: delete, dead-letter if asked
    shell = Shell(regular(1, **DEAD), regular(2))
    shell.answer(400)
    assert shell.settled == [Settled(regular(1, **DEAD), Fate.REFUSED, 0, "Deadletter$")]
    shell.answer(200)
    assert shell.fates == [(1, "refused"), (2, "reached")]
    assert (shell.sender.waiting, shell.sender.done) == (0, 1)


@pytest.mark.parametrize("status", [100, 301, 401, 403, 404, 413, 500, 503, 599])
def test_everything_else_is_tried_again(status: int) -> None:  # 1.4, SR-75, SR-76
    shell = Shell(regular(1), regular(2))
    shell.answer(status, seconds=1.0)
    assert shell.closed == [Close("inactive", f"HTTP {status}")]
    assert (shell.sender.state, shell.sender.next_wakeup()) == (State.INACTIVE, 1 + RETRANSMIT_S)
    shell.tick(RETRANSMIT_S)
    assert shell.bodies == [1]
    shell.tick(1 + RETRANSMIT_S)
    assert shell.bodies == [1, 1]
    shell.answer(200)
    assert shell.bodies == [1, 1, 2]


def test_no_answer_is_tried_again() -> None:  # SR-75: any 5xx or no answer
    shell = Shell(regular(1))
    for attempt in range(5):
        shell.no_answer(attempt * RETRANSMIT_S, why="timeout")
        shell.tick((attempt + 1) * RETRANSMIT_S)
    assert shell.closed == [Close("inactive", "timeout")] * 5
    assert len(shell.posts) == 6
    assert len({(post.content_type, post.body) for post in shell.posts}) == 1  # SR-71


def test_nothing_is_sent_while_inactive() -> None:  # SR-70: not OnHold or Inactive
    shell = Shell(regular(1))
    shell.no_answer()
    shell.add(regular(2), seconds=5.0)
    assert shell.bodies == [1]
    shell.tick(RETRANSMIT_S)
    shell.answer(200)
    assert shell.bodies == [1, 1, 2]


def test_an_answer_to_nothing() -> None:
    shell = Shell(regular(1))
    shell.tell(Answered(99, 200), 0.0)
    shell.tell(NoAnswer(0, "late"), 0.0)
    assert (shell.sender.waiting, shell.closed) == (1, [])


def test_the_source_journal() -> None:  # SR-64: on 200 (non-stream)
    shell = Shell(regular(1, journal=JOURNAL_POSITIVE))
    shell.answer(200)
    (told,) = shell.settled
    assert (told.keep_in, told.message_class) == ("Journal$", MessageClass.ACK_REACH_QUEUE)


# -- streams: 5.2 -----------------------------------------------------------------------------


def test_a_message_of_a_stream_is_kept_until_its_receipt() -> None:  # 1.4, SR-51
    shell = Shell(*steps(3))
    for seconds in (1.0, 2.0, 3.0):
        assert shell.sender.state is State.SENDING
        shell.answer(200, seconds)
    assert shell.numbers == [(1, 0), (2, 1), (3, 2)]
    assert (shell.sender.state, shell.fates) == (State.AWAIT_ACK, [])
    shell.receipt(2, 4.0)
    assert shell.fates == [(1, "reached"), (2, "reached")]
    assert shell.sender.state is State.AWAIT_ACK
    shell.receipt(3, 5.0)
    assert (shell.sender.state, shell.sender.waiting) == (State.NO_STREAM, 0)
    assert {told.message_class for told in shell.settled} == {MessageClass.ACK_REACH_QUEUE}


def test_only_the_first_one_starts_the_stream() -> None:  # SR-72: number 1 carries start
    shell = sent_and_taken(*steps(3))
    assert [stream_of(post).receipts_to for post in shell.posts] == [RECEIPTS, None, None]
    assert [stream_of(post).previous for post in shell.posts] == [None, 1, 2]


def test_a_receipt_before_the_answer() -> None:
    shell = Shell(*steps(2))
    shell.receipt(1)
    assert shell.fates == [(1, "reached")]
    assert (shell.bodies, shell.sender.state) == ([1], State.SENDING)
    shell.answer(200)
    assert shell.bodies == [1, 2]
    assert shell.numbers[1] == (1, 0)  # SR-54: nothing was left of the first stream


@pytest.mark.parametrize("status", [200, 400, 500])
def test_after_a_receipt_no_answer_counts(status: int) -> None:
    shell = Shell(*steps(1, **DEAD))
    shell.receipt(1)
    shell.answer(status, 1.0)
    assert (shell.fates, shell.sender.waiting) == ([], 1)  # for its final receipt
    shell.tick(100.0)
    assert shell.bodies == [1]


def test_a_receipt_of_another_stream_is_ignored() -> None:  # SR-51: unknown: ignore
    shell = sent_and_taken(*steps(1))
    shell.receipt(1, stream_id=make_stream_id(LOCAL, 1))
    shell.receipt(1, stream_id=make_stream_id(type(LOCAL)(16), shell.stream_id.number))
    assert shell.sender.waiting == 1


def test_the_journal_of_a_stream() -> None:  # SR-64: on the stream receipt (stream)
    shell = sent_and_taken(*steps(1, journal=JOURNAL_POSITIVE))
    assert shell.settled == []
    shell.receipt(1)
    assert [told.keep_in for told in shell.settled] == ["Journal$"]


def test_the_next_message_after_the_last_receipt_opens_a_new_stream() -> None:  # SR-54
    shell = sent_and_taken(*steps(2))
    first = shell.stream_id
    shell.receipt(2, 1.0)
    shell.add(step(3), step(4), seconds=2.0)
    shell.answer(200, 2.0)
    assert shell.numbers[2:] == [(1, 0), (2, 1)]
    assert stream_of(shell.posts[2]).receipts_to == RECEIPTS
    assert shell.stream_id.number == (EPOCH + 2) << 32 | 7  # ordinal + 1
    shell.receipt(2, 3.0, stream_id=first)
    assert shell.sender.waiting == 2


def test_plain_messages_go_between() -> None:
    shell = sent_and_taken(step(1), regular(2), step(3))
    assert shell.bodies == [1, 2, 3]
    assert [stream_of(shell.posts[n]).current for n in (0, 2)] == [1, 2]
    assert shell.fates == [(2, "reached")]


# -- the wait timer ---------------------------------------------------------------------------


def test_without_a_receipt_all_are_sent_again() -> None:  # SR-76, 4.1
    shell = sent_and_taken(*steps(3))
    shell.tick(29.9)
    assert shell.bodies == [1, 2, 3]
    shell.tick(30.0)
    for _ in range(3):
        shell.answer(200, 30.0)
    assert shell.bodies == [1, 2, 3, 1, 2, 3]
    assert shell.numbers[3:] == [(1, 0), (2, 1), (3, 2)]
    assert shell.posts[3:] != shell.posts[:3]  # their numbers differ,
    assert [post.body for post in shell.posts[3:]] == [post.body for post in shell.posts[:3]]


def test_the_back_off() -> None:  # SR-52: 3 x 30 s, 3 x 5 min, 3 x 30 min, then 6 h
    shell, sent = sent_and_taken(step(1, time_to_reach_queue=INFINITE)), [0.0]
    while len(sent) < 12:
        due = shell.sender.next_wakeup()
        assert due is not None
        shell.tick(due)
        if shell.sender.state is State.SENDING:  # or it was the idle connection
            sent.append(due)
            shell.answer(200, due)
    waits = [later - earlier for earlier, later in pairwise(sent)]
    assert waits == [30.0] * 3 + [300.0] * 3 + [1800.0] * 3 + [21600.0] * 2


def test_a_receipt_resets_the_back_off() -> None:  # SR-52: to first entry on a receipt
    shell = sent_and_taken(*steps(2))
    for seconds in (30.0, 60.0, 90.0):
        shell.tick(seconds)
        shell.answer(200, seconds)
        shell.answer(200, seconds)
    shell.receipt(1, 100.0)
    shell.tick(129.9)
    assert len(shell.posts) == 8
    shell.tick(130.0)
    assert shell.bodies[8:] == [2]


def test_a_receipt_without_news_does_not_put_off_the_resend() -> None:
    shell = sent_and_taken(*steps(2))
    shell.receipt(1, 10.0)
    for seconds in (15.0, 25.0, 35.0):
        shell.receipt(1, seconds)
    shell.tick(40.0)
    assert shell.bodies == [1, 2, 2]


def test_the_timer_runs_from_the_first_that_waits() -> None:  # 3.1.2.2
    shell = Shell(*steps(2))
    shell.answer(200, 1.0)
    shell.answer(200, 20.0)
    assert shell.sender.next_wakeup() == 31.0


def test_new_messages_go_behind_those_that_are_sent_again() -> None:
    shell = sent_and_taken(*steps(2))
    shell.tick(30.0)
    shell.add(step(3), seconds=30.0)
    for _ in range(3):
        shell.answer(200, 31.0)
    assert shell.bodies == [1, 2, 1, 2, 3]


def test_the_timer_ends_during_a_post() -> None:
    shell = Shell(*steps(3))
    shell.answer(200, 0.0)
    shell.tick(30.0)
    assert shell.bodies == [1, 2]  # SR-70: still waiting for an answer
    for _ in range(3):
        shell.answer(200, 31.0)
    assert shell.bodies == [1, 2, 1, 3]


def test_what_is_acknowledged_meanwhile_is_not_sent_again() -> None:
    shell = sent_and_taken(*steps(3))
    shell.tick(30.0)
    shell.receipt(2, 30.5)
    shell.answer(200, 31.0)
    shell.answer(200, 31.0)
    assert shell.bodies == [1, 2, 3, 1, 3]
    assert shell.numbers[-1] == (3, 2)


def test_500_stops_the_wait_timer() -> None:  # SR-75: cancel wait timer, close, state Inactive
    shell = Shell(*steps(2))
    shell.answer(200, 0.0)
    shell.answer(500, 15.0)
    assert shell.sender.state is State.INACTIVE
    shell.tick(31.0)
    assert shell.bodies == [1, 2]
    shell.tick(35.0)
    assert shell.bodies == [1, 2, 2]  # SR-76: not what only awaits a receipt
    shell.answer(200, 35.0)
    shell.tick(65.0)
    assert shell.bodies == [1, 2, 2, 1]


def test_the_wait_timer_starts_again_when_nothing_else_is_left_to_send() -> None:
    shell = Shell(step(1), step(2, time_to_reach_queue=10))
    shell.answer(200, 0.0)
    shell.answer(500, 5.0)
    shell.tick(25.0)
    assert shell.fates == [(2, "expired")]
    assert (shell.sender.state, shell.sender.next_wakeup()) == (State.AWAIT_ACK, 55.0)


# -- gaps -------------------------------------------------------------------------------------


def test_400_in_a_stream() -> None:  # 5.2: delete, dead-letter; Stream Element Removed
    shell = Shell(step(1), step(2, **DEAD), step(3))
    shell.answer(200)
    shell.answer(400)
    assert shell.settled == [Settled(step(2, **DEAD), Fate.REFUSED, 0, "XactDeadletter")]
    assert shell.numbers == [(1, 0), (2, 1), (3, 1)]  # the next previous bridges the gap
    shell.answer(200)
    assert shell.sender.state is State.AWAIT_ACK


def test_400_for_the_only_one_ends_the_stream() -> None:  # 5.2: AwaitAck or NoStream
    shell = Shell(*steps(2))
    shell.answer(400)
    assert shell.numbers == [(1, 0), (1, 0)]  # a stream has to begin with its message 1
    first, second = (stream_of(post).id.number for post in shell.posts)
    assert second == first + 1


def test_expired_messages_are_not_sent() -> None:  # SR-63
    shell = Shell()
    shell.add(
        step(1, time_to_reach_queue=10, **DEAD),
        regular(2, time_to_reach_queue=10, **DEAD),
        regular(3, time_to_reach_queue=10),
        step(4),
        seconds=11.0,
    )
    assert shell.bodies == [4]
    late = MessageClass.NACK_REACH_QUEUE_TIMEOUT
    assert [(told.fate, told.message_class, told.keep_in) for told in shell.settled] == [
        ("expired", late, "XactDeadletter"),
        ("expired", late, "Deadletter$"),
        ("expired", late, ""),
    ]
    assert shell.numbers == [(1, 0)]


def test_at_the_deadline_it_is_still_good() -> None:  # SR-63: now - SentTime > TimeToReachQueue
    shell = Shell()
    shell.add(regular(1, time_to_reach_queue=10), seconds=10.0)
    assert shell.bodies == [1]


def test_a_message_expires_while_it_waits_for_its_receipt() -> None:  # 5.2: any, message expires
    shell = sent_and_taken(step(1), step(2, time_to_reach_queue=20), step(3))
    shell.tick(30.0)
    shell.answer(200, 30.0)
    assert shell.fates == [(2, "expired")]
    assert shell.numbers[3:] == [(1, 0), (3, 1)]


def test_a_message_expires_while_the_receiver_is_away() -> None:  # 5.2: same or NoStream
    shell = Shell(step(1, time_to_reach_queue=30), step(2))
    shell.no_answer(0.0)
    shell.tick(20.0)
    shell.no_answer(20.0)
    shell.tick(40.0)
    assert (shell.bodies, shell.fates) == ([1, 1, 2], [(1, "expired")])
    assert shell.numbers[-1] == (1, 0)


def test_previous_0_is_said_when_all_before_it_are_gone() -> None:  # absent means current - 1
    shell = sent_and_taken(step(1, time_to_reach_queue=20), step(2))
    shell.tick(30.0)
    stream = stream_of(shell.posts[-1])
    assert (stream.current, stream.previous, stream.receipts_to) == (2, 0, None)


# -- final receipts ---------------------------------------------------------------------------


def test_a_final_receipt_is_waited_for() -> None:  # SR-53, 5.2: AwaitFinal
    shell = sent_and_taken(step(1, **DEAD), step(2))
    shell.receipt(2)
    assert shell.fates == [(2, "reached")]
    assert (shell.sender.state, shell.sender.next_wakeup()) == (State.AWAIT_FINAL, 300.0)  # SR-78
    shell.final(1)
    assert shell.fates[1:] == [(1, "received")]
    assert (shell.sender.state, shell.sender.done) == (State.NO_STREAM, 2)


def test_a_negative_one_makes_a_dead_letter() -> None:  # SR-53, SR-65
    shell = sent_and_taken(*steps(2, **DEAD))
    shell.receipt(2)
    shell.final(2, MessageClass.NACK_RECEIVE_TIMEOUT)
    assert shell.sender.state is State.AWAIT_FINAL
    shell.final(1, MessageClass.NACK_Q_PURGED)
    assert [(told.fate, told.message_class, told.keep_in) for told in shell.settled] == [
        ("died", MessageClass.NACK_RECEIVE_TIMEOUT, "XactDeadletter"),
        ("died", MessageClass.NACK_Q_PURGED, "XactDeadletter"),
    ]
    assert (shell.sender.waiting, shell.sender.done) == (0, 0)


def test_a_final_receipt_before_the_stream_receipt() -> None:  # SR-53: delete the message
    shell = sent_and_taken(*steps(2, **DEAD))
    shell.final(2)
    shell.final(2)
    assert (shell.fates, shell.sender.state) == ([(2, "received")], State.AWAIT_ACK)
    shell.tick(30.0)
    shell.answer(200, 30.0)
    assert shell.bodies == [1, 2, 1]
    shell.final(1)
    assert (shell.sender.waiting, shell.sender.next_wakeup()) == (0, 330.0)


def test_a_final_receipt_of_nothing_is_discarded() -> None:  # SR-53: unknown stream or number
    shell = sent_and_taken(*steps(1, **DEAD))
    shell.final(7)
    name = shell.stream_id
    shell.receipt(1)
    shell.final(1)
    shell.final(1)
    assert (shell.fates, name) == ([(1, "received")], shell.stream_id)


def test_the_stream_goes_on_while_finals_are_due() -> None:  # SR-54: nothing left awaiting
    shell = sent_and_taken(*steps(1, **DEAD))
    shell.receipt(1)
    shell.add(step(2))
    assert shell.numbers == [(1, 0), (2, 1)]
    stream = shell.sender.stream
    assert stream is not None
    assert (stream.unread_count, stream.first_unacked) == (1, 2)


# -- hold, idle -------------------------------------------------------------------------------


def test_pause_and_resume() -> None:  # SR-77
    shell = sent_and_taken(*steps(2))
    shell.add(step(3), step(4), seconds=1.0)
    shell.pause(2.0)
    assert (shell.sender.state, shell.closed) == (State.ON_HOLD, [Close("paused")])
    assert shell.sender.next_wakeup() is None
    shell.answer(200, 3.0)  # too late: its connection is closed
    shell.add(step(5), seconds=3.0)
    assert shell.bodies == [1, 2, 3]
    shell.resume(100.0)
    for _ in range(5):
        shell.answer(200, 100.0)
    assert shell.bodies == [1, 2, 3, 1, 2, 3, 4, 5]  # dispatch all
    shell.receipt(5, 101.0)
    assert shell.sender.waiting == 0


def test_resume_of_what_is_not_paused() -> None:
    shell = Shell(*steps(1))
    shell.resume()
    shell.answer(200)
    assert shell.bodies == [1]


def test_pause_while_inactive() -> None:  # SR-77: cancel timers
    shell = Shell(regular(1))
    shell.no_answer()
    shell.pause(1.0)
    assert shell.closed == [Close("inactive", "refused")]  # no second time
    shell.tick(1000.0)
    assert shell.bodies == [1]
    shell.resume(1001.0)
    assert shell.bodies == [1, 1]


def test_receipts_count_on_hold() -> None:
    shell = sent_and_taken(*steps(2))
    shell.pause()
    shell.receipt(1)
    assert (shell.fates, shell.sender.next_wakeup()) == ([(1, "reached")], None)
    shell.resume()
    assert shell.bodies == [1, 2, 2]


def test_what_waits_for_its_final_receipt_is_not_sent_again() -> None:
    shell = sent_and_taken(*steps(1, **DEAD))
    shell.receipt(1)
    shell.pause()
    shell.resume()
    assert shell.bodies == [1]


def test_an_idle_connection_is_closed() -> None:  # SR-78: 300 s after the last answer
    shell = Shell(regular(1))
    shell.answer(200, 7.0)
    assert shell.sender.is_connected
    shell.tick(306.9)
    assert shell.closed == []
    shell.tick(307.0)
    assert shell.closed == [Close("idle")]
    assert (shell.sender.is_connected, shell.sender.next_wakeup()) == (False, None)
    shell.add(regular(2), seconds=400.0)
    assert (shell.bodies, shell.sender.is_connected) == ([1, 2], True)


def test_a_connection_in_use_is_not_idle() -> None:
    shell = Shell(regular(1), regular(2), timing=Timing(cleanup_s=5.0))
    shell.answer(400, 1.0)
    shell.tick(50.0)
    assert shell.closed == []
    shell.answer(200, 50.0)
    assert shell.sender.next_wakeup() == 55.0


def test_nothing_to_do() -> None:
    shell = Shell()
    shell.tick(1.0)
    shell.pause()
    shell.resume()
    assert (shell.posts, shell.closed, shell.sender.state) == ([], [], State.NO_STREAM)


def test_the_identifier_is_fixed_once() -> None:  # SR-71: Identifier and sentAt
    shell = sent_and_taken(*steps(1))
    shell.tick(30.0)
    first, again = (request_of(post).envelope for post in shell.posts)
    assert (first.id, first.sent_at) == (again.id, again.sent_at) == (f"uuid:1@{LOCAL}", EPOCH)
