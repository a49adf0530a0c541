"""Network captures made by hand: frames of a TCP connection, and the files that hold them."""

import struct
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from itertools import pairwise

SENDER, BRIDGE = "10.1.0.7", "10.1.0.1"
SYN, ACK, FIN, RST = 0x02, 0x10, 0x01, 0x04


def segment(
    payload: bytes = b"",
    number: int = 1,
    flags: int = ACK,
    *,
    source: str = SENDER,
    target: str = BRIDGE,
    ports: tuple[int, int] = (50_000, 1801),
    extensions: bytes = b"",
    size: int | None = None,
) -> bytes:
    """An IP packet with a piece of TCP; `size` in place of the true length."""
    tcp = struct.pack(">HHIIBBHHH", *ports, number % 2**32, 0, 5 << 4, flags, 512, 0, 0) + payload
    one, two = ip_address(source).packed, ip_address(target).packed
    if len(one) == 4:
        length = 20 + len(tcp) if size is None else size
        return struct.pack(">BBHHHBBH", 0x45, 0, length, 1, 0, 64, 6, 0) + one + two + tcp
    following = 0 if extensions else 6
    length = len(extensions) + len(tcp) if size is None else size
    return struct.pack(">IHBB", 6 << 28, length, following, 64) + one + two + extensions + tcp


def ethernet(packet: bytes, tags: int = 0) -> bytes:
    kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
    return bytes(12) + b"\x81\x00\x00\x2a" * tags + kind + packet


# Link type -> its frame around an IP packet.
LINKS: dict[int, Callable[[bytes], bytes]] = {
    0: lambda packet: b"\x02\0\0\0" + packet,
    1: ethernet,
    12: lambda packet: packet,
    101: lambda packet: packet,
    108: lambda packet: b"\0\0\0\x02" + packet,
    113: lambda packet: bytes(14) + ethernet(packet)[12:14] + packet,
    228: lambda packet: packet,
    276: lambda packet: ethernet(packet)[12:14] + bytes(18) + packet,
}


def pcap(
    packets: Iterable[bytes],
    link: int = 1,
    *,
    order: str = "<",
    nanoseconds: bool = False,
    at_ms: int = 1_769_860_800_000,
    snap: int = 65535,
) -> bytes:
    """A classic file; the n-th frame is n milliseconds after `at_ms`."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    made = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    per_ms = 1_000_000 if nanoseconds else 1000
    for index, packet in enumerate(packets):
        frame = LINKS[link](packet)
        seconds, rest = divmod(at_ms + index, 1000)
        kept = frame[:snap]
        made += struct.pack(order + "IIII", seconds, rest * per_ms, len(kept), len(frame)) + kept
    return made


def pcapng(
    packets: Iterable[bytes],
    link: int = 1,
    *,
    order: str = "<",
    kind: int = 6,
    resolution: int | None = None,
    at_ms: int = 1_769_860_800_000,
) -> bytes:
    """`kind`: 6 enhanced, 3 simple, 2 the obsolete one; `resolution` is if_tsresol."""
    made = _block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = b""
    if resolution is not None:
        options = struct.pack(order + "HH", 2, 3) + b"eth\0"
        options += struct.pack(order + "HHB3x", 9, 1, resolution) + bytes(4)
    made += _block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options)
    made += _block(order, 5, bytes(12))  # statistics: nothing for us
    per_ms = _ticks(resolution)
    for index, packet in enumerate(packets):
        frame = LINKS[link](packet)
        ticks = int((at_ms + index) * per_ms)
        high, low, size = ticks >> 32, ticks & 0xFFFFFFFF, len(frame)
        head = {
            6: struct.pack(order + "IIIII", 0, high, low, size, size),
            3: struct.pack(order + "I", size),
            2: struct.pack(order + "HHIIII", 0, 0, high, low, size, size),
        }[kind]
        made += _block(order, kind, head + frame)
    return made


def _ticks(resolution: int | None) -> float:
    if resolution is None:
        return 1000
    return (2.0 ** (resolution & 0x7F) if resolution & 0x80 else 10.0**resolution) / 1000


def _block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def conversation(data: bytes, cuts: Sequence[int], first: int = 1000) -> list[bytes]:
    """A connection that opens, carries `data` cut there, and closes."""
    places = [0, *cuts, len(data)]
    parts = [data[a:b] for a, b in pairwise(places)]
    packets = [segment(number=first, flags=SYN)]
    packets.append(segment(source=BRIDGE, target=SENDER, ports=(1801, 50_000), flags=SYN | ACK))
    number = first + 1
    for part in parts:
        packets.append(segment(part, number))
        number += len(part)
    packets.append(segment(number=number, flags=FIN | ACK))
    return packets
