"""The bridge, its broker, its network and its senders; and what can be done to them."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import psutil

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos import hostile, posting_faults
from tests.chaos.fleet import KINDS, QUEUE_NAMES, Fleet, make_fleet
from tests.chaos.history import History, Outage
from tests.chaos.makers import FRESH
from tests.chaos.process import USERS, Bridge
from tests.chaos.proxy import CALM, Link, Proxy, Weather
from tests.chaos.readers import Readers
from tests.chaos.reading import probe
from tests.chaos.remote_readers import RemoteReaders
from tests.chaos.schedule import Step
from tests.chaos.senders import RETAINED
from tests.outside.rawconnection import Address

ARMED_S: Final = 12.0  # in which a crash point is reached under load
FENCED_S: Final = 40.0
WEATHER_S: Final = 6.0
GOING_ON: Final = 25  # messages done: it works again
VISIT: Final = 24  # messages at most that a sender has at once for a new queue
PATIENCE_S: Final = 120.0


class StuckError(Exception):
    """Nothing moves although nothing is in its way."""


class World:
    def __init__(
        self,
        broker: EmbeddedKafka,
        folder: Path,
        prefix: str,
        seed: int,
        *,
        senders: int,
        kinds: Sequence[str] = KINDS,
        patience_s: float = PATIENCE_S,
        bug: str = "",
        lease_s: float = 0.0,
        is_hostile: bool = False,
    ) -> None:
        rng = random.Random(seed)
        self.broker = broker
        self.patience_s = patience_s
        self.history = History()
        self.kills: Counter[str] = Counter()
        self.rng = random.Random(rng.getrandbits(64))
        guid = UUID(bytes=rng.randbytes(16), version=4)
        bootstrap = broker.bootstrap_servers
        self.journal = f"{prefix}-journal"
        kept = {"mode": "retain", "journal": self.journal, "allow_read": list(USERS)}
        retained: dict[str, Mapping[str, object]] = {RETAINED: kept}
        if is_hostile:
            retained |= hostile.queues()
        self.bridge, self._other = (
            Bridge(
                folder / name,
                bootstrap,
                prefix,
                guid,
                bug,
                retained,
                lease_s=lease_s,
                manager=hostile.MANAGER if is_hostile else None,
            )
            for name in ("bridge-1", "bridge-2")
        )
        self.topics = [self.bridge.topic(name) for name in QUEUE_NAMES]
        self.binary = Proxy(lambda: self._place("binary"), random.Random(rng.getrandbits(64)))
        self.http = Proxy(lambda: self._place("srmp"), random.Random(rng.getrandbits(64)), 0)
        self.fleet: Fleet = make_fleet(
            senders,
            kinds,
            rng,
            self.history,
            prefix,
            (lambda: self.binary.address, lambda: self.http.address),
        )
        self.rpc = Proxy(lambda: self._place("rpc"), random.Random(rng.getrandbits(64)), 0)
        self.proxies = (self.binary, self.http, self.rpc)
        remote = RemoteReaders(
            RETAINED, lambda: self.rpc.address, self.history, random.Random(rng.getrandbits(64))
        )
        self.readers = Readers(RETAINED, lambda: self._place("admin"), self.history, remote)
        self._in_service = [self.bridge]
        self.is_hostile = is_hostile
        self.memory = hostile.Memory(lambda: self.bridge.pid if self.bridge.alive else None)
        self.doomed = hostile.Doomed(
            self.bridge.topic(hostile.DOOMED), prefix, rng, lambda: self.binary.address
        )
        self._made = 0  # topics, by messages
        self.later: set[asyncio.Task[None]] = set()  # ends of faults that last

    def _place(self, listener: str) -> Address | None:
        """Where senders are led to; two answer for one name while a second one takes over."""
        ready = [b.listeners[listener] for b in self._in_service if listener in b.listeners]
        return self.rng.choice(ready) if ready else None

    async def start(self, rate: float) -> None:
        await self._start()
        for proxy in self.proxies:
            await proxy.start()
        self.fleet.start(rate)
        if self.is_hostile:
            self.doomed.fleet.start(hostile.DOOMED_RATE)
        self.memory.start()
        self.readers.start()
        await self.going_on()

    async def _start(self) -> None:
        await asyncio.to_thread(self.bridge.start)

    async def stop(self) -> None:
        self.broker.resume()
        for task in self.later:
            task.cancel()
        await self.readers.stop()
        await self.memory.stop()
        await self.fleet.stop()
        await self.doomed.fleet.stop()
        for proxy in self.proxies:
            await proxy.stop()
        for bridge in (self.bridge, self._other):
            await asyncio.to_thread(bridge.kill)

    async def do(self, step: Step) -> None:
        await self._check_alive()
        await asyncio.sleep(step.gap)
        await self.readers.look()
        await self._act(step)
        await self.readers.look()
        await self.going_on()

    async def _act(self, step: Step) -> None:
        await ACTIONS[step.action](self, step)

    def logs(self) -> list[str]:
        return [line for b in (self.bridge, self._other) for line in (f"== {b.folder}", *b.lines)]

    # -- watching ---------------------------------------------------------------------------

    async def going_on(self, count: int = GOING_ON) -> None:
        """Until senders have got rid of some more."""
        wanted = self.history.done + count
        await self._until(lambda: self.history.done >= wanted)

    async def drain(self) -> None:
        """All is healed, nothing new comes; until the senders keep nothing."""
        self._calm()
        for poster in self.fleet.posters:
            await posting_faults.heal(poster)
        self.fleet.quiet()
        self.doomed.fleet.quiet()
        await self._until(lambda: not self.fleet.kept and not self.doomed.fleet.kept)
        await self.readers.finish()

    async def _until(self, enough: Callable[[], bool]) -> None:
        done, patience = self._done, time.monotonic() + self.patience_s
        while not enough():
            self.fleet.check_tasks()
            self.doomed.fleet.check_tasks()
            await self._check_alive()
            if self._done != done:
                done, patience = self._done, time.monotonic() + self.patience_s
            if time.monotonic() > patience:
                kept = self.fleet.kept + self.doomed.fleet.kept
                raise StuckError(f"{kept} messages are kept for {self.patience_s:.0f} s")
            await asyncio.sleep(0.05)

    @property
    def _done(self) -> int:
        return self.history.done + self.doomed.history.done

    async def _check_alive(self) -> None:
        """Nobody has ended it, so it has no reason to be gone."""
        if self.bridge.started and not self.bridge.alive:
            code = self.bridge.process.poll()
            await asyncio.to_thread(self.bridge.kill)
            last = " | ".join(self.bridge.lines[-3:])
            self.history.surprises.append(f"the bridge ended by itself with {code}: {last}")
            await self._start_bridge()

    # -- the bridge -------------------------------------------------------------------------

    async def kill_bridge(self, step: Step) -> None:
        name = step.point or "random"
        if step.point:
            self.bridge.tell(f"arm {step.point} {step.count} {self.broker.pid}")
            try:
                if not await asyncio.to_thread(self.bridge.reap, ARMED_S):
                    name = f"{step.point} (missed)"
            finally:
                self.broker.resume()
            if not name.endswith(")") and not self.bridge.died_at(step.point):
                self._ended_early(step.point)
        await self._end_bridge(name)
        await asyncio.gather(self._probe(), self._start_bridge(empty=step.flag))

    def _ended_early(self, point: str) -> None:
        self.history.surprises.append(f"ended before {point}: {self.bridge.lines[-3:]}")

    async def _end_bridge(self, name: str) -> None:
        await asyncio.to_thread(self.bridge.kill)
        self.kills[f"bridge: {name}"] += 1

    async def _start_bridge(self, *, empty: bool = False) -> None:
        if empty:
            self.bridge.empty_data()
        await asyncio.to_thread(self.bridge.start)

    async def _probe(self) -> None:
        self.history.probes.append(
            await asyncio.to_thread(probe, self.broker.bootstrap_servers, self.topics)
        )

    async def second_bridge(self, step: Step) -> None:
        """It takes over by being started; the first must see that and end."""
        first, second = self.bridge, self._other
        self._in_service = [first, second]
        await asyncio.to_thread(second.start)
        ended = await asyncio.to_thread(first.reap, FENCED_S)
        if not ended:
            self.history.surprises.append("two bridges with one identity: the first stays")
            await asyncio.to_thread(first.kill)
        self.bridge, self._other, self._in_service = second, first, [second]
        self.history.events["bridges fenced by a second one"] += 1

    async def fill_disk(self, step: Step) -> None:
        self.bridge.fill_disk(full=True)
        self.history.events["disk full"] += 1
        await asyncio.sleep(step.seconds)
        if step.flag:
            await self._end_bridge("disk full")
            await self._start_bridge()
        else:
            self.bridge.fill_disk(full=False)

    async def jump_clock(self, step: Step) -> None:
        """Until it is started again: then it jumps back."""
        self.bridge.tell(f"clock {step.seconds:.3f}")
        self.history.events["clock jumps"] += 1

    # -- the broker -------------------------------------------------------------------------

    async def _kill_broker(self) -> float:
        await asyncio.to_thread(self.broker.kill)
        self.kills["broker"] += 1
        return time.monotonic()

    async def _start_broker(self, since: float) -> None:
        self.history.outages.append(Outage(since, time.monotonic(), "dead"))
        await asyncio.to_thread(self.broker.start)

    async def kill_broker(self, step: Step) -> None:
        since = await self._kill_broker()
        await asyncio.sleep(step.seconds)
        await self._start_broker(since)

    async def kill_broker_then_bridge(self, step: Step) -> None:
        since = await self._kill_broker()
        await asyncio.sleep(step.seconds)
        await self._end_bridge("broker dead")
        await asyncio.gather(self._start_broker(since), self._start_bridge())

    async def kill_both(self, step: Step) -> None:
        bridge = asyncio.create_task(self._end_bridge("with its broker"))
        since = await self._kill_broker()
        await bridge
        await asyncio.gather(self._start_broker(since), self._start_bridge(empty=step.flag))

    async def _freeze(self) -> float:
        """When it is seen to stand still."""
        self.broker.suspend()
        process = psutil.Process(self.broker.pid)
        while process.status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)
        self.history.events["broker frozen"] += 1
        return time.monotonic()

    def _thaw(self, since: float) -> None:
        self.history.outages.append(Outage(since, time.monotonic(), "frozen"))
        self.broker.resume()

    async def freeze_broker(self, step: Step) -> None:
        since = await self._freeze()
        await asyncio.sleep(step.seconds)
        self._thaw(since)

    async def kill_bridge_while_frozen(self, step: Step) -> None:
        since = await self._freeze()
        await asyncio.sleep(step.seconds)
        await self._end_bridge("broker frozen")
        self._thaw(since)
        await asyncio.gather(self._probe(), self._start_bridge())

    # -- network and senders ----------------------------------------------------------------

    async def cut(self, step: Step) -> None:
        links = self._links(step.share)
        for link in links:
            link.cut_mid_packet()
        self.history.events["connections cut mid-packet"] += len(links)

    async def swallow(self, step: Step) -> None:
        links = self._links(step.share)
        for link in links:
            link.swallow()
        await asyncio.sleep(step.seconds)
        for link in links:
            link.close()
        self.history.events["connections cut with their acks swallowed"] += len(links)

    def _links(self, share: float) -> list[Link]:
        return [link for proxy in self.proxies for link in proxy.some(share)]

    async def bad_weather(self, step: Step) -> None:
        for proxy in self.proxies:
            proxy.weather = Weather(delay_s=step.seconds, split=True)
        self.history.events["spells of delayed and split segments"] += 1
        asyncio.get_running_loop().call_later(WEATHER_S, self._calm)

    def _calm(self) -> None:
        for proxy in self.proxies:
            proxy.weather = CALM

    async def restart_senders(self, step: Step) -> None:
        for sender in self.fleet.senders:
            if self.rng.random() < step.share:
                sender.restart()
                self.history.events["senders restarted, latest acks forgotten"] += 1

    # -- topics -----------------------------------------------------------------------------

    async def new_topics(self, step: Step) -> None:
        """Bursts for queues that nobody has heard of, some of them from several senders."""
        if step.flag:
            since = await self._kill_broker()
            await self._start_broker(since)
        for _ in range(step.count):
            self._made += 1
            name = f"{FRESH}{self._made}"
            self.topics.append(self.bridge.topic(name))
            for sender in self.fleet.senders:
                if self.rng.random() < step.share:
                    sender.visit(name, self.rng.randrange(1, VISIT))
        self.history.events["topics made by messages"] += step.count


ACTIONS: Final[Mapping[str, Callable[[World, Step], Awaitable[None]]]] = {
    "kill bridge": World.kill_bridge,
    "kill broker": World.kill_broker,
    "kill both": World.kill_both,
    "kill broker, then bridge": World.kill_broker_then_bridge,
    "freeze broker": World.freeze_broker,
    "kill bridge while the broker is frozen": World.kill_bridge_while_frozen,
    "cut mid-packet": World.cut,
    "swallow acks, then cut": World.swallow,
    "delayed and split segments": World.bad_weather,
    "senders restart": World.restart_senders,
    "second bridge": World.second_bridge,
    "disk full": World.fill_disk,
    "clock jump": World.jump_clock,
    "receipts lost": posting_faults.lose_receipts,
    "receipts to a dead host": posting_faults.kill_desks,
    "answers lost": posting_faults.lose_answers,
    "requests twice": posting_faults.send_twice,
    "requests out of order": posting_faults.send_out_of_order,
    "new topics": World.new_topics,
    "spoofed sources": hostile.spoof,
    "invented names": hostile.flood,
    "poison": hostile.poison,
    "topic deleted": hostile.delete_topic,
    "right taken away": hostile.take_right,
}
