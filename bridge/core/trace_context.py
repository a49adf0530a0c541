"""W3C trace context in a message, and in the record that it becomes.

MSMQ has no place for it, so a sender puts it where it may put what it likes. Three strict forms:

1. The extension (PROPID_M_EXTENSION) begins with it, as lines of ASCII; what follows is its own:

       traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
       tracestate: vendor=value

2. The extension is the header list of NServiceBus, and `traceparent` is one of its keys.
3. An element `traceparent` (and `tracestate`) in the SOAP header, in any namespace.

What is not to the letter of the W3C's version 00 is not taken. The message stays as it is (DM-3);
only the record gets headers. What continues a trace is made from the message alone, so that the
record of a message that is sent again is the same record.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import msgspec

from bridge.core.ports import Headers
from bridge.model.message import Message

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_PARENT: Final = r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_STATE: Final = r"[\x21-\x7e](?:[\x20-\x7e]{0,510}[\x21-\x7e])?"
_XML_STATE: Final = r"[\x21-\x7e](?<![<>&])(?:(?![<>&])[\x20-\x7e]){0,511}"
_MEMBER: Final = re.compile(rb"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}")
_MOST_MEMBERS: Final = 32
_FAR: Final = 64 << 10  # how far into a list of headers or an envelope we look

_LINES: Final = re.compile(
    rf"traceparent: ({_PARENT})(?:\r?\n(?:tracestate: ({_STATE})(?=\r?\n|\0|\Z))?|\0|\Z)".encode()
)
_LIST: Final = b"<ArrayOfHeaderInfo"
_PAIR: Final = rb"<Key>%s</Key>\s{0,99}<Value>(%s)</Value>"
_PARENT_PAIR: Final = re.compile(_PAIR % (b"traceparent", _PARENT.encode()))
_STATE_PAIR: Final = re.compile(_PAIR % (b"tracestate", _XML_STATE.encode()))
_ELEMENT: Final = r"<(?:[A-Za-z_][\w.-]{0,60}:)?%s(?:\s[^<>]{0,500})?>(%s)</"
_PARENT_ELEMENT: Final = re.compile(_ELEMENT % (TRACEPARENT, _PARENT))
_STATE_ELEMENT: Final = re.compile(_ELEMENT % (TRACESTATE, _XML_STATE))
_BODY: Final = re.compile(r"<(?:[A-Za-z_][\w.-]{0,60}:)?Body[\s/>]")


class TraceContext(msgspec.Struct, frozen=True):
    """As the headers of a record have it."""

    parent: bytes
    state: bytes = b""

    @property
    def trace_id(self) -> int:
        return int(self.parent[3:35], 16)

    @property
    def span_id(self) -> int:
        return int(self.parent[36:52], 16)

    @property
    def sampled(self) -> bool:
        return bool(int(self.parent[53:55], 16) & 1)

    def add_to(self, headers: Headers) -> None:
        headers[TRACEPARENT] = self.parent
        if self.state:
            headers[TRACESTATE] = self.state


def context_of(message: Message) -> TraceContext | None:
    """What its sender put in; the extension comes first."""
    if message.extension and (found := _in_extension(message.extension)) is not None:
        return found
    return _in_soap(message.soap) if message.soap else None


def continued(context: TraceContext, message_id: str) -> TraceContext:
    """The same trace, one span further: ours."""
    digest = sha256(context.parent + b"/" + message_id.encode()).digest()
    span = digest[:8] if any(digest[:8]) else b"\x01" * 8
    parent = context.parent[:36] + span.hex().encode() + context.parent[52:]
    return TraceContext(parent, context.state)


def _in_extension(extension: bytes) -> TraceContext | None:
    if found := _LINES.match(extension):
        return _context(found[1], found[2])
    near = extension[:_FAR]
    if _LIST in near[:1000] and (parent := _PARENT_PAIR.search(near)):
        state = _STATE_PAIR.search(near)
        return _context(parent[1], state and state[1])
    return None


def _in_soap(soap: str) -> TraceContext | None:
    near = soap[:_FAR]
    if TRACEPARENT not in near or "<!" in near:  # a comment or CDATA may hide anything
        return None
    body = _BODY.search(near)
    header = near[: body.start()] if body else near
    if parent := _PARENT_ELEMENT.search(header):
        state = _STATE_ELEMENT.search(header)
        return _context(parent[1].encode(), state and state[1].encode())
    return None


def _context(parent: bytes, state: bytes | None) -> TraceContext:
    """A state that breaks the rules is left out, its parent counts. W3C Trace Context 3.3.1"""
    members = [member.strip() for member in (state or b"").split(b",")]
    keys = [member.partition(b"=")[0] for member in members]
    is_good = (
        len(members) <= _MOST_MEMBERS
        and len(set(keys)) == len(keys)
        and all(map(_MEMBER.fullmatch, members))
    )
    return TraceContext(parent, state if state and is_good else b"")
