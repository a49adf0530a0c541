"""A plan as plain values, for programs."""

from __future__ import annotations

from bridge.core.plan import Change, Plan


def described(drawn: Plan) -> dict[str, object]:
    return {
        "changes": [entry_of(change) for change in drawn.changes],
        "notes": list(drawn.notes),
        "summary": summary(drawn),
    }


def entry_of(change: Change) -> dict[str, object]:
    return {
        "action": change.action,
        "topic": change.topic,
        "setting": change.setting or None,
        "from": change.before,
        "to": change.after,
        "reason": change.reason,
    }


def summary(drawn: Plan) -> dict[str, int]:
    return {action: len(drawn.of(action)) for action in ("create", "alter", "warn")}
