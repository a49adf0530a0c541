"""A backfill that is killed at random and run again until it is done; then every message is looked
for. `make soak-backfill` does it with a hundred thousand; a test with fewer.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Message, TopicPartition

from bridge.adapters.kafka.client import consumer
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.core.mapping import message_from_record
from bridge.core.message_data import MessageData, message_of
from bridge.core.ports import Record
from tests.cli.program import command
from tests.spark.backfill.bench import headers_of
from tests.spark.letters import ORDERS, PLAIN, letter, write_lines
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, read_topic, unique
from tests.support.waiting import eventually

PARTITIONS = 3
SENDERS = [f"{n:08x}-2222-3333-4444-555555555555" for n in range(1, 6)]
PATIENCE_S = 600.0  # how fast a machine is says nothing about what it runs
VICTIMS = ("worker", "driver", "jvm")


def letters(count: int) -> Iterator[MessageData]:
    """Five senders, half of their messages in streams; some are dead letters."""
    for n in range(1, count + 1):
        source = SENDERS[n % len(SENDERS)]
        extra: dict[str, Any] = {"message_class": 0x8000} if n % 10 == 0 else {}
        yield letter(n, ORDERS if n % 2 else PLAIN, source, body=b"%d" % n * 20, **extra)


class Scene:
    """A cluster, exports, and the command as a user runs it."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, count: int) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.prefix = unique("killed")
        self.config = write_config(folder, self.bootstrap, topic_prefix=self.prefix)
        self.topics = {q: topic(self.prefix, n) for q, n in ((ORDERS, "orders"), (PLAIN, "plain"))}
        for name in self.topics.values():
            create_topic(self.bootstrap, name, PARTITIONS)
        ensure_topics({"bootstrap.servers": self.bootstrap}, OwnTopics(self.prefix), 1, [])
        self.sent = list(letters(count))
        half = count // 2
        self.exports = folder / "exports"
        write_lines(self.exports / "one.jsonl", self.sent[: half + 5])  # some are in both
        write_lines(self.exports / "two.jsonl", self.sent[half:])
        self.out = folder / "out"

    def start(self, *options: str) -> subprocess.Popen[str]:
        line = command("backfill", "--config", str(self.config), "--source", str(self.exports))
        return subprocess.Popen(
            [*line, "--out", str(self.out), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def written(self) -> int:
        """Records and markers so far, committed or not."""
        found = consumer({"bootstrap.servers": self.bootstrap}, group="look")
        try:
            return sum(
                found.get_watermark_offsets(TopicPartition(name, n), timeout=30)[1]
                for name in self.topics.values()
                for n in range(PARTITIONS)
            )
        finally:
            found.close()

    def check(self) -> None:
        """Exactly one copy each, streams in order, bytes and properties as they were."""
        for queue, name in self.topics.items():
            wanted = {data.message_id: data for data in self.sent if data.queue == queue}
            found = read_topic(self.bootstrap, name)
            copies = Counter(_id(message) for message in found)
            assert copies.keys() == wanted.keys()
            assert set(copies.values()) == {1}
            self._check_content(found, wanted)
            self._check_order(found)

    def _check_content(self, found: list[Message], wanted: dict[str, MessageData]) -> None:
        for message in found:
            record = Record(name_of(message), message.value() or b"", headers=headers_of(message))
            assert message_from_record(record) == message_of(wanted[_id(message)])

    def _check_order(self, found: list[Message]) -> None:  # DM-36
        streams: dict[tuple[int | None, bytes], list[int]] = {}
        homes: dict[bytes, set[int | None]] = {}
        for message in found:
            headers = headers_of(message)
            key = headers["msmq.source"]
            order = int(headers.get("msmq.tx.seq") or headers["msmq.id"].rpartition(b"\\")[2])
            streams.setdefault((message.partition(), key), []).append(order)
            homes.setdefault(key, set()).add(message.partition())
        assert all(numbers == sorted(numbers) for numbers in streams.values())
        assert all(len(home) == 1 for home in homes.values())


def name_of(message: Message) -> str:
    return message.topic() or ""


def _id(message: Message) -> str:
    return headers_of(message)["msmq.id"].decode()


def victims(run: subprocess.Popen[str], kind: str) -> list[psutil.Process]:
    """Processes of that kind that the run has now."""
    driver = psutil.Process(run.pid)
    if kind == "driver":
        return [driver]
    children = driver.children(recursive=True)
    if kind == "jvm":
        return [child for child in children if child.name() == "java"]
    daemons = [c for c in children if "pyspark.daemon" in " ".join(c.cmdline())]
    return [c for c in daemons if any(c.ppid() == d.pid for d in daemons)]


def kill_when(run: subprocess.Popen[str], kind: str, ready: Callable[[], bool]) -> bool:
    """Once it is ready; False if it was over before."""

    def found() -> list[psutil.Process] | bool:
        if run.poll() is not None:
            return True
        try:
            return victims(run, kind) if ready() else False
        except psutil.Error:  # one of them has just ended
            return False

    chosen = eventually(found, PATIENCE_S)
    if isinstance(chosen, bool):
        return False
    rest = psutil.Process(run.pid).children(recursive=True)
    random.choice(chosen).kill()  # -9
    if kind != "worker":
        run.communicate(timeout=PATIENCE_S)
        _, alive = psutil.wait_procs(rest, timeout=PATIENCE_S)
        assert not alive, f"left behind: {alive}"
    return True


def rounds(scene: Scene, kills: list[str], *options: str) -> list[str]:
    """Each kill when some more has been written; then a run that is left alone. Those that hit."""
    hit: list[str] = []
    runs: list[subprocess.Popen[str]] = []
    try:
        for kind in kills:
            if not runs or runs[-1].poll() is not None:
                runs.append(scene.start(*options))
            goal = scene.written() + random.randint(1, max(2, len(scene.sent) // (4 * len(kills))))
            if kill_when(runs[-1], kind, partial(_has_reached, scene, goal)):
                hit.append(kind)
        runs[-1].communicate(timeout=PATIENCE_S)
        runs.append(scene.start())
        output, _ = runs[-1].communicate(timeout=PATIENCE_S)
        assert runs[-1].returncode == 0, output
        return hit
    finally:
        for run in runs:
            _end(run)


def _has_reached(scene: Scene, goal: int) -> bool:
    return scene.written() >= goal


def _end(run: subprocess.Popen[str]) -> None:
    """With all that it started."""
    if run.poll() is None:
        for child in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
        run.kill()
    run.communicate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    random.seed(seed)
    kills = [random.choice(VICTIMS) for _ in range(asked.kills)]
    print(f"seed {seed}: {asked.messages} messages, kills: {', '.join(kills)}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, EmbeddedKafka(Path(name) / "kafka") as kafka:
        scene = Scene(Path(name) / "scene", kafka, asked.messages)
        hit = rounds(scene, kills, "--rate", str(asked.messages // 20))
        print(f"killed while it wrote: {', '.join(hit)}")
        scene.check()
    print(f"one copy each, in order, as they were ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
