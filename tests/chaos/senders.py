"""A queue manager with MSMQ's own protocol: makes messages, sends in its window, comes back."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from tests.chaos.history import History, Mode, Op
from tests.chaos.makers import Source, queue_name
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
BINARY_KINDS: Final = ("e", "r", "t", "f", "er", "rt", "ertf", "t")
# k: recoverable, to a queue that readers empty.
RETAINED_KINDS: Final = ("k",)
RETAINED: Final = "kept"
QUEUES: Final = {"e": "plain", "r": "plain", "t": "orders", "f": "orders2", "k": RETAINED}
_MODES: Final = {
    "k": Mode.RECOVERABLE,
    "e": Mode.EXPRESS,
    "r": Mode.RECOVERABLE,
    "t": Mode.TRANSACTIONAL,
    "f": Mode.TRANSACTIONAL,
}
BACKLOG: Final = 150  # a sender with so many unsent makes no more for now
ACK_MS: Final = 20_000
ACK_WAIT_S: Final = 2 * ACK_MS / 1000  # of direct format names. QB-52
RESEND_S: Final = 30.0  # QB-97
RECONNECT_S: Final = (0.05, 0.4)  # after a session broke; Windows waits longer


class Maker(Source):
    """The messages of one sender: transactions of one to four messages."""

    def __init__(self, guid: UUID, kinds: str, rng: random.Random, prefix: str) -> None:
        super().__init__(guid, rng, prefix)
        self._kinds = kinds
        self._open: dict[str, int] = {}  # messages left in a stream's transaction
        self._index = 0

    def next(self) -> tuple[Op, Message]:
        kind = self._rng.choice(self._kinds)
        name = self.elsewhere or QUEUES[kind]
        op, body = self.make(_MODES[kind], name, sorted(QUEUES).index(kind))
        message = Message(
            source=self.guid,
            message_id=self.ordinal,
            destination=queue(queue_name(self._prefix, name)),
            body=body,
            recoverable=kind != "e",
            tx=self._tx(kind) if kind in "tf" else None,
        )
        return op, message

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

    def visit(self, name: str, count: int) -> None:
        """So many messages at once for a queue where it has never sent to."""
        self.maker.elsewhere = name
        for _ in range(count):
            self.out.add(*self.maker.next())
        self.maker.elsewhere = ""
        self._fill()

    @property
    def guid(self) -> UUID:
        return self.maker.guid

    @property
    def kept(self) -> int:
        return self.out.kept

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
            await asyncio.sleep(self._rng.uniform(*RECONNECT_S))

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
