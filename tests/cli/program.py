"""The program as a user runs it: a process of its own."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

PROGRAM = "import sys; from bridge.cli.app import main; sys.exit(main())"
SOON_S = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *arguments]


def run(*arguments: str, timeout: float = SOON_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=timeout, check=False
    )


class Serve:
    """`serve`, its lines as they come, and what it leaves behind."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((process.stdout, self.out), (process.stderr, self.err))
            if stream is not None
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            with self._news:
                lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def wait_line(self, start: str) -> str:
        """The first line on stdout that begins so."""

        def found() -> list[str]:
            return [line for line in self.out if line.startswith(start)]

        with self._news:
            assert self._news.wait_for(found, SOON_S), (self.out, self.err)
            return found()[0]

    def address(self, listener: str) -> str:
        return self.wait_line(f"listening: {listener} on ").rpartition(" ")[2]

    def end(self, number: signal.Signals, seconds: float) -> int:
        """Tell it to go; it has that long. Nothing it started may outlive it."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        self.process.wait(seconds)
        for reader in self._readers:
            reader.join(SOON_S)
        _, alive = psutil.wait_procs(children, timeout=5)
        assert not alive
        return self.process.returncode


@contextmanager
def serve(config: Path, *options: str, stdout: int = subprocess.PIPE) -> Iterator[Serve]:
    process = subprocess.Popen(
        command("serve", "--config", str(config), *options),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TERM": "xterm", "COLUMNS": "120"},
    )
    try:
        yield Serve(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SOON_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
