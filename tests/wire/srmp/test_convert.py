from __future__ import annotations

from base64 import b64encode
from hashlib import sha1

import pytest
from hypothesis import given
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message, Srmp, Transaction
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
from tests.wire.srmp.build import MSMQ, PATH, PROPERTIES, SERVICES, STREAM, TO, good, soap
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
    to = "http://machine2/msmq/private$/tsimpleq"
    key = Guid.parse("2744e4e1-2b48-43e8-b441-42745f280d53"), f"DIRECT={to}"
    assert found.source != key[0]  # 3.5: not SourceQmGuid, 4.4 varies it within a stream
    assert found.transaction == Transaction(4839986701558349830, number, number - 1, stream=key)
    assert found.delivery == 1
    url = "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    assert found.status_queue == (f"DIRECT={url}" if number == 1 else "")
    assert found.srmp == Srmp(
        to=to,
        stream_id="uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830",
        starts=number == 1,
        receipts_to=url if number == 1 else "",
    )


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
    found = message_from_request(request)
    if found.transaction is not None:  # `stream` and `srmp` are the receiver's, no properties
        found = replace(found, transaction=replace(found.transaction, stream=None))
    assert replace(found, soap="", srmp=None) == sent


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


def srmp(data: bytes) -> Srmp:
    found = message(data).srmp
    assert found is not None
    return found


def test_a_plain_message_asks_for_nothing() -> None:
    assert srmp(good()) == Srmp(to=TO)
    assert srmp(good(MSMQ)) == Srmp(to=TO)


def test_what_is_asked_of_the_receiver() -> None:  # SR-47: three URLs, kept apart
    assert srmp(good(SERVICES, STREAM, MSMQ)) == Srmp(
        to=TO,
        stream_id=f"uid:{V5_QM}\\77",
        starts=True,
        receipts_to="http://a/msmq/o",
        delivery_to="http://a/msmq/d",
        commitment_to="http://a/msmq/c",
        positive=True,
        negative=True,
    )
    only = srmp(good(SERVICES.replace("<positiveOnly/>", "")))
    assert (only.positive, only.negative) == (False, True)


def test_the_text_of_a_stream_id_stays() -> None:  # srmp.md 8.1: echo it byte for byte
    found = message(good(STREAM.replace(V5_QM, V5_QM.upper()).replace("77", "0077"), MSMQ))
    assert found.srmp is not None
    assert found.srmp.stream_id == f"uid:{V5_QM.upper()}\\0077"
    assert found.transaction is not None
    assert found.transaction.sequence_id == 77
    assert found.transaction.stream == (Guid.parse(V5_QM), f"DIRECT={TO}")


@pytest.mark.parametrize(
    ("stream", "starts"),
    [
        (STREAM, True),
        (STREAM.replace("<current>1", "<current>2"), False),  # 3.1: start on a later one is ignored
        (STREAM.replace("<current>1", "<current>0"), False),
        (STREAM.partition("<start>")[0] + "</stream>", False),
    ],
)
def test_only_message_1_starts(stream: str, starts: bool) -> None:  # SR-30 a
    found = message(good(stream, MSMQ))
    assert found.srmp is not None
    assert (found.srmp.starts, bool(found.srmp.receipts_to)) == (starts, starts)
    assert bool(found.status_queue) == starts


@pytest.mark.parametrize(
    ("text", "expires"),
    [
        ("20380119T031407", 0),  # never
        ("20231114T221320", 1_700_000_000),
        ("20380119T031408", 0x80000000),
    ],
)
def test_expires_at(text: str, expires: int) -> None:  # SR-62: kept beside TTrq
    properties = PROPERTIES.replace("20380119T031407", text)
    found = message(soap(PATH + properties + MSMQ))
    assert (found.expires, found.time_to_reach_queue) == (expires, 345_600)


def test_a_redirected_message() -> None:  # SR-14; SR-48: the original <to> stays known
    url = "https://elsewhere/msmq/private$/orders"
    request = read_request("text/xml", good(STREAM, MSMQ))
    found = message_from_request(request, destination=url, is_here=False)
    assert found.destination == f"DIRECT={url}"
    assert found.srmp is not None
    assert (found.srmp.to, found.srmp.is_here) == (TO, False)
    assert found.transaction is not None
    assert found.transaction.stream == (Guid.parse(V5_QM), f"DIRECT={TO}")


def test_who_keeps_the_request() -> None:  # SR-9
    request = read_request("text/xml", good())
    assert message_from_request(request).soap_compound == b""
    assert message_from_request(request, compound=b"POST").soap_compound == b"POST"


ORDERING = PATH.replace("MSMQ:a<", "MSMQ:QM Ordering Ack<")
STREAM_RECEIPT = (
    f"<streamReceipt><streamId>uid:{V5_QM}\\7</streamId>"
    "<lastOrdinal>1</lastOrdinal></streamReceipt>"
)
DELIVERY = "<deliveryReceipt><receivedAt>20070608T023719</receivedAt><id>x</id></deliveryReceipt>"


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (good(), True),  # 3.3: Class absent = 0
        (good(MSMQ), True),
        (good(MSMQ.replace("<Class>0", "<Class>1")), False),
        (good(MSMQ.replace("<Class>0", "<Class>18446744073709551615")), False),
        (good(DELIVERY, MSMQ.replace("<Class>0", "<Class>2")), True),
        (good(DELIVERY, MSMQ), False),
        (good(DELIVERY), False),
        # Receipts of streams are for queue managers, not for queues: SR-51
        (
            soap(ORDERING + PROPERTIES + STREAM_RECEIPT + MSMQ.replace("<Class>0", "<Class>255")),
            False,
        ),
    ],
)
def test_what_it_is(data: bytes, known: bool) -> None:
    assert srmp(data).is_known is known


SIGNED = (
    f'<Signature xmlns="{DS}"><SignedInfo><SignatureMethod Algorithm="{DS}dsa"/>'
    f'<Reference URI="cid:body@{V5_QM}"><DigestMethod Algorithm="{DS}sha1"/>'
    "<DigestValue>%s</DigestValue></Reference></SignedInfo>"
    "<SignatureValue>AAAA</SignatureValue></Signature>"
)


@pytest.mark.parametrize(
    ("digest", "body", "flaw"),
    [
        (b"hello", b"hello", ""),
        (b"hello", b"jello", "DigestValue is wrong"),
        (b"hello", None, "Reference to no attachment"),
    ],
)
def test_a_signature_that_cannot_be_right(
    digest: bytes, body: bytes | None, flaw: str
) -> None:  # SR-40, SR-41: what can be checked is checked
    value = b64encode(sha1(digest, usedforsecurity=False).digest()).decode()
    data = good(SIGNED % value)
    content_type = "text/xml"
    if body is not None:
        head = b"Content-Type: text/xml\r\nContent-Length: %d\r\n\r\n" % len(data)
        more = b"Content-Length: %d\r\nContent-Id: body@x\r\n\r\n" % len(body)
        data = b"--B\r\n" + head + data + b"--B\r\n" + more + body + b"--B--\r\n"
        content_type = 'multipart/related; boundary="B"; type=text/xml'
    found = message_from_request(read_request(content_type, data))
    assert found.srmp is not None
    assert found.srmp.flaw == flaw
    assert found.authenticated == 0


def test_a_signature_without_references_is_flawed() -> None:  # SR-40
    inner = f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"/></SignedInfo>'
    value = "<SignatureValue>AAAA</SignatureValue>"
    assert srmp(good(f'<Signature xmlns="{DS}">{inner}{value}</Signature>')).flaw == "0 references"


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
