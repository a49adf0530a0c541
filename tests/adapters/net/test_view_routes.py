"""What the web page asks: pages with bounds, figures, writes for who may."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bridge.adapters.kafka.planning import ChangesFailed
from bridge.adapters.net.view_routes import LISTS
from bridge.adapters.paging import Question
from bridge.core.reload import OrderBreak, OrderWouldBreak
from bridge.model.errors import ConfigError, Unavailable
from tests.adapters.fake_pumps import connection
from tests.adapters.net.fake_appliance import BEARER, FakeAppliance, admin_server

Ask = Callable[..., Awaitable[tuple[int, Any]]]


def talk(
    dialogue: Callable[[Ask], Awaitable[None]],
    appliance: FakeAppliance,
    token_file: Path | None = None,
) -> None:
    async def run() -> None:
        async with (
            admin_server(appliance, token_file=token_file) as url,
            aiohttp.ClientSession(url) as session,
        ):

            async def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
                headers = headers or ({} if token_file else BEARER)
                async with session.request(method, path, headers=headers) as answer:
                    return answer.status, await answer.json()

            await dialogue(ask)

    asyncio.run(run())


def test_every_list_is_paged() -> None:
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        for path, name in LISTS.items():
            query = "offset=5&limit=7&search=a%20b&order=desc"
            status, page = await ask(f"{path}?{query}")
            assert (status, page) == (200, {"rows": [], "offset": 5, "found": 0, "total": 0})
            asked = Question(offset=5, limit=7, search="a b", descending=True)
            assert appliance.watch.asked[-1] == ("page", name, asked)
            await ask(path)
            assert appliance.watch.asked[-1] == ("page", name, Question())

    talk(dialogue, appliance)


def test_sessions() -> None:
    appliance = FakeAppliance()
    appliance.watch.connections = [connection(number) for number in range(30)]

    async def dialogue(ask: Ask) -> None:
        _, page = await ask("/api/sessions?sort=received&order=desc&limit=2")
        assert [row["received"] for row in page["rows"]] == [29, 28]
        assert (page["found"], page["total"]) == (30, 30)

    talk(dialogue, appliance)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("limit=0", "from 1 to 200"),
        ("limit=201", "from 1 to 200"),
        ("offset=-1", "from 0 to"),
        ("offset=999999999999", "from 0 to"),
        ("order=up", "asc or desc"),
        ("sort=nothing", "no column 'nothing'"),
        (f"search={'x' * 201}", "200 characters"),
        ("page=2", "unknown parameter 'page'"),
        ("limit=1&limit=2", "twice"),
    ],
)
def test_questions_have_bounds(query: str, word: str) -> None:
    async def dialogue(ask: Ask) -> None:
        status, body = await ask(f"/api/streams?{query}")
        assert status == 400
        assert word in body["error"]

    talk(dialogue, FakeAppliance())


def test_figures_and_the_rest() -> None:
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        status, told = await ask("/api/live?since=12.5")
        assert (status, told["ready"]) == (200, True)
        assert (await ask("/api/live"))[0] == 200
        assert (await ask("/api/verdicts"))[1]["verdicts"][0]["verdict"] == "accepted"
        assert (await ask("/api/refusals"))[1] == {"refusals": []}
        assert (await ask("/api/doctor"))[1]["looking"] is True
        assert (await ask("/api/mappings/plan"))[1]["changes"] == []

    talk(dialogue, appliance)
    calls = [("live", 12.5), ("live", 0.0), ("verdicts",), ("refusals",), ("findings",), ("plan",)]
    assert appliance.watch.asked == calls


@pytest.mark.parametrize("since", ["", "now", "nan", "inf", "1e999"])
def test_since_is_a_time(since: str) -> None:
    async def dialogue(ask: Ask) -> None:
        status, body = await ask(f"/api/live?since={since}")
        assert (status, "since" in body["error"]) == (400, True)

    talk(dialogue, FakeAppliance())


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Unavailable("not yet: the cluster"), 503),
        (ConfigError("unknown key", where="m.yaml:1:1"), 400),
        (OrderWouldBreak([OrderBreak("private$\\a", "its topic changes")]), 409),
        (ChangesFailed(["orders: no"], 2), 503),
    ],
)
def test_what_cannot_be_done(fault: Exception, status: int) -> None:
    appliance = FakeAppliance()
    appliance.watch.fault = fault

    async def dialogue(ask: Ask) -> None:
        got, body = await ask("/api/mappings/apply", "POST")
        assert got == status
        assert body["error"] == str(fault)
        assert ("breaks_order" in body) == (status == 409)

    talk(dialogue, appliance)


def test_only_who_may_write_applies(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    appliance = FakeAppliance()

    async def dialogue(ask: Ask) -> None:
        path = "/api/mappings/apply"
        assert (await ask(path, "POST"))[0] == 401
        assert (await ask(path, "POST", Authorization="Bearer wrong"))[0] == 401
        assert (await ask(path, "GET"))[0] == 405
        right = {"Authorization": "Bearer s3cret"}
        assert (await ask(f"{path}?force=2", "POST", **right))[0] == 400
        assert appliance.watch.asked == []
        assert (await ask(path, "POST", **right))[0] == 200
        assert (await ask(f"{path}?force=1", "POST", **right))[0] == 200

    talk(dialogue, appliance, token)
    assert appliance.watch.asked == [("apply", False), ("apply", True)]
