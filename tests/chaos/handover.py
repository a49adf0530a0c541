"""Two bridges of one identity, one leads: planned hand-overs, kills, a leader that stands still.

A sender finds the leader by its address, which moves with it; connections to one that is frozen
stay, and what was sent there arrives when it goes on: by then it must not say a word about it.
"""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import psutil

from tests.chaos.faults import ACTIONS, FENCED_S, World
from tests.chaos.fleet import KINDS
from tests.chaos.history import Handover
from tests.chaos.launcher import POINTS
from tests.chaos.patient import Patient
from tests.chaos.process import Bridge
from tests.chaos.schedule import Step
from tests.chaos.senders import RETAINED_KINDS

HANDOVER: Final = "handover"
HANDOVER_KINDS: Final = (*RETAINED_KINDS, *KINDS)  # however few they are, readers have something
LEASE_S: Final = 6.0  # the default, and what brokers take
LEAD_S: Final = 60.0
STOP_S: Final = 30.0
STILL: Final = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
WAITING, LEADING = "standby: waiting", "leading: taking over"
# How one ends that is told that it leads no more.
STEPPED_DOWN: Final = ("another appliance leads", "was taken over by another appliance")


class Pair(World):
    """`bridge` leads, `_other` is its standby."""

    async def _start(self) -> None:
        await asyncio.to_thread(self.bridge.start)
        await self._start_standby()
        self.patient = Patient(lambda: self._place("binary"), self.history.breaks)
        await self.patient.start()

    async def stop(self) -> None:
        if hasattr(self, "patient"):
            await self.patient.stop()
        await super().stop()

    async def _start_standby(self) -> None:
        self._other.launch()
        await asyncio.to_thread(self._other.wait_line, WAITING)

    async def _act(self, step: Step) -> None:
        await self._check_alive()  # again: a lease that ran out may have gone to the other one
        self._signalled = time.monotonic()
        await {**ACTIONS, **HANDOVERS}[step.action](self, step)

    def _ended_early(self, point: str) -> None:
        if _stepped_down(self.bridge):
            self.history.events["leaders that stepped down"] += 1
        else:
            super()._ended_early(point)

    async def _end_bridge(self, name: str) -> None:
        self._signalled = time.monotonic()
        await super()._end_bridge(name)

    async def _start_bridge(self, *, empty: bool = False) -> None:
        """Whenever the leader is gone: the standby leads, and gets a standby in turn."""
        await self._follow("killed", self._signalled)
        if empty:
            self._other.empty_data()
        await self._start_standby()

    async def _follow(self, kind: str, at: float) -> None:
        """The other one leads, and the address is its own."""
        gone, new = self.bridge, self._other
        await asyncio.to_thread(new.wait_line, LEADING, LEAD_S)
        leading = time.monotonic()
        await asyncio.to_thread(new.wait_ready, LEAD_S)
        self.history.handovers.append(Handover(kind, at, leading, time.monotonic()))
        self.bridge, self._other, self._in_service = new, gone, [new]

    async def _check_alive(self) -> None:
        """One that was silent for too long may step down; the other then leads."""
        leader, standby = self.bridge, self._other
        if leader.started and not leader.alive and _stepped_down(leader):
            at = time.monotonic()
            await asyncio.to_thread(leader.kill)
            self.history.events["leaders that stepped down"] += 1
            await self._follow("stepped down", at)
            await self._start_standby()
        elif standby.started and not standby.alive:
            self.history.surprises.append(f"the standby ended by itself: {standby.lines[-3:]}")
            await asyncio.to_thread(standby.kill)
            await self._start_standby()
        await super()._check_alive()

    # -- what is done to them ---------------------------------------------------------------

    async def hand_over(self, step: Step) -> None:
        await self._plan("planned", step)

    async def _plan(self, kind: str, step: Step) -> None:
        leader, at = self.bridge, time.monotonic()
        leader.send(signal.SIGTERM)
        ended = asyncio.create_task(asyncio.to_thread(leader.process.wait, STOP_S))
        await self._follow(kind, at)
        code = await ended
        if code != 0:
            self.history.surprises.append(f"told to stop, it ended with {code}")
        await asyncio.to_thread(leader.kill)
        if step.flag:
            leader.empty_data()
        await self._start_standby()

    async def hand_over_without_kafka(self, step: Step) -> None:
        since = await self._freeze()
        thaw = asyncio.get_running_loop().call_later(step.seconds, self._thaw, since)
        try:
            await self._plan("planned, broker frozen", step)
        finally:
            if not thaw.cancelled() and thaw.when() > asyncio.get_running_loop().time():
                thaw.cancel()
                self._thaw(since)

    async def freeze_leader(self, step: Step) -> None:
        """Until the other one leads, and longer; then it must find out, and end."""
        leader, at = self.bridge, time.monotonic()
        leader.send(signal.SIGSTOP)
        await _stands_still(leader.pid)
        await self._follow("frozen", at)
        await asyncio.sleep(step.seconds)
        leader.send(signal.SIGCONT)
        if not await asyncio.to_thread(leader.reap, min(FENCED_S, self.patience_s)):
            self.history.surprises.append("it leads no more, and stays")
            await asyncio.to_thread(leader.kill)
        await self._start_standby()

    async def freeze_leader_shortly(self, step: Step) -> None:
        """Less than its lease: it leads on."""
        leader = self.bridge
        leader.send(signal.SIGSTOP)
        await _stands_still(leader.pid)
        await asyncio.sleep(step.seconds)
        leader.send(signal.SIGCONT)
        self.history.events["leaders frozen for less than their lease"] += 1

    async def kill_standby(self, step: Step) -> None:
        await asyncio.to_thread(self._other.kill)
        self.kills["bridge: standby"] += 1
        if step.flag:
            self._other.empty_data()
        await self._start_standby()

    async def kill_both_bridges(self, step: Step) -> None:
        """The second one while it takes over."""
        first, second = self.bridge, self._other
        await self._end_bridge("leader")
        await asyncio.to_thread(second.wait_line, LEADING, LEAD_S)
        await asyncio.sleep(step.seconds)
        await asyncio.to_thread(second.kill)
        self.kills["bridge: standby while it took over"] += 1
        second.launch()
        await self._follow("killed twice", self._signalled)
        assert self._other is first
        await self._start_standby()


HANDOVERS: Final[Mapping[str, Callable[[Pair, Step], Awaitable[None]]]] = {
    "hand over": Pair.hand_over,
    "hand over while the broker is frozen": Pair.hand_over_without_kafka,
    "freeze leader": Pair.freeze_leader,
    "freeze leader shortly": Pair.freeze_leader_shortly,
    "kill standby": Pair.kill_standby,
    "kill leader and standby": Pair.kill_both_bridges,
}


def handovers(seed: int) -> Iterator[Step]:
    """Without end, in blocks that have every kind, as in schedule.py."""
    rng = random.Random(seed)
    while True:
        block = _block(rng)
        rng.shuffle(block)
        yield from block


def _block(rng: random.Random) -> list[Step]:
    def step(action: str, seconds: float = 0.0, **more: float) -> Step:
        flag = rng.random() < 0.3
        return Step(action=action, gap=rng.uniform(0, 1.5), seconds=seconds, flag=flag, **more)  # type: ignore[arg-type]

    kills = [
        Step(action="kill bridge", gap=rng.uniform(0, 1), point=point, count=rng.randrange(1, 6))
        for point in rng.sample(POINTS, 3)
    ]
    return [
        *(step("hand over") for _ in range(4)),
        step("hand over while the broker is frozen", rng.uniform(0.5, 4)),
        *(step("freeze leader", rng.uniform(0, 4)) for _ in range(2)),
        step("freeze leader shortly", rng.uniform(0.2, LEASE_S / 2)),
        step("kill standby"),
        step("kill leader and standby", rng.uniform(0, 1)),
        *(step("kill bridge") for _ in range(2)),
        *kills,
        step("freeze broker", rng.uniform(0.5, 8)),  # now and then longer than the lease
        step("kill broker", rng.uniform(0.1, 2)),
        step("cut mid-packet", share=rng.uniform(0.2, 1)),
        step("swallow acks, then cut", rng.uniform(0.3, 2), share=rng.uniform(0.2, 0.8)),
        step("senders restart", share=rng.uniform(0.2, 0.6)),
    ]


def _stepped_down(bridge: Bridge) -> bool:
    return any(why in line for line in bridge.lines[-10:] for why in STEPPED_DOWN)


async def _stands_still(pid: int) -> None:
    """Or has just ended: after an outage longer than the lease another one may lead."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.status() not in STILL:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)
