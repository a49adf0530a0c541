"""User messages as bytes, made from the digest alone: binary.md 2.1, 2.9, 2.10, 2.12.

All packets of a session are one block of memory with packets of one size, so that a sender only
moves a view over it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

KINDS = ("express", "recoverable", "transactional")
MAGIC = 0x524F494C
_BASE = struct.Struct("<BBHIII")
_USER = struct.Struct("<16s16sIIII")
_TRANSACTION = struct.Struct("<IQII")
_PROPERTIES = struct.Struct("<BBH20sIIIIIIII")
_NUMBER = struct.Struct("<I")
_MESSAGE_ID = _BASE.size + 40  # UserHeader.MessageID
_NAMES = _BASE.size + _USER.size

_DIRECT = 7 << 10  # DQ
_RECOVERABLE = 0x20  # DM
_TRANSACTIONAL = 0x00100000  # TH
_PROPERTIES_FOLLOW = 0x00200000  # MP
_FIRST_AND_LAST = 0xC  # FM, LM: every message is a transaction of its own
_BYTES = 0x1011  # VT_VECTOR | VT_UI1
_SHA1, _RC4 = 0x8004, 0x6801
_FOUR_DAYS = 345_600
_INFINITE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Block:
    """`count` packets of `size` bytes each, one after the other."""

    data: bytearray
    size: int
    count: int

    def packet(self, number: int) -> bytes:
        return bytes(self.data[number * self.size : (number + 1) * self.size])


def base_header(flags: int, size: int, reach_s: int = _INFINITE) -> bytes:
    return _BASE.pack(0x10, 0, flags, MAGIC, size, reach_s)


def make_block(
    queue: str, kind: str, count: int, body_size: int, source: bytes, now_s: int
) -> Block:
    """Messages 1 to `count` of one sender to `queue`, a path name such as private$\\orders."""
    name = _direct_name(f"TCP:127.0.0.1\\{queue}")
    packet = _template(name, kind, body_size, source, now_s)
    data = bytearray(packet * count)
    for n in range(1, count + 1):
        start = (n - 1) * len(packet)
        _NUMBER.pack_into(data, start + _MESSAGE_ID, n)
        if kind == "transactional":
            bits = _FIRST_AND_LAST | (n & 0xFFFFF) << 4
            sequence = now_s << 32 | 1  # TimeStamp, Ordinal
            _TRANSACTION.pack_into(data, start + _NAMES + len(name), bits, sequence, n, n - 1)
    return Block(data, len(packet), count)


def _template(name: bytes, kind: str, body_size: int, source: bytes, now_s: int) -> bytes:
    flags = _DIRECT | _PROPERTIES_FOLLOW
    if kind != "express":
        flags |= _RECOVERABLE
    if kind == "transactional":
        flags |= _TRANSACTIONAL
    headers = _USER.pack(source, bytes(16), _INFINITE, now_s, 0, flags) + name
    if kind == "transactional":
        headers += bytes(_TRANSACTION.size)
    properties = _properties("load", body_size)
    priority = 0 if kind == "transactional" else 3
    size = _BASE.size + len(headers) + len(properties)
    return base_header(priority, size, _FOUR_DAYS) + headers + properties


def _direct_name(text: str) -> bytes:
    """Code 7: a count of bytes with the NUL, UTF-16, padded to 4 with the count itself."""
    name = text.encode("utf-16-le") + b"\0\0"
    return _padded(struct.pack("<H", len(name)) + name)


def _properties(label: str, size: int) -> bytes:
    head = _PROPERTIES.pack(
        0, len(label) + 1, 0, bytes(20), _BYTES, 0, size, size, 0, _SHA1, _RC4, 0
    )
    return _padded(head + label.encode("utf-16-le") + b"\0\0" + bytes(size))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
