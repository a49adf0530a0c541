"""A message becomes a Kafka record, and a record the same message again. Design D7, DM-35

The header table is digest data-model.md section 4: a property at its default has no header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import astuple

from bridge.core.catalogue import Queue
from bridge.core.ports import Headers, Record
from bridge.model.guid import Guid
from bridge.model.message import DEFAULT_PRIORITY, FOUR_DAYS, Message, Transaction

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


_USUAL: Final = (
    _u("msmq.label", "label"),
    _d("msmq.body-type", "body_type"),
    _d("msmq.priority", "priority"),
    _d("msmq.delivery", "delivery"),
    _d("msmq.sent", "sent_time"),
    _d("msmq.ttrq", "time_to_reach_queue"),
    _u("msmq.peer", "peer"),
    _b("msmq.wire", "wire"),
)
_RARE: Final = (
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
    _d("msmq.hops", "hops"),
)
_BY_HEADER: Final = {row.header: row for row in (*_USUAL, *_RARE)}
_FIRST_RARE: Final = Message.__struct_fields__.index("destination_qm")
_RARE_FIELDS: Final = Message.__struct_fields__[_FIRST_RARE:]
_RARE_DEFAULTS: Final = tuple(f.default for f in msgspec.structs.fields(Message)[_FIRST_RARE:])
_RARE_PLAN: Final = tuple(
    (row.header, row.encode) for name in _RARE_FIELDS for row in _RARE if row.field == name
)
_YES: Final = b"1"


def stream_headers(message: Message) -> Headers:
    """Those that every message of a stream has, with the same values."""
    return {
        "msmq.v": VERSION,
        "msmq.source": _guid(message.source),
        "msmq.dest": _text(message.destination),
        "msmq.transport": message.transport.encode(),
    }


def headers_of(message: Message, common: Headers | None = None) -> Headers:
    """Every MSMQ property that is not at its default; `common` as of `stream_headers`."""
    headers = (stream_headers(message) if common is None else common).copy()
    headers["msmq.id"] = message.id.encode()
    if message.peer:
        headers["msmq.peer"] = message.peer.encode()
    if message.sent_time:
        headers["msmq.sent"] = b"%d" % message.sent_time
    if message.label:
        headers["msmq.label"] = _text(message.label)
    if message.body_type:
        headers["msmq.body-type"] = b"%d" % message.body_type
    if message.priority != DEFAULT_PRIORITY:
        headers["msmq.priority"] = b"%d" % message.priority
    if message.delivery:
        headers["msmq.delivery"] = b"%d" % message.delivery
    if message.time_to_reach_queue != FOUR_DAYS:
        headers["msmq.ttrq"] = b"%d" % message.time_to_reach_queue
    if message.wire:
        headers["msmq.wire"] = message.wire
    rare = astuple(message)[_FIRST_RARE:]
    if rare != _RARE_DEFAULTS:  # one comparison for most messages
        for value, default, (name, encode) in zip(rare, _RARE_DEFAULTS, _RARE_PLAN, strict=True):
            if value != default:
                headers[name] = encode(value)
    if message.transaction is not None:
        _add_transaction(headers, message.transaction, message.source)
    return headers


def _add_transaction(headers: Headers, tx: Transaction, source: Guid) -> None:
    headers["msmq.tx.seqid"] = b"%d" % tx.sequence_id
    headers["msmq.tx.seq"] = b"%d" % tx.number
    if tx.previous:
        headers["msmq.tx.prev"] = b"%d" % tx.previous
    if tx.index:
        headers["msmq.tx.id"] = f"{source}\\{tx.index}".encode()
    if tx.first:
        headers["msmq.tx.first"] = _YES
    if tx.last:
        headers["msmq.tx.last"] = _YES
    if tx.final_ack:
        headers["msmq.tx.final-ack"] = _YES
    if tx.connector_qm is not None:
        headers["msmq.connector.qm"] = _guid(tx.connector_qm)


def message_from_record(record: Record) -> Message:
    """The message that this record was made from."""
    headers = record.headers
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


class _Stream(NamedTuple):
    """What is the same for every message of a stream."""

    key: bytes
    crc: int  # picks the partition
    headers: Headers


class Mapper:
    """Makes records; a stream's common part is made once."""

    def __init__(self) -> None:
        self._streams: dict[tuple[Guid, str, str], _Stream] = {}

    def record(self, message: Message, queue: Queue) -> Record:
        key, crc, common = self._stream(message, queue)
        headers = headers_of(message, common)
        timestamp = message.arrived_ms
        if queue.mapping.timestamp == "sent" and message.sent_time:
            # Never ahead of arrival: brokers refuse a time in the future.
            timestamp = min(message.sent_time * 1000, message.arrived_ms)
            headers["msmq.arrived"] = b"%d" % message.arrived_ms
        return Record(
            topic=queue.topic,
            key=key if queue.mapping.key == "stream" else _KEYS[queue.mapping.key](message),
            value=message.body,
            headers=headers,
            partition=crc % queue.partitions,  # a stream lies in one partition (DM-36)
            timestamp_ms=timestamp,
        )

    def _stream(self, message: Message, queue: Queue) -> _Stream:
        name = message.source, message.destination, message.transport
        known = self._streams.get(name)
        if known is None:
            if len(self._streams) >= _CACHE:
                self._streams.clear()
            key = _text(f"{message.source}/{message.destination}")
            headers = stream_headers(message) | {"msmq.queue": queue.name.encode()}
            known = self._streams[name] = _Stream(key, crc32(key), headers)
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
    headers = sum(len(name) + len(value) + 10 for name, value in record.headers.items())
    return len(record.value) + len(record.key or b"") + headers + 200
