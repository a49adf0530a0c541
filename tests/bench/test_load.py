"""The load generator on a pair of sockets: what it sends, and what it makes of acks."""

import ast
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.load import Driver, LoadSession, Outcome, Pace, report
from tests.bench.packets import base_header, make_block

SOURCE = bytes(range(16))
EMPTY = bytes(572 + 32)  # the bridge's side of the handshake: only its length counts


def ack(number: int, window: int = 64) -> bytes:  # binary.md 2.5
    header = struct.pack("<HHIHHHH", number & 0xFFFF, 0, 0, 0, 0, window, 0)
    return base_header(0x1B, 36) + struct.pack("<HH", 0, 1) + header


def order_ack(number: int | None) -> bytes:
    """A user message; with a number it carries a session header, which its size leaves out."""
    body = bytes(100)
    if number is None:
        return base_header(0, 116) + body
    return base_header(0x10, 116) + body + struct.pack("<HHIHHHH", number, 0, 0, 0, 0, 64, 0)


@pytest.fixture
def pair() -> Iterator[tuple[LoadSession, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.sendall(EMPTY)
    block = make_block("private$\\orders", "transactional", 100, 16, SOURCE, 1)
    session = LoadSession(ours, block, SOURCE)
    assert len(theirs.recv(65_536)) == 572 + 32
    yield session, theirs
    ours.close()
    theirs.close()


def size_of(session: LoadSession) -> int:
    return session._size


def test_a_window_and_no_more(pair: tuple[LoadSession, socket.socket]) -> None:  # QB-50
    session, bridge = pair
    assert session.push()
    assert len(bridge.recv(1 << 20)) == 64 * size_of(session)
    bridge.sendall(ack(32))
    assert session.pull() == 32
    session.push()
    assert len(bridge.recv(1 << 20)) == 32 * size_of(session)
    bridge.sendall(ack(64, window=1))  # QB-51
    session.pull()
    assert (session.acked, session.window) == (64, 1)


def test_acks_in_pieces_and_on_the_back_of_messages(
    pair: tuple[LoadSession, socket.socket],
) -> None:  # QB-47
    session, bridge = pair
    data = order_ack(None) + order_ack(3) + ack(5)
    for at in range(len(data)):
        bridge.sendall(data[at : at + 1])
        session.pull()
    assert session.acked == 5


def test_sixteen_bits_of_acks(pair: tuple[LoadSession, socket.socket]) -> None:  # QB-40
    session, bridge = pair
    session.acked = 65_530
    bridge.sendall(ack(65_540))
    assert session.pull() == 10


def test_who_is_hung_up_on_says_so(pair: tuple[LoadSession, socket.socket]) -> None:
    session, bridge = pair
    bridge.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ConnectionError, match="closed the session"):
        session.pull()


def test_until_all_is_acked(pair: tuple[LoadSession, socket.socket]) -> None:
    session, bridge = pair
    bridge.sendall(ack(60) + ack(100))
    outcome = Driver([session]).run()
    assert (outcome.messages, outcome.counted) == (100, 100)
    assert session.done


def test_the_last_acks_may_wait_for_a_timer(
    pair: tuple[LoadSession, socket.socket],
) -> None:  # QB-45: less than half a window
    session, bridge = pair
    bridge.sendall(ack(69))
    assert Driver([session]).run().counted == 69


def test_not_done_before_all_is_sent(pair: tuple[LoadSession, socket.socket]) -> None:
    session, bridge = pair
    bridge.sendall(ack(80))
    session.pull()
    assert not session.done
    session.push()
    assert session.done


def test_sessions_take_turns() -> None:
    pace = Pace(rate=100.0, burst=2, sessions=4, started=10.0)
    assert [pace.due(session, 0) for session in range(4)] == [10.0, 10.02, 10.04, 10.06]
    assert pace.due(0, 1) == 10.0  # the same burst
    assert pace.due(0, 2) == pytest.approx(10.08)
    assert [pace.turns(now) for now in (9.0, 10.0, 10.021, 10.201)] == [0, 1, 2, 11]


def test_latency_counts_from_when_a_message_was_due(
    pair: tuple[LoadSession, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, bridge = pair
    monkeypatch.setattr("tests.bench.load.RAMP_S", 0.0)
    bridge.sendall(ack(100))  # at once: before most of them were due
    outcome = Driver([session], Pace(rate=1000.0, burst=1, sessions=1)).run()
    assert len(outcome.latencies) == 100
    assert outcome.latencies == sorted(outcome.latencies)
    assert outcome.latencies[0] < -0.05


def test_report() -> None:
    told = report(Outcome(100, 2.0, 95, [0.001] * 98 + [0.2, 0.3]), 0.5)
    assert told["per_second"] == 47.5
    assert (told["p50_ms"], told["p99_ms"], told["max_ms"]) == (1.0, 200.0, 300.0)


def test_knows_nothing_of_the_bridge() -> None:
    for name in ("load.py", "packets.py", "http_load.py", "posts.py", "figures.py"):
        tree = ast.parse(Path(__file__).with_name(name).read_text())
        imports = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        imports += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        assert not [module for module in imports if module.split(".")[0] == "bridge"]
