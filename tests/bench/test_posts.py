"""Requests of the load generator over HTTP, byte for byte as the digest has them."""

import re
from uuid import UUID

import pytest

from tests.bench.posts import KINDS, WIDTH, Posts
from tests.vectors.srmp import multipart

SOURCE = UUID("11111111-2222-3333-4444-555555555555")
NOW = 1_700_000_000  # 2023-11-14 22:13:20
RECEIPTS = "http://127.0.0.1:9/msmq/private$/order_queue$"
STREAM = f"uid:{SOURCE}\\{NOW << 32 | 1}"


def posts(kind: str, size: int = 10) -> Posts:
    return Posts("private$\\orders", kind, size, SOURCE, NOW, RECEIPTS)


def envelope(data: bytes) -> bytes:
    found = re.search(b"<se:Envelope.*</se:Envelope>", data)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 2, 4_000_000_000])
def test_head_and_framing(kind: str, number: int) -> None:  # srmp.md 1.2, 1.3
    data = bytes(posts(kind).request(number))
    head, _, content = data.partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        "POST /msmq/private$/orders HTTP/1.1",
        "Host: 127.0.0.1",
        'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 26500"; type=text/xml',
        f"Content-Length: {len(content)}",
        'SOAPAction: "MSMQMessage"',
        "Proxy-Accept: NonInteractiveClient",
    ]
    assert content == multipart(26500, envelope(data), bytes(10), str(SOURCE))


def test_a_durable_message() -> None:  # srmp.md section 2
    text = envelope(bytes(posts("srmp-durable").request(7))).decode()
    assert text == (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        "<action>MSMQ:load</action><to>http://127.0.0.1/msmq/private$/orders</to>"
        f"<id>uuid:0000000007@{SOURCE}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        "<sentAt>20231114T221320</sentAt></properties>"
        '<services se:mustUnderstand="1"><durable/></services>'
        '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{SOURCE}</SourceQmGuid>"
        "<TTrq>20231118T221320</TTrq></Msmq></se:Header><se:Body></se:Body></se:Envelope>"
    )
    assert posts("srmp-durable").stream_id == ""


def test_a_stream() -> None:  # SR-72: message 1 carries start, the others previous
    made = posts("srmp-stream")
    assert made.stream_id == STREAM
    steps = []
    for number in (1, 2, 3):
        found = re.search("<Stream.*</Stream>", bytes(made.request(number)).decode())
        assert found is not None
        steps.append(found[0])
    begin = f'<Stream se:mustUnderstand="1"><streamId>{STREAM}</streamId><current>'
    start = f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>"
    assert steps == [
        f"{begin}0000000001</current>{start}</Stream>",
        f"{begin}0000000002</current><previous>0000000001</previous></Stream>",
        f"{begin}0000000003</current><previous>0000000002</previous></Stream>",
    ]
    assert "<Priority>0</Priority>" in bytes(made.request(9)).decode()


@pytest.mark.parametrize("kind", KINDS)
def test_only_numbers_change(kind: str) -> None:
    made = posts(kind)
    second, third = (bytes(made.request(number)) for number in (2, 1003))
    assert len(second) == len(third)
    digits = [at for at in range(len(second)) if second[at] != third[at]]
    assert all(third[at : at + 1].isdigit() for at in digits)
    assert len(digits) <= 3 * WIDTH
