"""Any bytes give packets or WireError, and how they are cut into chunks does not matter."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.binary.acks import FinalAckBody, OrderAckBody
from bridge.wire.binary.debug import DebugHeader
from bridge.wire.binary.internal import ConnectionParameters, EstablishConnection, SessionAck
from bridge.wire.binary.multiqueue import MultiQueueHeader
from bridge.wire.binary.packet import Packet, PacketReader, UserMessage, restore
from bridge.wire.binary.ping import Ping
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.security import SecurityHeader, sid_text
from bridge.wire.binary.soap import SoapHeader
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import UserHeader
from tests.vectors.binary import PACKETS
from tests.wire.binary import strategies

MANY = settings(deadline=None, max_examples=300)
SOME = settings(deadline=None, max_examples=100)  # whole messages are slow to invent
SEEDS = [vector.data for name, vector in PACKETS.items() if not name.startswith("F7")]
NEAR_LIMITS = [0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, *range(0xFFFFFFFA, 0x100000000)]


def outcome(chunks: Iterator[bytes] | list[bytes]) -> tuple[list[Packet], str | None]:
    """What a reader made of it; anything but packets and WireError fails the test."""
    reader = PacketReader()
    found: list[Packet] = []
    for chunk in chunks:
        try:
            for packet in reader.feed(chunk):
                found.append(packet)
                packet.pack()
        except WireError as error:
            return found, str(error)
        assert len(reader._pending) <= 0x400010
    return found, None


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def damaged(data: bytes, dice: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    return bytes(raw)


@MANY
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_random_bytes(data: bytes, places: list[int]) -> None:
    assert outcome(cut(data, places)) == outcome([data])


@MANY
@given(st.binary(max_size=300), st.integers(0, 0x40), st.lists(st.integers(0, 400), max_size=6))
def test_random_bytes_behind_a_good_base_header(data: bytes, flags: int, places: list[int]) -> None:
    stream = struct.pack("<BBH4sII", 0x10, 0, flags, b"LIOR", 16 + len(data), 7) + data
    assert outcome(cut(stream, places)) == outcome([stream])


@SOME
@given(
    st.lists(strategies.packets, min_size=1, max_size=4),
    st.lists(st.integers(0, 1 << 16), max_size=8),
)
def test_any_cut_of_good_packets(packets: list[Packet], places: list[int]) -> None:
    stream = b"".join(packet.pack() for packet in packets)
    assert outcome(cut(stream, places)) == (packets, None)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(50):
        stream = damaged(b"".join(dice.sample(SEEDS, 3)), dice)
        expected = outcome([stream])
        places = [dice.randrange(len(stream)) for _ in range(5)]
        assert outcome(cut(stream, places)) == expected


@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits_byte_by_byte(seed: int) -> None:
    dice = random.Random(1000 + seed)
    stream = damaged(b"".join(dice.sample(SEEDS, 2)), dice)
    pieces = (stream[i : i + 1] for i in range(len(stream)))
    assert outcome(pieces) == outcome([stream])


@pytest.mark.parametrize("name", [name for name in PACKETS if not name.startswith("F7")])
def test_truncated_packets_that_claim_to_be_whole(name: str) -> None:
    data = PACKETS[name].data
    for size in range(16, len(data)):
        raw = data[:8] + struct.pack("<I", size) + data[12:size]
        outcome([raw, bytes(64)])


@pytest.mark.parametrize("name", ["V1", "V2", "V3", "V5", "F3", "F5", "F8"])
@pytest.mark.parametrize("value", NEAR_LIMITS)
def test_lengths_near_the_limits(name: str, value: int) -> None:
    """Whatever a field is, it may hold a huge number."""
    data = PACKETS[name].data
    for offset in range(0, min(len(data), 260) - 3, 2):
        raw = data[:offset] + struct.pack("<I", value) + data[offset + 4 :]
        outcome([raw])


@SOME
@given(strategies.user_messages(), st.randoms(use_true_random=False))
def test_damaged_messages_with_all_headers(message: UserMessage, dice: random.Random) -> None:
    raw = damaged(message.pack(), dice)
    assert outcome(cut(raw, [dice.randrange(len(raw))])) == outcome([raw])


@MANY
@given(st.binary(max_size=200), st.integers(0, 16))
def test_single_headers(data: bytes, offset: int) -> None:
    for header in (
        UserHeader,
        TransactionHeader,
        SecurityHeader,
        PropertiesHeader,
        DebugHeader,
        SoapHeader,
        MultiQueueHeader,
    ):
        try:
            after = header.unpack_from(data, offset, len(data))[-1]
        except WireError:
            continue
        assert offset <= after <= len(data)


@MANY
@given(st.binary(max_size=700), st.binary(max_size=20))
def test_whole_values(data: bytes, body: bytes) -> None:
    for unpack in (
        EstablishConnection.unpack,
        ConnectionParameters.unpack,
        SessionAck.unpack,
        UserMessage.unpack,
        Ping.unpack,
        OrderAckBody.unpack,
        FinalAckBody.unpack,
        sid_text,
        lambda raw: restore(raw, body),
    ):
        try:
            unpack(data)
        except WireError:
            continue


@MANY
@given(strategies.multis, strategies.soaps, st.randoms(use_true_random=False))
def test_damaged_lists_and_texts(
    multi: MultiQueueHeader, soap: SoapHeader, dice: random.Random
) -> None:
    for header in (multi, soap):
        raw = damaged(header.pack(), dice)
        try:
            type(header).unpack_from(raw, 0, len(raw))
        except WireError:
            continue


def test_damaged_wire_is_restored_or_refused() -> None:
    dice = random.Random(7)
    message = UserMessage.unpack(PACKETS["V1"].data)
    for _ in range(2000):
        wire = damaged(message.wire_without_body, dice)
        try:
            UserMessage.restored(wire, message.properties.body)
        except WireError:
            continue
