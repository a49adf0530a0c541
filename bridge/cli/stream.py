"""`msmq-bridge stream`: the streams of a running appliance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.net.stream_client import StreamClient
from bridge.adapters.paging import MAX_LIMIT, MAX_SEARCH
from bridge.cli.asking import require_yes
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption, console, show, table
from bridge.cli.queue_export import YesOption
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid

LIMIT: Final = 100

app = typer.Typer(
    help="Look at the streams of a running appliance; take one up in the middle, or forget it."
)

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="GUID of the sender's queue manager.")
]
DestinationArgument = Annotated[
    str,
    typer.Argument(metavar="DESTINATION", help="Format name, exactly as `stream list` shows it."),
]
Row = dict[str, Any]


def register(whole: typer.Typer) -> None:
    whole.add_typer(app, name="stream", no_args_is_help=True)


@app.command("list")
def list_streams(
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MAX_LIMIT, help="At most so many known ones.")
    ] = LIMIT,
    search: Annotated[
        str, typer.Option("--search", help="Known ones whose source or destination has this text.")
    ] = "",
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those that wait for adoption.")
    ] = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the streams of senders: how far each was taken, and those that wait for adoption.

    A stream waits for adoption when the first message that its sender offers follows one that was
    never seen here.

    Example: msmq-bridge stream list --waiting -o json
    """
    if len(search) > MAX_SEARCH:
        what = f"has more than {MAX_SEARCH} characters"
        raise ConfigError(what, where="--search", mend="shorten it")
    client = _open(config)
    stuck, stuck_total = client.waiting()
    told: Row = {"waiting": stuck, "waiting_total": stuck_total}
    if not waiting:
        known, total = client.known(limit, search)
        told |= {"streams": known, "total": total}
    if output is not Output.TABLE:
        show(told, output)
        return
    if not waiting:
        _print("streams", told["streams"], told["total"])
    _print("waiting for adoption", stuck, stuck_total)


def _print(title: str, rows: list[Row], total: int) -> None:
    counted = f"{total}" if len(rows) == total else f"{len(rows)} of {total}"
    console().print(table(rows, f"{title} ({counted})") if rows else f"{title} (0)")


@app.command()
def adopt(
    source: SourceArgument,
    destination: DestinationArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Take up a stream in the middle: the message that its sender offers becomes the next one.

    What the sender sent before that message is not here and does not come any more. The sender
    sends the waiting messages again by its own schedule.

    Example: msmq-bridge stream adopt 11111111-2222-3333-4444-555555555555 'DIRECT=OS:erp\orders'
    """
    client = _open(config)
    _require_guid(source)
    question = (
        f"Take up the stream of {source} to {destination} at the message that it offers, without "
        "those before it?"
    )
    require_yes(question, yes=yes)
    show(client.adopt(source, destination), output)


@app.command()
def forget(
    source: SourceArgument,
    destination: DestinationArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Remove what is known of a stream. Danger: its messages may become records a second time.

    For senders that are gone for good. If the sender still has messages that were taken here and
    sends them again, they are not recognised as duplicates.

    Example: msmq-bridge stream forget 11111111-2222-3333-4444-555555555555 'DIRECT=OS:erp\orders'
    """
    client = _open(config)
    _require_guid(source)
    question = (
        f"Forget the stream of {source} to {destination}? If its sender still sends, messages may "
        "become records twice."
    )
    require_yes(question, yes=yes)
    show(client.forget(source, destination), output)


def _open(config: Path | None) -> StreamClient:
    return StreamClient(load_config(config))


def _require_guid(text: str) -> None:
    try:
        Guid.parse(text)
    except ValueError:
        raise ConfigError(f"'{text}' is not a GUID", where="SOURCE") from None
