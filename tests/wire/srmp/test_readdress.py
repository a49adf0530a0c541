"""The same request for another URL: SR-15. What is expected is spelled out from srmp.md 1.3."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.model.message import Onward
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.readdress import envelope_before, readdress
from bridge.wire.srmp.request import pack_body, read_request
from tests.vectors.srmp import REQUESTS, multipart
from tests.wire.srmp.build import MSMQ, PATH, PROPERTIES, SERVICES, STREAM, TO, good, soap
from tests.wire.srmp.strategies import SOME, envelopes, urls

FAR = "http://far02:8080/msmq/private$/orders"
XML = "text/xml"
TYPE = 'multipart/related; boundary="MSMQ - SOAP boundary, 26500"; type=text/xml'


def test_a_bare_envelope() -> None:
    data = good(SERVICES, STREAM, MSMQ)
    onward = readdress(XML, data, FAR)
    assert onward == Onward(
        url=FAR, content_type=XML, packet=data.replace(TO.encode(), FAR.encode()), was=TO.encode()
    )


def test_a_request_of_windows() -> None:  # srmp.md 1.3, byte for byte
    envelope, body = good(MSMQ), b"\r\n--MSMQ - SOAP boundary, 26500\r\nContent-Length: 5\r\n\r\n"
    onward = readdress(TYPE, multipart(26500, envelope, body, "owner"), FAR)
    longer = good(MSMQ).replace(TO.encode(), FAR.encode())
    assert onward.packet == multipart(26500, longer, body, "owner")
    assert onward.content_type == TYPE
    assert envelope_before(onward) == envelope


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "V5"])
def test_the_examples_of_the_specification(name: str) -> None:  # MC-MQSRM 4.1 to 4.4
    request = REQUESTS[name]
    before = read_request(request.content_type, request.body)
    onward = readdress(request.content_type, request.body, FAR)
    after = read_request(onward.content_type, onward.packet)
    assert after.envelope == replace(before.envelope, to=FAR)
    assert (after.body, after.extension, after.others) == (before.body, None, ())
    assert envelope_before(onward) == before.soap


PARTS = "--B\r\n{head}\r\n{soap}--B\r\nContent-Length: 2\r\nContent-Id: body@x\r\n\r\nxx--B--\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: {size}\r\n",
        "content-length:{size}\r\n",
        "CONTENT-LENGTH \t: \t{size}  \r\nX-Content-Length: 5\r\n",
        "Content-Length:\r\n {size}\r\n",
        "X: y\r\n Content-Length: 5\r\nContent-Type: text/xml\r\nContent-Length:\t{size}\r\n",
    ],
)
def test_the_length_of_the_first_part_follows(head: str) -> None:
    def packed(to: str) -> bytes:
        text = soap(PATH.replace(TO, to) + PROPERTIES)
        return PARTS.format(head=head.format(size=len(text)), soap=text.decode()).encode()

    kind = "multipart/related; boundary=B"
    assert readdress(kind, packed(TO), FAR).packet == packed(FAR)


def test_parts_of_other_senders() -> None:  # 1.3 D: without a length, RFC 2046
    data = b"\r\n--B\r\n\r\n" + good() + b"\r\n--B\r\nContent-Id: <other@x>\r\n\r\nabc\r\n--B--\r\n"
    onward = readdress("multipart/related;boundary=B", data, FAR)
    assert onward.packet == data.replace(TO.encode(), FAR.encode())
    assert onward.content_type == 'multipart/related; boundary="B"; type=text/xml'


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("text/xml; charset=UTF-8", XML),
        ("TEXT/XML", XML),
        (TYPE.replace("; type", ";\r\n type"), TYPE),
        (TYPE + "; odd=\xe4\t", TYPE),  # no header of ours could hold it
    ],
)
def test_the_content_type_is_as_windows_writes_it(kind: str, told: str) -> None:
    data = good() if told == XML else multipart(26500, good(), b"", "owner")
    assert readdress(kind, data, FAR).content_type == told


@pytest.mark.parametrize(
    "inner",
    [
        f"\r\n\t {TO} \n",
        f"<![CDATA[{TO}]]>",
        f"<!-- <to> -->{TO}<!-- </to> -->",
        TO.replace("/", "&#47;"),
        f"<x/>{TO}<y>z</y>",
    ],
)
def test_whatever_stands_in_the_element(inner: str) -> None:
    data = good().replace(TO.encode(), inner.encode())
    onward = readdress(XML, data, FAR)
    assert onward.packet == good().replace(TO.encode(), FAR.encode())
    assert onward.was == inner.encode()
    assert envelope_before(onward) == data


@pytest.mark.parametrize(
    "change",
    [
        ("<to>", "<to xmlns:a='urn:&lt;/to&gt;' a:b='>' >"),
        ("</to>", "</to \n>"),
        ("<action>", "<from><to>http://other/msmq/q</to></from><action>"),
        ("<action>", "<x:to xmlns:x='urn:x'>http://other/msmq/q</x:to><action>"),
        ("<se:Envelope", "\ufeff<?xml version='1.0' encoding='UTF-8'?><!-- ä --><se:Envelope"),
        ("MSMQ:a", "MSMQ:ä\U0001f600 &amp; <![CDATA[<to>]]>"),
    ],
)
def test_nothing_else_is_touched(change: tuple[str, str]) -> None:
    text = good(MSMQ).decode()
    assert change[0] in text
    data = text.replace(*change, 1).encode()
    assert readdress(XML, data, FAR).packet == data.replace(TO.encode(), FAR.encode())


def test_what_xml_cannot_hold_is_escaped() -> None:
    onward = readdress(XML, good(), "http://far/q?a=<b>&c")
    assert b"<to>http://far/q?a=&lt;b&gt;&amp;c</to>" in onward.packet
    assert read_request(XML, onward.packet).envelope.to == "http://far/q?a=<b>&c"


def test_the_hops_before_us() -> None:  # RFC 9110 7.6.3
    head = b"POST / HTTP/1.1\r\nVia: 1.1 one, 1.0 two\r\nHost: x\r\nvia: 1.1 three\r\n\r\n"
    assert readdress(XML, good(), FAR, head).via == ("1.1 one", "1.0 two", "1.1 three")


attachments = st.none() | st.binary(max_size=40)


@SOME
@given(envelopes(), urls, attachments, attachments)
def test_any_envelope(envelope: Any, url: str, body: bytes | None, extension: bytes | None) -> None:
    assert isinstance(envelope, Envelope)
    if envelope.is_receipt:
        body = extension = None
    kind, data = pack_body(envelope, body=body, extension=extension)
    before = read_request(kind, data)
    onward = readdress(kind, data, url)
    after = read_request(onward.content_type, onward.packet)
    assert after.envelope == replace(before.envelope, to=url)
    assert (after.body, after.extension) == (before.body, before.extension)
    assert envelope_before(onward) == before.soap
    assert pack_body(replace(envelope, to=url), body=body, extension=extension)[1] == onward.packet
