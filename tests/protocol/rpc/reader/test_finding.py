"""RR-43, RR-44: what the endpoint mapper is asked, and what it may answer."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from bridge.protocol.rpc.reader.finding import MAPPER, READER, NotServed, port_in, question
from bridge.wire.rpc.endpoint_mapper import Mapped

REMOTE_READ = UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28").bytes_le
NDR = UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le
OTHER = UUID("fdb3a030-065f-11d1-bb9b-00a024ea5525").bytes_le


def tower(uuid: bytes, port: int) -> bytes:
    """Five floors: interface, NDR, RPC-CO, TCP port, IP. RR-2"""
    floors = (
        (b"\x0d" + uuid + struct.pack("<H", 1), bytes(2)),
        (b"\x0d" + NDR + struct.pack("<H", 2), bytes(2)),
        (b"\x0b", bytes(2)),
        (b"\x07", struct.pack(">H", port)),
        (b"\x09", bytes(4)),
    )
    sides = [struct.pack("<H", len(side)) + side for floor in floors for side in floor]
    return struct.pack("<H", 5) + b"".join(sides)


def mapped(*towers: bytes, status: int = 0) -> Mapped:
    stub = bytes(20) + struct.pack("<IIII", len(towers), 4, 0, len(towers))
    stub += b"".join(struct.pack("<I", number + 1) for number in range(len(towers)))
    for one in towers:
        stub += struct.pack("<II", len(one), len(one)) + one
        stub += bytes(-len(stub) % 4)
    return Mapped.unpack(stub + struct.pack("<I", status))


def test_the_question() -> None:  # ept_map, op 3
    asked = question()
    wanted = tower(REMOTE_READ, 0)
    assert asked.OPNUM == 3
    assert struct.pack("<II", len(wanted), len(wanted)) + wanted in asked.pack()


def test_interfaces() -> None:
    assert (READER.uuid, READER.major, READER.minor) == (REMOTE_READ, 1, 0)
    assert (MAPPER.major, MAPPER.minor) == (3, 0)


def test_the_port() -> None:
    assert port_in(mapped(tower(REMOTE_READ, 2103))) == 2103
    assert port_in(mapped(tower(OTHER, 5), tower(REMOTE_READ, 2114))) == 2114


@pytest.mark.parametrize(
    "answer",
    [
        mapped(status=0x16C9A0D6),
        mapped(),
        mapped(tower(OTHER, 2105)),
        mapped(tower(REMOTE_READ, 0)),
    ],
)
def test_not_there(answer: Mapped) -> None:  # RR-44: reported, there is no way back to QP
    with pytest.raises(NotServed, match="does not offer remote read"):
        port_in(answer)
