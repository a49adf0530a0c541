from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message, Transaction
from bridge.wire.srmp.convert import (
    envelope_from_message,
    envelope_name,
    format_name,
    message_from_request,
)
from bridge.wire.srmp.request import pack_body, read_request
from bridge.wire.srmp.signature import DS
from bridge.wire.srmp.values import NEVER
from tests.vectors.srmp import REQUESTS, V5_BODY, V5_ENVELOPE, V5_QM
from tests.wire.srmp.build import MSMQ, PATH, PROPERTIES, SERVICES, STREAM, good, soap
from tests.wire.srmp.strategies import SOME, messages

NOW = 1_700_000_000_000


def vector(name: str) -> Message:
    request = read_request(REQUESTS[name].content_type, REQUESTS[name].body)
    return message_from_request(request, peer="10.0.0.1", arrived_ms=NOW)


def message(data: bytes) -> Message:
    return message_from_request(read_request("text/xml", data), arrived_ms=NOW)


def test_vector_1() -> None:  # V1: label, Identifier {0,1}, TTRQ 86400
    found = vector("V1")
    assert (found.source, found.ordinal) == (NULL_GUID, 1)
    assert (found.label, found.time_to_reach_queue) == ("mqsender label", 86400)
    assert found.destination == "DIRECT=http://machine2/msmq/private$/simpleq"  # SR-11
    assert (found.body, found.priority, found.delivery) == (b"First Message", 3, 0)
    assert (found.peer, found.arrived_ms, found.transport) == ("10.0.0.1", NOW, "http")


def test_vector_2() -> None:  # V2: label empty, TTRQ 345600; case of <to> kept
    found = vector("V2")
    assert (found.label, found.time_to_reach_queue, found.ordinal) == ("", 345600, 20503)
    assert found.destination == "DIRECT=http://machine2/msmq/private$/simpleQ"


def test_vector_3() -> None:  # V3: both requests, both flags; no label without MSMQ:
    found = vector("V3")
    assert (found.label, found.ack) == ("", 0x01 | 0x02 | 0x08)
    assert found.response_queue == "DIRECT=http://machine1/MSMQ/private$/Q1"
    assert found.admin_queue == "DIRECT=http://machine1/MSMQ/private$/receipts"


@pytest.mark.parametrize(("name", "number"), [("V4.1", 1), ("V4.2", 2), ("V4.3", 3)])
def test_vector_4(name: str, number: int) -> None:  # V4: durable although no services
    found = vector(name)
    assert found.transaction == Transaction(4839986701558349830, number, number - 1)
    assert found.delivery == 1
    status = "DIRECT=http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    assert found.status_queue == (status if number == 1 else "")


def test_vector_5() -> None:  # V5, SR-11: multicast
    found = vector("V5")
    assert found.destination == "MULTICAST=234.1.1.1:8001"
    assert (found.source, found.ordinal) == (Guid.parse(V5_QM), 4494)
    assert (found.body, found.body_type) == (V5_BODY, 8)
    assert found.soap.encode() == V5_ENVELOPE  # 7.1: msmq.soap keeps the envelope
    data = pack_body(envelope_from_message(found), body=found.body, number=292)[1]
    assert data == REQUESTS["V5"].body


@SOME
@given(messages())
def test_round_trip(sent: Message) -> None:  # 7.1, both ways
    envelope = envelope_from_message(sent)
    content_type, data = pack_body(envelope, body=sent.body, extension=sent.extension)
    request = read_request(content_type, data)
    assert replace(message_from_request(request), soap="") == sent


def test_identifier_names_the_source() -> None:  # SR-23: SourceQmGuid wins, n is of the id
    other = "00000000-0000-0000-0000-000000000008"
    found = message(soap(PATH.replace(V5_QM, other) + PROPERTIES + MSMQ))
    assert (found.source, found.ordinal) == (Guid.parse(V5_QM), 7)


def test_time_to_reach_queue() -> None:  # SR-60
    assert message(good(MSMQ)).time_to_reach_queue == 345600
    assert message(good(MSMQ.replace("20070612", "20380119").replace("T023719", "T031407"))) == (
        replace(
            message(good(MSMQ)),
            time_to_reach_queue=INFINITE,
            soap=good(MSMQ.replace("20070612", "20380119").replace("T023719", "T031407")).decode(),
        )
    )
    assert message(good(MSMQ.replace("20070612", "20060612"))).time_to_reach_queue == 0
    assert message(good(MSMQ.replace("20070612", "99990612"))).time_to_reach_queue == INFINITE


def test_without_sent_at_the_arrival_counts() -> None:  # SR-60 D
    properties = PROPERTIES.replace("<sentAt>20070608T023719</sentAt>", "")
    properties = properties.replace("20380119T031407", "20231114T221420")
    found = message(soap(PATH + properties))
    assert (found.sent_time, found.time_to_reach_queue) == (1_700_000_000, 60)


def test_no_expiry() -> None:  # srmp.md 2: 20380119T031407 is never
    assert message(good()).time_to_reach_queue == INFINITE


def test_long_label_is_cut() -> None:  # 7.1: max 249 chars; the envelope has all of it
    found = message(soap(PATH.replace("MSMQ:a", f"MSMQ:{'a' * 300}") + PROPERTIES))
    assert found.label == "a" * 249
    assert "a" * 300 in found.soap
    found = message(soap(PATH.replace("MSMQ:a", f"MSMQ:{'a' * 248}😀b") + PROPERTIES))
    assert found.label == "a" * 248


def test_services_and_stream() -> None:  # 7.1: FinalAckRequired, AcknowledgementsRequested
    found = message(good(SERVICES, STREAM, MSMQ))
    assert found.transaction is not None
    assert found.transaction.final_ack
    assert found.ack == 0x0B
    assert found.admin_queue == "DIRECT=http://a/msmq/d"


def test_block_of_msmq() -> None:  # 7.1
    block = (
        f"<Journal/><DeadLetter/><Trace/><ConnectorType>{V5_QM}</ConnectorType><App>36</App>"
        f"<HashAlgorithm>0</HashAlgorithm><Eod><First/><Last/><ConnectorId>{V5_QM}</ConnectorId>"
        "</Eod><Provider><Type>1234</Type><Name>ProviderName</Name></Provider>"
        "<AdminMqf>http://a/msmq/q MSMQ:PUBLIC=x </AdminMqf></Msmq>"
    )
    found = message(good(STREAM, MSMQ.replace("</Msmq>", block)))
    assert (found.journal, found.trace_queue, found.app_specific) == (3, NULL_GUID, 36)
    assert (found.connector, found.hash_algorithm) == (Guid.parse(V5_QM), 0)
    assert (found.provider, found.admin_multi) == (
        "1234:ProviderName",
        "DIRECT=http://a/msmq/q,PUBLIC=x",
    )
    assert found.transaction is not None
    assert (found.transaction.first, found.transaction.last) == (True, True)
    assert found.transaction.connector_qm == Guid.parse(V5_QM)


def test_a_signature_is_a_claim() -> None:  # 7.1; `authenticated` is what our check found
    inner = (
        f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"/></SignedInfo>'
        "<SignatureValue>AAAA</SignatureValue>"
    )
    found = message(good(f'<Signature xmlns="{DS}">{inner}</Signature>'))
    assert (found.signature, found.authenticated) == (bytes(3), 0)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("http://a/msmq/q", "DIRECT=http://a/msmq/q"),
        ("MSMQ:DIRECT=OS:a\\q", "DIRECT=OS:a\\q"),
        ("MSMQ:MULTICAST=234.1.1.1:8001", "MULTICAST=234.1.1.1:8001"),
        ("", ""),
    ],
)
def test_names(inside: str, outside: str) -> None:  # SR-11, SR-74
    assert format_name(inside) == outside
    assert envelope_name(outside) == inside


def test_direct_in_any_case() -> None:  # SR-74
    assert envelope_name("Direct=HTTPS://a/msmq/q") == "HTTPS://a/msmq/q"


OWN = Message(source=Guid.parse(V5_QM), ordinal=1, destination="DIRECT=http://a/msmq/q")


def test_what_we_send() -> None:  # SR-62: the deadline is in TTrq only
    envelope = envelope_from_message(replace(OWN, sent_time=100, time_to_reach_queue=60))
    assert envelope.expires_at == NEVER
    assert envelope.msmq is not None
    assert envelope.msmq.time_to_reach_queue == 160
    assert envelope.services is None
    forever = envelope_from_message(replace(OWN, time_to_reach_queue=INFINITE)).msmq
    assert forever is not None
    assert forever.time_to_reach_queue == NEVER


def test_a_gap_in_a_stream_is_said() -> None:  # SR-72: previous bridges what expired
    tx = Transaction(sequence_id=5, number=4, previous=0)
    stream = envelope_from_message(replace(OWN, transaction=tx)).stream
    assert stream is not None
    assert (stream.previous, stream.preceding) == (0, 0)


@pytest.mark.parametrize(
    "bad",
    [
        replace(OWN, destination="DIRECT=OS:a\\q"),  # SR-70
        replace(OWN, destination=""),
        replace(OWN, ack=1),  # a receipt that goes nowhere
        replace(OWN, ack=2, admin_queue="DIRECT=OS:a\\q"),
        replace(OWN, transaction=Transaction(sequence_id=1, number=1)),  # no sendReceiptsTo
    ],
)
def test_what_srmp_cannot_carry(bad: Message) -> None:
    with pytest.raises(WireError):
        envelope_from_message(bad)
