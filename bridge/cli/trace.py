"""`msmq-bridge trace`: where is my message?"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from struct import Struct
from typing import Annotated, Any
from urllib.parse import quote

import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.net.admin_client import get_json
from bridge.adapters.runtime import find_admin_url
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, show
from bridge.model.errors import BridgeError, ConfigError
from bridge.model.guid import Guid
from bridge.model.words import class_name

_ID = re.compile(r"\{?([0-9a-fA-F-]{36})\}?\\(\d{1,10})")
_U32 = Struct("<I")


class NotFound(BridgeError):
    """No message of that name was ever judged, or its verdict is older than the topic keeps."""


def register(app: typer.Typer) -> None:
    app.command("trace")(trace)


def trace(
    message_id: Annotated[
        str, typer.Argument(metavar="[MESSAGE-ID]", help=r"guid\ordinal, as MSMQ shows it.")
    ] = "",
    label: Annotated[str, typer.Option("--label", help="By label instead.")] = "",
    correlation: Annotated[
        str,
        typer.Option("--correlation", help=r"By correlation id: 40 hex digits or guid\ordinal."),
    ] = "",
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Show what became of a message: every verdict, and the record it is in Kafka.

    Example: msmq-bridge trace '3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77\42'
    """
    kind, text = _asked(message_id, label, correlation)
    path = f"/api/trace?{kind}={quote(text, safe='', errors='replace')}"
    settings = load_config(config)
    verdicts = get_json(find_admin_url(settings), path, settings)["verdicts"]
    if not verdicts:
        raise NotFound(f"no verdict on {kind} {text}; it never reached this appliance's wire")
    show(
        verdicts if output is not Output.TABLE else [_row(verdict) for verdict in verdicts],
        output,
        title=f"{kind} {text}",
    )


def _asked(message_id: str, label: str, correlation: str) -> tuple[str, str]:
    if sum(map(bool, (message_id, label, correlation))) != 1:
        raise ConfigError(
            "give a MESSAGE-ID, --label or --correlation, one of them",
            mend=r"try msmq-bridge trace 'guid\42'",
        )
    if label:
        return "label", label
    if message_id:
        guid, ordinal = _parts("MESSAGE-ID", message_id)
        return "id", f"{guid}\\{ordinal}"
    if re.fullmatch(r"[0-9a-fA-F]{40}", correlation):
        return "correlation", correlation.lower()
    guid, ordinal = _parts("--correlation", correlation)
    return "correlation", (guid + _U32.pack(ordinal & 0xFFFFFFFF)).hex()


def _parts(where: str, text: str) -> tuple[Guid, int]:
    found = _ID.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        return Guid.parse(found[1]), int(found[2])
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is no message id", where=where, mend=r"write guid\ordinal"
        ) from error


def _row(verdict: dict[str, Any]) -> dict[str, Any]:
    number = verdict.get("class", 0)
    at = datetime.fromtimestamp(verdict["at"] / 1000, UTC)
    record = ""
    if verdict.get("topic"):
        offset = verdict.get("offset")
        record = f"{verdict['topic']}-{verdict['partition']}"
        record += f"@{offset}" if offset is not None else " (no longer there)"
    return {
        "arrived": at.isoformat(timespec="milliseconds"),
        "id": verdict["id"],
        "verdict": verdict["verdict"],
        "class": class_name(number) if number else "",
        "reason": verdict.get("reason", ""),
        "queue": verdict.get("queue", "") or verdict["dest"],
        "record": record,
        "peer": verdict.get("peer", ""),
    }
