"""`msmq-bridge status`: what a running appliance says about itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from rich.table import Table

from bridge.adapters.config_files import load_config
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, console, show, table


def register(app: typer.Typer) -> None:
    app.command("status")(status)


def status(config: ConfigOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show listeners, sessions, streams and totals of the running appliance.

    Example: msmq-bridge status --config bridge.yaml -o json
    """
    answer = get_json(find_admin_url(load_config(config)), "/api/status")
    if output is not Output.TABLE:
        show(answer, output)
        return
    for section in sections(answer):
        console().print(section)


def sections(answer: dict[str, Any]) -> Iterator[Table]:
    """Single values first, then a table for each group and each list that has something in it."""
    yield table({"ready": answer.get("ready", False), **_singles(answer)}, "msmq-bridge")
    for name, value in answer.items():
        if isinstance(value, dict | list) and value and name not in _FOLDED:
            yield table(value, name.replace("_", " "))


_FOLDED = ("queue_manager", "kafka", "reasons")


def _singles(answer: dict[str, Any]) -> dict[str, Any]:
    singles: dict[str, Any] = {}
    for name, value in answer.items():
        if name in _FOLDED and isinstance(value, dict):
            singles.update({f"{name.replace('_', ' ')} {key}": item for key, item in value.items()})
        elif name in _FOLDED or not isinstance(value, dict | list):
            singles[name.replace("_", " ")] = value
    return singles
