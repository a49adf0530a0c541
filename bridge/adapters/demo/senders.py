"""The demo's senders on real sessions, and what each of them was told."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Final

import msgspec

from bridge.adapters.demo.script import Part
from bridge.adapters.net.binary_client import send_all
from bridge.config import Address
from bridge.model.message import Message
from bridge.protocol.binary.outgoing import Outgoing
from bridge.protocol.binary.session import SessionSettings
from bridge.protocol.commands import FinalAcked

DEADLINE_S: Final = 120.0
PATIENCE_S: Final = 5.0  # for answers that the configuration may keep from a sender (DM-13)
HALF_WINDOW: Final = 32


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What came back to one sender; the lists hold message classes."""

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
    ordinals = itertools.count(len(part.messages) + 1)
    listener = Listener(
        local=part.messages[0].source,
        sequence_timestamp=int(time.time()),
        ordinals=lambda: next(ordinals),
        settings=SessionSettings(window=window_for(len(part.messages))),
    )
    listener.answers = part.answers
    listener.add(list(part.messages))
    await _converse(listener, address)
    finals = [told.message_class for told in listener.told if isinstance(told, FinalAcked)]
    return Told(
        sent=len(part.messages),
        session_acked=listener.session_acked,
        order_acked=listener.order_acked,
        final_acks=tuple(finals),
        admin_acks=tuple(listener.admin_acks),
    )


async def _converse(listener: Listener, address: Address) -> None:
    taken = asyncio.Event()

    def on_progress() -> None:
        if not listener.unacknowledged:
            taken.set()

    talk = asyncio.create_task(
        send_all(
            listener, address.host, address.port, deadline_s=DEADLINE_S, on_progress=on_progress
        )
    )
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
