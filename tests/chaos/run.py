"""A run: senders never stop, step after step is done to the bridge, then all of it is judged."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import uuid4

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos import hostile
from tests.chaos.checker import Fault, check
from tests.chaos.faults import PATIENCE_S, StuckError, World
from tests.chaos.fleet import KINDS
from tests.chaos.handover import Pair
from tests.chaos.history import Landed
from tests.chaos.read_checker import check_reads
from tests.chaos.reading import HangingError, identities, landed, rejected
from tests.chaos.report import Verdict, summary
from tests.chaos.schedule import Step
from tests.chaos.senders import RETAINED
from tests.outside.appliance import QUEUES
from tests.outside.records import create_topics

SENDERS = 17  # one of each kind, also of those whose messages are read
RATE = 250.0  # messages a second, all senders together
PARTITIONS = 2


def tell(line: str) -> None:
    print(line, flush=True)


def print_plan(steps: Iterable[Step], count: int) -> None:
    for number, step in enumerate(islice(steps, count), 1):
        tell(f"step {number}: {step}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    seed: int
    seconds: float  # after them no further step is begun
    senders: int = SENDERS
    rate: float = RATE
    kinds: Sequence[str] = KINDS
    patience_s: float = PATIENCE_S
    bug: str = ""  # one of bugs.py
    lease_s: float = 0.0  # two of them, one leads
    is_hostile: bool = False  # strangers, and the queues that they need


async def run(
    broker: EmbeddedKafka, folder: Path, steps: Iterable[Step], settings: Settings
) -> Verdict:
    """All steps, or those that fit into the time; then heal, wait, read, judge."""
    world = (Pair if settings.lease_s else World)(
        broker,
        folder,
        f"chaos-{uuid4().hex[:8]}",
        settings.seed,
        senders=settings.senders,
        kinds=settings.kinds,
        patience_s=settings.patience_s,
        bug=settings.bug,
        lease_s=settings.lease_s,
        is_hostile=settings.is_hostile,
    )
    topics = [world.bridge.topic(name) for name in (*QUEUES, RETAINED)] + [world.journal]
    await asyncio.to_thread(create_topics, broker.bootstrap_servers, topics, PARTITIONS)
    if settings.is_hostile:
        await asyncio.to_thread(hostile.make_topics, broker.bootstrap_servers, world.bridge.prefix)
    try:
        await _hurt(world, steps, settings)
        return await asyncio.to_thread(_judge, world, settings.seed)
    finally:
        await world.stop()
        await asyncio.to_thread((folder / "bridge.log").write_text, "\n".join(world.logs()))


async def _hurt(world: World, steps: Iterable[Step], settings: Settings) -> None:
    started = time.monotonic()
    try:
        await world.start(settings.rate)
        for number, step in enumerate(steps, 1):
            if (now := time.monotonic() - started) > settings.seconds:
                break
            await world.do(step)
            tell(f"{now:7.1f} s  step {number}: {step}  ({world.history.done} messages done)")
        await world.drain()
    except (StuckError, AssertionError, TimeoutError) as error:  # the senders' state tells the rest
        world.history.surprises.append(f"stuck: {error}")
        world.broker.resume()
    await world.fleet.stop()
    await world.doomed.fleet.stop()


def _judge(world: World, seed: int) -> Verdict:
    bootstrap, history = world.broker.bootstrap_servers, world.history
    records: list[Landed] = []
    journal: list[str] = []
    faults: list[Fault] = []
    try:
        records += landed(bootstrap, world.topics)
        journal += identities(bootstrap, [world.journal])
        refused = rejected(bootstrap, world.bridge.rejects_topic)
        history.surprises += [str(each) for each in refused if not each.is_strange]
        if world.is_hostile:
            there = identities(bootstrap, [world.doomed.topic])
            faults += world.doomed.check(there, [each.identity for each in refused])
            history.surprises += world.doomed.history.surprises
    except (HangingError, AssertionError) as error:
        history.surprises.append(str(error))
    topic = world.bridge.topic(RETAINED)
    kept = [record.identity for record in records if record.topic == topic]
    faults += check(history, records) + check_reads(history, kept, journal, topic)
    history.surprises += world.memory.surprises
    verdict = Verdict(seed, faults, history.surprises)
    told = summary(history, world.kills, {r.identity for r in records})
    for line in (*told, world.memory.line(), *verdict.lines()):
        tell(line)
    return verdict
