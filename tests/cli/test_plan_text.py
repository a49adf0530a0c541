"""How a plan is printed; whole outputs are in test_map_plan.py."""

import io

import pytest
from rich.console import Console

from bridge.adapters.kafka.cluster import Outcome
from bridge.cli.plan_text import applied, print_outcomes, print_plan
from bridge.core.plan import Change, NewTopic, Plan
from bridge.core.plan_data import described

NEW = Change(
    action="create",
    topic="orders",
    after=NewTopic(partitions=None, replication=None, config={"retention.ms": "-1"}),
    reason="queue a",
)
SMALL = Change(
    action="alter", topic="bills", setting="max.message.bytes", before=1, after=5, reason="small"
)
ODD = Change(action="warn", topic="odd", setting="cleanup.policy", before="compact", reason="lost")


def printed(plan: Plan, encoding: str = "utf-8", terminal: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    print_plan(plan, Console(file=file, width=40, force_terminal=terminal, emoji=False))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_one_line_for_each_change_however_narrow_the_terminal() -> None:
    assert printed(Plan(changes=(NEW, SMALL, ODD), notes=("by the way",))) == (
        "+ create topic orders (the cluster's partitions, the cluster's replicas, "
        "retention.ms -1) for queue a\n"
        "~ bills max.message.bytes 1 -> 5: small\n"
        "! odd cleanup.policy compact: lost\n"
        "  by the way\n"
        "Plan: 1 to create, 1 to alter, 1 warning.\n"
    )


def test_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plan = Plan(changes=(SMALL,))
    assert "\x1b[33m~ bills" in printed(plan, terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in printed(plan, terminal=True)
    assert "\x1b" not in printed(plan)


def test_a_name_cannot_steer_the_terminal_or_crash_it() -> None:
    plan = Plan(notes=("queue \x1b[2J\u00fc",))
    assert printed(plan).startswith("  queue \\x1b[2J\u00fc\n")
    assert printed(plan, "ascii").startswith("  queue \\x1b[2J\\xfc\n")


def test_outcomes(capsys: pytest.CaptureFixture[str]) -> None:
    told: dict[str, object] = {"state": "reloaded", "applied": (), "unchanged": 2}
    print_outcomes([Outcome(NEW), Outcome(SMALL, "not allowed")], told)
    assert capsys.readouterr().out == (
        "done: create orders\n"
        "failed: alter bills max.message.bytes: not allowed\n"
        "Appliance: switched nothing; 2 queues unchanged.\n"
    )


def test_for_programs() -> None:
    plan = Plan(changes=(SMALL, ODD))
    assert described(plan) == {
        "changes": [
            {
                "action": "alter",
                "topic": "bills",
                "setting": "max.message.bytes",
                "from": 1,
                "to": 5,
                "reason": "small",
            },
            {
                "action": "warn",
                "topic": "odd",
                "setting": "cleanup.policy",
                "from": "compact",
                "to": None,
                "reason": "lost",
            },
        ],
        "notes": [],
        "summary": {"create": 0, "alter": 1, "warn": 1},
    }
    told: dict[str, object] = {"state": "not running"}
    whole = applied(plan, [Outcome(SMALL, "no")], told)
    assert whole["summary"] == {"create": 0, "alter": 1, "warn": 1, "done": 0, "failed": 1}
    assert whole["appliance"] == told
