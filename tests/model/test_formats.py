from __future__ import annotations

from bridge.model.formats import (
    JOURNAL,
    Connector,
    Direct,
    DistributionList,
    FormatName,
    Machine,
    Multicast,
    PathName,
    Private,
    Public,
)
from bridge.model.guid import Guid

GUID = Guid.parse("A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9")
OS_NAME = Direct(protocol="OS", host="Srv", private=True, queue="Q")
HTTP_NAME = Direct(protocol="HTTP", host="Srv", port=80, private=True, queue="Q")


def test_names_compare_without_regard_to_case_and_keep_their_text() -> None:  # DM-32
    other = Direct(protocol="OS", host="sRV", private=True, queue="q")
    assert other == OS_NAME
    assert len({OS_NAME, other}) == 1
    assert OS_NAME.canonical != other.canonical
    assert other != Direct(protocol="OS", host="Srv", queue="Q")
    assert other != "DIRECT=OS:sRV\\PRIVATE$\\q"


def test_what_can_be_read() -> None:  # row 6: HTTP is never readable
    names: list[tuple[FormatName, bool]] = [
        (OS_NAME, True),
        (HTTP_NAME, False),
        (Public(guid=GUID), True),
        (Private(guid=GUID, number=7), True),
        (Machine(guid=GUID, suffix=JOURNAL), True),
        (Connector(guid=GUID), True),
        (DistributionList(guid=GUID), False),
        (Multicast(address="234.1.1.1", port=1), False),
    ]
    for name, readable in names:
        assert name.readable is readable


def test_system_queues() -> None:
    assert Direct(protocol="OS", host="a", queue="SYSTEM$", suffix=JOURNAL).system
    assert not OS_NAME.system


def test_url_path() -> None:  # MC-MQSRM 4.4: Windows posts to it in lower case
    assert HTTP_NAME.path == "/msmq/private$/q"
    assert Direct(protocol="HTTPS", host="a", port=443, queue="Q").path == "/msmq/q"
    assert OS_NAME.path == ""


def test_path_name() -> None:
    assert PathName(computer=".", queue="q").local
    assert not PathName(computer="a", queue="q").local
