"""What an envelope tells a sender, and where a message goes that is done with."""

from __future__ import annotations

import pytest
from msgspec import structs

from bridge.model.message import JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from bridge.protocol.srmp.sending import (
    Fate,
    FinalReceipted,
    StreamReceipted,
    keep_in,
    receipt_of,
)
from bridge.wire.srmp.envelope import CommitmentReceipt, Envelope
from bridge.wire.srmp.reader import read_envelope
from bridge.wire.srmp.values import parse_stream_id
from tests.protocol.srmp.peer import regular, step
from tests.vectors.srmp import STREAM_ID, V3_COMMITMENT, V3_DELIVERY, V4_RECEIPT_3, V5_ENVELOPE

ID = parse_stream_id("streamId", STREAM_ID)


def decided(positive: bool, outcome: int) -> Envelope:
    """A final stream receipt has both elements (SR-45)."""
    receipt = read_envelope(V4_RECEIPT_3)
    assert receipt.msmq is not None
    decision = CommitmentReceipt(decided_at=0, positive=positive, id="uuid:1@x")
    block = structs.replace(receipt.msmq, message_class=outcome)
    return structs.replace(receipt, commitment_receipt=decision, msmq=block)


def test_a_stream_receipt() -> None:  # V4, srmp.md 3.3
    assert receipt_of(read_envelope(V4_RECEIPT_3)) == StreamReceipted(ID, 3)


@pytest.mark.parametrize(
    ("positive", "outcome"), [(True, 16384), (False, 32769), (False, 49154), (False, 49156)]
)
def test_a_final_stream_receipt(positive: bool, outcome: int) -> None:  # srmp.md 3.3, SR-19
    told = receipt_of(decided(positive, outcome))
    assert told == FinalReceipted(ID, 3, positive, outcome)


@pytest.mark.parametrize("envelope", [V3_DELIVERY, V3_COMMITMENT, V5_ENVELOPE])
def test_what_is_not_about_a_stream(envelope: bytes) -> None:
    """SR-50: no correlation with the original."""
    assert receipt_of(read_envelope(envelope)) is None


def test_a_receipt_that_contradicts_itself() -> None:  # srmp.md 3.3: anything else
    assert receipt_of(decided(True, 49154)) is None
    assert receipt_of(structs.replace(read_envelope(V4_RECEIPT_3), action="MSMQ:other")) is None


# -- journals and dead letters ----------------------------------------------------------------

BOTH = JOURNAL_NEGATIVE | JOURNAL_POSITIVE


@pytest.mark.parametrize(
    ("fate", "plain", "of_a_stream"),
    [
        (Fate.REACHED, "Journal$", "Journal$"),  # SR-64
        (Fate.RECEIVED, "Journal$", "Journal$"),
        (Fate.REFUSED, "Deadletter$", "XactDeadletter"),  # SR-65
        (Fate.EXPIRED, "Deadletter$", "XactDeadletter"),
        (Fate.DIED, "Deadletter$", "XactDeadletter"),
    ],
)
def test_journal_and_dead_letter_queues(fate: Fate, plain: str, of_a_stream: str) -> None:
    assert keep_in(regular(1, journal=BOTH), fate) == plain
    assert keep_in(step(1, journal=BOTH), fate) == of_a_stream
    assert keep_in(step(1), fate) == ""


def test_only_what_was_asked_for() -> None:
    assert keep_in(regular(1, journal=JOURNAL_NEGATIVE), Fate.REACHED) == ""
    assert keep_in(regular(1, journal=JOURNAL_POSITIVE), Fate.EXPIRED) == ""
