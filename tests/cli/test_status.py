"""`msmq-bridge status` against the real admin server with a fake appliance behind it."""

import asyncio
import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bridge.adapters.runtime import write_runtime
from bridge.cli.app import main
from tests.adapters.net.fake_appliance import FakeAppliance, admin_server


def run_status(folder: Path, appliance: FakeAppliance, *options: str) -> int:
    (folder / "bridge.yaml").write_text("data: state\nlisten: {admin: 0}\n")

    async def run() -> int:
        async with admin_server(appliance) as url:
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
