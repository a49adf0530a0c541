from __future__ import annotations

import pytest

from bridge.model.errors import WireError
from bridge.wire.srmp import head
from bridge.wire.srmp.head import Endpoint, parse_content_type, read_head, split_url

WINDOWS = 'multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml'


@pytest.mark.parametrize("fold", [" ", "\r\n ", "\r\n\t", "\n    ", ""])
def test_folded_content_type(fold: str) -> None:  # srmp.md 1.2
    found = parse_content_type(WINDOWS.replace("; type", f";{fold}type"))
    assert found.boundary == "MSMQ - SOAP boundary, 53287"
    assert found.multipart


@pytest.mark.parametrize(
    ("value", "boundary"),
    [
        ("text/xml", ""),
        ("TEXT/XML; charset=utf-8", ""),
        (" text/xml ;", ""),
        ("Multipart/Related;Boundary=abc", "abc"),
        ("multipart/related; boundary=abc ; type=text/xml", "abc"),
        ('multipart/related; type="text/xml"; boundary="a;b"', "a;b"),
    ],
)
def test_other_spellings(value: str, boundary: str) -> None:
    assert parse_content_type(value).boundary == boundary


@pytest.mark.parametrize(
    "value",
    [
        *("", "text", "text/plain", "application/octet-stream", "multipart/related", "text/xml x"),
        *('multipart/related; boundary=""', 'multipart/related; boundary="a', "multipart/mixed"),
        'multipart/related; boundary="a "',
        'multipart/related; boundary="ä"',
        'multipart/related; boundary="a\r\nb"',
        "multipart/related; boundary=a; boundary=b",
        f"multipart/related; boundary={'a' * (head.MAX_BOUNDARY + 1)}",
    ],
)
def test_bad_content_types(value: str) -> None:  # SR-5
    with pytest.raises(WireError):
        parse_content_type(value)


def test_head_of_a_multicast_message() -> None:  # MC-MQSRM 4.5: no server takes this target
    raw = b"POST 234.1.1.1:8001 HTTP/1.1\r\nHost: 234.1.1.1:8001\r\nA: b\r\n c\r\n\r\nbody"
    found, start = read_head(raw)
    assert found.target == "234.1.1.1:8001"
    assert found.headers == {"host": "234.1.1.1:8001", "a": "b c"}
    assert raw[start:] == b"body"


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"POST", b"POST / HTTP/1.1", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nA: b\r\n"),
        *(b"GET / HTTP/1.1\r\n\r\n", b"POST / HTTP/2.0\r\n\r\n", b"POST  HTTP/1.1\r\n\r\n"),
        *(b"POST / HTTP/1.1\r\nA\r\n\r\n", b"POST / HTTP/1.1\r\n: a\r\n\r\n"),
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        b"POST / HTTP/1.1\r\nA: " + b"b" * head.MAX_HEAD + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(101)) + b"\r\n",
    ],
)
def test_bad_heads(raw: bytes) -> None:  # SR-5
    with pytest.raises(WireError):
        read_head(raw)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1 ", "0x1", "99999999999", "1,1"])
def test_bad_lengths(text: str) -> None:  # SR-5
    with pytest.raises(WireError):
        head.content_length({"content-length": text})


def test_request_head_as_windows_writes_it() -> None:  # srmp.md 1.2
    headers = head.request_headers("machine2", WINDOWS, 906)
    assert head.pack_head("/msmq/private$/simpleq", headers) == (
        b"POST /msmq/private$/simpleq HTTP/1.1\r\nHost: machine2\r\n"
        b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml'
        b'\r\nContent-Length: 906\r\nSOAPAction: "MSMQMessage"\r\n'
        b"Proxy-Accept: NonInteractiveClient\r\n\r\n"
    )


def test_who_hands_it_on_says_so() -> None:  # SR-15, RFC 9110 7.6.3
    headers = head.request_headers("far", "text/xml", 5, ("1.1 one", "1.1 two"))
    assert list(headers)[-2:] == ["Proxy-Accept", "Via"]
    assert headers["Via"] == "1.1 one, 1.1 two"


@pytest.mark.parametrize(
    ("lines", "hops"),
    [
        (b"", ()),
        (b"Via: 1.1 a\r\n", ("1.1 a",)),
        (b"VIA:1.1 a,1.0 b (x),\r\n c\r\nX-Via: 1.1 no\r\nvia: ,\r\nvia: d\r\n", None),
        (b"Via: \xe4 1.1\ta\x00, \xff\r\n", ("1.1a",)),  # what no head of ours can hold
        (b"X: y\r\n via: no\r\n", ()),
    ],
)
def test_hops_so_far(lines: bytes, hops: tuple[str, ...] | None) -> None:
    raw = b"POST / HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\nVia: not in the head"
    expected = ("1.1 a", "1.0 b (x)", "c", "d") if hops is None else hops
    assert head.hops_in(raw.rpartition(b"\r\n")[0] + b"\r\n") == expected


@pytest.mark.parametrize("text", [WINDOWS, "text/xml"])
def test_a_content_type_is_written_as_it_is_read(text: str) -> None:  # srmp.md 1.2
    assert str(head.parse_content_type(text)) == text


@pytest.mark.parametrize("host", ["a\r\nX: y", "a\n", "ä"])
def test_no_line_is_smuggled_in(host: str) -> None:  # SR-49
    with pytest.raises(WireError):
        head.pack_head("/", {"Host": host})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV",  # V4
            Endpoint(
                scheme="http",
                host="machine1",
                port=80,
                target="/msmq/private$/receipts?senderstream=xrntv",
            ),
        ),
        (
            "HTTPS://Host:8443\\msmq\\my queue",
            Endpoint(
                scheme="https", host="Host", port=8443, target="/msmq/my%20queue", names_port=True
            ),
        ),
        (
            "http://[::1]:81",
            Endpoint(scheme="http", host="[::1]", port=81, target="/", names_port=True),
        ),
        ("http://a:/q", Endpoint(scheme="http", host="a", port=80, target="/q")),
        ("http://a:80", Endpoint(scheme="http", host="a", port=80, target="/", names_port=True)),
        ("http://a/ä#b", Endpoint(scheme="http", host="a", port=80, target="/%C3%A4")),
    ],
)
def test_where_a_url_is_posted_to(url: str, expected: Endpoint) -> None:  # srmp.md 1.1
    assert split_url(url) == expected


def test_host_header() -> None:
    assert split_url("http://a:80/q").authority == "a"
    assert split_url("http://a:443/q").authority == "a:443"


@pytest.mark.parametrize(
    "url", ["http://a:99999/", "http://u:p@a/", "http://a:x/", "http://[a/", "http://ä/"]
)
def test_bad_hosts(url: str) -> None:  # SR-49
    with pytest.raises(WireError):
        split_url(url)
