"""QUEUE_FORMAT by hand, and as stock impacket writes it. MS-MQMQ 2.2.7"""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import BadStub, Reader, Writer
from bridge.wire.rpc.queue_format import (
    Format,
    OptionalFormat,
    QueueFormat,
    read_queue_format,
    write_queue_format,
)
from bridge.wire.rpc.stub import U32, Stub
from tests.outside.rpc.idl import queue_format

G = Guid(bytes(range(16)))
DIRECT = "OS:host\\private$\\q"
ARMS: list[tuple[QueueFormat, dict[str, Any]]] = [
    (QueueFormat(kind=1, guid=G), {"m_gid": G}),
    (
        QueueFormat(kind=2, suffix=0x81, guid=G, number=77),
        {"m_oid": {"Lineage": G, "Uniquifier": 77}},
    ),
    (QueueFormat(kind=3, text=DIRECT), {"m_pDirectID": DIRECT}),
    (QueueFormat(kind=4, suffix=0x82, guid=G), {"m_gid": G}),
    (QueueFormat(kind=5, guid=G), {"m_gid": G}),
    (QueueFormat(kind=6, guid=G, text="shop"), {"m_DL": {"m_DlGuid": G, "m_pwzDomain": "shop\0"}}),
    (QueueFormat(kind=7, number=5, port=6), {"m_MulticastID": {"m_address": 5, "m_port": 6}}),
    (QueueFormat(kind=8, suffix=5, text=DIRECT + ";s"), {"m_pDirectSubqueueID": DIRECT + ";s"}),
]


def packed(value: QueueFormat) -> bytes:
    writer = Writer()
    write_queue_format(writer, value)
    return b"".join(writer.buffers())


@pytest.mark.parametrize(("value", "arm"), ARMS)
def test_as_impacket_writes_it(value: QueueFormat, arm: dict[str, Any]) -> None:
    theirs = queue_format(value.kind, value.suffix, **arm)
    raw = theirs.getData()
    raw += theirs.getDataReferents(len(raw))
    assert read_queue_format(Reader(raw)) == value
    assert len(packed(value)) == len(raw)
    assert read_queue_format(Reader(packed(value))) == value


def test_a_direct_name_by_hand() -> None:
    """V2 of queue-manager-client.md section 10: tag at 4, arm at 8, the text behind the struct."""
    text = "OS:HOST\\private$\\q1"
    raw = bytes.fromhex("03000000 03000000 00000200 14000000 00000000 14000000") + (
        text + "\0"
    ).encode("utf-16-le")
    assert read_queue_format(Reader(raw)) == QueueFormat(kind=3, text=text)
    assert packed(QueueFormat(kind=3, text=text)) == raw


def test_nothing_has_no_arm() -> None:
    assert packed(QueueFormat(kind=0)) == bytes(5)
    assert read_queue_format(Reader(bytes(5))) == QueueFormat(kind=0)


def test_a_null_text() -> None:
    raw = struct.pack("<BBHB3xI", 3, 0, 0, 3, 0)
    assert read_queue_format(Reader(raw)) == QueueFormat(kind=3)
    assert packed(QueueFormat(kind=3)) == raw


@pytest.mark.parametrize(
    ("kind", "tag", "status"),
    [(3, 4, 0x6F7), (9, 9, 0x1C000006), (255, 255, 0x1C000006), (0, 9, 0x6F7)],
)
def test_tags(kind: int, tag: int, status: int) -> None:
    """RR-11: 6F7 if the tag is not m_qft, 1C000006 if there is no such arm."""
    with pytest.raises(BadStub) as caught:
        read_queue_format(Reader(struct.pack("<BBHB3x16s", kind, 0, 0, tag, G)))
    assert caught.value.status == status


class _Named(Stub, frozen=True, gc=False):
    name: Format
    number: U32


class _Optional(Stub, frozen=True, gc=False):
    name: OptionalFormat
    number: U32


def test_what_comes_next_is_aligned() -> None:
    value = _Named(QueueFormat(kind=3, text="OS:a\\bc"), 7)  # an odd number of characters
    assert len(value.pack()) % 4 == 0
    assert _Named.unpack(value.pack()) == value


def test_a_pointer_to_one() -> None:
    for name in (None, QueueFormat(kind=2, guid=G, number=3)):
        value = _Optional(name, 7)
        assert _Optional.unpack(value.pack()) == value
    assert _Optional(None, 7).pack() == struct.pack("<II", 0, 7)


@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    try:
        value = read_queue_format(Reader(data))
    except BadStub:
        return
    assert read_queue_format(Reader(packed(value))) == value
