from bridge.core.retained.errors import Refused, Status

NUMBERS = {
    "QUEUE_NOT_FOUND": 0xC00E0003,
    "INVALID_PARAMETER": 0xC00E0006,
    "INVALID_HANDLE": 0xC00E0007,
    "OPERATION_CANCELLED": 0xC00E0008,
    "SHARING_VIOLATION": 0xC00E0009,
    "IO_TIMEOUT": 0xC00E001B,
    "ILLEGAL_CURSOR_ACTION": 0xC00E001C,
    "MESSAGE_ALREADY_RECEIVED": 0xC00E001D,
    "ACCESS_DENIED": 0xC00E0025,
    "QUEUE_NOT_AVAILABLE": 0xC00E004B,
    "TRANSACTION_USAGE": 0xC00E0050,
    "TRANSACTION_SEQUENCE": 0xC00E0051,
    "MESSAGE_NOT_FOUND": 0xC00E0088,
    "MESSAGE_LOCKED_UNDER_TRANSACTION": 0xC00E009C,
    "NT_INVALID_PARAMETER": 0xC000000D,
    "NT_NOT_FOUND": 0xC0000225,
}


def test_numbers_are_those_of_the_specification() -> None:
    """MS-MQMQ 2.4, data-model.md section 2"""
    assert {name: Status[name].value for name in NUMBERS} == NUMBERS


def test_an_error_reads_as_one_line() -> None:
    assert str(Refused(Status.IO_TIMEOUT)) == "io timeout (0xC00E001B)"
    assert str(Refused(Status.QUEUE_NOT_FOUND, "x")) == "queue not found (0xC00E0003): x"
