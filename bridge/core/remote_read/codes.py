"""Numbers that readers are told beside those of `bridge.core.retained.errors`. MS-MQMQ 2.4"""

from __future__ import annotations

from typing import Final

from bridge.core.retained.errors import Status

OK: Final = 0
REMOTE_CANCELLED: Final = 0x400E03E9  # MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT: a success
MQ_ERROR: Final = 0xC00E0001
SERVICE_NOT_AVAILABLE: Final = 0xC00E000B  # Kafka is away
BUFFER_OVERFLOW: Final = 0xC00E001A
INSUFFICIENT_RESOURCES: Final = 0xC00E0027
DTC_CONNECT: Final = 0xC00E004C
QUEUE_DELETED: Final = 0xC00E005A
OBSOLETE: Final = 0xC00E0064  # MQ_ERROR_ILLEGAL_OPERATION: a call that nobody makes any more
NT_ACCESS_DENIED: Final = 0xC0000022
NT_SHARING_VIOLATION: Final = 0xC0000043  # R_QMOpenRemoteQueue. MS-MQMP 3.1.4.2

# Faults: what the call did not even come to. RR-11
ACCESS_DENIED: Final = 5
NO_SUCH_CALL: Final = 0x1C010002  # nca_s_op_rng_error
NO_SUCH_HANDLE: Final = 0x1C00001A  # nca_s_fault_context_mismatch


class Failed(Exception):
    """A call that fails with a number that the queues do not know."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"0x{status:08X}")


def translated(status: Status, table: dict[Status, int]) -> int:
    """Protocols disagree on some of them: `table` has one's own."""
    return table.get(status, int(status))
