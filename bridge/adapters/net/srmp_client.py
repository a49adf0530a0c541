"""Carries a `Sender` to its destination over HTTP; its receipts come to a small desk of our own."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, assert_never

import msgspec

from bridge.adapters.net.binary_client import PeerUnavailable
from bridge.adapters.net.connection import now
from bridge.adapters.net.host_names import resolving
from bridge.adapters.net.http_client import HttpConnection, HttpFault
from bridge.adapters.net.http_server import HttpRequest, HttpServer
from bridge.adapters.telemetry import Telemetry
from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.protocol.commands import Close
from bridge.protocol.events import Tick
from bridge.protocol.srmp.sender import BAD_REQUEST, OK, Sender, State
from bridge.protocol.srmp.sending import (
    Answered,
    Command,
    Event,
    Fate,
    FinalReceipted,
    NoAnswer,
    Post,
    Settled,
    StreamReceipted,
    receipt_of,
)
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.head import Endpoint, request_headers
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.request import read_request
from bridge.wire.srmp.values import parse_id

ORDER_QUEUE: Final = "/MSMQ/PRIVATE$/order_queue$"  # SR-73
_TAKEN: Final = 200
_ARRIVED: Final = (Fate.REACHED, Fate.RECEIVED, Fate.DIED)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages for a URL go: what the request says, and who is connected to."""

    url: str
    target: str
    authority: str  # the Host header
    address: tuple[str, int]
    tls: ssl.SSLContext | None = None
    server_name: str = ""


class ReceiptDesk:
    """Takes what is POSTed to us: receipts for streams of ours go to `tell`, those for single
    messages of ours are counted, each once (SR-50)."""

    def __init__(self, local: Guid) -> None:
        self._local = local
        self._server = HttpServer(self._take, Telemetry())
        self._seen = set[tuple[Guid, int]]()
        self.url = ""
        self.classes: list[int] = []  # of delivery and commitment receipts
        self.tell: Callable[[StreamReceipted | FinalReceipted], None] = lambda _: None
        self.counted: Callable[[], None] = lambda: None

    async def open(self, host: str, port: int) -> None:
        """ConfigError if that is not possible. A listener without TLS: its URL is http (SR-73
        wants the scheme of the destination, for which we would need a certificate)."""
        address = await self._server.start(host, port)
        number = int(address.rpartition(":")[2])
        name = f"[{host}]" if ":" in host else host
        endpoint = Endpoint(scheme="http", host=name, port=number, target=ORDER_QUEUE)
        self.url = f"http://{endpoint.authority}{ORDER_QUEUE}"

    async def close(self) -> None:
        """What is being answered may end."""
        self._server.stop_listening()
        await self._server.hang_up()

    async def _take(self, request: HttpRequest) -> int:
        try:
            envelope = read_request(request.content_type, request.body).envelope
        except WireError:
            return BAD_REQUEST  # SR-5
        receipt = receipt_of(envelope)
        if receipt is not None:
            self.tell(receipt)
        elif self._is_ours(envelope) and envelope.identifier not in self._seen:
            self._seen.add(envelope.identifier)
            self.classes.append(envelope.message_class)
            self.counted()
        return _TAKEN  # also what means nothing to us: SR-8

    def _is_ours(self, envelope: Envelope) -> bool:
        if kind_of(envelope) not in (Kind.DELIVERY_RECEIPT, Kind.COMMITMENT_RECEIPT):
            return False
        receipt = envelope.delivery_receipt or envelope.commitment_receipt
        try:
            return receipt is not None and parse_id("id", receipt.id)[0] == self._local
        except WireError:
            return False


class SrmpClient:
    """Runs one Sender: one POST at a time, and receipts and timers in between."""

    def __init__(
        self,
        sender: Sender,
        route: Route,
        *,
        desk: ReceiptDesk | None = None,
        receipts_each: int = 0,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """So many receipts for each message that arrived are waited for, too."""
        self._sender, self._route, self._desk = sender, route, desk
        self._receipts_each = receipts_each
        self._on_progress = on_progress
        self._connection = HttpConnection(
            route.address, tls=route.tls, server_name=route.server_name
        )
        self._next: Post | None = None
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._trouble = ""  # with the last POST
        self.settled = Counter[tuple[Fate, int]]()

    async def run(self, deadline_s: float) -> None:
        """Return when the receiver has taken or refused everything.

        Raises PeerUnavailable when that did not happen in time.
        """
        if self._desk is not None:
            self._desk.tell = self._apply
            self._desk.counted = self._news.set
        try:
            async with asyncio.timeout(deadline_s):
                await self._carry()
        except TimeoutError:
            if not self._is_done:
                raise PeerUnavailable(self._complaint(deadline_s)) from None
        finally:
            if self._desk is not None:
                self._desk.tell = lambda _: None
            self._stop_timer()
            self._connection.close()

    async def _carry(self) -> None:
        self._execute(self._sender.pump(now()))
        while not self._is_done:
            post, self._next = self._next, None
            if post is not None:
                self._apply(await self._post(post))
            else:  # a receipt comes, or a time is over
                self._news.clear()
                await self._news.wait()

    @property
    def _is_done(self) -> bool:
        return not self._sender.waiting and self._receipts_left <= 0

    def _apply(self, event: Event) -> None:
        self._execute(self._sender.handle(event, now()))

    def _execute(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Post():
                    self._next = command
                case Settled():
                    self.settled[command.fate, command.message_class] += 1
                case Close():
                    self._connection.close()
                case _:
                    assert_never(command)
        self._arm_timer()
        self._on_progress()
        self._news.set()

    async def _post(self, post: Post) -> Answered | NoAnswer:
        route = self._route
        headers = request_headers(route.authority, post.content_type, len(post.body))
        try:
            status = await self._connection.post(route.target, headers, post.body)
        except (OSError, HttpFault) as error:
            self._trouble = _reason(error)
            return NoAnswer(post.number, self._trouble)
        self._trouble = "" if status in OK or status == BAD_REQUEST else f"HTTP {status}"
        return Answered(post.number, status)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm_timer(self) -> None:
        self._stop_timer()
        due = self._sender.next_wakeup()
        loop = asyncio.get_running_loop()
        self._timer = None if due is None else loop.call_at(due, self._apply, Tick())

    @property
    def _receipts_left(self) -> int:
        arrived = sum(count for (fate, _), count in self.settled.items() if fate in _ARRIVED)
        found = 0 if self._desk is None else len(self._desk.classes)
        return self._receipts_each * arrived - found

    def _complaint(self, deadline_s: float) -> str:
        stream, desk = self._sender.stream, "" if self._desk is None else self._desk.url
        waiting = self._sender.waiting
        what = f"{waiting} messages are not acknowledged"
        if not waiting:
            what, why = f"{self._receipts_left} receipts are missing", f"they go to {desk}"
        elif self._trouble or stream is None or self._sender.state is State.SENDING:
            why = self._trouble or "no answer"
        else:
            why = f"no {'stream' if stream.unacked else 'final'} receipt came to {desk}"
        after = f"after {deadline_s:g} s ({why})"
        return f"{self._route.url}: {what} {after}; see the status of that queue manager"


def _reason(error: OSError | HttpFault) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # asyncio says `Connect call failed` for all of them
    return getattr(error, "strerror", None) or str(error) or "no answer"


async def address_towards(host: str, port: int) -> str:
    """The local address that a connection to there would have; nothing is sent."""
    loop = asyncio.get_running_loop()
    try:
        with resolving(host):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        family, kind, number, _, address = found[0]
        with socket.socket(family, kind, number) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        why = error.strerror or str(error)
        raise PeerUnavailable(f"{host}:{port}: there is no way to it ({why})") from error
