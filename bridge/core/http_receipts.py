"""The receipts that a message over HTTP asked for, as entries of the outbox. Digest srmp.md 3.7

Each has a URL of its own (SR-47). A receipt is made once, with its id and its bytes: it is express
by protocol, but we keep it until it was taken (SR-83).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from bridge.core.ports import OutboxEntry
from bridge.core.posted import Posted
from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import FOUR_DAYS, JOURNAL_NEGATIVE, Message, Srmp
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.kinds import NEGATIVE, POSITIVE
from bridge.wire.srmp.receipts import (
    Original,
    Post,
    commitment_receipt,
    delivery_receipt,
    final_stream_receipt,
)
from bridge.wire.srmp.values import StreamId
from bridge.wire.srmp.writer import write_envelope


class HttpReceipts:
    """For one message that has its verdict."""

    def __init__(
        self, message: Message, srmp: Srmp, local: Guid, ordinals: Callable[[], int]
    ) -> None:
        self._message, self._srmp = message, srmp
        self._local, self._ordinals = local, ordinals
        self._now = message.arrived_ms // 1000
        self._original = Original(
            to=srmp.to, identifier=(message.source, message.ordinal), label=message.label
        )

    def delivered(self) -> Iterator[OutboxEntry]:
        """SR-42: it is in its queue."""
        if self._srmp.delivery_to:
            post = self._post(self._srmp.delivery_to)
            yield self._entry(post, delivery_receipt(post, self._original, self._now))

    def left(self, outcome: MessageClass, row: Posted | None) -> Iterator[OutboxEntry]:
        """SR-44, SR-45: it has left its queue, for good or bad; `row` is its stream."""
        if outcome not in POSITIVE | NEGATIVE:
            return
        srmp = self._srmp
        wanted = srmp.positive if outcome in POSITIVE else srmp.negative
        if wanted and srmp.commitment_to:
            post = self._post(srmp.commitment_to)
            yield self._entry(post, commitment_receipt(post, self._original, outcome, self._now))
        tx = self._message.transaction
        if tx is None or row is None or not self._message.journal & JOURNAL_NEGATIVE:
            return
        post = self._post(row.receipts_to)
        stream_id = StreamId(text=row.text, guid=self._message.source, number=row.id)
        receipt = final_stream_receipt(
            post, self._original, stream_id, tx.number, outcome, self._now
        )
        yield msgspec.structs.replace(self._entry(post, receipt), stream=row.text)

    def _post(self, url: str) -> Post:
        return Post(to=url, source=self._local, ordinal=self._ordinals(), now=self._now)

    def _entry(self, post: Post, envelope: Envelope) -> OutboxEntry:
        return OutboxEntry(
            ordinal=post.ordinal,
            host=self._message.peer,
            url=post.to,
            packet=write_envelope(envelope),
            expires=self._now + FOUR_DAYS,
        )
