"""A real Apache Kafka broker as a child process: KRaft, one node, loopback only.

An attached broker is run by `launcher.py` and dies with the process that started it, a detached
one (`msmq-bridge kafka start`) outlives it. Either way its folder tells who runs (`folder.py`).
All calls block; from async code use `asyncio.to_thread`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from bridge.adapters.kafka import launcher
from bridge.adapters.kafka.broker import (
    HOST,
    check_port,
    format_storage,
    free_port,
    java_command,
    settings_for,
    wait_ready,
    why,
)
from bridge.adapters.kafka.folder import BrokerFolder, BrokerState
from bridge.adapters.kafka.jars import kafka_jars
from bridge.adapters.kafka.java import find_java
from bridge.adapters.kafka.recovery import fence_dead_broker, was_killed
from bridge.adapters.private_files import PRIVATE_UMASK
from bridge.model.errors import BrokerFailed

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 20.0
ORPHAN_TIMEOUT_S: Final = 15.0  # longer than the launcher's grace
_STOPPED: Final = (0, 128 + signal.SIGTERM)


class EmbeddedKafka:
    """One broker on one data folder; start it, stop it, start it again with the same data."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        detached: bool = False,
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._folder = BrokerFolder(folder)
        self._port = port
        self._detached = detached
        self._settings = dict(settings or {})
        self._start_timeout_s = start_timeout_s
        self._owner = self._folder.owner_lock()
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def port(self) -> int:
        """The port given, or the free one that the first start chose and later ones keep."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Of the broker itself, not of its launcher; 0 before the first start."""
        return self._pid

    @property
    def state(self) -> BrokerState:
        """What `status` shows about it."""
        return BrokerState(
            pid=self._pid,
            bootstrap_servers=self.bootstrap_servers,
            cluster_id=self._folder.cluster_id() or "",
            detached=self._detached,
        )

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Return when the broker answers. Raises BrokerFailed, and then nothing is left running."""
        if not self.running:
            self._end()  # what a broker that died by itself has left
        self._folder.create()
        if not self._owner.try_acquire():
            raise BrokerFailed(self._taken())
        try:
            self._start()
        except OSError as error:
            self._end()
            reason = f"{error.strerror}: {error.filename}"
            raise BrokerFailed(f"cannot start a broker in {self.folder} ({reason})") from error
        except BaseException:
            self._end()
            raise
        if self._detached:
            self._owner.close()  # it is the broker's now

    def stop(self) -> None:
        """End it in order; does nothing when it is not running."""
        if self.running and self._pid:  # without one it has only just been launched
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            self.wait_dead(STOP_TIMEOUT_S)
        self._end()

    def restart(self) -> None:
        """Stop and start, on the same port with the same data."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """SIGKILL, as a power cut would; `start` brings it back."""
        self._end()

    def suspend(self) -> None:
        """SIGSTOP: alive but silent, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def wait_dead(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, for whatever reason; False if it has not by then."""
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                return False
        return True

    def raise_if_failed(self) -> None:
        """BrokerFailed if it has ended in another way than by being told to."""
        code = self._process.poll() if self._process is not None else None
        if code is not None and code % 256 not in _STOPPED:
            raise BrokerFailed(f"the embedded Kafka in {self.folder} died: {why(self._folder)}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        folder = self._folder
        with folder.broker_lock() as lock:
            if not lock.acquire(ORPHAN_TIMEOUT_S):
                raise BrokerFailed(self._taken())
            folder.forget_state()
            java, libs = find_java(), kafka_jars()
            self._port = self._port or free_port()
            check_port(self._port)
            settings = settings_for(self._port, self._settings)
            if folder.cluster_id() is None:
                format_storage(folder, java, libs, settings)
            elif was_killed(folder):
                self._recover(java, libs, settings, lock.fd)
            folder.write_properties(settings, folder.data)
            folder.clear_logs()
            self._pid = 0
            command = java_command(java, libs, folder, "kafka.Kafka", folder.properties.name)
            if self._detached:
                self._process = _spawn_detached(command, folder, (lock.fd, self._owner.fd))
                self._pid = self._process.pid
            else:
                self._process = _spawn_attached(command, folder, lock.fd)
                self._pid = _told_pid(self._process, folder)
        folder.write_state(self.state)
        wait_ready(self._process, folder, self._port, self._start_timeout_s)

    def _recover(self, java: Path, libs: Path, settings: Mapping[str, str], kept: int) -> None:
        command = java_command(
            java, libs, self._folder, "kafka.Kafka", self._folder.properties.name
        )

        def run() -> "subprocess.Popen[str]":
            self._process = _spawn_attached(command, self._folder, kept)
            self._pid = _told_pid(self._process, self._folder)
            return self._process

        fence_dead_broker(self._folder, settings, run)
        self._signal(signal.SIGTERM)
        self.wait_dead(STOP_TIMEOUT_S)
        self._end_process()

    def _signal(self, number: signal.Signals) -> None:
        if self.running and self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _end(self) -> None:
        """Nothing of it runs after this, and the folder is free."""
        if self._process is not None:
            self._end_process()
            self._folder.forget_state()
        self._owner.close()

    def _end_process(self) -> None:
        assert self._process is not None
        self._signal(signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()  # for a launcher without a broker
        self._process.wait()

    def _taken(self) -> str:
        state = self._folder.running()
        who = f" by the broker with pid {state.pid} on {state.bootstrap_servers}" if state else ""
        return f"{self.folder} is in use{who}; stop that one or choose another folder"


def running_broker(folder: Path) -> BrokerState | None:
    """The broker that runs on a folder, whoever started it."""
    return BrokerFolder(folder).running()


def stop_broker(folder: Path) -> BrokerState | None:
    """Stops the broker that runs on a folder; None when there is none."""
    place = BrokerFolder(folder)
    state = place.running()
    if state is None:
        return None
    for number, patience_s in ((signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, STOP_TIMEOUT_S)):
        try:
            os.kill(state.pid, number)
            os.kill(state.pid, signal.SIGCONT)  # should it be suspended
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise BrokerFailed(f"the broker with pid {state.pid} is another user's") from error
        with place.broker_lock() as lock:
            if lock.acquire(patience_s):
                place.forget_state()
                return state
    raise BrokerFailed(f"the broker with pid {state.pid} does not end")


def _spawn_detached(
    command: list[str], folder: BrokerFolder, kept: tuple[int, ...]
) -> "subprocess.Popen[str]":
    with folder.output.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=kept,
            cwd=folder.path,
            start_new_session=True,
            umask=PRIVATE_UMASK,
            text=True,
        )


def _spawn_attached(command: list[str], folder: BrokerFolder, kept: int) -> "subprocess.Popen[str]":
    with folder.output.open("ab") as output:
        return subprocess.Popen(
            # -I -S: it needs nothing but the standard library, so it starts fast.
            [sys.executable, "-I", "-S", launcher.__file__, str(kept), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            pass_fds=(kept,),
            cwd=folder.path,
            start_new_session=True,  # Ctrl-C is for us; we stop it after we have drained
            umask=PRIVATE_UMASK,
            text=True,
        )


def _told_pid(process: "subprocess.Popen[str]", folder: BrokerFolder) -> int:
    answer = process.stdout.readline() if process.stdout is not None else ""
    if not answer:
        raise BrokerFailed(f"the embedded Kafka in {folder.path} did not start: {why(folder)}")
    return int(answer)
