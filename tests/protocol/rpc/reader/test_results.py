"""RR-57: failures are not all the same for us. RR-46: calls without an HRESULT."""

from __future__ import annotations

import pytest

from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.results import Refused, status_of
from bridge.wire.rpc.remote_read import Opened, Started
from bridge.wire.rpc.stub import Result


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0xC00E001B, "there is no message"),
        (0xC00E0008, "cancelled"),
        (0xC00E004B, "deleted"),
        (0xC00E005A, "deleted"),
        (0xC00E0025, "rights on the queue"),
        (0x00000005, "look at these three"),
        (0xC0000022, "rights on the queue"),  # of a purge
        (0xC00E0009, "try again later"),
        (0xC00E9999, "the server refuses"),
    ],
)
def test_in_words(status: int, words: str) -> None:
    told = str(Refused(status))
    assert words in told
    assert f"0x{status:08X}" in told


def test_status() -> None:
    assert status_of(Result(0xC00E0006)) == 0xC00E0006
    assert status_of(Started(status=0xC00E001B)) == 0xC00E001B
    assert status_of(Fault(5)) == 5
    assert status_of(Opened(b"\xff" * 20)) == 0  # RR-46
