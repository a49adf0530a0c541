"""The bridge as a process that can be told where to die, and how its world is."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from tests.outside.appliance import ROOT, Appliance, Settings
from tests.outside.rawconnection import soon

FULL: int = 1  # a file of more bytes cannot be written
USERS: Mapping[str, str] = {"ann": "secret"}  # remote readers, and their passwords


class Bridge(Appliance):
    """Started through `launcher.py`; the documented surfaces are the same."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        prefix: str,
        guid: UUID,
        bug: str = "",
        queues: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """`queues` are further mapping entries, by short name."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = Settings(
            queues=queues or {},
            listen={"srmp": 0, "rpc": 0},
            users=USERS,
            defaults={"unknown": "auto-create"},  # with a topic of its name
        )
        super().__init__(folder, bootstrap, prefix, guid, settings)
        self._bug = ["--bug", bug] if bug else []

    def start(self, seconds: float = 60.0) -> None:
        assert self._process is None
        self.listeners = {}
        command = [sys.executable, "-m", "tests.chaos.launcher", *self._bug]
        self._process = subprocess.Popen(
            [*command, "serve", "--config", str(self.config)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        try:
            self._wait_until_ready(soon(seconds))
        except BaseException:
            self.kill()
            raise

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def tell(self, order: str) -> None:
        """To the launcher. One that has just died does not mind."""
        stdin = self.process.stdin
        assert stdin is not None
        try:
            stdin.write(order + "\n")
            stdin.flush()
        except BrokenPipeError:
            return

    def arm(self, point: str, count: int, broker: int) -> None:
        """Returns when it is armed: the next time counts."""
        with self._news:
            self.lines.append(f"arming {point}")
            start = len(self.lines)
        self.tell(f"arm {point} {count} {broker}")
        with self._news:
            armed = self._news.wait_for(
                lambda: any(line.endswith(f"armed {point}") for line in self.lines[start:]), 10
            )
        assert armed or not self.alive, f"{point} was not armed"

    def fill_disk(self, *, full: bool) -> None:
        """No file of it can grow: what needs no privileges and can be taken back.

        RLIMIT_FSIZE is set from outside, so writes fail with EFBIG where a full disk says ENOSPC.
        """
        if self.alive:
            _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
            soft = FULL if full else hard
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def reap(self, seconds: float) -> bool:
        """Wait for it to end by itself; False if it does not."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.kill()
        return True

    def _stop(self, number: signal.Signals) -> None:
        process = self._process
        super()._stop(number)
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def empty_data(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir()

    def died_at(self, point: str) -> bool:
        return any(line.endswith(f"chaos: killed at {point}") for line in self.lines[-20:])
