"""The retained queues of an appliance on a real Kafka, without the appliance around them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.sink import KafkaShardSink
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.adapters.retained.desk import Desk
from bridge.adapters.retained.service import RetainedService
from bridge.adapters.telemetry import Telemetry
from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.identity import SEQUENTIAL_KEY, SequentialIds
from bridge.core.shard import Shard
from bridge.model.errors import SinkUnavailable
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict
from tests.core.messages import LOCAL, plain, queue, receipts
from tests.support.kafka import read_topic, unique
from tests.support.waiting import until

KEPT = "private$\\plain"
NOT_IN_TIME_S = 30.0


class World:
    """What stays when the process ends: Kafka, a folder, and the mapping."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path, **mapping: Any) -> None:
        self.kafka, self.folder = kafka, folder
        self.own, self.topic = OwnTopics(unique("own")), unique("kept")
        self.settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers}
        self.cluster = "this cluster"
        self.queues: list[Queue] = [self.queue(**mapping)]
        self.edits: list[tuple[str, dict[str, str] | None]] = []

    def queue(self, name: str = KEPT, topic: str = "", **mapping: Any) -> Queue:
        """A retained queue on a topic with one partition, unless the test says otherwise."""
        known: dict[str, Any] = {"transactional": False, "partitions": 1, "mode": "retain"}
        return queue(name, topic=topic or self.topic, **(known | mapping))

    @property
    def file(self) -> Path:
        return self.folder / "view.sqlite"

    def make_topics(self) -> None:
        named = {q.topic for q in self.queues} | {q.journal for q in self.queues}
        facts = ensure_topics(self.settings, self.own, 1, named - {""}, named - {""})
        self.queues = [
            replace(q, journal_partitions=facts[q.journal].partitions) if q.journal else q
            for q in self.queues
        ]

    def delete_records(self, before: int, topic: str = "", partition: int = 0) -> None:
        """As retention does, only at once."""
        place = TopicPartition(topic or self.topic, partition, before)
        admin = AdminClient(self.settings)
        admin.delete_records([place])[place].result(NOT_IN_TIME_S)

    def delete_topic(self, topic: str) -> None:
        admin = AdminClient(self.settings)
        admin.delete_topics([topic])[topic].result(NOT_IN_TIME_S)

    def records(self, topic: str) -> list[Any]:
        return read_topic(self.kafka.bootstrap_servers, topic)

    def verdicts(self) -> list[tuple[str, str, str]]:
        """Id, verdict and reason of all that the audit topic says."""
        return [
            (entry["id"], entry["verdict"], entry.get("reason", ""))
            for record in self.records(self.own.audit)
            for entry in msgspec.json.decode(record.value())
        ]

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator["Running"]:
        self.make_topics()
        process = Running(self, **settings)
        await process.start()
        try:
            yield process
        finally:
            await process.stop()


class Running:
    """One process."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world, self._settings = world, settings
        self.catalogue = Catalogue(LOCAL, world.queues)
        self.told = receipts()
        policy = Policy(deadletter_topic=world.own.deadletter)
        self.sink = KafkaShardSink(world.settings, world.own, 0)
        self.pump = ShardPump(Shard(self.catalogue, policy, self.told), self.sink, Telemetry())
        self.removed: list[tuple[str, bool]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        async with asyncio.timeout(NOT_IN_TIME_S):
            while not self.pump.is_open:
                with suppress(SinkUnavailable):  # leaders of new topics may not be there yet
                    await self.pump.open()
        ids = SequentialIds(
            self.pump.shard.kept.get(SEQUENTIAL_KEY),
            lambda mark: self.pump.put(SEQUENTIAL_KEY, mark),
        )
        self._tasks.append(asyncio.create_task(self.pump.run()))
        self.service = RetainedService(
            self.world.file,
            self.world.settings,
            self.pump,
            self.told,
            ids,
            lambda: self.catalogue,
            prefix=self.world.own.prefix,
            deadletter=(self.world.own.deadletter, 1),
            local=LOCAL,
            cluster=self.world.cluster,
            removed=lambda reason, is_lost: self.removed.append((reason, is_lost)),
            **self._settings,
        )
        self.pump.shard.keeper = self.service.keeper
        async with asyncio.timeout(NOT_IN_TIME_S):
            await self.service.start()
        self.run = asyncio.create_task(self.service.run())
        self._tasks.append(self.run)
        self.desk = Desk(self.service, lambda: self.catalogue, self._edit)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.service.stop()
        await self.pump.close()

    async def _edit(self, name: str, entry: dict[str, str] | None) -> None:
        """The mapping files, as far as this needs them."""
        self.world.edits.append((name, entry))
        kept = [q for q in self.world.queues if q.name.lower() != name.lower()]
        if entry is not None:
            kept.append(self.world.queue(name, topic=unique("made")))
        self.world.queues = kept
        await asyncio.to_thread(self.world.make_topics)
        self.catalogue = Catalogue(LOCAL, kept)
        self.pump.shard.use(self.catalogue)
        self.service.define()

    # -- senders ----------------------------------------------------------------------------

    async def send(self, *messages: Message) -> None:
        """Until they are in Kafka, and on the shelf."""
        before = self.service.view.total().count
        assert {v.outcome for v in await self.submit(messages)} == {Outcome.ACCEPTED}
        await until(lambda: self.service.view.total().count >= before + len(messages))

    async def submit(self, messages: Sequence[Message]) -> Sequence[Verdict]:
        decided: asyncio.Future[Sequence[Verdict]] = asyncio.get_running_loop().create_future()
        self.pump.submit(messages, decided.set_result)
        return await asyncio.wait_for(decided, NOT_IN_TIME_S)

    async def bodies(self, name: str = KEPT) -> list[bytes]:
        return [held.message.body for held in await self.desk.peek(name, limit=1000)]

    def depth(self, name: str = KEPT) -> int:
        return self.service.view.totals(name).count


def numbered(numbers: Iterable[int], **fields: Any) -> list[Message]:
    return [plain(number, body=b"%d" % number, **fields) for number in numbers]
