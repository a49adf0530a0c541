"""Very many waiting messages: how long a start takes with the view and without it, and how large.

python -m tests.outside.retained.mass --count 1000000
"""

import argparse
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import psutil

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.bench.subject import Sender
from tests.outside.appliance import Appliance, Settings
from tests.outside.records import create_topics
from tests.outside.retained.bench import kept
from tests.outside.retained.clerk import Clerk, path
from tests.support.waiting import eventually

SESSIONS = 8
SIZE = 256
START_S = 600.0


def fill(appliance: Appliance, clerk: Clerk, name: str, count: int, size: int = SIZE) -> None:
    """`count` recoverable messages of several senders; returns when readers can have them all."""
    host, port = appliance.binary_address
    sender = Sender(
        f"{host}:{port}",
        queue=path(name),
        kind="recoverable",
        sessions=SESSIONS,
        count=count // SESSIONS,
        size=size,
    )
    try:
        sender.go()
        eventually(lambda: clerk.count(path(name)) == count, START_S)
    finally:
        sender.close()


def rss_mib(appliance: Appliance) -> float:
    return psutil.Process(appliance.pid).memory_info().rss / (1 << 20)


def start_s(appliance: Appliance, *, empty: bool) -> float:
    appliance.terminate()
    if empty:
        for file in appliance.data.iterdir():
            file.unlink()
    began = time.monotonic()
    appliance.start(START_S)
    return time.monotonic() - began


def measure(count: int, folder: Path) -> None:
    with EmbeddedKafka(folder / "kafka") as broker:
        wanted = Settings(queues=kept("mass"))
        prefix = f"mass-{uuid4().hex[:8]}"
        appliance = Appliance(folder, broker.bootstrap_servers, prefix, settings=wanted)
        create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
        appliance.start()
        try:
            clerk = Clerk(appliance)
            print(f"empty: {rss_mib(appliance):.0f} MiB", flush=True)
            began = time.monotonic()
            fill(appliance, clerk, "mass", count)
            seconds = time.monotonic() - began
            print(f"{count} sent and readable in {seconds:.1f} s, {rss_mib(appliance):.0f} MiB")
            for empty, what in ((False, "with the view"), (True, "without the view")):
                seconds = start_s(appliance, empty=empty)
                assert clerk.count(path("mass")) == count
                taken = clerk.receive(path("mass"))
                assert taken is not None
                print(f"start {what}: {seconds:.1f} s, {rss_mib(appliance):.0f} MiB", flush=True)
                count -= 1
        finally:
            appliance.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory(prefix="mass-") as folder:
        measure(count - count % SESSIONS, Path(folder))


if __name__ == "__main__":
    main()
