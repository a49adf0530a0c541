"""Messages for other hosts between a shard and whoever hands them on: SR-15; design D1, D3."""

import asyncio
import time
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters import intake as module
from bridge.adapters.intake import ShardPump
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.telemetry import Telemetry
from bridge.core.forwards import Ending
from bridge.core.ports import Forward
from bridge.model.message import Message
from tests.adapters.test_intake import SOON, Sink
from tests.core.letters import envelope, letter
from tests.core.posts import posting_shard


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", (0.0,))


class World:
    def __init__(self, plan: Sequence[str] = ()) -> None:
        self.log = MemoryLog()
        self.sink = Sink(self.log, plan)
        self.pump = ShardPump(posting_shard(), self.sink, Telemetry())
        self.told: list[tuple[Forward, int]] = []  # and units until then
        self.pump.on_forwards = lambda forwards, _: self.told.extend(
            (forward, self.log.units) for forward in forwards
        )
        self.statuses: list[str] = []

    def post(self, number: int) -> None:
        message = letter(envelope(number), b"%d" % number, arrived_ms=int(time.time() * 1000))
        self.submit(message)

    def submit(self, message: Message) -> None:
        self.pump.submit([message], lambda verdicts: self.statuses.append(verdicts[0].outcome))

    async def drain(self) -> None:
        await asyncio.wait_for(self.pump.drain(), SOON)

    @property
    def rows(self) -> list[str]:
        return [key for key in self.log.state if key.startswith("forward/")]

    @property
    def reasons(self) -> list[str]:
        entries = [e for value in self.log.audit for e in msgspec.json.decode(value)]
        return [entry["reason"] for entry in entries]


async def playing(world: World) -> asyncio.Task[None]:
    await world.pump.open()
    return asyncio.create_task(world.pump.run())


async def stop(world: World, task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await world.pump.close()


WAITS, TAKEN = "waits-for-the-next-hop", "taken-by-the-next-hop"
REFUSED, EXPIRED = "refused-by-the-next-hop", "time-to-reach-queue-over"


def test_it_may_leave_after_the_commit_and_not_before() -> None:  # design D1
    async def run() -> None:
        world = World()
        task = await playing(world)
        world.sink.gate.clear()
        world.post(1)
        await asyncio.wait_for(world.sink.publishing.wait(), SOON)
        world.post(2)
        assert (world.told, world.statuses) == ([], [])
        world.sink.gate.set()
        await world.drain()
        assert [(forward.ordinal, units) for forward, units in world.told] == [(7001, 1), (7002, 2)]
        assert world.statuses == ["forwarded", "forwarded"]
        await stop(world, task)

    asyncio.run(run())


@pytest.mark.parametrize("failure", ["before", "after"])
@pytest.mark.parametrize("ending", [Ending.TAKEN, Ending.REFUSED])
def test_an_end_survives_a_failed_unit(failure: str, ending: Ending) -> None:  # design D3
    async def run() -> None:
        world = World()
        task = await playing(world)
        world.post(1)
        await world.drain()
        world.sink.plan = [failure]
        world.pump.forward_ended(world.told[0][0], ending)
        await world.drain()
        assert world.rows == []
        assert world.reasons == [WAITS, TAKEN if ending is Ending.TAKEN else REFUSED]  # told once
        assert len(world.log.rejects) == (ending is Ending.REFUSED)
        assert len(world.told) == 1  # what has ended is not handed on again
        await stop(world, task)

    asyncio.run(run())


def test_after_a_start_all_that_waits_is_told() -> None:
    async def run() -> None:
        world = World()
        task = await playing(world)
        for number in range(1, 5):
            world.post(number)
        await world.drain()
        world.pump.forward_ended(world.told[1][0], Ending.TAKEN)
        await world.drain()
        await stop(world, task)
        fresh = ShardPump(posting_shard(), MemoryShardSink(world.log), Telemetry())
        told: list[Forward] = []
        fresh.on_forwards = lambda forwards, _: told.extend(forwards)
        await fresh.open()
        assert told == [world.told[n][0] for n in (0, 2, 3)]
        await fresh.close()

    asyncio.run(run())


def test_many_that_end_at_once_are_several_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction of thousands of rejects would not end in time."""
    monkeypatch.setattr(module, "TASKS_AT_ONCE", 3)

    async def run() -> None:
        world = World()
        task = await playing(world)
        for number in range(1, 9):
            world.post(number)
        await world.drain()
        before = world.log.units
        for forward, _ in world.told:
            world.pump.forward_ended(forward, Ending.EXPIRED)
        await world.drain()
        assert world.log.units - before == 3
        assert [record.value for record in world.log.rejects] == [b"%d" % n for n in range(1, 9)]
        monkeypatch.setattr(module, "TASK_BYTES", 1)
        for number in (1, 2):
            world.post(number)
        await world.drain()
        before = world.log.units
        for forward, _ in world.told[-2:]:
            world.pump.forward_ended(forward, Ending.TAKEN)
        await world.drain()
        assert world.log.units - before == 2
        assert world.rows == []
        await stop(world, task)

    asyncio.run(run())


def test_the_packet_counts_while_it_is_not_committed() -> None:
    async def run() -> None:
        world = World()
        message = letter(envelope(1), bytes(5000))
        assert message.srmp is not None
        assert message.srmp.onward is not None
        world.submit(message)
        held = len(message.body) + len(message.soap) + len(message.srmp.onward.packet)
        assert world.pump.pending_bytes == held
        task = await playing(world)
        await world.drain()
        assert world.pump.pending_bytes == 0
        await stop(world, task)

    asyncio.run(run())


plans = st.lists(st.sampled_from(["", "before", "after"]), max_size=12)
endings = st.lists(st.sampled_from(list(Ending)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(plans, endings)
def test_nothing_vanishes_under_any_failures(plan: list[str], ends: list[Ending]) -> None:
    """Whoever heard 200 is handed on or has a verdict; each ends once."""

    async def run() -> None:
        world = World(plan)
        task = await playing(world)
        ended: dict[int, Ending] = {}

        def hand_on(forwards: Sequence[Forward], pump: ShardPump) -> None:
            for forward in forwards:
                if forward.ordinal not in ended:
                    ended[forward.ordinal] = ends[len(ended) % len(ends)]
                    pump.forward_ended(forward, ended[forward.ordinal])

        world.pump.on_forwards = hand_on
        for number in range(1, 7):
            world.post(number)
            if number % 2:
                await asyncio.sleep(0)
        await world.drain()
        while world.rows:  # a shard that is opened anew has them handed on at last
            await world.drain()
        assert world.statuses == ["forwarded"] * 6
        assert len(ended) == 6
        assert world.reasons.count(WAITS) == 6
        for ending, reason in zip(Ending, (TAKEN, REFUSED, EXPIRED), strict=True):
            assert world.reasons.count(reason) == list(ended.values()).count(ending)
        assert len(world.log.rejects) == 6 - list(ended.values()).count(Ending.TAKEN)
        await stop(world, task)

    asyncio.run(run())
