"""Packets laid out by hand with struct, from the tables of the spec and without our pack()."""

from __future__ import annotations

import struct

C = bytes.fromhex("11111111222233334444555555555555")
S = bytes.fromhex("D3C2B1A0F5E471608293A4B5C6D7E8F9")
ZERO = bytes(16)
MP = 0x00200000
DIRECT_DQ = 7 << 10


def pad(raw: bytes, filler: bytes = b"\0") -> bytes:
    return raw + filler * (-len(raw) % 4)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def direct(text: str) -> bytes:
    raw = utf16(text) + b"\0\0"
    return pad(struct.pack("<H", len(raw)) + raw)


def base(
    size: int,
    flags: int = 3,
    ttrq: int = 0xFFFFFFFF,
    version: int = 0x10,
    magic: bytes = b"LIOR",
) -> bytes:
    return struct.pack("<BBH4sII", version, 0, flags, magic, size, ttrq)


def user(flags: int = MP | DIRECT_DQ, names: bytes | None = None, manager: bytes = ZERO) -> bytes:
    head = struct.pack("<16s16sIIII", C, manager, 0xFFFFFFFF, 0x60000010, 42, flags)
    return head + (direct("OS:a\\q") if names is None else names)


def properties(
    body: bytes = b"",
    label: bytes = b"",
    extension: bytes = b"",
    *,
    flags: int = 0,
    message_class: int = 0,
    label_length: int | None = None,
    size: int | None = None,
    allocation: int | None = None,
    extension_size: int | None = None,
    filler: bytes = b"\0",
    unused: bytes = b"",
) -> bytes:
    """`unused`: bytes that are allocated for the body and not used by it."""
    count = len(body) if size is None else size
    head = struct.pack(
        "<BBH20sIIIIIIII",
        flags,
        len(label) // 2 if label_length is None else label_length,
        message_class,
        bytes(range(20)),
        8,
        0xCAFE,
        count,
        count + len(unused) if allocation is None else allocation,
        1,
        0x800E,
        0x6610,
        len(extension) if extension_size is None else extension_size,
    )
    return pad(head + label + extension + body + unused, filler)


def packet(*headers: bytes, flags: int = 3, ttrq: int = 0xFFFFFFFF, after: bytes = b"") -> bytes:
    """`after` is what PacketSize does not count: a SessionHeader."""
    content = b"".join(headers)
    return base(16 + len(content), flags, ttrq) + content + after


def internal(kind: int, content: bytes, flags: int = 0x0B, bits: int = 0) -> bytes:
    return base(20 + len(content), flags) + struct.pack("<HH", 0, kind | bits) + content
