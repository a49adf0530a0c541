"""`msmq-bridge init`: what is printed is what a newcomer can type."""

import json
import re
import shlex
from pathlib import Path

import pytest

from bridge.cli.app import main
from tests.docs.test_help import parsed


def test_the_next_steps_are_commands_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my bridge"
    assert main(["init", str(folder)]) == 0
    printed = capsys.readouterr()
    wrote = re.findall(r"(?m)^wrote (.+)$", printed.out)
    assert [Path(path).is_file() for path in wrote] == [True] * 4
    lines = re.findall(r"(?m)^ {7}(msmq-bridge .+)$", printed.out)
    steps = [shlex.split(part) for line in lines for part in line.split(" && ")]
    names = [parsed(words[1:]) for words in steps]
    assert names == [("doctor",), ("serve",), ("send",), ("status",)]
    configs = [words[words.index("--config") + 1] for words in steps if "--config" in words]
    assert configs == [str(folder / "bridge.yaml")] * 3  # the blank in the name does not harm
    assert printed.err == ""


def test_the_mappings_it_writes_are_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"][0] == str(tmp_path / "bridge.yaml")
    assert [set(step) for step in told["next"]] == [{"what", "command"}] * 4
    assert main(["map", "validate", "--config", told["written"][0], "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["queues"] == 2


def test_this_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert (tmp_path / "bridge.yaml").is_file()
    assert "wrote bridge.yaml\n" in capsys.readouterr().out


def test_nothing_is_overwritten_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bridge.yaml").write_text("shards: 4\n")
    assert main(["init", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("or say --force to overwrite them")
    assert [path.name for path in tmp_path.iterdir()] == ["bridge.yaml"]
    assert (tmp_path / "bridge.yaml").read_text() == "shards: 4\n"
    assert main(["init", str(tmp_path), "--force"]) == 0
    assert "shards: 4" not in (tmp_path / "bridge.yaml").read_text()
