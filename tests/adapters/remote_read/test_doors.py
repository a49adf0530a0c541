"""Queues that are known by a number. RR-38, MP-56"""

import pytest

from bridge.adapters.remote_read.doors import Door
from bridge.core.remote_read.codes import Failed
from bridge.wire.rpc.remote_read import GetServerPort
from tests.adapters.remote_read.world import World, call, name, running

WHO = call(GetServerPort())


@running
async def test_numbers_are_random_and_never_zero() -> None:
    world = World()
    given = iter([bytes(4), b"\1\0\0\0", b"\1\0\0\0", b"\2\0\0\0"])
    world.doors._random = lambda size: next(given)
    numbers = [world.doors.open(WHO, name(), 1, 0).number for _ in range(2)]
    assert numbers == [1, 2]


@running
async def test_a_session_is_one_that_is_ready() -> None:
    world = World()
    door = world.doors.open(WHO, name(), 1, 0)
    assert world.doors.get(door.number) is door
    assert world.doors.session(door.number) is None
    door.is_ready = True
    assert world.doors.session(door.number) is door
    assert world.doors.session(0) is None


@running
async def test_closing_is_told_once() -> None:
    world = World()
    told: list[Door] = []
    world.doors.on_closed = told.append
    door = world.doors.open(WHO, name(), 1, 0)
    world.doors.close(door)
    world.doors.close(door)
    assert told == [door]
    assert len(world.owner.queues.handles) == len(world.doors) == 0


@running
async def test_tags_are_never_used_again() -> None:
    world = World()
    assert world.doors.next_tag() != world.doors.next_tag()


def test_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.adapters.remote_read.doors.MOST_DOORS", 1)
    world = World()
    world.doors.open(WHO, name(), 1, 0)
    with pytest.raises(Failed) as caught:
        world.doors.open(WHO, name(), 1, 0)
    assert caught.value.status == 0xC00E0027
