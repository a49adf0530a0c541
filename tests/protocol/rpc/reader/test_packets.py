"""RR-52, RR-53, RR-55: what a Start brings, as a message."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.protocol.rpc.reader.packets import key_of, place_of, read_of, size_of
from bridge.wire.rpc.remote_read import Started
from tests.protocol.rpc.reader.fake_server import SOURCE, _started, new_server
from tests.protocol.rpc.reader.running import ORDERS


def started(most: int = 0xFFFFFFFF, *, extensions: bool = True, body: bytes = b"12345") -> Started:
    server = new_server(has_extensions=extensions)
    server.put(ORDERS, b"before")
    return Started.unpack(_started(server.put(ORDERS, body, label="a label"), most))


def test_a_whole_message() -> None:
    read = read_of(started(), 7, NULL_GUID)
    message = read.message
    assert (message.body, message.label, message.ordinal) == (b"12345", "a label", 2)
    assert message.source == Guid(SOURCE.bytes_le)
    assert key_of(read) == (message.source, 2)
    assert message.arrived_ms == 1_700_000_102_000  # RR-53: entry into that queue
    assert message.time_to_reach_queue == 345_600  # RR-53: it was absolute
    assert message.peer == "10.0.0.7"
    assert read.request_id == 7
    assert not read.is_cut


def test_its_place() -> None:  # RR-55: (7 - PR) << 56 | sequenceId
    read = read_of(started(), 1, NULL_GUID)
    assert read.lookup_id == read.message.lookup_id == 4 << 56 | 2
    assert place_of(read.message, 1 << 60 | 9) == 4 << 56 | 9  # RR-31: the low 56 bits


def test_what_a_subqueue_has_counted() -> None:  # MS-MQRR 2.2.5.3
    counters = read_of(started(), 1, NULL_GUID).counters
    assert counters == {
        "msmq.sub.aborts": "2",
        "msmq.sub.moves": "1",
        "msmq.sub.moved": "1600000000",
    }
    assert read_of(started(extensions=False), 1, NULL_GUID).counters == {}


@pytest.mark.parametrize("extensions", [True, False])
@pytest.mark.parametrize("most", range(5))
def test_a_message_that_was_cut(most: int, extensions: bool) -> None:  # RR-52
    answer = started(most, extensions=extensions)
    assert len(answer.sections) == 1 + extensions
    read = read_of(answer, 1, NULL_GUID)
    assert read.is_cut
    assert read.message.body == b"12345"[:most]
    assert read.message.label == "a label"
    assert size_of(answer) >= size_of(started(extensions=extensions)) - 3


def test_no_sections() -> None:
    with pytest.raises(WireError):
        read_of(Started(), 1, NULL_GUID)


def test_bytes_that_are_no_packet() -> None:
    answer = started()
    head = struct.pack("<I4xQIIIHxxIII", 1, 1, 1, 1, 1, 0, 8, 8, 1)
    broken = Started.unpack(head + struct.pack("<I8sI", 8, b"nonsense", 0))
    assert broken.sections != answer.sections
    with pytest.raises(WireError):
        read_of(broken, 1, NULL_GUID)


@given(
    most=st.sampled_from([0, 3, 0xFFFFFFFF]),
    extensions=st.booleans(),
    changes=st.dictionaries(st.integers(0, 600), st.integers(0, 255), max_size=6),
    cut=st.none() | st.integers(0, 600),
)
def test_any_bytes_give_a_message_or_a_wire_error(
    most: int, extensions: bool, changes: dict[int, int], cut: int | None
) -> None:
    answer = started(most, extensions=extensions)
    sections = []
    for section in answer.sections:
        data = bytearray(section.data)
        for at, byte in changes.items():
            if at < len(data):
                data[at] = byte
        sections.append(replace(section, pieces=(bytes(data[:cut]),)))
    with suppress(WireError):
        read = read_of(replace(answer, sections=tuple(sections)), 1, NULL_GUID)
        assert read.lookup_id & 0xFFFF == 2
