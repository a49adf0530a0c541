"""A stub becomes fragments, protected or not; fragments become a stub again.

A reply of 4 MiB is cut into views of the caller's buffers: without protection nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.seal import BadSeal, Piece, Seal
from bridge.wire.rpc.pdu import (
    CALL_HEADER,
    TRAILER,
    Flags,
    Fragment,
    PduType,
    pack_call_header,
)

LARGEST: Final = 65_528  # fragment: 16 bits, a multiple of eight
SMALLEST: Final = 1_432  # that everybody takes. C706 12.6.3.4
_ALIGNMENT: Final = 16  # of a protected stub, RR-8
_FIRST, _LAST, _WHOLE = int(Flags.FIRST), int(Flags.LAST), int(Flags.FIRST | Flags.LAST)

Stub = bytes | Sequence[bytes]


class Protection(msgspec.Struct, frozen=True):
    """What a security context does to the fragments that name it."""

    seal: Seal
    type: int
    level: AuthLevel
    context: int

    @property
    def encrypts(self) -> bool:
        return self.level == AuthLevel.PRIVACY

    @property
    def signature_size(self) -> int:
        return self.seal.size(encrypt=self.encrypts)

    def open(self, fragment: Fragment, start: int) -> bytes:
        """The plain bytes from `start` to the padding; raises BadSeal."""
        verifier, data = fragment.verifier, fragment.data
        if verifier is None:
            raise BadSeal("no verifier")
        plain = self.seal.unprotect(
            data[:start],
            data[start : fragment.end],
            data[fragment.end : fragment.end + TRAILER.size],
            verifier.value,
            encrypt=self.encrypts,
        )
        return plain[: len(plain) - verifier.pad]


class Target(msgspec.Struct, frozen=True, gc=False):
    """What the header of every fragment of a call says."""

    type: PduType
    call_id: int
    context: int
    opnum: int = 0


def cut(target: Target, stub: Stub, limit: int, protection: Protection | None) -> list[Piece]:
    """Buffers to be written one after the other, none between them. RR-7"""
    buffers = (stub,) if isinstance(stub, bytes) else stub
    total = sum(len(buffer) for buffer in buffers)
    if protection is None:
        return _plain(target, buffers, total, (limit - CALL_HEADER) & ~7)
    room = limit - CALL_HEADER - TRAILER.size - protection.signature_size
    return _protected(target, buffers, total, room & ~(_ALIGNMENT - 1), protection)


def _plain(target: Target, buffers: Sequence[bytes], total: int, room: int) -> list[Piece]:
    written: list[Piece] = []
    left, flags = total, _FIRST
    for pieces, size in _pieces(buffers, total, room):
        flags |= _LAST if size == left else 0
        written.append(_head(target, flags, size, left))
        written += pieces
        left, flags = left - size, 0
    return written


def _protected(
    target: Target, buffers: Sequence[bytes], total: int, room: int, protection: Protection
) -> list[Piece]:
    written: list[Piece] = []
    seal, signature_size = protection.seal, protection.signature_size
    left, flags = total, _FIRST
    for pieces, size in _pieces(buffers, total, room):
        flags |= _LAST if size == left else 0
        pad = -size & (_ALIGNMENT - 1)
        trailer = TRAILER.pack(protection.type, protection.level, pad, 0, protection.context)
        head = _head(target, flags, size + pad + TRAILER.size, left, signature_size)
        body = pieces[0] if len(pieces) == 1 and not pad else b"".join((*pieces, bytes(pad)))
        sealed, signature = seal.protect(head, body, trailer, encrypt=protection.encrypts)
        written += (head, sealed, trailer, signature)
        left, flags = left - size, 0
    return written


def _head(target: Target, flags: int, size: int, left: int, auth_length: int = 0) -> bytes:
    return pack_call_header(
        target.type,
        flags,
        target.call_id,
        CALL_HEADER + size + auth_length,
        auth_length=auth_length,
        alloc_hint=left,
        context=target.context,
        opnum=target.opnum,
    )


def _pieces(
    buffers: Sequence[bytes], total: int, room: int
) -> Iterator[tuple[list[memoryview], int]]:
    """Views of `room` bytes and at the end of the rest; one empty list if there is nothing."""
    pieces: list[memoryview] = []
    size = 0
    for buffer in buffers:
        view, at = memoryview(buffer), 0
        while at < len(view):
            piece = view[at : at + room - size]
            pieces.append(piece)
            size += len(piece)
            at += len(piece)
            if size == room:
                yield pieces, size
                pieces, size = [], 0
    if size or not total:
        yield pieces, size


class Assembly:
    """A stub of which fragments are still to come; as many bytes as it has, however they came."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def size(self) -> int:
        return len(self._data)

    def add(self, piece: bytes) -> None:
        self._data += piece

    def whole(self) -> bytes:
        return bytes(self._data)
