"""The commands against hosts that speak MS-MQQP only: Windows XP, and NT 4 and 2000."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.adapters.exports.lines import data_in
from bridge.cli.app import main
from bridge.cli.remote import PASSWORD
from tests.adapters.reader.old_served import OldServed
from tests.adapters.remote_read.world import PLAIN

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=[False, True], ids=["xp", "nt"])
def host(request: pytest.FixtureRequest) -> Iterator[OldServed]:
    with OldServed(is_ancient=request.param).running() as served:
        yield served


@pytest.fixture
def run(
    host: OldServed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.setenv(PASSWORD, "secret")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--host", f"127.0.0.1:{host.port}", "--user", "ann"])
        told = capsys.readouterr()
        return code, told.out, told.err

    return command


def test_list_peek_and_receive(host: OldServed, run: Run) -> None:
    host.fill(3)
    code, out, _ = run("queue", "list", "--queue", PLAIN, "--queue", "nope", "-o", "json")
    assert (code, [row["opens"] for row in json.loads(out)]) == (0, [True, False])
    code, out, _ = run("queue", "peek", PLAIN, "-o", "json")
    assert (code, len(json.loads(out))) == (0, 3)
    code, out, _ = run("queue", "receive", PLAIN, "--count", "2", "--exclusive", "-o", "json")
    assert (code, len(json.loads(out))) == (0, 2)
    assert host.left() == [b"m2"]


def test_export_and_purge(host: OldServed, run: Run, tmp_path: Path) -> None:
    bodies = host.fill(10)
    out = tmp_path / "o.jsonl"
    code, _, err = run("queue", "export", PLAIN, "--out", str(out))
    assert code == 0, err
    assert [data_in(line).body for line in out.read_bytes().splitlines()] == bodies
    assert host.left() == bodies
    taken = tmp_path / "taken.jsonl"
    code, _, err = run("queue", "export", PLAIN, "--out", str(taken), "--receive", "--yes")
    assert code == 0, err
    assert [data_in(line).body for line in taken.read_bytes().splitlines()] == bodies
    assert host.left() == []
    host.fill(2)
    assert run("queue", "purge", PLAIN, "--yes")[0] == 0
    assert host.left() == []


def test_a_lookup_id(host: OldServed, run: Run) -> None:
    """On NT 4 and 2000: one line that says why."""
    host.fill(2)
    _, out, _ = run("queue", "peek", PLAIN, "-o", "json")
    number = str(json.loads(out)[1]["lookup_id"])
    code, out, err = run("queue", "receive", PLAIN, "--lookup-id", number, "-o", "json")
    if host.qm2qm.known > 10:
        assert (code, host.left()) == (0, [b"m0"])
        return
    assert code == 1
    assert "lookup ids need Windows XP or later" in err
    assert len(err.splitlines()) == 1
    assert host.left() == [b"m0", b"m1"]
