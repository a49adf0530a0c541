"""ept_map and ept_lookup, both ways, against stock impacket. C706 appendix O"""

import struct

import pytest
from impacket.dcerpc.v5 import epm

from bridge.model.guid import Guid
from bridge.wire.rpc import endpoint_mapper as wire
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.tower import Tower

G = Guid(bytes(range(16)))
H = bytes(4) + bytes(range(16, 32))
TOWER = Tower(G, (1, 0), 2103, "10.1.2.3").pack()


def test_a_map_request_by_hand() -> None:
    """A twr_t has the count of its array before everything else. C706 14.3.7.1"""
    raw = struct.pack("<IIII", 0, 1, len(TOWER), len(TOWER)) + TOWER
    raw += bytes(-len(raw) % 4) + H + struct.pack("<I", 4)
    request = wire.Map(tower=TOWER, handle=H)
    assert wire.Map.unpack(raw) == request
    assert wire.Map.unpack(request.pack()) == request
    assert len(request.pack()) == len(raw)


def test_a_map_request_of_impacket() -> None:
    call = epm.ept_map()
    call["max_towers"] = 4
    call["map_tower"]["tower_length"] = len(TOWER)
    call["map_tower"]["tower_octet_string"] = TOWER
    found = wire.Map.unpack(call.getData())
    assert (found.tower, found.most) == (TOWER, 4)


def test_what_map_answers() -> None:
    response = wire.Mapped(H, wire.Listed((TOWER, TOWER), 4), 0)
    assert wire.Mapped.unpack(response.pack()) == response
    answer = epm.ept_mapResponse(response.pack())
    assert int(answer["num_towers"]) == 2
    for tower in answer["ITowers"]:
        assert b"".join(tower["Data"]["tower_octet_string"]) == TOWER
    empty = wire.Mapped(bytes(20), wire.Listed((), 4), wire.NOT_REGISTERED)
    assert empty.pack() == bytes(20) + struct.pack("<IIIII", 0, 4, 0, 0, 0x16C9A0D6)


def test_a_lookup() -> None:
    call = epm.ept_lookup()
    call["inquiry_type"], call["vers_option"], call["max_ents"] = 0, 1, 500
    call["object"] = epm.NULL
    call["Ifid"] = epm.NULL
    assert wire.Lookup.unpack(call.getData()) == wire.Lookup()
    full = wire.Lookup(inquiry=1, object=G, interface=wire.InterfaceId(G, 1, 2), handle=H, most=2)
    assert wire.Lookup.unpack(full.pack()) == full


def test_what_lookup_answers() -> None:
    entries = (wire.Entry(TOWER, "Message Queuing"), wire.Entry(TOWER))
    response = wire.LookedUp(bytes(20), wire.ListedEntries(entries, 500), 0)
    assert wire.LookedUp.unpack(response.pack()) == response
    answer = epm.ept_lookupResponse(response.pack())
    assert int(answer["num_ents"]) == 2
    first = answer["entries"][0]
    assert b"".join(first["annotation"]) == b"Message Queuing\0"
    assert b"".join(first["tower"]["tower_octet_string"]) == TOWER


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<IIII", 0, 1, 10, 9) + bytes(40),  # two lengths
        struct.pack("<IIII", 0, 1, 2**32 - 1, 2**32 - 1) + bytes(40),
        struct.pack("<II", 0, 0) + H + struct.pack("<I", 501),  # range(0, 500)
    ],
)
def test_bad_requests(raw: bytes) -> None:
    with pytest.raises(BadStub):
        wire.Map.unpack(raw)


@pytest.mark.parametrize("counts", [(2, 1, 0, 2), (1, 4, 1, 1), (1, 4, 0, 2), (501, 501, 0, 501)])
def test_bad_answers(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(BadStub):
        wire.Mapped.unpack(H + struct.pack("<IIII", *counts) + bytes(4000))


def test_freeing_a_handle() -> None:
    assert wire.FreeHandle.unpack(H).handle == H
    assert wire.HandleFreed(bytes(20), 0).pack() == bytes(24)
