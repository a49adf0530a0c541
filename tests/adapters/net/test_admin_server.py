"""The admin port, asked by a real HTTP client."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from bridge.adapters.net.admin_server import AdminServer
from bridge.adapters.telemetry import Telemetry
from bridge.model.errors import ConfigError
from tests.adapters.net.fake_appliance import BEARER, FakeAppliance, admin_server

Ask = Callable[..., Awaitable[tuple[aiohttp.ClientResponse, str]]]


def talk(
    dialogue: Callable[[Ask], Awaitable[None]],
    appliance: FakeAppliance | None = None,
    telemetry: Telemetry | None = None,
) -> None:
    async def run() -> None:
        async with (
            admin_server(appliance or FakeAppliance(), telemetry) as url,
            aiohttp.ClientSession(url) as session,
        ):

            async def ask(
                path: str, method: str = "GET", **options: dict[str, str] | bytes
            ) -> tuple[aiohttp.ClientResponse, str]:
                options.setdefault("headers", BEARER)
                async with session.request(method, path, **options) as answer:  # type: ignore[arg-type]
                    return answer, await answer.text()

            await dialogue(ask)

    asyncio.run(run())


def test_live_and_ready() -> None:
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        answer, text = await ask("/livez")
        assert (answer.status, text) == (200, '{"live": true}\n')
        answer, text = await ask("/readyz")
        assert (answer.status, text) == (200, '{"ready": true, "reasons": []}\n')
        appliance.reasons = ["Kafka is down"]
        answer, text = await ask("/readyz")
        assert (answer.status, text) == (503, '{"ready": false, "reasons": ["Kafka is down"]}\n')
        answer, _ = await ask("/livez")
        assert answer.status == 200

    talk(dialogue, appliance)


def test_status() -> None:
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        answer, _ = await ask("/api/status")
        assert answer.content_type == "application/json"
        assert await answer.json() == appliance.answer

    talk(dialogue, appliance)


def test_trace() -> None:  # design D6
    appliance = FakeAppliance()
    appliance.verdicts = [{"id": "a\\1", "verdict": "accepted"}]

    async def dialogue(ask: Ask) -> None:
        for question in ("id=a%5C1", "label=L%26x", "correlation=00ff"):
            answer, _ = await ask(f"/api/trace?{question}")
            assert answer.status == 200
            assert await answer.json() == {"verdicts": appliance.verdicts}

    talk(dialogue, appliance)
    assert appliance.asked == [("id", "a\\1"), ("label", "L&x"), ("correlation", "00ff")]


@pytest.mark.parametrize(
    "question",
    ["", "?", "?id=", "?topic=orders", "?id=a&label=b", "?id=a&id=b", "?id=a&limit=1", "?ID=a"],
)
def test_trace_takes_one_question(question: str) -> None:
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        answer, text = await ask(f"/api/trace{question}")
        assert answer.status == 400
        assert text == '{"error": "ask with one of id, label, correlation"}\n'

    talk(dialogue, appliance)
    assert appliance.asked == []


def test_trace_while_kafka_is_away() -> None:
    appliance = FakeAppliance()
    appliance.away = "Kafka: reading the trace: timed out"

    async def dialogue(ask: Ask) -> None:
        answer, _ = await ask("/api/trace?id=a")
        assert answer.status == 503
        assert await answer.json() == {"error": appliance.away}

    talk(dialogue, appliance)


def test_metrics() -> None:
    telemetry = Telemetry()
    telemetry.session_opened()

    async def dialogue(ask: Ask) -> None:
        answer, text = await ask("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert "msmq_bridge_sessions_opened_total 1.0" in text

    talk(dialogue, telemetry=telemetry)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/page", "GET", 404),
        ("/api/nothing", "GET", 404),
        ("/livez/", "GET", 404),
        ("/livez", "POST", 405),
        ("/api/status", "DELETE", 405),
        ("/metrics", "OPTIONS", 405),
        ("/livez", "HEAD", 200),
    ],
)
def test_anything_else_is_refused_in_json(path: str, method: str, status: int) -> None:
    async def dialogue(ask: Ask) -> None:
        answer, text = await ask(path, method)
        assert answer.status == status
        assert answer.content_type == "application/json"
        assert ('"error"' in text) == (status != 200)
        assert ("Allow" in answer.headers) == (status == 405)

    talk(dialogue)


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/api/status", "/nothing"])
def test_every_answer_has_the_security_headers(path: str) -> None:
    async def dialogue(ask: Ask) -> None:
        answer, _ = await ask(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Server"] == "msmq-bridge"

    talk(dialogue)


def test_a_bug_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    appliance = FakeAppliance()
    appliance.fails = True

    async def dialogue(ask: Ask) -> None:
        answer, text = await ask("/api/status")
        assert (answer.status, answer.content_type) == (500, "application/json")
        assert "a bug of ours" not in text

    with caplog.at_level(logging.ERROR):
        talk(dialogue, appliance)
    assert "a bug of ours" in caplog.text


def test_a_large_request_is_refused() -> None:
    async def dialogue(ask: Ask) -> None:
        answer, _ = await ask("/livez", headers={"X-Large": "x" * 5000})
        assert answer.status == 400

    talk(dialogue)


def test_a_port_that_is_taken_is_one_line() -> None:
    async def run() -> None:
        async with admin_server(FakeAppliance()) as url:
            port = int(url.rpartition(":")[2])
            second = AdminServer(FakeAppliance(), Telemetry())
            with pytest.raises(ConfigError, match="cannot listen on") as caught:
                await second.start("127.0.0.1", port)
            assert caught.value.where == "listen.admin"
            assert len(str(caught.value).splitlines()) == 1
            await second.stop()

    asyncio.run(run())


def test_stop_frees_the_port() -> None:
    async def run() -> None:
        server = AdminServer(FakeAppliance(), Telemetry())
        address = await server.start("127.0.0.1", 0)
        await server.stop()
        await server.stop()
        host, port = address.split(":")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))

    asyncio.run(run())
