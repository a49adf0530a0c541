"""Packets that look alike are read like all others; only quicker."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.message import NO_KIND, Message
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import PacketReader, UserMessage
from tests.wire.binary import build
from tests.wire.binary.strategies import SOME

PEER, ARRIVED = "192.0.2.7", 1_700_000_000_123
IN_ORDER = build.MP | build.DIRECT_DQ | 0x00100020
PLAIN = build.MP | build.DIRECT_DQ


def user(number: int, flags: int, name: str = "OS:a\\q", sent: int = 0x60000010) -> bytes:
    """MS-MQMQ 2.2.19.2"""
    head = struct.pack("<16s16sIIII", build.C, build.ZERO, 0xFFFFFFFF, sent, number, flags)
    return head + build.direct(name)


def in_order(number: int, body: bytes = b"body", label: str = "", bits: int = 0xC) -> bytes:
    transaction = struct.pack("<IQII", bits | number << 4, 7 << 32 | 1, number, number - 1)
    properties = build.properties(body, build.utf16(label))
    return build.packet(user(number, IN_ORDER), transaction, properties, flags=0)


def plain(number: int, name: str = "OS:a\\q", extension: bytes = b"") -> bytes:
    return build.packet(user(number, PLAIN, name), build.properties(extension=extension))


def quick(data: bytes, *cuts: int) -> list[Message]:
    """All that an open session gets out of the bytes, up to a fault."""
    reader, found = PacketReader(), list[Message]()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    with suppress(WireError):
        for start, end in pairwise(edges):
            for item in reader.feed_open(data[start:end], PEER, ARRIVED):
                if isinstance(item, list):
                    found += item
                elif isinstance(item, UserMessage):
                    found.append(message_from_packet(item, PEER, ARRIVED))
    return found


def slow(data: bytes) -> list[Message]:
    found = []
    with suppress(WireError):
        for packet in PacketReader().feed(data):
            if isinstance(packet, UserMessage):
                found.append(message_from_packet(packet, PEER, ARRIVED))
    return found


def test_from_the_third_on_they_are_of_one_kind() -> None:
    data = b"".join(in_order(n, b"x" * n, label="label"[: n % 5]) for n in range(1, 40))
    found = quick(data)
    assert found == slow(data)
    assert [m.transaction.number for m in found if m.transaction] == list(range(1, 40))
    kinds = [message.kind for message in found]
    assert kinds[0] is kinds[1] is NO_KIND
    assert kinds[2] is not NO_KIND
    assert all(kind is kinds[2] for kind in kinds[2:])


def test_the_kind_outlives_a_read_but_not_a_difference() -> None:
    reader = PacketReader()

    def read(data: bytes) -> list[Message]:
        return [
            m for item in reader.feed_open(data, PEER, ARRIVED) if type(item) is list for m in item
        ]

    read(plain(1) + plain(2))
    (third,) = read(plain(3))
    (fourth,) = read(plain(4))
    assert third.kind is fourth.kind is not NO_KIND
    (other,) = read(plain(5, name="OS:a\\r"))
    assert other.kind is NO_KIND
    back = read(plain(6) + plain(7) + plain(8))
    assert [m.kind is NO_KIND for m in back] == [True, True, False]
    assert back[2].kind is not third.kind


def test_two_queues_in_turn_have_no_kind() -> None:
    data = b"".join(plain(n, name=f"OS:a\\q{n % 2}") for n in range(20))
    assert all(message.kind is NO_KIND for message in quick(data))


def test_a_mark_is_no_property() -> None:
    one, two, three = quick(plain(1) + plain(1) + plain(1))
    assert one == two == three
    assert one.kind is not three.kind


ALIKE: dict[str, Callable[[int], bytes]] = {
    "in order": in_order,
    "plain": plain,
    "recoverable": lambda n: build.packet(user(n, PLAIN | 0x20), build.properties(b"body")),
}
VARIED: dict[str, Callable[[int], bytes]] = {
    "label": lambda n: in_order(n, label="a label"),
    "half of a surrogate pair": lambda n: in_order(n, label="a \ud800 label"),
    "half of a pair in the name": lambda n: plain(n, name="OS:a\udc00\\q"),
    "body": lambda n: in_order(n, b"\xff" * 33),
    "extension": lambda n: plain(n, extension=b"ext"),
    "final ack wanted": lambda n: in_order(n, bits=0xE),
    "connector": lambda n: build.packet(
        user(n, IN_ORDER),
        struct.pack("<IQII", 0xD, 7 << 32 | 1, n, n - 1) + build.S,
        build.properties(),
        flags=0,
    ),
    "SessionHeader": lambda n: build.packet(
        user(n, PLAIN), build.properties(), flags=0x13, after=bytes(16)
    ),
    "class": lambda n: build.packet(user(n, PLAIN), build.properties(message_class=0x7F)),
    "order ack": lambda n: build.packet(user(n, PLAIN), build.properties(message_class=0xFF)),
    "acks": lambda n: build.packet(user(n, PLAIN), build.properties(flags=0xF)),
    "another name": lambda n: plain(n, name="OS:a\\other"),
    "less time": lambda n: build.packet(user(n, PLAIN), build.properties(), ttrq=5),
    "more room": lambda n: build.packet(
        user(n, PLAIN), build.properties(b"12345", unused=b"\xcd" * (n % 9))
    ),
    "room beyond the packet": lambda n: build.packet(
        user(n, PLAIN), build.properties(b"12345", allocation=2**32 - 1)
    ),
    "more room, then a SessionHeader": lambda n: build.packet(
        user(n, PLAIN), build.properties(b"1", unused=b"\xcd" * 15), flags=0x13, after=bytes(16)
    ),
    "no room": lambda n: build.packet(user(n, PLAIN), build.properties(b"12345678", allocation=7)),
    "size that is not there": lambda n: build.packet(
        user(n, PLAIN), build.properties(b"12345678", size=2**32 - 1)
    ),
    "label that is too long": lambda n: build.packet(
        user(n, PLAIN), build.properties(b"", bytes(0xFB * 2))
    ),
}
kinds = st.sampled_from(sorted(ALIKE | VARIED))


@given(
    st.sampled_from(sorted(ALIKE)),
    st.lists(kinds, max_size=8),
    st.lists(st.integers(0, 1 << 16), max_size=4),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=2),
)
@example("in order", sorted(VARIED), [], [])
@example("plain", sorted(VARIED), [], [])
@SOME
def test_any_mixture_reads_like_the_long_way(
    alike: str, others: list[str], cuts: list[int], damage: list[tuple[int, int]]
) -> None:
    """Three that look alike, then something, and again."""
    all_kinds = ALIKE | VARIED
    number, packets = 0, []
    for other in [*others, alike]:
        for kind in (alike, alike, alike, other):
            number += 1
            packets.append(all_kinds[kind](number))
    data = bytearray(b"".join(packets))
    for position, value in damage:
        data[position % len(data)] = value
    assert quick(bytes(data), *cuts) == slow(bytes(data))
