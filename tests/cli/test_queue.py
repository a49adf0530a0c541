r"""`msmq-bridge queue`, against a real admin port with queues that the test plays."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.retained.service import NotKept
from bridge.adapters.runtime import write_runtime
from bridge.cli.app import main
from bridge.core.retained.errors import Refused, Status
from bridge.model.errors import SinkUnavailable
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server
from tests.adapters.net.fake_desk import ORDERS, FakeDesk, held

Printed = pytest.CaptureFixture[str]


class World:
    """An appliance whose configuration is in `folder`; `token` is the one that the client has."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.desk = folder, FakeDesk(*(held(n, body=b"%d" % n) for n in (1, 2, 3)))
        self.token: str | None = None
        self.is_guarded = False

    def run(self, *words: str) -> int:
        return asyncio.run(self._run(*words))

    async def _run(self, *words: str) -> int:
        (self.folder / "server.token").write_text("s3cret")
        admin = ""
        if self.token is not None:
            (self.folder / "mine.token").write_text(self.token)
            admin = "admin: {token_file: mine.token}\n"
        config = self.folder / "bridge.yaml"
        config.write_text(f"data: state\nlisten: {{admin: 0}}\n{admin}")
        guard = self.folder / "server.token" if self.is_guarded else None
        data = self.folder / "state"
        async with admin_server(FakeAppliance(self.desk), token_file=guard, data=data) as url:
            write_runtime(data, url, 1)
            return await asyncio.to_thread(main, ["queue", *words, "--config", str(config)])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def answer(capsys: Printed) -> Any:
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def complaint(capsys: Printed) -> str:
    """One line, and nothing where a result would be."""
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("msmq-bridge: error: ")
    return line


# -- looking ----------------------------------------------------------------------------------


def test_list(world: World, capsys: Printed) -> None:
    assert world.run("list", "-o", "json") == 0
    (queue,) = answer(capsys)
    assert (queue["name"], queue["mode"]) == (ORDERS, "retain")
    assert world.run("list") == 0
    assert ORDERS in capsys.readouterr().out


def test_peek_leaves_everything(world: World, capsys: Printed) -> None:
    assert world.run("peek", ORDERS, "-o", "json") == 0
    rows = answer(capsys)
    assert [row["value"] for row in rows] == ["1", "2", "3"]
    assert len(world.desk.held[ORDERS]) == 3


def test_peek_says_how_to_go_on(world: World, capsys: Printed) -> None:
    assert world.run("peek", ORDERS, "--limit", "2") == 0
    assert capsys.readouterr().err == "there are more; --after 2 shows the next ones\n"
    assert world.run("peek", ORDERS, "--after", "2", "-o", "json") == 0
    (row,) = answer(capsys)
    assert row["lookup_id"] == 3


def test_peek_at_one(world: World, capsys: Printed) -> None:
    assert world.run("peek", ORDERS, "--lookup-id", "2") == 0
    assert "order 2" in capsys.readouterr().out
    assert world.run("peek", ORDERS, "--lookup-id", "9") == 1
    assert "0xC00E0088" in complaint(capsys)


def test_a_body_alone(world: World, tmp_path: Path) -> None:
    assert world.run("peek", ORDERS, "--lookup-id", "2", "--raw", str(tmp_path / "b")) == 0
    assert (tmp_path / "b").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("peek", ORDERS, "--raw", "f", "--limit", "2"), "--limit"),
        (("peek", ORDERS, "--lookup-id", "1", "--after", "1"), "--after"),
        (("peek", ORDERS, "--lookup-id", str(1 << 64)), "--lookup-id"),
        (("receive", ORDERS, "--lookup-id", "1", "--wait", "1"), "--wait"),
        (("receive", ORDERS, "--lookup-id", "1", "-n", "2"), "--count"),
        (("receive", ORDERS, "--raw", "f", "-n", "2"), "--raw"),
        (("move", ORDERS, "--to", "x", "--lookup-id", str(1 << 64)), "--lookup-id"),
    ],
)
def test_what_does_not_go_together(
    world: World, capsys: Printed, words: tuple[str, ...], option: str
) -> None:
    assert world.run(*words) == 1
    assert option in complaint(capsys)
    assert not world.desk.asked


# -- changing ---------------------------------------------------------------------------------


def test_receive_takes_them_in_order(world: World, capsys: Printed) -> None:
    assert world.run("receive", ORDERS, "-n", "9", "-o", "json") == 0
    assert [row["value"] for row in answer(capsys)] == ["1", "2", "3"]
    assert world.run("receive", ORDERS) == 1
    assert "there is no message" in complaint(capsys)


def test_what_was_taken_is_shown_whatever_came_then(world: World, capsys: Printed) -> None:
    world.desk.fault, world.desk.fails_after = SinkUnavailable("Kafka: away"), 2
    assert world.run("receive", ORDERS, "-n", "3", "-o", "json") == 1
    printed = capsys.readouterr()
    assert [row["value"] for row in json.loads(printed.out)] == ["1", "2"]
    assert "Kafka: away" in printed.err


def test_a_file_that_cannot_be_written_takes_nothing(world: World, capsys: Printed) -> None:
    assert world.run("receive", ORDERS, "--raw", "/no/such/folder/body") == 1
    assert "--raw" in complaint(capsys)
    assert len(world.desk.held[ORDERS]) == 3


def test_purge_asks(world: World, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    for words in (("purge", ORDERS), ("delete", ORDERS)):
        assert world.run(*words) == 1
        assert "--yes" in complaint(capsys)
    assert not world.desk.asked
    assert world.run("purge", ORDERS, "--yes", "-o", "json") == 0
    assert answer(capsys) == {"queue": ORDERS, "purged": 3}


def test_move_create_delete(world: World, capsys: Printed) -> None:
    assert world.run("move", ORDERS, "--lookup-id", "2", "--to", f"{ORDERS};x", "-o", "json") == 0
    assert answer(capsys) == {"queue": ORDERS, "to": f"{ORDERS};x", "lookup_id": 3}
    new = "private$\\New"
    assert world.run("create", new, "--transactional", "--journal", "j", "-o", "json") == 0
    assert answer(capsys) == {"created": new}
    assert world.desk.asked[-1] == ("create", new, True, None, "j")
    assert world.run("delete", ORDERS, "-y", "-o", "json") == 0
    assert answer(capsys) == {"deleted": ORDERS, "messages": 2}


def test_a_refusal_has_its_number(world: World, capsys: Printed) -> None:
    assert world.run("purge", "private$\\nobody", "--yes") == 1
    assert "0xC00E0003" in complaint(capsys)
    world.desk.fault = Refused(Status.SHARING_VIOLATION, ORDERS)
    assert world.run("receive", ORDERS) == 1
    assert "0xC00E0009" in complaint(capsys)


@pytest.mark.parametrize("token", [None, "wrong"])
@pytest.mark.parametrize(
    "words",
    [
        ("receive", ORDERS),
        ("purge", ORDERS, "--yes"),
        ("move", ORDERS, "--lookup-id", "1", "--to", f"{ORDERS};x"),
        ("create", "private$\\new"),
        ("delete", ORDERS, "--yes"),
    ],
    ids=lambda words: words[0],
)
def test_without_the_token_one_may_only_list(
    world: World, capsys: Printed, words: tuple[str, ...], token: str | None
) -> None:
    """Messages name their senders and have bodies: to look at them needs the token, too."""
    world.is_guarded, world.token = True, token
    assert world.run(*words) == 1
    assert "admin.token_file" in complaint(capsys)
    assert not world.desk.asked
    assert world.run("peek", ORDERS) == 1
    assert "does not let us read" in complaint(capsys)
    assert world.run("list") == 0


def test_with_it_one_may_write(world: World, capsys: Printed) -> None:
    world.is_guarded, world.token = True, "s3cret"
    assert world.run("purge", ORDERS, "--yes", "-o", "yaml") == 0
    assert "purged: 3" in capsys.readouterr().out


def test_nobody_is_there(tmp_path: Path, capsys: Printed) -> None:
    config = tmp_path / "bridge.yaml"
    config.write_text("data: state\nlisten: {admin: 0}\n")
    assert main(["queue", "list", "--config", str(config)]) == 1
    assert complaint(capsys)


@pytest.mark.parametrize("word", ["peek", "receive"])
def test_a_forward_queue_is_named_as_such(
    world: World, capsys: Printed, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    async def refuse(queue: str, **_how: Any) -> Any:
        raise NotKept(queue)

    monkeypatch.setattr(world.desk, word, refuse)
    assert world.run(word, ORDERS) == 1
    line = complaint(capsys)
    assert "orders forwards its messages to Kafka and keeps none for readers" in line
    assert "hint: set mode: retain in its mapping" in line
