"""The tests' own builder and parser against the vectors of the digest, section 6."""

from hashlib import sha256
from uuid import UUID

import pytest

from tests.outside.srmp.post import chunked
from tests.outside.srmp.wire import (
    NULL,
    ZERO,
    Mail,
    body_part,
    content_type,
    correlation,
    multipart,
    parse_receipt,
    stream_id,
    unix,
    whole,
)
from tests.vectors import srmp as vectors

WINDOWS = UUID("32221eda-9376-46df-b6ed-783091123831")


def test_v5_is_what_windows_sent() -> None:
    """Lengths of the specification, hashes of the digest."""
    mail = Mail(
        to="MSMQ:MULTICAST=234.1.1.1:8001",
        label="mqsender label",
        source=WINDOWS,
        number=4494,
        sent=unix("20070608T023719"),
        body_type=8,
        body="ardenwhite".encode("utf-16-le"),
    )
    envelope = mail.envelope.encode()
    assert len(envelope) == 779
    assert sha256(envelope).hexdigest() == (
        "bc510d46bece787ba53b09c719664e6013c9ced3498805502d60ed71e7705638"
    )
    content = multipart(
        envelope, [body_part(mail.body, WINDOWS)], boundary="MSMQ - SOAP boundary, 292"
    )
    assert len(content) == 1067
    assert sha256(content).hexdigest() == (
        "0d86c5f30913478b595d88de06294f88780261681a7b75e5521318cdacdbc676"
    )


def test_a_request_has_the_head_of_1_2() -> None:
    kind = content_type("MSMQ - SOAP boundary, 53287")
    sent = whole(b"x" * 906, target="/msmq/private$/simpleq", host="machine2", kind=kind)
    assert sent.partition(b"\r\n\r\n")[0].split(b"\r\n") == [
        b"POST /msmq/private$/simpleq HTTP/1.1",
        b"Host: machine2",
        b'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 53287"; type=text/xml',
        b"Content-Length: 906",
        b'SOAPAction: "MSMQMessage"',
        b"Proxy-Accept: NonInteractiveClient",
    ]


def test_correlations() -> None:
    """V6, V2, SR-43"""
    assert correlation(WINDOWS, 32852) == "2h4iMnaT30a27XgwkRI4MVSAAAA="
    v2 = UUID("caf195ea-615c-4264-ae08-11a4e60194c0")
    assert correlation(v2, 20503) == "6pXxylxhZEKuCBGk5gGUwBdQAAA="
    assert correlation(NULL, 1) == "AAAAAAAAAAAAAAAAAAAAAAEAAAA="
    assert correlation(NULL, 0) == ZERO


def test_receipts_of_the_examples() -> None:
    """V3, V4"""
    delivery = parse_receipt(vectors.V3_DELIVERY)
    assert (delivery.type, delivery.kind, delivery.priority) == ("delivery", 2, 3)
    assert delivery.acked == f"uuid:1@{NULL}"
    commitment = parse_receipt(vectors.V3_COMMITMENT)
    assert (commitment.type, commitment.decision) == ("commitment", "positive")
    receipt = parse_receipt(vectors.V4_RECEIPT_3)
    stream = stream_id("2744e4e1-2b48-43e8-b441-42745f280d53", 6, 0x432B1643)
    assert (receipt.type, receipt.last, receipt.stream) == ("stream", 3, stream)


def test_a_receipt_with_another_layout_is_refused() -> None:
    for old, new in (
        (b"><", b">\n<"),
        (b"<App>0</App>", b""),
        (b"<se:Body></se:Body>", b"<se:Body/>"),
        (b"<TTrq>20070623T", b"<TTrq>20070624T"),
    ):
        changed = vectors.V4_RECEIPT_1.replace(old, new)
        assert changed != vectors.V4_RECEIPT_1
        with pytest.raises(AssertionError):
            parse_receipt(changed)


def test_chunks() -> None:
    assert chunked(b"abcde", [2, 1], b";x") == b"2;x\r\nab\r\n1;x\r\nc\r\n2;x\r\nde\r\n0\r\n\r\n"
