"""What an RPC server's connection is told, what it asks for, and what it may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bridge.protocol.commands import Close
from bridge.protocol.events import BytesReceived, PeerClosed, Tick
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.protocol.rpc.fragments import Stub
from bridge.protocol.rpc.groups import AssociationGroups
from bridge.protocol.rpc.ntlm import Acceptor
from bridge.protocol.rpc.seal import Piece
from bridge.wire.rpc.bind import Syntax


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection may have; seconds."""

    stub: int = 4 << 20  # RR-7
    held: int = 8 << 20  # bytes of requests, half here or not yet answered
    calls: int = 2048  # not yet answered
    bind_timeout: float = 30.0
    authentication_timeout: float = 60.0
    request_timeout: float = 120.0  # first fragment to last
    anonymous: bool = True  # calls need no name
    proof_timeout: float = 300.0  # for a name, where calls need one


class Answered(msgspec.Struct, frozen=True, gc=False):
    call_id: int
    stub: Stub


class Faulted(msgspec.Struct, frozen=True, gc=False):
    call_id: int
    status: int
    did_not_execute: bool = False


class Transmit(msgspec.Struct, frozen=True, gc=False):
    """Buffers that go out one after the other."""

    buffers: Sequence[Piece]


class Invoke(msgspec.Struct, frozen=True, gc=False):
    """A complete request for the interface with this index."""

    call_id: int
    interface: int
    call: Call


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Stop this call. What it still says counts, unless it is orphaned: nobody waits for it."""

    call_id: int
    orphaned: bool = False


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Something was turned away; the connection goes on. To be counted and logged."""

    reason: str
    detail: str


class RunDown(msgspec.Struct, frozen=True, gc=False):
    """The group's last connection is gone. MS-RPCE 3.3.3.7.1"""

    group: int


Event = BytesReceived | Answered | Faulted | Tick | PeerClosed
Command = Transmit | Invoke | Withdraw | Refused | Close | RunDown


class Runtime(msgspec.Struct, frozen=True):
    """What all connections of a process share."""

    served: Sequence[Syntax]
    groups: AssociationGroups
    # A new one of this auth_type for this level and the peer's address, if we have it.
    acceptor: Callable[[int, AuthLevel, str], Acceptor | None]
    limits: Limits = Limits()
