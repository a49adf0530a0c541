from bridge.core.remote_read import codes
from bridge.core.remote_read.codes import Failed, translated
from bridge.core.retained.errors import Status


def test_numbers() -> None:
    """RR-11, MS-MQMQ 2.4"""
    assert (codes.ACCESS_DENIED, codes.NO_SUCH_CALL, codes.NO_SUCH_HANDLE) == (
        5,
        0x1C010002,
        0x1C00001A,
    )
    assert codes.DTC_CONNECT == 0xC00E004C
    assert codes.NT_ACCESS_DENIED == 0xC0000022
    assert codes.REMOTE_CANCELLED == 0x400E03E9


def test_a_failure_shows_its_number() -> None:
    assert str(Failed(0xC00E000B)) == "0xC00E000B"


def test_protocols_have_words_of_their_own() -> None:
    table = {Status.NT_INVALID_HANDLE: 7}
    assert translated(Status.NT_INVALID_HANDLE, table) == 7
    assert translated(Status.IO_TIMEOUT, table) == 0xC00E001B
