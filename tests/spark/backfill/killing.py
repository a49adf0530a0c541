"""A backfill of an old host's journals and dead letters that is killed at random and run again
until it is done; then every message that was sent is looked for. `make soak-backfill` does it with
a hundred thousand; a test with fewer.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka import TopicPartition

from bridge.adapters.kafka.client import consumer
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from tests.cli.program import command
from tests.outside.appliance import Appliance, Settings
from tests.outside.records import Record, identity, read_topic
from tests.spark.backfill.host import SHARES, Host, expected_headers, properties_of
from tests.support.kafka import create_topic, unique
from tests.support.waiting import eventually

PARTITIONS = 3
PATIENCE_S = 3600.0  # how fast a machine is says nothing about what it runs
VICTIMS = ("worker", "driver", "jvm")
MOMENTS = ("reading", "writing")


class Kill(NamedTuple):
    """Whom, and what it is doing then."""

    kind: str
    moment: str

    def __str__(self) -> str:
        return f"{self.kind} while {self.moment}"


class Scene:
    """The old host, the appliance that is to have its messages, and the command as a user runs it.

    Both are on one cluster, with prefixes of their own.
    """

    def __init__(self, folder: Path, kafka: EmbeddedKafka, host: Host) -> None:
        self.bootstrap, self._host = kafka.bootstrap_servers, host
        prefix = unique("killed")
        (folder / "new").mkdir(parents=True)
        settings = Settings(queues={"small": {}, "late": {}})
        self._new = Appliance(folder / "new", self.bootstrap, prefix, settings=settings)
        self.topics = {name: self._new.topic(name) for name in SHARES}
        for name in self.topics.values():
            create_topic(self.bootstrap, name, PARTITIONS)
        ensure_topics({"bootstrap.servers": self.bootstrap}, OwnTopics(prefix), 1, [])
        self.out = folder / "out"
        self._earlier: set[str] = set()

    @property
    def messages(self) -> int:
        return sum(map(len, self._host.sent.values()))

    def start(self, *options: str) -> subprocess.Popen[str]:
        self._earlier = self._folders("read")
        line = command("backfill", "--config", str(self._new.config), "--include-expired")
        for source in self._host.sources:
            line += ["--source", source]
        line += ["--password-file", str(self._host.password_file), "--out", str(self.out)]
        return subprocess.Popen(
            [*line, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def is_reading(self) -> bool:
        """The run that was started last keeps what it reads, and does not map it yet."""
        return bool(self._folders("read") - self._earlier - self._folders("work"))

    def _folders(self, kind: str) -> set[str]:
        return {folder.name for folder in self.out.glob(f"{kind}/run=*")}

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

    def check(self) -> str:
        """Exactly one copy each, streams in order, bytes and properties as they were sent."""
        found = {name: read_topic(self.bootstrap, topic) for name, topic in self.topics.items()}
        for name, records in found.items():
            wanted = {identity(m.source, m.message_id): m for m in self._host.sent[name]}
            copies = Counter(record.header["msmq.id"] for record in records)
            assert copies.keys() == wanted.keys(), name
            assert set(copies.values()) <= {1}, name
            for record in records:
                message = wanted[record.header["msmq.id"]]
                assert record.value == message.body, name
                differing = properties_of(record).items() ^ expected_headers(message, name).items()
                assert not differing, (name, differing)
            self._check_order(records)
        return ", ".join(f"{name} {len(records)}" for name, records in found.items())

    def _check_order(self, records: list[Record]) -> None:  # DM-36
        streams: dict[bytes, list[int]] = {}
        homes: dict[bytes, set[int]] = {}
        for record in records:
            source = record.header["msmq.source"]
            number = record.header.get("msmq.tx.seq") or record.header["msmq.id"].split(b"\\")[1]
            streams.setdefault(source, []).append(int(number))
            homes.setdefault(source, set()).add(record.partition)
        assert all(numbers == sorted(numbers) for numbers in streams.values())
        assert all(len(home) == 1 for home in homes.values())


def victims(run: subprocess.Popen[str], kind: str) -> list[psutil.Process]:
    """Processes of that kind that the run has now."""
    driver = psutil.Process(run.pid)
    if kind == "driver":
        return [driver]
    children = driver.children(recursive=True)
    if kind == "jvm":
        return [child for child in children if child.name() == "java"]
    daemons = [child for child in children if "pyspark.daemon" in _command(child)]
    return [c for c in daemons if any(c.ppid() == d.pid for d in daemons)]


def _command(process: psutil.Process) -> str:
    """Empty for one that has ended, whether or not somebody has asked how."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


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


def rounds(scene: Scene, kills: list[Kill], *options: str) -> list[Kill]:
    """The kills, one after the other, and runs until one is done. Those that hit."""
    hit: list[Kill] = []
    runs: list[subprocess.Popen[str]] = []
    try:
        for kill in kills:
            if runs and kill.moment == "reading" and not scene.is_reading():
                end(runs[-1])  # it is past that
            if not runs or runs[-1].poll() is not None:
                runs.append(scene.start(*options))
            if kill_when(runs[-1], kill.kind, _moment(scene, kill, len(kills))):
                hit.append(kill)
                print(f"killed: {kill}", flush=True)
            else:
                _check_end(runs[-1])
        if not runs or runs[-1].poll() is not None:
            runs.append(scene.start())
        _check_end(runs[-1])
        return hit
    finally:
        for run in runs:
            end(run)


def _check_end(run: subprocess.Popen[str]) -> None:
    """One that nobody ended is done when it ends."""
    output, _ = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, output


def _moment(scene: Scene, kill: Kill, kills: int) -> Callable[[], bool]:
    if kill.moment == "reading":
        return scene.is_reading
    goal = scene.written() + random.randint(1, max(2, scene.messages // (4 * kills)))
    return lambda: scene.written() >= goal


def end(run: subprocess.Popen[str]) -> None:
    """With all that it started."""
    if run.poll() is None:
        for child in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
        run.kill()
    run.communicate(timeout=PATIENCE_S)  # unlike without one, it may be asked twice


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(1 << 32)
    random.seed(seed)
    kills = [Kill(random.choice(VICTIMS), random.choice(MOMENTS)) for _ in range(asked.kills)]
    print(f"seed {seed}: {asked.messages} messages, {asked.kills} kills", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, EmbeddedKafka(Path(name) / "kafka") as kafka:
        folder = Path(name)
        with Host(folder / "old", kafka.bootstrap_servers, asked.messages) as host:
            scene = Scene(folder, kafka, host)
            print(f"the host has {scene.messages} ({time.monotonic() - started:.0f} s)", flush=True)
            hit = rounds(scene, kills, "--rate", str(asked.messages // 20))
            print(f"{len(hit)} of {len(kills)} kills hit", flush=True)
            told = scene.check()
    print(
        f"one copy each, in order, as they were sent: {told} ({time.monotonic() - started:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
