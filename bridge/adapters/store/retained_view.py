"""The waiting messages of retained queues on disk: a view in SQLite, rebuilt from Kafka.

It holds rows, not messages, and with them the positions up to which it has seen Kafka: both change
in one SQLite transaction, so a view is always right about some moment, be it an old one. Who opens
it reads on from `positions` and gives what he finds to `replay`.

Positions may lag behind what is on the shelf, because transactions of several producers end in any
order in a partition. So everything may come twice: a record that is here is not added again, and
one that has gone before its position was passed is remembered as gone (table `fate`). Fates may
come before their records, too: they wait in the same table.

A file of another queue manager, of another version, or that SQLite cannot read is thrown away: a
lost view costs a new pass over the topics, a wrong one costs messages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from bridge.adapters.private_files import make_private_folder, touch_private
from bridge.core.retained.fates import Fate, Fated
from bridge.core.retained.naming import is_system
from bridge.core.retained.rows import RecordAt, Row, Wants
from bridge.core.retained.shelf import EMPTY, Totals
from bridge.model.errors import Unavailable
from bridge.model.guid import Guid

Partition = tuple[str, int]  # topic and number

_VERSION: Final = 1  # of the tables
_SCHEMA: Final = """
create table stamp (identity text);
create table name (number integer primary key, text blob unique);
create table row (
    queue integer, lookup_id integer, topic integer, partition integer, offset integer,
    source blob, ordinal integer, size integer, arrived_ms integer, expires integer,
    wants integer, letterhead blob, aborts integer, moves integer, moved_at integer,
    primary key (queue, lookup_id)
) without rowid;
create unique index row_of_record on row (topic, partition, offset);
create index row_by_expiry on row (expires, lookup_id) where expires is not null;
create table total (queue integer primary key, count integer, bytes integer);
create table fate (
    topic integer, partition integer, offset integer, fate blob,
    primary key (topic, partition, offset)
) without rowid;
create table position (
    topic integer, partition integer, next integer, primary key (topic, partition)
) without rowid;
"""
_ADD: Final = "insert into row values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# A statement at a time lets go of the interpreter's lock, and may wait long to get it back.
_TOGETHER: Final = 500
_ADD_TOGETHER: Final = _ADD + f", {_ADD[_ADD.index('(') :]}" * (_TOGETHER - 1)
_GET: Final = "select * from row where queue = ? and lookup_id = ?"
_REMOVE: Final = "delete from row where queue = ? and lookup_id = ?"
_OF_RECORD: Final = "select * from row where topic = ? and partition = ? and offset = ?"
_AFTER: Final = "select * from row where queue = ? and lookup_id > ? order by lookup_id limit ?"
_BEFORE: Final = (
    "select * from row where queue = ? and lookup_id < ? order by lookup_id desc limit ?"
)
_EXPIRING: Final = """
select * from row where expires is not null and (expires, lookup_id) > (?, ?) and expires <= ?
order by expires, lookup_id limit ?
"""
_NEXT_OFFSET: Final = """
select offset from row where topic = ? and partition = ? and offset > ? order by offset limit 1
"""
_FATE: Final = "select fate from fate where topic = ? and partition = ? and offset = ?"
_KEEP_FATE: Final = "insert or replace into fate values (?, ?, ?, ?)"
_DROP_FATES: Final = "delete from fate where topic = ? and partition = ? and offset < ?"
_BELOW: Final = "select * from row where topic = ? and partition = ? and offset < ? limit 1000"
_BETWEEN: Final = """
select * from row where topic = ? and partition = ? and offset > ? and offset < ?
order by offset limit 500
"""

_decode_fate: Final = msgspec.msgpack.Decoder(Fate).decode
_GONE: Final = Fate(reason=0xFFFF).encode()  # why does not matter in here
_CHUNK: Final = 5000
_UNUSABLE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class ViewLost(Unavailable):
    """The file cannot be read or written: throw it away and build a new view from Kafka."""


class RetainedView:
    """A `Shelf`. For one thread at a time; `commit` makes its changes last."""

    def __init__(self, file: Path, identity: str) -> None:
        """`identity` names whose messages these are, and in which cluster."""
        make_private_folder(file.parent)
        self._db = _open(file, identity)
        self._texts: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        for number, text in self._read("select * from name"):
            self._know(number, text.decode("utf-8", "surrogatepass"))
        self._positions: dict[Partition, int] = {
            (self._texts[topic], partition): following
            for topic, partition, following in self._read("select * from position")
        }
        self._totals: dict[str, Totals] = {
            self._texts[queue]: Totals(count, size)
            for queue, count, size in self._read("select * from total where count > 0")
        }
        self._total = _sum(self._totals.values())
        self._copies = _sum(its for queue, its in self._totals.items() if is_system(queue))
        self._counted: set[str] = set()  # queues whose totals are not in the file yet
        self._has_fates = self._any_fate()

    def positions(self) -> dict[Partition, int]:
        """For each partition the first offset that may not be in here; none: begin at the first."""
        return dict(self._positions)

    def close(self) -> None:
        """What was not committed never happened."""
        self._db.rollback()
        self._db.close()

    # -- changes ----------------------------------------------------------------------------

    def add(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        values = [self._values(row) for row in rows]
        self._change("savepoint adding")
        try:
            self._insert(values)
        except ValueError:
            self._change("rollback to adding")
            self._change("release adding")
            raise
        self._change("release adding")
        for queue, its in groupby(rows, key=attrgetter("queue")):
            sizes = [row.size for row in its]
            self._count(queue, len(sizes), sum(sizes))

    def _insert(self, values: Sequence[tuple[object, ...]]) -> None:
        """In the transaction that has begun."""
        whole = len(values) - len(values) % _TOGETHER
        for first in range(0, whole, _TOGETHER):
            self._change(_ADD_TOGETHER, tuple(chain(*values[first : first + _TOGETHER])))
        with _guarded():
            self._db.executemany(_ADD, values[whole:])

    def remove(self, row: Row) -> None:
        self._take(row)
        self._keep_fate(row.at, _GONE)

    def replace(self, row: Row, new: Row) -> None:
        self._take(row)
        self.add((new,))

    def _take(self, row: Row) -> None:
        found = self._change(_REMOVE, (self._number(row.queue), row.lookup_id))
        if found.rowcount != 1:
            raise ValueError(f"{row.queue} has no {row.id}")
        self._count(row.queue, -1, -row.size)

    def _count(self, queue: str, count: int, size: int) -> None:
        self._total = self._total.plus(count, size)
        if is_system(queue):
            self._copies = self._copies.plus(count, size)
        self._totals[queue] = self.totals(queue).plus(count, size)
        self._counted.add(queue)
        if not self._totals[queue].count:
            del self._totals[queue]

    # -- what Kafka says --------------------------------------------------------------------

    def replay(self, events: Iterable[Row | Fated]) -> None:
        """Records that arrived and what became of them, in any order, once or twice."""
        arrived: list[Row] = []
        for event in events:
            if isinstance(event, Row):
                arrived.append(event)
                if len(arrived) < _CHUNK:
                    continue
            self._replay_arrivals(arrived)
            arrived.clear()
            if isinstance(event, Fated):
                self._replay_fate(event)
        self._replay_arrivals(arrived)

    def _replay_arrivals(self, rows: list[Row]) -> None:
        """Nearly always all of them are new and have no fate."""
        fresh = self.as_fated(rows)
        try:
            self.add(fresh)
        except ValueError:
            self.add(self.unknown(fresh))

    def as_fated(self, rows: Iterable[Row]) -> list[Row]:
        """Of records that were read from Kafka those to add, as their fates have it."""
        return [new for row in rows if (new := self._as_fated(row)) is not None]

    def unknown(self, rows: Iterable[Row]) -> list[Row]:
        """Without those that are here: read twice, or written again by somebody else."""
        found: dict[tuple[str, int, Guid, int], Row] = {}
        for row in rows:
            if not self._has(row):
                found.setdefault((row.queue, row.lookup_id, row.source, row.ordinal), row)
        return list(found.values())

    def _has(self, row: Row) -> bool:
        """The same message: another one in its place would be a bug of ours."""
        known = self.get(row.queue, row.lookup_id)
        if known is not None and (known.source, known.ordinal) == (row.source, row.ordinal):
            return True
        return bool(self._read(_OF_RECORD, self._record(row.at)))

    def _as_fated(self, row: Row) -> Row | None:
        """None: it has gone, or it is from before our time."""
        if row.at.offset < self._position(row.at):
            return None
        if self._has_fates:
            for (fate,) in self._read(_FATE, self._record(row.at)):
                return _decode_fate(fate).applied_to(row)
        return row

    def _replay_fate(self, event: Fated) -> None:
        """Of a record that is not here: it is yet to come, or it has gone long ago."""
        for values in self._read(_OF_RECORD, self._record(event.at)):
            row = self._row(values)
            new = event.fate.applied_to(row)
            if new is None:
                self.remove(row)
            elif new != row:
                self.replace(row, new)
        self._keep_fate(event.at, event.fate.encode())

    def _keep_fate(self, at: RecordAt, fate: bytes) -> None:
        """As long as its record may still come, or come again."""
        if at.offset >= self._position(at):
            self._change(_KEEP_FATE, (*self._record(at), fate))
            self._has_fates = True

    def _position(self, at: RecordAt) -> int:
        return self._positions.get((at.topic, at.partition), 0)

    def trim(self, topic: str, partition: int, start: int) -> None:
        """Kafka has no records of this partition before `start` any more: nor have we."""
        number = self._number(topic)
        while found := self._read(_BELOW, (number, partition, start)):
            for values in found:
                self._take(self._row(values))

    def commit(self, positions: Mapping[Partition, int] | None = None) -> None:
        """All changes since the last one, with the positions that they bring us to."""
        for (topic, partition), following in (positions or {}).items():
            if following > self._positions.get((topic, partition), 0):
                where = self._number(topic), partition, following
                self._change("insert or replace into position values (?, ?, ?)", where)
                self._change(_DROP_FATES, where)
                self._positions[topic, partition] = following
        self._has_fates = self._has_fates and self._any_fate()
        for queue in self._counted:
            totals = self.totals(queue)
            values = self._number(queue), totals.count, totals.bytes
            self._change("insert or replace into total values (?, ?, ?)", values)
        self._counted.clear()
        with _guarded():
            self._db.commit()

    def _any_fate(self) -> bool:
        return bool(self._read("select 1 from fate limit 1"))

    # -- looking ----------------------------------------------------------------------------

    def get(self, queue: str, place: int) -> Row | None:
        found = self._read(_GET, (self._numbers.get(queue), place))
        return self._row(found[0]) if found else None

    def after(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        return self._rows(_AFTER, (self._numbers.get(queue), place, limit))

    def before(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        return self._rows(_BEFORE, (self._numbers.get(queue), place, limit))

    def expiring(self, after: tuple[int, int], until: int, limit: int) -> Sequence[Row]:
        return self._rows(_EXPIRING, (*after, until, limit))

    def next_offset(self, topic: str, partition: int, after: int) -> int | None:
        """Of the records that wait in a partition, the first one behind this one."""
        found = self._read(_NEXT_OFFSET, (self._numbers.get(topic), partition, after))
        return found[0][0] if found else None

    def held_before(self, topic: str, partition: int, start: int, after: int) -> Sequence[Row]:
        """Rows of records between two offsets, some at a time: those behind `after` first."""
        return self._rows(_BETWEEN, (self._numbers.get(topic), partition, after, start))

    def totals(self, queue: str) -> Totals:
        return self._totals.get(queue, EMPTY)

    def total(self) -> Totals:
        return self._total

    def copies(self) -> Totals:
        return self._copies

    def queues(self) -> Iterable[str]:
        return list(self._totals)

    def _rows(self, query: str, values: tuple[int | None, ...]) -> list[Row]:
        return [self._row(found) for found in self._read(query, values)]

    # -- rows and tables --------------------------------------------------------------------

    def _record(self, at: RecordAt) -> tuple[int, int, int]:
        return self._number(at.topic), at.partition, at.offset

    def _values(self, row: Row) -> tuple[object, ...]:
        return (
            self._number(row.queue),
            row.lookup_id,
            *self._record(row.at),
            bytes(row.source),
            row.ordinal,
            row.size,
            row.arrived_ms,
            row.expires,
            int(row.wants),
            row.letterhead,
            row.aborts,
            row.moves,
            row.moved_at,
        )

    def _row(self, values: tuple[Any, ...]) -> Row:
        queue, place, topic, partition, offset, source, ordinal, size, arrived, expires = values[
            :10
        ]
        wants, letterhead, aborts, moves, moved_at = values[10:]
        return Row(
            self._texts[queue],
            place,
            RecordAt(self._texts[topic], partition, offset),
            Guid(source),
            ordinal,
            size,
            arrived,
            expires,
            Wants(wants),
            letterhead,
            aborts,
            moves,
            moved_at,
        )

    def _number(self, name: str) -> int:
        """Of a queue or a topic: a row says which one in a byte or two."""
        number = self._numbers.get(name)
        if number is None:
            text = name.encode("utf-8", "surrogatepass")
            number = self._change("insert into name (text) values (?)", (text,)).lastrowid
            assert number is not None
            self._know(number, name)
        return number

    def _know(self, number: int, name: str) -> None:
        self._texts[number] = name
        self._numbers[name] = number

    def _change(self, query: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        with _guarded():
            if not self._db.in_transaction:
                self._db.execute("begin")
            return self._db.execute(query, values)

    def _read(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with _guarded():
            return self._db.execute(query, values).fetchall()


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise ValueError("two messages in one place, or one message in two") from error
    except sqlite3.Error as error:
        raise ViewLost(f"the view of the retained queues: {error}") from error


def throw_away(file: Path) -> None:
    """With what SQLite keeps beside it: an old log must not meet a new file."""
    for each in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        each.unlink(missing_ok=True)


def _open(file: Path, identity: str) -> sqlite3.Connection:
    known = _reopen(file, identity)
    if known is not None:
        return known
    throw_away(file)
    with _guarded(), _connect(file) as db:
        _tune(db)
        db.execute("begin")
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute("insert into stamp values (?)", (identity,))
        db.execute(f"pragma user_version = {_VERSION}")  # a pragma takes no parameter
    return db


def _reopen(file: Path, identity: str) -> sqlite3.Connection | None:
    """None: it is not there, not ours, or not whole."""
    if not file.exists():
        return None
    db = _connect(file)
    try:
        _tune(db)
        if _is_ours(db, identity):
            return db
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _UNUSABLE:  # somebody else has it, a full disk
            db.close()
            raise ViewLost(f"{file}: {error}") from error
    db.close()
    return None


def _connect(file: Path) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite says better what is wrong
        touch_private(file)  # and gives the files beside it the same mode
    # Python begins no transactions on its own then: a savepoint in none would be a commit.
    return sqlite3.connect(file, timeout=1.0, check_same_thread=False, isolation_level=None)


def _tune(db: sqlite3.Connection) -> None:
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = normal")  # a power cut may cost the last commits, no more


def _is_ours(db: sqlite3.Connection, identity: str) -> bool:
    return (
        _answer(db, "pragma user_version") == _VERSION
        and _answer(db, "select identity from stamp") == identity
        and _answer(db, "pragma quick_check(1)") == "ok"
    )


def _sum(several: Iterable[Totals]) -> Totals:
    total = EMPTY
    for one in several:
        total = total.plus(one.count, one.bytes)
    return total


def _answer(db: sqlite3.Connection, query: str) -> object:
    (found,) = db.execute(query).fetchone()
    return found
