from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.srmp import mime
from bridge.wire.srmp.mime import pack_parts, read_parts
from tests.vectors.srmp import REQUESTS, V5_BODY, V5_ENVELOPE, V5_QM
from tests.wire.srmp.strategies import SOME

V5 = "MSMQ - SOAP boundary, 292"


def test_vector_5() -> None:  # srmp.md 1.3, V5
    data = pack_parts(V5_ENVELOPE, [(f"body@{V5_QM}", V5_BODY)], V5)
    assert data == REQUESTS["V5"].body
    envelope, body = read_parts(data, V5)
    assert (envelope.content, envelope.content_type) == (V5_ENVELOPE, "text/xml; charset=UTF-8")
    assert (body.content, body.content_id, body.kind) == (V5_BODY, f"body@{V5_QM}", "body")
    assert data[body.offset :].startswith(V5_BODY)


def test_vector_5_cut_anywhere() -> None:  # SR-5
    data = REQUESTS["V5"].body
    for length in range(len(data) - 2):  # the last CRLF may be missing
        with pytest.raises(WireError):
            read_parts(data[:length], V5)
    assert read_parts(data[:-2], V5) == read_parts(data, V5)


@SOME
@given(
    st.binary(max_size=50),
    st.lists(
        st.tuples(
            st.sampled_from(["body@x", "extension@x", "other", ""]),
            st.one_of(
                st.binary(max_size=50), st.sampled_from([b"--B", b"\r\n--B\r\n", b"--B--\r\n"])
            ),
        ),
        max_size=4,
    ),
)
def test_round_trip(envelope: bytes, attachments: list[tuple[str, bytes]]) -> None:
    # 1.3: the payload is opaque and may contain the delimiter
    first, *rest = read_parts(pack_parts(envelope, attachments, "B"), "B")
    assert first.content == envelope
    assert [(part.content_id, part.content) for part in rest] == attachments


def contents(data: bytes) -> list[bytes]:
    return [part.content for part in read_parts(data, "B")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"--B--", []),
        (b"--B\r\n\r\nx\r\n--B--", [b"x"]),
        (b"\r\n--B \t\r\nA: b\r\n\r\nx\r\n--B--\r\n", [b"x"]),
        (b"--B\r\nA: b\r\n\r\nx\r\n--BB\r\n--B\r\n\r\ny\r\n--B--\r\n", [b"x\r\n--BB", b"y"]),
        (b"--B\r\nA: b\r\n\r\n--B--", [b""]),
        (b"--B\r\nContent-Length: 1\r\n\r\nx\r\n--B\r\n\r\ny\r\n--B--", [b"x", b"y"]),
        (b"--B\r\ncontent-length:0\r\n\r\n--B--", [b""]),
    ],
)
def test_what_others_send(data: bytes, expected: list[bytes]) -> None:  # 1.3 D: RFC 2046 too
    assert contents(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"x", b"--B", b"--B\r\n", b"--B\r\n\r\n", b"--C--", b"--B-", b"--Bx\r\n\r\n--B--"),
        b"--B\r\n\r\nx--B--",  # no length, and not at the start of a line
        b"--B\r\nContent-Length: 2\r\n\r\nx--B--",
        b"--B\r\nContent-Length: 0\r\n\r\nx--B--",
        b"--B\r\nContent-Length: 99\r\n\r\nx--B--",
        b"--B\r\nContent-Length: 4294967295\r\n\r\nx--B--",
        b"--B\r\nContent-Length: -1\r\n\r\nx--B--",
        b"--B\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx--B--",
        b"--B\r\nContent-Length: 1\r\n\r\nx--B--\r\nmore",
        b"--B\r\nno header\r\n\r\nx--B--",
        b"preamble\r\n--B--",
    ],
)
def test_malformed(data: bytes) -> None:  # SR-5: lying lengths, wrong boundaries
    with pytest.raises(WireError):
        contents(data)


def test_limits() -> None:
    part = b"--B\r\nContent-Length: 0\r\n\r\n"
    assert len(contents(part * mime.MAX_PARTS + b"--B--")) == mime.MAX_PARTS
    with pytest.raises(WireError, match="parts"):
        contents(part * (mime.MAX_PARTS + 1) + b"--B--")
    with pytest.raises(WireError, match="head"):
        contents(b"--B\r\nA: " + b"a" * mime.MAX_PART_HEAD + b"\r\n\r\n--B--")


def test_many_false_delimiters_take_linear_time() -> None:
    data = b"--B\r\n\r\n" + b"\r\n--Bx" * 200_000 + b"\r\n--B--"
    assert len(contents(data)[0]) == 6 * 200_000


@pytest.mark.parametrize(
    ("content_id", "kind"),
    [("<Body@x>", "body"), ("EXTENSION@", "extension"), ("body", ""), ("", ""), ("a@b@c", "a")],
)
def test_content_id(content_id: str, kind: str) -> None:  # 1.3: no case, strip <>
    data = f"--B\r\nCONTENT-ID: {content_id}\r\nContent-Length: 0\r\n\r\n--B--".encode()
    assert read_parts(data, "B")[0].kind == kind
