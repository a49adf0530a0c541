"""What a session asks of its shell."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Cursor


class Send(msgspec.Struct, frozen=True, gc=False):
    data: bytes


class Accept(msgspec.Struct, frozen=True):
    """Messages for the queue manager; `Decided` with the same number brings the answer."""

    batch: int
    messages: Sequence[Message]


class Opened(msgspec.Struct, frozen=True, gc=False):
    """The handshake is through; `remote` is the peer's queue manager."""

    remote: Guid


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """The peer has taken these of our messages (session acks), by their tokens."""

    tokens: Sequence[int]


class OrderAcked(msgspec.Struct, frozen=True, gc=False):
    """The peer has everything of this sequence up to this number, in order."""

    cursor: Cursor


class FinalAcked(msgspec.Struct, frozen=True, gc=False):
    """What became of one transactional message at its queue. MS-MQQB 2.2.5"""

    source: Guid
    ordinal: int
    message_class: int


class Close(msgspec.Struct, frozen=True, gc=False):
    """`reason` is a short label that is counted; `detail` is for the log."""

    reason: str
    detail: str = ""


Command = Send | Accept | Opened | Delivered | OrderAcked | FinalAcked | Close
