"""RR-47 to RR-50: each message exactly once for the reader, and none lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.guid import Guid
from bridge.protocol.rpc.reader.drain import Drain
from bridge.protocol.rpc.reader.packets import key_of
from bridge.protocol.rpc.reader.results import Refused, Unsettled
from tests.protocol.rpc.reader.fake_server import (
    NO_QUEUE,
    NOT_FOUND,
    SOURCE,
    FakeServer,
    new_server,
    without_top_byte,
)
from tests.protocol.rpc.reader.running import ORDERS, Wire, batches, bodies, orders

HERE = Guid(SOURCE.bytes_le)


def filled(count: int) -> FakeServer:
    server = new_server()
    for number in range(count):
        server.put(ORDERS, b"m%d" % number)
    return server


def numbered(*numbers: int) -> list[bytes]:
    return [b"m%d" % number for number in numbers]


def drained(job: Drain, wire: Wire) -> list[bytes]:
    found = []
    for batch in batches(job, wire):
        found += bodies(batch)
        batch.confirm()
    return found


def test_received_and_ended() -> None:  # section 6, sequence 2
    server = filled(1)
    job = Drain(orders())
    assert drained(job, Wire(server)) == [b"m0"]
    assert (job.removed, job.repeated, job.in_doubt) == (1, 0, set())
    assert server.removed == [b"m0"]
    assert server.calls[0] == 2
    assert server.calls[-1] == 3


def test_all_in_order_with_several_in_flight() -> None:
    server = filled(500)
    wire = Wire(server)
    job = Drain(orders(), window=50)
    assert drained(job, wire) == numbered(*range(500))
    assert wire.widest == 100  # the Ends of one batch, the Starts of the next
    assert server.bodies(ORDERS) == []
    assert job.removed == 500
    assert not server.handles


def test_nothing_is_removed_before_it_is_confirmed() -> None:  # RR-48: persist, then End ACK
    server = filled(20)
    for batch in batches(Drain(orders()), Wire(server)):
        assert not set(bodies(batch)) & set(server.removed)
        batch.confirm()


def test_an_answer_that_overtook_another() -> None:
    """Servers answer in any order; the reader sees the queue's."""
    server = filled(8)
    server.queues[ORDERS].reverse()  # `first` is now the last
    batch = next(batches(Drain(orders()), Wire(server)))
    assert bodies(batch) == sorted(bodies(batch))


@pytest.mark.parametrize("limit", [0, 1, 7, 64])
def test_no_more_than_wanted(limit: int) -> None:
    server = filled(70)
    assert drained(Drain(orders(), limit=limit), Wire(server)) == numbered(*range(limit))
    assert server.bodies(ORDERS) == numbered(*range(limit, 70))
    assert all(stored.is_free for stored in server.queues[ORDERS])


def test_a_reader_that_stops_puts_back_the_rest() -> None:
    server = filled(10)
    for batch in batches(Drain(orders(), window=4), Wire(server)):
        batch.confirm(batch.reads[:2])
        batch.stop()
    assert server.removed == numbered(0, 1)
    assert server.bodies(ORDERS) == numbered(*range(2, 10))
    assert not server.handles


def test_what_is_refused_comes_again_and_then_it_is_enough() -> None:  # RR-49
    server = filled(2)
    seen = 0

    def read() -> None:
        nonlocal seen
        for batch in batches(Drain(orders()), Wire(server)):
            seen += b"m1" in bodies(batch)
            batch.confirm(read for read in batch.reads if read.message.body == b"m0")

    with pytest.raises(Unsettled, match=r"\\2 was put back 3 times"):
        read()
    assert seen == 3
    assert server.removed == [b"m0"]
    assert server.bodies(ORDERS) == [b"m1"]


def test_what_cannot_be_read_goes_back() -> None:  # RR-49: cannot rebuild -> NACK
    server = filled(3)
    broken = server.queues[ORDERS][1]
    broken.packet, broken.body_at, broken.body_size = broken.packet[:40], 40, 0
    with pytest.raises(Unsettled, match="cannot be read"):
        drained(Drain(orders()), Wire(server))
    assert server.removed == numbered(0, 2)
    assert server.queues[ORDERS] == [broken]


def test_no_request_id_is_used_twice() -> None:  # RR-47; the fake refuses a second one
    server = filled(40)
    assert drained(Drain(orders(), window=3), Wire(server)) == numbered(*range(40))


# -- waiting --------------------------------------------------------------------------------


def test_it_waits_in_slices_of_a_minute() -> None:  # RR-51
    server = new_server()
    assert drained(Drain(orders(), wait_ms=150_000), Wire(server)) == []
    assert server.waits == [60_000, 60_000, 30_000]


def test_one_that_comes_while_it_waits() -> None:
    server = new_server()
    arrivals = iter(numbered(0, 1))
    server.on_wait = lambda: [server.put(ORDERS, body) for body in [*arrivals][:1]]  # type: ignore[assignment]
    assert drained(Drain(orders(), wait_ms=5_000), Wire(server)) == [b"m0"]
    assert server.waits == [5_000, 5_000]  # and again for the next


# -- one message ----------------------------------------------------------------------------


def test_by_lookup_id() -> None:  # section 6, sequence 7
    server = filled(5)
    wanted = server.queues[ORDERS][3].lookup_id
    assert drained(Drain(orders(), lookup_id=wanted), Wire(server)) == [b"m3"]
    assert server.bodies(ORDERS) == numbered(0, 1, 2, 4)
    with pytest.raises(Refused) as raised:
        drained(Drain(orders(), lookup_id=wanted), Wire(server))
    assert raised.value.status == NOT_FOUND


def test_by_lookup_id_of_a_server_without_the_top_byte() -> None:  # RR-55
    server = filled(5)
    server.matches = without_top_byte
    wanted = server.queues[ORDERS][3].lookup_id
    assert drained(Drain(orders(), lookup_id=wanted), Wire(server)) == [b"m3"]


def test_by_lookup_id_when_the_connection_breaks() -> None:
    """The answer is lost, and the server holds the message for the lost connection yet."""
    server = filled(2)
    wire = Wire(server, {2: True}.get)
    wire.notices = False
    wire.on_pause = lambda: server.lose(1) if len(wire.pauses) == 2 else None
    wanted = server.queues[ORDERS][1].lookup_id
    assert drained(Drain(orders(), lookup_id=wanted), wire) == [b"m1"]
    assert len(wire.pauses) == 2
    assert server.removed == [b"m1"]


def test_by_lookup_id_and_refused() -> None:
    server = filled(2)
    wanted = server.queues[ORDERS][1].lookup_id
    (batch,) = batches(Drain(orders(), lookup_id=wanted), Wire(server))
    assert bodies(batch) == [b"m1"]
    assert server.bodies(ORDERS) == numbered(0, 1)
    assert all(stored.is_free for stored in server.queues[ORDERS])


def test_a_queue_that_is_not_there() -> None:
    with pytest.raises(Refused, match="no such queue") as raised:
        drained(Drain(orders("private$\\other")), Wire(new_server()))
    assert raised.value.status == NO_QUEUE


# -- in doubt -------------------------------------------------------------------------------


def test_an_end_that_came_too_late() -> None:  # RR-48: after five minutes it is back
    server = filled(1)
    job = Drain(orders())
    found = []
    for batch in batches(job, Wire(server)):
        found += bodies(batch)
        server.queues[ORDERS][0].lock = None  # RR-26: released meanwhile
        batch.confirm()
    assert found == [b"m0"]  # handed out once
    assert job.repeated == 1
    assert server.removed == [b"m0"]
    assert job.in_doubt == set()


def test_what_an_earlier_run_has_is_removed_and_not_handed_out() -> None:
    server = filled(4)
    job = Drain(orders(), seen=[(HERE, 2), (HERE, 3)])
    assert drained(job, Wire(server)) == numbered(0, 3)
    assert job.repeated == 2
    assert sorted(server.removed) == numbered(0, 1, 2, 3)


def test_ends_that_were_lost_are_looked_for() -> None:
    """The connection breaks with the first End on its way: M0 to M3 are back in the queue."""
    server = filled(4)
    wire = Wire(server, {6: False}.get)  # open, four Starts, End
    job = Drain(orders(), limit=4)
    assert drained(job, wire) == numbered(0, 1, 2, 3)
    assert server.bodies(ORDERS) == []
    assert server.removed == numbered(0, 1, 2, 3)
    assert job.in_doubt == set()


def test_a_server_that_does_not_notice_yet() -> None:
    """Locked for the lost connection: waited for, and not taken for gone."""
    server = filled(4)
    wire = Wire(server, {6: False}.get)
    wire.notices = False
    wire.on_pause = lambda: server.lose(1) if len(wire.pauses) == 3 else None
    assert drained(Drain(orders(), limit=4), wire) == numbered(0, 1, 2, 3)
    assert len(wire.pauses) == 3
    assert server.bodies(ORDERS) == []


def test_a_server_that_never_notices() -> None:
    """What it holds for ever is not waited for for ever; it is in doubt, and told so."""
    server = filled(4)
    wire = Wire(server, {6: False}.get)
    wire.notices = False
    job = Drain(orders(), limit=4)
    assert drained(job, wire) == numbered(0, 1, 2, 3)
    assert sum(wire.pauses) == 5_000
    assert len(job.in_doubt) == 4


def test_an_empty_answer_after_a_loss_is_not_believed_at_once() -> None:
    """Starts in flight when the connection broke: what they locked is on its way back."""
    server = filled(3)
    wire = Wire(server, {4: True}.get)
    wire.notices = False
    server.on_wait = lambda: server.lose(1)
    assert drained(Drain(orders()), wire) == numbered(0, 1, 2)
    assert server.waits[0] == 5_000


def test_the_other_message_under_an_old_number() -> None:
    """A lookup id that now names another message removes nothing."""
    server = filled(2)
    wire = Wire(server, {4: False}.get)  # before the first End
    job = Drain(orders(), limit=2)
    found = []
    for batch in batches(job, wire):
        found += bodies(batch)
        batch.confirm()
        first, second = server.queues[ORDERS]
        first.lookup_id, second.lookup_id = second.lookup_id, first.lookup_id
    assert found == numbered(0, 1)
    assert server.removed == []
    assert len(job.in_doubt) == 2


@settings(max_examples=200)
@given(
    count=st.integers(0, 40),
    window=st.integers(1, 12),
    limit=st.none() | st.integers(0, 40),
    breaks=st.dictionaries(st.integers(1, 160), st.booleans(), max_size=10),
    refuse=st.sets(st.integers(0, 39), max_size=2),
)
def test_lost_at_any_call(
    count: int, window: int, limit: int | None, breaks: dict[int, bool], refuse: set[int]
) -> None:
    """Nothing lost, nothing doubled: each is confirmed once, or still in the queue."""
    server = filled(count)
    patience = dict.fromkeys(refuse, 1)
    confirmed: list[bytes] = []
    job = Drain(orders(), window=window, limit=limit)
    for batch in batches(job, Wire(server, breaks.get)):
        for read in batch.reads:
            number = int(read.message.body[1:])
            if patience.get(number, 0):  # the disk was full, once
                patience[number] -= 1
                continue
            confirmed.append(read.message.body)
            batch.confirm([read])
    wanted = count if limit is None else min(limit, count)
    assert len(confirmed) == len(set(confirmed)) == wanted
    assert sorted([*confirmed, *server.bodies(ORDERS)]) == sorted(numbered(*range(count)))
    assert all(stored.is_free for stored in server.queues[ORDERS])
    if not refuse:
        assert confirmed == numbered(*range(wanted))  # in order
    assert job.in_doubt == set() or breaks


def test_keys() -> None:  # RR-48: (SourceQueueManager, MessageID)
    batch = next(batches(Drain(orders(), limit=1), Wire(filled(1))))
    assert key_of(batch.reads[0]) == (HERE, 1)
