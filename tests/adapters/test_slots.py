"""Slots that addresses share fairly."""

import asyncio
from collections.abc import Callable

from bridge.adapters.slots import FairSlots
from tests.adapters.net.memory_server import run


class Room:
    def __init__(self, most: int, by_address: int) -> None:
        self.slots = FairSlots(most, by_address)
        self.inside: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, name: str) -> None:
        """`name` is an address and a number, as in a1."""
        self.gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._visit(name))

    async def _visit(self, name: str) -> None:
        async with self.slots.one_for(name[0]):
            self.inside.append(name)
            await self.gates[name].wait()
            self.inside.remove(name)

    async def leave(self, name: str) -> None:
        self.gates[name].set()
        await self.tasks[name]
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def play(scene: Callable[[Room], object], most: int, by_address: int) -> None:
    async def whole() -> None:
        room = Room(most, by_address)
        await scene(room)  # type: ignore[misc]
        for name in list(room.tasks):
            room.tasks[name].cancel()
        await settle()
        assert room.slots.in_use == 0
        assert room.slots._free == most

    run(whole())


def test_an_address_has_its_share() -> None:
    async def scene(room: Room) -> None:
        for name in ("a1", "a2", "a3", "b1"):
            room.ask(name)
        await settle()
        assert room.inside == ["a1", "a2", "b1"]
        await room.leave("b1")
        assert room.inside == ["a1", "a2"]
        await room.leave("a1")
        assert room.inside == ["a2", "a3"]

    play(scene, 4, 2)


def test_addresses_take_turns() -> None:
    async def scene(room: Room) -> None:
        for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
            room.ask(name)
        await settle()
        order = []
        while room.inside:
            order += room.inside
            await room.leave(room.inside[0])
        assert order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]

    play(scene, 1, 1)


def test_one_that_gives_up_takes_no_slot() -> None:
    async def scene(room: Room) -> None:
        for name in ("a1", "a2", "a3"):
            room.ask(name)
        await settle()
        room.tasks["a2"].cancel()
        await settle()
        await room.leave("a1")
        assert room.inside == ["a3"]

    play(scene, 1, 1)


def test_one_that_gives_up_in_the_very_moment_gives_its_slot_back() -> None:
    async def scene(room: Room) -> None:
        slots = room.slots
        await slots._take("a")
        second = asyncio.create_task(slots._take("a"))
        await settle()
        slots._give_back("a")  # the second is granted its turn, and has not run yet
        assert slots.in_use == 1
        second.cancel()
        room.ask("a3")
        await settle()
        assert room.inside == ["a3"]

    play(scene, 1, 1)
