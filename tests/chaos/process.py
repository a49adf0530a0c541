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
# Of the admin port; a generated one would go with an emptied data folder.
TOKEN: str = "token-of-the-soak"  # noqa: S105
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
        *,
        lease_s: float = 0.0,
        manager: Mapping[str, object] | None = None,
    ) -> None:
        """`queues` are further mapping entries, by short name; `manager` is for queue_manager; with
        a lease it is one of two."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = Settings(
            queues=queues or {},
            manager=manager or {},
            listen={"srmp": 0, "rpc": 0},
            users=USERS,
            token=TOKEN,
            defaults={"unknown": "auto-create"},  # with a topic of its name
            top={"standby": True, "lease_s": lease_s} if lease_s else {},
        )
        super().__init__(folder, bootstrap, prefix, guid, settings)
        self._bug = ["--bug", bug] if bug else []
        self._begun = 0  # lines of earlier starts

    def start(self, seconds: float = 60.0) -> None:
        self.launch()
        self.wait_ready(seconds)

    def launch(self) -> None:
        """Returns at once."""
        assert self._process is None
        self.listeners = {}
        self._begun = len(self.lines)
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

    def wait_ready(self, seconds: float = 60.0) -> None:
        try:
            self._wait_until_ready(soon(seconds))
        except BaseException:
            self.kill()
            raise

    def wait_line(self, beginning: str, seconds: float = 60.0) -> None:
        """Of this start."""
        with self._news:
            self._news.wait_for(lambda: self.has_said(beginning) or not self.alive, seconds)
        assert self.has_said(beginning), f"no {beginning!r}: {self.lines[-5:]}"

    def has_said(self, beginning: str) -> bool:
        return any(line.startswith(beginning) for line in self.lines[self._begun :])

    def send(self, number: signal.Signals) -> None:
        """To the group we started; one that has just died does not mind."""
        if self.alive:
            os.killpg(self.pid, number)

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
