"""Towers by hand, and those of stock impacket. C706 appendix L"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impacket.dcerpc.v5.epm import EPMTower

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.tower import NDR, Tower

G = Guid(bytes(range(16)))
# RR-2: interface, NDR, RPC-CO, TCP port big-endian, IP
RAW = (
    struct.pack("<H", 5)
    + struct.pack("<HB16sHHH", 19, 0x0D, G, 1, 2, 0)
    + struct.pack("<HB16sHHH", 19, 0x0D, NDR, 2, 2, 0)
    + struct.pack("<HBHH", 1, 0x0B, 2, 0)
    + struct.pack("<HBH", 1, 0x07, 2)
    + struct.pack(">H", 2103)
    + struct.pack("<HBH4s", 1, 0x09, 4, bytes((10, 1, 2, 3)))
)


def test_by_hand() -> None:
    tower = Tower(G, (1, 0), 2103, "10.1.2.3")
    assert tower.pack() == RAW
    assert Tower.unpack(RAW) == tower


def test_impacket_reads_it() -> None:
    floors = EPMTower(RAW)["Floors"]
    assert len(floors) == 5
    assert floors[0]["InterfaceUUID"] == bytes(G)


def test_an_ipv6_address_has_no_room() -> None:
    found = Tower.unpack(Tower(G, (1, 0), 2103, "fd00::7").pack())
    assert found is not None
    assert found.address == "0.0.0.0"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (bytes(NDR), Guid.parse("71710533-beba-4937-8319-b5dbef9ccc36")),  # NDR64
        (b"\x01\x00\x0b", b"\x01\x00\x0a"),  # connectionless
        (b"\x01\x00\x07", b"\x01\x00\x0f"),  # a pipe
        (b"\x01\x00\x09", b"\x01\x00\x11"),
        (b"\x05\x00", b"\x04\x00"),
    ],
)
def test_towers_of_other_kinds(old: bytes, new: bytes) -> None:
    assert Tower.unpack(RAW.replace(old, new, 1)) is None


def test_cut_short() -> None:
    for size in range(len(RAW)):
        with pytest.raises(BadStub):
            Tower.unpack(RAW[:size])


def test_a_tower_that_is_too_high() -> None:
    with pytest.raises(BadStub):
        Tower.unpack(struct.pack("<H", 0xFFFF) + bytes(200))


@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    try:
        tower = Tower.unpack(data)
    except BadStub:
        return
    assert tower is None or Tower.unpack(tower.pack()) == tower
