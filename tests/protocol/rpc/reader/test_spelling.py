"""RR-55: lookup ids with their top byte, or without."""

from __future__ import annotations

from bridge.protocol.rpc.reader.spelling import Spelling


def test_both() -> None:
    spelling, number = Spelling(), 4 << 56 | 99
    assert spelling.of(number) == number
    assert spelling.other.of(number) == 99
    spelling.turn()
    assert spelling.of(number) == 99
    assert spelling.other.of(number) == number
    assert spelling.is_low
