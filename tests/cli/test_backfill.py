"""The command's line; what it does is in tests/spark."""

from pathlib import Path
from typing import Any

import pytest

from bridge.cli import backfill as module
from bridge.cli.app import main
from msmq_jobs.backfill.io import RunFolder
from msmq_jobs.backfill.job import Order
from msmq_jobs.backfill.summary import of
from msmq_jobs.backfill.transforms import Asked


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    asked: list[Order] = []

    def run(order: Order, master: str) -> Any:
        asked.append(order)
        row = {"origin": "a", "queue": "q", "topic": "t", "messages": 1, "detail": None}
        counts = [{**row, "reason": "unknown-queue"}] if "bad" in order.sources else []
        return of(RunFolder("out", "r"), order.dry_run, counts, [], [], 0)

    monkeypatch.setattr(module, "_run", run)
    return asked


def test_every_option_arrives(orders: list[Order]) -> None:
    line = (
        "backfill -s a.jsonl -s b --out d --dry-run --receive --plan p -q x -q y --from 2026-01-31 "
    )
    line += "--to 2026-02-01T00:00:00+01:00 --class nack-receive-timeout --class 0x8000 --label l* "
    line += "--include-expired --rate 10 -c bridge.yaml"
    assert main(line.split()) == 0
    asked = Asked(
        queues=("x", "y"),
        since="2026-01-31T00:00:00+00:00",
        until="2026-01-31T23:00:00+00:00",
        classes=(0xC002, 0x8000),
        label="l*",
        include_expired=True,
    )
    assert orders == [
        Order(
            config=Path("bridge.yaml"),
            sources=("a.jsonl", "b"),
            out="d",
            asked=asked,
            plan=Path("p"),
            receive=True,
            dry_run=True,
            rate=10,
        )
    ]


def test_exit_codes(orders: list[Order], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backfill", "-s", "good"]) == 0
    assert main(["backfill", "-s", "bad", "-o", "json"]) == 2
    assert main(["backfill"]) == 1
    assert "there is no source" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--source=", "--source: is empty; name an export"),
        ("--source http://x/y.jsonl", "not read from the web; download it first"),
        ("--source a.jsonl --out=", "--out: is empty"),
        ("--source a.jsonl --plan nowhere.json", "nowhere.json"),
        ("--source a.jsonl --receive", "an export cannot be emptied"),
        ("--source a.jsonl --password-file nowhere", "--password-file: "),
        ("--source a.jsonl --from 2026-02-01 --to 2026-01-01", "--to: is not behind --from"),
        ("--source a.jsonl --config nowhere.yaml", "nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_found_before_spark_starts(
    line: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msmq_jobs.session.open_session", lambda *_: pytest.fail("it starts"))
    assert main(["backfill", *line.split()]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert told in error


def test_spark_is_stopped_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    class Session:
        def stop(self) -> None:
            stopped.append("stopped")

    monkeypatch.setattr("msmq_jobs.checks.check", lambda *_, **__: None)
    monkeypatch.setattr("msmq_jobs.session.open_session", lambda *_: Session())
    monkeypatch.setattr("msmq_jobs.backfill.job.backfill", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module._run(Order(out="x", sources=("a.jsonl",)), "")
    assert stopped == ["stopped"]
