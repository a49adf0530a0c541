"""The frames of a capture file: pcap and pcapng, as Wireshark and tcpdump write them.

draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. A file that was stopped in the middle of a frame
ends before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from bridge.model.errors import ConfigError

PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
# Byte order and how many ticks a millisecond has, by the first four bytes.
_CLASSIC: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000),
}
_MAX_FRAME: Final = 1 << 20
_LAST_MS: Final = 0xFFFFFFFF * 1000  # a later time is a broken one


class Frame(NamedTuple):
    at_ms: int
    link: int
    data: bytes
    is_cut: bool  # the capture has not all of it


def is_capture(data: bytes) -> bool:
    return data[:4] == PCAPNG or data[:4] in _CLASSIC


def frames_in(data: bytes, where: str) -> Iterator[Frame]:
    if data[:4] == PCAPNG:
        return _pcapng(data, where)
    return _pcap(data, where)


def _broken(where: str, at: int) -> ConfigError:
    return ConfigError(f"is broken at byte {at}", where=where, mend="export it again")


def _pcap(data: bytes, where: str) -> Iterator[Frame]:
    """draft-ietf-opsawg-pcap"""
    order, per_ms = _CLASSIC[data[:4]]
    if len(data) < 24:
        raise _broken(where, len(data))
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            return  # a capture that was stopped in the middle
        seconds, part, size, whole = struct.unpack_from(order + "IIII", data, at)
        if size > _MAX_FRAME:
            raise _broken(where, at)
        at += 16
        at_ms = min(seconds * 1000 + part // per_ms, _LAST_MS)
        yield Frame(at_ms, link, data[at : at + size], size < whole)
        at += size


def _pcapng(data: bytes, where: str) -> Iterator[Frame]:
    """draft-ietf-opsawg-pcapng"""
    at, order = 0, "<"
    links: list[tuple[int, float]] = []  # link type, ticks in a millisecond
    while at + 12 <= len(data):
        if data[at : at + 4] == PCAPNG:
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < 12 or size % 4:
            raise _broken(where, at)
        block = data[at + 8 : at + size - 4]
        try:
            if kind == 1:
                link = struct.unpack_from(order + "H", block)[0]
                links.append((link, _resolution(block, order)))
            elif frame := _block(kind, block, order, links):
                yield frame
        except (struct.error, IndexError) as error:
            if at + size > len(data):
                return  # stopped in the middle
            raise _broken(where, at) from error
        at += size


def _block(kind: int, block: bytes, order: str, links: list[tuple[int, float]]) -> Frame | None:
    if kind == 6:
        interface, high, low, size, whole = struct.unpack_from(order + "IIIII", block)
        start = 20
    elif kind == 2:  # obsolete, but Wireshark reads it too
        interface, high, low, size, whole = struct.unpack_from(order + "H2xIIII", block)
        start = 20
    elif kind == 3:
        whole = struct.unpack_from(order + "I", block)[0]
        interface, high, low, start = 0, 0, 0, 4
        size = min(whole, len(block) - 4)
    else:
        return None
    link, ticks = links[interface]
    at_ms = min(int((high << 32 | low) / ticks), _LAST_MS)
    return Frame(at_ms, link, block[start : start + size], size < whole)


def _resolution(block: bytes, order: str) -> float:
    """if_tsresol: a power of ten, or of two with the highest bit set; microseconds without it."""
    at = 8
    while at + 4 <= len(block):
        code, size = struct.unpack_from(order + "HH", block, at)
        if code == 0:
            break
        if code == 9 and size == 1:
            value = block[at + 4]
            unit = 2.0 ** (value & 0x7F) if value & 0x80 else 10.0**value
            return unit / 1000
        at += 4 + size + (-size % 4)
    return 1000.0
