"""`msmq-bridge init`: the files to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from bridge.adapters.starter import CONFIG, QUEUES, write_starter
from bridge.cli.output import Output, OutputOption, cell, console, show


def register(app: typer.Typer) -> None:
    app.command("init")(init)


def init(
    folder: Annotated[Path, typer.Argument(help="Where to; made if need be.")] = Path(),
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what is there already.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write a bridge.yaml that names every setting with its default, a first mapping, and a token.

    admin.token is for the admin port; the commands and the web page need it to change something.
    Nothing is overwritten without --force, and an admin.token that is there is kept. What to do
    next is printed.

    Example: msmq-bridge init bridge01
    """
    written = write_starter(folder, force=force)
    steps = _next(folder)
    if output is not Output.TABLE:
        show({"written": written, "next": [{"what": w, "command": c} for w, c in steps]}, output)
        return
    out = console()
    for path in written:
        out.print(cell(f"wrote {path}"), soft_wrap=True)
    out.print("\nNext:")
    for number, (what, command) in enumerate(steps, 1):
        out.print(cell(f"  {number}. {what}"), soft_wrap=True)
        if command:
            out.print(cell(f"       {command}"), soft_wrap=True)


def _next(folder: Path) -> list[tuple[str, str]]:
    config, queues = folder / CONFIG, folder / QUEUES
    option = f"--config {shlex.quote(str(config))}"
    return [
        (
            f"In {config}: the names that senders use (queue_manager.names) and your Kafka "
            "(kafka: bootstrap.servers; without it one is started, which needs Java 17).",
            "",
        ),
        (f"In {queues}: your queues. Then see what is missing:", f"msmq-bridge doctor {option}"),
        ("Start it:", f"msmq-bridge serve {option}"),
        (
            "In another terminal, send something and look where it is:",
            f"msmq-bridge send --queue 'private$\\orders' --transactional && "
            f"msmq-bridge status {option}",
        ),
    ]
