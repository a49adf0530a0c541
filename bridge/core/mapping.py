"""The header table: a message as the headers of a record, and a record as the message again.

Digest data-model.md section 4; design D7, DM-35. A property at its default has no header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from bridge.core.ports import Headers, Record
from bridge.core.trace_context import context_of, continued
from bridge.model.guid import Guid
from bridge.model.message import INFINITE, NO_CORRELATION, Message, Srmp, Transaction

VERSION: Final = b"1"


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _untext(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _decimal(value: int) -> bytes:
    return b"%d" % value


def _guid(value: Guid) -> bytes:
    return str(value).encode()


@lru_cache(maxsize=4096)  # record after record has the same ones
def _unguid(data: bytes) -> Guid:
    return Guid.parse(data.decode())


def _same(data: bytes) -> bytes:
    return data


class _Row(NamedTuple):
    header: str
    field: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _u(header: str, field: str) -> _Row:
    return _Row(header, field, _text, _untext)


def _d(header: str, field: str) -> _Row:
    return _Row(header, field, _decimal, int)


def _g(header: str, field: str) -> _Row:
    return _Row(header, field, _guid, _unguid)


def _b(header: str, field: str) -> _Row:
    return _Row(header, field, _same, _same)


# Own to a message, or the same in all messages of a stream: the order of `Message` says which.
_ROWS: Final = (
    _u("msmq.label", "label"),
    _d("msmq.body-type", "body_type"),
    _d("msmq.priority", "priority"),
    _d("msmq.delivery", "delivery"),
    _d("msmq.sent", "sent_time"),
    _d("msmq.ttrq", "time_to_reach_queue"),
    _u("msmq.peer", "peer"),
    _b("msmq.wire", "wire"),
    _g("msmq.dest.qm", "destination_qm"),
    _u("msmq.dest.multi", "destination_multi"),
    _u("msmq.admin", "admin_queue"),
    _u("msmq.admin.multi", "admin_multi"),
    _u("msmq.response", "response_queue"),
    _u("msmq.response.multi", "response_multi"),
    _d("msmq.class", "message_class"),
    _b("msmq.correlation", "correlation_id"),
    _d("msmq.app", "app_specific"),
    _b("msmq.extension", "extension"),
    _d("msmq.ack", "ack"),
    _d("msmq.journal", "journal"),
    _u("msmq.deadletter", "deadletter_queue"),
    _d("msmq.ttbr", "time_to_be_received"),
    _d("msmq.lookup", "lookup_id"),
    _u("msmq.tx.status-queue", "status_queue"),
    _u("msmq.sender", "sender"),
    _b("msmq.cert", "certificate"),
    _d("msmq.auth", "authenticated"),
    _b("msmq.signature", "signature"),
    _d("msmq.hash", "hash_algorithm"),
    _u("msmq.provider", "provider"),
    _d("msmq.privacy", "privacy_level"),
    _Row("msmq.encrypted", "encrypted", _decimal, lambda data: bool(int(data))),
    _d("msmq.enc", "encryption_algorithm"),
    _g("msmq.trace", "trace_queue"),
    _g("msmq.connector", "connector"),
    _u("msmq.soap", "soap"),
    _b("msmq.soap.compound", "soap_compound"),
    _d("msmq.srmp.expires", "expires"),
    _d("msmq.hops", "hops"),
)
_BY_HEADER: Final = {row.header: row for row in _ROWS}
_FIELDS: Final = Message.__struct_fields__
COMMON: Final = slice(_FIELDS.index("delivery"), _FIELDS.index("soap"))
_COMMON_FIELDS: Final = msgspec.structs.fields(Message)[COMMON]
_BY_FIELD: Final = {row.field: row for row in _ROWS} | {
    "transport": _u("msmq.transport", "transport"),
}
_COMMON: Final = tuple((_BY_FIELD[f.name], f.default) for f in _COMMON_FIELDS)
_YES: Final = b"1"
_GUID_PART: Final = 37  # of an id: the GUID and the backslash


def headers_of(message: Message) -> Headers:
    """Every MSMQ property that is not at its default."""
    headers = common_headers(message)
    OwnHeaders().add(headers, message, message.id)
    return headers


def common_headers(message: Message) -> Headers:
    """Those that message after message of a stream has, with the same values."""
    headers = {
        "msmq.v": VERSION,
        "msmq.source": _guid(message.source),
        "msmq.dest": _text(message.destination),
        "msmq.transport": message.transport.encode(),
    }
    for value, (row, default) in zip(astuple(message)[COMMON], _COMMON, strict=True):
        if value != default:
            headers[row.header] = row.encode(value)
    if message.transaction is not None:
        headers["msmq.tx.seqid"] = b"%d" % message.transaction.sequence_id
    return headers


class Traces(IntEnum):
    """What becomes of a trace context that a sender has put into a message."""

    NONE = 0  # nothing
    PASSED = 1  # its record gets it
    CONTINUED = 2  # its record gets ours, which follows it


class OwnHeaders:
    """Adds those that differ from message to message.

    Neighbours in a stream have some of them in common after all (when they were sent, a label, or
    the number that the next one calls the previous): their text is made once.
    """

    __slots__ = (
        *("_label", "_label_text", "_number", "_number_text", "_sent", "_sent_text"),
        "_traces",
    )

    def __init__(self, traces: Traces = Traces.NONE) -> None:
        self._traces = traces
        self._sent, self._sent_text = 0, b""
        self._label, self._label_text = "", b""
        self._number, self._number_text = 0, b""

    def add(self, headers: Headers, message: Message, text: str) -> None:
        """`text` is the message's id."""
        headers["msmq.id"] = text.encode()
        if sent := message.sent_time:
            if sent != self._sent:
                self._sent, self._sent_text = sent, b"%d" % sent
            headers["msmq.sent"] = self._sent_text
        if message.time_to_be_received != INFINITE:  # MS-MQDMPR 3.1.1.12: relative to SentTime
            headers["msmq.expires"] = b"%d000" % (sent + message.time_to_be_received)
        if label := message.label:
            if label != self._label:
                self._label, self._label_text = label, _text(label)
            headers["msmq.label"] = self._label_text
        if message.wire:
            headers["msmq.wire"] = message.wire
        if message.correlation_id != NO_CORRELATION:
            headers["msmq.correlation"] = message.correlation_id
        if message.extension:
            headers["msmq.extension"] = message.extension
            if self._traces:
                self._add_trace(headers, message, text)
        if message.soap:
            _add_soap(headers, message)
            if self._traces:
                self._add_trace(headers, message, text)
        if message.transaction is not None:
            self._add_transaction(headers, message.transaction, text)

    def _add_trace(self, headers: Headers, message: Message, text: str) -> None:
        context = context_of(message)
        if context is not None:
            ours = self._traces is Traces.CONTINUED
            (continued(context, text) if ours else context).add_to(headers)

    def _add_transaction(self, headers: Headers, tx: Transaction, text: str) -> None:
        number = headers["msmq.tx.seq"] = b"%d" % tx.number
        if tx.previous:
            known = tx.previous == self._number
            headers["msmq.tx.prev"] = self._number_text if known else b"%d" % tx.previous
        self._number, self._number_text = tx.number, number
        if tx.index:
            headers["msmq.tx.id"] = f"{text[:_GUID_PART]}{tx.index}".encode()
        if tx.first:
            headers["msmq.tx.first"] = _YES
        if tx.last:
            headers["msmq.tx.last"] = _YES
        if tx.final_ack:
            headers["msmq.tx.final-ack"] = _YES
        if tx.connector_qm is not None:
            headers["msmq.connector.qm"] = _guid(tx.connector_qm)


def _add_soap(headers: Headers, message: Message) -> None:
    headers["msmq.soap"] = _text(message.soap)
    if message.soap_compound:
        headers["msmq.soap.compound"] = message.soap_compound
    if message.expires:
        headers["msmq.srmp.expires"] = b"%d" % message.expires
    if message.srmp is not None and message.transaction is None:
        _add_boundaries(headers, message.srmp)


def _add_boundaries(headers: Headers, srmp: Srmp) -> None:
    """SRMP has them in messages without a stream, too. Digest srmp.md 7.1"""
    if srmp.commitment_to:
        headers["msmq.tx.final-ack"] = _YES
    if srmp.first:
        headers["msmq.tx.first"] = _YES
    if srmp.last:
        headers["msmq.tx.last"] = _YES
    if srmp.connector_qm is not None:
        headers["msmq.connector.qm"] = _guid(srmp.connector_qm)


def message_from_record(record: Record) -> Message:
    """The message that this record was made from. `msmq.expires` follows from other headers, and
    records of earlier builds have none: it is not read."""
    headers = record.headers
    _, _, ordinal = headers["msmq.id"].decode().partition("\\")
    known = _BY_HEADER
    fields = {
        row.field: row.decode(data)
        for name, data in headers.items()
        if (row := known.get(name)) is not None
    }
    return Message(
        source=_unguid(headers["msmq.source"]),
        ordinal=int(ordinal),
        destination=_untext(headers["msmq.dest"]),
        transport=headers["msmq.transport"].decode(),
        arrived_ms=int(headers.get("msmq.arrived", record.timestamp_ms)),
        body=record.value,
        transaction=_transaction(headers),
        **fields,
    )


def _transaction(headers: Mapping[str, bytes]) -> Transaction | None:
    if "msmq.tx.seqid" not in headers:
        return None
    connector = headers.get("msmq.connector.qm")
    return Transaction(
        sequence_id=int(headers["msmq.tx.seqid"]),
        number=int(headers["msmq.tx.seq"]),
        previous=int(headers.get("msmq.tx.prev", 0)),
        index=int(headers.get("msmq.tx.id", b"\\0").partition(b"\\")[2]),
        first="msmq.tx.first" in headers,
        last="msmq.tx.last" in headers,
        final_ack="msmq.tx.final-ack" in headers,
        connector_qm=None if connector is None else _unguid(connector),
    )


def size_of(record: Record) -> int:
    """What the record weighs against the topic's limit, framing included, never too little."""
    headers = sum(len(name) + len(value) + 10 for name, value in record.headers.items())
    return len(record.value) + len(record.key or b"") + headers + 200
