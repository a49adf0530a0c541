"""The record's value as a mapping asks for it: `value: body | text | json | envelope`.

- text: UTF-8 of what the body says, numbers as their text.
- json: what the body says as JSON (rules in `body`, `variant` and `xml_value`); a body that is
  JSON already goes through to the letter.
- envelope: the message as a JSON object, as `message_data` has it. `value` is there when the body
  could be read.

What cannot be read goes through untouched, with a reason for the header `msmq.value-error`.
Half a surrogate pair is lawful in a label but not in JSON, where it becomes U+FFFD.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from bridge.core.body import Decoded, decode
from bridge.core.message_data import MessageData, data_of
from bridge.core.ports import Headers
from bridge.model.message import Message

_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


class Envelope(MessageData, frozen=True, kw_only=True):
    """A message as data, and what its body says."""

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
    value: Any = msgspec.UNSET
    if not message.encrypted:
        decoded = decode(message.body, message.body_type)
        value = msgspec.UNSET if decoded.why else _exact(decoded)
    return Envelope(**asdict(data_of(message, queue_name, headers)), value=value)


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
