"""`msmq-bridge send --to http://…`: the same messages over HTTP. MC-MQSRM"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from bridge.adapters.config_files import load_config
from bridge.adapters.net.srmp_client import ReceiptDesk, Route, SrmpClient, address_towards
from bridge.adapters.net.tls import client_context
from bridge.cli.batch import Batch, Outcome, address_of, format_name
from bridge.config import Redirect
from bridge.core.redirection import Redirects
from bridge.model.errors import ConfigError, WireError
from bridge.model.message import ACK_ARRIVAL, ACK_RECEIVE, INFINITE, NACK_RECEIVE, Message
from bridge.model.words import in_words
from bridge.protocol.srmp.sender import Sender
from bridge.protocol.srmp.sending import Fate
from bridge.wire.srmp.convert import envelope_name
from bridge.wire.srmp.head import Endpoint, split_url
from bridge.wire.srmp.values import is_url

ReceiptsHostOption = Annotated[
    str,
    typer.Option(
        "--receipts-host",
        help="Over HTTP: our address, where receipts come to; else the one we connect from.",
    ),
]
ReceiptsPortOption = Annotated[
    int,
    typer.Option(
        "--receipts-port", min=0, max=65535, help="Over HTTP: our port for receipts; 0 is any."
    ),
]
ReceiptsToOption = Annotated[
    str,
    typer.Option(
        "--receipts-to", help="Over HTTP: URL that the receiver is told for receipts, if not ours."
    ),
]
CaFileOption = Annotated[
    Path | None,
    typer.Option("--ca-file", help="Over HTTPS: PEM certificates to trust, not the system's."),
]
HttpConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Over HTTP: bridge.yaml with redirections to obey."),
]

_URL: Final = re.compile(r"(?:DIRECT=)?(https?://.*)", re.I | re.S)
_MEND: Final = "write http://host/msmq/private$/queue"
_ASKED: Final = ACK_ARRIVAL | ACK_RECEIVE | NACK_RECEIVE  # SRMP has no word for NACK_ARRIVAL
_REFUSED: Final = "HTTP 400 (malformed, no such queue there, or a queue of the other kind)"


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What only counts over HTTP, but for the host."""

    host: str | None = None
    receipts_host: str = ""
    receipts_port: int = 0
    receipts_to: str = ""
    ca_file: Path | None = None
    config: Path | None = None


class HttpWay(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages go, and where their receipts come to."""

    route: Route
    receipts_host: str
    receipts_port: int
    receipts_to: str  # empty: to us
    stream_tag: str


def url_of(queue: str, to: str) -> str:
    """The URL that --to names, with or without `DIRECT=`; empty if it names something else."""
    match = _URL.fullmatch(to)
    if match is None:
        return ""
    if queue:
        raise ConfigError("give either --queue or --to", mend=_MEND)
    return match[1]


def http_name(option: str, text: str) -> str:
    """A format name; a URL may stand for one."""
    return f"DIRECT={text}" if is_url(text) else format_name(option, text)


def way_of(url: str, template: Message, options: HttpOptions) -> HttpWay | None:
    """None if they are not sent over HTTP; ConfigError if something does not fit."""
    if not url:
        _require_unused(options)
        return None
    _check(template)
    endpoint = _endpoint("--to", url)
    settings = load_config(options.config).srmp
    redirected = _redirects(settings.redirect_out).apply(url)  # SR-18
    place = _endpoint("srmp.redirect_out", redirected) if redirected else endpoint
    address = _address(place, options.host)
    tls = None
    if place.scheme == "https":
        tls = client_context(options.ca_file or settings.ca_file, settings.tls)
    receipts_to = options.receipts_to or _redirects(settings.receipt_redirect).apply(url)  # SR-73
    if receipts_to:
        _endpoint("--receipts-to", receipts_to)
    return HttpWay(
        route=Route(
            url=url,
            target=endpoint.target,
            authority=place.authority,
            address=address,
            tls=tls,
            server_name=place.host.strip("[]") if tls is not None else "",
        ),
        receipts_host=options.receipts_host,
        receipts_port=options.receipts_port,
        receipts_to=receipts_to or "",
        stream_tag=settings.stream_element,
    )


def _require_unused(options: HttpOptions) -> None:
    for name in ("receipts_host", "receipts_port", "receipts_to", "ca_file", "config"):
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise ConfigError("is for --to http://… only", where=option, mend="leave it out")


def _check(template: Message) -> None:
    if template.time_to_be_received != INFINITE:
        raise ConfigError("messages over HTTP have no such time", where="--ttbr", mend="try --ttrq")
    admin = template.admin_queue
    if template.ack & _ASKED and admin and not is_url(envelope_name(admin)):
        raise ConfigError(f"{admin} is no URL", where="--admin-queue", mend=_MEND)


def _endpoint(option: str, url: str) -> Endpoint:
    try:
        endpoint = split_url(url)
        endpoint.host.encode("idna")  # as the resolver will
        return endpoint
    except (WireError, UnicodeError) as error:
        raise ConfigError(f"{url[:200]!r} is no URL", where=option, mend=_MEND) from error


def _address(place: Endpoint, host: str | None) -> tuple[str, int]:
    if host is None:
        return place.host.strip("[]"), place.port
    has_port = ":" in host.rpartition("]")[2]
    address = address_of(host if has_port else f"{host}:{place.port}")
    return address.host, address.port


def _redirects(table: tuple[Redirect, ...]) -> Redirects:
    return Redirects((entry.source, entry.target) for entry in table)


async def post_all(
    batch: Batch, way: HttpWay, timeout: float, on_progress: Callable[[int], None]
) -> Outcome:
    template = batch.template
    to_us = bool(template.ack & _ASKED) and not template.admin_queue
    desk = ReceiptDesk(template.source)
    try:
        if to_us or batch.per_transaction:
            await _open(desk, way)
        sender = Sender(
            local=template.source,
            receipts_to=way.receipts_to or desk.url,
            stream_ordinals=count(time.time_ns() // 1000 % 1_000_000 + 1).__next__,  # QB-96
            stream_tag=way.stream_tag,
        )
        sender.add(_messages(batch, desk.url if to_us else ""))
        client = SrmpClient(
            sender,
            way.route,
            desk=desk,
            receipts_each=_receipts_each(template.ack) if to_us else 0,
            on_progress=lambda: on_progress(sender.done),
        )
        await client.run(timeout)
    finally:
        await desk.close()
    return _outcome(batch, client, desk.classes if to_us else None)


async def _open(desk: ReceiptDesk, way: HttpWay) -> None:
    host = way.receipts_host or await address_towards(*way.route.address)
    try:
        await desk.open(host, way.receipts_port)
    except ConfigError as error:
        raise ConfigError(
            error.what, where="--receipts-port", mend="choose another --receipts-host or port"
        ) from error


def _messages(batch: Batch, receipts_to: str) -> Iterator[Message]:
    """Without an administration queue what was asked for comes to us."""
    for message in batch.messages():
        if receipts_to:
            message = msgspec.structs.replace(message, admin_queue=f"DIRECT={receipts_to}")
        yield message


def _receipts_each(ack: int) -> int:
    """Those that come whatever happens; one that is negative only cannot be waited for."""
    return bool(ack & ACK_ARRIVAL) + bool(ack & ACK_RECEIVE)


def _outcome(batch: Batch, client: SrmpClient, receipts: list[int] | None) -> Outcome:
    finals: list[int] = []
    refused: list[str] = []
    done = 0
    for (fate, message_class), many in client.settled.items():
        if fate in (Fate.RECEIVED, Fate.DIED):
            finals += [message_class] * many
        if fate in (Fate.REACHED, Fate.RECEIVED):
            done += many
        else:
            why = _REFUSED if fate is Fate.REFUSED else in_words(message_class)
            refused += [why] * many
    return Outcome(
        done=done,
        final_acks=finals if batch.awaits_final else None,
        receipts=receipts,
        refused=refused,
    )
