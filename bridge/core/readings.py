"""What a mapping needs of a body: its text, its JSON, a key in it.

Reading a large document takes longer than the event loop may wait, so whoever decides on messages
can have large bodies read beforehand, beside the loop, and hands the results to the mapper. A
reading has bytes of about the size of the body; what was decoded on the way is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from bridge.core.body import Decoded, decode
from bridge.core.json_path import JsonPath, json_path
from bridge.core.mapping_rules import QueueSettings
from bridge.model.message import Message

INLINE: Final = 32 << 10  # bytes of bodies that are read without delay, of messages in one batch

Wanted: TypeAlias = tuple[bytes, int, str, str]  # body, body type, value of the mapping, path
Readings: TypeAlias = dict[Wanted, "Reading"]


class Reading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """None for what was not wanted, or is not there; `why` the body cannot be read as JSON."""

    text: bytes | None = None
    json: bytes | None = None
    key: bytes | None = None
    why: str = ""


def reads_body(mapping: QueueSettings) -> bool:
    return mapping.value != "body" or bool(mapping.key.json_path)


def wanted_of(message: Message, value: str, path: str) -> Wanted | None:
    """What is to be read for this message, if anything; `path` is that of a key in the body."""
    if message.encrypted or (value == "body" and not path):
        return None
    return message.body, message.body_type, value, path


def read(wanted: Wanted) -> Reading:
    body, body_type, value, path = wanted
    decoded = decode(body, body_type)
    return Reading(
        text=decoded.text.encode() if value == "text" and decoded.text is not None else None,
        json=_json(decoded) if value in ("json", "envelope") and not decoded.why else None,
        key=json_path(decoded.value, JsonPath.parse(path)) if path else None,
        why=decoded.why,
    )


def read_all(wanted: Iterable[Wanted]) -> Readings:
    """Leaves out a body that raises: its message raises again when it is decided, alone."""
    found: Readings = {}
    for one in wanted:
        with suppress(Exception):
            found[one] = read(one)
    return found


def _json(decoded: Decoded) -> bytes:
    """JSON stays as it was written: no digit and no repeated name is lost."""
    if decoded.formatter == "json":
        return (decoded.text or "").encode()
    return msgspec.json.encode(decoded.value)
