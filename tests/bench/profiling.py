"""`make profile`: where the time goes in the bridge under 64 transactional sessions.

python -m tests.bench.profiling [--sessions 64] [--seconds 10] [--rate N] [--set KEY=VALUE]
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.bench.figures import micros
from tests.bench.report import WIDTH
from tests.bench.runner import WARM_UP, launcher
from tests.bench.sampler import INTERVAL_S
from tests.bench.scenarios import HALF_WINDOW
from tests.bench.stages import COMMIT_WAIT, IDLE, Profile, analyse
from tests.bench.subject import Sender, Subject, parse_settings
from tests.outside.appliance import QUEUES
from tests.outside.records import create_topics

EXPECTED = 12_000  # messages a second, to choose how many to send
SHOWN = 25


def measure(
    bridge: Subject, out: Path, sessions: int, seconds: float, rate: int
) -> tuple[dict[str, Any], dict[str, float], dict[str, float]]:
    """What the sampler saw, what the sender says, CPU seconds by thread."""
    warm = Sender(bridge.address, **WARM_UP)
    warm.go()
    warm.close()
    bridge.settle()
    count = max(1, round(seconds * (rate or EXPECTED) / sessions / HALF_WINDOW)) * HALF_WINDOW
    pace = {"rate": rate} if rate else {}
    sender = Sender(bridge.address, sessions=sessions, count=count, **pace)
    before = _threads(bridge.pid)
    bridge.signal(signal.SIGUSR2)
    told = sender.go()
    bridge.signal(signal.SIGUSR2)
    after = _threads(bridge.pid)
    sender.close()
    while not out.exists():
        time.sleep(0.1)
    seen: dict[str, Any] = json.loads(out.read_text())
    spent: dict[str, float] = {}
    for number, cpu in after.items():
        name = seen["threads"].get(str(number)) or _kernel_name(bridge.pid, number)
        spent[name] = spent.get(name, 0.0) + cpu - before.get(number, 0.0)
    return seen, told, spent


def _threads(pid: int) -> dict[int, float]:
    return {t.id: t.user_time + t.system_time for t in psutil.Process(pid).threads()}


def _kernel_name(pid: int, thread: int) -> str:
    """librdkafka's threads have names of their own there."""
    try:
        return Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
    except OSError:
        return "ended"


def show(profile: Profile, told: Mapping[str, float], spent: Mapping[str, float]) -> None:
    console = Console(width=WIDTH)
    messages = int(told["messages"])
    title = f"{messages:,} messages, {told['per_second']:,.0f} a second: the main thread by stage"
    busy = profile.samples - profile.stages[COMMIT_WAIT] - profile.stages[IDLE]
    stages = _table(title, "stage", "of the time", "of the work", "µs of it a message")
    for stage, count in profile.stages.most_common():
        waits = stage in (COMMIT_WAIT, IDLE)
        stages.add_row(
            stage,
            f"{profile.share(count):.1%}",
            "" if waits or not busy else f"{count / busy:.1%}",
            f"{micros(count * INTERVAL_S, messages):.1f}",
        )
    console.print(stages)
    functions = _table("The main thread by function", "function", "own", "with what it calls")
    for name, count in profile.own.most_common(SHOWN):
        total = profile.total[name]
        functions.add_row(name, f"{count / max(busy, 1):.1%}", f"{total / max(busy, 1):.1%}")
    console.print(functions)
    threads = _table("CPU by thread", "thread", "µs a message")
    for name, cpu in sorted(spent.items(), key=lambda item: -item[1]):
        if micros(cpu, messages) >= 0.05:
            threads.add_row(name, f"{micros(cpu, messages):.1f}")
    console.print(threads)


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, width=WIDTH)
    table.add_column(first, ratio=1, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=0, help="a second, one by one; 0: a flood")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="msmq-profile-") as name,
        EmbeddedKafka(Path(name) / "kafka") as kafka,
    ):
        settings = parse_settings(given.set)
        bridge = Subject(Path(name) / "bridge", kafka.bootstrap_servers, "profile", settings)
        create_topics(kafka.bootstrap_servers, [bridge.topic(name) for name in QUEUES])
        out = Path(name) / "samples.json"
        try:
            bridge.start(launcher(out))
            seen, told, spent = measure(bridge, out, given.sessions, given.seconds, given.rate)
        finally:
            bridge.stop()
    show(analyse(seen), told, spent)


if __name__ == "__main__":
    main()
