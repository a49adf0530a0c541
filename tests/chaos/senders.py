"""Many queue managers on one event loop: each makes messages, sends in its window, comes back."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from tests.chaos.history import History, Mode, Op, digest_of, make_body
from tests.chaos.outgoing import WINDOW, Outgoing, ViolationError
from tests.outside.appliance import queue
from tests.outside.rawconnection import LOCAL, Address
from tests.outside.rawmsmq import Message, Tx, cp_request, ec_request, session_ack
from tests.outside.rawparse import (
    Establish,
    Packet,
    Parameters,
    Received,
    SessionAck,
    parse,
    wire_length,
)

# e(xpress), r(ecoverable), t(ransactional), f: transactional with a FinalAck.
KINDS: Final = ("e", "r", "t", "f", "er", "rt", "ertf", "t")
_QUEUES: Final = {"e": "plain", "r": "plain", "t": "orders", "f": "orders2"}
QUEUE_NAMES: Final = tuple(sorted(set(_QUEUES.values())))
_MODES: Final = {
    "e": Mode.EXPRESS,
    "r": Mode.RECOVERABLE,
    "t": Mode.TRANSACTIONAL,
    "f": Mode.TRANSACTIONAL,
}
BACKLOG: Final = 150  # a sender with so many unsent makes no more for now
ACK_MS: Final = 20_000
ACK_WAIT_S: Final = 2 * ACK_MS / 1000  # of direct format names. QB-52
RESEND_S: Final = 30.0  # QB-97
LARGE: Final = 48 * 1024


class Maker:
    """The messages of one source: unique bodies, transactions of one to four messages."""

    def __init__(self, guid: UUID, kinds: str, rng: random.Random, prefix: str) -> None:
        self.guid, self._kinds, self._rng, self._prefix = guid, kinds, rng, prefix
        self._ordinal = 0
        self._numbers: dict[str, int] = {}
        self._open: dict[str, int] = {}  # messages left in a stream's transaction
        self._index = 0

    def next(self) -> tuple[Op, Message]:
        self._ordinal += 1
        kind = self._rng.choice(self._kinds)
        name = _QUEUES[kind]
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        filler = self._rng.randbytes(self._size())
        stream = sorted(_QUEUES).index(kind)
        body = make_body(self.guid.bytes_le, stream, self._ordinal, filler)
        op = Op(
            identity=f"{self.guid}\\{self._ordinal}",
            mode=_MODES[kind],
            stream=f"{self.guid}/{name}",
            topic=f"{self._prefix}-{name}",
            number=number,
            digest=digest_of(body),
        )
        message = Message(
            source=self.guid,
            message_id=self._ordinal,
            destination=queue(name),
            body=body,
            recoverable=kind != "e",
            tx=self._tx(kind) if kind in "tf" else None,
        )
        return op, message

    def _size(self) -> int:
        return self._rng.randrange(LARGE) if self._rng.random() < 0.01 else self._rng.randrange(900)

    def _tx(self, kind: str) -> Tx:
        """Sequence and number come with the first send."""
        left = self._open.get(kind, 0)
        first = left == 0
        if first:
            left = self._rng.randrange(1, 5)
            self._index = (self._index + 1) & 0xFFFFF
        self._open[kind] = left - 1
        return Tx(
            sequence_id=0,
            number=0,
            previous=0,
            first=first,
            last=left == 1,
            index=self._index,
            final_ack=kind == "f",
        )


class Sender:
    """One queue manager: one session at a time, to wherever the bridge is now."""

    def __init__(
        self,
        maker: Maker,
        rng: random.Random,
        history: History,
        place: Callable[[], Address | None],
    ) -> None:
        self.maker, self._rng, self._history, self._place = maker, rng, history, place
        self.out = Outgoing(history)
        self.rate = 0.0  # messages a second
        self._debt = 0.0
        self._replay = False
        self._writer: asyncio.StreamWriter | None = None
        self._open = False
        self._progress = 0.0  # when something last moved in the order of transactions

    # -- from outside -----------------------------------------------------------------------

    def make(self, seconds: float) -> None:
        """What an application would have sent meanwhile."""
        self._debt += self.rate * seconds
        while self._debt >= 1 and len(self.out.waiting) < BACKLOG:
            self._debt -= 1
            self.out.add(*self.maker.next())
        self._debt = min(self._debt, 5.0)
        self._fill()

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()

    def restart(self) -> None:
        """The host went down: memory is gone, and its disk has forgotten the latest acks."""
        self.out.forget_memory()
        self._replay = True
        self.hang_up()

    # -- sessions ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if self.out.kept and (address := self._place()) is not None:
                try:
                    await self._session(address)
                except (OSError, EOFError, TimeoutError):
                    self._history.events["sessions broken"] += self._open
                except (ViolationError, AssertionError) as error:
                    self._history.surprises.append(f"{self.maker.guid}: {error}")
                finally:
                    self._end()
            await asyncio.sleep(self._rng.uniform(0.05, 0.4))

    def _end(self) -> None:
        self._open = False
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        self.out.end_session()

    async def _session(self, address: Address) -> None:
        async with asyncio.timeout(ACK_WAIT_S):
            reader, self._writer = await asyncio.open_connection(*address, local_addr=(LOCAL, 0))
            self._writer.write(ec_request(self.maker.guid))
            established = await self._read(reader)
            assert isinstance(established, Establish), established
            if established.refused:
                raise ConnectionRefusedError
            self._writer.write(cp_request(recoverable_ack_ms=500, ack_ms=ACK_MS, window=WINDOW))
            parameters = await self._read(reader)
            assert isinstance(parameters, Parameters), parameters
        self.out.begin_session(parameters.window)
        self._open, self._progress = True, time.monotonic()
        if self._replay:
            self._replay = False
            self._writer.write(self.out.replay())
        self._fill()
        while True:
            packet = await self._next(reader)
            self._on_packet(packet, time.monotonic())
            self._fill()

    async def _next(self, reader: asyncio.StreamReader) -> Packet:
        read = asyncio.create_task(self._read(reader))
        try:
            while not (await asyncio.wait([read], timeout=ACK_WAIT_S))[0]:
                if self.out.table:
                    raise TimeoutError("no ack in time")  # QB-52
            return read.result()
        finally:
            read.cancel()

    async def _read(self, reader: asyncio.StreamReader) -> Packet:
        head = await reader.readexactly(16)
        return parse(head + await reader.readexactly(wire_length(head) - 16))

    def _on_packet(self, packet: Packet, now: float) -> None:
        if isinstance(packet, SessionAck):
            self.out.on_header(packet.session, now)
        elif isinstance(packet, Received):
            self.out.on_user(packet, now)
            self._progress = now
            self._write(session_ack(self.out.header()))
        else:
            raise ViolationError(f"unexpected {packet}")

    def _fill(self) -> None:
        writer = self._writer
        if not self._open or writer is None or writer.transport.is_closing():
            return
        now = time.monotonic()
        if now - self._progress > RESEND_S and self.out.unordered:
            self._progress = now
            self._write(self.out.resend_unordered(now))
        if data := self.out.burst(now):
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._writer is not None and not self._writer.transport.is_closing():
            self._writer.write(data)


class Fleet:
    """All senders, and the applications that feed them."""

    TICK_S: Final = 0.05

    def __init__(self, senders: list[Sender], history: History) -> None:
        self.senders = senders
        self.history = history
        self._tasks: list[asyncio.Task[None]] = []

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
        return sum(sender.out.kept for sender in self.senders)

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
    place: Callable[[], Address | None],
) -> Fleet:
    senders = []
    for number in range(count):
        guid = UUID(bytes=rng.randbytes(16), version=4)
        own = random.Random(rng.getrandbits(64))
        maker = Maker(guid, kinds[number % len(kinds)], own, prefix)
        senders.append(Sender(maker, random.Random(rng.getrandbits(64)), history, place))
    return Fleet(senders, history)
