"""`msmq-bridge queue`: the queues of a running appliance, or of any MSMQ host (`--host`)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.net.queue_client import QueueClient
from bridge.cli.asking import require_yes
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, show
from bridge.cli.queue_export import QueueArgument, YesOption, export
from bridge.cli.queue_text import opening_rows, queue_rows
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
from bridge.cli.taking import (
    MOST,
    CountOption,
    LookupOption,
    NothingThere,
    RawOption,
    WaitOption,
    Wanted,
    body_file,
    remotely,
    require_number,
    show_messages,
    take,
)
from bridge.core.message_data import read_data
from bridge.model.errors import ConfigError

LIMIT: Final = 10
SYSTEM_QUEUES: Final = (";deadletter", ";deadxact", ";journal")

app = typer.Typer(
    help="Look at the queues of a running appliance, or of any MSMQ host, and look after them."
)
app.command("export")(export)

Row = dict[str, Any]


def register(whole: typer.Typer) -> None:
    whole.add_typer(app, name="queue", no_args_is_help=True)


def open_queues(config: Path | None) -> QueueClient:
    return QueueClient(load_config(config))


@app.command("list")
def list_queues(
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", help="With --host: try this one; may be given several times."),
    ] = None,
    host: HostOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show every queue: what becomes of its messages, and how many wait in it.

    Remote read cannot list the queues of a host: with --host it tries those that --queue names (or
    those that every host has) and shows whether they open, and the first message of each.

    Example: msmq-bridge queue list --config bridge.yaml -o json
    """
    remote = remote_of(host, user, password_file, level, auth, config)
    if remote is not None:
        _list_remote(remote, queue, output)
        return
    if queue:
        raise ConfigError("goes with --host", where="--queue", mend="leave it out")
    queues = open_queues(config).queues()
    show(queue_rows(queues) if output is Output.TABLE else queues, output)


def _list_remote(remote: Remote, names: list[str] | None, output: Output) -> None:
    if not names:
        _note("remote read cannot list queues; name others with --queue")
    with open_remote(remote) as queues:
        found = queues.look(names or SYSTEM_QUEUES)
    show(opening_rows(found) if output is Output.TABLE else found, output)
    if not any(row["opens"] for row in found):
        raise NothingThere(f"none of these queues opens on {remote.host}")


@app.command()
def peek(
    queue: QueueArgument,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, max=MOST, show_default=str(LIMIT), help="At most so many."),
    ] = None,
    after: Annotated[
        int | None, typer.Option("--after", min=0, help="Those behind this lookup id.")
    ] = None,
    lookup_id: LookupOption = None,
    raw: RawOption = None,
    host: HostOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Show messages and leave them where they are, the next to be received first.

    Example: msmq-bridge queue peek 'private$\orders' --limit 20 -o json
    """
    is_one = lookup_id is not None or raw is not None
    if is_one and limit not in (None, 1):
        raise ConfigError("is of one message only", where="--limit", mend="leave it out")
    if lookup_id is not None and after is not None:
        raise ConfigError("does not go with --lookup-id", where="--after", mend="keep one")
    require_number("--lookup-id", lookup_id)
    require_number("--after", after)
    remote = remote_of(host, user, password_file, level, auth, config)
    with body_file(raw) as file, _peeked(remote, config) as client:
        messages, more = _peek(client, queue, 1 if is_one else limit or LIMIT, after, lookup_id)
        if file is not None:
            if not messages:
                raise NothingThere(f"there is no message in {queue}")
            file.write(read_data(messages[0]).body)
    if file is None or not file.is_stdout:
        show_messages(messages, output, is_one=is_one or limit == 1)
    if more and messages and not is_one:
        _note(f"there are more; --after {messages[-1].get('lookup_id')} shows the next ones")


class Peeked(Protocol):
    def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> tuple[list[Row], bool]: ...

    def purge(self, queue: str) -> Row: ...


def _peeked(remote: Remote | None, config: Path | None) -> AbstractContextManager[Peeked]:
    return nullcontext(open_queues(config)) if remote is None else open_remote(remote)


def _peek(
    client: Peeked, queue: str, limit: int, after: int | None, lookup_id: int | None
) -> tuple[list[Row], bool]:
    """Bodies may be large, so that one answer has less than was asked for: go on behind it."""
    messages, more = client.peek(queue, limit=limit, after=after, lookup_id=lookup_id)
    while more and len(messages) < limit:
        last = messages[-1].get("lookup_id")
        found, more = client.peek(queue, limit=limit - len(messages), after=last)
        messages += found
        more = more and bool(found)
    return messages, more


@app.command()
def receive(
    queue: QueueArgument,
    count: CountOption = 1,
    wait: WaitOption = 0,
    lookup_id: LookupOption = None,
    raw: RawOption = None,
    host: HostOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    exclusive: ExclusiveOption = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Take messages out of a queue, as a reader would, and show them.

    Example: msmq-bridge queue receive 'private$\orders' --count 10 --wait 5 -o json
    """
    remote = remote_of(host, user, password_file, level, auth, config, exclusive=exclusive)
    wanted = Wanted(queue, count, wait, lookup_id, raw)
    if remote is None:
        client = open_queues(config)
        take(wanted, lambda: _receive(client, queue, count, wait, lookup_id), output)
    else:
        take(wanted, lambda: remotely(remote, wanted), output)


def _receive(
    client: QueueClient, queue: str, count: int, wait_s: float, lookup_id: int | None
) -> Iterator[Row]:
    for _ in range(count):
        deadline = time.monotonic() + wait_s
        left = wait_s
        message = client.receive(queue, lookup_id=lookup_id, wait_s=left)
        while message is None and (left := deadline - time.monotonic()) > 0:
            message = client.receive(queue, wait_s=left)
        if message is None:
            return
        yield message


@app.command()
def purge(
    queue: QueueArgument,
    yes: YesOption = False,
    host: HostOption = None,
    user: UserOption = None,
    password_file: PasswordFileOption = None,
    level: LevelOption = None,
    auth: AuthOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Remove every message that is in a queue now; those who sent them hear of it if they asked.

    Example: msmq-bridge queue purge 'private$\orders;retry' --yes
    """
    remote = remote_of(host, user, password_file, level, auth, config)
    with _peeked(remote, config) as client:
        where = "" if host is None else f" on {host}"
        require_yes(f"Remove every message of {queue}{where}?", yes=yes)
        show(client.purge(queue), output)


@app.command()
def move(
    queue: QueueArgument,
    lookup_id: Annotated[int, typer.Option("--lookup-id", min=0, help="Which message.")],
    to: Annotated[str, typer.Option("--to", metavar="QUEUE", help="A subqueue, or back from it.")],
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Move a message from a queue to its subqueue, back, or between two of them.

    Example: msmq-bridge queue move 'private$\orders' --lookup-id 7 --to 'private$\orders;retry'
    """
    require_number("--lookup-id", lookup_id)
    show(open_queues(config).move(queue, lookup_id, to), output)


@app.command()
def create(
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help=r"private$\name or name.")],
    transactional: Annotated[
        bool, typer.Option("--transactional/--plain", help="Which messages it takes.")
    ] = False,
    topic: Annotated[str, typer.Option("--topic", "-t", help="Absent: named as the queue.")] = "",
    journal: Annotated[str, typer.Option("--journal", help="Topic of its journal.")] = "",
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Make a queue whose messages wait for readers, now and in the mapping files.

    Example: msmq-bridge queue create 'private$\orders' --transactional --journal orders.journal
    """
    client = open_queues(config)
    made = client.create(
        queue, transactional=transactional, topic=topic or None, journal=journal or None
    )
    show(made, output)


@app.command()
def delete(
    queue: QueueArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""End a queue with all that is in it, its journal, its subqueues and its mapping.

    Example: msmq-bridge queue delete 'private$\orders' --yes
    """
    client = open_queues(config)
    require_yes(f"Delete {queue} with every message in it?", yes=yes)
    show(client.delete(queue), output)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
