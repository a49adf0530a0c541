"""Retained queues as the digest tells them, with plain lists and no thought of speed.

Written from data-model.md 2.2 to 2.14 and remote-read.md 2.5, without a look at the code. Answers
are tuples: ("got", handle, tag, message), ("end", handle, tag, status), ("commit", effects), where
an effect is ("gone", message, reason, queue of the copy) or ("now", message, queue, aborts, moves).
"""

from dataclasses import dataclass, field
from typing import Any

START, END = (-1, 0), (8, 0)
DEADLETTER = "system$;deadletter"
JOURNAL_QUOTA = 1024
Answer = tuple[Any, ...]


class No(Exception):
    """Refused with this status."""


@dataclass(eq=False)
class Letter:
    """A message. `name` tells it apart from all others: where its record is."""

    name: Any
    queue: str
    rank: int  # 7 - priority
    number: int  # SequentialID
    size: int = 100
    expires: float = float("inf")
    dead_letter: bool = False
    aborts: int = 0
    moves: int = 0
    state: str = "available"  # or locked, flying
    purged: bool = False
    reader: tuple[int, int] | None = None  # who has not confirmed it yet
    transaction: "Deal | None" = None

    @property
    def place(self) -> tuple[int, int]:
        return self.rank, self.number


@dataclass(eq=False)
class Pointer:
    """A cursor."""

    place: tuple[int, int] = START
    state: str = "unread"  # read, peeking, receiving
    before: str = "unread"
    ended: bool = False  # at End


@dataclass(eq=False)
class Deal:
    """A transaction: (letter, reason or target queue), first in, first out."""

    steps: list[tuple[Letter, Any]] = field(default_factory=list)


@dataclass(eq=False)
class Door:
    """An open queue."""

    queue: str | None
    access: str  # receive, peek, move
    alone: bool = False
    cursors: dict[int, Pointer] = field(default_factory=dict)
    pending: dict[int, tuple[Letter, int]] = field(default_factory=dict)  # not ended; its moves


@dataclass(eq=False)
class Wait:
    handle: int
    tag: int
    queue: str
    takes: bool
    pointer: Pointer | None
    deal: Deal | None
    due: float


class Model:
    def __init__(self, transactional: set[str], journaled: set[str]) -> None:
        self.transactional, self.journaled = transactional, journaled
        self.letters: list[Letter] = []
        self.deleted: set[str] = set()
        self.now = 0.0
        self.forget()

    def forget(self) -> None:
        """A restart: DM-26, RR-29."""
        self.doors: dict[int, Door] = {}
        self.waits: list[Wait] = []
        self.deals: dict[int, Deal] = {}
        self.timers: dict[tuple[int, int], float] = {}
        self.copies_under_way: list[tuple[str, int]] = []
        for letter in self.letters:
            letter.state, letter.purged = "available", False
            letter.reader = letter.transaction = None

    # -- what can be seen -------------------------------------------------------------------

    def line(self, queue: str) -> list[Letter]:
        """2.6: priority, then arrival."""
        return sorted((x for x in self.letters if x.queue == queue), key=lambda x: x.place)

    def visible(self, queue: str) -> list[Letter]:
        return [x for x in self.line(queue) if x.state == "available" and x.expires > self.now]

    def after(self, queue: str, place: tuple[int, int]) -> Letter | None:
        return next((x for x in self.visible(queue) if x.place > place), None)

    def before(self, queue: str, place: tuple[int, int]) -> Letter | None:
        return next((x for x in self.visible(queue)[::-1] if x.place < place), None)

    # -- doors ------------------------------------------------------------------------------

    def open(self, handle: int, queue: str, access: str, alone: bool) -> None:
        if root(queue) in self.deleted:
            raise No(0xC00E0003)
        for other in self.doors.values():
            if other.queue == queue and collide(other, access, alone):
                raise No(0xC00E0009)
        self.doors[handle] = Door(queue, access, alone)

    def door(self, handle: int) -> Door:
        if handle not in self.doors:
            raise No(0xC00E0007)
        return self.doors[handle]

    def live(self, handle: int) -> tuple[Door, str]:
        door = self.door(handle)
        if door.queue is None:
            raise No(0xC00E004B)
        return door, door.queue

    def open_cursor(self, handle: int, number: int) -> None:
        door, _ = self.live(handle)
        if door.access == "move":
            raise No(0xC00E0025)
        door.cursors[number] = Pointer()

    def close_cursor(self, handle: int, number: int) -> list[Answer]:
        door = self.door(handle)
        if number not in door.cursors:
            raise No(0xC0000008)
        pointer = door.cursors.pop(number)
        waits = [w for w in self.waits if w.pointer is pointer]
        return [self.stop(w, 0xC00E0008) for w in waits]

    def close(self, handle: int) -> list[Answer]:
        door = self.door(handle)
        answers = [self.stop(w, 0xC00E0008) for w in self.waits_of(handle)]
        del self.doors[handle]
        for tag in list(door.pending):
            answers += self.take_back(handle, door, tag)
        return answers

    def waits_of(self, handle: int) -> list[Wait]:
        return [w for w in self.waits if w.handle == handle]

    # -- reads ------------------------------------------------------------------------------

    def prepare(self, handle: int, tag: int, cursor: int, takes: bool, deal: int) -> Any:
        door, queue = self.live(handle)
        if tag in door.pending or any(w.tag == tag for w in self.waits_of(handle)):
            raise No(0xC00E0006)
        if cursor and cursor not in door.cursors:
            raise No(0xC0000008)
        if door.access == "move" or (takes and door.access == "peek"):
            raise No(0xC00E0025)
        if deal and root(queue) not in self.transactional:
            raise No(0xC00E0050)
        if deal and deal not in self.deals:
            raise No(0xC00E0051)
        return queue, door.cursors.get(cursor), self.deals.get(deal)

    def read(
        self, how: str, handle: int, tag: int, wait: float, cursor: int = 0, deal: int = 0
    ) -> list[Answer]:
        takes = how == "receive"
        queue, pointer, transaction = self.prepare(handle, tag, cursor, takes, deal)
        if pointer is None:
            if how == "next":
                raise No(0xC00E001C)
            found = self.after(queue, START)
        else:
            found = self.follow(pointer, queue, how)
        if found is not None:
            return [self.give(handle, tag, found, takes, transaction)]
        if not wait:
            raise No(0xC00E0088 if takes and pointer else 0xC00E001B)
        if pointer is not None:
            pointer.before, pointer.state = pointer.state, "receiving" if takes else "peeking"
        due = self.now + wait
        self.waits.append(Wait(handle, tag, queue, takes, pointer, transaction, due))
        return []

    def follow(self, pointer: Pointer, queue: str, how: str) -> Letter | None:
        """2.8"""
        if pointer.state in ("peeking", "receiving"):
            raise No(0xC00E001C)
        if how == "next" and pointer.state == "unread":
            raise No(0xC00E001C)
        if how != "next" and pointer.state == "read":
            same = [x for x in self.visible(queue) if x.place == pointer.place]
            if not same:
                raise No(0xC00E001D)
            found: Letter | None = same[0]
        else:
            found = self.after(queue, pointer.place)
        if found is not None:
            pointer.place = found.place
            pointer.state = "unread" if how == "receive" else "read"
            pointer.ended = False
        return found

    def give(self, handle: int, tag: int, x: Letter, takes: bool, deal: Deal | None) -> Answer:
        if takes:
            x.state, x.reader, x.transaction = "locked", (handle, tag), deal
            self.doors[handle].pending[tag] = x, x.moves
            self.timers[handle, tag] = self.now + 300
            if deal is not None:
                deal.steps.append((x, 0x4000))
        return ("got", handle, tag, x.name)

    def look_up(
        self, seek: str, handle: int, tag: int, number: int, takes: bool, deal: int = 0
    ) -> list[Answer]:
        """2.7: by lookup id; T-4."""
        queue, _, transaction = self.prepare(handle, tag, 0, takes, deal)
        found: Letter | None
        if seek in ("first", "last"):
            found = self.after(queue, START) if seek == "first" else self.before(queue, END)
        else:
            anchors = [x for x in self.line(queue) if x.number == number]
            if not anchors:
                raise No(0xC00E0088)
            anchor = anchors[0]
            if seek == "current":
                if anchor.state != "available" and not anchor.purged and not takes:
                    raise No(0xC00E0050)
                found = anchor if anchor in self.visible(queue) else None
            elif seek == "next":
                found = self.after(queue, anchor.place)
            else:
                found = self.before(queue, anchor.place)
        if found is None:
            raise No(0xC00E0088)
        return [self.give(handle, tag, found, takes, transaction)]

    # -- ends -------------------------------------------------------------------------------

    def end(self, handle: int, tag: int, delete: bool) -> list[Answer]:
        door, _ = self.live(handle)
        if tag not in door.pending:
            busy = door.pending or any(w.takes for w in self.waits_of(handle))
            raise No(0xC00E0006 if busy else 0xC00E0007)
        x, moves = door.pending[tag]
        if x.reader != (handle, tag) or x.state != "locked":
            del door.pending[tag], self.timers[handle, tag]
            there = x.reader != (handle, tag) and x in self.letters and x.moves == moves
            raise No(0xC00E0051 if there else 0xC00E0088)
        if not delete:
            return self.take_back(handle, door, tag)
        del door.pending[tag], self.timers[handle, tag]
        if x.transaction is not None:
            return []
        return [self.fly([(x, 0xC001 if x.purged else 0x4000)])]

    def take_back(self, handle: int, door: Door, tag: int) -> list[Answer]:
        del self.timers[handle, tag]
        x, _ = door.pending.pop(tag)
        if x.reader != (handle, tag) or x.state != "locked":
            return []
        if x.transaction is not None:
            x.transaction.steps = [step for step in x.transaction.steps if step[0] is not x]
        return self.free(x)

    def cancel(self, handle: int, tag: int) -> list[Answer]:
        self.door(handle)
        for w in self.waits_of(handle):
            if w.tag == tag:
                return [self.stop(w, 0xC00E0008)]
        raise No(0xC0000225)

    def stop(self, w: Wait, status: int) -> Answer:
        self.waits.remove(w)
        if w.pointer is not None and w.takes:
            w.pointer.ended, w.pointer.state = True, "unread"
        elif w.pointer is not None:
            w.pointer.state = w.pointer.before
        return ("end", w.handle, w.tag, status)

    def free(self, x: Letter) -> list[Answer]:
        """Nobody holds it any more: its end, or whoever waits."""
        purged = x.purged
        x.state, x.purged, x.reader, x.transaction = "available", False, None, None
        if root(x.queue) in self.deleted:
            return [self.fly([(x, 0xC000)])]
        if purged:
            return [self.fly([(x, 0xC001)])]
        if x.expires <= self.now:
            return [self.fly([(x, 0xC002)])]
        for door in self.doors.values():
            for pointer in door.cursors.values() if door.queue == x.queue else ():
                if pointer.ended:  # it comes after End, wherever it stands
                    pointer.place = min(pointer.place, (x.rank, x.number - 1))
        answers = []
        for w in [w for w in self.waits if w.queue == x.queue]:  # DM-23
            self.waits.remove(w)
            if w.pointer is not None:
                w.pointer.place, w.pointer.state = x.place, "unread" if w.takes else "read"
                w.pointer.ended = False
            answers.append(self.give(w.handle, w.tag, x, w.takes, w.deal))
            if w.takes:
                break
        return answers

    # -- Kafka ------------------------------------------------------------------------------

    def fly(self, steps: list[tuple[Letter, Any]]) -> Answer:
        """Removals (a class), moves (a queue) and one more abort (None), in one transaction."""
        return ("commit", tuple(self.effect(x, what) for x, what in steps))

    def effect(self, x: Letter, what: Any) -> Answer:
        x.state, x.transaction = "flying", None
        if isinstance(what, str):
            return ("now", x.name, what, 0, x.moves + 1)
        if what is None:
            return ("now", x.name, x.queue, x.aborts + 1, x.moves)
        to = ""
        if what == 0x4000 and x.queue in self.journaled:
            to = f"{x.queue};journal"
            held = sum(y.size for y in self.line(to))
            held += sum(size for queue, size in self.copies_under_way if queue == to)
            to = to if held + x.size <= JOURNAL_QUOTA else ""
        elif what == 0xC002 and x.dead_letter:
            to = DEADLETTER
        if to:
            self.copies_under_way.append((to, x.size))
        return ("gone", x.name, what, to)

    def letter(self, name: Any) -> Letter:
        return next(x for x in self.letters if x.name == name)

    def settle(self, effects: list[tuple[Answer, int]]) -> list[Answer]:
        """Each with the number that a moved one has now. Copies come as arrivals."""
        answers: list[Answer] = []
        for effect, number in effects:
            x = self.letter(effect[1])
            if effect[0] == "gone":
                self.letters.remove(x)
            else:
                x.purged = x.purged and x.queue == effect[2]
                self.change(effect, number)
                answers += self.free(x)
            self.deleted = {
                q for q in self.deleted if any(root(y.queue) == q for y in self.letters)
            }
        return answers

    def change(self, effect: Answer, number: int) -> None:
        x = self.letter(effect[1])
        _, _, x.queue, x.aborts, x.moves = effect
        x.number = number

    def restore(self, effects: list[Answer]) -> list[Answer]:
        answers: list[Answer] = []
        for effect in effects:
            x = self.letter(effect[1])
            if effect[0] == "gone" and effect[3]:
                self.copies_under_way.remove((effect[3], x.size))
            answers += self.free(x)
        return answers

    def arrive(self, x: Letter) -> list[Answer]:
        self.letters.append(x)
        if (x.queue, x.size) in self.copies_under_way:
            self.copies_under_way.remove((x.queue, x.size))
        return self.free(x)

    # -- transactions -----------------------------------------------------------------------

    def begin(self, deal: int) -> None:
        if deal in self.deals:
            raise No(0xC00E0051)
        self.deals[deal] = Deal()

    def finish(self, deal: int, commit: bool) -> list[Answer]:
        if deal not in self.deals:
            raise No(0xC00E0051)
        done = self.deals.pop(deal)
        waits = sorted((w for w in self.waits if w.deal is done), key=lambda w: (w.handle, w.tag))
        answers = [self.stop(w, 0xC00E0051) for w in waits]
        steps: list[tuple[Letter, Any]] = []
        for x, what in done.steps:
            is_dequeue = commit and not isinstance(what, str)
            if x.purged and not is_dequeue:  # DM-27, T-7
                steps.append((x, 0xC001))
            else:
                steps.append((x, what if commit else None))
        return answers + ([self.fly(steps)] if steps else [])

    def reject(self, handle: int, number: int) -> None:
        door, queue = self.live(handle)
        if door.access != "receive":
            raise No(0xC00E0025)
        found = [x for x in self.line(queue) if x.number == number]
        if not found:
            raise No(0xC00E0088)
        deal = found[0].transaction
        if deal is None or any(x is found[0] and isinstance(w, str) for x, w in deal.steps):
            raise No(0xC00E0050)
        deal.steps = [(x, 0xC004 if x is found[0] else what) for x, what in deal.steps]

    def move(self, source: int, target: int, number: int, deal: int) -> list[Answer]:
        door, to = self.door(source), self.door(target)
        if to.access != "move":
            raise No(0xC00E0007)
        if door.access != "receive":
            raise No(0xC00E0025)
        (_, here), (_, there) = self.live(source), self.live(target)
        if root(here) != root(there) or here == there or here.endswith(";journal"):
            raise No(0xC000000D)
        if deal and root(there) not in self.transactional:
            raise No(0xC00E0050)
        found = [x for x in self.line(here) if x.number == number]
        if not found:
            raise No(0xC00E0088)
        x = found[0]
        if x.state != "available":
            raise No(0xC00E009C)
        if x.expires <= self.now:
            raise No(0xC00E0088)
        if not deal:
            return [self.fly([(x, there)])]
        if deal not in self.deals:
            raise No(0xC00E0051)
        x.state, x.transaction = "locked", self.deals[deal]
        x.transaction.steps.append((x, there))
        return []

    # -- emptying ---------------------------------------------------------------------------

    def purge(self, handle: int) -> list[Answer]:
        door, queue = self.live(handle)
        if door.access != "receive":
            raise No(0xC00E0025)
        answers = []
        for x in self.line(queue):
            if x.state == "available":
                answers.append(self.fly([(x, 0xC001)]))
            else:
                x.purged = True
        return answers

    def delete(self, queue: str, order: list[str]) -> list[Answer]:
        if queue in self.deleted:
            raise No(0xC00E0003)
        self.deleted.add(queue)
        answers = []
        for name in order:
            for handle, door in self.doors.items():
                if door.queue == name:
                    answers += [self.stop(w, 0xC00E004B) for w in self.waits_of(handle)]
                    for tag in door.pending:
                        del self.timers[handle, tag]
                    door.pending.clear()
                    door.queue = None
        for name in order:
            for x in self.line(name):
                if x.state != "flying":
                    if x.transaction is not None:
                        deal = x.transaction
                        deal.steps = [step for step in deal.steps if step[0] is not x]
                    answers.append(self.fly([(x, 0xC000)]))
        if not any(root(x.queue) == queue for x in self.letters):
            self.deleted.discard(queue)
        return answers

    def tick(self, seconds: float) -> list[Answer]:
        self.now += seconds
        over = sorted((w for w in self.waits if w.due <= self.now), key=lambda w: w.due)
        answers = [self.stop(w, 0xC00E001B) for w in over]
        late = sorted(
            (t, n, key) for n, (key, t) in enumerate(self.timers.items()) if t <= self.now
        )
        for _, _, (handle, tag) in late:
            answers += self.take_back(handle, self.doors[handle], tag)
        old = sorted(
            (x for x in self.letters if x.state == "available" and x.expires <= self.now),
            key=lambda x: (x.expires, x.place),
        )
        return answers + [self.fly([(x, 0xC002)]) for x in old]


def root(queue: str) -> str:
    return queue if queue.startswith("system$") else queue.partition(";")[0]


def collide(holder: Door, access: str, alone: bool) -> bool:
    """The table of share modes, remote-read.md 2.5."""
    if holder.access == "receive" and holder.alone:
        return alone or access == "receive"
    if holder.access == "peek" and holder.alone:
        return access == "receive"
    return holder.access == "receive" and alone
