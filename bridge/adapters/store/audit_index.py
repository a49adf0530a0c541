"""Where in the audit topic a message's verdicts are: a view in SQLite, rebuilt from Kafka.

It keeps no verdicts, only the places of the records that hold them, under a checksum of the
message id, label and correlation id; who asks reads the records and compares in full. A lost file
costs a new pass over the topic, nothing else.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

ID, LABEL, CORRELATION = "id", "label", "correlation"
KINDS: Final = (ID, LABEL, CORRELATION)
_SCHEMA: Final = """
create table if not exists mark (
    sum integer, partition integer, offset integer, primary key (sum, partition, offset)
) without rowid;
create table if not exists position (partition integer primary key, next integer);
"""


class Place(msgspec.Struct, frozen=True, gc=False):
    """One record of the audit topic."""

    partition: int
    offset: int


class _Marks(msgspec.Struct, gc=False):
    """What of an entry can be asked for."""

    id: str
    label: str = ""
    correlation: str = ""


_decode = msgspec.json.Decoder(list[_Marks]).decode


class AuditIndex:
    """Safe to use from several threads."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._db = _open(file)
        except sqlite3.DatabaseError:  # half a file after a crash: it is only a view
            file.unlink(missing_ok=True)
            self._db = _open(file)

    def positions(self) -> dict[int, int]:
        """Per partition, the first offset that is not in it yet."""
        with self._lock:
            return dict(self._db.execute("select partition, next from position"))

    def add(self, records: Iterable[tuple[Place, bytes]]) -> None:
        marks: set[tuple[int, int, int]] = set()
        ends: dict[int, int] = {}
        for place, value in records:
            marks.update((total, place.partition, place.offset) for total in _sums(value))
            ends[place.partition] = place.offset + 1
        with self._lock, self._db:
            self._db.executemany("insert or ignore into mark values (?, ?, ?)", marks)
            self._db.executemany("insert or replace into position values (?, ?)", ends.items())

    def find(self, kind: str, text: str, limit: int) -> list[Place]:
        """Records that may hold it, newest first."""
        with self._lock:
            rows = self._db.execute(
                "select partition, offset from mark where sum = ? order by offset desc limit ?",
                (_sum(kind, text), limit),
            ).fetchall()
        return [Place(*row) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _open(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, check_same_thread=False)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = off")
    db.executescript(_SCHEMA)
    return db


def _sum(kind: str, text: str) -> int:
    return crc32(f"{kind}:{text.lower()}".encode())


def _sums(value: bytes) -> Iterator[int]:
    try:
        entries = _decode(value)
    except msgspec.DecodeError:  # not written by us
        return
    for entry in entries:
        yield _sum(ID, entry.id)
        if entry.label:
            yield _sum(LABEL, entry.label)
        if entry.correlation:
            yield _sum(CORRELATION, entry.correlation)
