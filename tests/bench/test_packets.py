"""Packets of the load generator, byte for byte as the digest has them."""

import struct
import uuid

import pytest

from tests.bench.packets import KINDS, Block, make_block

SOURCE = uuid.UUID("11111111-2222-3333-4444-555555555555")
NOW = 1_700_000_000
NAME = "TCP:127.0.0.1\\private$\\orders"
NAME_SIZE = (2 + 2 * len(NAME) + 2 + 3) & ~3  # Count, text, NUL, padding


def block(kind: str, count: int = 3, size: int = 10) -> Block:
    return make_block("private$\\orders", kind, count, size, SOURCE.bytes_le, NOW)


@pytest.mark.parametrize("kind", KINDS)
def test_packets_lie_one_after_the_other(kind: str) -> None:
    made = block(kind)
    assert len(made.data) == 3 * made.size
    for number in range(3):
        packet = made.packet(number)
        assert struct.unpack_from("<I", packet, 8) == (made.size,)  # PacketSize
        assert made.size % 4 == 0
        assert struct.unpack_from("<I", packet, 16 + 40) == (number + 1,)  # MessageID


@pytest.mark.parametrize(("kind", "priority"), [("express", 3), ("transactional", 0)])
def test_base_header(kind: str, priority: int) -> None:  # binary.md 2.1
    version, _, flags, magic, _, reach = struct.unpack_from("<BBHIII", block(kind).packet(0))
    assert (version, flags, magic, reach) == (0x10, priority, 0x524F494C, 0x54600)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [("express", 0x00201C00), ("recoverable", 0x00201C20), ("transactional", 0x00301C20)],
)
def test_user_header(kind: str, flags: int) -> None:  # binary.md 2.9
    packet = block(kind).packet(1)
    found = struct.unpack_from("<16s16sIIII", packet, 16)
    assert found == (SOURCE.bytes_le, bytes(16), 0xFFFFFFFF, NOW, 2, flags)
    (count,) = struct.unpack_from("<H", packet, 64)
    assert packet[66 : 66 + count].decode("utf-16-le") == NAME + "\0"
    assert 2 + count + 2 == NAME_SIZE


def test_transaction_header() -> None:  # binary.md 2.10
    packet = block("transactional").packet(2)
    bits, ordinal, stamp, number, previous = struct.unpack_from("<IIIII", packet, 64 + NAME_SIZE)
    assert bits == 3 << 4 | 0xC  # the third transaction, of one message
    assert (ordinal, stamp, number, previous) == (1, NOW, 3, 2)


@pytest.mark.parametrize(("kind", "extra"), [("recoverable", 0), ("transactional", 20)])
def test_properties_header(kind: str, extra: int) -> None:  # binary.md 2.12
    made = block(kind, size=10)
    packet, start = made.packet(0), 64 + NAME_SIZE + extra
    acks, label, class_, correlation, body_type = struct.unpack_from("<BBH20sI", packet, start)
    assert (acks, label, class_, correlation, body_type) == (0, 5, 0, bytes(20), 0x1011)
    size, allocated = struct.unpack_from("<II", packet, start + 32)
    assert (size, allocated) == (10, 10)
    assert packet[start + 56 : start + 66].decode("utf-16-le") == "load\0"
    assert len(packet) - (start + 66) in range(10, 14)  # the body and its padding
