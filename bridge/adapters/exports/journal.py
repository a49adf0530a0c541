"""FILE.partial: what an export has so far, safe on disk, so that it can go on after anything.

JSON lines, whatever the format of FILE. `add` returns when they are on disk: only then may their
messages be removed from the queue. FILE itself appears at the end, whole or not at all. A last line
that a crash has cut is cut off: nothing was removed for it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from bridge.adapters.exports.lines import data_in, line_of
from bridge.core.message_data import MessageData
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid

_ENDINGS: Final = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_PARTIAL: Final = ".partial"
Key = tuple[Guid, int]


class Format(StrEnum):
    JSONL = "jsonl"
    PARQUET = "parquet"


def format_of(out: Path, wanted: Format | None) -> Format:
    if wanted is not None:
        return wanted
    ending = _ENDINGS.get(out.suffix.lower())
    if ending is None:
        mend = "end it with .jsonl or .parquet, or give --format"
        raise ConfigError(f"{out.name!r} does not say its format", where="--out", mend=mend)
    return Format(ending)


class Journal:
    """Open in `with`. `is_complete`: FILE is there already, so there is nothing left to do."""

    def __init__(self, out: Path, wanted: Format, *, resume: bool) -> None:
        self._out, self._format, self._is_resumed = out, wanted, resume
        self.path = out.with_name(out.name + _PARTIAL)
        self.count = 0
        self.last: MessageData | None = None
        self.is_complete = False
        self._file: BinaryIO | None = None

    def add(self, messages: Iterable[MessageData]) -> None:
        """Returns when they are on disk."""
        assert self._file is not None
        added = list(messages)
        try:
            self._file.writelines(line_of(data) for data in added)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._fault(self.path, error) from error
        self.count += len(added)
        self.last = added[-1] if added else self.last

    def messages(self) -> Iterator[MessageData]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield data_in(line)
                except ConfigError as error:
                    where = f"{self.path}:{number}"
                    raise ConfigError(error.what, where=where, mend="start anew") from error

    def keys(self) -> set[Key]:
        """Of all messages that it has. RR-48"""
        return {_key(data.message_id) for data in self.messages()}

    def finish(self) -> None:
        """FILE, whole."""
        try:
            if self._format is Format.JSONL:
                self.path.rename(self._out)
            else:
                self._write_parquet()
            _sync_folder(self._out)
        except OSError as error:
            raise self._fault(self._out, error) from error
        self.is_complete = True

    def _write_parquet(self) -> None:
        from bridge.adapters.exports.parquet import write_parquet

        made = self._out.with_name(self._out.name + ".tmp")
        write_parquet(made, self.messages())
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.rename(self._out)
        self.path.unlink()

    # -- opening ----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as error:
            if self._file is not None:
                self._file.close()
            if isinstance(error, OSError):
                raise self._fault(self.path, error) from error
            raise
        return self

    def _open(self) -> None:
        if self._out.exists():
            if not self._is_resumed:
                mend = "name another file, or remove it"
                raise ConfigError(f"{str(self._out)!r} is there", where="--out", mend=mend)
            self.path.unlink(missing_ok=True)  # a crash came between the two
            self.is_complete = True
            return
        self._file = self.path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = f"another export is writing {str(self.path)!r}"
            raise ConfigError(what, where="--out", mend="wait for it") from error
        if self._file.tell() and not self._is_resumed:
            what = f"{str(self.path)!r} is an export that did not come to its end"
            mend = "add --resume to go on, or remove it"
            raise ConfigError(what, where="--out", mend=mend)
        self._cut_torn_line()
        _sync_folder(self.path)
        for data in self.messages():
            self.count, self.last = self.count + 1, data

    def _cut_torn_line(self) -> None:
        assert self._file is not None
        whole = 0
        with self.path.open("rb") as file:
            for line in file:
                whole += len(line) if line.endswith(b"\n") else 0
        self._file.truncate(whole)
        os.fsync(self._file.fileno())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        with suppress(OSError):  # `add` has flushed, and told
            self._file.close()
        if not self.count and not self.is_complete:
            self.path.unlink(missing_ok=True)  # nothing to go on with

    def _fault(self, path: Path, error: OSError) -> ConfigError:
        what = f"{str(path)!r} cannot be written ({error.strerror or error})"
        return ConfigError(what, where="--out", mend="make room, or name another file")


def _key(message_id: str) -> Key:
    guid, _, ordinal = message_id.partition("\\")
    return Guid.parse(guid), int(ordinal)


def _sync_folder(path: Path) -> None:
    """A name is safe when its folder is."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
