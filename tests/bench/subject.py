"""The bridge under test as a process of its own: started, measured from outside, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.bench.posts import KINDS as HTTP_KINDS
from tests.outside.appliance import ROOT, Appliance, Settings, command

START_S = 120.0
QUIET_S = 0.25
QUIET_CPU_S = 0.021  # of a quarter second: two ticks of the clock that the kernel counts with
PATIENCE_S = 20.0
_BINARY, _HTTP = "listening: binary on ", "listening: srmp on "
_RPC = "listening: rpc on "
_READY = "ready:"


def parse_settings(pairs: Iterable[str]) -> dict[str, object]:
    """From `key=value`, the value as JSON."""
    return {key: json.loads(value) for key, value in (pair.split("=", 1) for pair in pairs)}


class Subject:
    """One configuration; `start` as often as wanted."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        prefix: str,
        settings: Mapping[str, object],
        wanted: Settings | None = None,
    ) -> None:
        folder.mkdir()
        # More sessions than one address may have by default: they all come from here.
        wanted = wanted or Settings(listen={"srmp": 0, "per_address": 10_000})
        self._written = Appliance(folder, bootstrap, prefix, settings=wanted)
        self.config = self._written.config
        chosen = json.loads(self.config.read_text()) | settings
        self.config.write_text(json.dumps(chosen, indent=1))
        self.log = folder / "log.txt"
        self.address = self.http_address = self.rpc_address = ""
        self._process: subprocess.Popen[str] | None = None

    def topic(self, name: str) -> str:
        return self._written.topic(name)

    def start(self, program: Sequence[str] = ()) -> float:
        """Seconds until it says that it is ready; `program` stands in for `msmq-bridge`."""
        started = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*(program or command()), "serve", "--config", str(self.config)],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_BINARY):
                self.address = line.removeprefix(_BINARY).strip()
            if line.startswith(_HTTP):
                self.http_address = line.removeprefix(_HTTP).strip()
            if line.startswith(_RPC):
                self.rpc_address = line.removeprefix(_RPC).strip()
            if line.startswith(_READY):
                return time.monotonic() - started
        raise RuntimeError(f"the bridge did not start:\n{self.log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def tree(self) -> list[psutil.Process]:
        """It and the workers it may have; the broker is not its child."""
        top = psutil.Process(self.pid)
        return [top, *top.children(recursive=True)]

    def cpu_s(self) -> float:
        times = [process.cpu_times() for process in self.tree()]
        return sum(t.user + t.system for t in times)

    def rss(self) -> int:
        return sum(process.memory_info().rss for process in self.tree())

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def settle(self) -> None:
        """Until it is quiet: what it put off while messages came is done too."""
        deadline = time.monotonic() + PATIENCE_S
        quiet, before = 0, self.cpu_s()
        while quiet < 3 and time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = self.cpu_s()
            quiet = quiet + 1 if now - before < QUIET_CPU_S else 0
            before = now


class Sender:
    """A load generator, in a process of its own."""

    def __init__(self, address: str, **options: object) -> None:
        program = "http_load" if options.get("kind") in HTTP_KINDS else "load"
        arguments = [str(x) for key, value in options.items() for x in (f"--{key}", value)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.bench.{program}", "--address", address, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        if self._out.readline().strip() != "ready":
            raise RuntimeError("the load generator could not connect")

    def go(self) -> dict[str, float]:
        self._in.write("go\n")
        self._in.flush()
        answer = self._out.readline()
        if not answer:
            raise RuntimeError("the load generator failed")
        told: dict[str, Any] = json.loads(answer)
        return told

    def close(self) -> None:
        self._in.close()
        self._process.wait(PATIENCE_S)
        self._out.close()
