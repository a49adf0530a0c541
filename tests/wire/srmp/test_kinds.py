from __future__ import annotations

import pytest
from msgspec.structs import replace

from bridge.wire.srmp.envelope import CommitmentReceipt
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.reader import read_envelope
from tests.vectors.srmp import V3_COMMITMENT, V3_DELIVERY, V4_RECEIPT_1, V5_ENVELOPE
from tests.wire.srmp.build import MSMQ, good

STREAM = read_envelope(V4_RECEIPT_1)
DECIDED = read_envelope(V3_COMMITMENT)


def with_class(data: bytes, number: int, old: int) -> bytes:
    return data.replace(b"<Class>%d<" % old, b"<Class>%d<" % number)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (V5_ENVELOPE, Kind.USER),
        (good(), Kind.USER),  # Class absent = 0
        (V3_DELIVERY, Kind.DELIVERY_RECEIPT),
        (V4_RECEIPT_1, Kind.STREAM_RECEIPT),
        (V3_COMMITMENT, Kind.COMMITMENT_RECEIPT),
        (good(MSMQ.replace("<Class>0", "<Class>1")), Kind.UNKNOWN),
        (with_class(V3_DELIVERY, 0, 2), Kind.UNKNOWN),
        (with_class(V4_RECEIPT_1, 0, 255), Kind.UNKNOWN),
        (V4_RECEIPT_1.replace(b"Ordering", b"Other"), Kind.UNKNOWN),
        (with_class(V3_COMMITMENT, 32769, 16384), Kind.UNKNOWN),  # positive, negative class
    ],
)
def test_table(data: bytes, kind: Kind) -> None:  # MC-MQSRM 3.1.5.1.5
    assert kind_of(read_envelope(data)) is kind


@pytest.mark.parametrize("outcome", [32769, 49152, 49153, 49154, 49156])  # 49156: SR-19
def test_negative_outcomes(outcome: int) -> None:
    data = with_class(V3_COMMITMENT, outcome, 16384).replace(b"positive", b"negative")
    assert kind_of(read_envelope(data)) is Kind.COMMITMENT_RECEIPT


def test_final_stream_receipt() -> None:  # 3.1.5.1.5: both elements, and the class of the outcome
    assert STREAM.msmq is not None
    decided = CommitmentReceipt(decided_at=0, positive=False, id="")
    block = replace(STREAM.msmq, message_class=49154)
    final = replace(STREAM, commitment_receipt=decided, msmq=block)
    assert kind_of(final) is Kind.FINAL_STREAM_RECEIPT
    assert kind_of(replace(final, action="MSMQ:")) is Kind.UNKNOWN
    assert kind_of(replace(final, msmq=STREAM.msmq)) is Kind.UNKNOWN


def test_two_kinds_at_once() -> None:  # 3.3: anything else
    mixed = replace(DECIDED, delivery_receipt=read_envelope(V3_DELIVERY).delivery_receipt)
    assert kind_of(mixed) is Kind.UNKNOWN
