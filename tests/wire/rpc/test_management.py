"""The management interface, against stock impacket. C706 appendix Q"""

import struct

import pytest
from impacket.dcerpc.v5 import mgmt

from bridge.model.guid import Guid
from bridge.wire.rpc import management as wire
from bridge.wire.rpc.endpoint_mapper import InterfaceId
from bridge.wire.rpc.ndr import BadStub

G = Guid(bytes(range(16)))


def test_interface_ids() -> None:
    response = wire.InterfaceIds((InterfaceId(G, 1, 0), InterfaceId(G, 3, 1)), 0)
    raw = response.pack()
    assert raw[:20] == struct.pack("<IIIII", 0x20000, 2, 2, 0x20004, 0x20008)
    assert wire.InterfaceIds.unpack(raw) == response
    answer = mgmt.inq_if_idsResponse(raw)
    found = answer["if_id_vector"]["if_id"]
    assert [(bytes(one["Data"]["Uuid"]), int(one["Data"]["VersMajor"])) for one in found] == [
        (bytes(G), 1),
        (bytes(G), 3),
    ]


def test_too_many_interfaces() -> None:
    with pytest.raises(BadStub):
        wire.InterfaceIds.unpack(struct.pack("<III", 1, 2**32 - 1, 2**32 - 1) + bytes(100))


def test_no_interfaces() -> None:
    assert wire.InterfaceIds.unpack(bytes(8)) == wire.InterfaceIds((), 0)


def test_a_principal_name() -> None:
    response = wire.PrincipalName(wire.Text("host/a", 20), 0)
    raw = struct.pack("<III", 20, 0, 7) + b"host/a\0" + bytes(1) + struct.pack("<I", 0)
    assert response.pack() == raw
    assert wire.PrincipalName.unpack(raw) == response
    with pytest.raises(BadStub):
        wire.PrincipalName.unpack(struct.pack("<III", 2, 0, 7) + bytes(20))


def test_is_listening() -> None:
    assert wire.IsListening(0, 1).pack() == struct.pack("<II", 0, 1)
    assert [
        wire.InquireInterfaceIds.OPNUM,
        wire.IsServerListening.OPNUM,
        wire.InquirePrincipalName.OPNUM,
    ] == [0, 2, 4]
