"""Targets of SRMP: any bytes give a request, or WireError."""

from __future__ import annotations

from contextlib import suppress
from xml.parsers.expat import ExpatError

from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.wire.srmp.convert import envelope_from_message, message_from_request
from bridge.wire.srmp.head import (
    pack_head,
    parse_content_type,
    read_head,
    request_headers,
    split_url,
)
from bridge.wire.srmp.kinds import kind_of
from bridge.wire.srmp.mime import pack_parts, read_parts
from bridge.wire.srmp.readdress import envelope_before, readdress
from bridge.wire.srmp.reader import read_envelope, soap_texts
from bridge.wire.srmp.request import SrmpRequest, pack_request, read_request, read_whole_request
from bridge.wire.srmp.signature import DS, check_digests
from bridge.wire.srmp.tree import parse_xml
from bridge.wire.srmp.writer import write_envelope
from bridge.wire.xml_names import HugeXml
from tests.vectors.srmp import REQUESTS, V3_COMMITMENT, V3_DELIVERY, V4_RECEIPT_1, V5_ENVELOPE
from tests.wire.srmp.build import MSMQ, SERVICES, STREAM, good
from tests.wire.srmp.test_signature import VALUE, reference, signed_info
from tests.wire.test_xml_names import names_by_expat, names_by_us


def srmp_envelope(data: bytes) -> None:
    """What was read can be written, and says the same."""
    with suppress(WireError):
        envelope = read_envelope(data)
        kind_of(envelope)
        header, body = soap_texts(data)
        assert header in data.decode()
        assert body in data.decode()
        if envelope.signature is not None:
            check_digests(envelope.signature, {"body": data})
        again = read_envelope(write_envelope(envelope))
        assert (again.to, again.action, again.id) == (envelope.to, envelope.action, envelope.id)
        assert (again.stream, again.services) == (envelope.stream, envelope.services)
        assert again.identifier == envelope.identifier


def xml_names(data: bytes) -> None:
    """A document that expat takes has the names that expat says."""
    with suppress(ExpatError, HugeXml, WireError):
        parse_xml(data)
        expected = names_by_expat(data)
        assert names_by_us(data) == expected


def srmp_request(data: bytes) -> None:
    """A body, with what it says as a message."""
    boundary = data[2:].partition(b"\r\n")[0].decode("latin-1")
    for content_type in ("text/xml", f'multipart/related; boundary="{boundary}"'):
        with suppress(WireError):
            request = read_request(content_type, data)
            assert request.soap in data
            message = message_from_request(request, arrived_ms=5)
            assert 0 <= message.time_to_reach_queue <= 0xFFFFFFFF
            _goes_on(content_type, data, request)
            envelope_from_message(message)


def _goes_on(content_type: str, data: bytes, request: SrmpRequest) -> None:
    """For another host: the same but for `<to>`. SR-15"""
    onward = readdress(content_type, data, "http://far/q?a&b", data)
    again = read_request(onward.content_type, onward.packet)
    assert again.envelope == replace(request.envelope, to="http://far/q?a&b")
    assert (again.body, again.extension) == (request.body, request.extension)
    assert envelope_before(onward) == request.soap
    pack_head("/", request_headers("far", onward.content_type, 0, onward.via))


def srmp_parts(data: bytes) -> None:
    """Parts do not overlap, lie in the data, and survive being written."""
    with suppress(WireError):
        parts = read_parts(data, "B")
        place = 0
        for part in parts:
            assert part.offset >= place
            place = part.offset + len(part.content)
            assert data[part.offset : place] == part.content
        if parts:
            raw = pack_parts(parts[0].content, [("", part.content) for part in parts[1:]], "B")
            assert [p.content for p in read_parts(raw, "B")] == [p.content for p in parts]


def srmp_head(data: bytes) -> None:
    text = data.decode("latin-1")
    with suppress(WireError):
        parse_content_type(text)
    with suppress(WireError):
        endpoint = split_url(text)
        head = pack_request(endpoint.target, endpoint.authority, "text/xml", b"")
        assert head.count(b"\r\n") == 7
    with suppress(WireError):
        assert read_head(data)[1] <= len(data)
    with suppress(WireError):
        read_whole_request(data)


_SIGNED = f'<Signature xmlns="{DS}">{signed_info(reference())}{VALUE}</Signature>'
_BODIES = [request.body for request in REQUESTS.values()]
SEEDS: dict[str, list[bytes]] = {
    "srmp_envelope": [
        *(V3_DELIVERY, V3_COMMITMENT, V4_RECEIPT_1, V5_ENVELOPE),
        good(SERVICES, STREAM, MSMQ, _SIGNED),
    ],
    "xml_names": [
        V5_ENVELOPE,
        b'<p:a xmlns:p="u" xmlns="v" p:k="1" xml:lang="en"><q:a xmlns:q="u" xmlns=""/><a/></p:a>',
    ],
    "srmp_request": [*_BODIES, good(SERVICES, STREAM, MSMQ), V4_RECEIPT_1],
    "srmp_parts": [
        pack_parts(b"<a/>", [("body@x", b"b"), ("extension@x", b"--B--")], "B"),
        b"--B\r\nA: b\r\n\r\nx\r\n--B\r\nContent-Length: 1\r\n\r\ny\r\n--B--\r\n",
    ],
    "srmp_head": [
        b'multipart/related; boundary="MSMQ - SOAP boundary, 1";\r\n type=text/xml',
        b"https://a:8443/msmq/private$/q?a=B#c",
        *(pack_request(r.target, r.host, "text/xml", r.body) for r in REQUESTS.values()),
    ],
}
TARGETS = (srmp_envelope, xml_names, srmp_request, srmp_parts, srmp_head)
