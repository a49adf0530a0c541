"""The load generator over HTTP: one request at a time, and the port where receipts go."""

import http.client
import socket
import threading
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.bench.http_load import PostSession, ReceiptSink, connect, post_all
from tests.bench.load import Driver
from tests.bench.posts import Posts

SOURCE = UUID("11111111-2222-3333-4444-555555555555")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"  # srmp.md 1.4
QUEUE = "private$\\plain"


def posts(kind: str = "srmp-durable", size: int = 10) -> Posts:
    return Posts(QUEUE, kind, size, SOURCE, 1, "http://127.0.0.1/r")


@pytest.fixture
def pair() -> Iterator[tuple[PostSession, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield PostSession(ours, posts(), 3), theirs
    ours.close()
    theirs.close()


def test_one_at_a_time(pair: tuple[PostSession, socket.socket]) -> None:  # SR-70
    session, bridge = pair
    assert session.push()
    assert session.push()  # nothing more to send
    assert bridge.recv(1 << 20) == bytes(posts().request(1))
    bridge.sendall(OK)
    assert session.pull() == 1
    session.push()
    assert bridge.recv(1 << 20) == bytes(posts().request(2))
    assert (session.acked, session.done, len(session.latencies)) == (1, False, 1)


def test_an_answer_in_pieces(pair: tuple[PostSession, socket.socket]) -> None:
    session, bridge = pair
    session.push()
    steps = []
    for at in range(len(OK)):
        bridge.sendall(OK[at : at + 1])
        steps.append(session.pull())
    assert steps == [0] * (len(OK) - 1) + [1]


def test_a_request_that_does_not_fit_the_socket() -> None:
    ours, theirs = socket.socketpair()
    size = 4 << 20
    session = PostSession(ours, posts(size=size), 1)
    assert not session.push()
    got = 0
    while got < size:
        got += len(theirs.recv(1 << 20))
        session.push()
    assert session.push()
    ours.close()
    theirs.close()


@pytest.mark.parametrize("status", [400, 500, 503])
def test_anything_but_200_ends_it(status: int, pair: tuple[PostSession, socket.socket]) -> None:
    session, bridge = pair
    session.push()
    bridge.sendall(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status)
    with pytest.raises(RuntimeError, match=f"answered .*{status}"):
        session.pull()


def test_who_is_hung_up_on_says_so(pair: tuple[PostSession, socket.socket]) -> None:
    session, bridge = pair
    bridge.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ConnectionError, match="closed the connection"):
        session.pull()


def test_the_driver_moves_it(pair: tuple[PostSession, socket.socket]) -> None:
    session, bridge = pair
    size = len(posts().request(1))

    def answer() -> None:
        for _ in range(3):
            assert len(bridge.recv(size, socket.MSG_WAITALL)) == size
            bridge.sendall(OK)

    thread = threading.Thread(target=answer)
    thread.start()
    outcome = Driver([session]).run()
    thread.join()
    assert (outcome.messages, outcome.counted, len(session.latencies)) == (3, 3, 3)


# -- receipts ---------------------------------------------------------------------------------


def receipt(stream_id: str, last: int) -> bytes:  # srmp.md 3.7
    return (
        f"<se:Envelope><streamReceipt><streamId>{stream_id}</streamId>"
        f"<lastOrdinal>{last}</lastOrdinal></streamReceipt></se:Envelope>"
    ).encode()


@pytest.fixture
def sink() -> Iterator[ReceiptSink]:
    made = ReceiptSink()
    yield made
    made.shutdown()
    made.server_close()


def test_receipts_are_taken_on_one_connection(sink: ReceiptSink) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", sink.server_port, timeout=30)
    for stream_id, last in (("uid:a\\1", 3), ("uid:b\\1", 5), ("uid:a\\1", 5)):
        connection.request("POST", "/msmq/private$/order_queue$", receipt(stream_id, last))
        answer = connection.getresponse()
        assert (answer.status, answer.read(), answer.getheader("Content-Length")) == (200, b"", "0")
    connection.close()
    sink.wait("uid:a\\1", 5)
    sink.wait("uid:b\\1", 5)
    with pytest.raises(TimeoutError, match="wanted: up to 6"):
        sink.wait("uid:a\\1", 6, seconds=0.01)


def test_a_stream_is_done_when_its_receipt_is_there(sink: ReceiptSink) -> None:
    """The bridge's side of it: answers, then one receipt for all."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (session,) = connect(listener.getsockname(), QUEUE, "srmp-stream", 1, 2, 10, sink.url)
        bridge, _ = listener.accept()

        def answer() -> None:
            with bridge, bridge.makefile("rb") as stream:
                for number in (1, 2):
                    stream.read(len(session.posts.request(number)))
                    bridge.sendall(OK)
                with socket.create_connection(("127.0.0.1", sink.server_port)) as back:
                    body = receipt(session.posts.stream_id, 2)
                    back.sendall(b"POST /x HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
                    back.sendall(body)
                    assert back.recv(1000).startswith(b"HTTP/1.1 200 ")

        thread = threading.Thread(target=answer)
        thread.start()
        outcome = post_all([session], sink)
        thread.join()
        session.socket.close()
    assert (outcome.counted, len(outcome.latencies)) == (2, 2)
    assert outcome.latencies == sorted(outcome.latencies)
