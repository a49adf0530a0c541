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

from bridge.core.message_data import MessageData, data_of
from bridge.core.ports import Headers
from bridge.core.readings import Reading, read, wanted_of
from bridge.model.message import Message

_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


class Envelope(MessageData, frozen=True, kw_only=True):
    """A message as data, and what its body says."""

    value: Any = msgspec.UNSET


def value_of(
    message: Message, kind: str, queue_name: str, headers: Headers, reading: Reading | None = None
) -> tuple[bytes, str]:
    """The record's value and why it is not what was asked for: "" when it is.

    `headers` are the message's own, before the rules of the mapping: the envelope has them too.
    `reading` is that of the body, if it was read before.
    """
    if kind == "body":
        return message.body, ""
    if reading is None and (wanted := wanted_of(message, kind, "")):
        reading = read(wanted)
    if kind == "envelope":
        return _encode(_envelope(message, queue_name, headers, reading)), ""
    if reading is None:
        return message.body, "encrypted"
    value = reading.text if kind == "text" else reading.json
    return (value, "") if value is not None else (message.body, reading.why or "not-text")


def _envelope(
    message: Message, queue_name: str, headers: Headers, reading: Reading | None
) -> Envelope:
    value: Any = msgspec.UNSET
    if reading is not None and reading.json is not None:
        value = msgspec.Raw(reading.json)
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
