"""A cluster for a backfill: topics, rows as Spark gives them, and what a reader sees."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Message

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics, look_at
from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath, Topic
from bridge.core.message_data import MessageData
from msmq_jobs.backfill.prepare import Preparer, Target
from msmq_jobs.backfill.writer import WriteJob
from tests.spark.letters import ORDERS, PLAIN
from tests.support.kafka import create_topic, read_topic, unique


class Bench:
    def __init__(self, kafka: EmbeddedKafka, partitions: int = 2) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.settings = {"bootstrap.servers": self.bootstrap}
        self.own = OwnTopics(unique("backfill"))
        self.orders = create_topic(self.bootstrap, f"{self.own.prefix}-orders", partitions)
        self.plain = create_topic(self.bootstrap, f"{self.own.prefix}-plain", partitions)
        ensure_topics(self.settings, self.own, 2, [])
        self.mappings = Mappings(
            queues=(
                QueueMapping(queue=QueuePath(ORDERS), topic=Topic(self.orders), transactional=True),
                QueueMapping(queue=QueuePath(PLAIN), topic=Topic(self.plain)),
            )
        )

    def target(self, run: str) -> Target:
        limits = look_at(self.settings, [self.orders, self.plain])
        return Target(run=run, mappings=self.mappings, limits=limits, audit_partitions=2)

    def job(self, run: str, **changes: Any) -> WriteJob:
        known: dict[str, Any] = {
            "settings": self.settings,
            "prefix": self.own.prefix,
            "audit_topic": self.own.audit,
            "seen_to": {},
        }
        return WriteJob(run=run, **{**known, **changes})

    def rows(self, letters: Iterable[MessageData], run: str) -> list[dict[str, Any]]:
        """Sorted as `in_order` does."""
        preparer = Preparer(self.target(run))
        made = []
        for data in letters:
            found = preparer.route(data, "x.jsonl")
            assert found.prepared is not None
            row: dict[str, Any] = {
                "message_id": data.message_id,
                "queue": found.queue,
                "topic": found.topic,
            }
            row |= {"partition": found.partition, "origin": "x.jsonl", "held_in": data.queue}
            made.append({**row, "lookup_id": None, "unit": found.prepared.encode()})
        return sorted(made, key=lambda row: (row["topic"], row["partition"]))

    def read(self, topic: str) -> list[Message]:
        return read_topic(self.bootstrap, topic)

    def ids(self, topic: str) -> list[str]:
        return [id_of(message) for message in self.read(topic)]


def headers_of(message: Message) -> dict[str, bytes]:
    found: Any = message.headers() or ()
    return {name: value or b"" for name, value in found}


def id_of(message: Message) -> str:
    return headers_of(message)["msmq.id"].decode()
