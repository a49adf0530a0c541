"""Streams that come over HTTP: where each stands, and whom it owes a receipt. MC-MQSRM 3.1.5.1.6.3

The row of a stream is committed with the message that moves it (SR-33). It keeps what only the
first message tells, where the receipts go, and the streams that were there before it: a late copy
of an old first message must not begin the stream anew (SR-38).
"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.core.streams import Place, StreamKey, Table
from bridge.model.message import Message, Srmp, Transaction

PREFIX: Final = "posted/"
KEPT_S: Final = 90 * 86_400  # SR-84
KEPT_PAST: Final = 8
_encode = msgspec.json.Encoder().encode


class Past(msgspec.Struct, frozen=True, gc=False):
    """A stream that another one has followed."""

    id: int
    text: str
    number: int
    receipts_to: str
    peer: str


class Posted(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One stream; without a text there is none yet. SR-39"""

    id: int = 0
    text: str = ""  # of the id, as it was sent
    number: int = 0  # the last one that we took
    receipts_to: str = ""
    peer: str = ""  # address that the last message came from
    source: str = ""  # SourceQmGuid of the last message
    receipted: int = 0  # the last number that the sender has heard of
    at: int = 0  # Unix seconds of the last message
    rejects: int = 0  # since one was taken
    past: tuple[Past, ...] = ()


class Due(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A receipt that a sender should get: everything up to `number` is here. SR-36"""

    key: StreamKey
    id: int
    text: str
    number: int
    receipts_to: str
    peer: str
    is_repeated: bool = False  # for a message that was here before (SR-37)


class PostedStreams(Table[Posted]):
    def __init__(self) -> None:
        super().__init__(PREFIX, Posted())

    def advance(self, key: StreamKey, row: Posted) -> None:
        self._set(key, row)

    def _weight(self, key: StreamKey, row: Posted) -> int:
        """Senders choose the URLs in a row, so it counts as long as it is."""
        return super()._weight(key, row) + len(_encode(row))

    def _weight_of_entry(self, value: bytes) -> int:
        return len(value)

    def unreceipted(self) -> list[Due]:
        """What senders may not have heard before we stopped. SR-81"""
        return [due_of(key, row) for key, row in self.items() if row.number > row.receipted]

    def receipted(self, due: Due) -> None:
        """The sender has taken this receipt."""
        row = self.get(due.key)
        if row.id == due.id and row.text and row.receipted < due.number:
            self.advance(due.key, msgspec.structs.replace(row, receipted=due.number))

    def retire(self, now_s: int) -> None:
        """Streams without traffic end some day. SR-84"""
        for key in [key for key, row in self.items() if row.at < now_s - KEPT_S]:
            self.drop(key)


def place(row: Posted, tx: Transaction, srmp: Srmp) -> Place:
    """SR-30, SR-37, SR-38. No buffering: the sender sends all again from where it stands."""
    if row.text and tx.sequence_id == row.id:
        if tx.number <= row.number:
            return Place.BEHIND
        is_next = tx.number == row.number + 1 or tx.previous <= row.number
        return Place.NEXT if is_next else Place.AHEAD
    if any(past.id == tx.sequence_id for past in row.past):
        return Place.BEHIND
    return Place.NEXT if srmp.starts and tx.number == 1 else Place.AHEAD


def taken(row: Posted, message: Message, tx: Transaction, srmp: Srmp) -> Posted:
    """The row once the message is in its queue. MC-MQSRM 3.1.5.1.6.3

    The URL for the receipts is that of the first message; the address is that of the last one,
    because a sender's address can change while its stream goes on (DHCP).
    """
    at, source = message.arrived_ms // 1000, str(message.source)
    if row.text and tx.sequence_id == row.id:
        return msgspec.structs.replace(
            row, number=tx.number, peer=message.peer, source=source, at=at, rejects=0
        )
    past = row.past
    if row.text:
        past = (Past(row.id, row.text, row.number, row.receipts_to, row.peer), *past)[:KEPT_PAST]
    return Posted(
        id=tx.sequence_id,
        text=srmp.stream_id,
        number=tx.number,
        receipts_to=srmp.receipts_to,
        peer=message.peer,
        source=source,
        at=at,
        past=past,
    )


def not_taken(row: Posted, message: Message) -> Posted:
    return msgspec.structs.replace(
        row, at=message.arrived_ms // 1000, rejects=min(row.rejects + 1, 0xFFFFFFFF)
    )


def due_of(
    key: StreamKey, stream: Posted | Past, *, peer: str | None = None, is_repeated: bool = False
) -> Due:
    return Due(
        key=key,
        id=stream.id,
        text=stream.text,
        number=stream.number,
        receipts_to=stream.receipts_to,
        peer=stream.peer if peer is None else peer,
        is_repeated=is_repeated,
    )


def repeated(key: StreamKey, row: Posted, tx: Transaction, peer: str) -> Due:
    """The receipt for a message of the stream, or of one before it, that was here before. It goes
    to `peer`, where the message came from now: it is sent again because no receipt arrived."""
    streams: tuple[Posted | Past, ...] = (row, *row.past)
    found = next(stream for stream in streams if stream.id == tx.sequence_id and stream.text)
    return due_of(key, found, peer=peer, is_repeated=True)
