"""What a body says; samples follow the documentation of the formatters, not our own encoder."""

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.body import BINARY_FORMATTER, Decoded, decode, is_binary_formatted

# The SerializationHeaderRecord of MS-NRBF section 3, then the start of a BinaryMethodCall.
NRBF = bytes.fromhex("0001000000ffffffff01000000000000001514000000120b53656e64")
XML_HELLO = b'<?xml version="1.0"?>\r\n<string>hello</string>'


def said(formatter: str, value: Any, text: str | None) -> Decoded:
    return Decoded(formatter=formatter, value=value, text=text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (XML_HELLO, said("xml", "hello", "hello")),
        (b"\xef\xbb\xbf" + XML_HELLO, said("xml", "hello", "hello")),
        (b"\n " + XML_HELLO, said("xml", "hello", "hello")),
        (b"<int>5</int>", said("xml", 5, "5")),
        (b"<a><b>1</b></a>", said("xml", {"a": {"b": "1"}}, "<a><b>1</b></a>")),
        (b'<?xml version="1.0"?><string>{"id": 7}</string>', said("json", {"id": 7}, '{"id": 7}')),
        (b"<string>&lt;a&gt;1&lt;/a&gt;</string>", said("xml", {"a": "1"}, "<a>1</a>")),
        (b"<string>{0} items</string>", said("xml", "{0} items", "{0} items")),
        (b'<string>{"a": </string>', said("xml", '{"a": ', '{"a": ')),
        (b' {"id": 1}\n', said("json", {"id": 1}, '{"id": 1}\n')),
        (b"[1, 2.5, null]", said("json", [1, 2.5, None], "[1, 2.5, null]")),
        (b"hello", said("text", "hello", "hello")),
        (b"hello\0", said("text", "hello", "hello")),
        (b"5", said("text", "5", "5")),
        (b"true", said("text", "true", "true")),
        (b"[INFO] started", said("text", "[INFO] started", "[INFO] started")),
        (b"<none>", said("text", "<none>", "<none>")),
        (b"{3F2504E0-4F89}", said("text", "{3F2504E0-4F89}", "{3F2504E0-4F89}")),
        ("Größe".encode(), said("text", "Größe", "Größe")),
        (b"8=FIX\x019=12\x01", said("text", "8=FIX\x019=12\x01", "8=FIX\x019=12\x01")),
        (b"", said("bytes", None, "")),
    ],
)
def test_a_body_without_type(body: bytes, expected: Decoded) -> None:
    assert decode(body, 0) == expected
    assert decode(body, 0x1011) == expected  # VT_VECTOR | VT_UI1
    assert decode(body, 0x2011) == expected  # VT_ARRAY | VT_UI1


UTF16 = '<?xml version="1.0" encoding="utf-16"?><string>Größe €</string>'


@pytest.mark.parametrize(
    "body",
    [
        UTF16.encode("utf-16-le"),
        UTF16.encode("utf-16-be"),
        b"\xff\xfe" + UTF16.encode("utf-16-le"),
        b"\xfe\xff" + UTF16.encode("utf-16-be"),
        UTF16.encode(),  # says utf-16 and is not: a StringWriter's text in a UTF-8 stream
        UTF16.replace("utf-16", "windows-1252").encode("cp1252"),
        UTF16.replace("utf-16", "ISO-8859-15").encode("iso-8859-15"),
    ],
)
def test_encodings_of_xml(body: bytes) -> None:
    assert decode(body, 0) == said("xml", "Größe €", "Größe €")


@pytest.mark.parametrize("number", range(1, 20))
def test_every_code_page_that_may_be_declared(number: int) -> None:  # there is no 8859-12
    body = f'<?xml version="1.0" encoding="iso-8859-{number}"?><string>a</string>'.encode()
    assert decode(body, 0).value == "a"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"h\0i\0", "hi"),
        (b"\0h\0i", "hi"),
        (b"h\0i\0\0\0", "hi"),
        (b"\xff\xfeh\0i\0\0\0", "hi"),
        (b"\xff\xfe\x2d\x4e\x87\x65", "中文"),
    ],
)
def test_wide_text_without_type(body: bytes, text: str) -> None:
    assert decode(body, 0) == said("text", text, text)


@pytest.mark.parametrize(
    "body",
    [
        b"\x01\x02\x03",
        b"\0",
        b"\0" * 64,
        b"A\0\0\0B\0\0\0",  # 32-bit numbers
        b"\x01\0\x02\0\x03\0\x04\0",
        b"\x80\x81\xfe",
        b"\xff\xfe\x00\xd8",  # half a surrogate pair
        b"\xff\xfea\0\0\0b\0",
        bytes(range(256)),
        b"PK\x03\x04\x14\0\0\0\x08\0",
    ],
)
def test_no_text(body: bytes) -> None:
    assert decode(body, 0) == Decoded(formatter="bytes", why="not-text")


@pytest.mark.parametrize("body_type", [0, 0x1011, BINARY_FORMATTER])
def test_binary_formatter_is_named_and_left_alone(body_type: int) -> None:  # design D7
    assert is_binary_formatted(NRBF)
    expected = Decoded(formatter="binary-formatter", why="binary-formatter")
    assert decode(NRBF, body_type) == expected
    assert decode(b"anything", BINARY_FORMATTER) == expected


@pytest.mark.parametrize(
    ("body_type", "data", "expected"),
    [
        (8, "480069002000e900", said("activex", "Hi é", "Hi é")),  # VT_BSTR
        (31, "48006900", said("activex", "Hi", "Hi")),  # VT_LPWSTR
        (31, "480069000000", said("activex", "Hi", "Hi")),
        (8, "", said("activex", "", "")),
        (8, "7b007d00", said("json", {}, "{}")),
        (30, "486900", said("activex", "Hi", "Hi")),  # VT_LPSTR
        (30, "48c3a9", said("activex", "Hé", "Hé")),
        (3, "05000000", said("activex", 5, "5")),
        (11, "ffff", said("activex", True, "true")),
        (1, "", said("bytes", None, "")),  # VT_NULL
        (8, "00d8", Decoded(formatter="activex", why="not-text")),
        (8, "480069", Decoded(formatter="activex", why="not-text")),
        (30, "48e9", Decoded(formatter="activex", why="unknown-code-page")),
        (3, "0500", Decoded(formatter="activex", why="wrong-size")),
        (12, "00", Decoded(formatter="bytes", why="unknown-body-type-0xc")),
        (0xFFFFFFFF, "00", Decoded(formatter="bytes", why="unknown-body-type-0xffffffff")),
    ],
)
def test_a_body_with_a_type(body_type: int, data: str, expected: Decoded) -> None:
    assert decode(bytes.fromhex(data), body_type) == expected


@pytest.mark.parametrize("body_type", [9, 13, 66, 67, 68, 69, 70])
def test_com_objects_are_left_alone(body_type: int) -> None:
    assert decode(b"x", body_type) == Decoded(formatter="activex", why="com-object")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'<?xml version="1.0"?><a>', "xml-malformed"),
        (b"<!DOCTYPE a><a/>", "xml-doctype"),
        (b"<a>" * 101, "xml-too-deep"),
        (b'{"a": ', "json-malformed"),
        (b'{"a": 1e999}', "json-malformed"),
        (b"[" * 100_000, "json-too-deep"),
    ],
)
def test_what_claims_to_be_more_than_text_keeps_its_text(body: bytes, why: str) -> None:
    found = decode(body, 0)
    assert (found.value, found.text, found.why) == (None, body.decode(), why)


ALPHABETS = st.sampled_from([b"<a/>?xml ='\"!&;", b'{}[]":,1e ', b"\0\xff\xfe\xef\xbb\xbfab<"])
HOSTILE = ALPHABETS.flatmap(
    lambda letters: st.lists(st.sampled_from(letters), max_size=60).map(bytes)
)
TYPES = st.integers(0, 80) | st.sampled_from([768, 0x1011, 0x2011]) | st.integers(0, 2**32 - 1)


@given(st.binary(max_size=80) | HOSTILE, TYPES)
def test_any_body_is_read_or_says_why(body: bytes, body_type: int) -> None:
    found = decode(body, body_type)
    msgspec.json.encode(found)  # no half surrogates, nothing that JSON does not know
    assert found.formatter in {"xml", "activex", "binary-formatter", "text", "json", "bytes"}
    assert found.text is not None or found.why


SIZE = 1 << 18
BOMBS = {
    "elements": b"<a>" + b"<b/>" * (SIZE // 4) + b"</a>",
    "names": b"<a>" + b"".join(b"<n%d/>" % n for n in range(SIZE // 9)) + b"</a>",
    "attributes": b"<a " + b" ".join(b'a%d=""' % n for n in range(SIZE // 10)) + b"/>",
    "namespaces": b"<a " + b" ".join(b'xmlns:n%d="%d"' % (n, n) for n in range(SIZE // 20)) + b"/>",
    "references": b"<a>" + b"&lt;" * (SIZE // 4) + b"</a>",
    "digits": b"<int>" + b"9" * SIZE + b"</int>",
    "decimal": b"<decimal>" + b"9" * SIZE + b"</decimal>",
    "open": b"<" * SIZE,
    "comment": b"<!--" + b"-" * SIZE,
    "declaration": b'<?xml version="1.0" ' + b"encoding " * (SIZE // 9),
    "white": b" " * SIZE + b"<a/>",
    "json white": b"{" + b" " * SIZE,
    "json lists": b"[" + b"[]," * (SIZE // 3) + b"[]]",
    "json digits": b"[" + b"1" * SIZE + b"]",
    "json names": b"{" + b",".join(b'"%d":0' % n for n in range(SIZE // 9)) + b"}",
    "strings": b"<string>" + b"&lt;string&gt;" * (SIZE // 14) + b"</string>",
    "zeros": b"a\0" * (SIZE // 2),
    "controls": b"\x01" * SIZE,
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_body_costs_more_than_its_size(name: str) -> None:
    body = BOMBS[name]
    decode(body, 0)
    tracemalloc.start()
    try:
        decode(body, 0)
        assert tracemalloc.get_traced_memory()[1] < 80 * len(body)
    finally:
        tracemalloc.stop()
