"""What a server says when it does not do something, and what a reader can do about it. RR-57"""

from __future__ import annotations

from typing import Final

from bridge.model.errors import BridgeError
from bridge.protocol.rpc.calls import Fault
from bridge.wire.rpc.stub import Stub

QUEUE_NOT_FOUND: Final = 0xC00E0003
INVALID_PARAMETER: Final = 0xC00E0006
INVALID_HANDLE: Final = 0xC00E0007
CANCELLED: Final = 0xC00E0008
SHARING_VIOLATION: Final = 0xC00E0009
TIMEOUT: Final = 0xC00E001B
ILLEGAL_CURSOR_ACTION: Final = 0xC00E001C
ALREADY_RECEIVED: Final = 0xC00E001D
UNSUPPORTED_NAME: Final = 0xC00E0020
ACCESS_DENIED: Final = 0xC00E0025
QUEUE_NOT_AVAILABLE: Final = 0xC00E004B
TRANSACTION_USAGE: Final = 0xC00E0050
QUEUE_DELETED: Final = 0xC00E005A
MESSAGE_NOT_FOUND: Final = 0xC00E0088
NT_ACCESS_DENIED: Final = 0xC0000022
NT_SHARING_VIOLATION: Final = 0xC0000043  # R_QMOpenRemoteQueue. MS-MQMP 3.1.4.2
RPC_ACCESS_DENIED: Final = 0x00000005
NO_SUCH_CALL: Final = 0x1C010002  # nca_s_op_rng_error
LOST_HANDLE: Final = 0x1C00001A  # nca_s_fault_context_mismatch

SHARING_VIOLATIONS: Final = (SHARING_VIOLATION, NT_SHARING_VIOLATION)
_SHARED: Final = "another reader has the queue open; try again later"
_WORDS: Final = {
    QUEUE_NOT_FOUND: "there is no such queue",
    INVALID_PARAMETER: "it does not take this name, or this number",
    INVALID_HANDLE: "it does not know this queue any more",
    CANCELLED: "the read was cancelled",
    SHARING_VIOLATION: _SHARED,
    NT_SHARING_VIOLATION: _SHARED,
    TIMEOUT: "there is no message",
    ALREADY_RECEIVED: "somebody else has received the message",
    UNSUPPORTED_NAME: "a queue of this kind cannot be read",
    ACCESS_DENIED: "this user may not do that; look at its name and at its rights on the queue "
    "(msmq-bridge: a queue with mode: forward has nothing to read)",
    QUEUE_NOT_AVAILABLE: "the queue was deleted",
    QUEUE_DELETED: "the queue was deleted",
    TRANSACTION_USAGE: "somebody else holds the message",
    MESSAGE_NOT_FOUND: "there is no such message",
    NT_ACCESS_DENIED: "this user may not do that; look at its name and at its rights on the queue",
    NO_SUCH_CALL: "the host cannot do that; lookup ids need Windows XP or later there",
    RPC_ACCESS_DENIED: "the host refuses user, password or level; look at these three",
}


class Refused(BridgeError):
    """The server did not do it; `status` is its reason."""

    def __init__(self, status: int) -> None:
        self.status = status
        words = _WORDS.get(status, "the server refuses")
        super().__init__(f"{words} (0x{status:08X})")


class Unsettled(BridgeError):
    """A message comes back again and again; it is still in its queue. RR-49"""


def status_of(answer: Stub | Fault) -> int:
    """0 for one that did its work; calls without an HRESULT fail by faults alone (RR-46)."""
    return int(getattr(answer, "status", 0))
