"""Why a call on a retained queue fails, in the numbers that readers are told. MS-MQMQ 2.4"""

from __future__ import annotations

from enum import IntEnum

from bridge.model.errors import BridgeError


class Status(IntEnum):
    """HRESULTs; the last three are NTSTATUS values, which the specifications mix in."""

    QUEUE_NOT_FOUND = 0xC00E0003
    QUEUE_EXISTS = 0xC00E0005
    INVALID_PARAMETER = 0xC00E0006
    INVALID_HANDLE = 0xC00E0007
    OPERATION_CANCELLED = 0xC00E0008
    SHARING_VIOLATION = 0xC00E0009
    IO_TIMEOUT = 0xC00E001B
    ILLEGAL_CURSOR_ACTION = 0xC00E001C
    MESSAGE_ALREADY_RECEIVED = 0xC00E001D
    UNSUPPORTED_FORMATNAME_OPERATION = 0xC00E0020
    ACCESS_DENIED = 0xC00E0025
    QUEUE_NOT_AVAILABLE = 0xC00E004B
    TRANSACTION_USAGE = 0xC00E0050
    TRANSACTION_SEQUENCE = 0xC00E0051
    MESSAGE_NOT_FOUND = 0xC00E0088
    MESSAGE_LOCKED_UNDER_TRANSACTION = 0xC00E009C
    NT_INVALID_HANDLE = 0xC0000008  # a cursor that does not exist
    NT_INVALID_PARAMETER = 0xC000000D
    NT_NOT_FOUND = 0xC0000225


class Refused(BridgeError):
    """The call did nothing. Each protocol has its own way to say so to the reader."""

    def __init__(self, status: Status, what: str = "") -> None:
        self.status = status
        name = status.name.lower().replace("_", " ")
        super().__init__(f"{name} (0x{status:08X})" + (f": {what}" if what else ""))
