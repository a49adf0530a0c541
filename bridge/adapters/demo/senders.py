"""The demo's senders on real sessions and over HTTP, and what each of them was told."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from bridge.adapters.demo.script import Part
from bridge.adapters.net.binary_client import send_all
from bridge.adapters.net.srmp_client import ReceiptDesk, Route, SrmpClient
from bridge.config import Address
from bridge.model.message import Message
from bridge.protocol.binary.outgoing import Outgoing
from bridge.protocol.binary.session import SessionSettings
from bridge.protocol.commands import FinalAcked
from bridge.protocol.srmp.sender import Sender, State
from bridge.protocol.srmp.sending import Fate
from bridge.wire.srmp.head import split_url

DEADLINE_S: Final = 120.0
PATIENCE_S: Final = 5.0  # for answers that the configuration may keep from a sender (DM-13)
HALF_WINDOW: Final = 32


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What came back to one sender; the lists hold message classes.

    Over HTTP a 200 stands for the session ack, and a stream receipt for the order ack.
    """

    sent: int
    session_acked: int
    order_acked: int
    final_acks: tuple[int, ...] = ()
    admin_acks: tuple[int, ...] = ()


class Listener(Outgoing):
    """Hangs up when its administration queue has got its answers, not before."""

    answers = 0

    @property
    def waiting(self) -> int:
        return super().waiting or max(0, self.answers - len(self.admin_acks))

    @property
    def all_handed_over(self) -> bool:
        """It waits for the acks of express messages too."""
        return False

    @property
    def unacknowledged(self) -> int:
        return super().waiting

    @property
    def admin_acks(self) -> list[int]:
        said = [told for told in self.told if isinstance(told, Message)]
        return [message.message_class for message in said if message.message_class]


async def perform(part: Part, address: Address) -> Told:
    """Send a part's messages and hear the answers. Raises PeerUnavailable."""
    if part.transport == "http":
        return await _post(part)
    ordinals = itertools.count(len(part.messages) + 1)
    listener = Listener(
        local=part.messages[0].source,
        sequence_timestamp=int(time.time()),
        ordinals=lambda: next(ordinals),
        settings=SessionSettings(window=window_for(len(part.messages))),
    )
    listener.answers = part.answers
    listener.add(list(part.messages))
    taken = asyncio.Event()

    def on_progress() -> None:
        if not listener.unacknowledged:
            taken.set()

    await _converse(
        send_all(
            listener, address.host, address.port, deadline_s=DEADLINE_S, on_progress=on_progress
        ),
        taken,
    )
    finals = [told.message_class for told in listener.told if isinstance(told, FinalAcked)]
    return Told(
        sent=len(part.messages),
        session_acked=listener.session_acked,
        order_acked=listener.order_acked,
        final_acks=tuple(finals),
        admin_acks=tuple(listener.admin_acks),
    )


async def _post(part: Part) -> Told:
    """To the URL of its messages; receipts come to a port that is open as long as that takes."""
    first = part.messages[0]
    url = first.destination.removeprefix("DIRECT=")
    endpoint = split_url(url)
    host = endpoint.host.strip("[]")
    desk = ReceiptDesk(first.source)
    await desk.open(host, 0)
    try:
        sender = Sender(local=first.source, receipts_to=desk.url, stream_ordinals=lambda: 1)
        sender.add(replace(m, admin_queue=f"DIRECT={desk.url}") for m in part.messages)
        taken = asyncio.Event()

        def on_progress() -> None:
            if sender.state not in (State.SENDING, State.INACTIVE):
                taken.set()

        route = Route(
            url=url,
            target=endpoint.target,
            authority=endpoint.authority,
            address=(host, endpoint.port),
        )
        each = part.answers // len(part.messages)
        client = SrmpClient(sender, route, desk=desk, receipts_each=each, on_progress=on_progress)
        await _converse(client.run(DEADLINE_S), taken)
    finally:
        await desk.close()
    sent = len(part.messages)
    return Told(
        sent=sent,
        session_acked=sent - client.settled[Fate.REFUSED, 0],
        order_acked=sender.done if first.transaction else 0,
        admin_acks=tuple(desk.classes),
    )


async def _converse(conversation: Coroutine[Any, Any, None], taken: asyncio.Event) -> None:
    """To its end; once all is taken not for ever."""
    talk = asyncio.create_task(conversation)
    all_taken = asyncio.create_task(taken.wait())
    try:
        await asyncio.wait((talk, all_taken), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((talk,), timeout=PATIENCE_S)
        if talk.done():
            talk.result()
    finally:
        talk.cancel()
        all_taken.cancel()
        await asyncio.gather(talk, all_taken, return_exceptions=True)


def window_for(count: int) -> int:
    """A receiver acks every half window (QB-45), express messages else after ten seconds: one
    that divides the count, so that the last ack does not keep anybody waiting."""
    half = max(n for n in range(1, min(count, HALF_WINDOW) + 1) if count % n == 0)
    return 2 * half
