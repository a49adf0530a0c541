r"""`msmq-bridge stream`, against a real admin port and a shard in memory."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.runtime import write_runtime
from bridge.cli.app import main
from bridge.model.message import Message
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server
from tests.adapters.test_stream_desk import Office
from tests.core.messages import ORDERS, OTHER, SENDER, step

Printed = pytest.CaptureFixture[str]


class World:
    """An appliance that was offered messages."""

    def __init__(self, folder: Path, *messages: Message) -> None:
        self.folder, self.messages = folder, messages
        self.token = "s3cret"  # noqa: S105 - of the client
        self.state: dict[str, bytes] = {}

    def run(self, *words: str) -> int:
        return asyncio.run(self._run(*words))

    async def _run(self, *words: str) -> int:
        (self.folder / "server.token").write_text("s3cret")
        (self.folder / "mine.token").write_text(self.token)
        config = self.folder / "bridge.yaml"
        config.write_text(
            "data: state\nlisten: {admin: 0}\nadmin: {token_file: mine.token}\n", "utf-8"
        )
        office, appliance = Office(), FakeAppliance()
        await office.pump.open()
        running = asyncio.create_task(office.pump.run())
        appliance.streams = office.desk
        data, guard = self.folder / "state", self.folder / "server.token"
        try:
            await office.send(*self.messages)
            async with admin_server(appliance, token_file=guard, data=data) as url:
                write_runtime(data, url, 1)
                return await asyncio.to_thread(main, ["stream", *words, "--config", str(config)])
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            self.state = office.log.state


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, step(7), step(8))


def answer(capsys: Printed) -> Any:
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_list(world: World, capsys: Printed) -> None:
    assert world.run("list", "-o", "json") == 0
    told = answer(capsys)
    assert (told["waiting_total"], len(told["waiting"])) == (1, 1)
    row = told["waiting"][0]
    assert (row["source"], row["destination"]) == (str(SENDER), ORDERS)
    assert (row["offered_number"], row["offered_previous"], row["have_number"]) == (7, 6, 0)
    assert "streams" in told
    assert world.run("list", "--waiting", "-o", "yaml") == 0
    assert "offered_number: 7" in capsys.readouterr().out
    assert world.run("list", "--waiting") == 0
    printed = capsys.readouterr().out
    assert "waiting for adoption (1)" in printed
    assert ORDERS in printed


def test_adopt(world: World, capsys: Printed) -> None:
    assert world.run("adopt", str(SENDER), ORDERS, "--yes", "-o", "json") == 0
    told = answer(capsys)
    assert (told["source"], told["number"], told["next"]) == (str(SENDER), 6, 7)
    assert f"stream/{SENDER}/{ORDERS}" in world.state


def test_adopt_asks(world: World, capsys: Printed) -> None:
    assert world.run("adopt", str(SENDER), ORDERS) == 1
    assert "--yes" in capsys.readouterr().err
    assert f"stream/{SENDER}/{ORDERS}" not in world.state


def test_what_does_not_wait_is_not_adopted(world: World, capsys: Printed) -> None:
    assert world.run("adopt", str(OTHER), ORDERS, "--yes") == 1
    assert "no stream of" in capsys.readouterr().err


def test_forget(tmp_path: Path, capsys: Printed) -> None:
    known = World(tmp_path, step(1))
    assert known.run("forget", str(SENDER), ORDERS) == 1  # it asks
    assert "--yes" in capsys.readouterr().err
    assert known.run("forget", str(SENDER), ORDERS, "--yes", "-o", "json") == 0
    assert answer(capsys)["forgotten"] is True
    assert f"stream/{SENDER}/{ORDERS}" not in known.state
    assert known.run("forget", str(OTHER), ORDERS, "--yes") == 1
    assert "there is no stream of" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("list",), ("adopt", str(SENDER), ORDERS, "-y"), ("forget", str(SENDER), ORDERS, "-y")],
)
def test_all_of_it_needs_the_token(world: World, capsys: Printed, words: tuple[str, ...]) -> None:
    world.token = "wrong"  # noqa: S105
    assert world.run(*words) == 1
    assert "token" in capsys.readouterr().err
    assert f"stream/{SENDER}/{ORDERS}" not in world.state
