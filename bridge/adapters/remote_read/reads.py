"""Reads of the retained queues, awaited: begun, answered with a message, withdrawn or ended.

A removal is told only after Kafka has it. Who waits for that may go away: it happens all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from bridge.adapters.kafka.held_reader import RecordLost
from bridge.adapters.retained.service import Answer, now
from bridge.core.ports import Record
from bridge.core.remote_read.actions import Wanted
from bridge.core.remote_read.codes import SERVICE_NOT_AVAILABLE, Failed
from bridge.core.retained.effects import Command, Ended
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.keeping import message_in
from bridge.core.retained.locks import TransactionId
from bridge.core.retained.reading import Seek
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.errors import SinkUnavailable
from bridge.model.message import Message

_log = logging.getLogger(__name__)


class Records(Protocol):
    """Where messages are."""

    async def read(self, places: Iterable[RecordAt]) -> dict[RecordAt, Record]:
        """SinkUnavailable if they cannot be had now, RecordLost if one never will."""


class Owner(Protocol):
    """Who has the queues, and carries out what they ask for: a `RetainedService`."""

    @property
    def queues(self) -> RetainedQueues: ...

    @property
    def reader(self) -> Records: ...

    def expect(self, handle: int, tag: int) -> asyncio.Future[Answer]: ...

    def carry_out(self, commands: Sequence[Command]) -> list[asyncio.Future[None]]: ...

    def close(self, handle: int) -> None: ...

    def lose(self, row: Row) -> list[asyncio.Future[None]]: ...

    def require_kafka(self) -> None:
        """SinkUnavailable if nothing can be changed now."""


class Given(msgspec.Struct, frozen=True):
    """What a read found; received, it is locked until `end`."""

    row: Row
    message: Message


class Reads:
    """All calls raise Refused or Failed, and have then done nothing."""

    def __init__(self, service: Owner) -> None:
        self._service = service

    async def start(
        self, handle: int, tag: int, wanted: Wanted, transaction: TransactionId | None = None
    ) -> Given:
        """Waits as long as the reader wants. Cancelled, it leaves nothing behind: no reader has
        seen the message yet. MS-MQRR 3.1.4.7"""
        if wanted.is_receive:
            self._require_kafka()
        began = now().mono
        while True:
            given = await self._start_once(handle, tag, wanted, transaction)
            if given is not None:
                return given
            if wanted.seek is Seek.CURRENT:
                raise Refused(Status.MESSAGE_NOT_FOUND, "Kafka has lost it")
            if wanted.wait_s:
                left = max(began + wanted.wait_s - now().mono, 0.0)
                wanted = msgspec.structs.replace(wanted, wait_s=left)

    async def _start_once(
        self, handle: int, tag: int, wanted: Wanted, transaction: TransactionId | None
    ) -> Given | None:
        """None: Kafka has lost the message, and now the queue has, too."""
        commands = self._ask(handle, tag, wanted, transaction)
        answer = self._service.expect(handle, tag)  # after the question: it may be refused
        self._service.carry_out(commands)
        try:
            found = await answer
            if isinstance(found, Ended):
                raise Refused(found.status)
            message = await self._fetch(found.row)
        except asyncio.CancelledError:
            self._withdraw(handle, tag, wanted)
            raise
        except SinkUnavailable as error:
            _log.warning("%s; its reader is told to come again", error)
            self._withdraw(handle, tag, wanted)
            raise Failed(SERVICE_NOT_AVAILABLE) from error
        if wanted.is_receive and not self._is_held(handle, tag):
            raise Refused(Status.OPERATION_CANCELLED, "it was closed meanwhile")
        if message is None:
            self._service.lose(found.row)
            self._withdraw(handle, tag, wanted)
            return None
        return Given(found.row, message)

    async def _fetch(self, row: Row) -> Message | None:
        try:
            records = await self._service.reader.read([row.at])
        except RecordLost:
            return None
        return message_in(records[row.at])

    async def end(self, handle: int, tag: int, *, delete: bool) -> None:
        """Returns once the removal is in Kafka. Failed: Kafka is away, and the reader still has
        the message; or nobody can tell any more, because we stop. MS-MQRR 3.1.4.9"""
        if delete:
            self._require_kafka()
        await self._settled(self._service.queues.answering.end(handle, tag, now(), delete=delete))

    def release(self, handle: int, tag: int) -> None:
        """Back to its place, if it is still out."""
        if self._is_held(handle, tag):
            queues = self._service.queues
            with suppress(Refused):  # it is lost, or was removed meanwhile
                self._service.carry_out(queues.answering.end(handle, tag, now(), delete=False))

    def cancel(self, handle: int, tag: int) -> None:
        """Only a read that waits. RR-22"""
        self._service.carry_out(self._service.queues.answering.cancel(handle, tag))

    async def purge(self, handle: int) -> None:
        """In steps: each is in Kafka before the next one begins."""
        sweeping = self._service.queues.sweeping
        sweep = sweeping.purge(handle)
        self._require_kafka()
        while commands := sweeping.step(sweep, now()):
            await self._settled(commands)

    async def move(
        self, source: int, target: int, lookup_id: int, transaction: TransactionId | None
    ) -> None:
        self._require_kafka()
        moving = self._service.queues.moving
        await self._settled(moving.move(source, target, lookup_id, now(), transaction=transaction))

    def open_cursor(self, handle: int) -> int:
        return self._service.queues.handles.open_cursor(handle)

    def close_cursor(self, handle: int, cursor: int) -> None:
        self._service.carry_out(self._service.queues.answering.close_cursor(handle, cursor))

    def reject(self, handle: int, lookup_id: int, message_class: int) -> None:
        self._service.queues.answering.reject(handle, lookup_id, message_class)

    def close(self, handle: int) -> None:
        """Waits end, what was not ended goes back. RR-27, RR-28"""
        self._service.close(handle)

    # -- inside -----------------------------------------------------------------------------

    def _ask(
        self, handle: int, tag: int, wanted: Wanted, transaction: TransactionId | None
    ) -> list[Command]:
        reading, at = self._service.queues.reading, now()
        if wanted.seek is not None:
            if not wanted.is_receive:
                return reading.peek_at(handle, tag, at, wanted.seek, wanted.lookup_id)
            return reading.receive_at(
                handle, tag, at, wanted.seek, wanted.lookup_id, transaction=transaction
            )
        if wanted.is_receive:
            return reading.receive(
                handle,
                tag,
                at,
                wait_s=wanted.wait_s,
                cursor=wanted.cursor,
                transaction=transaction,
            )
        peek = reading.peek_next if wanted.is_next else reading.peek
        return peek(handle, tag, at, wait_s=wanted.wait_s, cursor=wanted.cursor)

    def _withdraw(self, handle: int, tag: int, wanted: Wanted) -> None:
        """It waits, or it has a message that nobody was told of; or its handle is gone."""
        try:
            self.cancel(handle, tag)
        except Refused:
            if wanted.is_receive:
                self.release(handle, tag)

    def _is_held(self, handle: int, tag: int) -> bool:
        try:
            return tag in self._service.queues.handles.get(handle).receives
        except Refused:
            return False

    def _require_kafka(self) -> None:
        try:
            self._service.require_kafka()
        except SinkUnavailable as error:
            raise Failed(SERVICE_NOT_AVAILABLE) from error

    async def _settled(self, commands: Sequence[Command]) -> None:
        futures = self._service.carry_out(commands)
        try:
            await asyncio.shield(asyncio.gather(*futures))
        except SinkUnavailable as error:
            raise Failed(SERVICE_NOT_AVAILABLE) from error
