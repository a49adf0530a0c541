"""Heads and chunks as bytes, without a socket."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters.net.http_request import (
    LARGE_BODY,
    LARGE_HEAD,
    MALFORMED,
    MAX_LINES,
    METHOD,
    SLACK,
    TINY_CHUNKS,
    ChunkedBody,
    Head,
    Refusal,
    Refused,
    read_head,
)
from bridge.wire.srmp.head import parse_content_type

MOST = 1000
WINDOWS = (  # srmp.md 1.2, the Content-Type folded
    b"POST /msmq/private$/simpleq HTTP/1.1\r\n"
    b"Host: machine2\r\n"
    b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 53287";\r\n'
    b"\ttype=text/xml\r\n"
    b"Content-Length: 906\r\n"
    b'SOAPAction: "MSMQMessage"\r\n'
    b"Proxy-Accept: NonInteractiveClient\r\n"
    b"\r\n"
)
CHUNKED = b"POST /q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


def head(*lines: str, version: str = "1.1") -> Head:
    text = "".join(f"{line}\r\n" for line in (f"POST /q HTTP/{version}", "Host: h", *lines, ""))
    return read_head(text.encode("latin-1"), MOST)


def refusal(*lines: str, version: str = "1.1") -> Refusal:
    with pytest.raises(Refused) as caught:
        head(*lines, version=version)
    return caught.value.refusal


def test_the_head_that_windows_writes() -> None:  # srmp.md 1.2
    found = read_head(WINDOWS, MOST)
    assert (found.target, found.length, found.chunked) == ("/msmq/private$/simpleq", 906, False)
    assert found.stays
    assert not found.expects
    content_type = 'multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml'
    assert found.content_type == content_type
    assert parse_content_type(found.content_type).boundary == "MSMQ - SOAP boundary, 53287"
    request = found.request(b"body", "10.0.0.7", "10.0.0.1", True)
    assert (request.method, request.target) == ("POST", "/msmq/private$/simpleq")
    assert (request.head, request.body) == (WINDOWS, b"body")  # SR-9: as sent
    assert (request.peer, request.local, request.secure) == ("10.0.0.7", "10.0.0.1", True)


def test_lines_may_end_without_cr() -> None:
    found = read_head(b"POST /q HTTP/1.1\nHost: h\nContent-Length: 3\n\n", MOST)
    assert found.length == 3


def test_without_a_length_there_is_no_body() -> None:
    found = head()
    assert (found.length, found.chunked, found.content_type) == (0, False, "")


@pytest.mark.parametrize(
    ("version", "wish", "stays"),
    [
        ("1.1", None, True),
        ("1.1", "close", False),
        ("1.1", "Keep-Alive", True),
        ("1.1", "TE, Close", False),
        ("1.0", None, False),
        ("1.0", "Keep-Alive", True),
        ("1.0", "close, keep-alive", False),
        ("1.9", None, True),
    ],
)
def test_who_stays(version: str, wish: str | None, stays: bool) -> None:
    lines = () if wish is None else (f"Connection: {wish}",)
    assert head(*lines, version=version).stays is stays


def test_all_wishes_count() -> None:
    assert not head("Connection: close", "Connection: TE").stays


def test_who_waits_for_a_word() -> None:
    assert head("Content-Length: 5", "Expect: 100-Continue").expects
    assert not head("Content-Length: 5", "Expect: 100-continue", version="1.0").expects


@pytest.mark.parametrize("length", ["1001", "99999999999999999999"])
def test_too_long(length: str) -> None:
    assert refusal(f"Content-Length: {length}") == LARGE_BODY == (400, "http-large-body")
    assert head("Content-Length: 1000").length == 1000


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "content-length: 5"),
        ("Content-Length: 5, 5",),
        ("Content-Length: 5\r\n ,5",),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 0"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Content-Length: -1",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: 5 5",),
        ("Content-Length:",),
        ("Content-Length : 5",),
        ("Content-Length: 123456789012345678901",),
        ("Content-Type: text/xml", "Content-Type: text/xml"),
        ("Host: other",),
        ("no colon",),
        ("X: a\x00b",),
        ("X: a\rb",),
        (": nameless",),
    ],
)
def test_malformed(lines: tuple[str, ...]) -> None:
    assert refusal(*lines) == MALFORMED == (400, "http-malformed")


@pytest.mark.parametrize("version", ["2.0", "0.9", "3.1"])
def test_other_versions(version: str) -> None:
    assert refusal(version=version) == MALFORMED


def test_chunks_are_not_of_http_1_0() -> None:
    assert refusal("Transfer-Encoding: chunked", version="1.0") == MALFORMED


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\n\n",
        b"POST /q\r\n\r\n",
        b"POST  /q HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST /a b HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST /q HTTP/1.1\r\n folded: first\r\n\r\n",
        b"POST /q HTTP/1.1\r\n\r\n",  # no Host
        b"POST /q HTTP/1.1\r\nHost: h\r\n\r\nPOST",
        b"POST /q HTTP/1.1\r\nHost: h\r\n",
    ],
)
def test_what_is_no_head(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_head(raw, MOST)
    assert caught.value.refusal == MALFORMED
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("method", ["GET", "PUT", "CONNECT", "OPTIONS", "post"])
def test_only_post(method: str) -> None:
    with pytest.raises(Refused) as caught:
        read_head(f"{method} /q HTTP/1.1\r\nHost: h\r\n\r\n".encode(), MOST)
    assert caught.value.refusal == METHOD == (400, "http-method")


def test_lines_are_counted() -> None:
    lines = [f"X-{number}: v" for number in range(MAX_LINES - 3)]
    assert head(*lines).length == 0
    assert refusal(*lines, "One: more") == LARGE_HEAD == (400, "http-large-head")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_anything_is_a_head_or_refused(raw: bytes) -> None:
    for data in (raw + b"\r\n\r\n", b"POST /q HTTP/1.1\r\n" + raw + b"\r\n\r\n"):
        with suppress(Refused):
            assert read_head(data, MOST).raw == data


def body_of(data: bytes, step: int, most: int = MOST) -> ChunkedBody:
    found = ChunkedBody(read_head(CHUNKED, most), most)
    whole = [found.feed(data[n : n + step]) for n in range(0, len(data), step)]
    assert whole == [*([False] * (len(whole) - 1)), True]
    return found


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_chunks_cut_anywhere(step: int) -> None:
    data = b"3\r\nabc\r\n00A;name=value\r\n0123456789\r\n1 \r\n!\r\n0\r\nTrailer: t\r\n\r\n"
    assert bytes(body_of(data, step).body) == b"abc0123456789!"


def test_what_follows_is_kept() -> None:
    assert body_of(b"1\r\na\r\n0\r\n\r\nPOST /next", 100).rest == b"POST /next"


@pytest.mark.parametrize("value", [b"chunked", b"Chunked", b"\r\n chunked"])
def test_the_head_tells_the_length_instead(value: bytes) -> None:
    raw = b"POST /q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: " + value + b"\r\nX: y\r\n\r\n"
    request = read_head(raw, MOST).request(b"0123456789", "", "", False)
    assert request.head == b"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nX: y\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [b"xyz\r\n", b"-1\r\n", b"3\r\nabcd\r\n", b"\r\n", b"0\r\n bad\r\n\r\n", b"f" * 21 + b"\r\n"],
)
def test_bad_chunks(data: bytes) -> None:
    found = ChunkedBody(read_head(CHUNKED, MOST), MOST)
    with pytest.raises(Refused) as caught:
        found.feed(data)
    assert caught.value.refusal == MALFORMED


def test_chunks_pass_the_limit() -> None:
    assert len(body_of(b"3e8\r\n" + bytes(1000) + b"\r\n0\r\n\r\n", 50).body) == 1000
    found = ChunkedBody(read_head(CHUNKED, MOST), MOST)
    assert not found.feed(b"3e9\r\n" + bytes(1000))
    with pytest.raises(Refused) as caught:
        found.feed(b"!")
    assert caught.value.refusal == LARGE_BODY


def test_chunks_that_are_mostly_framing() -> None:
    """Each costs as much work as a request, and carries nothing."""
    found = ChunkedBody(read_head(CHUNKED, 1 << 20), 1 << 20)
    for _ in range(SLACK // 4):
        assert not found.feed(b"1\r\nx\r\n")
    with pytest.raises(Refused) as caught:
        found.feed(b"1\r\nx\r\n")
    assert caught.value.refusal == TINY_CHUNKS == (400, "http-tiny-chunks")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_chunks_are_a_body_or_refused(data: bytes) -> None:
    found = ChunkedBody(read_head(CHUNKED, MOST), MOST)
    with suppress(Refused):
        whole = found.feed(data)
        assert len(found.body) <= MOST
        assert whole or not found.rest
