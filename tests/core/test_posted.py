"""Table 5.1 of srmp.md row by row, and any run of messages against the words of SR-30 to SR-38."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from bridge.core import streams as streams_module
from bridge.core.posted import (
    KEPT_PAST,
    KEPT_S,
    PREFIX,
    Due,
    Past,
    Posted,
    PostedStreams,
    due_of,
    not_taken,
    place,
    repeated,
    taken,
)
from bridge.core.streams import Place
from bridge.model.message import Message
from tests.core.messages import LOCAL, NOW, OTHER, SENDER, u32, u64
from tests.core.posts import KEY, PEER, RECEIPTS, STREAM, TO, part

TEXT = f"uid:{SENDER}\\{STREAM}"
NONE = Posted()
NEXT, BEHIND, AHEAD = Place.NEXT, Place.BEHIND, Place.AHEAD
IDLE = Posted(
    id=STREAM,
    text=TEXT,
    number=3,
    receipts_to=RECEIPTS,
    peer=PEER,
    source=str(SENDER),
    receipted=3,
    at=NOW,
)
PENDING = msgspec.structs.replace(IDLE, receipted=1)
OLD = 7  # an id that another one has followed
ARCHIVED = msgspec.structs.replace(
    IDLE, past=(Past(OLD, f"uid:{SENDER}\\{OLD}", 9, "http://old/o", "10.9.9.9"),)
)


def where(row: Posted, message: Message) -> Place:
    assert message.transaction is not None
    assert message.srmp is not None
    return place(row, message.transaction, message.srmp)


def after(row: Posted, message: Message) -> Posted:
    assert message.transaction is not None
    assert message.srmp is not None
    return taken(row, message, message.transaction, message.srmp)


def again(row: Posted, message: Message) -> Due:
    assert message.transaction is not None
    return repeated(KEY, row, message.transaction, message.peer)


# -- None -----------------------------------------------------------------------------------


def test_none_start_current_1() -> None:  # create, N=1, url
    assert where(NONE, part(1)) is NEXT
    assert after(NONE, part(1)) == Posted(
        id=STREAM,
        text=TEXT,
        number=1,
        receipts_to=RECEIPTS,
        peer=PEER,
        source=str(SENDER),
        receipted=0,
        at=NOW,
        rejects=0,
        past=(),
    )


@pytest.mark.parametrize(
    "message",
    [
        part(1, start=None),
        part(2),
        part(0),
        part(2, 0),  # bridged at its sender, but nobody said where receipts go
        part(1, start=None, previous=0),
        part(1, start=None, stream=0),  # 0 is an id like any other
        part(0, stream=0),
    ],
)
def test_none_anything_else(message: Message) -> None:  # 200, drop, no receipt
    assert where(NONE, message) is AHEAD


def test_a_stream_may_have_the_id_0() -> None:
    row = after(NONE, part(1, stream=0))
    assert where(NONE, part(1, stream=0)) is NEXT
    assert where(row, part(1, stream=0)) is BEHIND
    assert where(row, part(2, stream=0)) is NEXT


# -- Idle / Pending -------------------------------------------------------------------------


@pytest.mark.parametrize("row", [IDLE, PENDING, ARCHIVED])
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # Same id, in order: SR-30 b, c.
        (part(4), NEXT),
        (part(4, 0), NEXT),
        (part(4, 9), NEXT),  # b does not ask for previous
        (part(9, 3), NEXT),
        (part(9, 1), NEXT),
        (part(9, 0), NEXT),
        (part(4, start=None), NEXT),
        # Same id, current <= N: SR-37.
        (part(3), BEHIND),
        (part(1), BEHIND),
        (part(1, start=None), BEHIND),
        (part(0), BEHIND),
        (part(2, 9), BEHIND),
        # Same id, gap.
        (part(5), AHEAD),
        (part(9, 4), AHEAD),
        (part(0xFFFFFFFF), AHEAD),
        # Unknown id, start, current 1; lower ones too: a sender's clock may go back (SR-38).
        (part(1, stream=STREAM + 1), NEXT),
        (part(1, stream=STREAM - 1), NEXT),
        (part(1, stream=0), NEXT),
        (part(1, 5, stream=STREAM + 1), NEXT),  # a does not ask for previous
        # Other id, no start.
        (part(1, stream=STREAM + 1, start=None), AHEAD),
        (part(4, stream=STREAM + 1), AHEAD),
        (part(2, 0, stream=STREAM + 1), AHEAD),
        (part(0, stream=STREAM + 1), AHEAD),
    ],
)
def test_idle_and_pending(row: Posted, message: Message, expected: Place) -> None:
    assert where(row, message) is expected


@pytest.mark.parametrize("number", [0, 1, 2, 9, 10, 11, 0xFFFFFFFF])
def test_an_archived_id_is_never_taken(number: int) -> None:  # re-acknowledge archived number
    assert where(ARCHIVED, part(number, 0, stream=OLD)) is BEHIND
    assert where(ARCHIVED, part(number, 0, stream=OLD, start=None)) is BEHIND
    assert again(ARCHIVED, part(number, 0, stream=OLD)) == Due(
        key=KEY,
        id=OLD,
        text=f"uid:{SENDER}\\{OLD}",
        number=9,
        receipts_to="http://old/o",
        peer=PEER,  # where it comes from now
        is_repeated=True,
    )


def test_what_was_here_before_is_acknowledged_with_the_last_number() -> None:  # SR-37
    for row in (IDLE, PENDING, ARCHIVED):
        for number in (0, 1, 2, 3):
            assert again(row, part(number)) == Due(
                key=KEY,
                id=STREAM,
                text=TEXT,
                number=3,
                receipts_to=RECEIPTS,
                peer=PEER,
                is_repeated=True,
            )


def test_in_order_moves_the_number_and_keeps_the_rest() -> None:  # SR-32, SR-39
    told = "http://elsewhere/o"  # only message 1 says where receipts go
    row = msgspec.structs.replace(ARCHIVED, rejects=4, receipted=2)
    late: dict[str, Any] = {
        "source": OTHER,
        "arrived_ms": (NOW + 9) * 1000 + 999,
        "peer": "10.0.0.9",
    }
    message = part(8, 3, asks={"receipts_to": told, "stream_id": TEXT.upper()}, **late)
    assert after(row, message) == msgspec.structs.replace(
        row, number=8, peer="10.0.0.9", source=str(OTHER), at=NOW + 9, rejects=0
    )


def test_receipts_follow_the_sender_s_current_address() -> None:
    """MC-MQSRM 3.1.5.1.6.3: SendReceiptsTo is the URL "of the first stream message"; it says
    nothing of an address. A sender whose address has changed goes on at the new one."""
    row = after(NONE, part(1, peer="10.0.0.1"))
    assert due_of(KEY, row).peer == "10.0.0.1"
    row = after(row, part(2, peer="10.0.0.2"))
    assert (due_of(KEY, row).peer, row.receipts_to) == ("10.0.0.2", RECEIPTS)
    assert again(row, part(2, peer="10.0.0.3")).peer == "10.0.0.3"
    streams = PostedStreams()
    streams.advance(KEY, row)
    assert [due.peer for due in restored(streams).unreceipted()] == ["10.0.0.2"]


def test_an_unknown_id_archives_the_old_one() -> None:  # SR-32: also zeroes LastAcknowledged
    row = msgspec.structs.replace(ARCHIVED, rejects=4)
    new = part(1, stream=5, start="http://new/o", peer="10.0.0.9", source=OTHER)
    assert after(row, new) == Posted(
        id=5,
        text=f"uid:{SENDER}\\5",
        number=1,
        receipts_to="http://new/o",
        peer="10.0.0.9",
        source=str(OTHER),
        receipted=0,
        at=NOW,
        rejects=0,
        past=(Past(STREAM, TEXT, 3, RECEIPTS, PEER), *ARCHIVED.past),
    )


def test_the_last_streams_are_kept_and_no_more() -> None:  # SR-38
    row = NONE
    for number in range(KEPT_PAST + 3):
        row = after(row, part(1, stream=100 + number))
    ids = [100 + n for n in range(KEPT_PAST + 3)]
    assert [past.id for past in row.past] == ids[-2 : -2 - KEPT_PAST : -1]
    for known in ids[2:]:
        assert where(row, part(1, stream=known)) is BEHIND


def test_rejects_are_counted_until_one_is_taken() -> None:  # SR-39: 0 on accept, +1 on reject
    row = not_taken(not_taken(IDLE, part(9)), part(9, arrived_ms=(NOW + 5) * 1000))
    assert row == msgspec.structs.replace(IDLE, rejects=2, at=NOW + 5)
    assert after(row, part(4)).rejects == 0
    full = msgspec.structs.replace(IDLE, rejects=0xFFFFFFFF)
    assert not_taken(full, part(9)).rejects == 0xFFFFFFFF  # 32 bits in the management calls


@given(u64, u32, u64, u32, u32, st.booleans())
def test_next_is_exactly_what_the_specification_accepts(
    incoming_id: int, incoming: int, stream: int, current: int, previous: int, start: bool
) -> None:  # SR-30, word by word
    row = msgspec.structs.replace(IDLE, id=incoming_id, number=incoming)
    message = part(current, previous, stream=stream, start=RECEIPTS if start else None)
    a = start and current == 1 and stream != incoming_id
    b = stream == incoming_id and current == incoming + 1
    c = stream == incoming_id and current > incoming and previous <= incoming
    assert (where(row, message) is NEXT) == (a or b or c)


# -- the table of them ----------------------------------------------------------------------


def table(**rows: Posted) -> PostedStreams:
    """`a=…` is the stream to http://a/msmq/q."""
    streams = PostedStreams()
    for host, row in rows.items():
        streams.advance((SENDER, f"DIRECT=http://{host}/msmq/q"), row)
    return streams


def restored(streams: PostedStreams) -> PostedStreams:
    fresh = PostedStreams()
    for key, value in streams.take_changes().items():
        assert key.startswith(PREFIX)
        assert value is not None
        fresh.restore(key, value)
    return fresh


def test_after_a_restart_those_are_told_who_may_not_have_heard() -> None:  # SR-81
    started = msgspec.structs.replace(PENDING, receipted=0, number=1)
    streams = restored(table(a=IDLE, b=PENDING, c=started, d=ARCHIVED))
    told = {due.key[1][14:15]: due for due in streams.unreceipted()}
    assert set(told) == {"b", "c"}
    assert told["b"] == Due(
        key=(SENDER, "DIRECT=http://b/msmq/q"),
        id=STREAM,
        text=TEXT,
        number=3,
        receipts_to=RECEIPTS,
        peer=PEER,
        is_repeated=False,
    )
    assert told["c"].number == 1


def test_a_receipt_that_was_taken_is_not_told_again() -> None:  # SR-81
    streams = table(a=PENDING)
    (due,) = streams.unreceipted()
    streams.take_changes()
    streams.receipted(due)
    assert streams.unreceipted() == []
    assert streams.get(due.key) == IDLE
    assert restored(streams).get(due.key) == IDLE  # and that is durable
    streams.receipted(due)
    assert streams.take_changes() == {}  # nothing new


def test_an_older_receipt_takes_nothing_back() -> None:
    streams = table(a=PENDING)
    (due,) = streams.unreceipted()
    streams.receipted(due)
    streams.receipted(msgspec.structs.replace(due, number=2))
    assert streams.get(due.key).receipted == 3
    streams.advance(due.key, msgspec.structs.replace(IDLE, number=5))
    streams.receipted(due)
    assert [due.number for due in streams.unreceipted()] == [5]


def test_a_receipt_of_another_stream_says_nothing() -> None:
    streams = table(a=msgspec.structs.replace(PENDING, receipted=0))
    (due,) = streams.unreceipted()
    streams.receipted(msgspec.structs.replace(due, id=STREAM + 1))
    streams.receipted(msgspec.structs.replace(due, key=(OTHER, due.key[1])))
    assert streams.get(due.key).receipted == 0
    assert len(streams) == 1
    streams.receipted(msgspec.structs.replace(due, key=(OTHER, due.key[1]), id=0))  # no stream
    assert len(streams) == 1


def test_streams_without_traffic_end_some_day() -> None:  # SR-84: 90 days
    assert KEPT_S == 90 * 24 * 3600
    old = msgspec.structs.replace(IDLE, at=NOW - KEPT_S - 1)
    young = msgspec.structs.replace(IDLE, at=NOW - KEPT_S)
    streams = restored(table(a=old, b=young))
    streams.advance((SENDER, "DIRECT=http://c/msmq/q"), old)
    streams.advance((SENDER, "DIRECT=http://d/msmq/q"), young)
    streams.retire(NOW)
    assert sorted(name[14:15] for _, name in streams) == ["b", "d"]
    assert {key[-8]: value is None for key, value in streams.take_changes().items()} == {
        "a": True,  # gone from Kafka too
        "c": True,
        "d": False,
    }
    assert streams.take_changes() == {}
    key = SENDER, "DIRECT=http://a/msmq/q"
    assert streams.get(key) == Posted()
    assert where(streams.get(key), part(4)) is AHEAD


def test_a_stream_that_comes_back_in_the_same_unit_stays() -> None:
    key = SENDER, f"DIRECT={TO}"
    streams = PostedStreams()
    streams.drop(key)
    streams.advance(key, IDLE)
    (value,) = streams.take_changes().values()
    assert value is not None
    streams.advance(key, PENDING)
    streams.drop(key)
    assert streams.take_changes() == {f"posted/{SENDER}/DIRECT={TO}": None}


@given(u64, u32, u32, st.text(max_size=20), st.lists(st.tuples(u64, u32), max_size=3))
def test_a_row_survives_a_restart(
    stream: int, number: int, receipted: int, name: str, past: list[tuple[int, int]]
) -> None:  # SR-81: the url came only in message 1
    row = Posted(
        id=stream,
        text=f"uid:{SENDER}\\{stream}",
        number=number,
        receipts_to=f"http://{name}/o",
        peer=PEER,
        source=str(OTHER),
        receipted=receipted,
        at=NOW,
        rejects=number,
        past=tuple(Past(one, f"UID:{one}", last, name, PEER) for one, last in past),
    )
    streams = PostedStreams()
    key = LOCAL, f"DIRECT=http://h/msmq/{name}/x"
    streams.advance(key, row)
    assert dict(restored(streams).items()) == {key: row}


# -- any run of messages --------------------------------------------------------------------

IDS = (0, 5, 6, STREAM)


class Naive:
    """The rules as they are written, on plain values."""

    def __init__(self) -> None:
        self.incoming_id: int | None = None
        self.incoming = 0
        self.url = ""
        self.reject_count = 0
        self.archive: dict[int, tuple[int, str]] = {}  # SR-38: id64 -> last number, url

    def meet(self, stream: int, current: int, previous: int, url: str) -> tuple[str, int, str]:
        """What happens, and what a receipt would say: number and URL."""
        if stream in self.archive:
            self.reject_count += 1
            return "again", *self.archive[stream]
        if stream == self.incoming_id and current <= self.incoming:  # SR-37
            self.reject_count += 1
            return "again", self.incoming, self.url
        a = bool(url) and current == 1 and stream != self.incoming_id
        b = stream == self.incoming_id and current == self.incoming + 1
        c = stream == self.incoming_id and current > self.incoming and previous <= self.incoming
        if not (a or b or c):
            self.reject_count += self.incoming_id is not None
            return "ignored", 0, ""
        if a:
            if self.incoming_id is not None:
                self.archive[self.incoming_id] = self.incoming, self.url
            self.incoming_id, self.url = stream, url
        self.incoming, self.reject_count = current, 0
        return "taken", self.incoming, self.url


class PostedMachine(RuleBasedStateMachine):
    """One key; what the rows say must be what the words say, over restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.streams, self.naive = PostedStreams(), Naive()
        self.kafka: dict[str, bytes] = {}
        self.heard: dict[int, int] = {}  # what the sender knows of each stream

    @rule(
        stream=st.sampled_from(IDS),
        current=st.integers(0, 6),
        previous=st.none() | st.integers(0, 6),
        url=st.sampled_from(("", "http://a/o", "http://b/o")),
    )
    def message(self, stream: int, current: int, previous: int | None, url: str) -> None:
        message = part(current, previous, stream=stream, start=url or None)
        assert message.transaction is not None
        told = url if current == 1 else ""
        what, number, to = self.naive.meet(stream, current, message.transaction.previous, told)
        row = self.streams.get(KEY)
        found = where(row, message)
        assert found is {"taken": NEXT, "again": BEHIND, "ignored": AHEAD}[what]
        due: Any = None
        if what == "taken":
            row = after(row, message)
            self.streams.advance(KEY, row)
            due = due_of(KEY, row)
        elif row.text:
            self.streams.advance(KEY, not_taken(row, message))
            due = again(row, message) if what == "again" else None
        if due is not None:
            assert (due.id, due.number, due.receipts_to) == (stream, number, to)
            assert due.text == f"uid:{SENDER}\\{stream}"
            assert due.is_repeated == (what == "again")
        row = self.streams.get(KEY)
        assert (row.number, row.rejects) == (self.naive.incoming, self.naive.reject_count)

    @rule()
    def receipt_arrives(self) -> None:
        for due in self.streams.unreceipted():
            assert due.number > self.heard.get(due.id, 0)
            self.heard[due.id] = due.number
            self.streams.receipted(due)
        assert self.streams.unreceipted() == []

    @rule()
    def restart(self) -> None:
        for key, value in self.streams.take_changes().items():
            assert value is not None
            self.kafka[key] = value
        self.streams = PostedStreams()
        for key, value in self.kafka.items():
            self.streams.restore(key, value)


TestPostedMachine = PostedMachine.TestCase
TestPostedMachine.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


# -- room -------------------------------------------------------------------------------------


def test_a_row_counts_as_long_as_it_is() -> None:
    """Senders choose the URLs: nine of them in a row, with the streams that were there before."""
    streams, row = PostedStreams(), NONE
    for number in range(KEPT_PAST + 1):
        url = f"http://sender/{number:02}{'x' * 5_000}"
        row = after(row, part(1, stream=STREAM + number, start=url))
        streams.advance(KEY, row)
    assert streams.size > 9 * 5_000
    assert streams.size < 9 * 5_000 + 4_000
    restored = PostedStreams()
    for key, value in streams.take_changes().items():
        assert value is not None
        restored.restore(key, value)
    assert restored.size == streams.size
    restored.get(KEY)
    restored.advance(KEY, after(row, part(2, stream=row.id)))
    assert restored.size == streams.size  # one number for another
    restored.drop(KEY)
    assert restored.size == 0
    assert restored._shares.of_peer == {}


def test_a_known_stream_may_not_grow_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "MOST_OF_PEER", 20_000)
    streams, row = PostedStreams(), NONE
    for number in range(3):
        row = after(row, part(1, stream=STREAM + number, start=f"http://s/{'x' * 5_000}"))
        assert streams.has_room(KEY, PEER, row)
        streams.advance(KEY, row)
    longer = after(row, part(1, stream=STREAM + 3, start=f"http://s/{'x' * 5_000}"))
    assert not streams.has_room(KEY, PEER, longer)
    assert streams.has_room(KEY, PEER, after(row, part(2, stream=row.id)))  # it goes on as it is
    assert streams.has_room(KEY, "10.9.9.9", longer)


def test_a_stream_that_moves_is_counted_for_its_new_peer() -> None:
    streams = PostedStreams()
    streams.advance(KEY, IDLE)
    streams.advance(KEY, msgspec.structs.replace(IDLE, peer="10.9.9.9"))
    assert streams._shares.of_peer == {"10.9.9.9": streams.size}
