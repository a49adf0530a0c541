"""Extension headers by hand. MS-MQRR 2.2.5.2 to 2.2.5.5"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.binary.extension import Extension, Subqueue, is_extension, overlaid, overlay


def name(text: str) -> bytes:
    return text.encode("utf-16-le").ljust(64, b"\0")


SUBQUEUE = struct.pack("<IIIII", 148, 0xC004 << 1, 2, 3, 4) + name("poison") + name("target")
ADDRESS = struct.pack("<IHHI16s", 28, 4, 1, 0, bytes((10, 1, 2, 3)))


def test_the_usual_chain() -> None:
    """Flags: SQ and EA always."""
    chain = Extension(
        subqueue=Subqueue(
            name="poison", target="target", message_class=0xC004, aborts=2, moves=3, moved_at=4
        ),
        peer="10.1.2.3",
    )
    raw = struct.pack("<IIB3x", 12, 148 + 28, 0x12) + SUBQUEUE + ADDRESS
    assert chain.pack() == raw
    assert Extension.unpack(raw) == chain
    assert Extension.unpack(b"before" + raw, 6) == chain


@pytest.mark.parametrize(("is_valid", "flags"), [(True, 0x13), (False, 0x1B)])
def test_a_dead_letter_queue(is_valid: bool, flags: int) -> None:
    chain = Extension(deadletter="a\\dl", deadletter_is_valid=is_valid)
    dead = struct.pack("<I", 16) + "a\\dl\0".encode("utf-16-le") + bytes(2)
    raw = chain.pack()
    assert raw[:12] == struct.pack("<IIB3x", 12, 148 + 16 + 28, flags)
    assert raw[12 + 148 : 12 + 148 + 16] == dead
    assert Extension.unpack(raw) == chain


@pytest.mark.parametrize(
    ("peer", "length", "kind", "scope", "address"),
    [
        ("10.1.2.3", 4, 1, 0, bytes((10, 1, 2, 3)).ljust(16, b"\0")),
        ("::ffff:10.1.2.3", 4, 1, 0, bytes((10, 1, 2, 3)).ljust(16, b"\0")),
        ("fd00::7", 16, 6, 0, b"\xfd" + bytes(14) + b"\x07"),
        ("fe80::1%7", 16, 6, 7, b"\xfe\x80" + bytes(13) + b"\x01"),
        ("", 0, 0, 0, bytes(16)),
        ("no address", 0, 0, 0, bytes(16)),
    ],
)
def test_addresses(peer: str, length: int, kind: int, scope: int, address: bytes) -> None:
    """Type 0 is to be ignored; the overlay has room for half of an IPv6 address."""
    raw = Extension(peer=peer).pack()
    assert raw[-28:] == struct.pack("<IHHI16s", 28, length, kind, scope, address)
    assert overlay(peer) == struct.pack("<HHI8s", length, kind, scope, address[:8])
    back = Extension.unpack(raw).peer
    assert back == {"::ffff:10.1.2.3": "10.1.2.3", "no address": ""}.get(peer, peer)
    assert overlaid(overlay(peer)) == (back if kind == 1 else "")


def test_longer_headers_of_a_later_version() -> None:
    raw = struct.pack("<IIB3x4x", 16, 152 + 28, 0x12)
    raw += struct.pack("<I", 152) + SUBQUEUE[4:] + bytes(4) + ADDRESS
    assert Extension.unpack(raw).subqueue.name == "poison"
    assert is_extension(raw, 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        bytes(12),  # a header of no bytes
        struct.pack("<IIB3x", 12, 2**32 - 1, 0x12) + SUBQUEUE + ADDRESS,
        struct.pack("<IIB3x", 12, 148 + 28, 0x13) + SUBQUEUE + ADDRESS,  # no dead-letter header
        struct.pack("<IIB3x", 12, 148, 0x12) + SUBQUEUE,  # no address
        struct.pack("<IIB3xI", 12, 4, 0x12, 148),
        struct.pack("<IIB3xI", 2**32 - 1, 4, 0x12, 148),
    ],
)
def test_broken_chains(raw: bytes) -> None:
    with pytest.raises(WireError):
        Extension.unpack(raw)


def test_a_name_that_is_too_long_is_cut_before_its_nul() -> None:
    found = Extension.unpack(Extension(subqueue=Subqueue(name="n" * 40)).pack())
    assert found.subqueue.name == "n" * 31


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    try:
        chain = Extension.unpack(data)
    except WireError:
        return
    assert is_extension(data, 0)
    again = Extension.unpack(chain.pack())
    assert again.subqueue == chain.subqueue
