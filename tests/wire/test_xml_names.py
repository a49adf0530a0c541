"""Names are resolved as expat does it, without writing the namespace into each of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from xml.parsers import expat

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.wire.xml_names import MAX_TAG, MAX_URI, BadXml, HugeXml, Name, Names, read_xml

Found = list[tuple[Name, dict[Name, str]]]


def names_by_us(data: bytes) -> Found:
    names, found = Names(), Found()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda tag, attributes: found.append(names.open(tag, attributes))
    parser.EndElementHandler = lambda _: names.close()
    read_xml(parser, data)
    return found


def names_by_expat(data: bytes) -> Found:
    """What expat says when it resolves the names itself."""
    found = Found()

    def pair(name: str) -> Name:
        space, _, local = name.rpartition("\n")
        return space, local

    def start(tag: str, attributes: dict[str, str]) -> None:
        found.append((pair(tag), {pair(name): value for name, value in attributes.items()}))

    parser = expat.ParserCreate("utf-8", "\n")
    parser.StartElementHandler = start
    parser.Parse(data, True)
    return found


NAMES = st.sampled_from(["a", "b", "p:a", "p:b", "q:a", "xml:a", "p:1", "p:", ":a", "p:a:b", "_"])
SPACES = st.sampled_from(["", "u", "v", "http://www.w3.org/XML/1998/namespace"])
DECLARED = st.sampled_from(["xmlns", "xmlns:p", "xmlns:q", "xmlns:xml", "xmlns:xmlns", "xmlns:x:y"])
ATTRIBUTES = st.lists(st.tuples(NAMES, st.just("1")) | st.tuples(DECLARED, SPACES), max_size=4).map(
    lambda pairs: "".join(f' {name}="{value}"' for name, value in pairs)
)
ELEMENTS = st.recursive(
    st.tuples(NAMES, ATTRIBUTES).map(lambda e: f"<{e[0]}{e[1]}/>"),
    lambda inner: st.tuples(NAMES, ATTRIBUTES, st.lists(inner, max_size=3).map("".join)).map(
        lambda e: f"<{e[0]}{e[1]}>{e[2]}</{e[0]}>"
    ),
    max_leaves=8,
)


@given(ELEMENTS)
@example('<p:a xmlns:p="u" xmlns="v"><a/><q:a xmlns:q="u" xmlns:p="w" p:a="1"/><p:b/></p:a>')
@example('<a xmlns:p="u" xmlns:q="u" p:a="1" q:a="2"/>')
@example('<a xmlns="u"><b xmlns=""><a/></b><a/></a>')
@example('<a xmlns:p=""/>')
@example('<a xmlns="http://www.w3.org/2000/xmlns/"/>')
@example('<xmlns:a xmlns="u"/>')
@example('<a xml:a="1" xmlns:xml="http://www.w3.org/XML/1998/namespace"/>')
def test_as_expat_resolves_them(text: str) -> None:
    data = text.encode()
    try:
        expected = names_by_expat(data)
    except expat.ExpatError:
        with pytest.raises(BadXml):
            names_by_us(data)
    else:
        assert names_by_us(data) == expected


def on_elements(uri: bytes) -> bytes:
    return b'<a xmlns="%s">' % uri + b"<b/>" * 10_000 + b"</a>"


def on_distinct_elements(uri: bytes) -> bytes:
    many = b"".join(b"<b%d/>" % n for n in range(10_000))
    return b'<a xmlns="%s">%s</a>' % (uri, many)


def on_attributes(uri: bytes) -> bytes:
    many = b"".join(b'<b p:c%d=""/>' % n for n in range(10_000))
    return b'<a xmlns:p="%s">%s</a>' % (uri, many)


@pytest.mark.parametrize("shape", [on_elements, on_distinct_elements, on_attributes])
def test_a_name_does_not_repeat_its_namespace(shape: Callable[[bytes], bytes]) -> None:
    data = shape(b"u" * MAX_URI)  # expanded: 40 MB
    tracemalloc.start()
    try:
        assert names_by_us(data)[-1][0][0] in ("u" * MAX_URI, "")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def declared(name: str, length: int) -> bytes:
    return b"<a %s='%s'/>" % (name.encode(), b"u" * length)


@pytest.mark.parametrize("name", ["xmlns", "xmlns:p"])
def test_a_namespace_has_a_bound(name: str) -> None:
    assert names_by_us(declared(name, MAX_URI))
    with pytest.raises(HugeXml, match="namespace"):
        names_by_us(declared(name, MAX_URI + 1))


@pytest.mark.parametrize(
    "data",
    [
        b"<a %s/>" % b" ".join(b'a%d=""' % n for n in range(400_000)),
        b"<a %s/>" % b" ".join(b'xmlns:a%d="u"' % n for n in range(200_000)),
        b"<a" + b" " * (1 << 20) + b"/>",
        b'<a b="%s"/>' % (b"x" * (1 << 20)),
        b"<a><!--%s--></a>" % (b"x" * (1 << 20)),
        b"<a><?p %s?></a>" % (b"x" * (1 << 20)),
        b"<" + b"a" * (1 << 20),
    ],
)
def test_a_tag_has_a_bound(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(HugeXml, match="tag"):
            names_by_us(data)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20  # no attribute was read
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"<a>%s</a>" % (b"x" * (1 << 20)),
        b"<a>%s</a>" % (b"\n&lt;" * (1 << 18)),
        b"<a>%s</a>" % ("\u20ac" * (1 << 19)).encode(),
        b"<a><![CDATA[%s]]></a>" % (b"x" * (1 << 20)),
        b" " * (1 << 20) + b"<a/>" + b"\n" * (1 << 20),
        b'<a b="%s"/>' % (b"x" * (MAX_TAG - 100)),
    ],
)
def test_a_long_text_is_not_a_long_tag(data: bytes) -> None:
    assert [name for name, _ in names_by_us(data)] == [("", "a")]
