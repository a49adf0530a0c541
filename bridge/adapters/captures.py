"""MSMQ messages in a network capture.

Frames become the two directions of each TCP connection, put together by sequence number: what
comes again is dropped, what comes early waits. A direction that begins in the middle, or lost a
piece, goes on at the next packet's signature; one that never shows a signature is not MSMQ.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

from bridge.adapters.capture_frames import Frame, frames_in
from bridge.model.errors import ConfigError, WireError
from bridge.model.message import Message
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import PacketReader, UserMessage

_SIGNATURE: Final = b"LIOR"  # at byte 4 of every packet. MS-MQMQ 2.2.19.1
_MAX_EARLY: Final = 256  # segments that wait for one before them
_MAX_FLOWS: Final = 10_000

# Link type -> (bytes before the payload, where its EtherType is, or None: look at the IP version).
_LINKS: Final[dict[int, tuple[int, int | None]]] = {
    0: (4, None),  # BSD loopback
    1: (14, 12),  # Ethernet
    12: (0, None),  # raw IP, three numbers for it
    14: (0, None),
    101: (0, None),
    108: (4, None),  # OpenBSD loopback
    113: (16, 14),  # Linux cooked, `tcpdump -i any`
    228: (0, None),
    229: (0, None),
    276: (20, 0),  # Linux cooked, version 2
}
_IP4, _IP6 = 0x0800, 0x86DD
_VLANS: Final = (0x8100, 0x88A8)
_IP6_EXTENSIONS: Final = (0, 43, 60)  # hop-by-hop, routing, destination options
_TCP: Final = 6
_SYN: Final = 0x02
_RST: Final = 0x04


class Segment(NamedTuple):
    flow: tuple[bytes, int, bytes, int]  # from address and port, to address and port
    number: int
    flags: int
    payload: bytes


def messages_in(data: bytes, where: str) -> Iterator[Message]:
    """Every user message, in the order in which they were complete; acks of queue managers to
    each other are left out. Raises ConfigError for a file that is broken or holds none."""
    flows: dict[tuple[bytes, int, bytes, int], _Flow] = {}
    count = cut = found = 0
    for frame in frames_in(data, where):
        count += 1
        cut += frame.is_cut
        segment = _segment(frame)
        if segment is None:
            continue
        flow = flows.get(segment.flow)
        if flow is None:
            if len(flows) >= _MAX_FLOWS:
                raise ConfigError(
                    f"has more than {_MAX_FLOWS} connections",
                    where=where,
                    mend="export only those on port 1801 (display filter: tcp.port == 1801)",
                )
            flow = flows[segment.flow] = _Flow(str(ip_address(segment.flow[0])))
        for message in flow.take(segment, frame.at_ms):
            found += 1
            yield message
    for flow in flows.values():
        for message in flow.end():
            found += 1
            yield message
    if not found:
        what = f"has no MSMQ message in its {count} frames"
        mend = "capture TCP port 1801 from the start of the session"
        if cut:
            what, mend = f"{what}, {cut} of them cut short", "capture whole frames (-s 0)"
        raise ConfigError(what, where=where, mend=mend)


class _Flow:
    """One direction of one connection."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._next: int | None = None
        self._early: dict[int, bytes] = {}
        self._reader: PacketReader | None = None  # None: looking for a signature
        self._rest = b""
        self._at_ms = 0

    def take(self, segment: Segment, at_ms: int) -> Iterator[Message]:
        self._at_ms = at_ms
        number = segment.number
        if segment.flags & _SYN:
            number = (number + 1) & 0xFFFFFFFF
            if number != self._next:  # not the same SYN again: a new connection
                self._next, self._early, self._reader, self._rest = number, {}, None, b""
        if not segment.payload:
            return
        if self._next is None:
            self._next = number
        self._early.setdefault(number, segment.payload)
        yield from self._in_order()
        if len(self._early) > _MAX_EARLY:
            yield from self.end()

    def end(self) -> Iterator[Message]:
        """Nothing fills the gaps any more: go on behind them."""
        reached = self._next or 0
        for number in sorted(self._early, key=lambda number: _ahead(number, reached)):
            if number in self._early:
                self._next, self._reader, self._rest = number, None, b""
                yield from self._in_order()

    def _in_order(self) -> Iterator[Message]:
        while self._early and self._next is not None:
            data = self._early.pop(self._next, None)
            if data is None:
                data = self._overlap()
                if data is None:
                    return
            self._next = (self._next + len(data)) & 0xFFFFFFFF
            yield from self._cut(data)

    def _overlap(self) -> bytes | None:
        """What is new in segments that begin before the place we are at; old ones are dropped."""
        assert self._next is not None
        for number in [n for n in self._early if _ahead(n, self._next) < 0]:
            data = self._early.pop(number)[-_ahead(number, self._next) :]
            if data:
                return data
        return None

    def _cut(self, data: bytes) -> Iterator[Message]:
        if self._reader is None:
            data = self._rest + data
            at = data.find(_SIGNATURE, 4) - 4
            if at < 0:
                self._rest = data[-7:]
                return
            self._reader, self._rest, data = PacketReader(), b"", data[at:]
        try:
            for packet in self._reader.feed(data):
                if isinstance(packet, UserMessage) and not (
                    packet.is_order_ack or packet.is_final_ack
                ):
                    yield message_from_packet(packet, self._peer, self._at_ms)
        except WireError:  # chance bytes that looked like a signature, or a broken sender
            self._reader = None


def _ahead(number: int, other: int) -> int:
    """Sequence numbers go round."""
    return ((number - other + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def _segment(frame: Frame) -> Segment | None:
    """None for whatever is not a piece of TCP."""
    try:
        header, kind = _LINKS[frame.link]
    except KeyError:
        return None
    data = frame.data
    try:
        ether = None if kind is None else struct.unpack_from(">H", data, kind)[0]
        while ether in _VLANS:
            ether = struct.unpack_from(">H", data, header + 2)[0]
            header += 4
        if ether not in (None, _IP4, _IP6):
            return None
        return _ip(data, header)
    except (struct.error, IndexError):
        return None


def _ip(data: bytes, at: int) -> Segment | None:
    version = data[at] >> 4
    if version == 4:
        size, fragment = struct.unpack_from(">2xH2xH", data, at)
        if data[at + 9] != _TCP or fragment & 0x3FFF:
            return None
        # Zero when the network card cut it into frames (segmentation offload).
        end = at + size if size else len(data)
        return _tcp(data[:end], at + 4 * (data[at] & 15), data[at + 12 : at + 20])
    if version != 6:
        return None
    size, following = struct.unpack_from(">4xHB", data, at)
    end = at + 40 + size if size else len(data)
    addresses, at = data[at + 8 : at + 40], at + 40
    while following in _IP6_EXTENSIONS:
        following, length = data[at], data[at + 1]
        at += 8 * (length + 1)
    return _tcp(data[:end], at, addresses) if following == _TCP else None


def _tcp(data: bytes, at: int, addresses: bytes) -> Segment | None:
    source, target, number, offset, flags = struct.unpack_from(">HHI4xBB", data, at)
    if flags & _RST:
        return None
    half = len(addresses) // 2
    flow = addresses[:half], source, addresses[half:], target
    return Segment(flow, number, flags, data[at + 4 * (offset >> 4) :])
