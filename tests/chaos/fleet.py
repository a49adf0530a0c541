"""Many queue managers on one event loop, and the applications that feed them."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, Protocol
from uuid import UUID

from tests.chaos.history import History
from tests.chaos.posters import HTTP_KINDS, Poster
from tests.chaos.senders import BINARY_KINDS, QUEUES, RETAINED_KINDS, Maker, Sender
from tests.outside.rawconnection import Address

# In small letters those of MSMQ's own protocol, in capitals those over HTTP; one after the other.
KINDS: Final = (
    *chain.from_iterable(zip(BINARY_KINDS, HTTP_KINDS, strict=True)),
    *RETAINED_KINDS,
)
QUEUE_NAMES: Final = tuple(sorted(set(QUEUES.values())))
Place = Callable[[], Address | None]


class AnySender(Protocol):
    """One queue manager."""

    rate: float  # messages a second

    async def run(self) -> None:
        """Until cancelled."""

    def make(self, seconds: float) -> None:
        """What an application would have sent meanwhile."""

    def visit(self, name: str, count: int) -> None:
        """So many messages at once for a queue where it has never sent to."""

    def restart(self) -> None:
        """The host went down: memory is gone, and its disk has forgotten the latest acks."""

    @property
    def guid(self) -> UUID:
        """Its own."""

    @property
    def kept(self) -> int:
        """Messages that it may not forget yet."""


class Fleet:
    TICK_S: Final = 0.05

    def __init__(self, senders: Sequence[AnySender]) -> None:
        self.senders = senders
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def posters(self) -> list[Poster]:
        return [sender for sender in self.senders if isinstance(sender, Poster)]

    def start(self, rate: float) -> None:
        for sender in self.senders:
            sender.rate = rate / len(self.senders)
            self._tasks.append(asyncio.create_task(sender.run()))
        self._tasks.append(asyncio.create_task(self._feed()))

    async def _feed(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(self.TICK_S)
            now = time.monotonic()
            for sender in self.senders:
                sender.make(now - last)
            last = now

    def quiet(self) -> None:
        """No new messages; what is there goes on."""
        for sender in self.senders:
            sender.rate = 0.0

    @property
    def kept(self) -> int:
        return sum(sender.kept for sender in self.senders)

    def check_tasks(self) -> None:
        """A bug of the harness must not look like one of the bridge."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def make_fleet(
    count: int,
    kinds: Sequence[str],
    rng: random.Random,
    history: History,
    prefix: str,
    places: tuple[Place, Place],
) -> Fleet:
    """`places` are those of MSMQ's own protocol and of HTTP."""
    senders: list[AnySender] = []
    for number in range(count):
        guid = UUID(bytes=rng.randbytes(16), version=4)
        own = random.Random(rng.getrandbits(64))
        kind = kinds[number % len(kinds)]
        other = random.Random(rng.getrandbits(64))
        if kind.isupper():
            senders.append(Poster(guid, kind, own, other, history, prefix, places[1]))
        else:
            senders.append(Sender(Maker(guid, kind, own, prefix), other, history, places[0]))
    return Fleet(senders)
