"""What the RPC runtime and the interfaces it serves say to each other.

The runtime knows nothing of MSMQ, an interface nothing of PDUs, binds and seals: one complete
request goes in, one response stub or a `Fault` comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from bridge.model.guid import Guid


class AuthLevel(IntEnum):
    """How a call was protected. MS-RPCE 2.2.1.1.8"""

    NONE = 1
    CONNECT = 2
    CALL = 3
    PACKET = 4
    INTEGRITY = 5
    PRIVACY = 6


class Call(msgspec.Struct, frozen=True):
    """One complete request, as handed to an interface."""

    opnum: int
    stub: bytes  # reassembled and decrypted; bytes after the parameters mean nothing (RR-10)
    level: AuthLevel
    user: str  # `DOMAIN\name`, or "" for anonymous
    group: int  # the association group: handles belong to it (RR-5)
    connection: int  # unique per TCP connection
    peer: str  # the client's address
    local: tuple[str, int]  # our address and port on that connection


class Fault(Exception):
    """A call that ends with a fault PDU instead of a response. C706 12.6.4.7"""

    def __init__(self, status: int, *, did_not_execute: bool = False) -> None:
        self.status, self.did_not_execute = status, did_not_execute
        super().__init__(f"fault {status:08X}")


class Interface(Protocol):
    """What a server offers under one UUID and version.

    A call whose connection is lost, or that the client cancels or orphans, is cancelled: the
    interface sees CancelledError where it awaits, and must have consumed nothing.
    """

    @property
    def uuid(self) -> Guid: ...

    @property
    def version(self) -> tuple[int, int]: ...

    async def call(self, call: Call) -> bytes | Sequence[bytes]:
        """The response stub, in one piece or several; raises Fault."""

    def rundown(self, group: int) -> None:
        """The last connection of the group is gone. MS-RPCE 3.3.3.7.1"""
