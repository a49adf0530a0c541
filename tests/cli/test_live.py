"""The live picture: a table on a terminal, a line whenever something came in a pipe."""

import asyncio
import codecs
import io
import os
import pty
import re
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.telemetry import Telemetry
from bridge.app import Appliance
from bridge.cli import live as module
from bridge.cli.app import main
from bridge.cli.live import LivePicture
from tests.cli.program import SOON_S, serve
from tests.support.config import topic, write_config
from tests.support.kafka import unique

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Watched:
    """As much of an appliance as the picture looks at."""

    def __init__(self) -> None:
        self.telemetry = Telemetry()
        self.reasons: list[str] = []

    def status(self) -> dict[str, Any]:
        return {
            "ready": not self.reasons,
            "reasons": self.reasons,
            "kafka": {"bootstrap.servers": "broker1:9092"},
            "session_count": 12,
            "streams": 3,
            "queues": [
                {"queue": "private$\\orders", "topic": "orders", "transactional": True},
                {"queue": "private$\\plain", "topic": "plain", "transactional": False},
            ],
            "sessions": [
                {"peer": f"10.0.0.7:{n}", "queue_manager": "G", "state": "OPEN", "received": 1234}
                for n in range(12)
            ],
        }


def picture(watched: Watched) -> LivePicture:
    return LivePicture(cast(Appliance, watched))


def rows(drawn: LivePicture) -> list[str]:
    screen = Console(file=io.StringIO(), width=120)
    screen.print(drawn._picture())
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def row(found: list[str], word: str) -> list[str]:
    (line,) = [line for line in found if word in line]
    return [cell.strip() for cell in line.split("│")[1:-1]]


def test_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    watched = Watched()
    watched.telemetry.records("orders", 1000)
    drawn = picture(watched)
    found = rows(drawn)
    assert found[0].startswith("● ready   Kafka broker1:9092   sessions 12   streams 3")
    assert row(found, "private$\\orders") == [
        *("private$\\orders", "transactional", "orders", "1,000", "0")
    ]
    assert row(found, "private$\\plain") == ["private$\\plain", "plain", "plain", "0", "0"]
    assert sum("10.0.0.7" in line for line in found) == 10  # a screen is not endless
    assert row(found, "10.0.0.7:9 ") == ["10.0.0.7:9", "G", "OPEN", "1,234"]
    clock[0] += 2.0
    watched.telemetry.records("orders", 500)
    watched.reasons = ["Kafka is away", "shard is closed"]
    found = rows(drawn)
    assert found[0].startswith("● Kafka is away; shard is closed   Kafka broker1:9092")
    assert row(found, "private$\\orders")[-2:] == ["1,500", "250"]


def test_lines_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    watched = Watched()

    async def test() -> None:
        task = asyncio.create_task(picture(watched).run())
        printed: list[str] = []
        for counts in ({"orders": 3}, {"orders": 2, "plain": 1}):
            for name, count in counts.items():
                watched.telemetry.records(name, count)
            while len(printed) < 1 + (len(counts) > 1) * 2:
                await asyncio.sleep(0.001)
                printed += capsys.readouterr().out.splitlines()
        await asyncio.sleep(0.02)
        task.cancel()
        assert sorted(printed[1:]) == ["topic orders: 5 records", "topic plain: 1 records"]
        assert printed[0] == "topic orders: 3 records"
        assert capsys.readouterr().out == ""  # nothing new, nothing said

    asyncio.run(asyncio.wait_for(test(), SOON_S))


# -- `serve --live` ---------------------------------------------------------------------------


def send(address: str, count: int) -> None:
    options = ["--queue", "private$\\orders", "--transactional", "--count", str(count)]
    assert main(["send", "--host", address, *options]) == 0


@pytest.mark.kafka
def test_serve_in_a_pipe(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("live")
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix)
    with serve(config, "--live") as program:
        program.wait_line("ready: ")
        send(program.address("binary"), 30)
        program.wait_line(f"topic {topic(prefix, 'orders')}: 30 records")
        assert program.end(signal.SIGINT, seconds=10) == 0
    assert program.out[-1] == "stopping"
    assert program.err == []


class Screen:
    """The other end of a terminal."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.raw = ""

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.raw)

    def wait(self, found: Callable[[str], object]) -> None:
        deadline = time.monotonic() + SOON_S
        while not found(self.text):
            assert time.monotonic() < deadline, self.text[-2000:]
            self.read(0.1)

    def read(self, seconds: float) -> bool:
        """Whether there may be more."""
        if select.select([self._master], [], [], seconds)[0]:
            try:
                self.raw += self._decoder.decode(os.read(self._master, 1 << 16))
            except OSError:  # EIO: nobody holds the terminal any more
                return False
        return True


@pytest.mark.kafka
def test_serve_on_a_terminal(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    prefix = unique("live")
    config = write_config(tmp_path, kafka.bootstrap_servers, topic_prefix=prefix)
    master, slave = pty.openpty()
    try:
        with serve(config, "--live", stdout=slave) as program:
            os.close(slave)
            screen = Screen(master)
            screen.wait(lambda text: "What arrived" in text and "Sessions" in text)
            found = re.search(r"listening: binary on (\S+)", screen.text)
            assert found is not None
            send(found[1], 1234)
            name = topic(prefix, "orders")
            screen.wait(
                lambda text: re.search(
                    rf"private\$\\orders\s*│ transactional\s*│ {name}\s*│\s*1,234 │", text
                )
            )
            assert program.end(signal.SIGINT, seconds=10) == 0
            while screen.read(0.5):
                pass
        assert program.err == []
    finally:
        os.close(master)
    assert "● ready" in screen.text
    assert screen.raw.rfind("\x1b[?25h") > screen.raw.rfind("\x1b[?25l")  # the cursor is back
    last = screen.text.rstrip().splitlines()[-1]
    assert last == "stopping"
