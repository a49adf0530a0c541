"""The data folder of an embedded broker: its files, its locks, what is known about who runs.

Two locks, because a broker outlives its owner by a moment. `owner.lock` is held by the process
that started the broker: taken means refuse. `broker.lock` is an open file that the broker itself
inherits, so the kernel frees it exactly when the broker is gone: taken by an orphan means wait.
"""

import base64
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import msgspec

from bridge.adapters.private_files import (
    FILE_MODE,
    make_private_folder,
    tighten,
    touch_private,
)
from bridge.model.errors import BrokerFailed

POLL_S: Final = 0.02
_LOG4J: Final = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = kafka.log
appender.file.filePattern = kafka.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{1}: %m%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
"""


class BrokerState(msgspec.Struct, frozen=True, kw_only=True):
    """What a running broker left in its folder for `stop` and `status`."""

    pid: int
    bootstrap_servers: str
    cluster_id: str
    detached: bool


class Lock:
    """A lock on a file that goes with the processes that hold it open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def fd(self) -> int:
        return self._fd

    def try_acquire(self) -> bool:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def acquire(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        return True

    def close(self) -> None:
        """Let go; a child that inherited the file goes on holding the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def is_taken(self) -> bool:
        if not self._path.exists():
            return False
        with self._path.open() as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BrokerFolder:
    """Names and contents of the files in one data folder."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.properties: Final = self.path / "server.properties"
        self.log4j: Final = self.path / "log4j2.properties"
        self.log: Final = self.path / "kafka.log"
        self.output: Final = self.path / "kafka.out"
        self.data: Final = self.path / "logs"
        self._state: Final = self.path / "broker.json"

    def create(self) -> None:
        try:
            make_private_folder(self.path)
            touch_private(self.log4j)
            self.log4j.write_text(_LOG4J)
            tighten([self.data, self.properties, self.log, self.output, self._state])
        except OSError as error:
            reason = f"{error.strerror}: {error.filename}"
            raise BrokerFailed(f"cannot use {self.path} for Kafka's data ({reason})") from error

    def clear_logs(self) -> None:
        """Empty ones for a new run; the last run's log is kept beside."""
        touch_private(self.output)
        self.output.write_bytes(b"")
        if self.log.exists():
            self.log.rename(self.log.with_suffix(".log.old"))

    def owner_lock(self) -> Lock:
        return Lock(self.path / "owner.lock")

    def broker_lock(self) -> Lock:
        return Lock(self.path / "broker.lock")

    def write_properties(self, settings: Mapping[str, str], data: Path) -> None:
        # Relative, the broker runs inside: a path may hold what these files must escape.
        lines = [f"{key}={value}" for key, value in settings.items()]
        lines.append(f"log.dirs={data.name}")
        touch_private(self.properties)
        self.properties.write_text("\n".join(lines) + "\n", encoding="ascii")

    def cluster_id(self) -> str | None:
        """The id the storage was formatted with; None before that."""
        try:
            lines = (self.data / "meta.properties").read_text().splitlines()
        except FileNotFoundError:
            return None
        return dict(line.partition("=")[::2] for line in lines).get("cluster.id")

    def fresh_data(self) -> Path:
        """An empty folder to format; `adopt` makes it the data in one step."""
        fresh = self.path / "logs.new"
        shutil.rmtree(fresh, ignore_errors=True)
        return fresh

    def adopt(self, fresh: Path) -> None:
        fresh.rename(self.data)

    def write_state(self, state: BrokerState) -> None:
        part = self._state.with_suffix(".part")
        touch_private(part)
        part.write_bytes(msgspec.json.encode(state))
        part.rename(self._state)

    def forget_state(self) -> None:
        self._state.unlink(missing_ok=True)

    def running(self) -> BrokerState | None:
        """The broker that runs here now. The lock says whether, the file says who."""
        try:
            if not self.broker_lock().is_taken():
                return None
            return msgspec.json.decode(self._state.read_bytes(), type=BrokerState)
        except FileNotFoundError:
            return None  # it is just being started
        except OSError as error:
            raise BrokerFailed(f"cannot read {error.filename} ({error.strerror})") from error
        except msgspec.DecodeError as error:
            raise BrokerFailed(f"{self._state} is damaged ({error})") from error


def new_cluster_id() -> str:
    """22 characters of base64; Kafka's tools take a leading dash for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
