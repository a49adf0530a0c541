from __future__ import annotations

import gc
import tracemalloc

import pytest

from bridge.model.errors import WireError
from bridge.wire.srmp import tree
from bridge.wire.srmp.tree import content_of, parse_xml, source_of


def test_namespaces_are_resolved() -> None:  # srmp.md 2: prefixes are free
    root = parse_xml(b'<a:x xmlns:a="u" xmlns="v" a:k="1" k="2"><y> t <z/>u</y></a:x>')
    assert root.tag == ("u", "x")
    assert root.attributes == {("u", "k"): "1", ("", "k"): "2"}
    assert [child.tag for child in root.children] == [("v", "y")]
    assert root.children[0].text == " t u"


def test_a_declaration_and_comments_are_allowed() -> None:
    assert parse_xml(b'<?xml version="1.0"?><!-- a --><x/><!-- b -->').tag == ("", "x")
    assert parse_xml(b"\xef\xbb\xbf<x/>").tag == ("", "x")


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE x><x/>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
        b'<!DOCTYPE x SYSTEM "http://a/b.dtd"><x/>',
        b"<?php a?><x/>",
        b"<x><?pi?></x>",
        b"<x/><?pi?>",
    ],
)
def test_no_dtd_no_instructions(data: bytes) -> None:  # SOAP 1.1 section 3: 400
    with pytest.raises(WireError, match=r"SOAP 1\.1"):
        parse_xml(data)


def test_a_bomb_does_not_go_off() -> None:  # billion laughs
    lines = [b'<!ENTITY a0 "lol">']
    lines += [b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)]
    with pytest.raises(WireError):
        parse_xml(b"<!DOCTYPE x [%s]><x>&a9;</x>" % b"".join(lines))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"   ", b"x", b"<x>", b"<x></y>", b"<x/><x/>", b"<x>&a;</x>", b"<p:x/>"),
        *(b"<x>\xff</x>", b"<x>\0</x>", b"<x a='1' a='2'/>", "<x/>".encode("utf-16")),
        *(b"<x>\xed\xa0\x80</x>", "<x/>".encode("utf-16-le"), "<x/>".encode("utf-16-be")),
    ],
)
def test_malformed(data: bytes) -> None:  # SR-5
    with pytest.raises(WireError):
        parse_xml(data)


def test_another_encoding_does_not_count() -> None:  # srmp.md 2: charset UTF-8
    data = '<?xml version="1.0" encoding="iso-8859-1"?><x>ä</x>'.encode()
    assert parse_xml(data).text == "ä"


def test_depth_is_bounded() -> None:
    def deep(levels: int) -> bytes:
        return b"<a>" * levels + b"</a>" * levels

    assert parse_xml(deep(tree.MAX_DEPTH)).tag == ("", "a")
    for levels in (tree.MAX_DEPTH + 1, 500_000):
        with pytest.raises(WireError, match="levels"):
            parse_xml(deep(levels))


def test_nodes_are_bounded() -> None:
    assert parse_xml(b"<a>" + b"<b/>" * (tree.MAX_NODES - 1) + b"</a>").tag == ("", "a")
    with pytest.raises(WireError, match="nodes"):
        parse_xml(b"<a>" + b"<b/>" * tree.MAX_NODES + b"</a>")
    attributes = b"".join(b" a%d=''" % n for n in range(tree.MAX_NODES))
    with pytest.raises(WireError, match="nodes"):
        parse_xml(b"<a" + attributes + b"/>")


def test_declarations_are_nodes() -> None:
    declarations = b"".join(b"<b xmlns='u%d'/>" % n for n in range(tree.MAX_NODES // 2))
    with pytest.raises(WireError, match="nodes"):
        parse_xml(b"<a>" + declarations + b"</a>")


@pytest.mark.parametrize(
    "data",
    [
        b"<a xmlns='%s'>%s</a>" % (b"u" * 64_000, b"<b/>" * 10_000),
        b"<a %s/>" % b" ".join(b"k%d=''" % n for n in range(200_000)),
    ],
)
def test_names_and_tags_are_bounded(data: bytes) -> None:
    with pytest.raises(WireError, match="more than"):
        parse_xml(data)


def test_size_is_bounded() -> None:  # MC-MQSRM 1.6
    with pytest.raises(WireError, match="bytes"):
        parse_xml(b"<a>" + b" " * tree.MAX_ENVELOPE + b"</a>")


def test_names_do_not_stay_behind() -> None:  # why this is not lxml
    def read(batch: int) -> None:
        names = b"".join(b"<n%dx%d/>" % (batch, n) for n in range(10_000))
        parse_xml(b"<a>" + names + b"</a>")

    read(0)
    gc.disable()  # nor may they wait for the collector
    tracemalloc.start()
    try:
        read(1)  # the interpreter keeps some thousand tuples for the next document
        before = tracemalloc.get_traced_memory()[0]
        for batch in range(2, 5):
            read(batch)
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()
        gc.enable()


SOURCES = pytest.mark.parametrize(
    "inner",
    [
        *(b"<i/>", b"<i />", b"<i></i>", b"<i  >x</i  >", b"<i a='>/>'>x/></i>", b'<i a="/>"/>'),
        *(b"<i><i/></i>", b"<i>\xc3\xa4<j/></i>", b"<i>&lt;/i&gt;</i>", b"<i><!-- </i> --></i>"),
        b"<i><![CDATA[</i>]]></i>",
    ],
)


@SOURCES
def test_what_stands_between_the_tags(inner: bytes) -> None:  # SR-15
    data = b"<a>\xc3\xa4 <b/>" + inner + b"</a>"
    element = parse_xml(data).children[1]
    if inner.endswith(b"/>"):
        with pytest.raises(WireError):
            content_of(element, data)
        return
    found = data[content_of(element, data)]
    start = inner.index(b">", inner.rindex(b"'") if b"'" in inner else 0) + 1
    assert found == inner[start : inner.rindex(b"<")]


@SOURCES
def test_source_is_as_sent(inner: bytes) -> None:  # SR-9, signature: bytes as sent
    data = b"<a>\xc3\xa4 <b/>" + inner + b"</a>"
    element = parse_xml(data).children[1]
    assert source_of(element, data) == inner


def test_a_long_start_tag_costs_its_own_size() -> None:
    attributes = b" ".join(b"k%d='1'" % n for n in range(10_000))
    data = b"<a><i " + attributes + b" " * 100_000 + b">x</i></a>"
    element = parse_xml(data).children[0]
    tracemalloc.start()
    try:
        assert data[content_of(element, data)] == b"x"
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
