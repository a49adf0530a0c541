"""POSTs over one kept connection, as receipts and our own messages need it (srmp.md 1.4, 3.11)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final, cast

import h11

from bridge.adapters.net.host_names import resolving
from bridge.model.errors import ProtocolError
from bridge.wire.srmp.head import pack_head

MAX_ANSWER: Final = 64 << 10  # bytes of an answer's body, which nobody reads
RATE: Final = 32 << 10  # bytes of a request that a second more is given for
_SMALL: Final = 64 << 10
_CLOSED: Final = "closed without an answer"
# h11 reads an answer only if it knows what was asked. What was really sent is another matter:
# it would not leave the headers in their order.
_ASKED: Final = h11.Request(method="POST", target="/", headers=[("Host", "-")])


class HttpFault(ProtocolError):
    """What came is not an answer in HTTP/1.1."""


class HttpConnection:
    """One keep-alive connection; reconnects when needed. One request at a time, others wait."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        connect_s: float = 10.0,
        answer_s: float = 20.0,
    ) -> None:
        self._address = address
        self._tls = tls
        self._server_name = (server_name or address[0]) if tls is not None else None
        self._connect_s, self._answer_s = connect_s, answer_s
        self._turn = asyncio.Lock()
        self._line: _Line | None = None
        self._closings = 0

    async def post(self, target: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status. Headers go as they are, in their order, and no others.

        OSError, TimeoutError, HttpFault: there is no answer, and it may or may not have arrived.
        A kept connection that turns out to be closed is replaced once: SRMP messages have ids, so
        one that comes twice is known (SR-21).
        """
        head = pack_head(target, dict(headers))
        async with self._turn:
            line = self._line
            if line is not None and line.usable:
                try:
                    return await self._ask(line, head, body)
                except ConnectionError:
                    if line.heard or line is not self._line:
                        raise
            self._line = line = await self._dial()
            return await self._ask(line, head, body)

    def close(self) -> None:
        """A request that waits for its answer fails; another one would connect again."""
        self._closings += 1
        if self._line is not None:
            self._line.drop(ConnectionAbortedError("closed by us"))
            self._line = None

    async def _dial(self) -> _Line:
        closings = self._closings
        host, port = self._address
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s) as patience:
                with resolving(host):
                    _, line = await loop.create_connection(
                        _Line, host, port, ssl=self._tls, server_hostname=self._server_name
                    )
        except TimeoutError as error:
            if not patience.expired():
                raise
            raise TimeoutError(f"no connection within {self._connect_s:g} s") from error
        if closings != self._closings:
            line.drop()
            raise ConnectionAbortedError("closed by us")
        return line

    async def _ask(self, line: _Line, head: bytes, body: bytes) -> int:
        within_s = self._answer_s + len(body) / RATE
        try:
            async with asyncio.timeout(within_s):
                return await line.ask(head, body)
        except BaseException as error:
            line.drop()  # an answer that comes later would be taken for that of another request
            if not isinstance(error, TimeoutError):
                raise
            if line.status:  # only its body is late
                return line.status
            raise TimeoutError(f"no answer within {within_s:g} s") from error


class _Line(asyncio.Protocol):
    """A connection, and the answer that is awaited on it."""

    def __init__(self) -> None:
        self.usable = False
        self.heard = False  # any byte of the answer
        self.status = 0  # of the answer, as soon as it is known
        self._size = 0  # of its body
        self._answer: asyncio.Future[int] | None = None
        self._parser: h11.Connection

    def ask(self, head: bytes, body: bytes) -> asyncio.Future[int]:
        self.heard, self.status, self._size = False, 0, 0
        self._parser = h11.Connection(h11.CLIENT)
        self._parser.send(_ASKED)
        self._parser.send(h11.EndOfMessage())
        self._answer = asyncio.get_running_loop().create_future()
        if len(body) <= _SMALL:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        return self._answer

    def drop(self, error: ConnectionError | None = None) -> None:
        self._fail(error or ConnectionAbortedError("given up"))

    # -- asyncio.Protocol -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.usable = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.drop()  # nobody has asked
            return
        self.heard = True
        self._read(data)

    def eof_received(self) -> None:
        if self._answer is None or self._answer.done() or not self.heard:
            self._fail(ConnectionResetError(_CLOSED))
        else:
            self._read(b"")  # the end of the answer, if it has no other

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionResetError(str(exc or _CLOSED)))

    # -- the answer -------------------------------------------------------------------------

    def _read(self, data: bytes) -> None:
        try:
            self._parser.receive_data(data)
            while self._take(self._parser.next_event()):
                pass
        except h11.RemoteProtocolError as fault:
            self._fail(HttpFault("http-answer", str(fault)[:200]))

    def _take(self, event: object) -> bool:
        """Whether more may be there."""
        match event:
            case h11.InformationalResponse():
                return True
            case h11.Response():
                self.status = event.status_code
                return True
            case h11.Data():
                self._size += len(event.data)
                if self._size <= MAX_ANSWER:
                    return True
                self._fail(HttpFault("http-answer", "too large"))
            case h11.EndOfMessage():
                self._finish()
            case h11.PAUSED:
                self._fail(HttpFault("http-answer", "it is another protocol now"))
        return False

    def _finish(self) -> None:
        assert self._answer is not None
        if (
            self._parser.their_state is not h11.DONE
            or self._parser.trailing_data[0]
            or self._transport.get_write_buffer_size()
        ):
            self._hang_up()
        self._answer.set_result(self.status)

    def _fail(self, error: Exception) -> None:
        """A status is an answer, even if the rest of it is lost."""
        self._hang_up()
        if self._answer is None or self._answer.done():
            return
        if self.status:
            self._answer.set_result(self.status)
        else:
            self._answer.set_exception(error)

    def _hang_up(self) -> None:
        self.usable = False
        self._transport.abort()
