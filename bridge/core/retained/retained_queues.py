"""The retained queues of one queue manager: everything wired together.

Pure: `now` comes with every call, and what must happen outside is in the commands that come back.
The owner carries out all commands of a call before the next one that concerns the same queue:

    Delivered   answer the read (handle, tag) with the message of this row
    Ended       answer the read with this status
    Commit      put its effects in one Kafka transaction, then `settle`, or `restore`

After a restart a new one is made on the same shelf, which by then has all that Kafka has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bridge.core.retained.answering import Answering
from bridge.core.retained.effects import Command
from bridge.core.retained.expiry import Expiry
from bridge.core.retained.flights import Flights, Ids
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Transaction, TransactionId
from bridge.core.retained.moving import Moving
from bridge.core.retained.naming import parent_of
from bridge.core.retained.queues import Queue, QueueTable, Traits
from bridge.core.retained.quotas import Quotas
from bridge.core.retained.reading import Reading
from bridge.core.retained.rows import Row
from bridge.core.retained.serving import Service
from bridge.core.retained.shelf import Shelf
from bridge.core.retained.stock import Stock
from bridge.core.retained.sweeping import Sweeping
from bridge.core.retained.transactions import Transactions
from bridge.protocol.events import Instant

EXPIRED_AT_ONCE: Final = 500  # removals that one tick begins


class RetainedQueues:
    """The parts are for the owner to use: handles, reading, answering, moving, transactions,
    sweeping, quotas."""

    def __init__(
        self,
        shelf: Shelf,
        ids: Ids,
        *,
        release_after_s: float = 300.0,
        machine_quota_kb: int | None = None,
    ) -> None:
        opened: dict[TransactionId, Transaction] = {}
        self._shelf, self._stock, self._queues = shelf, Stock(shelf), QueueTable()
        self._service = Service(self._stock, self._queues, release_after_s)
        self.quotas = Quotas(shelf, self._queues, machine_quota_kb)
        self._flights = Flights(self._stock, self._queues, self._service, self.quotas, ids)
        self._expiry = Expiry(self._stock, self._flights)
        self.handles = Handles(self._queues)
        self.reading = Reading(self._stock, self.handles, self._service, opened)
        self.answering = Answering(
            self._stock, self._queues, self.handles, self._service, self._flights
        )
        self.moving = Moving(self._stock, self.handles, self._flights, opened, ids)
        self.transactions = Transactions(self.handles, self._service, self._flights, opened, ids)
        self.sweeping = Sweeping(
            self._stock, self._queues, self.handles, self.answering, self._flights
        )

    def define(self, name: str, traits: Traits) -> bool:
        """A queue, or a system queue's quota. Before its messages arrive.

        False: one of that name is still being deleted; try again later."""
        name = name.lower()
        if self.is_ending(name):
            return False
        self._queues.define(name, traits)
        for held in self._shelf.queues():
            if parent_of(held) == name:
                self._queues.get(held)  # a subqueue is there as long as it holds messages
        return True

    def is_ending(self, name: str) -> bool:
        """It is deleted, but Kafka does not have all of that yet."""
        known = self._queues.get(name.lower())
        return known is not None and known.is_deleted

    def names(self) -> set[str]:
        """Of all queues; journals, subqueues and those of the machine belong to others."""
        return self._queues.names()

    def queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def find(self, name: str) -> Queue:
        """Raises Refused if there is none."""
        return self._queues.find(name.lower())

    def holds_messages(self, name: str) -> bool:
        """Whether something waits in a queue or its subqueues; its journal does not count."""
        known = self._queues.get(name.lower())
        names = () if known is None else (known.name, *known.subqueues)
        return any(self._shelf.totals(each).count for each in names)

    def row(self, queue: Queue, lookup_id: int) -> Row | None:
        """By its lookup id, or the low 56 bits of it; whoever holds it."""
        return self._stock.find(queue, lookup_id)

    def is_locked(self, row: Row) -> bool:
        return row.lookup_id in self._stock.locks

    def strays(self) -> set[str]:
        """Queues that hold messages but that nobody has defined: do it, if only to delete them."""
        held = {parent_of(name) for name in self._shelf.queues()}
        return {name for name in held if self._queues.get(name) is None}

    def arrive(self, rows: Sequence[Row], now: Instant) -> list[Command]:
        """Their records are committed. They need not be the last ones of their queues."""
        self._shelf.add(rows)
        self._flights.arrived(rows)
        self._expiry.arrived(rows)
        commands: list[Command] = []
        for row in rows:
            commands += self._flights.enter(row, now)
        return commands

    def settle(self, ticket: int, now: Instant) -> list[Command]:
        """The transaction of this commit happened. Its copies are arrivals like any other."""
        return self._flights.settle(ticket, now)

    def restore(self, ticket: int, now: Instant) -> list[Command]:
        """It did not happen."""
        return self._flights.restore(ticket, now)

    def tick(self, now: Instant, most: int = EXPIRED_AT_ONCE) -> list[Command]:
        """Time has passed; at most so many messages grow too old at once."""
        commands = self.answering.expire(now)
        return commands + self._expiry.expire(now, most)

    def next_wakeup(self, now: Instant) -> float | None:
        """When to call `tick` again, on the clock of `now.mono`."""
        due = self._service.deadlines.next_wakeup()
        unix = self._expiry.next_unix
        if unix is None:
            return due
        expiry = now.mono + max(unix - now.unix, 0.0)
        return expiry if due is None else min(due, expiry)
