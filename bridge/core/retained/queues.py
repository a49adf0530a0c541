"""The queues that can be read, what is open on them and who waits at them."""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum

import msgspec

from bridge.core.retained.cursors import Cursor
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.locks import Lock, Transaction
from bridge.core.retained.naming import (
    DEADXACT,
    SYSTEM_QUEUES,
    is_subqueue,
    is_system,
    journal_of,
    parent_of,
)
from bridge.core.retained.place import START


class Access(IntEnum):
    """MS-MQRR 3.1.4.2, 3.1.4.11"""

    RECEIVE = 0x01
    MOVE = 0x04  # the target of moves
    PEEK = 0x20


class Share(IntEnum):
    DENY_NONE = 0
    DENY_RECEIVE = 1


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What its mapping says of a queue."""

    transactional: bool = False
    journaling: bool = False  # received messages are copied to its journal
    quota_kb: int | None = None
    journal_quota_kb: int | None = None


class Read:
    """One call that wants a message: answered at once, or waiting."""

    __slots__ = ("cursor", "descriptor", "is_receive", "tag", "transaction")

    def __init__(
        self,
        descriptor: Descriptor,
        tag: int,
        *,
        is_receive: bool,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
    ) -> None:
        self.descriptor, self.tag, self.is_receive = descriptor, tag, is_receive
        self.cursor, self.transaction = cursor, transaction

    @property
    def key(self) -> tuple[int, int]:
        return self.descriptor.handle, self.tag


class Descriptor:
    """One open queue of one reader. MS-MQDMPR 3.1.1.16"""

    def __init__(
        self, handle: int, queue: Queue, access: Access, share: Share, *, is_timed: bool = True
    ) -> None:
        self.handle, self.access, self.share = handle, access, share
        self.is_timed = is_timed  # what it does not end in time goes back
        self.queue: Queue | None = queue  # None once it is deleted
        self.cursors: dict[int, Cursor] = {}
        self.waits: dict[int, Read] = {}  # by tag
        self.receives: dict[int, Lock] = {}  # by tag: delivered, not ended yet

    @property
    def live_queue(self) -> Queue:
        if self.queue is None:
            raise Refused(Status.QUEUE_NOT_AVAILABLE, "it was deleted")
        return self.queue

    def demand(self, access: Access) -> None:
        """Receive access lets a reader peek, too."""
        if self.access is not access and self.access is not Access.RECEIVE:
            raise Refused(Status.ACCESS_DENIED, f"the queue is open to {self.access.name.lower()}")

    def cursor(self, number: int) -> Cursor:
        try:
            return self.cursors[number]
        except KeyError:
            raise Refused(Status.NT_INVALID_HANDLE, "no such cursor of this handle") from None


class Queue:
    """Journals and subqueues belong to a parent; without traits of their own they have its."""

    def __init__(self, name: str, traits: Traits | None, parent: Queue | None = None) -> None:
        self.name, self.parent = name, parent
        self._traits = traits
        self._is_deleted = False
        self.front = START  # all messages up to here are locked
        self.children: set[str] = set()
        self.waiting: OrderedDict[tuple[int, int], Read] = OrderedDict()  # first come first
        self.handles: dict[int, Descriptor] = {}
        self.ended: set[Cursor] = set()  # those at End, and some that were

    @property
    def traits(self) -> Traits:
        traits = self._traits
        if traits is None and self.parent is not None:
            traits = self.parent.traits
        return traits or Traits()

    @traits.setter
    def traits(self, traits: Traits) -> None:
        self._traits = traits

    @property
    def is_deleted(self) -> bool:
        """Its messages are on their way out; nobody can open it."""
        return self._is_deleted or (self.parent is not None and self.parent.is_deleted)

    def delete(self) -> None:
        self._is_deleted = True

    @property
    def journal(self) -> str:
        """Where received messages are copied to; a subqueue keeps no journal."""
        return journal_of(self.name) if self.traits.journaling and self.parent is None else ""

    @property
    def quota(self) -> int | None:
        """In bytes; None: no limit."""
        kilobytes = self.traits.quota_kb
        return None if kilobytes is None else kilobytes * 1024

    @property
    def subqueues(self) -> list[str]:
        return [name for name in self.children if is_subqueue(name)]

    def admits(self, access: Access, share: Share) -> bool:
        return not any(_collide(open_, access, share) for open_ in self.handles.values())


def _collide(holder: Descriptor, access: Access, share: Share) -> bool:
    """MS-MQDMPR 3.1.7.1.5, the matrix of remote-read.md 2.5"""
    if holder.share is Share.DENY_RECEIVE and holder.access is Access.RECEIVE:
        return share is Share.DENY_RECEIVE or access is Access.RECEIVE
    if holder.share is Share.DENY_RECEIVE and holder.access is Access.PEEK:
        return access is Access.RECEIVE
    if holder.share is Share.DENY_NONE and holder.access is Access.RECEIVE:
        return share is Share.DENY_RECEIVE
    return False


class QueueTable:
    """All queues by name. A subqueue comes into being when somebody names it."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}
        for name in SYSTEM_QUEUES:
            self.define(name, Traits(transactional=name == DEADXACT))

    def define(self, name: str, traits: Traits) -> None:
        """A new queue with its journal, or new traits of one."""
        known = self._queues.setdefault(name, Queue(name, traits))
        if known.is_deleted:
            raise Refused(Status.QUEUE_EXISTS, f"{name} is still being deleted")
        known.traits = traits
        if not is_system(name):
            journal = self._child(journal_of(name), known)
            journal.traits = Traits(quota_kb=traits.journal_quota_kb)

    def names(self) -> set[str]:
        return {name for name, queue in self._queues.items() if queue.parent is None} - {
            *SYSTEM_QUEUES
        }

    def get(self, name: str) -> Queue | None:
        known = self._queues.get(name)
        if known is None and is_subqueue(name):
            parent = self._queues.get(parent_of(name))
            known = parent and self._child(name, parent)
        return known

    def find(self, name: str) -> Queue:
        """The one that a reader names."""
        known = self.get(name)
        if known is None or known.is_deleted:
            raise Refused(Status.QUEUE_NOT_FOUND, name)
        return known

    def family(self, name: str) -> list[Queue]:
        """A queue, its journal and its subqueues."""
        queue = self._queues[name]
        return [queue, *(self._queues[child] for child in sorted(queue.children))]

    def forget(self, queue: Queue) -> None:
        """With its family, if it has one."""
        for name in (queue.name, *queue.children):
            del self._queues[name]
        if queue.parent is not None:
            queue.parent.children.discard(queue.name)

    def _child(self, name: str, parent: Queue) -> Queue:
        parent.children.add(name)
        return self._queues.setdefault(name, Queue(name, None, parent))
