"""`msmq-bridge send`: an MSMQ sender of our own, to try any MSMQ host."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from bridge.adapters.net.binary_client import send_all
from bridge.cli.output import Output, OutputOption, show
from bridge.config import Address
from bridge.model.errors import ConfigError, IllegalName
from bridge.model.guid import Guid
from bridge.model.message import EXPRESS, FOUR_DAYS, INFINITE, RECOVERABLE, Message, Transaction
from bridge.model.names import Direct, parse_format_name
from bridge.protocol.binary.outgoing import Outgoing

MAX_BODY = 4 * 1024 * 1024 - 4096  # a packet holds 4 MiB with its headers
MAX_LABEL = 249  # UTF-16 units. MS-MQMQ 2.2.19.3


class Ack(StrEnum):
    """What the sender wants to hear at its administration queue. MS-MQMQ 2.2.19.3"""

    NONE = "none"
    REACH = "reach"
    RECEIVE = "receive"
    FULL_REACH = "full-reach"
    FULL_RECEIVE = "full-receive"
    NACK_RECEIVE = "nack-receive"


_ACK_FLAGS = {
    Ack.NONE: 0,
    Ack.REACH: 1,
    Ack.RECEIVE: 2,
    Ack.FULL_REACH: 5,
    Ack.FULL_RECEIVE: 0xE,
    Ack.NACK_RECEIVE: 0xC,
}


def register(app: typer.Typer) -> None:
    app.command("send")(send)


def send(
    queue: Annotated[
        str, typer.Option("--queue", help=r"Path name on the host, like private$\orders.")
    ] = "",
    to: Annotated[
        str, typer.Option("--to", help="Format name instead of --queue, like DIRECT=OS:h\\q.")
    ] = "",
    host: Annotated[str, typer.Option("--host", help="HOST or HOST:PORT.")] = "127.0.0.1:1801",
    count: Annotated[int, typer.Option("--count", min=1, help="How many.")] = 1,
    transactional: Annotated[
        bool, typer.Option("--transactional", help="Exactly once, in order.")
    ] = False,
    per_transaction: Annotated[
        int, typer.Option("--per-transaction", min=1, help="Messages in one transaction.")
    ] = 1,
    recoverable: Annotated[
        bool, typer.Option("--recoverable", help="Survives restarts; default is express.")
    ] = False,
    body: Annotated[str, typer.Option("--body", help="Text; {n} is the message's number.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", help="Body from this file; - is standard input.")
    ] = None,
    size: Annotated[
        int, typer.Option("--size", min=0, max=MAX_BODY, help="Pad the body to this many bytes.")
    ] = 0,
    label: Annotated[str, typer.Option("--label", help="{n} is the message's number.")] = "",
    body_type: Annotated[int, typer.Option("--body-type", min=0, max=0xFFFFFFFF)] = 0x1011,
    priority: Annotated[int, typer.Option("--priority", min=0, max=7)] = 3,
    app_specific: Annotated[int, typer.Option("--app", min=0, max=0xFFFFFFFF)] = 0,
    correlation: Annotated[str, typer.Option("--correlation", help="20 bytes in hex.")] = "",
    ttrq: Annotated[
        int, typer.Option("--ttrq", min=0, max=INFINITE, help="Seconds to reach the queue.")
    ] = FOUR_DAYS,
    ttbr: Annotated[
        int, typer.Option("--ttbr", min=0, max=INFINITE, help="Seconds to be received.")
    ] = INFINITE,
    admin_queue: Annotated[
        str, typer.Option("--admin-queue", help="Format name for acknowledgments.")
    ] = "",
    response_queue: Annotated[
        str, typer.Option("--response-queue", help="Format name for answers.")
    ] = "",
    ack: Annotated[Ack, typer.Option("--ack", help="Acknowledgments to ask for.")] = Ack.NONE,
    source: Annotated[
        str, typer.Option("--source", help="GUID to send as; a new one without it.")
    ] = "",
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds until all must be acknowledged.")
    ] = 60.0,
    output: OutputOption = Output.TABLE,
) -> None:
    r"""Send messages to an MSMQ queue and wait until its queue manager has acknowledged them.

    Example: msmq-bridge send --queue 'private$\demo' --transactional --count 1000
    """
    address = _address(host)
    template = Message(
        source=_guid(source) if source else Guid.random(),
        ordinal=0,
        destination=_destination(queue, to, address),
        delivery=RECOVERABLE if recoverable or transactional else EXPRESS,
        priority=0 if transactional else priority,
        sent_time=int(time.time()),
        time_to_reach_queue=ttrq,
        time_to_be_received=ttbr,
        body_type=body_type,
        app_specific=app_specific,
        correlation_id=_correlation(correlation),
        admin_queue=_name("--admin-queue", admin_queue),
        response_queue=_name("--response-queue", response_queue),
        ack=_ACK_FLAGS[ack],
    )
    _check_label(label, count)
    body_of = _bodies(body, file, size)
    messages = (
        _message(template, n, body_of(n), label, per_transaction if transactional else 0, count)
        for n in range(1, count + 1)
    )
    started = time.monotonic()
    outgoing = asyncio.run(_send(messages, count, template.source, address, timeout))
    seconds = time.monotonic() - started
    show(
        {
            "sent": outgoing.done,
            "to": template.destination,
            "source": str(template.source),
            "delivery": _delivery(template, transactional),
            "seconds": round(seconds, 3),
            "per_second": round(outgoing.done / seconds),
        },
        output,
        title="acknowledged",
    )


async def _send(
    messages: Iterator[Message], count: int, source: Guid, address: Address, timeout: float
) -> Outgoing:
    ordinals = itertools.count(count + 1)
    outgoing = Outgoing(
        local=source, sequence_timestamp=int(time.time()), ordinals=lambda: next(ordinals)
    )
    outgoing.add(list(messages))
    screen = Console(stderr=True)
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("sending", total=count)
        await send_all(
            outgoing,
            address.host,
            address.port,
            deadline_s=timeout,
            on_progress=lambda: bar.update(task, completed=outgoing.done),
        )
    return outgoing


def _message(
    template: Message, n: int, body: bytes, label: str, per_transaction: int, count: int
) -> Message:
    values = {name: getattr(template, name) for name in template.__struct_fields__}
    values |= {"ordinal": n, "label": label.replace("{n}", str(n)), "body": body}
    if per_transaction:
        first = (n - 1) % per_transaction == 0
        last = n % per_transaction == 0 or n == count
        index = (n - 1) // per_transaction + 1 & 0xFFFFF
        values["transaction"] = Transaction(
            sequence_id=0, number=0, first=first, last=last, index=index
        )
    return Message(**values)


def _delivery(template: Message, transactional: bool) -> str:
    if transactional:
        return "transactional"
    return "recoverable" if template.delivery else "express"


def _destination(queue: str, to: str, address: Address) -> str:
    if bool(queue) == bool(to):
        raise ConfigError("give either --queue or --to", mend=r"try --queue 'private$\demo'")
    if not to:
        kind = "TCP" if address.host.replace(".", "").isdigit() or ":" in address.host else "OS"
        to = f"DIRECT={kind}:{address.host}\\{queue}"
    name = _name("--to" if queue == "" else "--queue", to)
    if not isinstance(parse_format_name(name), Direct):
        raise ConfigError(
            f"{to} is not a direct name", where="--to", mend="write DIRECT=OS:host\\q"
        )
    return name


def _name(option: str, text: str) -> str:
    if not text:
        return ""
    try:
        parse_format_name(text)
    except IllegalName as error:
        raise ConfigError(
            f"{text!r} is no format name: {error.why}", where=option, mend=r"write DIRECT=OS:host\q"
        ) from error
    return text


def _address(text: str) -> Address:
    try:
        address = Address.parse(text)
        address.host.encode("idna")  # as the resolver will
        return address
    except ValueError as error:
        raise ConfigError(
            f"{text!r}: {error}", where="--host", mend="write HOST or HOST:PORT"
        ) from error


def _guid(text: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), where="--source", mend="write it without braces") from error


def _correlation(text: str) -> bytes:
    try:
        raw = bytes.fromhex(text) if text else bytes(20)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not hex", where="--correlation") from error
    if len(raw) != 20:
        raise ConfigError(f"has {len(raw)} bytes", where="--correlation", mend="give 20 in hex")
    return raw


def _check_label(label: str, count: int) -> None:
    longest = label.replace("{n}", str(count)).encode("utf-16-le", "surrogatepass")
    if len(longest) > 2 * MAX_LABEL:
        raise ConfigError(
            f"has {len(longest) // 2} characters",
            where="--label",
            mend=f"an MSMQ label has at most {MAX_LABEL}",
        )


def _bodies(body: str, file: Path | None, size: int) -> Callable[[int], bytes]:
    """The body of the n-th message; a file goes out as it is."""
    if file is not None:
        data = _read(file).ljust(size, b".")
        return lambda _: data
    text = (body or "message {n}").encode("utf-8", "surrogateescape")  # whatever the shell gave
    return lambda n: text.replace(b"{n}", b"%d" % n).ljust(size, b".")


def _read(file: Path) -> bytes:
    from_stdin = str(file) == "-"
    if from_stdin and sys.stdin is None:
        raise ConfigError("standard input is closed", where="--file")
    try:
        data = sys.stdin.buffer.read() if from_stdin else file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}", where="--file") from error
    if len(data) > MAX_BODY:
        raise ConfigError(
            f"{file} has {len(data)} bytes",
            where="--file",
            mend=f"an MSMQ body has at most {MAX_BODY}",
        )
    return data
