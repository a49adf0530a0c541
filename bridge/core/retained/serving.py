"""Hands messages to readers: at once, or when one becomes available to somebody who waits."""

from __future__ import annotations

from bridge.core.retained.deadlines import Deadlines
from bridge.core.retained.effects import Command, Delivered, Ended
from bridge.core.retained.errors import Status
from bridge.core.retained.locks import Lock, Operation
from bridge.core.retained.queues import Descriptor, QueueTable, Read
from bridge.core.retained.rows import Row
from bridge.core.retained.stock import Stock
from bridge.protocol.events import Instant


class Service:
    """`deadlines` are those of waiting reads and of messages that were handed out, by (handle,
    tag): a read is one of the two at a time."""

    def __init__(self, stock: Stock, queues: QueueTable, release_after_s: float) -> None:
        self._stock, self._queues = stock, queues
        self._release_after_s = release_after_s
        self.deadlines = Deadlines[tuple[int, int]]()

    def available(self, row: Row, now: Instant) -> list[Command]:
        """Readers in the order they came: peekers get it, the first receiver takes it. DM-23"""
        queue = self._queues.get(row.queue)
        if queue is None:
            return []
        queue.front = min(queue.front, row.lookup_id - 1)
        if queue.ended:
            queue.ended = {cursor for cursor in queue.ended if cursor.is_at_end}
            for cursor in queue.ended:
                cursor.became_available(row)
        commands: list[Command] = []
        while queue.waiting:
            read = next(iter(queue.waiting.values()))
            self._leave(read)
            if read.cursor is not None:
                read.cursor.arrived(row)
            commands.append(self.hand_out(read, row, now))
            if read.is_receive:
                break
        return commands

    def hand_out(self, read: Read, row: Row, now: Instant) -> Delivered:
        """A received message is locked until it is confirmed or released. DM-22"""
        if read.is_receive:
            lock = self._stock.lock(row, read.transaction)
            if read.transaction is not None:
                read.transaction.operations[row.lookup_id] = Operation(lock)
            read.descriptor.receives[read.tag] = lock
            if read.descriptor.is_timed:
                self.deadlines.start(read.key, now.mono + self._release_after_s)
        return Delivered(read.descriptor.handle, read.tag, row)

    def wait(self, read: Read, now: Instant, wait_s: float | None) -> None:
        """None: for ever."""
        read.descriptor.live_queue.waiting[read.key] = read
        read.descriptor.waits[read.tag] = read
        if read.cursor is not None:
            read.cursor.wait(destructive=read.is_receive)
        if read.transaction is not None:
            read.transaction.waits.add(read.key)
        if wait_s is not None:
            self.deadlines.start(read.key, now.mono + wait_s)

    def end_wait(self, read: Read, status: Status) -> Ended:
        self._leave(read)
        if read.cursor is not None:
            read.cursor.waited_in_vain()
            if read.cursor.is_at_end:
                read.descriptor.live_queue.ended.add(read.cursor)
        return Ended(read.descriptor.handle, read.tag, status)

    def end_receive(self, descriptor: Descriptor, tag: int) -> Lock:
        """The reader has answered, or never will."""
        self.deadlines.stop((descriptor.handle, tag))
        return descriptor.receives.pop(tag)

    def _leave(self, read: Read) -> None:
        self.deadlines.stop(read.key)
        del read.descriptor.waits[read.tag]
        del read.descriptor.live_queue.waiting[read.key]
        if read.transaction is not None:
            read.transaction.waits.discard(read.key)
