"""A port that says only who is there, so that its end is seen at once.

When a process ends, however it ends, its kernel closes its connections and refuses new ones. That
is known in no time, while Kafka waits for the lease to run out. A leader that merely does not
answer (frozen, its machine or the network gone) is not known to be gone: then the lease decides.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import closing, suppress
from typing import Final

from bridge.adapters.net.ports import cannot_listen

MEET_S: Final = 2.0  # to connect, and to be told a name
LINE: Final = 256  # a name is shorter
FOLLOWERS: Final = 16  # the oldest goes first
LOOKS: Final = 20  # how often we ask whether it is really gone
LOOK_S: Final = 0.05
# A machine that vanished says nothing: asked after 5 s of silence, given up 6 s later.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))

_log = logging.getLogger(__name__)


class Lifeline:
    """Ours. Bound from the start, so that others can be told its port; open while we lead."""

    def __init__(self, host: str, port: int, name: str) -> None:
        """ConfigError if the port cannot be had."""
        self._name = name
        self._followers: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None
        self._socket = _bound(host, port)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    async def open(self) -> None:
        try:
            self._server = await asyncio.start_server(
                self._greet, sock=self._socket, limit=LINE, backlog=FOLLOWERS
            )
        except OSError as error:
            _log.warning("no standby can see that we live: port %d: %s", self.port, error.strerror)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for follower in list(self._followers):
            follower.close()
        self._socket.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._followers) >= FOLLOWERS:
            oldest = next(iter(self._followers))
            del self._followers[oldest]  # its own task comes too late in a burst
            oldest.close()
        self._followers[writer] = None
        try:
            with suppress(OSError), closing(writer):
                writer.write(f"{self._name}\n".encode())
                await reader.read(1)  # whoever says anything is no standby
        finally:
            self._followers.pop(writer, None)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise cannot_listen(host, port, "listen.lease", error) from error
    return made


class Sight:
    """Of somebody else's: a connection to the process that goes by a name."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self._host, self._port, self._name = host, port, name
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def meet(self) -> bool:
        """Whether it is there, and who it should be. ConnectionRefusedError: nobody is."""
        try:
            said = await self._hear()
        except ValueError:  # a line that is no name, or a host that is none (UnicodeError)
            return False
        if not said.endswith(b"\n"):
            raise ConnectionResetError("it hung up without a word")
        return said.strip() == self._name.encode()

    async def _hear(self) -> bytes:
        async with asyncio.timeout(MEET_S):
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=LINE)
            self.close()
            self._reader, self._writer = reader, writer
            _keep_alive(writer)
            return await reader.readline()

    @property
    def is_open(self) -> bool:
        return self._reader is not None and not self._reader.at_eof()

    async def outlive(self) -> bool:
        """Once it was met. True: it has ended. False: nobody knows."""
        with suppress(OSError, TimeoutError):
            while True:
                await self._end()
                if not await self._meet_again():
                    return True
                await asyncio.sleep(LOOK_S)
        return False

    async def _end(self) -> None:
        assert self._reader is not None
        with suppress(ConnectionError):  # a reset is an end, too
            await self._reader.read(1)

    async def _meet_again(self) -> bool:
        """Only a refusal tells, or somebody else who has its port: a connection may just break."""
        for _ in range(LOOKS):
            try:
                return await self.meet()
            except ConnectionRefusedError:
                return False
            except ConnectionError:  # it was just closing its port
                await asyncio.sleep(LOOK_S)
        raise TimeoutError

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
