"""NDR by hand-made bytes. C706 chapter 14"""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import NULL_HANDLE, BadStub, Reader, Writer

G = Guid(bytes(range(16)))


def test_primitives_are_aligned_from_the_start_of_the_stub() -> None:
    raw = struct.pack("<BxHB3xIB3xQ", 1, 2, 3, 4, 5, 6)
    reader = Reader(raw)
    read = [
        reader.u8(),
        reader.u16(),
        reader.u8(),
        reader.u32(),
        reader.u8(),
        reader.u64(),
    ]
    assert read == [1, 2, 3, 4, 5, 6]
    assert reader.left == 0
    writer = Writer()
    writer.u8(1)
    writer.u16(2)
    writer.u8(3)
    writer.u32(4)
    writer.u8(5)
    writer.u64(6)
    assert b"".join(writer.buffers()) == raw


def test_guids_and_handles_are_aligned_to_four() -> None:
    raw = b"\x01" + bytes(3) + G + b"\x02" + bytes(3) + NULL_HANDLE
    reader = Reader(raw)
    assert (reader.u8(), reader.guid(), reader.u8(), reader.handle()) == (1, G, 2, NULL_HANDLE)
    writer = Writer()
    writer.u8(1)
    writer.guid(G)
    writer.u8(2)
    writer.handle(NULL_HANDLE)
    assert b"".join(writer.buffers()) == raw


def test_arrays() -> None:
    """C706 14.3.3.2: max_count, bytes; 14.3.3.4: max_count, offset, actual_count, bytes."""
    raw = struct.pack("<I3sxIII2s", 3, b"abc", 2, 0, 2, b"de")
    reader = Reader(raw)
    assert (reader.conformant(3), reader.varying(2)) == (b"abc", b"de")
    writer = Writer()
    writer.conformant((b"a", b"bc"))
    writer.varying((b"de",))
    assert b"".join(writer.buffers()) == raw


def test_a_string_is_counted_with_its_nul() -> None:
    raw = struct.pack("<III", 3, 0, 3) + "ab\0".encode("utf-16-le")
    assert Reader(raw).wide_string() == "ab"
    writer = Writer()
    writer.wide_string("ab")
    assert b"".join(writer.buffers()) == raw


@pytest.mark.parametrize(
    ("most", "offset", "actual", "text"),
    [
        (3, 1, 2, "ab\0"),  # it does not begin at its beginning
        (2, 0, 3, "ab\0"),  # more than there is room for
        (3, 0, 0, ""),  # not even a NUL
        (2, 0, 2, "ab"),  # no NUL
        (4, 0, 4, "a\0b\0"),  # two
        (0xFFFFFFFF, 0, 0xFFFFFFFF, "ab\0"),  # RR-12: counts near 2**32
    ],
)
def test_bad_strings(most: int, offset: int, actual: int, text: str) -> None:
    raw = struct.pack("<III", most, offset, actual) + text.encode("utf-16-le")
    with pytest.raises(BadStub) as caught:
        Reader(raw).wide_string()
    assert caught.value.status == 0x6F7  # RR-11


def test_counts_are_compared_before_anything_is_made() -> None:
    """RR-12"""
    for size in (4, 0x7FFFFFFF, 0xFFFFFFFF):
        with pytest.raises(BadStub):
            Reader(struct.pack("<I", size) + b"abc").conformant(size)
        with pytest.raises(BadStub):
            Reader(struct.pack("<III", size, 0, size) + b"abc").varying(size)
    with pytest.raises(BadStub):
        Reader(struct.pack("<I3s", 3, b"abc")).conformant(2)
    with pytest.raises(BadStub):
        Reader(struct.pack("<III3s", 3, 0, 2, b"abc")).varying(3)
    with pytest.raises(BadStub):
        Reader(struct.pack("<III3s", 3, 1, 3, b"abc")).varying(3)


def test_ranges() -> None:
    assert Reader(struct.pack("<I", 2)).ranged("dwAck", 1, 2) == 2
    for value in (0, 3, 0xFFFFFFFF):
        with pytest.raises(BadStub, match="dwAck"):
            Reader(struct.pack("<I", value)).ranged("dwAck", 1, 2)


@pytest.mark.parametrize("read", ["u8", "u16", "u32", "u64", "guid", "handle", "wide_string"])
@given(data=st.binary(max_size=7))
def test_short_data(read: str, data: bytes) -> None:
    reader = Reader(b"\x01" + data)
    reader.u8()
    with suppress(BadStub):
        getattr(reader, read)()
    assert reader.left >= 0


def test_pointers_have_numbers_of_their_own() -> None:
    writer = Writer()
    for is_there in (True, False, True):
        writer.pointer(is_there)
    raw = b"".join(writer.buffers())
    one, none, two = struct.unpack("<III", raw)
    assert none == 0 != one != two != 0
    reader = Reader(raw)
    assert [reader.pointer() for _ in range(3)] == [True, False, True]


def test_a_large_buffer_is_passed_on_as_it_is() -> None:
    body = bytes(1 << 20)
    writer = Writer()
    writer.u32(1)
    writer.conformant((b"head", body, b"tail"))
    assert any(buffer is body for buffer in writer.buffers())
    assert (
        b"".join(writer.buffers())
        == struct.pack("<II", 1, len(body) + 8) + b"head" + body + b"tail"
    )


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40))
def test_strings_round_trip(text: str) -> None:
    writer = Writer()
    writer.wide_string(text)
    assert Reader(b"".join(writer.buffers())).wide_string() == text
