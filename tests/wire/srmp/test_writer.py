from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.reader import read_envelope
from bridge.wire.srmp.writer import write_envelope
from tests.vectors.srmp import V3_COMMITMENT, V3_DELIVERY, V4_RECEIPT_1, V4_RECEIPT_3, V5_ENVELOPE
from tests.wire.srmp.build import MSMQ, STREAM, good
from tests.wire.srmp.strategies import SOME, envelopes


def test_vector_5_is_windows_output() -> None:  # V5
    written = write_envelope(read_envelope(V5_ENVELOPE))
    assert written == V5_ENVELOPE
    assert len(written) == 779
    assert sha256(written).hexdigest() == (
        "bc510d46bece787ba53b09c719664e6013c9ced3498805502d60ed71e7705638"
    )


@pytest.mark.parametrize("data", [V3_DELIVERY, V3_COMMITMENT, V4_RECEIPT_1, V4_RECEIPT_3])
def test_receipts_are_laid_out_as_by_windows(data: bytes) -> None:  # 3.7: rev before id, zeros
    assert write_envelope(read_envelope(data)) == data


@SOME
@given(envelopes())
def test_round_trip(envelope: Envelope) -> None:
    data = write_envelope(envelope)
    assert read_envelope(data) == envelope
    assert write_envelope(read_envelope(data)) == data


def test_stream_is_spelled_as_the_text_has_it() -> None:
    """MC-MQSRM 2.2.5.3, 3.1.7.2.4: <stream se:mustUnderstand="1">; the examples of 4.4: Stream."""
    envelope = read_envelope(good(STREAM, MSMQ))
    for tag, data in (
        (b"stream", write_envelope(envelope)),
        (b"Stream", write_envelope(envelope, "Stream")),
    ):
        assert b'<%s se:mustUnderstand="1">' % tag in data
        assert b"</%s>" % tag in data
        assert read_envelope(data).stream == envelope.stream


def test_order_of_the_header() -> None:  # SR-74
    text = write_envelope(read_envelope(good(MSMQ, STREAM))).decode()
    places = [text.index(f"<{name}") for name in ("path", "properties", "stream", "Msmq")]
    assert places == sorted(places)


def test_absent_is_written_as_zero() -> None:  # section 6 note 4: Windows emits zeros
    text = write_envelope(read_envelope(good(MSMQ))).decode()
    assert "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>" in text
    assert "<HashAlgorithm>0</HashAlgorithm>" in text


def test_what_xml_cannot_say() -> None:
    with pytest.raises(WireError):
        write_envelope(replace(read_envelope(good()), action="MSMQ:\0"))
