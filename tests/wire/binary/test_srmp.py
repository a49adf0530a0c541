"""The headers of SRMP packets by hand. MS-MQRR 2.2.5.1.2"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.binary.srmp import Compound, compound_size, pack_envelope, unpack_envelope

TEXT = "<a/>".encode("utf-16-le") + b"\0\0"


def test_an_envelope() -> None:
    """u16 id, u16 0, u32 length in WCHARs with the NUL, Data; padded to 4."""
    raw = pack_envelope("<a/>")
    assert raw[2:] == struct.pack("<HI", 0, 5) + TEXT + bytes(2)
    assert unpack_envelope(raw, 0, len(raw)) == ("<a/>", len(raw))


def test_an_envelope_whose_length_counts_bytes() -> None:
    raw = struct.pack("<HHI", 1, 0, 10) + TEXT + bytes(2)
    assert unpack_envelope(raw, 0, len(raw)) == ("<a/>", 20)


@pytest.mark.parametrize("length", [0, 3, 2**31, 2**32 - 1])
def test_bad_envelopes(length: int) -> None:
    raw = struct.pack("<HHI", 1, 0, length) + b"<\0a\0/\0>\0x\0y\0"
    with pytest.raises(WireError):
        unpack_envelope(raw, 0, len(raw))


def test_a_request() -> None:
    """u16 id, u16 0, u32 HTTPBodySize, u32 MsgBodySize, u32 MsgBodyOffset, Data"""
    compound = Compound.of(b"POST / HTTP/1.1\r\n\r\nbody!", b"body")
    raw = compound.pack()
    assert raw[2:16] == struct.pack("<HIII", 0, 24, 4, 19)
    assert raw[16:] == b"POST / HTTP/1.1\r\n\r\nbody!"
    padded = raw + bytes(-len(raw) & 3)
    assert Compound.unpack_from(padded, 0, len(padded)) == (compound, len(padded))
    assert compound.body == b"body"
    assert compound_size(raw, 0, len(raw)) == 24
    assert compound_size(raw, 0, 16) == 24
    assert compound_size(raw, 0, 15) == 0


@pytest.mark.parametrize("body", [b"", b"elsewhere"])
def test_a_body_that_is_not_in_the_request(body: bytes) -> None:
    compound = Compound.of(b"POST", body)
    assert (compound.body_size, compound.body) == (0, b"")


@pytest.mark.parametrize(
    "sizes", [(5, 0, 0), (2**32 - 1, 0, 0), (4, 5, 0), (4, 1, 4), (4, 2**32 - 1, 2**32 - 1)]
)
def test_bad_sizes(sizes: tuple[int, int, int]) -> None:
    raw = struct.pack("<HHIII", 1, 0, *sizes) + b"POST"
    with pytest.raises(WireError):
        Compound.unpack_from(raw, 0, len(raw))


@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30),
    st.binary(max_size=40),
)
def test_round_trips(text: str, body: bytes) -> None:
    raw = pack_envelope(text)
    assert unpack_envelope(raw, 0, len(raw)) == (text, len(raw))
    compound = Compound.of(b"head" + body, body)
    data = compound.pack()
    assert Compound.unpack_from(data, 0, len(data))[0] == compound
    assert compound.body == body
