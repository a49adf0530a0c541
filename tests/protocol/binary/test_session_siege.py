"""Peers that never come to an end: the timers do not wait for them. From outside: test_siege."""

from __future__ import annotations

import pytest

from tests.outside.rawmsmq import SessionHeader, build, cp_request, ec_request, session_ack
from tests.protocol.binary.peer import (
    CLIENT,
    acceptor,
    closed,
    feed,
    message,
    open_acceptor,
    receive,
    recoverable,
    tick,
)

EC, CP = ec_request(CLIENT), cp_request()


@pytest.mark.parametrize("hello", [b"", EC[:1], EC[:571], EC, EC + CP[:31]])
def test_half_a_handshake_ends_after_a_minute(hello: bytes) -> None:  # QB-10
    session = acceptor()
    feed(session, hello, 0)
    assert tick(session, 59.9) == []
    assert closed(tick(session, 60.0)) == "init-timeout"
    assert session.next_wakeup() is None


def test_bytes_one_by_one_do_not_prolong_the_handshake() -> None:  # QB-10
    session = acceptor()
    for second, byte in enumerate(EC[:60]):
        feed(session, bytes([byte]), second)
        assert session.next_wakeup() == 60.0
    assert closed(tick(session, 60.0)) == "init-timeout"
    assert feed(session, EC[60:], 61) == []


def test_a_packet_that_never_ends_is_no_activity() -> None:  # QB-151
    session = open_acceptor()
    packet = build(message(body=bytes(1000)))
    for second in range(299):
        feed(session, packet[second : second + 1], second)
    assert closed(tick(session, 300.0)) == "idle"


def test_nor_is_one_after_a_good_one() -> None:  # QB-151: the timer looks back one period
    session = open_acceptor()
    receive(session, recoverable(1), 1)
    feed(session, build(message(2, body=bytes(1000)))[:-1], 2)
    assert tick(session, 2.5) != []  # the ack of the first
    assert tick(session, 300.0) == []
    feed(session, b"", 599)
    assert closed(tick(session, 600.0)) == "idle"


def test_acks_without_end_are_no_activity() -> None:  # QB-151
    session = open_acceptor()
    for second in range(299):
        assert feed(session, session_ack(SessionHeader()), second) == []
    assert closed(tick(session, 300.0)) == "idle"
