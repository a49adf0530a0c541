"""A long queue falls into parts that have every message once. RR-55"""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.protocol.rpc.reader.cuts import cuts
from bridge.protocol.rpc.reader.opening import Client
from bridge.protocol.rpc.reader.spelling import Spelling
from tests.protocol.rpc.reader.fake_server import FakeServer, exactly, new_server
from tests.protocol.rpc.reader.running import ORDERS, Wire, finish, orders, scanned


def found(server: FakeServer, parts: int = 4, per_part: int = 20) -> list[int]:
    made = cuts(orders(), parts, Spelling(), Client(), per_part)
    return list(finish(made, Wire(server)))


def filled(count: int, gap: int = 0, priorities: tuple[int, ...] = (3,)) -> FakeServer:
    server = new_server()
    for number in range(count):
        server.put(ORDERS, b"m%d" % number, gap=gap, priority=priorities[number % len(priorities)])
    return server


def in_parts(server: FakeServer, at: list[int]) -> list[list[bytes]]:
    ends = [None, *at, None]
    return [scanned(server, after=after, until=until) for after, until in pairwise(ends)]


def test_parts_of_about_the_same_length() -> None:
    server = filled(400)
    at = found(server)
    assert len(at) == 3
    assert set(server.most_body) == {0}  # headers only
    assert not server.handles
    parts = in_parts(server, at)
    assert [body for part in parts for body in part] == server.bodies(ORDERS)
    assert all(50 <= len(part) <= 150 for part in parts)


def test_no_more_parts_than_are_worth_it() -> None:
    assert len(found(filled(90), parts=8)) == 3


@pytest.mark.parametrize("count", [0, 1, 2, 39])
def test_a_short_queue_is_one_part(count: int) -> None:
    assert found(filled(count)) == []


def test_one_reader_wants_one_part() -> None:
    assert found(filled(400), parts=1) == []


def test_numbers_with_large_gaps_are_not_worth_it() -> None:
    assert found(filled(100, gap=30)) == []


def test_nor_are_many_priorities() -> None:
    """Behind one message another number follows next, seldom one of its own priority."""
    assert found(filled(400, gap=1, priorities=tuple(range(8)))) == []


def test_a_host_that_does_not_tell_its_end() -> None:  # D-17: only some do
    server = filled(400)
    server.tells_its_end = False
    assert found(server) == []


def test_a_host_that_wants_the_whole_number() -> None:  # T-1
    server = filled(400, priorities=(3, 5))
    server.matches = exactly
    at = found(server)
    assert at
    assert [b for part in in_parts(server, at) for b in part] == server.bodies(ORDERS)


@settings(max_examples=25)
@given(
    count=st.integers(25, 80),
    gap=st.integers(0, 3),
    priorities=st.lists(st.integers(0, 7), min_size=1, max_size=5).map(tuple),
    parts=st.integers(2, 6),
)
def test_every_message_once_whatever_its_priority(
    count: int, gap: int, priorities: tuple[int, ...], parts: int
) -> None:
    server = filled(count, gap, priorities)
    at = found(server, parts, per_part=10)
    assert at == sorted(set(at))
    assert len(at) < parts
    assert [b for part in in_parts(server, at) for b in part] == server.bodies(ORDERS)


def test_a_cut_that_somebody_has_received_meanwhile() -> None:
    server = filled(200)
    at = found(server)
    (gone,) = [s for s in server.queues[ORDERS] if s.lookup_id == at[0]]
    server.take(ORDERS, gone)
    assert [b for part in in_parts(server, at) for b in part] == server.bodies(ORDERS)
