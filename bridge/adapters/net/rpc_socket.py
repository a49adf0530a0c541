"""An RPC client on a plain socket, for code that has no event loop: Spark's executors, threads.

One thread at a time. Several calls may be under way (`start`), and are awaited in any order
(`finish`).
"""

from __future__ import annotations

import socket
import time
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


class RpcSocket:
    """Bound when it is made; `close` it, or use it in `with`."""

    def __init__(
        self,
        address: Address,
        interface: Syntax,
        *,
        credentials: Credentials | None = None,
        group: int = 0,
        timeout: float = CONNECT_S,
    ) -> None:
        auth = authenticator(credentials, address.host)
        self._client = Client(interface, auth=auth, level=level_of(credentials), group=group)
        self._address = address
        self._answers: dict[int, Returned | Failed] = {}
        self._is_open = False
        self._error: BridgeError | None = None
        deadline = time.monotonic() + timeout
        try:
            with resolving(address.host):
                self._socket = socket.create_connection((address.host, address.port), timeout)
        except OSError as error:
            raise self._unavailable(error) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._send(self._client.open(), deadline)
            while not self._is_open:
                self._receive(deadline)
        except BaseException:
            self.close()
            raise

    @property
    def group(self) -> int:
        """Another connection can join it: then both have the same context handles."""
        return self._client.group

    def call(self, opnum: int, stub: Stub, timeout: float | None = CALL_S) -> bytes:
        """The response stub; raises Fault, RpcUnavailable."""
        return self.finish(self.start(opnum, stub, timeout), timeout)

    def start(self, opnum: int, stub: Stub, timeout: float | None = CALL_S) -> int:
        """Send a call; its id is what `finish` wants. If the server takes one call at a time, this
        waits for the answer to the call that is under way."""
        self._require_usable()
        self._await_turn(timeout)
        call_id, buffers = self._client.call(opnum, stub)
        self._send(b"".join(buffers), _deadline(timeout))
        return call_id

    def _await_turn(self, timeout: float | None) -> None:
        deadline = _deadline(timeout)
        while self._client.is_busy:
            try:
                self._receive(deadline)
            except TimeoutError as error:
                raise RpcUnavailable(f"{self._address}: no answer within {timeout:g} s") from error

    def finish(self, call_id: int, timeout: float | None = CALL_S) -> bytes:
        """After a time-out the call is given up, and the server is told."""
        deadline = _deadline(timeout)
        while call_id not in self._answers:
            self._require_usable()
            try:
                self._receive(deadline)
            except TimeoutError as error:
                self.abandon(call_id)
                raise RpcUnavailable(f"{self._address}: no answer within {timeout:g} s") from error
        answer = self._answers.pop(call_id)
        if isinstance(answer, Failed):
            raise Fault(answer.status, did_not_execute=answer.did_not_execute)
        return answer.stub

    def abandon(self, call_id: int) -> None:
        """Nobody waits for it any more."""
        self._answers.pop(call_id, None)
        if orphaned := self._client.orphan(call_id):
            self._send(orphaned, _deadline(CONNECT_S))

    def _require_usable(self) -> None:
        if self._error is not None:
            raise RpcUnavailable(f"{self._address}: {self._error}")

    # -- bytes ------------------------------------------------------------------------------

    def _send(self, data: bytes, deadline: float | None) -> None:
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(data)
        except OSError as error:  # a part of it may be gone: nothing can follow
            raise self._broken(self._unavailable(error)) from error

    def _receive(self, deadline: float | None) -> None:
        """One read; TimeoutError leaves everything as it was, except while binding."""
        try:
            self._socket.settimeout(_left(deadline))
            data = self._socket.recv(_READ)
        except TimeoutError:
            if self._is_open:
                raise
            raise self._broken(self._unavailable(TimeoutError("no answer in time"))) from None
        except OSError as error:
            raise self._broken(self._unavailable(error)) from error
        if not data:
            raise self._broken(RpcUnavailable(f"{self._address}: the server hung up"))
        try:
            for outcome in self._client.receive(data):
                self._settle(outcome, deadline)
        except BridgeError as error:
            raise self._broken(error) from None

    def _settle(self, outcome: Outcome, deadline: float | None) -> None:
        match outcome:
            case Reply():
                self._send(outcome.data, deadline)
            case Opened():
                self._is_open = True
            case Returned() | Failed():
                self._answers[outcome.call_id] = outcome
            case _:
                assert_never(outcome)

    def _broken(self, error: BridgeError) -> BridgeError:
        self._error = error
        self._socket.close()
        return error

    def _unavailable(self, error: OSError) -> RpcUnavailable:
        return RpcUnavailable(f"{self._address}: {error.strerror or error}")

    def close(self) -> None:
        self._error = self._error or RpcUnavailable("the connection is closed")
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None) -> float | None:
    """What a socket may wait; zero would mean something else."""
    return None if deadline is None else max(0.001, deadline - time.monotonic())
