from __future__ import annotations

from hashlib import sha256

import pytest

from bridge.model.errors import WireError
from bridge.wire.srmp import request as module
from bridge.wire.srmp.mime import pack_parts
from bridge.wire.srmp.request import (
    SrmpRequest,
    pack_body,
    pack_request,
    read_request,
    read_whole_request,
)
from tests.vectors.srmp import REQUESTS, V2_BODY, V3_BODY, V3_DELIVERY, V5_BODY, V5_ENVELOPE
from tests.wire.srmp.build import good

TYPE = 'multipart/related; boundary="B"; type=text/xml'


@pytest.mark.parametrize("name", REQUESTS)
def test_vectors(name: str) -> None:  # section 6
    vector = REQUESTS[name]
    assert len(vector.body) == vector.length
    found = read_request(vector.content_type, vector.body)
    expected = {
        "V1": b"First Message",
        "V2": V2_BODY,
        "V3": V3_BODY,
        "V4.1": b"First Message",
        "V4.2": b"Message 0",
        "V4.3": b"Last Message",
        "V5": V5_BODY,
    }
    assert found.body == expected[name]
    assert found.extension is None
    assert vector.body[found.body_offset :].startswith(expected[name])


def test_vector_5_written_byte_for_byte() -> None:  # V5
    vector = REQUESTS["V5"]
    found = read_request(vector.content_type, vector.body)
    content_type, data = pack_body(found.envelope, body=found.body, number=292)
    assert data == vector.body
    assert len(data) == 1067
    assert sha256(data).hexdigest() == (
        "0d86c5f30913478b595d88de06294f88780261681a7b75e5521318cdacdbc676"
    )
    assert content_type == 'multipart/related; boundary="MSMQ - SOAP boundary, 292"; type=text/xml'


def test_whole_request_by_multicast() -> None:  # srmp.md 1.6: checked with the head's length
    vector = REQUESTS["V5"]
    raw = pack_request(vector.target, vector.host, vector.content_type, vector.body)
    head, found = read_whole_request(raw)
    assert head.target == "234.1.1.1:8001"
    assert found.soap == V5_ENVELOPE
    for other in (raw[:-1], raw + b"x", raw.replace(b"Content-Length: 1067\r\n", b"")):
        with pytest.raises(WireError):
            read_whole_request(other)


@pytest.mark.parametrize("fold", ["\r\n ", "\r\n\t"])
def test_whole_request_with_a_folded_type(fold: str) -> None:  # srmp.md 1.2
    vector = REQUESTS["V5"]
    raw = pack_request(vector.target, vector.host, vector.content_type, vector.body)
    folded = raw.replace(b'292"; type', f'292";{fold}type'.encode(), 1)
    assert read_whole_request(folded)[1] == read_whole_request(raw)[1]


def multipart(*attachments: tuple[str, bytes], envelope: bytes | None = None) -> bytes:
    return pack_parts(good() if envelope is None else envelope, list(attachments), "B")


def read(*attachments: tuple[str, bytes]) -> SrmpRequest:
    return read_request(TYPE, multipart(*attachments))


def test_bare_envelope() -> None:  # 1.3 D: a plain text/xml user message has an empty body
    found = read_request("text/xml", good())
    assert (found.body, found.extension, found.others) == (None, None, ())
    assert pack_body(found.envelope)[0] == "text/xml"


def test_attachments_in_any_order() -> None:  # 1.3: order is free
    found = read(("other@x", b"o"), ("EXTENSION@x", b"e"), ("body@x", b"b"))
    assert (found.body, found.extension) == (b"b", b"e")
    assert [part.content for part in found.others] == [b"o"]
    assert found.attachments == {"body": b"b", "extension": b"e"}


def test_the_only_attachment_is_the_body() -> None:  # 1.3 D
    assert read(("", b"b")).body == b"b"
    assert read(("a", b"b"), ("extension@x", b"e")).body == b"b"


def test_which_of_two_is_not_guessed() -> None:  # 1.3 D: exactly one, else an empty body
    found = read(("a", b"1"), ("b", b"2"))
    assert found.body is None
    assert len(found.others) == 2
    assert read(("extension@x", b"e")).body is None
    assert read().body is None


@pytest.mark.parametrize("kind", ["body", "extension"])
def test_doubled(kind: str) -> None:  # issue: attachments doubled are 400
    with pytest.raises(WireError, match="twice"):
        read((f"{kind}@x", b"1"), (f"{kind}@y", b"2"))


def test_a_receipt_has_no_attachment() -> None:  # SR-5, MC-MQSRM 2.2.2
    assert read_request(TYPE, multipart(envelope=V3_DELIVERY)).envelope.is_receipt
    with pytest.raises(WireError, match="receipt"):
        read_request(TYPE, multipart(("body@x", b""), envelope=V3_DELIVERY))


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("text/plain", good()),
        ("", good()),
        ("text/xml", b""),
        ("text/xml", multipart()),
        (TYPE, b"--B--\r\n"),
        (TYPE, good()),
        (TYPE.replace('"B"', '"C"'), multipart()),
        ("text/xml", b" " * (module.MAX_BODY + 1)),
    ],
)
def test_refused(content_type: str, data: bytes) -> None:  # SR-5
    with pytest.raises(WireError):
        read_request(content_type, data)


def test_extension_is_written_too() -> None:
    found = read(("body@x", b"b"), ("extension@x", b"e"))
    content_type, data = pack_body(found.envelope, body=b"b", extension=b"e", number=7)
    again = read_request(content_type, data)
    assert (again.body, again.extension, again.envelope) == (b"b", b"e", found.envelope)
