"""`msmq-bridge send`: an MSMQ sender of our own, to try any MSMQ host."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from bridge.adapters.net.binary_client import send_all
from bridge.cli.batch import (
    ACK_FLAGS,
    MAX_BODY,
    Ack,
    Batch,
    Outcome,
    address_of,
    bodies,
    correlation_of,
    destination,
    format_name,
    source_of,
)
from bridge.cli.output import Output, OutputOption, show
from bridge.cli.send_http import (
    CaFileOption,
    HttpConfigOption,
    HttpOptions,
    ReceiptsHostOption,
    ReceiptsPortOption,
    ReceiptsToOption,
    http_name,
    post_all,
    url_of,
    way_of,
)
from bridge.config import Address
from bridge.model.errors import BridgeError
from bridge.model.message import (
    EXPRESS,
    FOUR_DAYS,
    INFINITE,
    JOURNAL_NEGATIVE,
    RECOVERABLE,
    Message,
)
from bridge.model.words import counted, in_words, is_negative
from bridge.protocol.binary.outgoing import Outgoing
from bridge.protocol.commands import FinalAcked

U32 = 0xFFFFFFFF
HERE = "127.0.0.1:1801"

Carry = Callable[[Callable[[int], None]], Coroutine[Any, Any, Outcome]]

QueueOption = Annotated[
    str, typer.Option("--queue", help=r"Path name on the host, like private$\orders.")
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="Instead of --queue a format name, like DIRECT=OS:h\\q, or a URL, like "
        "http://h/msmq/private$/q: then it is sent over HTTP.",
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option(
        "--host", help=f"HOST or HOST:PORT to connect to; else that of the URL, or {HERE}."
    ),
]
CountOption = Annotated[int, typer.Option("--count", min=1, help="How many.")]
TransactionalOption = Annotated[
    bool, typer.Option("--transactional", help="Exactly once, in order.")
]
PerTransactionOption = Annotated[
    int, typer.Option("--per-transaction", min=1, help="Messages in one transaction.")
]
RecoverableOption = Annotated[
    bool, typer.Option("--recoverable", help="Survives restarts; default is express.")
]
BodyOption = Annotated[str, typer.Option("--body", help="Text; {n} is the message's number.")]
FileOption = Annotated[
    Path | None, typer.Option("--file", help="Body from this file; - is standard input.")
]
SizeOption = Annotated[
    int, typer.Option("--size", min=0, max=MAX_BODY, help="Pad the body to this many bytes.")
]
LabelOption = Annotated[str, typer.Option("--label", help="{n} is the message's number.")]
BodyTypeOption = Annotated[
    int, typer.Option("--body-type", min=0, max=U32, help="VT_* of the body; 4113: bytes.")
]
PriorityOption = Annotated[
    int, typer.Option("--priority", min=0, max=7, help="7 is the highest; 0 in a transaction.")
]
AppOption = Annotated[
    int, typer.Option("--app", min=0, max=U32, help="A number of the application's own.")
]
CorrelationOption = Annotated[str, typer.Option("--correlation", help="20 bytes in hex.")]
TtrqOption = Annotated[
    int, typer.Option("--ttrq", min=0, max=INFINITE, help="Seconds to reach the queue.")
]
TtbrOption = Annotated[
    int, typer.Option("--ttbr", min=0, max=INFINITE, help="Seconds to be received.")
]
AdminQueueOption = Annotated[
    str, typer.Option("--admin-queue", help="Format name for acknowledgments.")
]
ResponseQueueOption = Annotated[
    str, typer.Option("--response-queue", help="Format name for answers.")
]
AckOption = Annotated[Ack, typer.Option("--ack", help="Acknowledgments to ask for.")]
DeadLetterOption = Annotated[
    bool,
    typer.Option(
        "--dead-letter",
        help="Let a message that fails become a dead letter; waits as --wait-final does.",
    ),
]
SourceOption = Annotated[
    str,
    typer.Option("--source", help="GUID to send as; a new one without it. Ids begin at 1 again."),
]
WaitFinalOption = Annotated[
    bool,
    typer.Option(
        "--wait-final", help="Ask what became of each transactional message, and wait for it."
    ),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds until all must be acknowledged.")
]


class Refused(BridgeError):
    """The other queue manager, or its queue, did not take them."""


def register(app: typer.Typer) -> None:
    app.command("send")(send)


def send(
    queue: QueueOption = "",
    to: ToOption = "",
    host: HostOption = None,
    count: CountOption = 1,
    transactional: TransactionalOption = False,
    per_transaction: PerTransactionOption = 1,
    recoverable: RecoverableOption = False,
    body: BodyOption = "",
    file: FileOption = None,
    size: SizeOption = 0,
    label: LabelOption = "",
    body_type: BodyTypeOption = 0x1011,
    priority: PriorityOption = 3,
    app_specific: AppOption = 0,
    correlation: CorrelationOption = "",
    ttrq: TtrqOption = FOUR_DAYS,
    ttbr: TtbrOption = INFINITE,
    admin_queue: AdminQueueOption = "",
    response_queue: ResponseQueueOption = "",
    ack: AckOption = Ack.NONE,
    dead_letter: DeadLetterOption = False,
    source: SourceOption = "",
    wait_final: WaitFinalOption = False,
    timeout: TimeoutOption = 60.0,
    receipts_host: ReceiptsHostOption = "",
    receipts_port: ReceiptsPortOption = 0,
    receipts_to: ReceiptsToOption = "",
    ca_file: CaFileOption = None,
    config: HttpConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Send messages to an MSMQ queue and wait until its queue manager has acknowledged them.

    Example: msmq-bridge send --queue 'private$\demo' --transactional --count 1000

    Example: msmq-bridge send --to 'http://localhost/msmq/private$/demo' --transactional
    """
    url = url_of(queue, to)
    name = http_name if url else format_name
    address = address_of(HERE if host is None or url else host)
    as_dead_letter = dead_letter or bool(url and wait_final)  # SR-53: what a final receipt needs
    template = Message(
        source=source_of(source),
        ordinal=0,
        destination=f"DIRECT={url}" if url else destination(queue, to, address),
        delivery=RECOVERABLE if recoverable or transactional else EXPRESS,
        priority=0 if transactional else priority,
        sent_time=int(time.time()),
        time_to_reach_queue=ttrq,
        time_to_be_received=ttbr,
        body_type=body_type,
        app_specific=app_specific,
        correlation_id=correlation_of(correlation),
        admin_queue=name("--admin-queue", admin_queue),
        response_queue=name("--response-queue", response_queue),
        ack=ACK_FLAGS[ack],
        journal=JOURNAL_NEGATIVE if as_dead_letter else 0,
    )
    batch = Batch(
        template=template,
        count=count,
        label=label,
        body_of=bodies(body, file, size),
        per_transaction=per_transaction if transactional else 0,
        final_ack=wait_final,
    )
    options = HttpOptions(
        host=host,
        receipts_host=receipts_host,
        receipts_port=receipts_port,
        receipts_to=receipts_to,
        ca_file=ca_file,
        config=config,
    )
    way = way_of(url, template, options)
    if way is None:
        _send(batch, lambda progress: _hand_over(batch, address, timeout, progress), output)
    else:
        _send(batch, lambda progress: post_all(batch, way, timeout, progress), output)


def _send(batch: Batch, carry: Carry, output: Output) -> None:
    """All of them, with a bar on a terminal; stdout is for the answer."""
    started = time.monotonic()
    screen = Console(stderr=True)
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("sending", total=batch.count)
        outcome = asyncio.run(carry(lambda done: bar.update(task, completed=done)))
    seconds = time.monotonic() - started
    answer: dict[str, Any] = {
        "sent": outcome.done,
        "to": batch.template.destination,
        "source": str(batch.template.source),
        "delivery": batch.delivery,
        "seconds": round(seconds, 3),
        "per_second": round(outcome.done / seconds),
    }
    if outcome.final_acks is not None:
        answer["final_acks"] = counted(outcome.final_acks)
    if outcome.receipts is not None:
        answer["receipts"] = counted(outcome.receipts)
    show(answer, output, title="acknowledged")
    if outcome.refused:
        reasons = ", ".join(dict.fromkeys(outcome.refused))
        many = f"{len(outcome.refused)} of {batch.count} messages"
        raise Refused(f"{many} were refused: {reasons}")


async def _hand_over(
    batch: Batch, address: Address, timeout: float, on_progress: Callable[[int], None]
) -> Outcome:
    """In binary sessions."""
    ordinals = itertools.count(batch.count + 1)
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    outgoing = Outgoing(
        local=batch.template.source,
        sequence_timestamp=seconds,  # QB-96: a later run's is greater, also within one second
        sequence_ordinal=microseconds + 1,
        ordinals=lambda: next(ordinals),
    )
    outgoing.add(list(batch.messages()))
    await send_all(
        outgoing,
        address.host,
        address.port,
        deadline_s=timeout,
        on_progress=lambda: on_progress(outgoing.done),
    )
    if not batch.awaits_final:
        return Outcome(done=outgoing.done)
    finals = [told.message_class for told in outgoing.told if isinstance(told, FinalAcked)]
    refused = [in_words(number) for number in finals if is_negative(number)]
    return Outcome(done=outgoing.done, final_acks=finals, refused=refused)
