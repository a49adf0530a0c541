r"""A message as data: one shape for exports, JSON output and Spark. Design 3.6

Every name is always there, and what a message does not have is null. Numbers are numbers, times
are ISO 8601 in UTC (`sent_time` to the second, `arrived_time` to the millisecond; null for one
that no calendar has). `body`, `correlation_id` and `extension` are bytes, in JSON base64.

`headers` has the rest of the table in data-model.md section 4, by the name of its Kafka header.
The values are text in every format: base64 of `msmq.wire`, `msmq.cert`, `msmq.signature` and
`msmq.soap.compound`, for all others what the header says (text, decimal, GUID, `guid\decimal`,
and 1 for yes). A property at its default is absent.

Back again, `message_of` gives a message that equals the first one (DM-35). Only `message_id` and
`queue` are needed for it, the rest has MSMQ's defaults; names that nobody knows are ignored, so
that a row may carry more. What a receiver needs only until it has decided (`Message.srmp`, whose
numbers the stream's are) is no property. Half a surrogate pair is lawful in MSMQ's texts and kept:
in JSON it is an escape (`\ud800`), which Python's `json` reads and writes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from bridge.core.mapping import headers_of, message_from_record
from bridge.core.mapping_headers import HEADERS
from bridge.core.ports import Headers, Record
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import DEFAULT_PRIORITY, NO_CORRELATION, Message

U32 = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
U16 = Annotated[int, Meta(ge=0, le=0xFFFF)]
U64 = Annotated[int, Meta(ge=0)]  # `message_of` sees to the upper end

_LAST_MS: Final = 253_402_300_799_999  # of the year 9999
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ID: Final = re.compile(r"([0-9A-Fa-f-]{36})\\([0-9]{1,10})")
_SHOWN: Final = 80  # characters of what is wrong


class MessageData(Struct, frozen=True, kw_only=True):
    """One row of an export, one object of a JSON answer."""

    message_id: str  # guid\ordinal
    queue: str
    source: str | None = None  # None: that of the id
    label: str = ""
    body: bytes = b""
    body_type: U32 = 0
    message_class: U16 = msgspec.field(name="class", default=0)
    priority: Annotated[int, Meta(ge=0, le=7)] = DEFAULT_PRIORITY
    delivery: Annotated[int, Meta(ge=0, le=1)] = 0
    sent_time: str | None = None
    arrived_time: str | None = None
    correlation_id: bytes | None = None
    response_queue: str | None = None
    admin_queue: str | None = None
    extension: bytes | None = None
    app_specific: U32 = 0
    lookup_id: U64 | None = None
    tx_sequence_id: U64 | None = None
    tx_sequence_number: U32 | None = None
    transport: str = "binary"
    headers: dict[str, str] = {}


_HAS_A_NAME: Final = frozenset(
    f"msmq.{name}"
    for name in (
        *("id", "queue", "source", "label", "body-type", "class", "priority", "delivery", "sent"),
        *("arrived", "correlation", "response", "admin", "extension", "app", "lookup"),
        *("tx.seqid", "tx.seq", "transport"),
    )
)
_BYTES: Final = frozenset({"msmq.wire", "msmq.cert", "msmq.signature", "msmq.soap.compound"})


# -- a message, to data -----------------------------------------------------------------------


def data_of(message: Message, queue: str, headers: Headers | None = None) -> MessageData:
    """`queue` is its path name here. `headers` are the message's, if somebody has made them."""
    tx = message.transaction
    correlation = message.correlation_id
    return MessageData(
        message_id=message.id,
        queue=queue,
        source=str(message.source),
        label=message.label,
        body=message.body,
        body_type=message.body_type,
        message_class=message.message_class,
        priority=message.priority,
        delivery=message.delivery,
        sent_time=_iso(message.sent_time * 1000, "seconds"),
        arrived_time=_iso(message.arrived_ms, "milliseconds"),
        correlation_id=None if correlation == NO_CORRELATION else correlation,
        response_queue=message.response_queue or None,
        admin_queue=message.admin_queue or None,
        extension=message.extension or None,
        app_specific=message.app_specific,
        lookup_id=message.lookup_id or None,
        tx_sequence_id=tx.sequence_id if tx else None,
        tx_sequence_number=tx.number if tx else None,
        transport=message.transport,
        headers=_rest(headers_of(message) if headers is None else headers),
    )


def as_json(data: MessageData) -> dict[str, Any]:
    """With values that JSON has: bytes as base64."""
    made: dict[str, Any] = msgspec.to_builtins(data)
    return made


def _rest(headers: Headers) -> dict[str, str]:
    return {
        name: base64.b64encode(value).decode() if name in _BYTES else _text(value)
        for name, value in headers.items()
        if name not in _HAS_A_NAME
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _iso(milliseconds: int, timespec: str) -> str | None:
    if not 0 < milliseconds <= _LAST_MS:
        return None
    moment = (_EPOCH + timedelta(milliseconds=milliseconds)).replace(tzinfo=None)
    return f"{moment.isoformat(timespec=timespec)}Z"


# -- data, to a message -----------------------------------------------------------------------


def read_data(values: Mapping[str, Any]) -> MessageData:
    """From the values of a JSON object or of a row. ConfigError: what is wrong, and where."""
    try:
        return msgspec.convert(dict(values), MessageData)
    except (msgspec.ValidationError, UnicodeError) as error:
        what, _, path = str(error).partition(" - at `$")
        raise ConfigError(what, where=path.strip(".`")) from error


def message_of(data: MessageData) -> Message:
    """The message that this data is of. ConfigError: what is wrong, and where."""
    headers = {
        name: _checked(f"headers.{name}", _READERS.get(name, _as_text), text)
        for name, text in data.headers.items()
        if name in HEADERS and name not in _HAS_A_NAME
    }
    headers.setdefault("msmq.dest", _as_text(f"DIRECT=OS:.\\{data.queue}"))
    headers |= _identity(data)
    headers |= _properties(data)
    if (data.tx_sequence_id is None) != (data.tx_sequence_number is None):
        what = "tx_sequence_id and tx_sequence_number go together"
        raise ConfigError(what, where="tx_sequence_number", mend="give both or none")
    arrived = _moment("arrived_time", data.arrived_time)
    made = Record(topic="", value=data.body, headers=headers, timestamp_ms=arrived)
    return message_from_record(made)


def _identity(data: MessageData) -> Headers:
    id_ = _checked("message_id", _as_id, data.message_id)
    source = id_.partition(b"\\")[0]
    if data.source is not None and _checked("source", _as_guid, data.source) != source:
        raise ConfigError("is not that of message_id", where="source", mend="leave it out")
    return {"msmq.id": id_, "msmq.source": source, "msmq.transport": _as_text(data.transport)}


def _properties(data: MessageData) -> Headers:
    """Those with a name of their own, as the headers that they are in a record."""
    correlation = data.correlation_id
    if correlation is not None and len(correlation) != len(NO_CORRELATION):
        what = f"has {len(correlation)} bytes"
        raise ConfigError(what, where="correlation_id", mend="it has 20, or is null")
    numbers = {
        "msmq.body-type": data.body_type,
        "msmq.class": data.message_class,
        "msmq.priority": data.priority,
        "msmq.delivery": data.delivery,
        "msmq.sent": _sent(data.sent_time),
        "msmq.app": data.app_specific,
        "msmq.lookup": u64("lookup_id", data.lookup_id),
        "msmq.tx.seqid": u64("tx_sequence_id", data.tx_sequence_id),
        "msmq.tx.seq": data.tx_sequence_number,
    }
    made = {name: b"%d" % number for name, number in numbers.items() if number is not None}
    made |= {
        "msmq.label": _as_text(data.label),
        "msmq.response": _as_text(data.response_queue or ""),
        "msmq.admin": _as_text(data.admin_queue or ""),
        "msmq.correlation": correlation or NO_CORRELATION,
        "msmq.extension": data.extension or b"",
    }
    return made


def u64(where: str, number: int | None) -> int | None:
    """Raises ConfigError for one that is too large; msgspec has no such bound."""
    if number is not None and number >> 64:
        raise ConfigError("has more than 64 bits", where=where)
    return number


def _sent(text: str | None) -> int:
    seconds = _moment("sent_time", text) // 1000
    if seconds >> 32:
        raise ConfigError(f"{text!r} is too late for a packet", where="sent_time")
    return seconds


def _moment(where: str, text: str | None) -> int:
    """Unix milliseconds; a time without an offset is UTC."""
    if text is None:
        return 0
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        milliseconds = -1
    if not 0 <= milliseconds <= _LAST_MS:
        what = f"{text[:_SHOWN]!r} is no time"
        raise ConfigError(what, where=where, mend="write one like 2026-01-31T12:00:00Z")
    return milliseconds


def _checked(where: str, read: Callable[[str], bytes], text: str) -> bytes:
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError(f"{text[:_SHOWN]!r} is wrong", where=where) from error


def _as_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _as_guid(text: str) -> bytes:
    return str(Guid.parse(text)).encode()


def _as_id(text: str) -> bytes:
    found = _ID.fullmatch(text)
    if found is None or int(found[2]) > 0xFFFFFFFF:
        raise ValueError(text)
    return b"%s\\%d" % (_as_guid(found[1]), int(found[2]))


def _as_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


def _decimal(bits: int) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        if not re.fullmatch("[0-9]{1,20}", text) or int(text) >> bits:
            raise ValueError(text)
        return text.encode()

    return read


# How a header's text is read where it is more than text.
_READERS: Final[Mapping[str, Callable[[str], bytes]]] = {
    **dict.fromkeys(_BYTES, _as_bytes),
    **dict.fromkeys(
        ("msmq.dest.qm", "msmq.trace", "msmq.connector", "msmq.connector.qm"), _as_guid
    ),
    **dict.fromkeys(("msmq.ttrq", "msmq.ttbr", "msmq.hash", "msmq.privacy"), _decimal(32)),
    **dict.fromkeys(("msmq.enc", "msmq.tx.prev"), _decimal(32)),
    **dict.fromkeys(("msmq.ack", "msmq.journal", "msmq.auth", "msmq.hops"), _decimal(8)),
    "msmq.encrypted": _decimal(1),
    **dict.fromkeys(("msmq.expires", "msmq.srmp.expires"), _decimal(64)),
    "msmq.tx.id": _as_id,
}
