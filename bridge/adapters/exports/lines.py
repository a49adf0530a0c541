"""Messages as JSON lines: one object each, every name of design 3.6 in it."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from bridge.core.message_data import MessageData, as_json, read_data
from bridge.model.errors import ConfigError

_ENCODER: Final = msgspec.json.Encoder()


def line_of(data: MessageData) -> bytes:
    """With its end; half a surrogate pair is an escape."""
    try:
        return _ENCODER.encode(data) + b"\n"
    except UnicodeEncodeError:
        return json.dumps(as_json(data), separators=(",", ":")).encode() + b"\n"


def data_in(line: bytes) -> MessageData:
    """ConfigError: what is wrong with it."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError("it is not JSON") from error
    if not isinstance(values, dict):
        raise ConfigError("it is not a JSON object")
    return read_data(values)
