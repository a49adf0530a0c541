"""The UDP ping of old senders, both roles. MS-MQQB 2.1.2, 3.1.7.6 to 3.1.7.8; QB-30, QB-31

Whoever pings may lie about its address. An answer is as long as the request has to be, so nothing
is amplified. Request and answer look alike: two servers that take each other's answers for requests
would go on for ever. So an address gets a bounded number of answers in a second; the first one that
is left out ends such a circle.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from bridge.adapters.net.ports import cannot_listen, for_both_families
from bridge.config import Address
from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.model.hosts import neighbourhood
from bridge.wire.binary.ping import Ping

PATIENCE_S: Final = 1.0  # Ping Response Timer
PER_SECOND: Final = 256  # answers to one address
MOST_ADDRESSES: Final = 4096  # that are counted in a second
_cookies = itertools.count(1)


class PingServer(asyncio.DatagramProtocol):
    """Answers who we are, and whether we would refuse a session now."""

    def __init__(self, local: Guid, would_refuse: Callable[[], bool]) -> None:
        self._local, self._would_refuse = local, would_refuse
        self._transport: asyncio.DatagramTransport | None = None
        self._second, self._answers = 0, dict[str, int]()  # in this second, by address

    async def start(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        try:
            both = for_both_families(host, port, socket.SOCK_DGRAM)
            if both is not None:
                await loop.create_datagram_endpoint(lambda: self, sock=both)
            else:
                await loop.create_datagram_endpoint(lambda: self, (host, port))
        except OSError as error:
            raise cannot_listen(host, port, "listen.ping", error) from error
        assert self._transport is not None
        bound = self._transport.get_extra_info("sockname")
        return str(Address(bound[0], bound[1]))

    def stop(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        with suppress(WireError):  # QB-30: anything else is ignored silently
            asked = Ping.unpack(data)
            if not self._may_answer(addr[0]):
                return
            answer = Ping(
                cookie=asked.cookie,
                queue_manager=self._local,
                client=asked.client,
                refused=self._would_refuse(),
            )
            assert self._transport is not None
            self._transport.sendto(answer.pack(), addr)

    def _may_answer(self, host: str) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._answers = second, {}
        address = neighbourhood(host)
        sent = self._answers.get(address, 0)
        if sent or len(self._answers) < MOST_ADDRESSES:
            self._answers[address] = sent + 1
        return sent < PER_SECOND


class _Asker(asyncio.DatagramProtocol):
    def __init__(self, request: Ping) -> None:
        self._request = request
        self.answer: asyncio.Future[Ping] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.DatagramTransport, transport).sendto(self._request.pack())

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:  # noqa: ARG002
        with suppress(WireError):
            answer = Ping.unpack(data)
            if answer.cookie == self._request.cookie and not self.answer.done():
                self.answer.set_result(answer)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def ping(address: Address, local: Guid) -> Ping | None:
    """Who answers there and whether it would refuse us; None if nobody does in time."""
    request = Ping(cookie=next(_cookies), queue_manager=local, client=False, refused=False)
    loop = asyncio.get_running_loop()
    try:
        transport, asker = await loop.create_datagram_endpoint(
            lambda: _Asker(request), remote_addr=(address.host, address.port)
        )
    except OSError:
        return None
    try:
        return await asyncio.wait_for(asker.answer, PATIENCE_S)
    except (TimeoutError, OSError):
        return None
    finally:
        transport.close()
