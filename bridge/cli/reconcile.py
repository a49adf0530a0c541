"""`msmq-bridge reconcile`: prove, message by message, that senders, wire and topics agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bridge.cli.backfill_board import Board
from bridge.cli.backfill_words import span_of
from bridge.cli.options import ConfigOption, QueuesOption, SourcePasswordOption
from bridge.cli.output import Output, OutputOption, show
from bridge.cli.reconcile_text import print_findings
from bridge.cli.reconcile_words import milliseconds_of, seconds_of
from bridge.model.errors import ConfigError

if TYPE_CHECKING:
    from msmq_jobs.reconcile.reading import Order

PARITY: Final = 0
BROKEN: Final = 2


def register(app: typer.Typer) -> None:
    app.command("reconcile")(reconcile)


def reconcile(
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "-s",
            help="What senders hold: an export (*.jsonl, *.parquet), a folder of them, or a live "
            "queue like msmq://user@host/private$/orders;journal; repeatable.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", help="Folder for the report and the verdicts.")
    ] = "reconcile",
    config: ConfigOption = None,
    queue: QueuesOption = None,
    since: Annotated[
        str, typer.Option("--from", help="Only messages of then or later, ISO 8601.")
    ] = "",
    until: Annotated[str, typer.Option("--to", help="Only messages before, ISO 8601.")] = "",
    in_flight: Annotated[
        str,
        typer.Option(
            "--in-flight", help="How long a message may be on its way: 90s, 5m, 2h; 0 = no time."
        ),
    ] = "5m",
    plan: Annotated[
        str, typer.Option("--plan", help="Write what is missing to this file, for backfill --plan.")
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Let so many pass: missing=5, duplicated=0.1%; repeatable."),
    ] = None,
    state: Annotated[
        str, typer.Option("--state", help="Folder of what was read before: read only what is new.")
    ] = "",
    state_format: Annotated[
        str, typer.Option("--state-format", help="parquet; delta or iceberg if Spark has them.")
    ] = "parquet",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C; needs --state.")
    ] = False,
    every: Annotated[str, typer.Option("--every", help="With --follow: how often.")] = "60s",
    password_file: SourcePasswordOption = None,
    master: Annotated[
        str, typer.Option("--master", help="Spark's master; without it all cores of this machine.")
    ] = "",
    output: OutputOption = Output.TABLE,
) -> int:
    """Compare what senders sent, what the wire accepted and what lies in the topics.

    Ends with 0 for parity, 2 when it is broken, 1 on an error. The folder gets a
    report (HTML, JSON, JUnit) and a verdict for every message (verdicts/, Parquet).

    Example: msmq-bridge reconcile --config bridge.yaml --source exports/ --out parity
    """
    # Spark takes seconds to load: not for --help, and not for what is wrong on the line.
    window = seconds_of("--in-flight", in_flight)
    since, until = span_of(since, until)
    since_ms, until_ms = milliseconds_of("--from", since), milliseconds_of("--to", until)
    pause = seconds_of("--every", every)
    if follow and not state:
        raise ConfigError("--follow keeps what it has seen", where="--state", mend="name a folder")
    from msmq_jobs.reconcile.reading import Order
    from msmq_jobs.reconcile.thresholds import parse

    order = Order(
        config=config,
        sources=tuple(source or ()),
        out=out,
        queues=tuple(queue or ()),
        since_ms=since_ms,
        until_ms=until_ms,
        in_flight_s=window,
        plan=plan,
        state=state,
        state_format=state_format,
        allowed=parse(allow or ()),
        password_file="" if password_file is None else str(password_file.absolute()),
    )
    told = _run(order, master, pause if follow else None, output)
    return PARITY if told["parity"] else BROKEN


def _run(order: Order, master: str, pause: int | None, output: Output) -> dict[str, Any]:
    from msmq_jobs.checks import check, check_file
    from msmq_jobs.reconcile.follow import follow
    from msmq_jobs.reconcile.job import reconcile as run
    from msmq_jobs.session import session

    def tell(told: dict[str, Any]) -> None:
        if output is Output.TABLE:
            print_findings(told, order.out)
        else:
            show(told, output)

    folders = {"out": order.out} | ({"state": order.state} if order.state else {})
    check_file("--plan", order.plan)
    check(order.config, order.sources, order.password_file, **folders)
    with Board() as board:
        board.stage("starting Spark")
        with session("msmq-bridge reconcile", master) as spark:
            if pause is not None:
                return follow(spark, order, board, pause, tell)
            told = run(spark, order, board)
    tell(told)
    return told
