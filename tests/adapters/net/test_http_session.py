"""One connection, byte by byte on a real socket: srmp.md 1.2, 1.4."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.adapters.net.http_server import Limits
from bridge.wire.srmp.request import MAX_BODY
from tests.adapters.net.http_world import (
    BAD,
    BUSY,
    FAILED,
    OK,
    OK_BYE,
    HttpWorld,
    RawClient,
    chunked,
    http_world,
    nobody_left,
    post,
    raw_client,
    still_serves,
)
from tests.adapters.net.memory_server import run
from tests.support.waiting import until

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SHORT_S = 0.05


async def refused_with(made: HttpWorld, data: bytes, answer: bytes, reason: str) -> None:
    """The answer comes although the client says no more; then the server hangs up."""
    async with raw_client(made) as client:
        client.send(data)
        assert await client.end() == answer
    assert made.refused(reason) == 1
    assert made.requests == []
    await still_serves(made)


def test_a_request_of_windows() -> None:  # srmp.md 1.2, folded; 1.4: 200, Content-Length: 0
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            head = (
                b"POST /msmq/private$/simpleq HTTP/1.1\r\nHost: machine2\r\n"
                b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 53287";\r\n'
                b" type=text/xml\r\nContent-Length: 9\r\n"
                b'SOAPAction: "MSMQMessage"\r\nProxy-Accept: NonInteractiveClient\r\n\r\n'
            )
            assert await client.ask(head + b"--MSMQ...") == OK
            (request,) = made.requests
            assert (request.head, request.body) == (head, b"--MSMQ...")
            content_type = (
                'multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml'
            )
            assert request.content_type == content_type
            assert (request.peer, request.local) == ("127.0.0.1", "127.0.0.1")
            assert not request.secure
            assert made.sample("bytes_received_total") == len(head) + 9

    run(test())


def test_kept_alive() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            for number in range(5):
                assert await client.ask(post(b"%d" % number)) == OK
            assert made.bodies == [b"0", b"1", b"2", b"3", b"4"]
            assert made.server.connections == 1

    run(test())


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (400, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        (500, b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
        (503, b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_every_answer_is_empty(status: int, answer: bytes) -> None:  # srmp.md 1.4
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.outcomes = [status]
            assert await client.ask(post()) == answer
            assert await client.ask(post()) == OK

    run(test())


def test_ten_in_one_write() -> None:  # srmp.md 1.2: pipelining, answers in request order
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.outcomes = [200, 400, 200, 503, 200, 200, 500, 200, 200, 400]
            client.send(b"".join(post(b"%d" % number) for number in range(10)))
            statuses = [int((await client.answer()).split()[1]) for _ in range(10)]
            assert statuses == [200, 400, 200, 503, 200, 200, 500, 200, 200, 400]
            assert made.bodies == [b"%d" % number for number in range(10)]

    run(test())


def test_one_at_a_time() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.gate.clear()
            client.send(post(b"first") + post(b"second"))
            await until(lambda: made.bodies == [b"first"])
            made.gate.set()
            assert [await client.answer(), await client.answer()] == [OK, OK]
            assert made.bodies == [b"first", b"second"]

    run(test())


@pytest.mark.parametrize(
    "data",
    [post(b"whole"), chunked(b"wh", b"ole", trailer=b"T: t\r\n")],
    ids=["length", "chunks"],
)
def test_cut_at_every_byte(data: bytes) -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            for number, cut in enumerate(range(1, len(data))):
                client.send(data[:cut])
                await made.received(number * len(data) + cut)
                assert await client.ask(data[cut:]) == OK
            assert made.bodies == [b"whole"] * (len(data) - 1)

    run(test())


def test_byte_by_byte() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            data = post(b"slow") + chunked(b"and", b" slower") + post(b"")
            for number in range(len(data)):
                client.send(data[number : number + 1])
                await made.received(number + 1)
            assert [await client.answer() for _ in range(3)] == [OK] * 3
            assert made.bodies == [b"slow", b"and slower", b""]

    run(test())


def test_chunks_become_a_body_with_a_length() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            assert await client.ask(chunked(b"abc", b"d" * 100_000) + post(b"next")) == OK
            assert await client.answer() == OK
            assert made.bodies == [b"abc" + b"d" * 100_000, b"next"]
            assert made.requests[0].head == (
                b"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 100003\r\n\r\n"
            )

    run(test())


def test_as_large_as_it_may_be() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            body = bytes(range(256)) * (MAX_BODY // 256)
            assert await client.ask(post(body)) == OK
            assert await client.ask(chunked(body[:-1], body[-1:])) == OK
            assert made.bodies == [body, body]

    run(test())


def test_blank_lines_between_requests() -> None:  # RFC 9112 2.2
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            client.send(b"\r\n" + post(b"a") + b"\r\n\r\n" + post(b"b") + b"\n")
            assert [await client.answer(), await client.answer()] == [OK, OK]
            assert await client.ask(b"\r\n" + post(b"c")) == OK
            assert made.bodies == [b"a", b"b", b"c"]

    run(test())


# -- Expect ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["length", "chunks"])
def test_who_waits_hears_a_word(kind: str) -> None:  # srmp.md 1.2
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            if kind == "length":
                head, body = post(b"", "Expect: 100-continue", length=4), b"body"
            else:
                data = chunked(b"body").replace(b"Host", b"Expect: 100-continue\r\nHost")
                head, body = data[:-14], data[-14:]
            assert await client.ask(head) == CONTINUE
            assert made.requests == []
            assert await client.ask(body) == OK
            assert made.bodies == [b"body"]

    run(test())


def test_who_does_not_wait_hears_none() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            assert await client.ask(post(b"body", "Expect: 100-continue")) == OK
            assert await client.ask(post(b"", "Expect: 100-continue")) == OK
            assert await client.ask(post(b"", "Expect: 100-continue", length=5)) == CONTINUE
            assert await client.ask(b"12345") == OK
            assert made.bodies == [b"body", b"", b"12345"]

    run(test())


def test_a_refused_one_hears_no_word() -> None:
    async def test() -> None:
        async with http_world() as made:
            data = post(b"", "Expect: 100-continue", length=MAX_BODY + 1)
            await refused_with(made, data, BAD, "http-large-body")

    run(test())


# -- the end of a connection ----------------------------------------------------------------


@pytest.mark.parametrize(("version", "wish"), [("1.1", "Connection: close"), ("1.0", "X: y")])
def test_the_client_wants_it_closed(version: str, wish: str) -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            client.send(post(b"last", wish, version=version))
            assert await client.end() == OK_BYE
            assert made.bodies == [b"last"]

    run(test())


def test_http_1_0_may_keep_it() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            data = post(b"old", "Connection: keep-alive", version="1.0")
            kept = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
            assert [await client.ask(data), await client.ask(data)] == [kept, kept]
            client.send(post(b"new", version="1.0"))
            assert await client.end() == OK_BYE
            assert made.bodies == [b"old", b"old", b"new"]

    run(test())


def test_who_has_said_all_still_hears() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.gate.clear()
            client.send(post(b"a") + post(b"b"))
            client.writer.write_eof()
            await until(lambda: made.bodies == [b"a"])
            made.gate.set()
            assert await client.end() == OK + OK
            assert made.bodies == [b"a", b"b"]
            await nobody_left(made)
            assert made.refused("http-cut") == 0

    run(test())


def test_what_is_begun_is_finished_without_its_client() -> None:
    async def test() -> None:
        async with http_world() as made:
            made.gate.clear()
            async with raw_client(made) as client:
                client.send(post(b"lonely"))
                await until(lambda: made.requests)
                plug = client.writer.get_extra_info("socket")
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await until(lambda: made.session.lost)
            assert made.server.connections == 1  # its request still is work
            made.gate.set()
            await nobody_left(made)
            await still_serves(made)

    run(test())


# -- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS on the wrong port
        b"\x00",
        b" POST / HTTP/1.1\r\n",
        b"hello\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        post(b"x", "Content-Length: 2"),
        post(b"x", "Content-Length: 1"),
        post(b"0\r\n\r\n", "Transfer-Encoding: chunked"),
        post(b"x", "Bad header"),
        b"POST /q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
    ids=range(10),
)
def test_malformed(data: bytes) -> None:
    async def test() -> None:
        async with http_world() as made:
            await refused_with(made, data, BAD, "http-malformed")

    run(test())


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"DELETE"])
def test_only_post_is_served(method: bytes) -> None:
    async def test() -> None:
        async with http_world() as made:
            data = post(b"").replace(b"POST", method)
            await refused_with(made, data, BAD, "http-method")

    run(test())


def test_after_a_good_one_the_bad_one_is_refused() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            client.send(post(b"good") + b"rubbish\r\n\r\n" + post(b"never"))
            assert await client.end() == OK + BAD
            assert made.bodies == [b"good"]

    run(test())


def test_announced_too_large() -> None:
    async def test() -> None:
        async with http_world(Limits(body=10)) as made:
            await refused_with(made, post(b"", length=11), BAD, "http-large-body")

    run(test())


def test_chunks_too_large() -> None:
    async def test() -> None:
        async with http_world(Limits(body=10)) as made:
            await refused_with(made, chunked(b"12345", b"678901"), BAD, "http-large-body")

    run(test())


@pytest.mark.parametrize("kind", ["length", "chunks"])
def test_who_sends_too_much_and_then_listens_still_hears(kind: str) -> None:
    """All of it is written before the first byte of the answer is read: no reset hides it."""

    async def test() -> None:
        async with http_world(Limits(body=10)) as made, raw_client(made) as client:
            body = bytes(4 << 20)
            client.send(post(body) if kind == "length" else chunked(body))
            await asyncio.wait_for(client.writer.drain(), 20)
            assert await client.end() == BAD
            assert made.requests == []

    run(test())


def test_who_never_stops_sending_is_cut() -> None:
    async def test() -> None:
        limits = Limits(body=10, linger=100_000)
        async with http_world(limits) as made, raw_client(made) as client:
            client.send(post(b"", length=1 << 30))
            assert await client.answer() == BAD
            with pytest.raises(ConnectionError):
                await _send_for_ever(client)
            await nobody_left(made)

    run(test())


async def _send_for_ever(client: RawClient) -> None:
    while True:
        client.send(bytes(50_000))
        await client.writer.drain()


def test_who_only_waits_after_a_refusal_is_closed() -> None:
    async def test() -> None:
        async with http_world(Limits(linger_s=SHORT_S)) as made, raw_client(made) as client:
            assert await client.ask(b"rubbish\r\n\r\n") == BAD
            await nobody_left(made)  # although the client has not closed

    run(test())


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_head_has_its_limit(size: int) -> None:
    async def test() -> None:
        async with http_world(Limits(head=200)) as made:
            data = post(b"", f"X: {'x' * size}")
            await refused_with(made, data, BAD, "http-large-head")
            await refused_again(made, data[:201])

    async def refused_again(made: HttpWorld, data: bytes) -> None:  # its end never comes
        async with raw_client(made) as client:
            client.send(data)
            assert await client.end() == BAD

    run(test())


@pytest.mark.parametrize(
    "data",
    [post(b"half", length=8), chunked(b"half")[:-5], post()[:20]],
    ids=["length", "chunks", "head"],
)
def test_cut_before_its_end(data: bytes) -> None:
    """A length that lies: nothing is handled, nothing is answered; the sender tries again."""

    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            client.send(data)
            client.writer.write_eof()
            assert await client.end() == b""
            assert made.requests == []
            assert made.refused("http-cut") == 1
            await nobody_left(made)
            await still_serves(made)

    run(test())


def test_hanging_up_between_requests_is_no_refusal() -> None:
    async def test() -> None:
        async with http_world() as made:
            async with raw_client(made) as client:
                assert await client.ask(post()) == OK
            await nobody_left(made)
            assert made.telemetry.exposition()[0].count(b'reason="http') == 0

    run(test())


# -- the handler ----------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [RuntimeError("broken"), 204])
def test_a_handler_that_fails(outcome: int | Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.outcomes = [outcome]
            client.send(post(b"poison") + post(b"never"))
            assert await client.end() == FAILED
            assert made.bodies == [b"poison"]
            assert made.refused("http-fault") == 1
            await still_serves(made)

    run(test())
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info is not None


# -- time -----------------------------------------------------------------------------------


def test_who_never_says_anything() -> None:
    async def test() -> None:
        async with http_world(Limits(head_s=SHORT_S)) as made, raw_client(made) as client:
            assert await client.end() == b""
            assert made.refused("http-silent") == 1

    run(test())


def test_a_head_that_never_ends() -> None:
    async def test() -> None:
        async with http_world(Limits(head_s=1.0)) as made:
            async with raw_client(made) as client:
                client.send(post()[:-30])
                assert await client.end() == BUSY
            assert made.refused("http-slow-head") == 1

    run(test())


def test_a_second_head_has_its_own_time() -> None:
    """Not that of the wait before it: a connection may be idle for longer."""

    async def test() -> None:
        async with http_world(Limits(head_s=1.0)) as made, raw_client(made) as client:
            assert await client.ask(post()) == OK
            session = made.session
            assert session._deadline - asyncio.get_running_loop().time() > 300  # SR-78
            client.send(b"P")
            assert await client.end() == BUSY
            assert made.refused("http-slow-head") == 1

    run(test())


def test_a_head_that_drips() -> None:
    """Each byte is in time, the whole is not."""

    async def test() -> None:
        async with http_world(Limits(head_s=1.0)) as made, raw_client(made) as client:
            drip = asyncio.create_task(_drip(made, client))
            assert await client.end() == BUSY
            drip.cancel()
            assert made.refused("http-slow-head") == 1

    run(test())


async def _drip(made: HttpWorld, client: RawClient) -> None:
    """The next byte when the one before has come."""
    sent = 0
    while True:
        client.send(b"X")
        sent += 1
        await made.received(sent)


@pytest.mark.parametrize(
    "data", [post(b"half", length=8), chunked(b"half")[:-5]], ids=["length", "chunks"]
)
def test_a_body_that_never_ends(data: bytes) -> None:
    async def test() -> None:
        async with http_world(Limits(body_s=SHORT_S)) as made:
            await refused_with(made, data, BUSY, "http-slow-body")

    run(test())


def test_a_body_has_more_time_the_more_has_come() -> None:
    async def test() -> None:
        limits = Limits(body_s=5.0, rate=1000)
        async with http_world(limits) as made, raw_client(made) as client:
            client.send(post(bytes(100_000), length=100_001))
            await until(lambda: made.server._held == 100_000)
            left = made.session._deadline - asyncio.get_running_loop().time()
            assert left > 60  # 100 s in all
            assert await client.ask(b"!") == OK

    run(test())


def test_an_idle_connection_is_closed_in_peace() -> None:  # SR-78
    async def test() -> None:
        async with http_world(Limits(idle_s=SHORT_S)) as made, raw_client(made) as client:
            client.send(post())
            assert await client.end() == OK
            assert made.telemetry.exposition()[0].count(b'reason="http') == 0

    run(test())
    assert Limits().idle_s > 300


# -- anything -------------------------------------------------------------------------------

PIECES = st.one_of(
    st.binary(max_size=50),
    st.sampled_from(
        [
            post(b"good"),
            post(b"x", "Expect: 100-continue"),
            chunked(b"a", b"bc"),
            b"POST /q HTTP/1.1\r\nHost: h\r\n",
            b"Content-Length: 3\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
            b"\r\n",
            b"\n",
            b"0\r\n\r\n",
            b"5\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ]
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=8))
def test_it_survives_anything(pieces: list[bytes]) -> None:
    async def test() -> None:
        async with http_world() as made:
            async with raw_client(made) as client:
                for piece in pieces:
                    client.send(piece)
                client.writer.write_eof()
                answers = (await client.end()).split(b"\r\n\r\n")
            assert answers.pop() == b""
            first = {answer.partition(b"\r\n")[0] for answer in answers}
            assert first <= {
                b"HTTP/1.1 100 Continue",
                b"HTTP/1.1 200 OK",
                b"HTTP/1.1 400 Bad Request",
            }
            await nobody_left(made)
            await still_serves(made)

    run(test())


def test_a_line_when_it_opens_and_one_with_figures_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with http_world() as made:
            async with raw_client(made) as client:
                assert await client.ask(post()) == OK
                assert await client.ask(post()) == OK
            await nobody_left(made)
            name, labels = "msmq_bridge_ack_seconds_count", {"transport": "http"}
            assert made.telemetry.registry.get_sample_value(name, labels) == 2

    with caplog.at_level(logging.DEBUG):
        run(test())
    opened, closed = [r for r in caplog.records if r.getMessage().startswith("session ")]
    told, end = opened.__dict__["fields"], closed.__dict__["fields"]
    assert told == {"transport": "http", "peer": "127.0.0.1"}
    assert (end["messages"], end["bytes"]) == (2, 2 * len(post()))
    assert (end["transport"], end["reason"]) == ("http", "peer-closed")


def test_a_refusal_names_reason_and_peer(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with http_world() as made:
            async with raw_client(made) as client:
                client.send(b"\x16\x03\x01 TLS\r\n\r\n")
                assert await client.end() == BAD
            await nobody_left(made)

    with caplog.at_level(logging.DEBUG):
        run(test())
    (line,) = [r for r in caplog.records if r.getMessage() == "refused"]
    told = line.__dict__["fields"]
    assert (told["reason"], told["peer"]) == ("http-malformed", "127.0.0.1")
    (end,) = [r for r in caplog.records if r.getMessage() == "session closed"]
    assert end.__dict__["fields"]["reason"] == "http-malformed"
