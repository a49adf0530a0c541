"""What `map plan` and `map apply` print: a diff for people, plain values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from bridge.cli.output import cell, console
from bridge.core.plan import Change, NewTopic, Plan
from bridge.core.plan_data import entry_of, summary

if TYPE_CHECKING:
    from bridge.adapters.kafka.cluster import Outcome

_SIGNS: Final = {"create": ("+", "green"), "alter": ("~", "yellow"), "warn": ("!", "red")}


def print_plan(drawn: Plan, out: Console) -> None:
    for change in drawn.changes:
        sign, style = _SIGNS[change.action]
        _print(out, f"{sign} {_line(change)}", style)
    for note in drawn.notes:
        _print(out, f"  {note}", "dim")
    if drawn.changes:
        counts = summary(drawn)
        text = f"{counts['create']} to create, {counts['alter']} to alter"
        _print(out, f"Plan: {text}, {_plural(counts['warn'], 'warning')}.", "bold")
    else:
        _print(out, "Nothing to do: the cluster is as the mappings want it.", "bold")


def _line(change: Change) -> str:
    if isinstance(change.after, NewTopic):
        return f"create topic {change.topic} ({_new(change.after)}) for {change.reason}"
    value = change.before if change.action == "warn" else f"{change.before} -> {change.after}"
    return f"{change.topic} {change.setting} {value}: {change.reason}"


def _new(topic: NewTopic) -> str:
    parts = [
        _plural(topic.partitions, "partition") if topic.partitions else "the cluster's partitions",
        _plural(topic.replication, "replica") if topic.replication else "the cluster's replicas",
    ]
    return ", ".join(parts + [f"{name} {value}" for name, value in topic.config.items()])


def print_outcomes(outcomes: Sequence[Outcome], told: dict[str, object]) -> None:
    out = console()
    for outcome in outcomes:
        change = outcome.change
        name = f"{change.topic} {change.setting}".rstrip()
        if outcome.error:
            _print(out, f"failed: {change.action} {name}: {outcome.error}", "red")
        else:
            _print(out, f"done: {change.action} {name}", "green")
    _print(out, f"Appliance: {_appliance(told)}.", "bold")
    notes = told.get("notes")
    for note in notes if isinstance(notes, tuple | list) else ():
        _print(out, f"note: {note}", "yellow")


def _appliance(told: dict[str, Any]) -> str:
    match told["state"]:
        case "reloaded":
            named = ", ".join(told["applied"]) or "nothing"
            return f"switched {named}; {_plural(told['unchanged'], 'queue')} unchanged"
        case "not running":
            return "none is running; the mappings count from its next start"
        case "refused":
            return "keeps its mappings"
        case state:
            return f"{state}: {told['why']}"


def _print(out: Console, text: str, style: str) -> None:
    safe = cell(text).plain.encode(out.encoding, "backslashreplace").decode(out.encoding)
    out.print(Text(safe, style), soft_wrap=True)


def applied(drawn: Plan, outcomes: Sequence[Outcome], told: dict[str, object]) -> dict[str, object]:
    entries = [
        {**entry_of(outcome.change), "done": not outcome.error, "error": outcome.error or None}
        for outcome in outcomes
    ] + [{**entry_of(change), "done": False, "error": None} for change in drawn.of("warn")]
    done = sum(not outcome.error for outcome in outcomes)
    counts = {**summary(drawn), "done": done, "failed": len(outcomes) - done}
    return {
        "changes": entries,
        "notes": list(drawn.notes),
        "summary": counts,
        "appliance": told,
    }


def _plural(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
