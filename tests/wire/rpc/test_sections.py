"""SectionBuffers: split and layout. MS-MQRR 2.2.6, digest 3.2"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.pieces import Pieces
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.sections import Section, Sections, SectionType, check, split
from bridge.wire.rpc.stub import Stub

HEAD, BODY, PAD, TAIL = b"h" * 100, b"body12", b"\0\0", b"t" * 20
PACKET = Pieces(head=HEAD, part=BODY, pad=PAD, tail=TAIL)


@pytest.mark.parametrize("most", [6, 7, 0x80000000, 0xFFFFFFFF])  # RR-32: unsigned
def test_enough_room_is_one_section(most: int) -> None:
    (section,) = split(PACKET, most)
    assert (section.kind, section.alloc, section.size) == (0, 128, 128)
    assert section.data == HEAD + BODY + PAD + TAIL


def test_less_is_two() -> None:
    """D-12: Alloc of the first is where the headers behind the body begin."""
    first, second = split(PACKET, 4)
    assert (first.kind, first.alloc, first.data) == (1, 108, HEAD + b"body")
    assert (second.kind, second.alloc, second.data) == (2, 20, TAIL)


def test_no_body_at_all_is_legal() -> None:  # RR-33
    first, _ = split(PACKET, 0)
    assert (first.data, first.alloc) == (HEAD, 108)


def test_without_headers_behind_it_there_is_no_second_one() -> None:
    (first,) = split(Pieces(head=HEAD, part=BODY, pad=PAD), 1)
    assert (first.kind, first.alloc, first.size) == (1, 108, 101)


def test_a_message_that_came_by_http() -> None:
    packet = Pieces(head=HEAD, part=BODY, pad=PAD, tail=TAIL, is_srmp=True)
    assert [section.kind for section in split(packet, 1)] == [3, 4]
    assert [section.kind for section in split(packet, 6)] == [0]


class Answer(Stub, frozen=True, gc=False):
    sections: Sections = ()


def test_layout_by_hand() -> None:
    """u16 type, pad, u32 alloc, u32 size, pointer; the bytes come after the array."""
    raw = struct.pack("<III", 2, 0x20000, 2)
    raw += struct.pack("<HxxIII", 1, 9, 5, 0x20004) + struct.pack("<HxxIII", 2, 3, 3, 0x20008)
    raw += struct.pack("<I5s3x", 5, b"first") + struct.pack("<I3s", 3, b"2nd")
    value = Answer((Section(1, 9, (b"first",)), Section(2, 3, (b"2nd",))))
    assert value.pack() == raw
    assert Answer.unpack(raw) == value
    assert Answer().pack() == bytes(8)
    assert Answer.unpack(bytes(8)) == Answer()


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<II", 1, 0),  # one, but no array
        struct.pack("<III", 3, 1, 3) + bytes(64),  # three
        struct.pack("<III", 1, 1, 2) + bytes(64),  # two counts
        struct.pack("<IIIHxxIII", 1, 1, 1, 0, 9, 9, 0),  # no buffer
        struct.pack("<IIIHxxIIII", 1, 1, 1, 0, 1, 2, 1, 2) + b"ab",  # alloc below size
        struct.pack("<IIIHxxIIII", 1, 1, 1, 0, 2, 2, 1, 3) + b"abc",  # size is not the array's
        struct.pack("<IIIHxxIIII", 1, 1, 1, 0, 2**32 - 1, 2**32 - 1, 1, 2**32 - 1) + b"abc",
    ],
)
def test_bad_arrays(raw: bytes) -> None:
    with pytest.raises(BadStub):
        Answer.unpack(raw)


@pytest.mark.parametrize("kinds", [(0,), (1,), (1, 2), (3,), (3, 4)])
def test_lawful_answers(kinds: tuple[int, ...]) -> None:
    check([Section(kind, 1, (b"x",)) for kind in kinds])


@pytest.mark.parametrize("kinds", [(), (2,), (0, 0), (1, 4), (2, 1), (5,)])
def test_unlawful_answers(kinds: tuple[int, ...]) -> None:
    with pytest.raises(WireError):
        check([Section(kind, 1, (b"x",)) for kind in kinds])


def test_too_much() -> None:
    """RR-52: 16 MiB at most."""
    with pytest.raises(WireError):
        check([Section(SectionType.FULL, (16 << 20) + 1, (bytes((16 << 20) + 1),))])


@given(st.binary(max_size=40), st.binary(max_size=20), st.integers(0, 50))
def test_nothing_but_body_is_cut(body: bytes, tail: bytes, most: int) -> None:
    packet = Pieces(head=HEAD, part=body, pad=bytes(-len(body) % 4), tail=tail)
    sections = split(packet, most)
    check(sections)
    assert Answer.unpack(Answer(sections).pack()).sections[0].data == sections[0].data
    if len(sections) == 1 and sections[0].kind == 0:
        assert sections[0].data == b"".join(packet.all)
    else:
        assert sections[0].data == HEAD + body[:most]
        assert b"".join(s.data for s in sections[1:]) == tail
