"""`msmq-bridge status` against the real admin server with a fake appliance behind it."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from bridge.adapters.runtime import write_runtime
from bridge.cli import status as module
from bridge.cli.app import main
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server
from tests.cli.conftest import Served
from tests.cli.program import run


def run_status(folder: Path, appliance: FakeAppliance, *options: str) -> int:
    (folder / "bridge.yaml").write_text("data: state\nlisten: {admin: 0}\n")

    async def run() -> int:
        async with admin_server(appliance, data=folder / "state") as url:
            write_runtime(folder / "state", url, 1)
            arguments = ["status", "--config", str(folder / "bridge.yaml"), *options]
            return await asyncio.to_thread(main, arguments)

    return asyncio.run(run())


def test_json_is_the_answer_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    appliance = FakeAppliance()
    assert run_status(tmp_path, appliance, "-o", "json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == appliance.answer
    assert printed.err == ""


def test_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    appliance = FakeAppliance()
    assert run_status(tmp_path, appliance, "-o", "yaml") == 0
    assert YAML(typ="safe", pure=True).load(capsys.readouterr().out) == appliance.answer


def test_a_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_status(tmp_path, FakeAppliance()) == 0
    out = capsys.readouterr().out
    for word in ("ready", "yes", "BRIDGE01, bridge01", "127.0.0.1:1801", "broker1:9092"):
        assert word in out
    for word in ("10.0.0.7:2000", "OPEN", "messages", "12", "streams"):
        assert word in out


def test_a_short_answer_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    appliance = FakeAppliance()
    appliance.answer = {}
    assert run_status(tmp_path, appliance) == 0
    assert "no" in capsys.readouterr().out


def test_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("data: state\nlisten: {admin: 0}\n")
    assert main(["status", "-c", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("msmq-bridge: error: no appliance is running")
    assert len(printed.err.splitlines()) == 1


def test_a_stale_file_is_one_line_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_status(tmp_path, FakeAppliance())
    capsys.readouterr()
    assert main(["status", "-c", str(tmp_path / "bridge.yaml")]) == 1
    error = capsys.readouterr().err
    assert "no appliance is running at http://127.0.0.1:" in error
    assert len(error.splitlines()) == 1


# -- again and again --------------------------------------------------------------------------


def looks(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], None]) -> None:
    """What happens while `--watch` waits; then Ctrl-C."""
    left = list(steps)

    def sleep(seconds: float) -> None:
        assert seconds == 0.5
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))  # not every thread's sleep


def test_watch_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    appliance = FakeAppliance()
    looks(monkeypatch, lambda: appliance.answer.update(streams=4))
    assert run_status(tmp_path, appliance, "--watch", "--every", "0.5", "-o", "json") == 0
    told = capsys.readouterr().out.replace("}\n{", "}\x00{").split("\x00")
    assert [json.loads(text)["streams"] for text in told] == [3, 4]


def test_watch_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, height=200)
    monkeypatch.setattr(module, "console", lambda: screen)
    appliance = FakeAppliance()

    def go_away() -> None:
        (tmp_path / "state" / "runtime.json").rename(tmp_path / "away")

    def come_back() -> None:
        (tmp_path / "away").rename(tmp_path / "state" / "runtime.json")
        appliance.answer["topic_prefix"] = "again"

    looks(monkeypatch, go_away, come_back)
    assert run_status(tmp_path, appliance, "--watch", "--every", "0.5") == 0
    assert isinstance(screen.file, io.StringIO)
    drawn = screen.file.getvalue()
    assert drawn.index("BRIDGE01") < drawn.index("no appliance is running") < drawn.index("again")
    assert "\x1b[2J" not in drawn  # it is drawn over, not cleared: no flicker
    assert drawn.rfind("\x1b[?25h") > drawn.rfind("\x1b[?25l")  # the cursor is back


def test_watch_where_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("data: state\nlisten: {admin: 0}\n")
    assert main(["status", "-c", str(path), "--watch"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_long_lists_are_cut_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    appliance = FakeAppliance()
    appliance.answer["sessions"] = [{"peer": f"10.0.0.7:{n}", "state": "OPEN"} for n in range(25)]
    appliance.answer["queues"] = [{"queue": "q", "topic": "orders"}]
    appliance.answer["topics"] = [{"topic": "orders"}, {"topic": "by-label"}]
    assert run_status(tmp_path, appliance) == 0
    out = capsys.readouterr().out
    assert out.count("10.0.0.7:") == 20
    assert "and 5 more" in out
    assert "by-label" in out
    assert out.count("orders") == 1


# -- the real one -----------------------------------------------------------------------------


def asked(served: Served) -> dict[str, Any]:
    done = run("status", "--config", str(served.config), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return dict(json.loads(done.stdout))


@pytest.mark.kafka
def test_a_real_appliance(appliance: Served) -> None:
    before = asked(appliance)
    options = ["--queue", "private$\\orders", "--transactional", "--count", "200"]
    assert run("send", "--host", appliance.binary, *options).returncode == 0
    after = asked(appliance)
    assert after["ready"] is True  # design 3.2
    assert set(after["queue_manager"]) == {"id", "names"}
    assert after["listeners"]["binary"] == appliance.binary
    assert after["kafka"]["bootstrap.servers"] == appliance.bootstrap
    assert after["kafka_state"] == "up"
    assert after["totals"]["messages"] - before["totals"]["messages"] == 200
    assert after["rates"]["messages_per_second"] > 0
    assert after["pending"] == {"messages": 0, "oldest_s": 0.0}
    rows = {row["queue"]: row for row in after["queues"]}
    orders = rows["private$\\orders"]
    assert orders["topic"] == appliance.topic("orders")
    assert orders["records"] >= 200
    assert orders["per_second"] > 0
    (shard,) = after["shard_states"]
    assert (shard["state"], shard["pending_messages"]) == ("open", 0)
    assert after["streams"] == len(after["stream_list"]) == shard["streams"]
    assert any(row["number"] == 200 for row in after["stream_list"])
    assert after["acks_by_peer"] == before["acks_by_peer"]
    printed = run("status", "--config", str(appliance.config)).stdout
    for word in ("kafka state", "private$\\orders", "shard states", "messages per second"):
        assert word in printed
