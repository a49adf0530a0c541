"""`msmq-bridge queue`: the queues of a running appliance and the messages in them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.net.queue_client import QueueClient
from bridge.cli.asking import require_yes
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, show
from bridge.cli.queue_text import message_rows, message_sheet, queue_rows, with_value
from bridge.cli.raw_file import RawFile
from bridge.core.message_data import read_data
from bridge.model.errors import BridgeError, ConfigError

MOST: Final = 1000
LIMIT: Final = 10
_MAX_ID: Final = (1 << 64) - 1

app = typer.Typer(help="Look at the queues of a running appliance, and look after them.")

Row = dict[str, Any]
QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"private$\name, name, private$\name;journal, private$\name;subqueue, "
        ";deadletter, ;deadxact or ;journal. Case does not count.",
    ),
]
LookupOption = Annotated[
    int | None, typer.Option("--lookup-id", min=0, help="This one message, wherever it stands.")
]
RawOption = Annotated[
    Path | None,
    typer.Option("--raw", metavar="FILE", help="Write the bytes of the body there; - is stdout."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class NothingThere(BridgeError):
    """No message was in the queue, and none came."""


def register(whole: typer.Typer) -> None:
    whole.add_typer(app, name="queue", no_args_is_help=True)


def open_queues(config: Path | None) -> QueueClient:
    return QueueClient(load_config(config))


@app.command("list")
def list_queues(config: ConfigOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show every queue: what becomes of its messages, and how many wait in it.

    Example: msmq-bridge queue list --config bridge.yaml -o json
    """
    queues = open_queues(config).queues()
    show(queue_rows(queues) if output is Output.TABLE else queues, output)


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
    _require_number("--lookup-id", lookup_id)
    _require_number("--after", after)
    client = open_queues(config)
    with _body_file(raw) as file:
        messages, more = _peek(client, queue, 1 if is_one else limit or LIMIT, after, lookup_id)
        if file is not None:
            if not messages:
                raise NothingThere(f"there is no message in {queue}")
            file.write(read_data(messages[0]).body)
    if file is None or not file.is_stdout:
        _show(messages, output, is_one=is_one or limit == 1)
    if more and messages and not is_one:
        _note(f"there are more; --after {messages[-1].get('lookup_id')} shows the next ones")


def _peek(
    client: QueueClient, queue: str, limit: int, after: int | None, lookup_id: int | None
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
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=MOST, help="At most so many.")
    ] = 1,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=86_400, help="Seconds to wait for each of them.")
    ] = 0,
    lookup_id: LookupOption = None,
    raw: RawOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Take messages out of a queue, as a reader would, and show them.

    Example: msmq-bridge queue receive 'private$\orders' --count 10 --wait 5 -o json
    """
    for option, is_given in (("--count", count > 1), ("--wait", wait > 0)):
        if lookup_id is not None and is_given:
            raise ConfigError("does not go with --lookup-id", where=option, mend="leave it out")
    if raw is not None and count > 1:
        raise ConfigError("takes one message", where="--raw", mend="leave out --count")
    _require_number("--lookup-id", lookup_id)
    client = open_queues(config)
    received: list[Row] = []
    with _body_file(raw) as file:  # before anything is taken
        try:
            for message in _receive(client, queue, count, wait, lookup_id):
                received.append(message)
                if file is not None:
                    file.write(read_data(message).body)
        finally:  # what was taken is shown, whatever came between
            if received and (file is None or not file.is_stdout):
                _show(received, output, is_one=count == 1)
        if not received:
            raise NothingThere(f"there is no message in {queue}")


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
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Remove every message that is in a queue now; those who sent them hear of it if they asked.

    Example: msmq-bridge queue purge 'private$\orders;retry' --yes
    """
    client = open_queues(config)
    require_yes(f"Remove every message of {queue}?", yes=yes)
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
    _require_number("--lookup-id", lookup_id)
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


def _body_file(raw: Path | None) -> AbstractContextManager[RawFile | None]:
    return nullcontext() if raw is None else RawFile(raw)


def _show(messages: list[Row], output: Output, *, is_one: bool) -> None:
    if output is not Output.TABLE:
        show([with_value(message) for message in messages], output)
    elif is_one and messages:
        show(message_sheet(messages[0]), output)
    else:
        show(message_rows(messages), output)


def _require_number(option: str, number: int | None) -> None:
    if number is not None and number > _MAX_ID:
        raise ConfigError("has more than 64 bits", where=option)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
