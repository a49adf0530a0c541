"""`msmq-bridge queue export`: the messages of a queue in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bridge.adapters.config_files import load_config
from bridge.adapters.exports.export import Exported
from bridge.adapters.exports.export import export as export_all
from bridge.adapters.exports.journal import Format, Journal, format_of
from bridge.adapters.exports.sources import ApplianceSource, RemoteSource, Source
from bridge.adapters.net.queue_client import QueueClient
from bridge.cli.asking import require_yes
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, show
from bridge.cli.remote import (
    AuthOption,
    ExclusiveOption,
    HostOption,
    LevelOption,
    PasswordFileOption,
    Remote,
    UserOption,
    open_remote,
    remote_of,
)
from bridge.cli.taking import require_number
from bridge.model.errors import BridgeError, ConfigError

QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"private$\name, name, private$\name;journal, private$\name;subqueue, "
        ";deadletter, ;deadxact or ;journal; with --host also a format name. Case does not count.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
OutOption = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="Where to; until it is whole, FILE.partial."),
]
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help="JSON lines or Parquet; else by the ending of FILE."),
]
ReceiveOption = Annotated[
    bool,
    typer.Option("--receive", help="Take them out: each is safe in FILE.partial before it goes."),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with an export that did not come to its end.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many in FILE.")]
AfterOption = Annotated[
    int | None, typer.Option("--after", min=0, help="Those behind this lookup id.")
]


class Incomplete(BridgeError):
    """Messages were there that could not be exported."""


def export(
    queue: QueueArgument,
    out: OutOption,
    wanted: FormatOption = None,
    receive: ReceiveOption = False,
    resume: ResumeOption = False,
    limit: LimitOption = None,
    after: AfterOption = None,
    yes: YesOption = False,
    host: HostOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    exclusive: ExclusiveOption = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Write every message of a queue, with every property, into a file.

    Example: msmq-bridge queue export 'private$\orders' --host msmq01 --user ann --out o.jsonl
    """
    if receive and after is not None:
        raise ConfigError("does not go with --receive", where="--after", mend="leave it out")
    require_number("--after", after)
    remote = remote_of(host, user, password_file, level, auth, config, exclusive=exclusive)
    shape = format_of(out, wanted)
    with _source(remote, config, queue) as source:
        if receive:
            where = "" if host is None else f" on {host}"
            require_yes(f"Take the messages out of {queue}{where}?", yes=yes)
        with Journal(out, shape, resume=resume) as journal, _bar() as progress:
            try:
                told = export_all(
                    source, journal, receive=receive, after=after, limit=limit, progress=progress
                )
            except BaseException:
                if journal.count:
                    _note(f"{journal.path} has {journal.count} messages; --resume goes on with it")
                raise
    show(_answer(told, out, shape), output, title="exported")
    if told.unreadable:
        numbers = ", ".join(map(str, told.unreadable))
        raise Incomplete(f"messages that cannot be read are left out: {numbers}")


@contextmanager
def _source(remote: Remote | None, config: Path | None, queue: str) -> Iterator[Source]:
    if remote is None:
        yield ApplianceSource(QueueClient(load_config(config)), queue)
    else:
        with open_remote(remote) as queues:
            yield RemoteSource(queues.reader, queue)


@contextmanager
def _bar() -> Iterator[Callable[[int], None]]:
    """On a terminal; how many there are nobody can say beforehand."""
    screen = Console(stderr=True)
    columns = (TextColumn("exporting"), BarColumn(), TextColumn("{task.completed:,.0f} messages"))
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=screen,
        disable=not screen.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task("exporting", total=None)
        yield lambda count: bar.update(task, completed=count)


def _answer(told: Exported, out: Path, shape: Format) -> dict[str, Any]:
    return {
        "queue": told.queue,
        "out": str(out),
        "format": shape.value,
        "messages": told.messages,
        "resumed": told.resumed,
        "removed": told.removed,
        "repeated": told.repeated,
        "taken_by_others": told.elsewhere,
        "unreadable": {str(number): why for number, why in told.unreadable.items()},
    }


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
