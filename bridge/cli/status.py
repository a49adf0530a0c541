"""`msmq-bridge status`: what a running appliance says about itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bridge.adapters.config_files import load_config
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, cell, console, show, table
from bridge.config import Config
from bridge.model.errors import Unavailable

# Folded into the first table, in this order; then the lists, then whatever else is told.
_FOLDED: Final = ("ready", "reasons", "queue_manager", "kafka", "kafka_state", "topic_prefix")
_FIGURES: Final = ("uptime_s", "session_count", "streams", "pending", "waiting_acks", "rates")
_LISTS: Final = ("listeners", "queues", "shard_states", "sessions", "acks_by_peer", "stream_list")
_UNSEEN: Final = "needs_token"  # what was left out
_TWICE: Final = ("shards", "pending_messages")  # told by others, kept for programs
_MOST_ROWS: Final = 20


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    config: ConfigOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again and again.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, help="Seconds between two looks of --watch.")
    ] = 1.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show sessions, streams, queues, rates, what waits and how Kafka is.

    Example: msmq-bridge status --config bridge.yaml -o json
    """
    settings = load_config(config)
    answer = _ask(settings)
    if not watch:
        _show(answer, output)
        return
    with suppress(KeyboardInterrupt):  # how a watch ends
        if output is Output.TABLE and console().is_terminal:
            _redraw(settings, answer, every)
        while True:
            _show(answer, output)
            time.sleep(every)
            answer = _ask(settings)


def _ask(config: Config) -> dict[str, Any]:
    """Where it listens may change with every start."""
    return get_json(find_admin_url(config), "/api/status", config)


def _show(answer: dict[str, Any], output: Output) -> None:
    if output is not Output.TABLE:
        show(answer, output)
        return
    for section in sections(answer):
        console().print(section)


def _redraw(config: Config, answer: dict[str, Any], every: float) -> None:
    """One picture that changes; an appliance that goes away is waited for."""
    with Live(Group(*sections(answer)), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(every)
            try:
                picture = Group(*sections(_ask(config)))
            except Unavailable as error:
                picture = Group(Text.assemble(("● ", "red"), cell(str(error))))
            live.update(picture, refresh=True)


def sections(answer: dict[str, Any]) -> Iterator[Table]:
    """Single values first, then a table for each group and each list that has something in it."""
    yield table({"ready": False, **_singles(answer)}, "msmq-bridge")
    rest = [n for n in answer if n not in (*_FOLDED, *_FIGURES, *_LISTS, *_TWICE, _UNSEEN)]
    for name in (*_LISTS, *rest):
        value = answer.get(name) if name != "topics" else _other_topics(answer)
        if isinstance(value, dict | list) and value:
            yield table(_short(value), name.replace("_", " "))


def _singles(answer: dict[str, Any]) -> dict[str, Any]:
    singles: dict[str, Any] = {}
    rest = [n for n, v in answer.items() if not isinstance(v, dict | list) and n not in _TWICE]
    for name in dict.fromkeys((*_FOLDED, *_FIGURES, *rest)):
        value, words = answer.get(name), name.replace("_", " ")
        if isinstance(value, dict):
            singles |= {f"{words} {key}".replace("_", " "): item for key, item in value.items()}
        elif value not in (None, []):
            singles[words] = value
    if hidden := answer.get(_UNSEEN):
        singles["not shown without the admin token"] = ", ".join(hidden).replace("_", " ")
    return singles


def _other_topics(answer: dict[str, Any]) -> list[Any]:
    """Those that the queues' table does not show."""
    shown = {row.get("topic") for row in answer.get("queues", [])}
    return [row for row in answer.get("topics", []) if row.get("topic") not in shown]


def _short(value: Any) -> Any:
    """A screen is not endless; -o json has the rest."""
    if isinstance(value, list) and len(value) > _MOST_ROWS and isinstance(value[0], dict):
        first = next(iter(value[0]))
        return [*value[:_MOST_ROWS], {first: f"and {len(value) - _MOST_ROWS} more"}]
    return value
