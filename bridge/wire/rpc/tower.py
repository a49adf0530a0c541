"""Protocol towers: an interface and where it is, floor upon floor. C706 appendix L

interface, transfer syntax, RPC connection-oriented, TCP port, IP address
"""

from __future__ import annotations

from ipaddress import IPv4Address
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.guid import Guid
from bridge.wire.cursor import guid
from bridge.wire.rpc.ndr import BadStub

NDR: Final = Guid.parse("8a885d04-1ceb-11c9-9fe8-08002b104860")
_UUID: Final = 0x0D
_CONNECTION_ORIENTED: Final = 0x0B
_TCP: Final = 0x07
_IP: Final = 0x09
_FLOORS: Final = 5
_MOST_FLOORS: Final = 16
_U16: Final = Struct("<H")
_SECTION: Final = "C706 appendix L"


class Tower(msgspec.Struct, frozen=True, gc=False):
    """Of the one kind that we have: NDR 2.0 over TCP. Port and address are in network order."""

    uuid: Guid
    version: tuple[int, int]
    port: int = 0
    address: str = "0.0.0.0"

    def pack(self) -> bytes:
        major, minor = self.version
        floors = (
            (bytes((_UUID,)) + self.uuid + _U16.pack(major), _U16.pack(minor)),
            (bytes((_UUID,)) + NDR + _U16.pack(2), _U16.pack(0)),
            (bytes((_CONNECTION_ORIENTED,)), _U16.pack(0)),
            (bytes((_TCP,)), self.port.to_bytes(2, "big")),
            (bytes((_IP,)), _packed(self.address)),
        )
        sides = (_U16.pack(len(side)) + side for floor in floors for side in floor)
        return _U16.pack(_FLOORS) + b"".join(sides)

    @classmethod
    def unpack(cls, data: bytes) -> Self | None:
        """None if it is a tower of another kind."""
        floors = _floors(data)
        if len(floors) != _FLOORS:
            return None
        interface, syntax, protocol, port, address = floors
        one, other = _identifier(interface), _identifier(syntax)
        if one is None or other != (NDR, (2, 0)):
            return None
        if protocol[0] != bytes((_CONNECTION_ORIENTED,)) or port[0] != bytes((_TCP,)):
            return None
        if address[0] != bytes((_IP,)) or len(port[1]) != 2 or len(address[1]) != 4:
            return None
        text = str(IPv4Address(address[1]))
        return cls(*one, int.from_bytes(port[1], "big"), text)


def _packed(address: str) -> bytes:
    """A floor has room for an IPv4 address only; zero means the one that was asked."""
    try:
        return IPv4Address(address).packed
    except ValueError:
        return bytes(4)


def _floors(data: bytes) -> list[tuple[bytes, bytes]]:
    count, offset = _number(data, 0), 2
    if count > _MOST_FLOORS:
        raise BadStub("tower", count, f"{_SECTION}: too many floors")
    sides: list[bytes] = []
    for _ in range(2 * count):
        size = _number(data, offset)
        offset += 2 + size
        if offset > len(data):
            raise BadStub("tower", size, f"{_SECTION}: a floor is longer than the tower")
        sides.append(data[offset - size : offset])
    return list(zip(sides[::2], sides[1::2], strict=True))


def _number(data: bytes, offset: int) -> int:
    if offset + 2 > len(data):
        raise BadStub("tower", len(data), f"{_SECTION}: it is cut short")
    return int(_U16.unpack_from(data, offset)[0])


def _identifier(floor: tuple[bytes, bytes]) -> tuple[Guid, tuple[int, int]] | None:
    left, right = floor
    if len(left) != 19 or left[0] != _UUID or len(right) != 2:
        return None
    return guid(left[1:17]), (_number(left, 17), _number(right, 0))
