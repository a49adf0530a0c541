"""A plan as plain values; how it is printed is in tests/cli/test_plan_text.py."""

from bridge.core.plan import Change, NewTopic, Plan
from bridge.core.plan_data import described, entry_of, summary

NEW = NewTopic(partitions=4, replication=1, config={"cleanup.policy": "delete"})
MADE = Change(action="create", topic="orders", after=NEW, reason="queue private$\\orders")
ODD = Change(action="warn", topic="odd", setting="partitions", before=1, after=2, reason="few")


def test_a_change() -> None:
    assert entry_of(ODD) == {
        "action": "warn",
        "topic": "odd",
        "setting": "partitions",
        "from": 1,
        "to": 2,
        "reason": "few",
    }
    assert entry_of(MADE)["setting"] is None


def test_a_plan() -> None:
    plan = Plan(changes=(MADE, ODD), notes=("a note",))
    assert summary(plan) == {"create": 1, "alter": 0, "warn": 1}
    told = described(plan)
    assert told["changes"] == [entry_of(MADE), entry_of(ODD)]
    assert told["notes"] == ["a note"]
