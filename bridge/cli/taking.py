"""Messages that are shown, and messages that are taken out of a queue to be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from msgspec import Struct

from bridge.cli.output import Output, show
from bridge.cli.queue_text import message_rows, message_sheet, with_value
from bridge.cli.raw_file import RawFile
from bridge.cli.remote import Remote, open_remote
from bridge.core.message_data import read_data
from bridge.model.errors import BridgeError, ConfigError

MOST: Final = 1000
_MAX_ID: Final = (1 << 64) - 1

Row = dict[str, Any]
CountOption = Annotated[
    int, typer.Option("--count", "-n", min=1, max=MOST, help="At most so many.")
]
WaitOption = Annotated[
    float, typer.Option("--wait", min=0, max=86_400, help="Seconds to wait for each of them.")
]
LookupOption = Annotated[
    int | None, typer.Option("--lookup-id", min=0, help="This one message, wherever it stands.")
]
RawOption = Annotated[
    Path | None,
    typer.Option("--raw", metavar="FILE", help="Write the bytes of the body there; - is stdout."),
]


class NothingThere(BridgeError):
    """No message was in the queue, and none came."""


class Wanted(Struct, frozen=True):
    queue: str
    count: int
    wait_s: float
    lookup_id: int | None
    raw: Path | None


def take(wanted: Wanted, receive: Callable[[], Iterator[Row]], output: Output) -> None:
    """Show what comes; what was taken is shown, whatever comes between."""
    for option, is_given in (("--count", wanted.count > 1), ("--wait", wanted.wait_s > 0)):
        if wanted.lookup_id is not None and is_given:
            raise ConfigError("does not go with --lookup-id", where=option, mend="leave it out")
    if wanted.raw is not None and wanted.count > 1:
        raise ConfigError("takes one message", where="--raw", mend="leave out --count")
    require_number("--lookup-id", wanted.lookup_id)
    received: list[Row] = []
    messages = receive()
    with body_file(wanted.raw) as file:  # before anything is taken
        try:
            for message in messages:
                received.append(message)
                if file is not None:
                    file.write(read_data(message).body)
        finally:
            if received and (file is None or not file.is_stdout):
                show_messages(received, output, is_one=wanted.count == 1)
        if not received:
            raise NothingThere(f"there is no message in {wanted.queue}")


def remotely(remote: Remote, wanted: Wanted) -> Iterator[Row]:
    """Received from another host."""
    with (
        open_remote(remote) as queues,
        closing(
            queues.received(
                wanted.queue,
                count=wanted.count,
                wait_s=wanted.wait_s,
                lookup_id=wanted.lookup_id,
            )
        ) as rows,
    ):
        yield from rows


def body_file(raw: Path | None) -> AbstractContextManager[RawFile | None]:
    return nullcontext() if raw is None else RawFile(raw)


def show_messages(messages: list[Row], output: Output, *, is_one: bool) -> None:
    if output is not Output.TABLE:
        show([with_value(message) for message in messages], output)
    elif is_one and messages:
        show(message_sheet(messages[0]), output)
    else:
        show(message_rows(messages), output)


def require_number(option: str, number: int | None) -> None:
    if number is not None and number > _MAX_ID:
        raise ConfigError("has more than 64 bits", where=option)
