"""What a command prints: a table for people, JSON or YAML for programs; always on stdout."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from ruamel.yaml import YAML

from bridge.model.guid import Guid

PIPE_WIDTH: Final = 10_000  # a pipe has no edge to cut a table at


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="How to print the answer.", case_sensitive=False)
]


def show(data: object, output: Output, title: str | None = None) -> None:
    """A list of mappings becomes one row each, a mapping one row per key."""
    values = plain(data)
    match output:
        case Output.JSON:
            utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
            _write(json.dumps(values, indent=2, ensure_ascii=not utf8) + "\n")
        case Output.YAML:
            _write(_yaml(values))
        case Output.TABLE:
            console().print(table(values, title))


def console() -> Console:
    """Without colour when NO_COLOR is set or nobody looks."""
    stdout = sys.stdout
    width = None if stdout.isatty() else PIPE_WIDTH
    plain_text = bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stdout,
        width=width,
        color_system=None if plain_text else "auto",  # not even bold: https://no-color.org
        highlight=False,
        markup=False,
        emoji=False,
    )


def table(values: object, title: str | None = None) -> Table:
    rows = values if isinstance(values, list) else None
    if rows is not None and all(isinstance(row, dict) for row in rows):
        columns = list(dict.fromkeys(key for row in rows for key in row))
        made = _table(title, *columns)
        for row in rows:
            made.add_row(*(cell(row.get(column, "")) for column in columns))
    elif isinstance(values, dict):
        made = _table(title, "", "", show_header=False)
        for key, value in values.items():
            made.add_row(cell(key), cell(value))
    else:
        made = _table(title, "", show_header=False)
        for value in rows if rows is not None else [values]:
            made.add_row(cell(value))
    return made


def _table(title: str | None, *columns: str, show_header: bool = True) -> Table:
    heading = Text(title, style="bold") if title else None
    made = Table(title=heading, title_justify="left", show_header=show_header)
    for column in columns:
        made.add_column(cell(column), overflow="fold")
    return made


def cell(value: object) -> Text:
    """Text that cannot steer the terminal, whoever sent it."""
    match value:
        case str():
            text = value
        case None:
            text = "-"
        case bool():
            text = "yes" if value else "no"
        case list() if not any(isinstance(item, dict | list) for item in value):
            text = ", ".join(map(str, value))
        case dict() | list():
            text = json.dumps(value, ensure_ascii=False)
        case _:
            text = str(value)
    return Text("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def plain(value: Any) -> Any:
    """Only what JSON knows: bytes as base64 and GUIDs and times as text (design 3.6)."""
    match value:
        case None | bool() | int() | float() if not isinstance(value, Enum):
            return value
        case Enum():
            return plain(value.value)
        case Guid() | Path():
            return str(value)
        case str():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case datetime() | date():
            return value.isoformat()
        case msgspec.Struct():
            return plain(msgspec.structs.asdict(value))
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            items = sorted(value) if isinstance(value, set | frozenset) else value
            return [plain(item) for item in items]
    return str(value)


def _yaml(values: object) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = PIPE_WIDTH
    stream = io.StringIO()
    yaml.dump(values, stream)
    return stream.getvalue()


def _write(text: str) -> None:
    """A character that the terminal's encoding lacks is escaped, not a crash."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
