"""`msmq-bridge map`: which queues become which topics; the files that say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.mapping_changes import Source, add_entry, queue_path, remove_entry
from bridge.adapters.mapping_editor import Entry, one_line_value, yaml_scalar
from bridge.adapters.mapping_files import LocatedMappings
from bridge.adapters.mapping_schema import mapping_schema
from bridge.adapters.yaml_structs import Gathering
from bridge.cli import map_plan, map_test
from bridge.cli.options import ConfigOption, MappingsOption
from bridge.cli.output import Output, OutputOption, show
from bridge.core.mapping_rules import QueueMapping
from bridge.model.errors import ConfigError

FAILED: Final = 1
OTHERS: Final = "(any other)"

app = typer.Typer(help="See, check and change which queues become which topics.")


def register(whole: typer.Typer) -> None:
    whole.add_typer(app, name="map", no_args_is_help=True)


def source_of(config: Path | None, mappings: Path | None) -> Source:
    if config is None and mappings is not None:
        return Source(mappings)
    settings = load_config(config)
    return Source(mappings or settings.mappings, f"{settings.topic_prefix}.")


@app.command("list")
def list_mappings(
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the mappings as the appliance uses them: defaults filled in, in order of precedence.

    Example: msmq-bridge map list --config bridge.yaml -o json
    """
    located = source_of(config, mappings).locate()
    rows = list(_rows(located))
    if output is Output.TABLE:
        show([_shortened(row) for row in rows], output)
    else:
        show(rows, output)


def _rows(located: LocatedMappings) -> Iterator[dict[str, Any]]:
    for mapping in located.mappings.ranked():
        place = located.places[mapping.queue.lower()]
        yield _row(mapping, str(mapping.queue), f"{place.file}:{place.line}")
    defaults = located.mappings.defaults
    if defaults.unknown == "auto-create":
        row = _row(defaults.mapping(), OTHERS, "")
        if not defaults.transactional:
            row["kind"] = "any"
        if located.defaults is not None:
            row["where"] = f"{located.defaults.file}:{located.defaults.line}"
        yield row


def _row(mapping: QueueMapping, queue: str, where: str) -> dict[str, Any]:
    kind = "transactional" if mapping.transactional else "plain"
    settings = msgspec.structs.asdict(mapping)
    for name in ("queue", "topic", "transactional"):
        del settings[name]
    topic = mapping.topic_name or mapping.template
    return {"queue": queue, "topic": topic, "kind": kind, **settings, "where": where}


_COLUMNS: Final = ("queue", "topic", "kind", "key", "order", "value", "timestamp", "oversize")


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    journal = row["journal"] or ""
    return {**{name: row[name] for name in _COLUMNS}, "journal": journal, "where": row["where"]}


@app.command()
def add(
    queue: Annotated[str, typer.Argument(help=r"private$\name or name; * and ? are wildcards.")],
    topic: Annotated[str, typer.Option("--topic", "-t", help="Absent: named as the queue.")] = "",
    transactional: Annotated[
        bool | None,
        typer.Option(
            "--transactional/--plain", help="Which messages it takes.", show_default=False
        ),
    ] = None,
    key: Annotated[str, typer.Option("--key", help="The record's key.")] = "",
    order: Annotated[str, typer.Option("--order", help="stream or key.")] = "",
    value: Annotated[str, typer.Option("--value", help="body, text, json or envelope.")] = "",
    timestamp: Annotated[str, typer.Option("--timestamp", help="arrival or sent.")] = "",
    journal: Annotated[str, typer.Option("--journal", help="Topic of its journal.")] = "",
    oversize: Annotated[str, typer.Option("--oversize", help="reject, chunk or claim-check.")] = "",
    others: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=YAML", help="Any other key; may be repeated."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="The file of the folder to write to.")
    ] = None,
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Add a queue to a mapping file; comments, order and indentation stay as they are.

    Example: msmq-bridge map add 'private$\orders' --topic orders --transactional --key label
    """
    source = source_of(config, mappings)
    texts = {"topic": topic, "key": key, "order": order, "value": value}
    texts |= {"timestamp": timestamp, "journal": journal, "oversize": oversize}
    entry = {"queue": _scalar("QUEUE", queue)}
    entry |= {name: _scalar(f"--{name}", text) for name, text in texts.items() if text}
    if transactional is not None:
        entry["transactional"] = "true" if transactional else "false"
    for text in others or ():
        name, written = _setting(text, entry)
        entry[name] = written
    _add(source, queue, entry, file, output)


def _scalar(option: str, text: str) -> str:
    try:
        return yaml_scalar(text)
    except ConfigError as error:
        raise ConfigError(error.what, where=option, mend=error.mend) from error


def _setting(text: str, entry: Entry) -> tuple[str, str]:
    name, equals, written = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"{text!r} is no KEY=YAML", where="--set", mend="try quota_kb=1024")
    if name in entry:
        raise ConfigError(f"{name!r} is given twice", where="--set", mend="keep one of them")
    return name, one_line_value(written, "--set")


def _add(source: Source, queue: str, entry: Entry, file: Path | None, output: Output) -> None:
    place = add_entry(source, queue, entry, file).place
    show({"added": queue_path(queue), "where": f"{place.file}:{place.line}"}, output)


@app.command()
def remove(
    queue: Annotated[str, typer.Argument(help="As it stands in the file; case does not count.")],
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Take a queue, and the comment right above it, out of its mapping file.

    Example: msmq-bridge map remove 'private$\orders'
    """
    source = source_of(config, mappings)
    place = remove_entry(source, queue).place
    show({"removed": queue, "where": f"{place.file}:{place.line}"}, output)


@app.command()
def validate(
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="A mapping file or folder.")
    ] = None,
    config: ConfigOption = None,
    mappings: MappingsOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check mapping files: every fault with its place and how to mend it; exit code 1 if any.

    Example: msmq-bridge map validate mappings/
    """
    gathering = Gathering()
    with gathering:
        located = source_of(config, path or mappings).locate()
        files = [str(file) for file in located.files]
        show({"valid": True, "files": files, "queues": len(located.mappings.queues)}, output)
        return
    faults = sorted(gathering.faults, key=lambda fault: tuple(_located(fault).values())[:3])
    if output is not Output.TABLE:
        show({"valid": False, "faults": [_located(fault) for fault in faults]}, output)
    else:
        for fault in faults:
            typer.echo(f"msmq-bridge: error: {' '.join(str(fault).split())}", err=True)
    raise typer.Exit(FAILED)


def _located(fault: ConfigError) -> dict[str, Any]:
    file, *place = fault.where.rsplit(":", 2)
    if len(place) == 2 and all(part.isdecimal() for part in place):
        line, column = map(int, place)
    else:
        file, line, column = fault.where, 0, 0
    return {"file": file, "line": line, "column": column, "what": fault.what, "mend": fault.mend}


@app.command()
def schema(output: OutputOption = Output.JSON) -> None:
    """Print the JSON Schema of mapping files, for editors that complete and check YAML.

    Example: msmq-bridge map schema > mappings/schema.json
    """
    show(mapping_schema(), output)


map_plan.register(app)
map_test.register(app)
