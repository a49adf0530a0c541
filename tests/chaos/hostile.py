"""Strangers and a Kafka that turns against us: what they do, and what must hold all the same.

The honest senders run all the time. What strangers send in their names must not touch them, floods
must not fill the memory, poison must not stop the line. A topic that is deleted and made again, or
that we may not write to for a while, concerns its own queue (`doomed`, with senders of its own):
all others go on meanwhile.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import psutil
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.chaos import strangers
from tests.chaos.checker import Fault, Kind
from tests.chaos.fleet import Fleet
from tests.chaos.history import History, Op
from tests.chaos.posters import Poster
from tests.chaos.schedule import Step
from tests.chaos.senders import Maker, Sender
from tests.chaos.strangers import ABROAD, NEXT_DOOR
from tests.outside.rawconnection import Address
from tests.outside.rawmsmq import Message

if TYPE_CHECKING:
    from tests.chaos.faults import World

# A broker with rights: all is allowed until a topic has an ACL.
BROKER: Final[Mapping[str, str]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
DOOMED: Final = "doomed"
GUARDED: Final = ("plain", "orders", "orders2")  # with a list of networks
QUEUES: Final[Mapping[str, Mapping[str, object]]] = {
    **{name: {"allow": [f"{NEXT_DOOR}/32"]} for name in GUARDED},
    "poison": {"timestamp": "sent"},
    "compacted": {},
    DOOMED: {},
}
MANAGER: Final = {"pin_senders": "enforce"}  # else a stranger could shake hands as a sender
_TRANSACTIONAL: Final = ("orders", "orders2")
LEAST: Final = 2  # senders that are spoofed in a step
VARIANTS: Final = 6  # of spoofed messages to one stream, beside the worst
AT_ONCE: Final = 4  # sessions of strangers
LIMIT: Final = 20_000  # max.message.bytes of a topic that is lowered under load
BODY: Final = 16 * 1024  # of floods, at most
DOOMED_SENDERS: Final = 2
DOOMED_RATE: Final = 10.0
GONE_S: Final = 30.0  # in which Kafka makes or deletes a topic
ELSEWHERE_S: Final = 30.0  # in which the others must move while one topic is away
MEMORY_MIB: Final = 640  # the bridge's, whatever is done to it
LOOK_S: Final = 0.25
PARTITIONS: Final = 2


def queues() -> dict[str, Mapping[str, object]]:
    """Further entries of the mapping."""
    kinds = {name: {"transactional": True} for name in _TRANSACTIONAL}
    return {name: {**kinds.get(name, {}), **entry} for name, entry in QUEUES.items()}


# -- the bridge's memory -------------------------------------------------------------------------


class Memory:
    """The most that a bridge ever had, by samples."""

    def __init__(self, pid: Callable[[], int | None]) -> None:
        self._pid = pid
        self.most_mib = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        pid = self._pid()
        if pid is None:
            return
        try:
            now = psutil.Process(pid).memory_info().rss / 2**20
        except psutil.Error:  # it has just died
            return
        self.most_mib = max(self.most_mib, now)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def line(self) -> str:
        return f"memory of the bridge: at most {self.most_mib:.0f} MiB, bound {MEMORY_MIB} MiB"

    @property
    def surprises(self) -> list[str]:
        return [self.line()] if self.most_mib > MEMORY_MIB else []


# -- the queue whose topic goes away -------------------------------------------------------------


class Doomed:
    """Senders to one queue, and when its topic was made again."""

    def __init__(
        self, topic: str, prefix: str, rng: random.Random, place: Callable[[], Address | None]
    ) -> None:
        self.topic = topic
        self.history = History()
        self.born_at = 0.0
        senders = []
        for _ in range(DOOMED_SENDERS):
            maker = Maker(strangers.any_guid(rng), "r", random.Random(rng.getrandbits(64)), prefix)
            maker.elsewhere = DOOMED
            own = random.Random(rng.getrandbits(64))
            senders.append(Sender(maker, own, self.history, place))
        self.fleet = Fleet(senders)

    def check(self, landed: Sequence[str], rejected: Sequence[str]) -> list[Fault]:
        """What was sent after the topic was made is in it once, or among the rejects."""
        there, refused = Counter(landed), set(rejected)
        faults: list[Fault] = []
        for op in self.history.ops:
            if there[op.identity] > 1:
                detail = f"{there[op.identity]} times in {self.topic}"
                faults.append(Fault(Kind.DUPLICATE, op.identity, detail))
            if op.done_at is None:
                faults.append(Fault(Kind.NEVER_ACKED, op.identity, f"for {self.topic}"))
            elif self._must_be_there(op) and not (there[op.identity] or op.identity in refused):
                faults.append(Fault(Kind.LOST_ACKED, op.identity, f"for {self.topic}"))
        return faults

    def _must_be_there(self, op: Op) -> bool:
        return op.sent_at is not None and op.sent_at > self.born_at


# -- Kafka ---------------------------------------------------------------------------------------


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def make_topic(bootstrap: str, topic: str, config: Mapping[str, str] | None = None) -> None:
    admin, wanted = _admin(bootstrap), NewTopic(topic, PARTITIONS, 1, config=dict(config or {}))
    deadline = time.monotonic() + GONE_S
    while True:
        try:
            admin.create_topics([wanted])[topic].result(GONE_S)
            return
        except KafkaException as error:  # one of that name is still being deleted
            exists = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not exists or time.monotonic() > deadline:
                raise


def make_topics(bootstrap: str, prefix: str) -> None:
    make_topic(bootstrap, f"{prefix}-poison")
    make_topic(bootstrap, f"{prefix}-compacted", {"cleanup.policy": "compact"})
    make_topic(bootstrap, f"{prefix}-{DOOMED}")


def _delete(bootstrap: str, topic: str) -> None:
    admin = _admin(bootstrap)
    admin.delete_topics([topic])[topic].result(GONE_S)
    deadline = time.monotonic() + GONE_S
    while topic in admin.list_topics(timeout=GONE_S).topics:
        assert time.monotonic() < deadline, f"{topic} is not deleted"


def _limit(bootstrap: str, topic: str, size: int | None) -> None:
    kind = AlterConfigOpType.DELETE if size is None else AlterConfigOpType.SET
    entry = ConfigEntry("max.message.bytes", str(size or ""), incremental_operation=kind)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = _admin(bootstrap)  # held: its answers end with it
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(GONE_S)


def _acl(topic: str) -> tuple[ResourceType, str, ResourcePatternType, str, str]:
    return ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*"


def _deny(bootstrap: str, topic: str) -> None:
    acl = AclBinding(*_acl(topic), AclOperation.WRITE, AclPermissionType.DENY)
    admin = _admin(bootstrap)
    for answer in admin.create_acls([acl]).values():
        answer.result(GONE_S)


def _give_back(bootstrap: str, topic: str) -> None:
    chosen = AclBindingFilter(*_acl(topic), AclOperation.ANY, AclPermissionType.ANY)
    admin = _admin(bootstrap)
    for answer in admin.delete_acls([chosen]).values():
        answer.result(GONE_S)


# -- what is done --------------------------------------------------------------------------------


async def _bring(
    world: World, local: str, messages: Sequence[Message], guid: UUID | None = None
) -> None:
    """On a session as `guid`, or as a queue manager that was never heard of."""
    if (address := world.bridge.listeners.get("binary")) is not None:
        guid = guid or strangers.any_guid(world.rng)
        let_in = await strangers.bring(address, local, guid, messages)
        world.history.events["sessions of strangers"] += let_in


async def spoof(world: World, step: Step) -> None:
    """In the names of some senders, with the numbers that they are about to use."""
    everyone = world.fleet.senders
    count = min(len(everyone), max(LEAST, round(step.share * len(everyone))))
    for sender in world.rng.sample(everyone, count):
        if isinstance(sender, Poster):
            await _spoof_poster(world, sender)
        elif isinstance(sender, Sender):
            await _spoof_sender(world, sender)
        world.history.events["senders that strangers pretended to be"] += 1


async def _spoof_sender(world: World, victim: Sender) -> None:
    guid, rng = victim.maker.guid, world.rng
    local = rng.choice((NEXT_DOOR, ABROAD))
    alone: list[Message] = []
    for name in _TRANSACTIONAL:
        sequence, number = victim.out.place_of(f"{guid}/{name}")
        worst, *others = strangers.spoofed_streams(guid, name, sequence, number, rng)
        alone += [worst, *rng.sample(others, VARIANTS)]
    messages = list(strangers.spoofed_ids(guid, "plain", victim.maker.ordinal, rng))
    alone += messages[:3]
    # A session each: the bridge may hang up at the first one.
    for start in range(0, len(alone), AT_ONCE):
        await asyncio.gather(*(_bring(world, local, [m]) for m in alone[start : start + AT_ONCE]))
    await _bring(world, local, messages)
    if guid in _acked(world, 0.0):  # so it is known where this one is
        for message in alone[:AT_ONCE]:
            await _bring(world, ABROAD, [message], guid)


async def _spoof_poster(world: World, victim: Poster) -> None:
    address = world.bridge.listeners.get("srmp")
    if address is None:
        return
    for name, line in list(victim.lines.items()):
        if name in GUARDED:
            stream, number = line.box.place
            await strangers.post(
                address,
                strangers.spoofed_mail(victim.guid, name, stream, number, victim.ordinal),
            )
    messages = list(strangers.spoofed_ids(victim.guid, "plain", victim.ordinal, world.rng))
    await _bring(world, NEXT_DOOR, messages)


async def flood(world: World, step: Step) -> None:
    """Names that nobody has: queues, hosts, labels, queue managers, administration queues."""
    address = world.bridge.listeners.get("binary")
    for _ in range(step.count):
        if address is None:
            return
        guid = strangers.any_guid(world.rng)
        messages = list(strangers.invented(guid, world.rng, BODY))
        await strangers.bring(address, ABROAD, guid, messages)
        world.history.events["messages with invented names"] += len(messages)
        posted = strangers.invented_mail(world.rng)
        if (http := world.bridge.listeners.get("srmp")) is not None:
            await strangers.post(http, posted)


async def poison(world: World, step: Step) -> None:
    """While it comes the topic takes less than the bridge was told."""
    bootstrap, topic = world.broker.bootstrap_servers, world.bridge.topic("poison")
    await asyncio.to_thread(_limit, bootstrap, topic, LIMIT)
    try:
        if (address := world.bridge.listeners.get("binary")) is not None:
            for message in strangers.poison(world.rng, 4 * LIMIT):
                await strangers.bring(address, ABROAD, message.source, [message])
                world.history.events["poison"] += 1
        await others_go_on(world, "poison")
    finally:
        await asyncio.to_thread(_limit, bootstrap, topic, None)


async def delete_topic(world: World, step: Step) -> None:
    """Under load; and made again."""
    doomed, bootstrap = world.doomed, world.broker.bootstrap_servers
    await asyncio.to_thread(_delete, bootstrap, doomed.topic)
    await asyncio.sleep(step.seconds)
    await others_go_on(world, "a deleted topic")
    await asyncio.to_thread(make_topic, bootstrap, doomed.topic)
    doomed.born_at = time.monotonic()
    world.history.events["topics deleted and made again"] += 1


async def take_right(world: World, step: Step) -> None:
    """Nobody may write to the topic; then everybody may again."""
    doomed, bootstrap = world.doomed, world.broker.bootstrap_servers
    await asyncio.to_thread(_deny, bootstrap, doomed.topic)
    try:
        await asyncio.sleep(step.seconds)
        await others_go_on(world, "a right that is gone")
    finally:
        await asyncio.to_thread(_give_back, bootstrap, doomed.topic)
    world.history.events["rights taken away and given back"] += 1


async def others_go_on(world: World, why: str) -> None:
    """Honest senders to other queues get rid of messages while the trouble lasts."""
    since = time.monotonic()
    deadline = since + min(ELSEWHERE_S, world.patience_s)
    while waiting := {sender.guid for sender in world.fleet.senders} - _acked(world, since):
        if time.monotonic() > deadline:
            count = f"{len(waiting)} of {len(world.fleet.senders)}"
            world.history.surprises.append(f"{count} senders stand still because of {why}")
            return
        await asyncio.sleep(0.1)


def _acked(world: World, since: float) -> set[UUID]:
    """Senders with an ack of something that they sent after that moment."""
    found: set[UUID] = set()
    for op in reversed(world.history.ops):
        if op.acked_at and op.sent_at and op.sent_at > since:
            found.add(UUID(op.identity.partition("\\")[0]))
    return found
