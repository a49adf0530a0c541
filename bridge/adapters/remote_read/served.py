"""What all RPC interfaces have in common: opnums lead to functions, errors to faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.codes import NO_SUCH_CALL, Failed
from bridge.core.retained.errors import Refused
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Call, Fault
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.stub import Request, Stub

Answer = Callable[[Call, Any], Awaitable[Stub] | Stub]


class Entry(NamedTuple):
    """`is_open`: it tells nothing worth protecting, so any level will do."""

    request: type[Request]
    answer: Answer
    is_open: bool = False


class ServedInterface:
    """An `Interface`. A `Refused` that an answer lets through becomes a fault with its status: so
    fail the methods that return nothing (RR-15)."""

    version = (1, 0)

    def __init__(self, uuid: Guid, access: ReadAccess, entries: Sequence[Entry]) -> None:
        self.uuid, self._access = uuid, access
        self._entries = {entry.request.OPNUM: entry for entry in entries}

    async def call(self, call: Call) -> Sequence[bytes]:
        entry = self._entries.get(call.opnum)
        if entry is None:
            raise Fault(NO_SUCH_CALL, did_not_execute=True)
        if not entry.is_open:
            self._access.demand_level(call)
        try:
            request = entry.request.unpack(call.stub)
        except BadStub as bad:
            raise Fault(bad.status, did_not_execute=True) from None
        try:
            answer = entry.answer(call, request)
            response = answer if isinstance(answer, Stub) else await answer
        except (Refused, Failed) as failure:
            raise Fault(int(failure.status)) from None
        return response.buffers()

    def rundown(self, group: int) -> None:
        """Nothing of the group's is open."""
