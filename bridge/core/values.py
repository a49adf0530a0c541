"""The record's value as a mapping asks for it: `value: body | text | json | envelope`.

- text: UTF-8 of what the body says, numbers as their text.
- json: what the body says as JSON (rules in `body`, `variant` and `xml_value`); a body that is
  JSON already goes through to the letter.
- envelope: the message as a JSON object with the names of design 3.6, all of them always there.
  `body`, `correlation_id` and `extension` are base64, as every property that is bytes; numbers
  are numbers; what a message does not have is null. `headers` has the rest of the header table
  (data-model.md 4) as text, bytes as base64. `value` is there when the body could be read.

What cannot be read goes through untouched, with a reason for the header `msmq.value-error`.
Half a surrogate pair is lawful in a label but not in JSON, where it becomes U+FFFD.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from bridge.core.body import Decoded, decode
from bridge.core.ports import Headers
from bridge.model.message import NO_CORRELATION, Message

_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_LAST_MS: Final = 253_402_300_799_999  # of the year 9999
_BYTES: Final = frozenset({"msmq.wire", "msmq.cert", "msmq.signature", "msmq.soap.compound"})
_HAS_A_NAME: Final = frozenset(
    f"msmq.{name}"
    for name in (
        *("id", "queue", "source", "label", "body-type", "class", "priority", "delivery", "sent"),
        *("arrived", "correlation", "response", "admin", "extension", "app", "lookup"),
        *("tx.seqid", "tx.seq", "transport"),
    )
)


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message as data. Design 3.6"""

    message_id: str
    queue: str
    source: str
    label: str
    body: bytes
    body_type: int
    message_class: int = msgspec.field(name="class")
    priority: int
    delivery: int
    sent_time: str | None
    arrived_time: str | None
    correlation_id: bytes | None
    response_queue: str | None
    admin_queue: str | None
    extension: bytes | None
    app_specific: int
    lookup_id: int | None
    tx_sequence_id: int | None
    tx_sequence_number: int | None
    transport: str
    headers: dict[str, str | bytes]
    value: Any = msgspec.UNSET


def value_of(message: Message, kind: str, queue_name: str, headers: Headers) -> tuple[bytes, str]:
    """The record's value and why it is not what was asked for: "" when it is.

    `headers` are the message's own, before the rules of the mapping: the envelope has them too.
    """
    match kind:
        case "body":
            return message.body, ""
        case "envelope":
            return _encode(envelope_of(message, queue_name, headers)), ""
    if message.encrypted:
        return message.body, "encrypted"
    decoded = decode(message.body, message.body_type)
    if kind == "text" and decoded.text is not None:
        return decoded.text.encode(), ""
    if kind == "json" and not decoded.why:
        return msgspec.json.encode(_exact(decoded)), ""
    return message.body, decoded.why or "not-text"


def _exact(decoded: Decoded) -> Any:
    """JSON stays as it was written: no digit and no repeated name is lost."""
    return msgspec.Raw(decoded.text or "") if decoded.formatter == "json" else decoded.value


def envelope_of(message: Message, queue_name: str, headers: Headers) -> Envelope:
    tx = message.transaction
    correlation = message.correlation_id
    value: Any = msgspec.UNSET
    if not message.encrypted:
        decoded = decode(message.body, message.body_type)
        value = msgspec.UNSET if decoded.why else _exact(decoded)
    return Envelope(
        message_id=message.id,
        queue=queue_name,
        source=str(message.source),
        label=message.label,
        body=message.body,
        body_type=message.body_type,
        message_class=message.message_class,
        priority=message.priority,
        delivery=message.delivery,
        sent_time=_iso_seconds(message.sent_time),
        arrived_time=_iso_milliseconds(message.arrived_ms),
        correlation_id=None if correlation == NO_CORRELATION else correlation,
        response_queue=message.response_queue or None,
        admin_queue=message.admin_queue or None,
        extension=message.extension or None,
        app_specific=message.app_specific,
        lookup_id=message.lookup_id or None,
        tx_sequence_id=tx.sequence_id if tx else None,
        tx_sequence_number=tx.number if tx else None,
        transport=message.transport,
        headers=_rest(headers),
        value=value,
    )


def _rest(headers: Headers) -> dict[str, str | bytes]:
    return {
        name: value if name in _BYTES else _text(value)
        for name, value in headers.items()
        if name not in _HAS_A_NAME
    }


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data


def _iso_seconds(seconds: int) -> str | None:
    return _iso(seconds * 1000, "seconds") if seconds else None


def _iso_milliseconds(milliseconds: int) -> str | None:
    return _iso(milliseconds, "milliseconds") if milliseconds else None


def _iso(milliseconds: int, timespec: str) -> str | None:
    """ISO 8601 UTC; None for a time that no calendar has."""
    if not 0 <= milliseconds <= _LAST_MS:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000, tzinfo=None)
    return moment.isoformat(timespec=timespec) + "Z"


def _encode(envelope: Envelope) -> bytes:
    try:
        return msgspec.json.encode(envelope)
    except UnicodeEncodeError:
        fields = {name: _whole(data) for name, data in asdict(envelope).items()}
        return msgspec.json.encode(Envelope(**fields))


def _whole(data: Any) -> Any:
    """Texts and headers without half surrogate pairs; a value that was decoded has none."""
    match data:
        case str():
            return _HALF_PAIR.sub("\ufffd", data)
        case dict():
            return {name: _whole(item) for name, item in data.items()}
    return data
