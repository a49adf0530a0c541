"""Asking a running appliance for its queues: the answer, or one line why there is none."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from bridge.adapters.config_files import load_config
from bridge.adapters.net import queue_client as module
from bridge.adapters.net.queue_client import QueueClient, QueueRefused
from bridge.adapters.runtime import write_runtime
from bridge.config import Config
from bridge.core.reload import OrderBreak, OrderWouldBreak
from bridge.core.retained.errors import Refused, Status
from bridge.model.errors import BridgeError, ConfigError, SinkUnavailable, Unavailable
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server
from tests.adapters.net.fake_desk import ORDERS, FakeDesk, held

Result = TypeVar("Result")


def config_of(folder: Path) -> Config:
    (folder / "bridge.yaml").write_text("data: state\nlisten: {admin: 0}\n")
    return load_config(folder / "bridge.yaml")


def with_client(
    folder: Path, desk: FakeDesk | None, use: Callable[[QueueClient], Result], token: str = ""
) -> Result:
    config = config_of(folder)
    file = folder / "admin.token"
    file.write_text("s3cret")
    if token:
        mine = folder / "mine.token"
        mine.write_text(token)
        config = replace(config, admin=replace(config.admin, token_file=mine))

    async def run() -> Result:
        guard, data = (file if token else None), folder / "state"
        async with admin_server(FakeAppliance(desk), token_file=guard, data=data) as url:
            write_runtime(data, url, 1)
            return await asyncio.to_thread(lambda: use(QueueClient(config)))

    return asyncio.run(run())


def test_every_call(tmp_path: Path) -> None:
    desk = FakeDesk(*(held(n) for n in (1, 2, 3, 4)))

    def use(client: QueueClient) -> None:
        assert [queue["name"] for queue in client.queues()] == [ORDERS]
        messages, more = client.peek("private$/orders", limit=2, after=1)
        assert ([m["lookup_id"] for m in messages], more) == ([2, 3], True)
        assert client.peek(ORDERS, limit=1, lookup_id=4)[0][0]["label"] == "order 4"
        taken = client.receive(ORDERS)
        assert taken is not None
        assert taken["lookup_id"] == 1
        assert client.receive(ORDERS, lookup_id=3) is not None
        assert client.move(ORDERS, 2, f"{ORDERS};a")["lookup_id"] == 3
        assert client.purge(ORDERS)["purged"] == 1
        assert client.receive(ORDERS) is None
        made = client.create("New", transactional=True, topic=None, journal="j")
        assert made == {"created": "New"}
        assert client.delete(ORDERS) == {"deleted": ORDERS, "messages": 0}

    with_client(tmp_path, desk, use)
    assert desk.asked[-2] == ("create", "New", True, None, "j")


def test_a_request_waits_only_so_long(tmp_path: Path) -> None:
    desk = FakeDesk(held(1))
    with_client(tmp_path, desk, lambda client: client.receive(ORDERS, wait_s=3600))
    assert desk.asked == [("receive", ORDERS, None, module.WAIT_S)]


def test_texts_that_are_none(tmp_path: Path) -> None:
    desk = FakeDesk()

    def use(client: QueueClient) -> None:
        with pytest.raises(QueueRefused):  # asked for all the same
            client.peek("q\udcff", limit=1)
        with pytest.raises(ConfigError):
            client.purge("q\udcff")

    with_client(tmp_path, desk, use)


def test_with_the_token(tmp_path: Path) -> None:
    assert with_client(tmp_path, FakeDesk(), lambda c: c.purge(ORDERS), "s3cret")["purged"] == 0


def test_with_a_wrong_token(tmp_path: Path) -> None:
    desk = FakeDesk(held(1))
    with pytest.raises(ConfigError, match=r"does not let us write.*token") as caught:
        with_client(tmp_path, desk, lambda client: client.purge(ORDERS), "other")
    assert caught.value.where == "admin.token_file"
    assert desk.asked == []


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        (Refused(Status.SHARING_VIOLATION, "q"), QueueRefused, r"violation \(0xC00E0009\): q"),
        (OrderWouldBreak([OrderBreak("q", "x")]), QueueRefused, "order of live streams"),
        (ConfigError("bad", where="m.yaml:1:2"), ConfigError, "^m.yaml:1:2: bad$"),
        (SinkUnavailable("Kafka: away"), Unavailable, "cannot do it: Kafka: away"),
        (RuntimeError("x"), Unavailable, "cannot do it: internal error, see the log"),
    ],
)
def test_what_can_go_wrong(
    tmp_path: Path, fault: Exception, kind: type[BridgeError], told: str
) -> None:
    desk = FakeDesk()
    desk.fault = fault
    for call in (
        lambda client: client.queues(),
        lambda client: client.peek(ORDERS, limit=1),
        lambda client: client.delete(ORDERS),
    ):
        with pytest.raises(kind, match=told):
            with_client(tmp_path, desk, call)


def test_a_refusal_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(QueueRefused) as caught:
        with_client(tmp_path, FakeDesk(), lambda client: client.purge("nobody"))
    assert caught.value.status == "QUEUE_NOT_FOUND"


def test_not_yet(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="not yet"):
        with_client(tmp_path, None, lambda client: client.queues())


def test_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no appliance is running"):
        QueueClient(config_of(tmp_path))


@pytest.mark.parametrize(
    "told",
    [[], {}, {"queues": {}, "messages": {}}, {"queues": [1], "messages": [1], "message": "x"}],
)
def test_somebody_else_there(tmp_path: Path, told: Any) -> None:
    config = config_of(tmp_path)
    body = json.dumps(told).encode()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def use(client: QueueClient) -> None:
        with pytest.raises(Unavailable, match="is not an msmq-bridge"):
            client.queues()
        with pytest.raises(Unavailable, match="is not an msmq-bridge"):
            client.peek(ORDERS, limit=1)
        if told != {} and "message" in told:
            with pytest.raises(Unavailable, match="is not an msmq-bridge"):
                client.receive(ORDERS)

    async def run() -> None:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            write_runtime(tmp_path / "state", f"http://127.0.0.1:{port}", 1)
            await asyncio.to_thread(lambda: use(QueueClient(config)))

    asyncio.run(run())
