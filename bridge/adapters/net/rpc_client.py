"""An RPC client on asyncio: one connection, any number of calls under way."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from typing import Final, Self, assert_never

from bridge.adapters.net.host_names import resolving
from bridge.adapters.net.rpc_auth import Credentials, authenticator, level_of
from bridge.config import Address
from bridge.model.errors import BridgeError, RpcUnavailable
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.client import Client, Failed, Opened, Outcome, Reply, Returned
from bridge.protocol.rpc.fragments import Stub
from bridge.wire.rpc.bind import Syntax

CONNECT_S: Final = 30.0
CALL_S: Final = 300.0  # RR 5: what Windows waits for a call
_READ: Final = 256 * 1024


class RpcClient:
    """Made by `connect`; `close` it, or use it in `async with`."""

    def __init__(
        self, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._client, self._reader, self._writer = client, reader, writer
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._turn = asyncio.Lock()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: BridgeError | None = None
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        address: Address,
        interface: Syntax,
        *,
        credentials: Credentials | None = None,
        group: int = 0,
        timeout: float = CONNECT_S,
    ) -> RpcClient:
        """Bind, and join an association `group` if one is given; BindRefused, RpcUnavailable."""
        auth = authenticator(credentials, address.host)
        client = Client(interface, auth=auth, level=level_of(credentials), group=group)
        try:
            async with asyncio.timeout(timeout):
                with resolving(address.host):
                    streams = await asyncio.open_connection(address.host, address.port)
                return await cls(client, *streams)._open()
        except TimeoutError as error:
            raise RpcUnavailable(f"{address}: no answer within {timeout:g} s") from error
        except OSError as error:
            raise RpcUnavailable(f"{address}: {error.strerror or error}") from error

    async def _open(self) -> RpcClient:
        try:
            self._writer.write(self._client.open())
            await self._opened
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def group(self) -> int:
        """Another connection can join it: then both have the same context handles."""
        return self._client.group

    async def call(self, opnum: int, stub: Stub, timeout: float | None = CALL_S) -> bytes:
        """The response stub; raises Fault, RpcUnavailable. Cancel it and the server hears it. A
        server that takes one call at a time gets one: the others wait for their turn."""
        async with nullcontext() if self._client.is_concurrent else self._turn:
            return await self._call(opnum, stub, timeout)

    async def _call(self, opnum: int, stub: Stub, timeout: float | None) -> bytes:
        if self._error is not None:
            raise RpcUnavailable(f"the connection is closed ({self._error})")
        call_id, buffers = self._client.call(opnum, stub)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = answer
        self._writer.writelines(buffers)
        try:
            async with asyncio.timeout(timeout):
                await self._writer.drain()
                return await answer
        except TimeoutError as error:
            raise RpcUnavailable(f"no answer to call {opnum} within {timeout:g} s") from error
        except OSError as error:
            raise RpcUnavailable(f"the server hung up ({error})") from error
        finally:
            self._forget(call_id)

    def _forget(self, call_id: int) -> None:
        del self._calls[call_id]
        orphaned = self._client.orphan(call_id)
        if self._error is None:
            self._writer.write(orphaned)

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(_READ):
                for outcome in self._client.receive(data):
                    self._settle(outcome)
            self._fail(RpcUnavailable("the server hung up"))
        except BridgeError as error:
            self._fail(error)
        except OSError as error:
            self._fail(RpcUnavailable(f"the connection is lost ({error.strerror or error})"))
        finally:
            self._writer.close()

    def _settle(self, outcome: Outcome) -> None:
        match outcome:
            case Reply():
                self._writer.write(outcome.data)
            case Opened():
                if not self._opened.done():
                    self._opened.set_result(None)
            case Returned() | Failed():
                self._answer(self._calls[outcome.call_id], outcome)
            case _:
                assert_never(outcome)

    def _answer(self, waiter: asyncio.Future[bytes], outcome: Returned | Failed) -> None:
        if waiter.done():  # it was cancelled a moment ago
            return
        if isinstance(outcome, Failed):
            fault = Fault(outcome.status, did_not_execute=outcome.did_not_execute)
            waiter.set_exception(fault)
        else:
            waiter.set_result(outcome.stub)

    def _fail(self, error: BridgeError) -> None:
        """Nobody waits for ever; who asks later hears of it too."""
        self._error = error
        waiting: list[asyncio.Future[None] | asyncio.Future[bytes]] = [self._opened]
        for waiter in (*waiting, *self._calls.values()):
            if not waiter.done():
                waiter.set_exception(error)
        if not self._opened.cancelled():
            self._opened.exception()  # nobody may be waiting for it

    async def close(self) -> None:
        self._fail(RpcUnavailable("the connection is closed"))
        self._task.cancel()
        await asyncio.wait([self._task])
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
