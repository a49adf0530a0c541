"""Faults of every kind among very many messages on a real Kafka: each is found, none invented.

    make prove-reconcile COUNT=1000000 SEED=7

The topics have what real ones have: transaction markers, aborted transactions full of records with
the ids of good messages, and a compacted one. A test does the same with a few thousand.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from confluent_kafka import Producer, TopicPartition

from bridge.adapters.kafka.client import consumer
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from msmq_jobs.reconcile.reading import Order
from tests.cli.program import run
from tests.spark.reconcile import world
from tests.spark.reconcile.world import LATEST, ORDERS, PLAIN, SENDERS, Copy, Seen, World
from tests.support.config import write_config
from tests.support.kafka import create_topic, transactional_producer, unique
from tests.support.waiting import eventually

PER_TRANSACTION = 2000
WINDOW_MS = 300_000
CLEANER_S = 15.0  # how often a broker looks for what can be compacted
SPAN_MS = 6 * 3_600_000  # of all messages: younger than any retention
FAULTS: dict[str, dict[str, Any]] = {
    "lost": {"copies": ()},
    "never accepted": {"audit": (), "copies": ()},
    "doubled": {"copies": (Copy(), Copy(behind=3))},
    "swapped": {"copies": (Copy(behind=4),)},
    "another body": {"copies": (Copy(altered="body"),)},
    "another label": {"copies": (Copy(altered="label"),)},
    "another property": {"copies": (Copy(altered="app"),)},
    "unexpected": {"is_sent": False, "audit": (), "copies": (Copy(),)},
    "expired": {"audit": ("expired",), "copies": ()},
    "expired at its sender": {"audit": (), "dead": 0xC003, "copies": ()},
    "rejected": {"audit": ("rejected",), "copies": ()},
    "dead letter": {"audit": (), "dead": 0x8000, "copies": ()},
    "sent again": {"audit": ("accepted", "duplicate")},  # lawful: one copy
    "backfilled": {"audit": ("accepted", "backfilled"), "copies": (Copy(run="run-1"),)},
}
USUAL = (Copy(),)
ONCE = ("accepted",)


def planted(count: int, seed: int, start: int) -> World:
    """About one message in a hundred has a fault; the last seconds have some in flight."""
    chance = random.Random(seed)
    step = max(1, SPAN_MS // count)
    kinds = list(FAULTS.values())
    share = max(0.01, 5 * len(kinds) / count)
    messages = []
    for n in range(1, count + 1):
        queue = (ORDERS, ORDERS, PLAIN, LATEST)[n % 4]
        fault = chance.choice(kinds) if chance.random() < share else {}
        if queue == LATEST and fault.get("copies") and fault is not FAULTS["backfilled"]:
            fault = {}  # compaction may take the record away, and the fault with it
        if (count - n) * step < WINDOW_MS // 2 and not fault and chance.random() < 0.05:
            fault = {"audit": (), "copies": ()}  # on its way
        known = {"copies": USUAL, "audit": ONCE, "start": start, "step_ms": step}
        sender = SENDERS[chance.random() < 0.2]  # the first one is hot
        messages.append(Seen(n, queue, sender, **{**known, **fault}))
    return World(messages, WINDOW_MS)


class Silent:
    def stage(self, text: str) -> None: ...


class Scene:
    """A cluster with the world in it, and the command as a user runs it."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, of: World, seed: int) -> None:
        self.world, self.folder, self._chance = of, folder, random.Random(seed)
        self.bootstrap, prefix = kafka.bootstrap_servers, unique("planted")
        self.config = write_config(folder, self.bootstrap, topic_prefix=prefix)
        self.topics = {name: f"{prefix}-{name}" for name in world.TOPICS.values()}
        policies = {"latest": {"cleanup_policy": "compact", "segment_bytes": "1048576"}}
        for name, topic in self.topics.items():
            more = {"min_cleanable_dirty_ratio": "0.01"} if name in policies else {}
            create_topic(self.bootstrap, topic, len(SENDERS), **policies.get(name, {}), **more)
        ensure_topics({"bootstrap.servers": self.bootstrap}, OwnTopics(prefix), 1, [])
        self.audit = OwnTopics(prefix).audit
        queues = [
            {"queue": queue, "topic": self.topics[name], "transactional": queue == ORDERS}
            for queue, name in world.TOPICS.items()
        ]
        (folder / "mappings.yaml").write_text(json.dumps({"queues": queues}))
        self.export = folder / "sent.parquet"

    def fill(self) -> None:
        self._write_export()
        producer = transactional_producer(
            self.bootstrap, unique("plant"), queue_buffering_max_messages=500_000, linger_ms=5
        )
        places = self.world.places
        for number, start in enumerate(range(0, len(places), PER_TRANSACTION)):
            part = places[start : start + PER_TRANSACTION]
            if number % 5 == 0:  # nobody sees these
                producer.begin_transaction()
                self._produce(producer, part[:200])
                producer.flush()  # into the log: what is only queued would never be there
                producer.abort_transaction(60)
            producer.begin_transaction()
            self._produce(producer, part)
            producer.commit_transaction(60)
        self._audit(producer, self.world.messages)
        self._noise(producer)

    def await_gaps(self) -> int:
        """Until the compacted topic has lost its beginning; the offset that comes first now."""
        source = consumer({"bootstrap.servers": self.bootstrap}, group="gaps")
        begin = TopicPartition(self.topics["latest"], 0, 0)

        def first() -> int:
            source.assign([begin])
            found = source.poll(CLEANER_S)
            return (found.offset() or 0) if found is not None and found.error() is None else 0

        try:
            return eventually(first, 20 * CLEANER_S)
        finally:
            source.close()

    def add(self, more: World) -> None:
        """Traffic that comes later; it has no export."""
        producer = transactional_producer(self.bootstrap, unique("plant"))
        producer.begin_transaction()
        self._produce(producer, more.places)
        producer.commit_transaction(60)
        self._audit(producer, more.messages)

    def _produce(self, producer: Producer, places: Sequence[world.Place]) -> None:
        for place in places:
            seen, copy = place.seen, place.copy
            headers: Any = world.headers_of(seen, copy)
            value = seen.body + (b"!" if copy.altered == "body" else b"")
            # A key that comes again and again: what a compacted topic is made for.
            key = b"%d" % (seen.number % 50) if seen.queue == LATEST else None
            topic = self.topics[place.topic]
            while True:
                try:
                    producer.produce(
                        topic, value, key, place.partition, headers=headers, timestamp=seen.at
                    )
                    break
                except BufferError:
                    producer.poll(0.1)

    def _audit(self, producer: Producer, messages: Sequence[Seen]) -> None:
        for start in range(0, len(messages), 5000):
            producer.begin_transaction()
            part = messages[start : start + 5000]
            for at in range(0, len(part), 250):
                some = part[at : at + 250]
                entries = [self._entry(seen, verdict) for seen in some for verdict in seen.audit]
                producer.produce(self.audit, json.dumps(entries).encode(), partition=0)
            producer.commit_transaction(60)

    def _entry(self, seen: Seen, verdict: str) -> dict[str, Any]:
        made = world.entry(seen, verdict)
        if "topic" in made:
            made["topic"] = self.topics[made["topic"]]
        return made

    def _noise(self, producer: Producer) -> None:
        """Records of others, and an entry that is none."""
        producer.begin_transaction()
        for topic in self.topics.values():
            producer.produce(topic, b"no message of ours", b"k", 0, headers={"x": b"\xff"})
        producer.produce(self.audit, b"no JSON", partition=0)
        producer.commit_transaction(60)

    def _write_export(self) -> None:
        rows = (world.row(s) for s in self.world.messages if s.is_sent or s.dead)
        names = (
            *("message_id", "queue", "label", "body", "body_type", "class", "priority"),
            *("delivery", "sent_time", "app_specific", "tx_sequence_id", "tx_sequence_number"),
        )
        types = [pa.string(), pa.string(), pa.string(), pa.binary(), pa.int64(), pa.int32()]
        types += [pa.int32(), pa.int32(), pa.string(), pa.int64(), pa.decimal128(20, 0), pa.int64()]
        schema = pa.schema(
            [*zip(names, types, strict=True), ("headers", pa.map_(pa.string(), pa.string()))]
        )
        with pq.ParquetWriter(self.export, schema) as file:
            for part in _parts(rows, 50_000):
                columns = [[row[name] for row in part] for name in names]
                columns.append([list(row["headers"].items()) for row in part])
                arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
                file.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def order(self, **changes: Any) -> Order:
        known: dict[str, Any] = {"config": self.config, "out": str(self.folder / "out")}
        return Order(**{**known, "sources": (str(self.export),), **changes})

    def reconcile(self, *options: str, timeout: float = 3600) -> tuple[int, dict[str, Any]]:
        line = ("reconcile", "--config", str(self.config), "--source", str(self.export))
        out = self.folder / "out"
        done = run(*line, "--out", str(out), "-o", "json", *options, timeout=timeout)
        assert done.returncode in (0, 2), done.stderr
        return done.returncode, json.loads(done.stdout)

    def check(self, told: dict[str, Any]) -> None:
        """Every verdict, message by message."""
        wanted = self.world.verdicts()
        columns = ["message_id", "queue", "verdict"]
        found = ds.dataset(self.folder / "out" / "verdicts").to_table(columns).to_pydict()
        got = zip(*(found[name] for name in columns), strict=True)
        verdicts = {(id_, queue): verdict for id_, queue, verdict in got}
        wrong = {
            key: (verdicts.get(key), wanted.get(key))
            for key in verdicts.keys() | wanted.keys()
            if verdicts.get(key) != wanted.get(key)
        }
        assert not wrong, (len(wrong), dict(list(wrong.items())[:5]))
        counts = Counter(wanted.values())
        assert {v: n for v, n in told["verdicts"].items() if n} == counts
        assert len(counts) == 10, counts  # one of each kind at least
        assert told["foreign"] == len(self.topics)


def _parts(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    for row in rows:
        part.append(row)
        if len(part) >= size:
            yield part
            part = []
    if part:
        yield part


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    start = int(time.time() * 1000) - SPAN_MS - 60_000
    print(f"seed {seed}: {asked.count:,} messages", flush=True)
    with tempfile.TemporaryDirectory() as name, EmbeddedKafka(Path(name) / "kafka") as kafka:
        scene = Scene(Path(name) / "scene", kafka, planted(asked.count, seed, start), seed)
        began = time.monotonic()
        scene.fill()
        print(f"written in {time.monotonic() - began:.0f} s", flush=True)
        print(f"compacted: the first record has offset {scene.await_gaps():,} now", flush=True)
        filled = time.monotonic()
        code, told = scene.reconcile()
        print(f"reconciled in {time.monotonic() - filled:.0f} s, exit code {code}")
        scene.check(told)
        for verdict, count in told["verdicts"].items():
            print(f"  {verdict:15} {count:>12,}")
    print("each found, none invented")
    return 0


if __name__ == "__main__":
    sys.exit(main())
