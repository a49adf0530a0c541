from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.binary.ping import Ping
from tests.vectors.binary import PINGS
from tests.wire.binary.build import C
from tests.wire.binary.strategies import SOME, guids, u32


@pytest.mark.parametrize(
    ("name", "guid", "random"),
    [
        ("F1", "557358D1-9150-9595-4997-B6E611EA26C6", 0x7D00),
        ("F2", "43CD8907-394C-8F11-4445-9078909EA0FC", 0xB294),
    ],
)
def test_pings_from_the_spec(name: str, guid: str, random: int) -> None:  # MS-MQQB 4.1.1, 4.1.2
    raw = PINGS[name].data
    ping = Ping(cookie=4, queue_manager=Guid.parse(guid), client=True)
    assert Ping.unpack(raw) == ping
    # all flags but two are random on the wire; we send zeros
    flags = int.from_bytes(ping.pack()[:2], "little") | random
    assert flags.to_bytes(2, "little") + ping.pack()[2:] == raw


@pytest.mark.parametrize(
    ("flags", "client", "refused"),
    [(0, False, False), (1, True, False), (2, False, True), (3, True, True)],
)
def test_flags(flags: int, client: bool, refused: bool) -> None:  # MS-MQQB 2.2.7
    raw = struct.pack("<HHI16s", flags, 0x5548, 7, C)
    ping = Ping(cookie=7, queue_manager=Guid(C), client=client, refused=refused)
    assert Ping.unpack(raw) == ping
    assert ping.pack() == raw


@pytest.mark.parametrize("length", range(24))
def test_short_datagrams(length: int) -> None:  # QB-30
    with pytest.raises(WireError):
        Ping.unpack(PINGS["F1"].data[:length])


def test_wrong_signature() -> None:  # QB-30
    with pytest.raises(WireError):
        Ping.unpack(struct.pack("<HHI16s", 0, 0x4855, 0, C))


@SOME
@given(st.builds(Ping, cookie=u32, queue_manager=guids, client=..., refused=...))
def test_round_trip(ping: Ping) -> None:
    assert Ping.unpack(ping.pack()) == ping
