"""Small files in a folder that may lie wherever Spark can write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.model.errors import ConfigError


class Folder:
    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark, self.root = spark, root.rstrip("/") or "/"

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def make(self, option: str) -> None:
        """Raises ConfigError when nothing can be kept there."""
        if self.is_local:
            try:
                Path(self.root).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _useless(self.root, option, error) from error

    @contextmanager
    def alone(self, option: str) -> Iterator[None]:
        """No other run has it meanwhile. Raises ConfigError when one does; only a disk of this
        machine can tell. The kernel lets go of it, however the run ends."""
        if not self.is_local:
            yield
            return
        try:
            handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _useless(self.root, option, error) from error
        try:
            if not _is_ours(handle):
                where, mend = f"{option} {self.root}", "wait for that one, or name another folder"
                raise ConfigError("another run uses it", where=where, mend=mend)
            yield
        finally:
            os.close(handle)

    def read(self, name: str) -> str | None:
        if self.is_local:
            path = Path(self.root) / name
            return path.read_text(encoding="utf-8") if path.exists() else None
        system, path_ = self._there(name)
        if not system.exists(path_):
            system, path_ = self._there(f"{name}.new")  # `write` died before its last step
        if not system.exists(path_):
            return None
        stream = system.open(path_)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Piece by piece: it may be long. It appears in one step: who reads it meanwhile has the
        old one or the new one."""
        new = f"{name}.new"
        if self.is_local:
            Path(self.root).mkdir(parents=True, exist_ok=True)
            with (Path(self.root) / new).open("w", encoding="utf-8") as file:
                file.writelines(lines)
            (Path(self.root) / new).replace(Path(self.root) / name)
            return
        system, path = self._there(new)
        stream = system.create(path, True)
        for line in lines:
            stream.write(bytearray(line.encode()))
        stream.close()
        _, old = self._there(name)
        system.delete(old, False)
        system.rename(path, old)

    def names(self) -> list[str]:
        """Of what is in it; none when it is not there."""
        system, path = self._there(".")
        if not system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in system.listStatus(path))

    def delete(self, name: str) -> None:
        system, path = self._there(name)
        system.delete(path, True)

    def _there(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self._spark.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}")
        return path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration()), path


def _useless(root: str, option: str, error: OSError) -> ConfigError:
    what = f"{root}: {error.strerror}"
    return ConfigError(what, where=option, mend="name a folder of yours")


def _is_ours(handle: int) -> bool:
    """From now on. A file system without locks keeps nobody out."""
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
