"""Where in the audit topic a message's verdicts are: a view in SQLite, rebuilt from Kafka.

It keeps no verdicts, only the places of the records that hold them: for ids the range that a sender
has in a record (its ids ascend, so hundreds of messages are one row), for labels and correlation
ids a checksum. Who asks reads the records and compares in full. A lost file costs a new pass over
the topic, nothing else.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from bridge.adapters.private_files import make_private_folder, touch_private

ID, LABEL, CORRELATION = "id", "label", "correlation"
KINDS: Final = (ID, LABEL, CORRELATION)
_DIGITS: Final = 18  # an ordinal has at most 20, but SQLite counts to 2**63
_VERSION: Final = 2  # of the tables: a file with another one is built anew
_SCHEMA: Final = """
create table if not exists span (
    source text, low integer, high integer, partition integer, offset integer,
    primary key (source, low, high, partition, offset)
) without rowid;
create table if not exists mark (
    sum integer, partition integer, offset integer, primary key (sum, partition, offset)
) without rowid;
create table if not exists position (partition integer primary key, next integer);
"""
_FIND_ID: Final = """
select distinct partition, offset from span where source = ? and low <= ? and high >= ?
order by offset desc limit ?
"""
_FIND_MARK: Final = """
select partition, offset from mark where sum = ? order by offset desc limit ?
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
        make_private_folder(file.parent)
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
        spans: list[tuple[str, int, int, int, int]] = []
        marks: list[tuple[int, int, int]] = []
        ends: dict[int, int] = {}
        for place, value in records:
            partition, offset = place.partition, place.offset
            known = _summary(value)
            spans += [(*span, partition, offset) for span in known.spans]
            marks += [(mark, partition, offset) for mark in known.marks]
            ends[partition] = offset + 1
        with self._lock, self._db:
            self._db.executemany("insert or ignore into span values (?, ?, ?, ?, ?)", spans)
            self._db.executemany("insert or ignore into mark values (?, ?, ?)", marks)
            self._db.executemany("insert or replace into position values (?, ?)", ends.items())

    def find(self, kind: str, text: str, limit: int) -> list[Place]:
        """Records that may hold it, newest first."""
        source, _, ordinal = text.lower().partition("\\")
        with self._lock:
            if kind == ID and _is_ordinal(ordinal):
                number = int(ordinal)
                rows = self._db.execute(_FIND_ID, (source, number, number, limit)).fetchall()
            else:
                rows = self._db.execute(_FIND_MARK, (_sum(kind, text), limit)).fetchall()
        return [Place(*row) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _open(file: Path) -> sqlite3.Connection:
    touch_private(file)  # SQLite gives the files beside it the same mode
    db = sqlite3.connect(file, check_same_thread=False)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = off")
    if db.execute("pragma user_version").fetchone() != (_VERSION,):
        for (table,) in db.execute(
            "select name from sqlite_master where type = 'table'"
        ).fetchall():
            db.execute(f'drop table "{table}"')  # an identifier cannot be a parameter
        db.execute(f"pragma user_version = {_VERSION}")
    db.executescript(_SCHEMA)
    return db


def _sum(kind: str, text: str) -> int:
    return crc32(f"{kind}:{text.lower()}".encode())


def _is_ordinal(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


class _Summary:
    """What of one record can be asked for."""

    def __init__(self, entries: Iterable[_Marks]) -> None:
        spans: dict[str, list[int]] = {}
        odd, labels, correlations = set[str](), set[str](), set[str]()
        for entry in entries:
            source, _, text = entry.id.partition("\\")
            labels.add(entry.label)
            correlations.add(entry.correlation)
            if not _is_ordinal(text):
                odd.add(entry.id)
                continue
            ordinal = int(text)
            span = spans.get(source)
            if span is None:
                spans[source] = [ordinal, ordinal]
            elif ordinal > span[1]:
                span[1] = ordinal
            elif ordinal < span[0]:
                span[0] = ordinal
        self.spans = [(source.lower(), low, high) for source, (low, high) in spans.items()]
        found = ((ID, odd), (LABEL, labels), (CORRELATION, correlations))
        self.marks = {_sum(kind, text) for kind, texts in found for text in texts if text}


def _summary(value: bytes) -> _Summary:
    try:
        return _Summary(_decode(value))
    except msgspec.DecodeError:  # not written by us
        return _Summary(())
