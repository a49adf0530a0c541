"""How reads end: the reader confirms or gives back, cancels, goes away, or lets time pass."""

from __future__ import annotations

from typing import Final

from bridge.core.retained.effects import Command
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.flights import Flights
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Lock
from bridge.core.retained.naming import is_subqueue
from bridge.core.retained.queues import Access, Descriptor, Queue, QueueTable
from bridge.core.retained.serving import Service
from bridge.core.retained.stock import Stock
from bridge.model.classes import MessageClass
from bridge.protocol.events import Instant

REJECTED: Final = MessageClass.NACK_RECEIVE_REJECTED


class Answering:
    def __init__(
        self,
        stock: Stock,
        queues: QueueTable,
        handles: Handles,
        service: Service,
        flights: Flights,
    ) -> None:
        self._stock, self._queues, self._handles = stock, queues, handles
        self._service, self._flights = service, flights

    def end(self, handle: int, tag: int, now: Instant, *, delete: bool) -> list[Command]:
        """The reader has the message (ACK), or gives it back (NACK). MS-MQDMPR 3.1.7.1.12"""
        descriptor = self._handles.get(handle)
        _ = descriptor.live_queue
        lock = self._take(descriptor, tag)
        if lock.transaction is not None and delete:
            return []  # its transaction decides
        if not delete:
            return self._give_back(lock, now)
        received, purged = MessageClass.ACK_RECEIVE, MessageClass.NACK_Q_PURGED  # DM-27
        return [self._flights.remove(lock, purged if lock.is_purged else received, now)]

    def cancel(self, handle: int, tag: int) -> list[Command]:
        """Only a read that waits: what was delivered stays with its reader. RR-22"""
        read = self._handles.get(handle).waits.get(tag)
        if read is None:
            raise Refused(Status.NT_NOT_FOUND)
        return [self._service.end_wait(read, Status.OPERATION_CANCELLED)]

    def reject(self, handle: int, lookup_id: int, message_class: int) -> None:
        """Of a message in a transaction, before it commits. MS-MQRR 3.1.4.14"""
        descriptor = self._handles.get(handle)
        queue = descriptor.live_queue
        descriptor.demand(Access.RECEIVE)
        if message_class not in (MessageClass.NORMAL, REJECTED):
            raise Refused(Status.INVALID_PARAMETER, "a message can only be rejected")
        row = self._stock.find(queue, lookup_id)
        if row is None:
            raise Refused(Status.MESSAGE_NOT_FOUND)
        lock = self._stock.locks.get(row.lookup_id)
        operation = lock and lock.transaction and lock.transaction.operations[row.lookup_id]
        if not operation or operation.target:
            raise Refused(Status.TRANSACTION_USAGE, "no transaction has received it")
        if message_class:
            operation.reason = REJECTED

    def close_cursor(self, handle: int, number: int) -> list[Command]:
        descriptor = self._handles.get(handle)
        cursor = descriptor.cursor(number)
        del descriptor.cursors[number]
        waits = [read for read in descriptor.waits.values() if read.cursor is cursor]
        commands: list[Command] = [
            self._service.end_wait(read, Status.OPERATION_CANCELLED) for read in waits
        ]
        if descriptor.queue is not None:
            descriptor.queue.ended.discard(cursor)
        return commands

    def close(self, handle: int, now: Instant) -> list[Command]:
        """Its waits end; what it did not confirm goes back. RR-27, RR-28"""
        descriptor = self._handles.get(handle)
        commands = self._end_waits(descriptor, Status.OPERATION_CANCELLED)
        self._handles.drop(descriptor)
        for tag in list(descriptor.receives):
            commands += self._release(descriptor, tag, now)
        queue = descriptor.queue
        if queue is not None:
            queue.ended.difference_update(descriptor.cursors.values())
        if queue is not None and is_subqueue(queue.name):
            self._retire(queue)
        return commands

    def expire(self, now: Instant) -> list[Command]:
        """Waits that are over, and messages that nobody confirmed in time. RR-26"""
        keys = self._service.deadlines.due(now.mono)
        due = [(self._handles.get(handle), tag) for handle, tag in keys]
        waits = [reader.waits[tag] for reader, tag in due if tag in reader.waits]
        late = [(reader, tag) for reader, tag in due if tag in reader.receives]
        commands: list[Command] = [
            self._service.end_wait(read, Status.IO_TIMEOUT) for read in waits
        ]
        for reader, tag in late:
            commands += self._release(reader, tag, now)
        return commands

    def abandon(self, queue: Queue) -> list[Command]:
        """It is deleted: its handles stay but lead nowhere. MS-MQDMPR 3.1.7.1.4"""
        commands: list[Command] = []
        for descriptor in queue.handles.values():
            commands += self._end_waits(descriptor, Status.QUEUE_NOT_AVAILABLE)
            for tag in list(descriptor.receives):
                self._service.end_receive(descriptor, tag)
            descriptor.queue = None
        queue.handles.clear()
        return commands

    def _take(self, descriptor: Descriptor, tag: int) -> Lock:
        """The lock that a reader answers for. RR-23"""
        if tag not in descriptor.receives:
            is_busy = descriptor.receives or any(r.is_receive for r in descriptor.waits.values())
            raise Refused(Status.INVALID_PARAMETER if is_busy else Status.INVALID_HANDLE)
        lock = self._service.end_receive(descriptor, tag)
        if self._holds(lock):
            return lock
        row, holder = lock.row, self._stock.locks.get(lock.row.lookup_id)
        is_back = holder is not lock and self._stock.shelf.get(row.queue, row.lookup_id)
        raise Refused(Status.TRANSACTION_SEQUENCE if is_back else Status.MESSAGE_NOT_FOUND)

    def _release(self, descriptor: Descriptor, tag: int, now: Instant) -> list[Command]:
        """As if the reader had given it back; unless its transaction was faster."""
        lock = self._service.end_receive(descriptor, tag)
        return self._give_back(lock, now) if self._holds(lock) else []

    def _holds(self, lock: Lock) -> bool:
        return self._stock.locks.get(lock.row.lookup_id) is lock and not lock.in_flight

    def _give_back(self, lock: Lock, now: Instant) -> list[Command]:
        if lock.transaction is not None:  # it is no longer part of it (D-10)
            del lock.transaction.operations[lock.row.lookup_id]
        return self._flights.give_back(lock, now)

    def _end_waits(self, descriptor: Descriptor, status: Status) -> list[Command]:
        return [self._service.end_wait(read, status) for read in list(descriptor.waits.values())]

    def _retire(self, queue: Queue) -> None:
        """A subqueue that is empty and not open is none."""
        if not queue.handles and not self._stock.shelf.totals(queue.name).count:
            self._queues.forget(queue)
