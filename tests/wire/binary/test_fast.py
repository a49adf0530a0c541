"""The short way says what the long way says, or nothing at all."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.message import Message
from bridge.wire.binary import fast
from bridge.wire.binary.base import BaseHeader
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.fast import read_message
from bridge.wire.binary.packet import UserMessage
from tests.vectors.binary import PACKETS
from tests.wire.binary import build
from tests.wire.binary.strategies import SOME, user_messages

PEER, ARRIVED = "192.0.2.7", 1_700_000_000_123
TRANSACTIONAL = build.MP | build.DIRECT_DQ | 0x00100020


def short(data: bytes, start: int = 0) -> tuple[Message, int] | None:
    return read_message(data, start, len(data), PEER, ARRIVED)


def long(data: bytes) -> tuple[Message, int] | None:
    try:
        packet = UserMessage.unpack(data)
    except WireError:
        return None
    return message_from_packet(packet, PEER, ARRIVED), BaseHeader.unpack(data).packet_size


def agree(data: bytes) -> None:
    found = short(data)
    assert found is None or found == long(data)


def transaction(bits: int = 0xC) -> bytes:
    return struct.pack("<IQII", bits, 7 << 32 | 1, 3, 2)


ORDINARY = {
    "express": build.packet(build.user(), build.properties(b"body")),
    "recoverable": build.packet(
        build.user(build.MP | build.DIRECT_DQ | 0x20), build.properties(b"body")
    ),
    "transactional": build.packet(
        build.user(TRANSACTIONAL), transaction(0x7FFFC), build.properties(b"body" * 9)
    ),
    "final ack wanted": build.packet(
        build.user(TRANSACTIONAL), transaction(0xE), build.properties()
    ),
    "everything that is not a header of its own": build.packet(
        build.user(build.MP | build.DIRECT_DQ | 0x31F, manager=build.S),
        build.properties(b"b" * 5, build.utf16("label\0"), b"ext", flags=0xFF, message_class=0x7F),
        flags=7,
        ttrq=5,
    ),
    "label without NUL": build.packet(build.user(), build.properties(b"", build.utf16("xy"))),
    "half of a surrogate pair": build.packet(
        build.user(names=build.direct("OS:a\ud800\\q")),
        build.properties(b"", build.utf16("x\udfffy")),
    ),
    "allocated more than used": build.packet(
        build.user(), build.properties(b"12345", unused=b"\xcd" * 11)
    ),
    "transactional, allocated more than used": build.packet(
        build.user(TRANSACTIONAL), transaction(), build.properties(b"12345", unused=b"\xcd" * 8)
    ),
    "allocation beyond the packet": build.packet(
        build.user(), build.properties(b"12345", allocation=2**32 - 1)
    ),
    "odd padding": build.packet(build.user(), build.properties(b"12345", filler=b"\xaa")),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_packets_take_the_short_way(name: str) -> None:  # MS-MQMQ 2.2.20
    data = ORDINARY[name]
    found = short(data)
    assert found is not None
    assert found == long(data)
    assert found[1] == len(data)


@pytest.mark.parametrize("name", ORDINARY)
def test_packets_are_found_wherever_they_lie(name: str) -> None:
    data = ORDINARY[name]
    found = short(b"\xff" * 7 + data + data, 7)
    assert found is not None
    assert found[0] == (long(data) or (None,))[0]
    assert found[1] == 7 + len(data)


@pytest.mark.parametrize("name", ORDINARY)
def test_a_packet_that_is_not_all_there_is_left_alone(name: str) -> None:
    data = ORDINARY[name]
    for size in range(len(data)):
        assert read_message(data, 0, size, PEER, ARRIVED) is None


@pytest.mark.parametrize(
    "data",
    [
        build.packet(
            build.user(), build.properties(), flags=0x13, after=bytes(16)
        ),  # SessionHeader
        build.packet(build.user(), build.properties(), flags=0x0B),  # internal
        build.packet(build.user(build.MP | 5 << 10, names=build.S), build.properties()),  # public
        build.packet(build.user(TRANSACTIONAL & ~0x20), transaction(), build.properties()),
        build.packet(build.user(TRANSACTIONAL), transaction(1) + build.S, build.properties()),
        build.packet(build.user(), build.properties(message_class=0x00FF)),  # may be an order ack
        build.packet(build.user(), build.properties(b"x" * 8, allocation=7)),
        build.packet(build.user(), build.properties(b"x" * 8, size=2**32 - 1)),
        build.packet(build.user(), build.properties(extension_size=2**32 - 4)),
        build.packet(build.user(), build.properties(label_length=0xFB)),
        build.packet(build.user(names=b"\x03\0abc\0\0\0"), build.properties()),  # odd name
        build.packet(build.user(names=b"\x02\0ab"), build.properties()),  # no NUL
        build.packet(build.user(names=b"\xff\xff"), build.properties()),
        build.packet(build.user()),  # no properties at all
    ],
)
def test_what_is_rare_or_wrong_takes_the_long_way(data: bytes) -> None:
    assert short(data) is None


@pytest.mark.parametrize("name", PACKETS)
def test_the_vectors(name: str) -> None:  # digest section 6
    agree(PACKETS[name].data)


@given(user_messages())
@SOME
def test_any_message(message: UserMessage) -> None:
    agree(message.pack())


@given(
    st.sampled_from(sorted(ORDINARY)),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.integers(0, 400),
)
@example("transactional", [(63, 0x12)], 0)
@SOME
def test_damaged_packets(name: str, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(ORDINARY[name])
    for position, value in changes:
        data[position % len(data)] = value
    agree(bytes(data[: len(data) - cut] if cut < len(data) else data))


def test_names_and_labels_are_remembered_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_CACHE", 3)
    for n in range(10):
        names = build.direct(f"OS:a\\q{n}")
        label = build.utf16(f"label {n}\0")
        data = build.packet(build.user(names=names), build.properties(b"", label))
        assert short(data) == long(data)
        assert len(fast._names) <= 3 or n == 0
        assert len(fast.labels) <= 3 or n == 0
    long_name = build.direct("OS:a\\" + "q" * 2000)
    data = build.packet(build.user(names=long_name), build.properties())
    assert short(data) == long(data)
    assert not any(len(raw) > 1024 for raw in fast._names)
