"""A POST becomes a message, its verdict the status of the answer. Digest srmp.md 3.1 to 3.3

The sender waits for the answer before it sends the next one, so a message is one submission; many
senders fill a transaction together. 200 means that it is committed (SR-3): to its queue, or to
those that wait for another host, if that is where it is redirected to (SR-15).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar
from urllib.parse import unquote

from bridge.adapters.beside import beside_the_loop
from bridge.adapters.intake import Intake
from bridge.adapters.net.http_server import HttpRequest
from bridge.adapters.own_hosts import OwnHosts, RejectedHosts
from bridge.adapters.telemetry import Telemetry
from bridge.core.admission import NO_TOPIC
from bridge.core.catalogue import Catalogue
from bridge.core.known_senders import HTTP, KnownSenders
from bridge.core.redirection import Redirects, host_of
from bridge.core.streams import stream_key
from bridge.model.classes import MessageClass
from bridge.model.errors import BridgeError, WireError
from bridge.model.guid import NULL_GUID
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict
from bridge.wire.srmp.convert import format_name, message_from_request
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.readdress import readdress
from bridge.wire.srmp.request import SrmpRequest, read_request
from bridge.wire.srmp.values import is_url

OK: Final = 200
BAD_REQUEST: Final = 400
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503

INLINE: Final = 16 << 10  # bytes of a request that is parsed on the event loop
ANSWER_S: Final = 15.0  # the sender repeats it after 20. SR-4

_ORDER_QUEUE: Final = "/msmq/private$/order_queue$"
# Refused without a word: 400 would make the sender discard what a right may yet let in. SR-8
_SILENT: Final = frozenset(
    (MessageClass.NORMAL, MessageClass.NACK_ACCESS_DENIED, MessageClass.NACK_BAD_SIGNATURE)
)

T = TypeVar("T")


class _NameServiceAway(BridgeError):
    """Whether a message is for this machine cannot be told now."""


class SrmpServer:
    """`handle` is what an HttpServer calls."""

    def __init__(
        self,
        intake: Intake,
        catalogue: Callable[[], Catalogue],
        hosts: OwnHosts,
        redirects: Redirects,
        telemetry: Telemetry,
        answer_s: float = ANSWER_S,
        senders: KnownSenders | None = None,
    ) -> None:
        self._senders = senders
        self._intake, self._catalogue = intake, catalogue
        self._hosts, self._redirects = hosts, redirects
        self._telemetry = telemetry
        self._answer_s = answer_s
        self.rejected_hosts = RejectedHosts()

    async def handle(self, request: HttpRequest) -> int:
        if self._intake.is_all_jammed:  # before anything is read
            self._refused("srmp-kafka-away", request)
            return UNAVAILABLE
        try:
            posted = await _off_loop(
                request, partial(read_request, request.content_type, request.body)
            )
            message = await self._message(request, posted)
        except WireError as error:
            self._refused("srmp-malformed", request, str(error))
            return BAD_REQUEST
        except _NameServiceAway as error:
            self._refused("srmp-name-service-away", request, str(error))
            return UNAVAILABLE
        if self._is_for_order_queue(posted, message):
            self._refused("srmp-receipt-of-unknown-stream", request)  # SR-51: we send none
            return OK
        names = _claimed(message)
        if self._is_barred(names, message):
            return UNAVAILABLE
        if self._intake.is_jammed((self._intake.shard_of_posted(message),)):
            self._refused("srmp-kafka-away", request)
            return UNAVAILABLE
        return await self._decide(message, names)

    def _is_barred(self, names: Iterable[str], message: Message) -> bool:
        """A queue manager that is known at another address. It keeps its message."""
        senders = self._senders
        for name in names if senders is not None and senders.pin != "off" else ():
            assert senders is not None
            why = senders.why_barred(name, message.peer)
            if why or senders.is_elsewhere(name, message.peer):
                self._telemetry.refused(
                    why or "moved-guid",
                    message.peer,
                    f"it is known at {senders.address(name) or 'no address'}",
                    message.transport,
                    queue_manager=name.removeprefix(HTTP),
                )
            if why:
                return True
        return False

    def _refused(self, reason: str, request: HttpRequest, detail: str = "") -> None:
        transport = "https" if request.secure else "http"
        self._telemetry.refused(reason, request.peer, detail, transport)

    async def _message(self, request: HttpRequest, posted: SrmpRequest) -> Message:
        to = posted.envelope.to
        redirected = self._redirects.apply(to)
        url = redirected or to
        is_here = not is_url(url) or await self._is_ours(host_of(url))
        if not is_here and not redirected:
            self._reject_host(host_of(url), request)
        onward = None
        if redirected and not is_here:
            onward = await _off_loop(
                request,
                partial(readdress, request.content_type, request.body, url, request.head),
            )
        make = partial(
            message_from_request,
            posted,
            peer=request.peer,
            arrived_ms=int(time.time() * 1000),
            transport="https" if request.secure else "http",
            destination=url,
            is_here=is_here,
            onward=onward,
            peer_names=request.peer_names,
            compound=request.head + request.body if is_here and self._keeps_compound(url) else b"",
        )
        return await _off_loop(request, make)  # digests are over all attachments

    async def _is_ours(self, host: str) -> bool:
        if (found := await self._hosts.include(host)) is None:
            raise _NameServiceAway(f"{host[:80]} may be a name of this machine")
        return found

    def _reject_host(self, host: str, request: HttpRequest) -> None:
        """The sender deletes what gets 400: this must be seen."""
        self.rejected_hosts.add(host, time.time())
        detail = (
            f"{host[:80]!r} is not a name of this queue manager; if senders use it for us, add it "
            "to queue_manager.names"
        )
        self._refused("srmp-unknown-host", request, detail)

    def _keeps_compound(self, url: str) -> bool:
        queue = self._catalogue().find(format_name(url))
        return queue is not None and queue.mapping.headers.wants_compound

    def _is_for_order_queue(self, posted: SrmpRequest, message: Message) -> bool:
        if kind_of(posted.envelope) not in (Kind.STREAM_RECEIPT, Kind.FINAL_STREAM_RECEIPT):
            return False
        path = unquote(message.destination.replace("\\", "/").partition("?")[0]).lower()
        is_here = message.srmp is not None and message.srmp.is_here
        return is_here and path.endswith(_ORDER_QUEUE)

    async def _decide(self, message: Message, names: Iterable[str]) -> int:
        decided: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()

        def tell(verdicts: Sequence[Verdict]) -> None:
            if self._senders is not None and verdicts[0].outcome is Outcome.ACCEPTED:
                for name in names:
                    self._senders.heard(name, message.peer, time.time())
            if not decided.done():
                decided.set_result(verdicts[0])

        self._claim(names, message, 1)
        submission = self._intake.submit_posted(message, tell)
        try:
            async with asyncio.timeout(self._answer_s):
                return status_of(await decided)
        except TimeoutError:
            self._telemetry.refused(
                "srmp-no-verdict-in-time", message.peer, "", message.transport, message=message.id
            )
            return UNAVAILABLE
        finally:
            submission.withdraw()  # if it has no verdict yet, nobody will hear it
            self._claim(names, message, -1)

    def _claim(self, names: Iterable[str], message: Message, messages: int) -> None:
        if self._senders is not None:
            for name in names:
                self._senders.claim(name, message.peer, messages)


def _claimed(message: Message) -> list[str]:
    """The queue managers whose ids and streams it would move."""
    guids = {message.source, stream_key(message)[0]} - {NULL_GUID}
    return [f"{HTTP}{guid}" for guid in guids]


async def _off_loop(request: HttpRequest, work: Callable[[], T]) -> T:
    """A small request is read at once, a large one beside the event loop.

    The next request of a connection is read after the answer, so their order stays.
    """
    return work() if len(request.body) <= INLINE else await beside_the_loop(work)


def status_of(verdict: Verdict) -> int:
    """Digest srmp.md 1.4"""
    if verdict.outcome is Outcome.BUSY or verdict.reason == NO_TOPIC.reason:
        return INTERNAL_ERROR  # it may pass later, when somebody has mended it
    if verdict.outcome is Outcome.REJECTED and verdict.message_class not in _SILENT:
        return BAD_REQUEST
    return OK
