"""Commands and code of 'what to do': exact, and harmless whatever a name says."""

import ast
import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from typer.main import get_command

from bridge.cli.app import COMMANDS, build
from msmq_jobs.reconcile.remedies import (
    expired_command,
    late_code,
    repair_commands,
    skip_code,
    trace_command,
)
from tests.spark.reconcile.sample import HOSTILE, week

LIVE = "msmq://reader@sales01/;deadxact"
SOURCES = ["--source", "exports/journals", "--source", LIVE]
CONFIG = ["--config", "bridge.yaml"]


def words_of(command: str) -> list[str]:
    """As the shell takes it."""
    asked = ["bash", "-c", f"printf '%s\\0' {command}"]
    told = subprocess.run(asked, capture_output=True, check=True, text=True).stdout
    return told.split("\0")[:-1]


def test_repair_looks_then_brings_then_proves() -> None:
    told = [words_of(line) for line in repair_commands(week())]
    plan = ["--plan", "plan.json"]
    assert told == [
        ["msmq-bridge", "backfill", *CONFIG, *SOURCES, *plan, "--dry-run"],
        ["msmq-bridge", "backfill", *CONFIG, *SOURCES, *plan, "--out", "runs"],
        ["msmq-bridge", "reconcile", *CONFIG, *SOURCES, "--out", "parity-after"],
    ]


def test_without_a_plan_it_is_asked_for_first() -> None:
    found = week()
    found["repair"]["plan"] = None
    first, *others = [words_of(line) for line in repair_commands(found)]
    assert first[1] == "reconcile"
    assert first[-4:] == ["--plan", "plan.json", "--out", "parity"]
    assert [line[1] for line in others] == ["backfill", "backfill", "reconcile"]


def test_names_are_quoted_for_the_shell() -> None:
    found = week()
    evil = "a'; rm -rf ~; $(reboot)"
    found["inputs"]["sources"] = [{"source": evil, "messages": 1}]
    found["offenders"]["altered"][0]["message_id"] = evil
    assert words_of(expired_command(found))[4:6] == ["--source", evil]
    assert words_of(trace_command(found, "altered"))[-1] == evil


def test_the_options_are_those_of_the_commands() -> None:
    told = [*repair_commands(week()), expired_command(week()), trace_command(week(), "altered")]
    for words in map(words_of, told):
        if words[1] in COMMANDS:
            command = get_command(build([words[1]])).commands[words[1]]  # type: ignore[attr-defined]
            known = {option for param in command.params for option in param.opts}
            assert {word for word in words if word.startswith("--")} <= known, words
    assert {"backfill", "trace"} <= set(COMMANDS)


def test_the_consumers_code_skips_the_surplus(tmp_path: Path) -> None:
    found = week()
    skip = tmp_path / "skip.jsonl"
    skip.write_text(json.dumps({"topic": "t", "partition": 1, "offset": 7, "message_id": "m"}))
    found["repair"]["skip"] = str(skip)
    known: dict[str, object] = {}
    exec(skip_code(found).partition("...")[0], known)  # noqa: S102 - what the page shows
    assert known["surplus"] == {("t", 1, 7)}


def test_the_consumers_code_finds_what_is_late(tmp_path: Path) -> None:
    rows = [
        {"message_id": "a\\1", "queue": "q", "verdict": "out_of_order"},
        {"message_id": "a\\2", "queue": "q", "verdict": "delivered_once"},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "part-0.parquet")
    known: dict[str, object] = {}
    exec(late_code(week() | {"details": str(tmp_path)}), known)  # noqa: S102
    assert known["late"] == {("a\\1", "q")}


def test_code_stays_code() -> None:
    found = week() | {"details": HOSTILE}
    found["repair"]["skip"] = HOSTILE
    texts = [
        node.value for node in ast.walk(ast.parse(late_code(found))) if type(node) is ast.Constant
    ]
    assert HOSTILE in texts
    ast.parse(skip_code(found).partition("...")[0])
