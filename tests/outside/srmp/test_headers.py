"""Every row of the table in digest 7.1: what an SRMP message is in Kafka."""

import base64
import time
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.outside.records import Record
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Box
from tests.outside.srmp.post import Poster
from tests.outside.srmp.signing import reference, signature
from tests.outside.srmp.wire import (
    NEVER,
    NULL,
    Flow,
    Mail,
    Part,
    body_part,
    date,
    multipart,
    stream_id,
    unix,
    url,
    whole,
)

pytestmark = pytest.mark.kafka
# Names of every record; the digest gives no text for the first two.
FREE = {"msmq.v", "msmq.peer", "msmq.queue", "msmq.lookup", "msmq.outcome"}


def properties(record: Record) -> dict[str, bytes]:
    """All of them, each once, but for those that are the bridge's own."""
    assert len(record.header) == len(record.headers), record.headers
    return {name: value for name, value in record.headers if name not in FREE}


def always(mail: Mail, name: str) -> dict[str, bytes]:
    return {
        "msmq.id": mail.id.encode(),
        "msmq.source": str(mail.source).encode(),
        "msmq.dest": f"DIRECT={url(name)}".encode(),  # SR-11
        "msmq.sent": b"%d" % mail.sent,
        "msmq.soap": mail.envelope.encode(),
        "msmq.transport": b"http",
    }


def send(poster: Poster, topics: Topics, name: str, mail: Mail) -> Record:
    assert poster.post(mail) == 200
    [record] = [one for one in topics.all(name) if one.header["msmq.id"] == mail.id.encode()]
    assert record.value == mail.body
    return record


def test_every_property_at_its_default(poster: Poster, topics: Topics) -> None:
    """Design D7: a property at its default has no header. The timestamp is the arrival.

    SR-27: nothing limits the time to be received, so there is no `msmq.ttbr`.
    """
    mail = Mail(to=url("plain"), body=b"bare")
    before = time.time()
    record = send(poster, topics, "plain", mail)
    assert properties(record) == always(mail, "plain")
    assert "msmq.ttbr" not in record.header
    assert record.header["msmq.queue"].lower() == b"private$\\plain"
    assert before - 1 <= record.timestamp_ms / 1000 <= time.time() + 1


def test_without_msmq(poster: Poster, topics: Topics) -> None:
    """<12>: processed with the defaults; SR-60: TTRQ = expiresAt - sentAt."""
    label = str(uuid4())
    mail = Mail(to=url("plain"), bare=True, label=label, expires=date(time.time() + 1000))
    mail = replace(mail, sent=unix(mail.expires) - 4000, body=b"nobody's")
    assert poster.post(mail) == 200
    [record] = topics.anywhere(lambda one: one.header.get("msmq.label") == label.encode())
    found = properties(record)
    assert found.pop("msmq.source", str(NULL).encode()) == str(NULL).encode()
    expected = always(mail, "plain") | {
        "msmq.id": f"{NULL}\\1".encode(),
        "msmq.label": label.encode(),
        "msmq.ttrq": b"4000",
        "msmq.srmp.expires": b"%d" % unix(mail.expires),
    }
    del expected["msmq.source"]
    assert found == expected


def test_without_sent_at(poster: Poster, topics: Topics) -> None:
    """SR-60 D: TTRQ then counts from the arrival."""
    mail = Mail(to=url("plain"), body=b"when?", sent=int(time.time()) + 5000, ttrq=1000)
    text = mail.envelope.replace(f"<sentAt>{date(mail.sent)}</sentAt>", "")
    assert poster.post(whole(multipart(text.encode(), [body_part(mail.body)]))) == 200
    [record] = topics.with_id(mail.id)
    assert 5000 <= int(record.header["msmq.ttrq"]) <= 6000


def test_a_plain_message_with_everything(poster: Poster, topics: Topics, box: Box) -> None:
    connector, connector_qm = uuid4(), uuid4()
    mark = bytes(range(1, 21))
    mail = Mail(
        to=url("plain"),
        body="Bücher".encode("utf-16-le"),
        label="Bestellung <ä中📦>",
        path="<rev><via>MSMQ:DIRECT=OS:sender7\\private$\\answers</via></rev>"
        "<from>nobody</from><fwd/><relatesTo>uuid:1@x</relatesTo>",
        services="<durable/>"
        f"<deliveryReceiptRequest><sendTo>{box.url}</sendTo></deliveryReceiptRequest>"
        f"<commitmentReceiptRequest><sendTo>{box.url}</sendTo><positiveOnly/><negativeOnly/>"
        "</commitmentReceiptRequest>",
        expires=date(time.time() + 500_000),
        ttrq=86_400,
        priority=7,
        flags="<Journal/><DeadLetter/>",
        correlation=base64.b64encode(mark).decode(),
        app=0xDEADBEEF,
        body_type=8,
        hash=32782,
        msmq=f"<ConnectorType>{connector}</ConnectorType>"
        f"<Eod><First/><Last/><ConnectorId>{connector_qm}</ConnectorId></Eod>"
        "<Provider><Type>1</Type><Name>Some Provider v1.0</Name></Provider>"
        "<DestinationMqf>http://a/msmq/q1 MSMQ:DIRECT=OS:b\\q2 </DestinationMqf>"
        "<AdminMqf>http://c/msmq/q3</AdminMqf>"
        "<ResponseMqf>\r\n http://d/msmq/q4\n\thttp://e/msmq/q5 </ResponseMqf>",
    )
    record = send(poster, topics, "plain", mail)
    found = properties(record)
    lists = {
        "msmq.provider": (b"1", b"Some Provider v1.0"),  # how they are joined is not said
        "msmq.dest.multi": (b"http://a/msmq/q1", b"DIRECT=OS:b\\q2"),
        "msmq.admin.multi": (b"http://c/msmq/q3",),
        "msmq.response.multi": (b"http://d/msmq/q4", b"http://e/msmq/q5"),
    }
    for name, members in lists.items():
        value = found.pop(name)
        assert all(member in value for member in members), (name, value)
        assert b"MSMQ:" not in value
    marks = ("msmq.tx.final-ack", "msmq.tx.first", "msmq.tx.last", "msmq.connector.qm")
    assert {name: found.pop(name, None) for name in marks} == {
        "msmq.tx.final-ack": b"1",
        "msmq.tx.first": b"1",
        "msmq.tx.last": b"1",
        "msmq.connector.qm": str(connector_qm).encode(),
    }
    assert found == always(mail, "plain") | {
        "msmq.label": "Bestellung <ä中📦>".encode(),
        "msmq.response": b"DIRECT=OS:sender7\\private$\\answers",
        "msmq.srmp.expires": b"%d" % unix(mail.expires),
        "msmq.ttrq": b"86400",
        "msmq.delivery": b"1",
        "msmq.ack": b"11",  # PA 1, PR 2, NR 8
        "msmq.admin": f"DIRECT={box.url}".encode(),
        "msmq.priority": b"7",
        "msmq.journal": b"3",
        "msmq.correlation": mark,
        "msmq.connector": str(connector).encode(),
        "msmq.app": b"3735928559",
        "msmq.body-type": b"8",
        "msmq.hash": b"32782",
    }


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"flags": "<Journal/>"}, "msmq.journal", b"2"),
        ({"flags": "<DeadLetter/>"}, "msmq.journal", b"1"),
        ({"priority": 0}, "msmq.priority", b"0"),
        ({"hash": 32780}, "msmq.hash", b"32780"),
        ({"label": "x" * 249}, "msmq.label", b"x" * 249),
        ({"action": "msmq is not in front"}, "msmq.label", None),
        ({"path": "<rev><via/></rev>"}, "msmq.response", None),
        ({"path": "<rev><via></via></rev>"}, "msmq.response", None),
        ({"path": "<rev><via>http://a/msmq/b</via></rev>"}, "msmq.response", b"DIRECT=http://a/"),
        ({"services": "<durable></durable>"}, "msmq.delivery", b"1"),
        ({"expires": NEVER}, "msmq.srmp.expires", None),
        ({"ttrq": 345_600}, "msmq.ttrq", None),
        ({"ttrq": 1}, "msmq.ttrq", b"1"),
        ({"body_type": 4294967295}, "msmq.body-type", b"4294967295"),
        ({"msmq": "<Trace/>"}, "msmq.trace", b""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_one_property(
    poster: Poster, topics: Topics, change: Mapping[str, object], name: str, value: bytes | None
) -> None:
    """Rows of 7.1 alone; a value is the beginning of the header, None is no header at all."""
    mail = replace(Mail(to=url("plain"), body=b"one"), **change)  # type: ignore[arg-type]
    found = properties(send(poster, topics, "plain", mail))
    assert (name in found) == (value is not None)
    assert found.pop(name, b"").startswith(value or b"")
    found.pop("msmq.ttrq", None)
    assert found == always(mail, "plain")


def test_a_stream_message(poster: Poster, topics: Topics, box: Box) -> None:
    flow = Flow(to=url("orders"), receipts=box.url, stream=stream_id(uuid4(), 7, 0x432B1643))
    first = flow.mail(1)
    assert poster.post(first) == 200
    assert poster.post(flow.mail(9, 1)) == 200
    one, nine = (one for one in topics.all("orders") if one.value.startswith(flow.name.encode()))
    found = properties(one)
    assert found.pop("msmq.tx.prev", b"0") == b"0"
    assert found == always(first, "orders") | {
        "msmq.delivery": b"1",
        "msmq.priority": b"0",
        "msmq.tx.seqid": b"%d" % (0x432B1643 << 32 | 7),
        "msmq.tx.seq": b"1",
        "msmq.tx.status-queue": f"DIRECT={box.url}".encode(),
    }
    assert (nine.header["msmq.tx.seq"], nine.header["msmq.tx.prev"]) == (b"9", b"1")
    assert one.partition == nine.partition  # DM-36
    assert "msmq.tx.status-queue" not in nine.header


def test_a_signature_and_an_extension(poster: Poster, topics: Topics) -> None:
    """SR-41: only the digests are checked, so it is kept but does not authenticate."""
    owner, value = uuid4(), bytes(range(64))
    body, extension = b"signed", b"\0\1extension"
    references = reference(body, owner=owner) + reference(extension, name="extension", owner=owner)
    text = f"<SignatureValue>{base64.b64encode(value).decode()}</SignatureValue>"
    header = signature(references, value=text)
    mail = Mail(to=url("plain"), body=body, source=owner, header=header)
    parts = [body_part(body, owner), Part(f"extension@{owner}", extension)]
    assert poster.post(whole(multipart(mail.envelope.encode(), parts))) == 200
    [record] = topics.with_id(mail.id)
    assert record.value == body
    assert record.header["msmq.extension"] == extension
    assert record.header["msmq.signature"] == value
    assert "msmq.auth" not in record.header


def test_identity_is_the_source(poster: Poster, topics: Topics) -> None:
    """SR-23: {SourceQmGuid, n}, whatever GUID stands in id."""
    mail = Mail(to=url("plain"), body=b"whose?", number=4294967295)
    text = mail.envelope.replace(f"@{mail.source}</id>", f"@{UUID(int=8)}</id>")
    assert poster.post(whole(multipart(text.encode(), [body_part(mail.body)]))) == 200
    [record] = topics.with_id(mail.id)
    assert record.header["msmq.source"] == str(mail.source).encode()
