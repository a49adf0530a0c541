"""A queue manager that sends over HTTP: a connection for each of its queues, and a port of its own.

One request at a time on a connection; receipts come to `Desk`. Timers are short: where Windows
waits twenty seconds before it connects again, these wait for a moment.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final
from uuid import UUID

from tests.chaos.desk import Desk
from tests.chaos.history import History, Mode
from tests.chaos.makers import Source, queue_name
from tests.chaos.outgoing import ViolationError
from tests.chaos.postbox import BusyError, Letter, Postbox
from tests.chaos.senders import BACKLOG, QUEUES
from tests.outside.rawconnection import LOCAL, Address
from tests.outside.srmp.wire import ORDER_LABEL, Mail, Receipt, url

# E: regular, R: durable, T: of a stream, F: of a stream, with a final receipt.
HTTP_KINDS: Final = ("T", "R", "RT", "TF", "E", "T", "ERTF", "F")
_MODES: Final = {
    "E": Mode.EXPRESS,
    "R": Mode.RECOVERABLE,
    "T": Mode.TRANSACTIONAL,
    "F": Mode.TRANSACTIONAL,
}
ANSWER_S: Final = 20.0  # SR-4
CLEANUP_S: Final = 3.0  # Windows: five minutes
ORDER_ACK: Final = 255
ORDER_ACTION: Final = f"MSMQ:{ORDER_LABEL}"


async def read_answer(reader: asyncio.StreamReader) -> int:
    """Digest srmp.md 1.4: a status and nothing else."""
    async with asyncio.timeout(ANSWER_S):
        head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("ascii").rstrip().split("\r\n")
    version, status, *_ = first.split(" ", 2)
    assert version == "HTTP/1.1", head
    assert "Content-Length: 0" in lines, head
    return int(status)


class Line:
    """One outgoing queue: one connection at a time, to wherever the bridge is now."""

    def __init__(
        self,
        box: Postbox,
        rng: random.Random,
        place: Callable[[], Address | None],
        complain: Callable[[str], None],
    ) -> None:
        self.box, self._rng, self._place, self._complain = box, rng, place, complain
        self.twice = 0  # so many requests are sent on a second connection too
        self.news = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._heard = False  # an answer, on this connection
        self._copies: set[asyncio.Task[None]] = set()

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.news.wait()
            if (address := self._place()) is not None:
                await self._try(address)
            await asyncio.sleep(self._rng.uniform(0.05, 0.4))

    async def _try(self, address: Address) -> None:
        try:
            await self._session(address)
        except BusyError:
            self.box.history.events["requests answered with 5xx"] += 1
        except (OSError, EOFError, TimeoutError):
            self.box.history.events["HTTP connections broken"] += self._heard
        except (ViolationError, AssertionError) as error:
            self._complain(str(error))
        finally:
            self.hang_up()
            self._writer = None

    async def _session(self, address: Address) -> None:
        reader, self._writer = await asyncio.open_connection(*address, local_addr=(LOCAL, 0))
        self._heard = False
        self.box.begin_session()
        while True:
            letter = self.box.next(time.monotonic())
            if letter is not None:
                await self._post(letter, reader, self._writer)
            elif not await self._hears_news():
                return

    async def _hears_news(self) -> bool:
        """False: nothing to send for so long that the connection is closed. SR-78"""
        self.news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEANUP_S):
                await self.news.wait()
        return self.news.is_set()

    async def _post(
        self, letter: Letter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        data = self.box.request(letter)
        if self.twice:
            self.twice -= 1
            letter.op.sends += 1
            copy = asyncio.create_task(self._copy(data))
            self._copies.add(copy)
            copy.add_done_callback(self._copies.discard)
        writer.write(data)
        status = await read_answer(reader)
        self._heard = True
        self.box.on_answer(letter, status, time.monotonic())

    async def _copy(self, data: bytes) -> None:
        """The same request on a connection of its own; nobody minds the answer."""
        address = self._place()
        if address is None:
            return
        self.box.history.events["requests sent twice"] += 1
        with suppress(OSError, EOFError, TimeoutError):
            reader, writer = await asyncio.open_connection(*address, local_addr=(LOCAL, 0))
            try:
                writer.write(data)
                await read_answer(reader)
            finally:
                writer.transport.abort()


class Poster:
    """One queue manager: its messages come in bursts, so that its streams end now and then."""

    def __init__(
        self,
        guid: UUID,
        kinds: str,
        rng: random.Random,
        own: random.Random,
        history: History,
        prefix: str,
        place: Callable[[], Address | None],
    ) -> None:
        self._source, self._kinds, self._prefix = Source(guid, rng, prefix), kinds, prefix
        self._rng, self._history, self._place = own, history, place
        self.rate = 0.0
        self._debt = 0.0
        self._burst = 0  # messages left in it
        self._rest = 0.0  # seconds until the next one
        self._tireless = own.random() < 0.25
        self._ordinals = count(1)
        self.lines: dict[str, Line] = {}
        self.desk = Desk(self._on_receipt, random.Random(own.getrandbits(64)), history.events)
        self.desk.complaint = self._complain
        self._group: asyncio.TaskGroup | None = None

    @property
    def guid(self) -> UUID:
        return self._source.guid

    @property
    def ordinal(self) -> int:
        return self._source.ordinal

    @property
    def kept(self) -> int:
        return sum(line.box.size for line in self.lines.values())

    def _complain(self, text: str) -> None:
        self._history.surprises.append(f"{self.guid}: {text}")

    async def run(self) -> None:
        """Until cancelled."""
        await self.desk.up()
        try:
            async with asyncio.TaskGroup() as self._group:
                for name in list(self.lines):
                    self._start(name)
                await asyncio.get_running_loop().create_future()
        finally:
            self.desk.stop()

    def _start(self, name: str) -> None:
        line = self.lines[name]
        line.box.receipts_to = self.desk.url
        if self._group is not None:
            self._group.create_task(line.run())

    # -- messages ---------------------------------------------------------------------------

    def make(self, seconds: float) -> None:
        now = time.monotonic()
        for line in self.lines.values():
            line.box.tick(now)
        self._rest -= seconds
        if self._rest <= 0:
            self._debt = min(self._debt + self.rate * seconds, 5.0)
        while self._debt >= 1 and self._rest <= 0 < self.rate and self._unsent < BACKLOG:
            self._debt -= 1
            self._add()
            self._breathe()
        self._wake()

    @property
    def _unsent(self) -> int:
        return max((len(line.box.kept) for line in self.lines.values()), default=0)

    def _breathe(self) -> None:
        """A stream that rests for half a second gets its receipt. SR-34"""
        self._burst -= 1
        if self._burst <= 0 and not self._tireless:
            self._burst = self._rng.randrange(1, 40)
            self._rest = self._rng.uniform(0.3, 1.5)

    def visit(self, name: str, count: int) -> None:
        self._source.elsewhere = name
        for _ in range(count):
            self._add()
        self._source.elsewhere = ""
        self._wake()

    def _add(self) -> None:
        kind = self._rng.choice(self._kinds)
        name = self._source.elsewhere or QUEUES[kind.lower()]
        mode = _MODES[kind]
        op, body = self._source.make(mode, name, sorted(_MODES).index(kind), posted=True)
        mail = Mail(
            to=url(queue_name(self._prefix, name)),
            body=body,
            source=self.guid,
            number=self._source.ordinal,
            services="" if mode is Mode.EXPRESS else "<durable/>",
            flags="<DeadLetter/>" if kind == "F" else "",
        )
        if name not in self.lines:
            box = Postbox(
                queue_name(self._prefix, name), self._history, lambda: next(self._ordinals)
            )
            self.lines[name] = Line(box, self._rng, self._place, self._complain)
            self._start(name)
        self.lines[name].box.add(op, mail, final=kind == "F")

    def _wake(self) -> None:
        for line in self.lines.values():
            if line.box.unsent:
                line.news.set()

    def restart(self) -> None:
        for line in self.lines.values():
            line.box.restart()
            line.hang_up()
        self._wake()

    # -- receipts ---------------------------------------------------------------------------

    def _on_receipt(self, receipt: Receipt) -> None:
        assert receipt.type in ("stream", "final"), f"nobody asked for {receipt}"
        assert receipt.to == self.desk.url, receipt
        assert receipt.action == ORDER_ACTION, receipt
        assert receipt.type == "final" or receipt.kind == ORDER_ACK, receipt
        for name, line in self.lines.items():
            if line.box.knows(receipt.stream):
                assert receipt.via == url(queue_name(self._prefix, name)), receipt
                try:
                    line.box.on_receipt(receipt, time.monotonic())
                except ViolationError as error:
                    self._complain(str(error))
                return
        raise AssertionError(f"a receipt for a stream that nobody has: {receipt}")
