"""/api/queues, asked by a client that sends what it is told and no more."""

import asyncio
import http.client
import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from bridge.adapters.net import queue_routes as module
from bridge.adapters.queue_desk import Held
from bridge.core.message_data import message_of, read_data
from bridge.core.retained.errors import Refused, Status
from bridge.model.errors import ConfigError, SinkUnavailable, Unavailable
from tests.adapters.net.fake_appliance import BEARER, TOKEN, FakeAppliance, admin_server
from tests.adapters.net.fake_desk import ORDERS, FakeDesk, held

MESSAGES = "/api/queues/messages"
HERE = f"{MESSAGES}?queue={quote(ORDERS)}"
ORDERED: dict[str, dict[str, Any]] = {  # a body that is right for each
    "receive": {"queue": ORDERS},
    "purge": {"queue": ORDERS},
    "move": {"queue": ORDERS, "lookup_id": 1, "to": f"{ORDERS};retry"},
    "create": {"queue": "private$\\new"},
    "delete": {"queue": ORDERS},
}
Told = tuple[int, Any]


def ask(
    desk: FakeDesk | None,
    path: str,
    body: object = None,
    method: str = "",
    token_file: Path | None = None,
    **headers: str,
) -> Told:
    """A GET, or a POST of a body: bytes as they are, all else as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = headers or ({} if token_file else BEARER)

    def talk(url: str) -> Told:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        try:
            way = method or ("GET" if data is None else "POST")
            connection.request(way, path, data, headers)
            answer = connection.getresponse()
            assert answer.headers["Content-Type"].startswith("application/json")
            assert answer.headers["Cache-Control"] == "no-store"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    async def run() -> Told:
        async with admin_server(FakeAppliance(desk), token_file=token_file) as url:
            return await asyncio.to_thread(talk, url)

    return asyncio.run(run())


def order(desk: FakeDesk | None, name: str, body: object, **options: Any) -> Told:
    return ask(desk, f"/api/queues/{name}", body, **options)


def ids(told: Told) -> list[int]:
    status, data = told
    assert status == 200
    return [message["lookup_id"] for message in data["messages"]]


# -- looking ----------------------------------------------------------------------------------


def test_the_queues() -> None:
    status, data = ask(FakeDesk(), "/api/queues")
    assert status == 200
    assert data == {
        "queues": [
            {
                "name": ORDERS,
                "mode": "retain",
                "transactional": False,
                "topic": "orders",
                "messages": 0,
                "bytes": 0,
                "journal": "",
                "journal_messages": 0,
                "subqueues": {},
                "readers": 0,
                "quota_kb": None,
            }
        ]
    }


def test_a_message_has_the_names_of_the_design() -> None:  # 3.6
    one = held(7, body=b"\xff", priority=5, is_locked=True, moves=2, moved_at=1_700)
    status, data = ask(FakeDesk(one), HERE)
    assert (status, data["more"]) == (200, False)
    (message,) = data["messages"]
    assert (message["queue"], message["lookup_id"], message["locked"]) == (ORDERS, 7, True)
    assert (message["label"], message["body"], message["priority"]) == ("order 7", "/w==", 5)
    assert message["headers"]["msmq.sub.moves"] == "2"
    assert message["headers"]["msmq.sub.moved"] == "1700"
    again = message_of(read_data(message))
    assert (again.id, again.body, again.lookup_id) == (one.message.id, b"\xff", 7)


def test_half_a_surrogate_pair_in_a_label() -> None:
    _, data = ask(FakeDesk(held(1, label="a\ud800")), HERE)
    assert data["messages"][0]["label"] == "a\ud800"


@pytest.mark.parametrize(
    ("query", "found", "more"),
    [
        ("", range(1, 41), False),
        ("&limit=40", range(1, 41), False),
        ("&limit=39", range(1, 40), True),
        ("&limit=17", range(1, 18), True),
        ("&limit=16", range(1, 17), True),
        ("&limit=15", range(1, 16), True),
        ("&limit=1", [1], True),
        ("&limit=1000", range(1, 41), False),
        ("&after=38", [39, 40], False),
        ("&after=24&limit=16", range(25, 41), False),
        ("&after=23&limit=16", range(24, 40), True),
        ("&after=0&limit=2", [1, 2], True),
        ("&after=40", [], False),
        ("&after=18446744073709551615", [], False),
        ("&lookup_id=7", [7], False),
    ],
)
def test_so_many_and_whether_there_are_more(query: str, found: range, more: bool) -> None:
    desk = FakeDesk(*(held(n) for n in range(1, 41)))
    told = ask(desk, HERE + query)
    assert ids(told) == list(found)
    assert told[1]["more"] is more


def test_large_messages_are_answered_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has a bound, and so has what is read for it."""
    monkeypatch.setattr(module, "MAX_ANSWER", 20_000)
    desk = FakeDesk(*(held(n, body=bytes(6_000)) for n in range(1, 101)))  # 8,000 in base64
    first = ask(desk, HERE)
    assert (ids(first), first[1]["more"]) == ([1, 2], True)
    assert len(json.dumps(first[1])) < 20_000
    assert ids(ask(desk, f"{HERE}&after=2")) == [3, 4]
    assert all(call[2] <= module.AT_ONCE for call in desk.asked)
    assert len(desk.asked) == 2


def test_one_message_is_answered_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER", 100)
    told = ask(FakeDesk(held(1), held(2)), HERE)
    assert (ids(told), told[1]["more"]) == ([1], True)


def test_small_ones_are_read_in_lots() -> None:
    desk = FakeDesk(*(held(n) for n in range(1, 1200)))
    told = ask(desk, f"{HERE}&limit=1000")
    assert (len(ids(told)), told[1]["more"]) == (1000, True)
    assert {call[2] for call in desk.asked} <= set(range(1, module.AT_ONCE + 1))
    assert len(desk.asked) <= 1000 // module.AT_ONCE + 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("private$/ORDERS", ORDERS),
        (";deadletter", "system$;deadletter"),
        (".\\private$\\orders;Retry", f"{ORDERS};retry"),
    ],
)
def test_names_as_users_write_them(text: str, name: str) -> None:
    desk = FakeDesk()
    ask(desk, f"{MESSAGES}?queue={quote(text)}")
    order(desk, "purge", {"queue": text})
    order(desk, "move", {"queue": text, "lookup_id": 1, "to": text})
    assert [call[1] for call in desk.asked] == [name] * 3
    assert desk.asked[2] == ("move", name, 1, name)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "?limit=1",
        "?queue=",
        "?queue=private$",
        "?queue=a%5Cb%5Cc",
        "?queue=%00",
        "?queue=%FF%5C",
        "?queue=q&queue=q",
        "?queue=q&limit=0",
        "?queue=q&limit=1001",
        "?queue=q&limit=",
        "?queue=q&limit=-1",
        "?queue=q&limit=1.5",
        "?queue=q&limit=1_0",
        "?queue=q&limit=%D9%A1",  # a digit, but not ours
        "?queue=q&limit=" + "9" * 1000,
        "?queue=q&after=-1",
        "?queue=q&after=18446744073709551616",
        "?queue=q&lookup_id=0x7",
        "?queue=q&lookup_id=1&after=1",
        "?queue=q&Queue=q",
        "?queue=q&body=0",
        "?queue=" + "q" * 200,
    ],
)
def test_a_bad_question_is_refused_and_not_asked(query: str) -> None:
    desk = FakeDesk()
    status, data = ask(desk, MESSAGES + query)
    assert (status, set(data)) == (400, {"error"})
    assert data["error"]
    assert desk.asked == []


def test_the_list_takes_no_question() -> None:
    assert ask(FakeDesk(), "/api/queues?mode=retain")[0] == 400


# -- doing ------------------------------------------------------------------------------------


def test_receive() -> None:
    desk = FakeDesk(held(1), held(2), held(3))
    assert order(desk, "receive", {"queue": ORDERS})[1]["message"]["lookup_id"] == 1
    third = order(desk, "receive", {"queue": ORDERS, "lookup_id": 3})
    assert third[1]["message"]["label"] == "order 3"
    assert order(desk, "receive", {"queue": ORDERS, "wait_s": 1.5})[1]["message"]["lookup_id"] == 2
    assert order(desk, "receive", {"queue": ORDERS}) == (200, {"message": None})
    assert [call[2:] for call in desk.asked] == [(None, 0.0), (3, 0.0), (None, 1.5), (None, 0.0)]


def test_the_others() -> None:
    desk = FakeDesk(held(1), held(2))
    assert order(desk, "move", ORDERED["move"]) == (
        200,
        {"queue": ORDERS, "to": f"{ORDERS};retry", "lookup_id": 2},
    )
    assert order(desk, "delete", {"queue": ORDERS}) == (200, {"deleted": ORDERS, "messages": 1})
    assert order(desk, "purge", {"queue": ORDERS}) == (200, {"queue": ORDERS, "purged": 1})
    whole = {"queue": "private$/New", "transactional": True, "topic": "new", "journal": "new.j"}
    assert order(desk, "create", whole) == (200, {"created": "private$\\New"})
    first = desk.asked[-1]
    assert first == ("create", "private$\\New", True, "new", "new.j")
    little = {"queue": "other", "topic": None, "journal": None}
    assert order(desk, "create", little) == (200, {"created": "other"})
    assert desk.asked[-1] == ("create", "other", False, None, None)


@pytest.mark.parametrize("queue", [";deadletter", "orders;journal", "orders;retry"])
def test_only_a_queue_can_be_made(queue: str) -> None:
    desk = FakeDesk()
    assert order(desk, "create", {"queue": queue})[0] == 400
    assert desk.asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"queue"',
        b"\xff\xfe",
        b'{"queue": "\xff"}',
        b'{"queue": "q"} {}',
        b'{"queue": NaN}',
        b"[" * 60_000,
        b'{"queue": "q", "x": ' + b"[" * 60_000,
        {},
        {"queue": None},
        {"queue": 7},
        {"queue": ["q"]},
        {"queue": ""},
        {"queue": "private$"},
        {"queue": "q" * 513},
        {"queue": "q\udcff;\udcff;"},
        {"queue": "q", "Queue": "q"},
        {"queue": "q", "force": True},
    ],
    ids=lambda body: str(body)[:40],
)
@pytest.mark.parametrize("name", ORDERED)
def test_a_bad_body_is_refused_and_not_tried(name: str, body: object) -> None:
    desk = FakeDesk()
    status, data = order(desk, name, body)
    assert (status, set(data)) == (400, {"error"})
    assert len(data["error"]) < 1000
    assert desk.asked == []


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("receive", {"wait_s": -1}),
        ("receive", {"wait_s": 60.001}),
        ("receive", {"wait_s": 1e999}),
        ("receive", {"wait_s": 10**400}),
        ("receive", {"wait_s": "5"}),
        ("receive", {"wait_s": True}),
        ("receive", {"lookup_id": -1}),
        ("receive", {"lookup_id": 2**64}),
        ("receive", {"lookup_id": 10**400}),
        ("receive", {"lookup_id": "1"}),
        ("receive", {"lookup_id": 1.5}),
        ("receive", {"lookup_id": True}),
        ("receive", {"lookup_id": 1, "wait_s": 1}),
        ("receive", {"limit": 1}),
        ("move", {"lookup_id": None}),
        ("move", {"lookup_id": 2**64}),
        ("move", {"to": None}),
        ("move", {"to": ""}),
        ("move", {"to": "a\\b\\c"}),
        ("create", {"transactional": None}),
        ("create", {"transactional": 1}),
        ("create", {"topic": ""}),
        ("create", {"topic": "t" * 513}),
        ("create", {"journal": {}}),
        ("delete", {"force": 1}),
    ],
)
def test_bad_values_are_refused_and_not_tried(name: str, more: dict[str, Any]) -> None:
    desk = FakeDesk()
    status, data = order(desk, name, ORDERED[name] | more)
    assert (status, set(data)) == (400, {"error"})
    assert desk.asked == []


def test_a_body_that_is_too_large() -> None:
    desk = FakeDesk()
    status, _ = order(desk, "purge", b'{"queue": "q"' + b" " * 65_536 + b"}")
    assert status == 413
    assert desk.asked == []


# -- waiting ----------------------------------------------------------------------------------


def raw_receive(url: str) -> tuple[str, int, bytes]:
    address = urlsplit(url)
    body = json.dumps({"queue": ORDERS, "wait_s": 60}).encode()
    head = "POST /api/queues/receive HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {TOKEN}\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    return str(address.hostname), address.port or 0, head.encode() + body


@pytest.mark.parametrize("rudely", [False, True])
def test_who_goes_while_it_waits_takes_nothing(
    rudely: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    desk = FakeDesk()

    async def run() -> None:
        async with admin_server(FakeAppliance(desk)) as url:
            host, port, request = raw_receive(url)
            _, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            await asyncio.wait_for(desk.waiting.wait(), 10)
            assert not desk.gone.is_set()
            if rudely:
                writer.transport.abort()
            else:
                writer.close()
            await asyncio.wait_for(desk.gone.wait(), 10)

    asyncio.run(run())


def test_a_server_that_stops_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.adapters.net import admin_server as server

    monkeypatch.setattr(server, "SHUTDOWN_TIMEOUT_S", 0.05)
    desk = FakeDesk()

    async def run() -> None:
        async with admin_server(FakeAppliance(desk)) as url:
            host, port, request = raw_receive(url)
            _, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            await asyncio.wait_for(desk.waiting.wait(), 10)
        await asyncio.wait_for(desk.gone.wait(), 10)
        writer.close()

    asyncio.run(run())


# -- what can go wrong ------------------------------------------------------------------------

EVERY: list[tuple[str, object]] = [
    ("/api/queues", None),
    (HERE, None),
    (f"{HERE}&lookup_id=1", None),
    *((f"/api/queues/{name}", body) for name, body in ORDERED.items()),
]


@pytest.mark.parametrize(("path", "body"), EVERY)
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Refused(Status.QUEUE_NOT_FOUND, "q"), 404),
        (Refused(Status.MESSAGE_NOT_FOUND), 404),
        (Refused(Status.SHARING_VIOLATION), 409),
        (Refused(Status.QUEUE_EXISTS, "q"), 409),
        (SinkUnavailable("Kafka: timed out"), 503),
        (Unavailable("not yet"), 503),
        (ConfigError("two entries", where="m.yaml:3:5"), 400),
    ],
)
def test_faults(path: str, body: object, fault: Exception, status: int) -> None:
    desk = FakeDesk(held(1))
    desk.fault = fault
    found, data = ask(desk, path, body)
    assert (found, data["error"]) == (status, str(fault))
    if isinstance(fault, Refused):
        assert data["status"] == fault.status.name
        assert data["code"] == f"0x{fault.status:08X}"


def test_a_refusal_has_name_and_number() -> None:
    assert order(FakeDesk(), "purge", {"queue": "nobody"}) == (
        404,
        {
            "error": "queue not found (0xC00E0003): nobody",
            "status": "QUEUE_NOT_FOUND",
            "code": "0xC00E0003",
        },
    )


@pytest.mark.parametrize(("path", "body"), EVERY)
def test_before_the_queues_are_there(path: str, body: object) -> None:
    status, data = ask(None, path, body)
    assert (status, data["error"][:7]) == (503, "not yet")


@pytest.mark.parametrize(("path", "body"), EVERY)
def test_a_bug_is_logged_and_not_shown(
    path: str, body: object, caplog: pytest.LogCaptureFixture
) -> None:
    desk = FakeDesk(held(1))
    desk.fault = RuntimeError("a bug of ours")
    with caplog.at_level(logging.ERROR):
        status, data = ask(desk, path, body)
    assert (status, "a bug of ours" in str(data)) == (500, False)
    assert "a bug of ours" in caplog.text


# -- who may ----------------------------------------------------------------------------------


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "admin.token"
    path.write_text("s3cret\n")
    return path


@pytest.mark.parametrize("name", ORDERED)
def test_writing_needs_the_token(name: str, token: Path) -> None:
    desk = FakeDesk(held(1), held(2))
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}):
        assert order(desk, name, ORDERED[name], token_file=token, **given)[0] == 401
    assert desk.asked == []
    right = {"Authorization": "Bearer s3cret"}
    assert order(desk, name, ORDERED[name], token_file=token, **right)[0] == 200


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9180"])
def test_no_page_may_write_without_a_token(name: str, origin: str) -> None:
    desk = FakeDesk(held(1))
    assert order(desk, name, ORDERED[name], Origin=origin)[0] == 401
    assert desk.asked == []


@pytest.mark.parametrize("name", ORDERED)
def test_loopback_may_not_write_without_the_generated_token(name: str) -> None:
    desk = FakeDesk(held(1))
    assert order(desk, name, ORDERED[name], Accept="*/*")[0] == 401
    assert desk.asked == []
    assert order(desk, name, ORDERED[name])[0] == 200


def test_who_may_not_write_is_told_so_before_his_body_is_read(token: Path) -> None:
    assert order(FakeDesk(), "purge", b"{", token_file=token)[0] == 401


def test_the_list_needs_no_token_the_messages_do(token: Path) -> None:
    """A message names its sender, and its body is not for every client of the port."""
    desk = FakeDesk(held(1))
    assert ask(desk, "/api/queues", token_file=token)[0] == 200
    assert ask(desk, HERE, token_file=token)[0] == 401
    assert ids(ask(desk, HERE, token_file=token, Authorization="Bearer s3cret")) == [1]


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_only_by_post(name: str, method: str) -> None:
    """A link or an image in a page must not do it."""
    desk = FakeDesk(held(1))

    async def run() -> int:
        async with admin_server(FakeAppliance(desk)) as url:
            return await asyncio.to_thread(status_of, url, method, f"/api/queues/{name}")

    assert asyncio.run(run()) == 405
    assert desk.asked == []


def status_of(url: str, method: str, path: str) -> int:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_peeked_message_stays() -> None:
    one: Held = held(1)
    desk = FakeDesk(one)
    ask(desk, HERE)
    assert desk.held[ORDERS] == [one]
