"""The requests of one connection: put together by call id, then pending until they are answered.

Everything a client can make us keep is counted here, before it is kept. RR-7
"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.errors import ProtocolError, WireError
from bridge.protocol.rpc.dialogue import Limits
from bridge.protocol.rpc.fragments import Assembly
from bridge.protocol.rpc.presentation import Context, Presentation
from bridge.protocol.rpc.security import SecurityContext
from bridge.wire.rpc.bind import NDR
from bridge.wire.rpc.pdu import Flags, Fragment, Request
from bridge.wire.rpc.verification import find_trailer

ACCESS_DENIED: Final = 0x00000005
PROTOCOL_FAULT: Final = 0x1C01000B  # nca_s_proto_error
TOO_BUSY: Final = 0x1C010014  # nca_s_server_too_busy
UNKNOWN_CONTEXT: Final = 0x1C00001C  # RR-11
CANCELLED: Final = 0x1C00000D  # nca_s_fault_cancel


class NotTaken(Exception):
    """A request that ends with a fault before it ran; `reason` if it is to be counted."""

    def __init__(self, status: int, reason: str = "", detail: str = "") -> None:
        self.status, self.reason, self.detail = status, reason, detail
        super().__init__(f"fault {status:08X}")


class Complete(msgspec.Struct, frozen=True, gc=False):
    """A request that may run."""

    opnum: int
    stub: bytes
    context: Context
    security: SecurityContext | None


class Pending(msgspec.Struct, frozen=True, gc=False):
    """A call that runs."""

    context: int
    security: SecurityContext | None
    size: int
    silent: bool  # nobody waits for the answer


class _Incoming:
    """A request of which fragments are still to come."""

    __slots__ = ("cancelled", "context", "request", "security", "stub")

    def __init__(
        self, request: Request, context: Context, security: SecurityContext | None
    ) -> None:
        self.request, self.context, self.security = request, context, security
        self.stub = Assembly()
        self.cancelled = False


class Requests:
    def __init__(self, limits: Limits, presentation: Presentation) -> None:
        self._limits, self._presentation = limits, presentation
        self._incoming: dict[int, _Incoming] = {}
        self._pending: dict[int, Pending] = {}
        self._skipped: int | None = None  # a refused call whose other fragments mean nothing
        self._newest: dict[int, int] = {}  # call id by presentation context
        self.held = 0  # bytes

    @property
    def unfinished(self) -> bool:
        return bool(self._incoming)

    @property
    def pending(self) -> list[int]:
        return list(self._pending)

    # -- fragments --------------------------------------------------------------------------

    def add(
        self, fragment: Fragment, request: Request, security: SecurityContext | None, stub: bytes
    ) -> Complete | None:
        """None while there is more to come; raises NotTaken, and then passes over the rest."""
        if fragment.call_id == self._skipped and not fragment.is_first:
            return None
        incoming = (
            self._begin(fragment.call_id, request, security)
            if fragment.is_first
            else self._continue(fragment.call_id, security)
        )
        incoming.cancelled |= fragment.flags & Flags.PENDING_CANCEL != 0
        self._grow(incoming, stub)
        return self._complete(fragment, incoming) if fragment.is_last else None

    def skip(self, fragment: Fragment) -> None:
        """It was refused: forget what came of it, pass over what still comes."""
        self._drop(fragment.call_id)
        self._skipped = None if fragment.is_last else fragment.call_id

    def _begin(self, call_id: int, request: Request, security: SecurityContext | None) -> _Incoming:
        self._skipped = None
        if call_id in self._incoming or call_id in self._pending:
            raise ProtocolError("rpc-call-id", f"{call_id} is under way")
        context = self._presentation.get(request.context)
        if context is None:
            raise NotTaken(UNKNOWN_CONTEXT)
        if not self._is_new(call_id, request.context):
            raise NotTaken(PROTOCOL_FAULT)
        if len(self._incoming) + len(self._pending) >= self._limits.calls:
            raise NotTaken(TOO_BUSY, "rpc-too-busy", f"{self._limits.calls} calls")
        incoming = self._incoming[call_id] = _Incoming(request, context, security)
        return incoming

    def _continue(self, call_id: int, security: SecurityContext | None) -> _Incoming:
        incoming = self._incoming.get(call_id)
        if incoming is None or incoming.security is not security:
            raise NotTaken(PROTOCOL_FAULT)
        return incoming

    def _is_new(self, call_id: int, context: int) -> bool:
        """Call ids grow, for each context by itself: some clients count so. They may wrap."""
        newest = self._newest.get(context)
        if newest is not None and not 0 < (call_id - newest) & 0xFFFFFFFF < 0x80000000:
            return False
        self._newest[context] = call_id
        return True

    def _grow(self, incoming: _Incoming, stub: bytes) -> None:
        limits = self._limits
        if incoming.stub.size + len(stub) > limits.stub:
            raise NotTaken(ACCESS_DENIED, "rpc-too-large", f"over {limits.stub} bytes")
        if self.held + len(stub) > limits.held:
            raise NotTaken(TOO_BUSY, "rpc-too-busy", f"{limits.held} bytes")
        incoming.stub.add(stub)
        self.held += len(stub)

    def _complete(self, fragment: Fragment, incoming: _Incoming) -> Complete:
        call_id, request, security = fragment.call_id, incoming.request, incoming.security
        stub = incoming.stub.whole()
        if not _is_verified(stub, call_id, incoming):
            raise NotTaken(ACCESS_DENIED, "rpc-access-denied", "verification trailer")
        if incoming.cancelled:
            raise NotTaken(CANCELLED)
        del self._incoming[call_id]
        silent = fragment.flags & Flags.MAYBE != 0
        self._pending[call_id] = Pending(request.context, security, len(stub), silent)
        return Complete(request.opnum, stub, incoming.context, security)

    # -- what ends them ---------------------------------------------------------------------

    def cancel(self, call_id: int) -> int | None:
        """A request that is still coming in is dropped; its presentation context, if it was."""
        incoming = self._drop(call_id)
        if incoming is None:
            return None
        self._skipped = call_id
        return incoming.request.context

    def is_pending(self, call_id: int) -> bool:
        return call_id in self._pending

    def answered(self, call_id: int) -> Pending | None:
        """It is pending no more; None if it was not."""
        call = self._pending.pop(call_id, None)
        if call is not None:
            self.held -= call.size
        return call

    def _drop(self, call_id: int) -> _Incoming | None:
        incoming = self._incoming.pop(call_id, None)
        if incoming is not None:
            self.held -= incoming.stub.size
        return incoming


def _is_verified(stub: bytes, call_id: int, incoming: _Incoming) -> bool:
    """RR-10"""
    try:
        trailer = find_trailer(stub)
    except WireError:
        return False
    request = incoming.request
    return trailer is None or trailer.agrees(
        context=(incoming.context.proposed, NDR), call=(call_id, request.context, request.opnum)
    )
