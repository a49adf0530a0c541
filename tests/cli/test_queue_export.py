"""`msmq-bridge queue export`, from another host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from bridge.adapters.exports.journal import Journal
from bridge.adapters.exports.parquet import read_parquet
from bridge.core.message_data import message_of, read_data
from tests.cli.remote_host import Host
from tests.cli.test_queue_remote import fill
from tests.protocol.rpc.reader.running import ORDERS

BODIES = [b"m%d" % number for number in range(100)]


def lines(path: Path) -> list[bytes]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [message_of(read_data(row)).body for row in rows]


def test_json_lines(host: Host, tmp_path: Path) -> None:
    fill(host, 100)
    out = tmp_path / "o.jsonl"
    told = host.told("queue", "export", ORDERS, "--out", str(out))
    assert told == {
        "queue": ORDERS,
        "out": str(out),
        "format": "jsonl",
        "messages": 100,
        "resumed": 0,
        "removed": 0,
        "repeated": 0,
        "taken_by_others": 0,
        "unreadable": {},
    }
    assert lines(out) == BODIES
    assert host.err == ""  # no bar where nobody looks
    assert host.fake.bodies(ORDERS) == BODIES


def test_parquet(host: Host, tmp_path: Path) -> None:
    fill(host, 100)
    out = tmp_path / "o.parquet"
    assert host.told("queue", "export", ORDERS, "--out", str(out))["format"] == "parquet"
    assert [data.body for data in read_parquet(out)] == BODIES


def test_a_format_of_its_own(host: Host, tmp_path: Path) -> None:
    fill(host, 2)
    out = tmp_path / "o.data"
    assert host.run("queue", "export", ORDERS, "--out", str(out)) == 1
    assert "--format" in host.err
    assert host.run("queue", "export", ORDERS, "--out", str(out), "--format", "parquet") == 0
    assert len(list(read_parquet(out))) == 2


def test_a_part(host: Host, tmp_path: Path) -> None:
    fill(host, 10)
    after = str(host.fake.queues[ORDERS][3].lookup_id)
    out = tmp_path / "o.jsonl"
    assert (
        host.run("queue", "export", ORDERS, "--out", str(out), "--after", after, "--limit", "4")
        == 0
    )
    assert lines(out) == BODIES[4:8]


def test_receive_asks_first(host: Host, tmp_path: Path) -> None:
    fill(host, 2)
    out = tmp_path / "o.jsonl"
    assert host.run("queue", "export", ORDERS, "--out", str(out), "--receive") == 1
    assert "--yes" in host.err
    assert host.fake.removed == []
    assert list(tmp_path.iterdir()) == []


def test_receive(host: Host, tmp_path: Path) -> None:
    fill(host, 100)
    out = tmp_path / "o.jsonl"
    told = host.told("queue", "export", ORDERS, "--out", str(out), "--receive", "--yes")
    assert (told["messages"], told["removed"]) == (100, 100)
    assert lines(out) == BODIES
    assert host.fake.bodies(ORDERS) == []


@pytest.mark.parametrize("is_written", [True, False])
def test_interrupted_and_resumed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    fill(host, 100)
    out = tmp_path / "o.jsonl"
    add, calls = Journal.add, 0

    def interrupted(self: Journal, messages: object) -> None:
        nonlocal calls
        calls += 1
        if calls < 3 or is_written:
            add(self, messages)  # type: ignore[arg-type]
        if calls == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "add", interrupted)
    arguments = ("queue", "export", ORDERS, "--out", str(out), "--receive", "--yes")
    assert host.run(*arguments) == 130
    assert "--resume goes on with it" in host.err
    monkeypatch.undo()
    monkeypatch.setenv("MSMQ_BRIDGE_PASSWORD", "secret")
    assert host.run(*arguments) == 1
    assert "--resume" in host.err
    told = host.told(*arguments, "--resume")
    assert told["messages"] == 100
    assert told["resumed"] > 0
    assert lines(out) == BODIES
    assert host.fake.bodies(ORDERS) == []


def test_what_cannot_be_read_is_1(host: Host, tmp_path: Path) -> None:
    fill(host, 3)
    broken = host.fake.queues[ORDERS][1]
    broken.packet, broken.body_at, broken.body_size = broken.packet[:40], 40, 0
    out = tmp_path / "o.jsonl"
    assert host.run("queue", "export", ORDERS, "--out", str(out), "-o", "json") == 1
    assert json.loads(host.out)["messages"] == 2
    assert "cannot be read" in host.err
    assert lines(out) == [b"m0", b"m2"]


def test_what_does_not_go_together(host: Host, tmp_path: Path) -> None:
    out = str(tmp_path / "o.jsonl")
    assert host.run("queue", "export", ORDERS, "--out", out, "--receive", "--after", "1") == 1
    assert "--after: does not go with --receive" in host.err
    assert host.run("queue", "export", ORDERS, "--out", out, "--config", "x.yaml") == 1
    assert host.run("queue", "export", ORDERS) == 2  # usage


def test_a_queue_that_is_not_there(host: Host, tmp_path: Path) -> None:
    assert host.run("queue", "export", "nope", "--out", str(tmp_path / "o.jsonl")) == 1
    assert "no such queue" in host.err
    assert list(tmp_path.iterdir()) == []


def test_a_bar_on_a_terminal(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "bridge.cli.queue_export.Console",
        lambda stderr: Console(stderr=stderr, force_terminal=True, width=100),
    )
    fill(host, 100)
    out = tmp_path / "o.jsonl"
    assert host.run("queue", "export", ORDERS, "--out", str(out), "-o", "json") == 0
    assert "exporting" in host.err
    assert "100 messages" in host.err
    assert json.loads(host.out)["messages"] == 100  # stdout is for the answer
