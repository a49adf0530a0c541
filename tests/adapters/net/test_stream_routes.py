"""/api/streams/… of the admin port: what it takes, what it answers, who may ask."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bridge.adapters.net.stream_routes import MAX_DESTINATION
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server
from tests.adapters.test_stream_desk import Office, play
from tests.core.messages import ORDERS, SENDER, step

TOKEN = {"Authorization": "Bearer s3cret"}


def ask(
    tmp_path: Path, method: str, path: str, body: bytes | None = None, *, token: bool = True
) -> tuple[int, Any]:
    (tmp_path / "token").write_text("s3cret")
    told: list[tuple[int, Any]] = []

    async def scene(office: Office) -> None:
        await office.send(step(7), step(1, destination=ODD))
        appliance = FakeAppliance()
        appliance.streams = office.desk
        async with (
            admin_server(appliance, token_file=tmp_path / "token", data=tmp_path) as url,
            aiohttp.ClientSession(headers=TOKEN if token else {}) as client,
            client.request(method, f"{url}{path}", data=body) as answer,
        ):
            told.append((answer.status, json.loads(await answer.text())))

    play(scene)
    return told[0]


ODD = "DIRECT=OS:bridge01\\private$\\orders\ud800"


def test_what_waits(tmp_path: Path) -> None:
    status, data = ask(tmp_path, "GET", "/api/streams/waiting")
    assert (status, data["total"], len(data["waiting"])) == (200, 1, 1)
    assert data["waiting"][0]["destination"] == ORDERS
    assert ask(tmp_path, "GET", "/api/streams/waiting?limit=1")[0] == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/streams/waiting"),
        ("POST", "/api/streams/adopt"),
        ("POST", "/api/streams/forget"),
    ],
)
def test_all_of_it_needs_the_token(tmp_path: Path, method: str, path: str) -> None:
    body = json.dumps({"source": str(SENDER), "destination": ORDERS}).encode()
    status, data = ask(tmp_path, method, path, body if method == "POST" else None, token=False)
    assert status == 401
    assert ORDERS not in json.dumps(data)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 10_000,
        json.dumps({"source": str(SENDER)}).encode(),
        json.dumps({"source": "x", "destination": ORDERS}).encode(),
        json.dumps({"source": str(SENDER), "destination": ""}).encode(),
        json.dumps({"source": str(SENDER), "destination": "x" * (MAX_DESTINATION + 1)}).encode(),
        json.dumps({"source": str(SENDER), "destination": ORDERS, "more": 1}).encode(),
    ],
)
@pytest.mark.parametrize("action", ["adopt", "forget"])
def test_wrong_bodies(tmp_path: Path, action: str, body: bytes) -> None:
    status, data = ask(tmp_path, "POST", f"/api/streams/{action}", body)
    assert status == 400
    assert data["error"]


def test_adopt(tmp_path: Path) -> None:
    body = json.dumps({"source": str(SENDER).upper(), "destination": ORDERS}).encode()
    status, data = ask(tmp_path, "POST", "/api/streams/adopt", body)
    assert (status, data["next"]) == (200, 7)


@pytest.mark.parametrize("action", ["adopt", "forget"])
def test_what_is_not_there(tmp_path: Path, action: str) -> None:
    """Half a surrogate pair is legal in a name, and a name like another."""
    body = json.dumps({"source": str(SENDER), "destination": ODD}).encode()
    status, data = ask(tmp_path, "POST", f"/api/streams/{action}", body)
    assert (status, "stream list" in data["error"]) == (404, True)
