"""`make bench`: what the bridge moves, beside a raw transactional producer, in one run.

Figures are ratios taken on one broker: machines are noisy, a ratio is less so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import QUEUES, Appliance
from tests.outside.records import create_topics
from tests.support.kafka import create_topic

SIZE = 1024
PER_TRANSACTION = 2000
RAW_MESSAGES = 60_000
WARM_UP = (32, 300)
# Counts are whole half windows: the rest would wait for the ack timer, not for the bridge.
RUNS = (
    ("transactional", 1, 125 * 32),
    ("transactional", 8, 125 * 32),
    ("transactional", 64, 31 * 32),
    ("recoverable", 64, 31 * 32),
    ("express", 64, 31 * 32),
)


def raw_producer(bootstrap: str, topic: str) -> dict[str, float]:
    """The same value and as many headers, straight into Kafka."""
    headers: Any = {f"msmq.header-{n}": b"0123456789" for n in range(17)} | {
        "msmq.wire": bytes(180)
    }
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(30)
    value = bytes(SIZE)
    for measured in (False, True):  # once to warm the broker up
        started, cpu = time.monotonic(), time.process_time()
        for first in range(0, RAW_MESSAGES, PER_TRANSACTION):
            producer.begin_transaction()
            for n in range(first, first + PER_TRANSACTION):
                producer.produce(topic, value, b"key", n % 4, headers=headers)
            producer.commit_transaction(30)
        if measured:
            return _row(time.monotonic() - started, RAW_MESSAGES, time.process_time() - cpu)
    raise AssertionError


def bridge(appliance: Appliance, kind: str, sessions: int, count: int) -> dict[str, float]:
    """From the first byte to the last session ack, the sender in a process of its own."""
    name = "private$\\orders" if kind == "transactional" else "private$\\plain"
    process = psutil.Process(appliance.pid)
    before = process.cpu_times()
    host, port = appliance.binary_address
    command = [sys.executable, "-m", "tests.bench.load", "--address", f"{host}:{port}"]
    command += ["--queue", name, "--kind", kind, "--sessions", str(sessions)]
    command += ["--count", str(count), "--size", str(SIZE)]
    result = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    after = process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    row = _row(result["seconds"], sessions * count, cpu)
    return row | {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"]}


def _row(seconds: float, messages: int, cpu: float) -> dict[str, float]:
    return {"per_second": messages / seconds, "cpu_us": 1e6 * cpu / messages}


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="msmq-bench-"))
    results: dict[str, dict[str, float]] = {}
    with EmbeddedKafka(folder / "kafka") as kafka:
        create_topic(kafka.bootstrap_servers, "raw", partitions=4)
        results["raw producer"] = raw_producer(kafka.bootstrap_servers, "raw")
        (folder / "bridge").mkdir()
        appliance = Appliance(folder / "bridge", kafka.bootstrap_servers, "bench")
        create_topics(appliance.bootstrap, [appliance.topic(name) for name in QUEUES])
        appliance.start()
        try:
            bridge(appliance, "transactional", *WARM_UP)
            for kind, sessions, count in RUNS:
                label = f"{kind}, {sessions} session{'s' if sessions > 1 else ''}"
                results[label] = bridge(appliance, kind, sessions, count)
        finally:
            appliance.terminate()
    _show(results)
    out = folder / "bench.json"
    out.write_text(json.dumps(results, indent=2))
    print(f"written to {out}")


def _show(results: dict[str, dict[str, float]]) -> None:
    raw = results["raw producer"]
    table = Table(title=f"{SIZE} byte messages, one broker, one run")
    table.add_column("what")
    for name in ("per second", "of raw", "CPU µs/message", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for name, row in results.items():
        table.add_row(
            name,
            f"{row['per_second']:,.0f}",
            f"{row['per_second'] / raw['per_second']:.2f}",
            f"{row['cpu_us']:.1f}",
            f"{row['p50_ms']:.0f}" if "p50_ms" in row else "",
            f"{row['p99_ms']:.0f}" if "p99_ms" in row else "",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
