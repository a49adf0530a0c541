"""RR-54, RR-55: messages in order, from the head or behind a lookup id, and none touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.scan import Scan
from bridge.protocol.rpc.reader.spelling import Spelling
from tests.protocol.rpc.reader.fake_server import (
    DENIED,
    FakeServer,
    by_low_bits,
    exactly,
    new_server,
    without_top_byte,
)
from tests.protocol.rpc.reader.running import ORDERS, Wire, batches, bodies, orders, scanned


def filled(count: int, server: FakeServer | None = None, **options: int) -> FakeServer:
    server = server or new_server()
    for number in range(count):
        server.put(ORDERS, b"m%d" % number, **options)  # type: ignore[arg-type]
    return server


def numbered(*numbers: int) -> list[bytes]:
    return [b"m%d" % number for number in numbers]


def test_an_empty_queue() -> None:  # C00E001B at once
    server = new_server()
    assert scanned(server) == []
    assert server.calls == [2, 4, 7, 3]  # open, cursor, peek, close: RR-56


def test_all_of_it_in_order_and_untouched() -> None:  # section 6, sequence 6
    server = filled(100)
    assert scanned(server) == numbered(*range(100))
    assert server.bodies(ORDERS) == numbered(*range(100))
    assert not server.handles
    assert set(server.most_body) == {0xFFFFFFFF}  # RR-48: never cut


def test_priority_first_then_arrival() -> None:  # DM-20
    server = new_server()
    for body, priority in ((b"a", 0), (b"b", 7), (b"c", 3), (b"d", 7)):
        server.put(ORDERS, body, priority=priority)
    assert scanned(server) == [b"b", b"d", b"c", b"a"]


def test_several_peeks_are_in_flight() -> None:
    wire = Wire(filled(300))
    assert sum(len(batch.reads) for batch in batches(Scan(orders(), window=32), wire)) == 300
    assert wire.widest == 32


def test_large_messages_have_fewer_in_flight() -> None:
    server = new_server()
    for number in range(24):
        server.put(ORDERS, bytes((number,)) * (4 << 20))
    wire = Wire(server)
    seen = [len(batch.reads) for batch in batches(Scan(orders()), wire)]
    assert sum(seen) == 24
    assert wire.widest <= 8  # of 32 MiB


@pytest.mark.parametrize("limit", [0, 1, 5, 64, 1000])
def test_no_more_than_wanted(limit: int) -> None:
    assert scanned(filled(70), limit=limit) == numbered(*range(min(limit, 70)))


def test_a_reader_that_stops() -> None:
    server = filled(100)
    for batch in batches(Scan(orders(), window=4), Wire(server)):
        batch.stop()
    assert server.calls[-1] == 3
    assert not server.handles


# -- behind a lookup id ---------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0, 1, 5])
def test_behind_a_lookup_id(gap: int) -> None:  # MQ_LOOKUP_PEEK_NEXT, and guesses
    server = filled(50, gap=gap)
    ids = [stored.lookup_id for stored in server.queues[ORDERS]]
    assert scanned(server, after=ids[9]) == numbered(*range(10, 50))
    assert scanned(server, after=ids[9], until=ids[19]) == numbered(*range(10, 20))
    assert scanned(server, after=ids[49]) == []
    assert 4 not in server.calls  # no cursor


def test_guesses_are_in_flight_when_ids_are_dense() -> None:
    server = filled(200)
    wire = Wire(server)
    job = Scan(orders(), after=server.queues[ORDERS][0].lookup_id, window=16)
    assert [b for batch in batches(job, wire) for b in bodies(batch)] == numbered(*range(1, 200))
    assert wire.widest == 16


@given(
    gaps=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    priorities=st.lists(st.integers(0, 7), min_size=40, max_size=40),
    start=st.integers(0, 39),
    window=st.integers(1, 9),
)
def test_any_gaps_and_priorities(
    gaps: list[int], priorities: list[int], start: int, window: int
) -> None:
    server = new_server()
    for number, gap in enumerate(gaps):
        server.put(ORDERS, b"m%d" % number, gap=gap, priority=priorities[number])
    everything = server.bodies(ORDERS)
    assert scanned(server, window=window) == everything
    start %= len(gaps)
    anchor = server.queues[ORDERS][start].lookup_id
    assert scanned(server, after=anchor, window=window) == everything[start + 1 :]


def test_an_anchor_that_is_gone() -> None:
    """Nobody can say what is behind it: a cursor walks there and looks at headers only."""
    server = filled(60)
    anchor = server.queues[ORDERS][29]
    server.take(ORDERS, anchor)
    assert scanned(server, after=anchor.lookup_id) == numbered(*range(30, 60))
    assert 0 in server.most_body  # RR-33


def test_an_anchor_that_somebody_holds() -> None:  # "a locked anchor is a valid anchor"
    server = filled(5)
    for stored in server.queues[ORDERS][3:]:
        stored.lock = (b"another", 1)
    assert scanned(server, after=server.queues[ORDERS][4].lookup_id) == []
    assert scanned(server, after=server.queues[ORDERS][1].lookup_id) == numbered(2)
    assert 4 not in server.calls


def test_the_top_byte_of_a_lookup_id() -> None:  # RR-55, T-1
    server = filled(10)
    ids = [stored.lookup_id for stored in server.queues[ORDERS]]
    assert ids[0] >> 56 == 7 - 3
    spelling = Spelling()
    for matches, is_low in ((exactly, False), (without_top_byte, True), (by_low_bits, True)):
        server.matches = matches
        assert scanned(server, after=ids[3], spelling=spelling) == numbered(*range(4, 10))
        assert spelling.is_low is is_low  # remembered per host


def test_the_top_byte_where_the_anchor_is_gone() -> None:
    server = filled(10)
    anchor = server.queues[ORDERS][3]
    server.take(ORDERS, anchor)
    server.matches = without_top_byte
    assert scanned(server, after=anchor.lookup_id) == numbered(*range(4, 10))


def test_transactional_messages_have_the_lowest_priority() -> None:  # RR-55: PR 0 -> 07
    server = new_server()
    for number in range(5):
        server.put(ORDERS, b"m%d" % number, transactional=True)
    server.matches = exactly
    first = server.queues[ORDERS][0].lookup_id
    assert first >> 56 == 7
    assert scanned(server, after=first) == numbered(1, 2, 3, 4)


# -- others at work -------------------------------------------------------------------------


def test_a_message_that_vanishes_under_the_cursor() -> None:  # RR-54: C00E001D
    server = filled(40)
    found = []
    for batch in batches(Scan(orders(), window=4), Wire(server)):
        found += bodies(batch)
        for stored in list(server.queues[ORDERS]):
            if stored.lookup_id == batch.reads[-1].lookup_id:
                server.take(ORDERS, stored)
    assert found == numbered(*range(40))


def test_what_others_hold_is_passed_by() -> None:  # 2.5: locked is invisible
    server = filled(10)
    for stored in server.queues[ORDERS][2:4]:
        stored.lock = (b"another", 1)
    assert scanned(server) == numbered(0, 1, *range(4, 10))


def test_a_queue_that_does_not_open() -> None:  # RR-57
    server = new_server()
    server.open_status = DENIED
    with pytest.raises(Refused, match="may not do that") as raised:
        scanned(server)
    assert raised.value.status == DENIED


# -- packets --------------------------------------------------------------------------------


def test_servers_without_extension_headers() -> None:  # RR `<5>`-`<8>`: Windows Server 2003
    server = filled(3, new_server(has_extensions=False))
    assert scanned(server) == numbered(0, 1, 2)
    server.take(ORDERS, gone := server.queues[ORDERS][0])
    assert scanned(server, after=gone.lookup_id) == numbered(1, 2)  # cut, in one section


def test_a_packet_that_cannot_be_read_is_named() -> None:
    server = filled(9)
    broken = server.queues[ORDERS][4]
    broken.packet = broken.packet[:40]
    broken.body_size = 0
    broken.body_at = 40
    for after in (None, server.queues[ORDERS][1].lookup_id):
        job = Scan(orders(), after=after)
        found = [body for batch in batches(job, Wire(server)) for body in bodies(batch)]
        assert found == numbered(*range(0 if after is None else 2, 4), *range(5, 9))
        assert [lookup_id & 0xFFFF for lookup_id in job.unreadable] == [5]


# -- lost connections -----------------------------------------------------------------------


@given(
    count=st.integers(0, 60),
    window=st.integers(1, 20),
    gap=st.integers(0, 1),
    breaks=st.dictionaries(st.integers(1, 150), st.booleans(), max_size=8),
    gone=st.booleans(),
)
def test_it_goes_on_behind_the_last_one(
    count: int, window: int, gap: int, breaks: dict[int, bool], gone: bool
) -> None:
    """Nothing is left out, nothing comes twice, wherever the connection breaks."""
    server = filled(count, gap=gap)
    found = []
    for batch in batches(Scan(orders(), window=window), Wire(server, breaks.get)):
        found += bodies(batch)
        if gone:  # somebody receives what was seen: no anchor is left
            for read in batch.reads:
                server.take(ORDERS, next(s for s in server.queues[ORDERS]))
                assert read
    assert found == numbered(*range(count))
