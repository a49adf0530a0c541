"""Whatever is wrong with a file: one line that names the right line, exit code 1, no traceback."""

import re
from pathlib import Path

import pytest

from bridge.cli import app as program
from bridge.cli.app import main
from tests.adapters.broken_files import (
    GOOD_CONFIG,
    GOOD_MAPPINGS,
    Broken,
    broken_configs,
    broken_mappings,
)

MAPPINGS = broken_mappings()
CONFIGS = broken_configs()


@pytest.fixture(autouse=True)
def _with_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "COMMANDS", tuple(dict.fromkeys((*program.COMMANDS, "map"))))


def complaints(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["map", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines
    for line in lines:
        assert line.startswith("msmq-bridge: error: ")
        assert "; " in line  # how to mend it
        assert line.isprintable()
        assert len(line) < 1000
    return lines


def names(complaint: str, path: Path, line: int) -> bool:
    place = rf"{line}:\d+: " if line else r"(\d+:\d+: )?"
    return (
        re.match(rf"msmq-bridge: error: {re.escape(str(path))}:\s?{place}", complaint) is not None
    )


def test_the_good_ones_are_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mappings.yaml").write_text(GOOD_MAPPINGS)
    config = tmp_path / "bridge.yaml"
    config.write_text(GOOD_CONFIG)
    assert main(["map", "validate", "--config", str(config)]) == 0


def test_there_are_200_of_them() -> None:
    assert len(MAPPINGS) + len(CONFIGS) >= 200
    assert len({case.data for case in MAPPINGS}) == len(MAPPINGS)
    assert len({case.data for case in CONFIGS}) == len(CONFIGS)
    assert broken_mappings() == MAPPINGS  # the same ones in every run
    kinds = {case.name.split("-")[2] for case in (*MAPPINGS, *CONFIGS) if case.name[-1].isdigit()}
    assert len(kinds) >= 11


@pytest.mark.parametrize("case", MAPPINGS, ids=lambda case: case.name)
def test_a_broken_mapping(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken) -> None:
    path = tmp_path / "mappings.yaml"
    path.write_bytes(case.data)
    (complaint,) = complaints(capsys, "list", "--mappings", str(path))
    assert names(complaint, path, case.line), complaint
    every = complaints(capsys, "validate", str(path))
    assert complaint in every


@pytest.mark.parametrize("case", CONFIGS, ids=lambda case: case.name)
def test_a_broken_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Broken
) -> None:
    (tmp_path / "mappings.yaml").write_text(GOOD_MAPPINGS)
    path = tmp_path / "bridge.yaml"
    path.write_bytes(case.data)
    (complaint,) = complaints(capsys, "list", "--config", str(path))
    assert names(complaint, path, case.line), complaint
