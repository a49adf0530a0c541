"""The PDUs that open a connection: bind, alter_context, their answers and refusals.

Lists are counted in one byte, so that the largest is small; each count is checked against the
bytes that are there before anything is made of them.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.rpc.pdu import HEADER, Fragment

_SYNTAX: Final = Struct("<16sHH")
_SIZES: Final = Struct("<HHI")
_COUNT: Final = Struct("<BxH")
_CONTEXT: Final = Struct("<HBx")
_RESULT: Final = Struct("<HH")
_FEATURES: Final = bytes.fromhex("2c1cb76c12984045")  # 6CB71C2C-9812-4540. MS-RPCE 3.3.1.5.3


class ResultCode(IntEnum):
    """C706 12.6.3.1, MS-RPCE 2.2.2.4"""

    ACCEPTANCE = 0
    USER_REJECTION = 1
    PROVIDER_REJECTION = 2
    NEGOTIATE_ACK = 3


class Reason(IntEnum):
    """Why a context is rejected. C706 12.6.3.1"""

    NOT_SPECIFIED = 0
    ABSTRACT_SYNTAX = 1
    TRANSFER_SYNTAXES = 2
    LOCAL_LIMIT = 3


class NakReason(IntEnum):
    """Why a bind is refused. C706 12.6.3.1, MS-RPCE 2.2.2.5"""

    NOT_SPECIFIED = 0
    LOCAL_LIMIT = 2
    PROTOCOL_VERSION = 4
    AUTHENTICATION_TYPE = 8


class Syntax(msgspec.Struct, frozen=True, gc=False):
    """An interface or a transfer syntax: UUID and version. C706 12.6.3.1"""

    uuid: Guid
    major: int
    minor: int

    def pack(self) -> bytes:
        return _SYNTAX.pack(self.uuid, self.major, self.minor)

    @property
    def features(self) -> int | None:
        """The bits of a bind-time feature negotiation, if it is one. MS-RPCE 3.3.1.5.3"""
        if self.uuid[:8] != _FEATURES:
            return None
        return int.from_bytes(self.uuid[8:], "little")


NDR: Final = Syntax(Guid.parse("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2, 0)
NDR64: Final = Syntax(Guid.parse("71710533-beba-4937-8319-b5dbef9ccc36"), 1, 0)
NO_SYNTAX: Final = Syntax(NULL_GUID, 0, 0)


def features(bits: int) -> Syntax:
    return Syntax(Guid(_FEATURES + bits.to_bytes(8, "little")), 1, 0)


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """One presentation context: an interface, and the encodings it may have."""

    id: int
    interface: Syntax
    transfers: tuple[Syntax, ...]

    def pack(self) -> bytes:
        head = _CONTEXT.pack(self.id, len(self.transfers)) + self.interface.pack()
        return head + b"".join(syntax.pack() for syntax in self.transfers)


class Bind(msgspec.Struct, frozen=True, gc=False):
    """bind and alter_context alike. C706 12.6.4.3"""

    max_xmit: int
    max_recv: int
    group: int
    proposals: tuple[Proposal, ...]

    def pack(self) -> bytes:
        head = _SIZES.pack(self.max_xmit, self.max_recv, self.group)
        parts = [proposal.pack() for proposal in self.proposals]
        return head + _COUNT.pack(len(parts), 0) + b"".join(parts)

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        read = _Reader(fragment, "C706 12.6.4.3")
        max_xmit, max_recv, group = read.take(_SIZES)
        (count, _) = read.take(_COUNT)
        return cls(max_xmit, max_recv, group, tuple(_proposal(read) for _ in range(count)))


def _proposal(read: _Reader) -> Proposal:
    number, count = read.take(_CONTEXT)
    interface = read.syntax()
    return Proposal(number, interface, tuple(read.syntax() for _ in range(count)))


class Result(msgspec.Struct, frozen=True, gc=False):
    """The answer to one proposal."""

    code: int
    reason: int = 0
    transfer: Syntax = NO_SYNTAX

    def pack(self) -> bytes:
        return _RESULT.pack(self.code, self.reason) + self.transfer.pack()


class BindAck(msgspec.Struct, frozen=True, gc=False):
    """bind_ack and alter_context_resp alike. C706 12.6.4.4"""

    max_xmit: int
    max_recv: int
    group: int
    results: tuple[Result, ...]
    address: str = ""  # the port, in a bind_ack

    def pack(self) -> bytes:
        address = self.address.encode("ascii") + b"\0" if self.address else b""
        head = _SIZES.pack(self.max_xmit, self.max_recv, self.group)
        head += len(address).to_bytes(2, "little") + address
        head += bytes(-(HEADER.size + len(head)) & 3)
        parts = [result.pack() for result in self.results]
        return head + _COUNT.pack(len(parts), 0) + b"".join(parts)

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        read = _Reader(fragment, "C706 12.6.4.4")
        max_xmit, max_recv, group = read.take(_SIZES)
        (size,) = read.take(_U16)
        address = read.raw(size).rstrip(b"\0").decode("ascii", "replace")
        read.align()
        (count, _) = read.take(_COUNT)
        return cls(max_xmit, max_recv, group, tuple(_result(read) for _ in range(count)), address)


def _result(read: _Reader) -> Result:
    code, reason = read.take(_RESULT)
    return Result(code, reason, read.syntax())


class BindNak(msgspec.Struct, frozen=True, gc=False):
    """A bind that is refused, and the protocol version we speak. C706 12.6.4.5"""

    reason: int

    def pack(self) -> bytes:
        return self.reason.to_bytes(2, "little") + bytes((1, 5, 0)) + bytes(3)

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        (reason,) = _Reader(fragment, "C706 12.6.4.5").take(_U16)
        return cls(reason)


_U16: Final = Struct("<H")


class _Reader:
    """Walks the body of one fragment."""

    def __init__(self, fragment: Fragment, rule: str) -> None:
        self._data, self._end, self._rule = fragment.data, fragment.body_end, rule
        self._at = HEADER.size

    def _advance(self, size: int) -> int:
        at = self._at
        if size > self._end - at:
            raise WireError("length", self._end, f"{self._rule}: {size} bytes wanted at {at}")
        self._at += size
        return at

    def take(self, layout: Struct) -> tuple[int, ...]:
        return layout.unpack_from(self._data, self._advance(layout.size))

    def raw(self, size: int) -> bytes:
        at = self._advance(size)
        return self._data[at : at + size]

    def syntax(self) -> Syntax:
        uuid, major, minor = _SYNTAX.unpack_from(self._data, self._advance(_SYNTAX.size))
        return Syntax(Guid(uuid), major, minor)

    def align(self) -> None:
        self._advance(-self._at & 3)
