"""Purge, move, and one message by its lookup id. Section 6, sequences 1 and 7; MS-MQRR 3.1.4.10"""

from __future__ import annotations

import pytest

from bridge.protocol.rpc.reader.opening import Client
from bridge.protocol.rpc.reader.orders import move, peek_at, purge
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import ConnectionLost
from tests.protocol.rpc.reader.fake_server import (
    LOCKED,
    NO_QUEUE,
    NOT_FOUND,
    new_server,
    without_top_byte,
)
from tests.protocol.rpc.reader.running import ORDERS, Wire, finish, orders

RETRY = f"{ORDERS};retry"
CLIENT = Client()


def test_purge() -> None:  # RR 4.1: op 2 with access 1, op 6, op 3
    server = new_server()
    server.put(ORDERS, b"a")
    finish(purge(orders(), CLIENT), Wire(server))
    assert server.calls == [2, 6, 3]
    assert server.bodies(ORDERS) == []


def test_a_purge_is_not_repeated() -> None:
    """What comes between two tries would be removed too."""
    server = new_server()
    with pytest.raises(ConnectionLost):
        finish(purge(orders(), CLIENT), Wire(server, {2: True}.get))
    assert server.calls == [2, 6]


def test_move_to_a_subqueue() -> None:
    server = new_server(ORDERS, RETRY)
    first, second = server.put(ORDERS, b"a"), server.put(ORDERS, b"b")
    assert first.lookup_id < second.lookup_id
    spelling = Spelling()
    finish(move(orders(), orders(RETRY), first.lookup_id, spelling, CLIENT), Wire(server))
    assert server.bodies(ORDERS) == [b"b"]
    assert server.bodies(RETRY) == [b"a"]
    assert server.calls == [2, 11, 10, 3, 3]
    assert not server.handles


def test_move_of_nothing() -> None:
    server = new_server(ORDERS, RETRY)
    with pytest.raises(Refused) as raised:
        finish(move(orders(), orders(RETRY), 7, Spelling(), CLIENT), Wire(server))
    assert raised.value.status == NOT_FOUND
    assert not server.handles  # closed all the same


def test_peek_at() -> None:
    server = new_server()
    stored = [server.put(ORDERS, body) for body in (b"a", b"b")]
    wire, spelling = Wire(server), Spelling()
    read = finish(peek_at(orders(), stored[1].lookup_id, spelling, CLIENT), wire)
    assert (read.message.body, read.lookup_id) == (b"b", stored[1].lookup_id)
    assert not spelling.is_low


def test_peek_at_the_other_spelling() -> None:  # RR-55: retry with top byte 0, and remember
    server = new_server()
    stored = server.put(ORDERS, b"a")
    server.matches = without_top_byte
    wire, spelling = Wire(server), Spelling()
    for starts in (2, 1):
        server.calls.clear()
        assert finish(peek_at(orders(), stored.lookup_id, spelling, CLIENT), wire)
        assert server.calls == [2, *[7] * starts, 3]
    assert spelling.is_low


def test_peek_at_what_somebody_holds() -> None:  # C00E0050
    server = new_server()
    stored = server.put(ORDERS, b"a")
    stored.lock = (b"another", 1)
    with pytest.raises(Refused, match="somebody else holds") as raised:
        finish(peek_at(orders(), stored.lookup_id, Spelling(), CLIENT), Wire(server))
    assert raised.value.status == LOCKED


def test_no_queue() -> None:
    with pytest.raises(Refused) as raised:
        finish(peek_at(orders("other"), 1, Spelling(), CLIENT), Wire(new_server()))
    assert raised.value.status == NO_QUEUE
