"""A message becomes a Kafka record, and a record the same message again. Design D7, DM-35

The header table is digest data-model.md section 4: a property at its default has no header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from bridge.core.catalogue import Queue
from bridge.core.ports import Headers, Record
from bridge.model.guid import Guid
from bridge.model.message import Message, Transaction

VERSION: Final = b"1"
_CACHE: Final = 100_000


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _untext(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _decimal(value: int) -> bytes:
    return b"%d" % value


def _guid(value: Guid) -> bytes:
    return str(value).encode()


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


_ROWS: Final = (
    _g("msmq.dest.qm", "destination_qm"),
    _u("msmq.dest.multi", "destination_multi"),
    _u("msmq.admin", "admin_queue"),
    _u("msmq.admin.multi", "admin_multi"),
    _u("msmq.response", "response_queue"),
    _u("msmq.response.multi", "response_multi"),
    _d("msmq.class", "message_class"),
    _u("msmq.label", "label"),
    _b("msmq.correlation", "correlation_id"),
    _d("msmq.body-type", "body_type"),
    _d("msmq.app", "app_specific"),
    _b("msmq.extension", "extension"),
    _d("msmq.priority", "priority"),
    _d("msmq.delivery", "delivery"),
    _d("msmq.ack", "ack"),
    _d("msmq.journal", "journal"),
    _u("msmq.deadletter", "deadletter_queue"),
    _d("msmq.sent", "sent_time"),
    _d("msmq.ttrq", "time_to_reach_queue"),
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
    _d("msmq.enc", "encryption_algorithm"),
    _g("msmq.trace", "trace_queue"),
    _g("msmq.connector", "connector"),
    _u("msmq.soap", "soap"),
    _d("msmq.hops", "hops"),
    _u("msmq.peer", "peer"),
    _b("msmq.wire", "wire"),
)
_DEFAULTS: Final = {f.name: f.default for f in msgspec.structs.fields(Message)}
_values: Callable[[Message], tuple[Any, ...]] = attrgetter(*(row.field for row in _ROWS))
_PLAN: Final = tuple((_DEFAULTS[row.field], row.header, row.encode) for row in _ROWS)
_BY_HEADER: Final = {row.header: row for row in _ROWS}
_YES: Final = b"1"


def headers_of(message: Message) -> Headers:
    """Every MSMQ property that is not at its default."""
    source = str(message.source)
    headers: Headers = [
        ("msmq.v", VERSION),
        ("msmq.id", f"{source}\\{message.ordinal}".encode()),
        ("msmq.source", source.encode()),
        ("msmq.dest", _text(message.destination)),
        ("msmq.transport", message.transport.encode()),
    ]
    append = headers.append
    for value, (default, name, encode) in zip(_values(message), _PLAN, strict=True):
        if value != default:
            append((name, encode(value)))
    if (tx := message.transaction) is not None:
        append(("msmq.tx.seqid", b"%d" % tx.sequence_id))
        append(("msmq.tx.seq", b"%d" % tx.number))
        if tx.previous:
            append(("msmq.tx.prev", b"%d" % tx.previous))
        if tx.index:
            append(("msmq.tx.id", f"{source}\\{tx.index}".encode()))
        if tx.first:
            append(("msmq.tx.first", _YES))
        if tx.last:
            append(("msmq.tx.last", _YES))
        if tx.final_ack:
            append(("msmq.tx.final-ack", _YES))
        if tx.connector_qm is not None:
            append(("msmq.connector.qm", _guid(tx.connector_qm)))
    return headers


def message_from_record(record: Record) -> Message:
    """The message that this record was made from."""
    headers = dict(record.headers)
    _, _, ordinal = headers["msmq.id"].decode().partition("\\")
    fields = {
        row.field: row.decode(headers[name]) for name, row in _BY_HEADER.items() if name in headers
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


class Mapper:
    """Makes records; remembers what is the same for every message of a stream."""

    def __init__(self) -> None:
        self._streams: dict[tuple[Guid, str], tuple[bytes, int]] = {}

    def record(self, message: Message, queue: Queue) -> Record:
        stream, crc = self._stream(message)
        headers = headers_of(message)
        headers.append(("msmq.queue", queue.name.encode()))
        timestamp = message.arrived_ms
        if queue.mapping.timestamp == "sent" and message.sent_time:
            # Never ahead of arrival: brokers refuse a time in the future.
            timestamp = min(message.sent_time * 1000, message.arrived_ms)
            headers.append(("msmq.arrived", b"%d" % message.arrived_ms))
        return Record(
            topic=queue.topic,
            key=stream if queue.mapping.key == "stream" else _KEYS[queue.mapping.key](message),
            value=message.body,
            headers=headers,
            partition=crc % queue.partitions,  # a stream lies in one partition (DM-36)
            timestamp_ms=timestamp,
        )

    def _stream(self, message: Message) -> tuple[bytes, int]:
        """The stream's key and what picks its partition."""
        name = message.source, message.destination
        known = self._streams.get(name)
        if known is None:
            if len(self._streams) >= _CACHE:
                self._streams.clear()
            key = _text(f"{message.source}/{message.destination}")
            known = self._streams[name] = key, crc32(key)
        return known


_KEYS: Final[dict[str, Callable[[Message], bytes | None]]] = {
    "message_id": lambda m: m.id.encode(),
    "correlation_id": lambda m: m.correlation_id,
    "label": lambda m: _text(m.label),
    "source": lambda m: _guid(m.source),
    "none": lambda _: None,
}


def size_of(record: Record) -> int:
    """What the record weighs against the topic's limit, framing included, never too little."""
    headers = sum(len(name) + len(value) + 10 for name, value in record.headers)
    return len(record.value) + len(record.key or b"") + headers + 200
