from __future__ import annotations

import pytest

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.receipts import (
    Original,
    Post,
    commitment_receipt,
    delivery_receipt,
    final_stream_receipt,
    stream_receipt,
)
from bridge.wire.srmp.request import read_request
from bridge.wire.srmp.values import parse_date
from bridge.wire.srmp.writer import write_envelope
from tests.vectors.srmp import (
    REQUESTS,
    V3_COMMITMENT,
    V3_DELIVERY,
    V3_QM,
    V4_RECEIPT_1,
    V4_RECEIPT_3,
    V5_QM,
)


def original(vector: str) -> Original:
    return Original.of(read_request(REQUESTS[vector].content_type, REQUESTS[vector].body).envelope)


def post(to: str, source: str, ordinal: int, now: str) -> Post:
    return Post(to=to, source=Guid.parse(source), ordinal=ordinal, now=parse_date("now", now))


RECEIPTS = "http://machine1/MSMQ/private$/receipts"


def test_delivery_receipt() -> None:  # V3, SR-42, SR-43: the id echoed is not the one sent
    envelope = delivery_receipt(
        post(RECEIPTS, V3_QM, 34826, "20070719T032451"),
        original("V3"),
        parse_date("receivedAt", "20070719T032454"),
    )
    assert write_envelope(envelope) == V3_DELIVERY
    assert kind_of(envelope) is Kind.DELIVERY_RECEIPT


def test_commitment_receipt() -> None:  # V3, SR-44
    sent = post(RECEIPTS, V3_QM, 34827, "20070719T032721")
    envelope = commitment_receipt(sent, original("V3"), 16384, sent.now)
    assert write_envelope(envelope) == V3_COMMITMENT
    assert kind_of(envelope) is Kind.COMMITMENT_RECEIPT


@pytest.mark.parametrize(
    ("vector", "last", "ordinal", "now", "expected"),
    [
        ("V4.1", 1, 26641, "20070619T165958", V4_RECEIPT_1),
        ("V4.3", 3, 26645, "20070619T170001", V4_RECEIPT_3),
    ],
)
def test_stream_receipt(vector: str, last: int, ordinal: int, now: str, expected: bytes) -> None:
    # V4, SR-36; 8.1 item 4: streamId and the URL as they came
    message = read_request(REQUESTS[vector].content_type, REQUESTS[vector].body).envelope
    assert message.stream is not None
    to = message.stream.receipts_to or f"{RECEIPTS}?SenderStream=XRntV"
    sent = post(to, V5_QM, ordinal, now)
    envelope = stream_receipt(sent, message.to, message.stream.id, last)
    assert write_envelope(envelope) == expected
    assert kind_of(envelope) is Kind.STREAM_RECEIPT


@pytest.mark.parametrize(
    ("outcome", "positive"), [(16384, True), (32769, False), (49154, False), (49156, False)]
)
def test_final_stream_receipt(outcome: int, positive: bool) -> None:  # SR-45, SR-19
    message = read_request(REQUESTS["V4.2"].content_type, REQUESTS["V4.2"].body).envelope
    assert message.stream is not None
    sent = post(RECEIPTS, V5_QM, 1, "20070619T170001")
    envelope = final_stream_receipt(sent, Original.of(message), message.stream.id, 2, outcome, 9)
    assert kind_of(envelope) is Kind.FINAL_STREAM_RECEIPT
    assert envelope.stream_receipt is not None
    assert envelope.stream_receipt.last_ordinal == 2
    assert envelope.commitment_receipt is not None
    assert envelope.commitment_receipt.positive is positive
    assert envelope.commitment_receipt.id == "uuid:1@6a74a825-57b2-43e5-9d34-f1d8b2b8950a"


def test_other_outcomes_have_no_receipt() -> None:  # SR-44: any other reason: nothing
    with pytest.raises(WireError):
        commitment_receipt(post(RECEIPTS, V5_QM, 1, "20070619T170001"), original("V1"), 32770, 0)
