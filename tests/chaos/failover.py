"""`make failover`: how long senders wait for an ack when brokers of a cluster of three go away.

    python -m tests.chaos.failover [--rounds N] [--only NAME]

Senders, one for each shard at least, send message after message. A gap is the longest time in
which no sender got an ack. Beside it stands Kafka's own: what a plain transactional producer on
the same cluster, with time-outs of its own, was held up by the same fault.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException, Producer

from tests.outside.appliance import Appliance, queue
from tests.outside.rawmsmq import Message, Tx
from tests.outside.rawsender import HungUpError, RawSender, soon
from tests.support.cluster import Cluster, Node

SENDERS = 6


class Times:
    """When something was acknowledged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._longest = 0.0
        self.count = 0

    def note(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._longest = max(self._longest, now - self._last)
            self._last, self.count = now, self.count + 1

    def begin(self) -> None:
        with self._lock:
            self._longest, self._last = 0.0, time.monotonic()

    def longest(self) -> float:
        with self._lock:
            return max(self._longest, time.monotonic() - self._last)


class Load:
    """Senders that come again whatever happens, until `stop`."""

    def __init__(self, appliance: Appliance, times: Times) -> None:
        self._appliance, self._times = appliance, times
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        guid, number = uuid4(), 1
        while not self._over.is_set():
            try:
                with RawSender(self._appliance.binary_address, guid) as sender:
                    sender.connect().handshake()
                    while not self._over.is_set():
                        sender.send_all_windowed([_step(guid, number)], soon(120))
                        self._times.note()
                        number += 1
            except (HungUpError, OSError, KeyError, AssertionError):
                self._over.wait(0.1)

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(150)


class Plain:
    """A transactional producer of its own: what the cluster itself costs."""

    def __init__(self, bootstrap: str, topic: str, times: Times) -> None:
        self._bootstrap, self._topic, self._times = bootstrap, topic, times
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        name = f"plain-{uuid4().hex[:8]}"
        while not self._over.is_set():
            try:
                made = Producer(
                    {
                        "bootstrap.servers": self._bootstrap,
                        "transactional.id": name,
                        "socket.timeout.ms": 3000,
                        "request.timeout.ms": 3000,
                        "reconnect.backoff.max.ms": 500,
                        "log_level": 0,
                    }
                )
                made.init_transactions(5)
                partition = 0
                while not self._over.is_set():
                    made.begin_transaction()
                    for partition in range(4):
                        made.produce(self._topic, b"x", partition=partition)
                    made.commit_transaction(30)
                    self._times.note()
            except KafkaException:
                continue

    def stop(self) -> None:
        self._over.set()
        self._thread.join(60)


def _step(guid: object, number: int) -> Message:
    return Message(
        source=guid,  # type: ignore[arg-type]
        message_id=number,
        destination=queue("orders"),
        body=b"step %d" % number,
        tx=Tx(sequence_id=7 << 32, number=number, previous=number - 1),
    )


Fault = Callable[["Bench"], None]


class Bench:
    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.cluster = cluster
        prefix = f"failover-{uuid4().hex[:6]}"
        self.appliance = Appliance(folder, cluster.bootstrap_servers, prefix)
        self.plain_topic = f"{prefix}-raw"
        topics = [self.appliance.topic(name) for name in self.appliance.queues]
        cluster.create_topics([*topics, self.plain_topic])

    @property
    def leader(self) -> Node:
        """Of the first shard's state."""
        return self.cluster.leader_of(f"{self.appliance.prefix}.state", 0)

    @property
    def coordinator(self) -> Node:
        return self.cluster.leader_of("__transaction_state", 0)


def kill_leader(bench: Bench) -> None:
    node = bench.leader
    node.kill()
    time.sleep(20)
    node.start()


def kill_coordinator(bench: Bench) -> None:
    node = bench.coordinator
    node.kill()
    time.sleep(20)
    node.start()


def freeze(seconds: float) -> Fault:
    def fault(bench: Bench) -> None:
        node = bench.leader
        node.freeze()
        time.sleep(seconds)
        node.thaw()

    return fault


def kill_two(bench: Bench) -> None:
    first, second, _ = bench.cluster.nodes
    first.kill()
    second.kill()
    time.sleep(10)
    first.launch()
    second.launch()
    first.wait()
    second.wait()


def rolling(bench: Bench) -> None:
    for node in bench.cluster.nodes:
        node.stop()
        node.start()


def start_in_failover(bench: Bench) -> None:
    """The bridge is killed with a broker, and started at once."""
    node = bench.leader
    node.kill()
    bench.appliance.kill()
    bench.appliance.start(120)
    time.sleep(5)
    node.start()


FAULTS: dict[str, Fault] = {
    "leader killed": kill_leader,
    "coordinator killed": kill_coordinator,
    "leader frozen 5 s": freeze(5),
    "leader frozen 12 s": freeze(12),
    "leader frozen 30 s": freeze(30),
    "rolling restart": rolling,
    "two killed for 10 s": kill_two,
    "leader and bridge killed": start_in_failover,
}


def measure(bench: Bench, fault: Fault) -> tuple[float, float]:
    """The longest gap of our senders, and of the plain producer."""
    ours, plains = Times(), Times()
    load, plain = (
        Load(bench.appliance, ours),
        Plain(bench.cluster.bootstrap_servers, bench.plain_topic, plains),
    )
    try:
        for times in (ours, plains):
            _settle(times)
        ours.begin()
        plains.begin()
        fault(bench)
        for times in (ours, plains):
            _settle(times)
        return ours.longest(), plains.longest()
    finally:
        load.stop()
        plain.stop()


def _settle(times: Times) -> None:
    """Until a hundred acks have come."""
    wanted, deadline = times.count + 100, time.monotonic() + 180
    while times.count < wanted:
        assert time.monotonic() < deadline, "no acks any more"
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.failover")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a fault's name")
    given = parser.parse_args()
    print(f"{'fault':28} {'senders wait':>14} {'plain producer':>16}   (seconds, median of rounds)")
    with tempfile.TemporaryDirectory() as name, Cluster(Path(name) / "kafka") as cluster:
        folder = Path(name) / "bridge"
        folder.mkdir()
        bench = Bench(folder, cluster)
        bench.appliance.start(120)
        try:
            for what, fault in FAULTS.items():
                if given.only in what:
                    pairs = [measure(bench, fault) for _ in range(given.rounds)]
                    ours, plain = (statistics.median(side) for side in zip(*pairs, strict=True))
                    print(f"{what:28} {ours:14.1f} {plain:16.1f}", flush=True)
        finally:
            bench.appliance.terminate()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
