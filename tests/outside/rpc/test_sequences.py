"""The call sequences of MS-MQRR 4 and MS-MQQP 4 (digest remote-read.md section 6), by impacket."""

import pytest

from tests.outside.rpc.conftest import OpenReader, Send, path
from tests.outside.rpc.reader import (
    ACK,
    DO_RECEIVE,
    LOOKUP_PEEK,
    LOOKUP_RECEIVE,
    NACK,
    NULL_HANDLE,
    PEEK,
    PEEK_CURRENT,
    PEEK_NEXT,
)

pytestmark = pytest.mark.kafka
LONG = 30_000  # ms: longer than any of these tests


def test_receive(kept: str, send: Send, open_reader: OpenReader) -> None:  # 6.2
    one, other = open_reader(), open_reader()
    here, there = one.open(path(kept)), other.open(path(kept), PEEK)
    send(kept, b"M1", b"M2")
    given = one.start(here, request_id=1, timeout=LONG)
    assert (given.status, given.body) == (0, b"M1")
    assert other.start(there, PEEK_CURRENT, timeout=LONG).body == b"M2"  # RR-20
    assert one.end(here, 1) == 0
    assert other.start(there, PEEK_CURRENT).body == b"M2"
    assert one.close_queue(here) == (NULL_HANDLE, 0)
