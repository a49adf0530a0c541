"""Readers, transactions, a bad Kafka and restarts against the model of `model.py`: DM-17 to DM-31.

Whatever happens, the queues answer as the digest says, and the shelf that a restart builds from
Kafka, or from an old file and the tail of Kafka, is the one that was there.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bridge.adapters.store.retained_view import RetainedView, throw_away
from bridge.core.retained.effects import Change, Command, Commit, Delivered, Ended, Removal
from bridge.core.retained.errors import Refused
from bridge.core.retained.fates import Fated, fates_of
from bridge.core.retained.naming import DEADLETTER
from bridge.core.retained.place import START, lookup_id, low_bits
from bridge.core.retained.queues import Access, Share, Traits
from bridge.core.retained.reading import Seek
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row, Wants
from bridge.core.retained.shelf import MemoryShelf, Shelf, Totals
from bridge.core.retained.sweeping import Sweep
from bridge.protocol.events import Instant
from tests.core.retained.model import JOURNAL_QUOTA, Answer, Letter, Model, No, root
from tests.core.retained.world import NOW, ORDERS, PLAIN, RETRY, SENDER, copy_row

JOURNAL, PLAIN_RETRY = f"{PLAIN};journal", f"{PLAIN};retry"
QUEUES = (PLAIN, ORDERS, RETRY, PLAIN_RETRY, JOURNAL, DEADLETTER)
ACCESS = {"receive": Access.RECEIVE, "peek": Access.PEEK, "move": Access.MOVE}
SEEKS = {
    "current": Seek.CURRENT,
    "next": Seek.NEXT,
    "previous": Seek.PREVIOUS,
    "first": Seek.FIRST,
    "last": Seek.LAST,
}
WAITS = (0.0, 0.0, 5.0, 1000.0)
ODD = 40  # an index that asks for nonsense
UNKNOWN = 3  # a transaction that never begins
picks = st.integers(0, ODD)


def pick(things: Sequence[Any], index: int) -> Any:
    """One of them; of none of them a number that is nobody's."""
    return things[index % len(things)] if things else 1


def uow(deal: int) -> bytes:
    return deal.to_bytes(16, "big")


class Flight:
    """One commit and what the model says of it."""

    def __init__(self, commit: Commit, expected: tuple[Answer, ...]) -> None:
        self.commit, self.expected = commit, expected
        self.is_committed = False


class Machine(RuleBasedStateMachine):
    """One rule for all actions: so often as their weights say, and each one possible."""

    WEIGHTS: ClassVar[dict[str, int]] = {
        "arrive": 7,
        "arrive_late": 4,
        "open": 1,
        "close": 1,
        "open_cursor": 1,
        "read": 6,
        "read_in_transaction": 5,
        "read_with_cursor": 5,
        "look_up": 4,
        "end": 6,
        "cancel": 1,
        "finish": 4,
        "reject": 2,
        "move": 5,
        "purge": 1,
        "delete": 1,
        "tick": 3,
        "kafka_commits": 5,
        "settle": 5,
        "settle_all": 2,
        "restore": 3,
        "restart": 2,
        "odd_call": 2,
    }

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, list[Any]] = {"data": [], "copies": [], "state": []}
        self.late: list[Row] = []  # committed, but nobody has said so yet
        self.model = Model(transactional={ORDERS}, journaled={PLAIN})
        self.ids = count(1)
        self.shelf = self.first_shelf()
        self.start()
        for _ in range(3):
            self.do_arrive(self.made(PLAIN))
            self.do_arrive(self.made(ORDERS))

    def first_shelf(self) -> Shelf:
        return MemoryShelf()

    def start(self) -> None:
        self.queues = RetainedQueues(self.shelf, self.ids.__next__)
        self.flights: list[Flight] = []
        self.handles: list[int] = []
        self.cursors: list[int] = []
        self.tags = count(1)
        self.define(PLAIN)
        self.define(ORDERS)
        self.open_doors()

    def define(self, name: str) -> None:
        is_plain = name == PLAIN
        kilobytes = JOURNAL_QUOTA // 1024
        self.queues.define(
            name,
            Traits(transactional=not is_plain, journaling=is_plain, journal_quota_kb=kilobytes),
        )

    def open_doors(self) -> None:
        for queue in (PLAIN, ORDERS, ORDERS, RETRY, PLAIN_RETRY, JOURNAL):
            self.do_open(queue, "receive", False)
        for queue in (RETRY, ORDERS, PLAIN_RETRY):
            self.do_open(queue, "move", False)
        for index in range(4):
            self.open_cursor(index, 0, 0)

    @rule(data=st.data(), a=picks, b=picks, c=picks)
    def act(self, data: st.DataObject, a: int, b: int, c: int) -> None:
        possible = [name for name in self.WEIGHTS if self.is_possible(name)]
        weighted = [name for name in possible for _ in range(self.WEIGHTS[name])]
        getattr(self, data.draw(st.sampled_from(weighted)))(a, b, c)

    def is_possible(self, name: str) -> bool:
        match name:
            case "arrive_late":
                return bool(self.late)
            case "end":
                return any(door.pending for door in self.model.doors.values())
            case "cancel":
                return bool(self.model.waits)
            case "finish":
                return bool(self.model.deals)
            case "reject":
                return any(deal.steps for deal in self.model.deals.values())
            case "kafka_commits" | "restore":
                return any(not flight.is_committed for flight in self.flights)
            case "settle":
                return any(flight.is_committed for flight in self.flights)
            case "delete":
                return len(self.log["data"]) > 15
        return True

    # -- both sides -------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        return Instant(self.model.now, NOW + self.model.now)

    def both(self, real: Callable[[], Any], model: Callable[[], Any]) -> None:
        """The same call, the same answer or the same refusal."""
        expected, refusal = None, None
        try:
            expected = model()
        except No as no:
            refusal = no.args[0]
        commands, refused = None, None
        try:
            commands = real()
        except Refused as error:
            refused = error.status
        assert refused == refusal
        self.compare(commands or [], expected or [])

    def compare(self, commands: list[Command], expected: list[Answer]) -> None:
        assert [spelled(command) for command in commands] == expected
        self.flights += [
            Flight(command, answer[1])
            for command, answer in zip(commands, expected, strict=True)
            if isinstance(command, Commit)
        ]

    def reader(self, index: int) -> int:
        """A handle to receive with, most of the time."""
        doors = self.model.doors
        good = [h for h in self.handles if doors[h].access == "receive" and doors[h].queue]
        return int(pick(self.handles if index == ODD else good, index))

    def number(self, index: int, handle: int) -> int:
        """Of some message that this handle leads to, most of the time."""
        door = self.model.doors.get(handle)
        near = [x.number for x in self.model.letters if door and x.queue == door.queue]
        return int(pick(near if near and index != ODD else [7], index))

    # -- arrivals ---------------------------------------------------------------------------

    def arrive(self, a: int, b: int, c: int) -> None:
        row = self.made(
            pick((PLAIN, PLAIN, ORDERS, ORDERS, RETRY), a),
            priority=pick((3, 3, 7, 0), b),
            lasts=pick((None, None, 3, 30), c),
            size=pick((100, 500), a + b),
            dead=bool((b + c) % 2),
        )
        if (a + c) % 5:
            self.do_arrive(row)
        else:
            self.late.append(row)

    def made(
        self,
        queue: str,
        priority: int = 3,
        lasts: int | None = None,
        size: int = 100,
        dead: bool = False,
    ) -> Row:
        """A record that is committed."""
        is_plain = queue == PLAIN
        row = Row(
            queue,
            lookup_id(priority, next(self.ids), transactional=not is_plain),
            RecordAt("data", 0, len(self.log["data"])),
            SENDER,
            len(self.log["data"]),
            size,
            NOW * 1000,
            None if lasts is None else int(NOW + self.model.now) + lasts,
            Wants.DEAD_LETTER if dead and is_plain else Wants.NOTHING,
        )
        self.log["data"].append(row)
        return row

    def arrive_late(self, a: int, b: int, c: int) -> None:
        self.do_arrive(self.late.pop(a % len(self.late)))

    def do_arrive(self, row: Row) -> None:
        self.both(
            lambda: self.queues.arrive([row], self.now), lambda: self.model.arrive(letter(row))
        )

    # -- doors ------------------------------------------------------------------------------

    def open(self, a: int, b: int, c: int) -> None:
        access = pick(("receive", "peek", "move"), b)
        queue = pick(QUEUES, a)
        if access != "move" or queue not in (JOURNAL, DEADLETTER):
            self.do_open(queue, access, c % 4 == 0)

    def do_open(self, queue: str, access: str, alone: bool) -> None:
        share = Share.DENY_RECEIVE if alone else Share.DENY_NONE
        opened: list[int] = []
        self.both(
            lambda: opened.append(self.queues.handles.open(queue, ACCESS[access], share)),
            lambda: self.model.open(-1, queue, access, alone),
        )
        for handle in opened:
            self.handles.append(handle)
            self.model.doors[handle] = self.model.doors.pop(-1)

    def close(self, a: int, b: int, c: int) -> None:
        handle = pick(self.handles, a)
        if handle in self.handles:
            self.handles.remove(handle)
        self.both(
            lambda: self.queues.answering.close(handle, self.now),
            lambda: self.model.close(handle),
        )

    def open_cursor(self, a: int, b: int, c: int) -> None:
        handle = self.reader(a)
        opened: list[int] = []
        self.both(
            lambda: opened.append(self.queues.handles.open_cursor(handle)),
            lambda: self.model.open_cursor(handle, -1),
        )
        for number in opened:
            self.cursors.append(number)
            cursors = self.model.doors[handle].cursors
            cursors[number] = cursors.pop(-1)

    def with_cursor(self, a: int, b: int) -> tuple[int, int]:
        """A cursor and, most of the time, its handle."""
        cursor = pick(self.cursors, b)
        owners = [h for h, door in self.model.doors.items() if cursor in door.cursors]
        return (owners or [self.reader(a)])[0], cursor

    # -- reads ------------------------------------------------------------------------------

    def read(self, a: int, b: int, c: int) -> None:
        self.do_read(pick(("peek", "receive", "receive"), b), self.reader(a), pick(WAITS, c))

    def read_in_transaction(self, a: int, b: int, c: int) -> None:
        doors = self.model.doors
        good = [h for h in self.handles if doors[h].queue in (ORDERS, RETRY)]
        handle = pick(good if a != ODD else self.handles, a)
        self.do_read("receive", handle, pick(WAITS, c), deal=self.deal(b))

    def read_with_cursor(self, a: int, b: int, c: int) -> None:
        how = pick(("peek", "next", "next", "receive"), a)
        handle, cursor = self.with_cursor(a, b)
        self.do_read(how, handle, pick(WAITS, c), cursor)

    def deal(self, index: int) -> int:
        """A transaction; it has begun, unless it is the unknown one."""
        deal = int(pick((1, 1, 1, 2, 2, UNKNOWN), index))
        if deal not in self.model.deals and deal != UNKNOWN:
            self.do_begin(deal)
        return deal

    def do_begin(self, deal: int) -> None:
        self.both(lambda: self.queues.transactions.begin(uow(deal)), lambda: self.model.begin(deal))

    def do_read(
        self, how: str, handle: int, wait: float, cursor: int = 0, *, deal: int = 0
    ) -> None:
        tag, reading = next(self.tags), self.queues.reading
        more: dict[str, Any] = {"transaction": uow(deal)} if deal else {}
        calls: dict[str, Any] = {
            "peek": reading.peek,
            "next": reading.peek_next,
            "receive": reading.receive,
        }
        self.both(
            lambda: calls[how](handle, tag, self.now, wait_s=wait, cursor=cursor, **more),
            lambda: self.model.read(how, handle, tag, wait, cursor, deal),
        )

    def look_up(self, a: int, b: int, c: int) -> None:
        seek, takes = pick(tuple(SEEKS), c), bool((b + c) % 2)
        handle, tag = self.reader(a), next(self.tags)
        number = self.number(b, handle)
        deal = self.deal(a) if takes and c % 3 == 0 else 0
        reading, more = self.queues.reading, {"transaction": uow(deal)} if deal else {}
        call: Any = reading.receive_at if takes else reading.peek_at
        self.both(
            lambda: call(handle, tag, self.now, SEEKS[seek], number, **more),
            lambda: self.model.look_up(seek, handle, tag, number, takes, deal),
        )

    # -- ends -------------------------------------------------------------------------------

    def end(self, a: int, b: int, c: int) -> None:
        pending = [(h, tag) for h, door in self.model.doors.items() for tag in door.pending]
        handle, tag = pick(pending, a)
        self.do_end(handle, tag, b % 3 != 0)

    def do_end(self, handle: int, tag: int, delete: bool) -> None:
        self.both(
            lambda: self.queues.answering.end(handle, tag, self.now, delete=delete),
            lambda: self.model.end(handle, tag, delete),
        )

    def cancel(self, a: int, b: int, c: int) -> None:
        handle, tag = pick([(w.handle, w.tag) for w in self.model.waits], a)
        tag += 1000 if b == ODD else 0
        self.both(
            lambda: self.queues.answering.cancel(handle, tag),
            lambda: self.model.cancel(handle, tag),
        )

    def odd_call(self, a: int, b: int, c: int) -> None:
        """What a sane reader would not do."""
        match c % 5:
            case 0:
                self.do_end(self.reader(a), 0, True)
            case 1:
                self.do_begin(1)
            case 2:
                self.do_finish(UNKNOWN, b % 2 == 0)
            case 3:
                handle = self.reader(a)
                self.do_reject(handle, self.number(b, handle))
            case _:
                handle, cursor = self.with_cursor(a, b)
                self.both(
                    lambda: self.queues.answering.close_cursor(handle, cursor),
                    lambda: self.model.close_cursor(handle, cursor),
                )

    # -- transactions and moves -------------------------------------------------------------

    def finish(self, a: int, b: int, c: int) -> None:
        self.do_finish(pick(sorted(self.model.deals), a), b % 2 == 0)

    def do_finish(self, deal: int, commit: bool) -> None:
        transactions, name = self.queues.transactions, uow(deal)
        self.both(
            lambda: (
                transactions.commit(name, self.now)
                if commit
                else transactions.abort(name, self.now)
            ),
            lambda: self.model.finish(deal, commit),
        )

    def reject(self, a: int, b: int, c: int) -> None:
        x = pick([x for deal in self.model.deals.values() for x, _ in deal.steps], a)
        doors = self.model.doors
        self.do_reject(pick([h for h in self.handles if doors[h].queue == x.queue], b), x.number)

    def do_reject(self, handle: int, number: int) -> None:
        self.both(
            lambda: self.queues.answering.reject(handle, number, 0xC004),
            lambda: self.model.reject(handle, number),
        )

    def move(self, a: int, b: int, c: int) -> None:
        doors, here = self.model.doors, self.reader(a)
        targets = [h for h in self.handles if doors[h].access == "move"]
        near = [h for h in targets if here in doors and related(doors[h].queue, doors[here].queue)]
        there = pick(near if near and b != ODD else targets, b)
        number = self.number(c, here)
        deal = self.deal(a) if c % 2 else 0
        more = {"transaction": uow(deal)} if deal else {}
        self.both(
            lambda: self.queues.moving.move(here, there, number, self.now, **more),
            lambda: self.model.move(here, there, number, deal),
        )

    # -- emptying and time ------------------------------------------------------------------

    def purge(self, a: int, b: int, c: int) -> None:
        handle = self.reader(a)

        def real() -> list[Command]:
            return list(self.sweep(self.queues.sweeping.purge(handle), b % 4 + 1))

        self.both(real, lambda: self.model.purge(handle))

    def sweep(self, sweep: Sweep, limit: int) -> Iterator[Command]:
        while commands := self.queues.sweeping.step(sweep, self.now, limit):
            yield from commands

    def delete(self, a: int, b: int, c: int) -> None:
        self.do_delete(pick((PLAIN, ORDERS), a), b % 4 + 1)
        self.open_doors()

    def do_delete(self, queue: str, limit: int) -> None:
        family = [queue, f"{queue};journal", f"{queue};retry"]

        def real() -> list[Command]:
            commands, sweep = self.queues.sweeping.delete(queue)
            return [*commands, *self.sweep(sweep, limit)]

        self.both(real, lambda: self.model.delete(queue, family))
        self.redefine()

    def redefine(self) -> None:
        """A deleted queue is made again as soon as that is possible."""
        for name in (PLAIN, ORDERS):
            if name not in self.model.deleted:
                self.define(name)

    def tick(self, a: int, b: int, c: int) -> None:
        seconds = pick((0.5, 2.0, 2.0, 40.0, 300.0), a)
        self.both(lambda: self.queues.tick(self.now), lambda: self.model.tick(seconds))

    # -- Kafka ------------------------------------------------------------------------------

    def kafka_commits(self, a: int, b: int, c: int) -> None:
        """Its entries are durable; nobody here knows it yet."""
        flight = pick([flight for flight in self.flights if not flight.is_committed], a)
        flight.is_committed = True
        for effect in flight.commit.effects:
            if isinstance(effect, Removal) and effect.copy is not None:
                copy = copy_row(effect, RecordAt("copies", 0, len(self.log["copies"])))
                self.log["copies"].append(copy)
                self.late.append(copy)
        self.log["state"] += fates_of(flight.commit.effects)

    def settle(self, a: int, b: int, c: int) -> None:
        flight = pick([flight for flight in self.flights if flight.is_committed], a)
        self.flights.remove(flight)
        self.both(
            lambda: self.queues.settle(flight.commit.ticket, self.now),
            lambda: self.model.settle(outcome(flight)),
        )
        self.redefine()

    def settle_all(self, a: int, b: int, c: int) -> None:
        while any(not flight.is_committed for flight in self.flights):
            self.kafka_commits(a, b, c)
        for _ in list(self.flights):
            self.settle(a, b, c) if any(f.is_committed for f in self.flights) else None

    def restore(self, a: int, b: int, c: int) -> None:
        flight = pick([flight for flight in self.flights if not flight.is_committed], a)
        self.flights.remove(flight)
        self.both(
            lambda: self.queues.restore(flight.commit.ticket, self.now),
            lambda: self.model.restore(list(flight.expected)),
        )

    # -- restarts ---------------------------------------------------------------------------

    def restart(self, a: int, b: int, c: int) -> None:
        """What is committed counts, whether anybody knew it or not; the rest never happened."""
        self.restart_model()
        self.shelf = self.rebuilt(pick(("kill", "kill", "backup", "lost"), a), b % 2 == 0)
        self.late = []
        deleted, self.model.deleted = sorted(self.model.deleted), set()
        self.start()
        for queue in deleted:
            self.do_delete(queue, 3)

    def restart_model(self) -> None:
        committed = [flight for flight in self.flights if flight.is_committed]
        self.model.forget()
        self.model.letters += [letter(row) for row in self.late]
        for flight in committed:
            for effect, number in outcome(flight):
                if effect[0] == "now":
                    self.model.change(effect, number)
                else:
                    self.model.letters.remove(self.model.letter(effect[1]))

    def rebuilt(self, how: str, fates_first: bool) -> Shelf:
        rows = {row.at: row for row in (*self.log["data"], *self.log["copies"])}
        first = dict(rows)
        for fated in self.log["state"]:
            new = fated.fate.applied_to(first[fated.at])
            if new is None:
                del rows[fated.at]
            else:
                rows[fated.at] = new
        return MemoryShelf(rows.values())

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def the_shelf_is_the_model(self) -> None:
        """DM-20: LookupIdentifier strictly ascends along the order. DM-31: totals are right."""
        for queue in QUEUES:
            rows, line = self.shelf.after(queue, START, 999), self.model.line(queue)
            assert [spelled_row(row) for row in rows] == [
                (x.name, x.number, x.aborts, x.moves) for x in line
            ]
            places = [row.lookup_id for row in rows]
            assert places == sorted(set(places))
            totals = Totals(len(line), sum(x.size for x in line))
            assert self.shelf.totals(queue) == totals
        letters = self.model.letters
        assert self.shelf.total() == Totals(len(letters), sum(x.size for x in letters))

    @invariant()
    def locks_are_held_for_a_reason(self) -> None:
        locked = {x.number for x in self.model.letters if x.state != "available"}
        assert {low_bits(place) for place in self.queues._stock.locks} == locked


def related(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other and root(one) == root(other)


def letter(row: Row) -> Letter:
    return Letter(
        name=(row.at.topic, row.at.offset),
        queue=row.queue,
        rank=row.lookup_id >> 56,
        number=low_bits(row.lookup_id),
        size=row.size,
        expires=float("inf") if row.expires is None else row.expires - NOW,
        dead_letter=bool(row.wants & Wants.DEAD_LETTER),
    )


def outcome(flight: Flight) -> list[tuple[Answer, int]]:
    """What the model needs to know of a flight that Kafka has: numbers of moved messages."""
    numbers = [
        low_bits(effect.to.lookup_id) if isinstance(effect, Change) else 0
        for effect in flight.commit.effects
    ]
    return list(zip(flight.expected, numbers, strict=True))


def spelled(command: Command) -> Answer:
    match command:
        case Delivered(handle, tag, row):
            return ("got", handle, tag, (row.at.topic, row.at.offset))
        case Ended(handle, tag, status):
            return ("end", handle, tag, int(status))
        case Commit(_, effects):
            return ("commit", tuple(spelled_effect(effect) for effect in effects))


def spelled_effect(effect: Removal | Change) -> Answer:
    name = effect.row.at.topic, effect.row.at.offset
    if isinstance(effect, Removal):
        return ("gone", name, int(effect.reason), effect.copy.queue if effect.copy else "")
    return ("now", name, effect.to.queue, effect.to.aborts, effect.to.moves)


def spelled_row(row: Row) -> Answer:
    name = row.at.topic, row.at.offset
    return (name, low_bits(row.lookup_id), row.aborts, row.moves)


class ViewMachine(Machine):
    """The same on SQLite, where a restart finds a file: the last one, an old one or none."""

    def first_shelf(self) -> Shelf:
        self.folder = Path(tempfile.mkdtemp(prefix="retained-view-"))
        self.file = self.folder / "view.db"
        self.view = RetainedView(self.file, "test")
        return self.view

    WEIGHTS: ClassVar[dict[str, int]] = Machine.WEIGHTS | {"save": 3, "back_up": 1}

    def save(self, a: int, b: int, c: int) -> None:
        self.view.commit(self.reached())

    def reached(self) -> dict[tuple[str, int], int]:
        """Everything before is on the shelf: what is late, or committed but not settled, is not."""
        waiting: dict[str, list[int]] = {"data": [], "copies": []}
        for row in self.late:
            waiting[row.at.topic].append(row.at.offset)
        committed = [flight for flight in self.flights if flight.is_committed]
        waiting["state"] = [
            self.log["state"].index(fated)
            for flight in committed
            for fated in fates_of(flight.commit.effects)
        ]
        return {
            (topic, 0): min((*waiting[topic], len(events))) for topic, events in self.log.items()
        }

    def back_up(self, a: int, b: int, c: int) -> None:
        self.save(a, b, c)
        for file in self.folder.glob("view.db*"):
            shutil.copy(file, self.folder / f"old-{file.name}")

    def rebuilt(self, how: str, fates_first: bool) -> Shelf:
        self.view.close()
        if how != "kill":
            throw_away(self.file)
        if how == "backup":
            for file in self.folder.glob("old-view.db*"):
                shutil.copy(file, self.folder / file.name.removeprefix("old-"))
        self.view = RetainedView(self.file, "test")
        self.view.replay(self.tail(fates_first))
        self.view.commit({(topic, 0): len(events) for topic, events in self.log.items()})
        return self.view

    def tail(self, fates_first: bool) -> Iterator[Row | Fated]:
        positions = self.view.positions()
        order = ("state", "copies", "data") if fates_first else ("data", "copies", "state")
        for topic in order:
            yield from self.log[topic][positions.get((topic, 0), 0) :]

    def teardown(self) -> None:
        self.view.close()
        shutil.rmtree(self.folder)


TestInMemory = Machine.TestCase
TestInMemory.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestOnDisk = ViewMachine.TestCase
TestOnDisk.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
