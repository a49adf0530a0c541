"""What can happen to a session, and the two clocks it is told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bridge.model.verdict import Verdict


class Instant(msgspec.Struct, frozen=True, gc=False):
    """`mono` for timers, `unix` for the specification's timestamps; both in seconds."""

    mono: float
    unix: float


class BytesReceived(msgspec.Struct, frozen=True, gc=False):
    data: bytes


class Decided(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of one `Accept`, in its order. They are durable."""

    batch: int
    verdicts: Sequence[Verdict]


class Congested(msgspec.Struct, frozen=True, gc=False):
    """Whether the way to Kafka is jammed; shrinks or restores the window (QB-51)."""

    jammed: bool


class Tick(msgspec.Struct, frozen=True, gc=False):
    pass


class PeerClosed(msgspec.Struct, frozen=True, gc=False):
    pass


Event = BytesReceived | Decided | Congested | Tick | PeerClosed
