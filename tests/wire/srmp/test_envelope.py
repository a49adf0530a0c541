from __future__ import annotations

from msgspec.structs import replace

from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.srmp.envelope import DeliveryReceipt, Envelope, MsmqBlock, Services, Stream
from bridge.wire.srmp.values import make_stream_id
from tests.wire.srmp.build import QM, TO

PLAIN = Envelope(action="MSMQ:label", to=TO, id=f"uuid:7@{QM}", expires_at=0)
SOURCE = Guid(bytes(range(16)))
STREAM = Stream(id=make_stream_id(SOURCE, 5), current=3)


def test_label_needs_its_prefix() -> None:  # MC-MQSRM 2.2.4.1 <5>
    assert PLAIN.label == "label"
    assert replace(PLAIN, action="MSMQ:").label == ""
    assert replace(PLAIN, action="Generic label").label is None


def test_identifier_is_the_source_s() -> None:  # SR-23: SourceQmGuid wins over the GUID of the id
    block = MsmqBlock(source=SOURCE, time_to_reach_queue=0)
    assert replace(PLAIN, msmq=block).identifier == (SOURCE, 7)


def test_identifier_without_msmq() -> None:  # 2.2.4.3, SR-21
    assert PLAIN.identifier == (NULL_GUID, 1)
    assert PLAIN.message_class == 0


def test_previous_that_is_absent() -> None:  # 2.2.5.3.3: current - 1
    assert STREAM.preceding == 2
    assert replace(STREAM, previous=1).preceding == 1
    assert replace(STREAM, current=0).preceding == 0


def test_durable() -> None:  # 2.2.5.2.1; a stream is durable even if it does not say so (4.4)
    assert not PLAIN.durable
    assert not replace(PLAIN, services=Services()).durable
    assert replace(PLAIN, services=Services(durable=True)).durable
    assert replace(PLAIN, stream=STREAM).durable


def test_receipt() -> None:
    assert not PLAIN.is_receipt
    assert replace(PLAIN, delivery_receipt=DeliveryReceipt(received_at=0, id="")).is_receipt
