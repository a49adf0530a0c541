"""`msmq-bridge backfill`: bring in what lies in journals, dead-letter queues and exports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.cli.backfill_board import Board
from bridge.cli.backfill_text import print_summary
from bridge.cli.backfill_words import class_of, rate_of, span_of
from bridge.cli.options import ConfigOption, QueuesOption, SourcePasswordOption
from bridge.cli.output import Output, OutputOption, show
from bridge.model.errors import ConfigError

if TYPE_CHECKING:
    from msmq_jobs.backfill.job import Order
    from msmq_jobs.backfill.summary import Summary


def register(app: typer.Typer) -> None:
    app.command("backfill")(backfill)


def backfill(
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "-s",
            help="An export (*.jsonl, *.parquet), a folder of them, or a live queue like "
            "msmq://user@host/private$/orders;journal; repeatable.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", help="Folder for what was read and written.")
    ] = "backfill",
    config: ConfigOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
    receive: Annotated[
        bool, typer.Option("--receive", help="Empty live queues of what was committed.")
    ] = False,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Bring exactly what reconcile's plan names.")
    ] = None,
    queue: QueuesOption = None,
    since: Annotated[
        str, typer.Option("--from", help="Only messages sent then or later, ISO 8601.")
    ] = "",
    until: Annotated[str, typer.Option("--to", help="Only messages sent before, ISO 8601.")] = "",
    class_: Annotated[
        list[str] | None,
        typer.Option("--class", help="Only this message class, by name or number; repeatable."),
    ] = None,
    label: Annotated[
        str, typer.Option("--label", help="Only messages with this label (* and ? match).")
    ] = "",
    include_expired: Annotated[
        bool, typer.Option("--include-expired", help="Dead letters that ran out of time, too.")
    ] = False,
    password_file: SourcePasswordOption = None,
    rate: Annotated[
        float, typer.Option("--rate", help="At most so many messages per second; 0 = no limit.")
    ] = 0.0,
    master: Annotated[
        str, typer.Option("--master", help="Spark's master; without it all cores of this machine.")
    ] = "",
    output: OutputOption = Output.TABLE,
) -> int:
    """Bring old messages into their topics: once each, in order, marked `msmq.backfill`.

    They come from live queues, journals and dead-letter queues, or from exports of them.

    Ends with 0 when all is done, 2 when a part could not be, 1 on an error. A run that was killed
    is simply run again.

    Example: msmq-bridge backfill --config bridge.yaml --source exports/ --out runs --dry-run
    """
    # Spark takes seconds to load: not for --help, and not for what is wrong on the line.
    rate = rate_of(rate)
    classes = tuple(class_of(text) for text in class_ or ())
    since, until = span_of(since, until)
    if not source and plan is None:
        what = "there is no source"
        raise ConfigError(
            what, where="--source", mend="name an export, a folder or an msmq:// queue"
        )
    from msmq_jobs.backfill.job import Order
    from msmq_jobs.backfill.transforms import Asked

    asked = Asked(
        queues=tuple(queue or ()),
        since=since,
        until=until,
        classes=classes,
        label=label,
        include_expired=include_expired,
    )
    order = Order(
        config=config,
        sources=tuple(source or ()),
        out=out,
        asked=asked,
        plan=plan,
        receive=receive,
        dry_run=dry_run,
        password_file="" if password_file is None else str(password_file.absolute()),
        rate=rate,
    )
    told = _run(order, master)
    if output is Output.TABLE:
        print_summary(told)
    else:
        show(told, output)
    return told.exit_code


def _run(order: Order, master: str) -> Summary:
    from msmq_jobs.backfill.job import backfill as run
    from msmq_jobs.backfill.job import wanted
    from msmq_jobs.checks import check
    from msmq_jobs.session import session

    wanted(order)
    check(order.config, order.sources, order.password_file, out=order.out)
    with Board() as board:
        board.stage("starting Spark")
        with session("msmq-bridge backfill", master) as spark:
            return run(spark, order, board)
