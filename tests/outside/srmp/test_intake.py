"""What comes over HTTP becomes a record: framing, the vectors, pipelining. Digest 1, 6"""

import random
from uuid import uuid4

import pytest

from tests.outside.appliance import HOST, Appliance
from tests.outside.records import Record
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.conftest import Connect
from tests.outside.srmp.post import Poster, chunked
from tests.outside.srmp.wire import (
    BOUNDARY,
    NULL,
    ZERO,
    Mail,
    Part,
    body_part,
    head,
    multipart,
    request,
    stream_id,
    unix,
    url,
    whole,
)
from tests.vectors import srmp as vectors

pytestmark = pytest.mark.kafka
PLAIN = url("plain")
V4_STREAM = stream_id("2744e4e1-2b48-43e8-b441-42745f280d53", 6, 0x432B1643)


def vector(name: str) -> bytes:
    """As the specification prints it: head, multipart, and the lengths of both."""
    one = vectors.REQUESTS[name]
    assert len(one.body) == one.length
    return whole(one.body, target=one.target, host=one.host, kind=one.content_type)


def envelope_of(name: str) -> bytes:
    """The counted bytes of the first part."""
    start = vectors.REQUESTS[name].body.index(b"<se:Envelope")
    return vectors.REQUESTS[name].body[start:].partition(b"</se:Envelope>")[0] + b"</se:Envelope>"


def token() -> bytes:
    return f"body {uuid4()}".encode()


def one_record(topics: Topics, body: bytes, name: str = "plain") -> Record:
    """It is committed when the answer is there: a reader of committed records sees it. SR-3"""
    [record] = [one for one in topics.all(name) if one.value == body]
    assert record.header["msmq.transport"] == b"http"
    assert "msmq.soap.compound" not in record.header  # design D7
    return record


# -- the vectors ----------------------------------------------------------------------------


def test_v1(poster: Poster, topics: Topics) -> None:
    """No Msmq: Identifier {NULL, 1}, TTRQ = expiresAt - sentAt; the line is folded (1.2)."""
    assert "\r\n" in vectors.REQUESTS["V1"].content_type
    poster.send(vector("V1"))
    answer = poster.read_answer()
    assert (answer.status, answer.body) == (200, b"")
    record = one_record(topics, b"First Message", "simpleq")
    assert record.header["msmq.id"] == f"{NULL}\\1".encode()
    assert record.header["msmq.label"] == b"mqsender label"
    assert record.header["msmq.ttrq"] == b"86400"
    assert record.header["msmq.dest"] == b"DIRECT=http://machine2/msmq/private$/simpleq"
    assert record.header["msmq.queue"].lower() == b"private$\\simpleq"
    assert record.header["msmq.sent"] == b"%d" % unix("20070608T164419")
    assert record.header["msmq.srmp.expires"] == b"%d" % unix("20070609T164419")
    assert record.header["msmq.soap"] == envelope_of("V1")
    for absent in ("msmq.delivery", "msmq.priority", "msmq.class", "msmq.correlation"):
        assert absent not in record.header


def test_v2(poster: Poster, topics: Topics) -> None:
    """An empty label, a queue name in another case, "never", the TTRQ that is the default."""
    assert len(vectors.V2_BODY) == 223
    assert poster.post(vector("V2")) == 200
    record = one_record(topics, vectors.V2_BODY, "simpleq")
    source = "caf195ea-615c-4264-ae08-11a4e60194c0"
    assert record.header["msmq.id"] == f"{source}\\20503".encode()
    assert record.header["msmq.source"] == source.encode()
    assert record.header["msmq.dest"] == b"DIRECT=http://machine2/msmq/private$/simpleQ"
    assert record.header["msmq.soap"] == envelope_of("V2")
    for absent in ("msmq.label", "msmq.ttrq", "msmq.srmp.expires", "msmq.app", "msmq.hash"):
        assert absent not in record.header


def test_v3(poster: Poster, topics: Topics, catcher: Catcher) -> None:
    """Other prefixes; both receipts go to the queues that their requests name. SR-43, SR-47

    `machine1` is reached as redirect_out says, `<to>` stays what it is. SR-18
    """
    delivery = catcher.box_at("machine1", "receipts")
    commitment = catcher.box_at("machine1", "deliverydone")
    assert poster.post(vector("V3")) == 200
    record = one_record(topics, vectors.V3_BODY, "simpleq")
    assert "msmq.label" not in record.header  # the action has no prefix
    assert record.header["msmq.id"] == f"{NULL}\\1".encode()
    assert record.header["msmq.response"] == b"DIRECT=http://machine1/MSMQ/private$/Q1"
    assert record.header["msmq.ack"] == b"11"  # PA, PR, NR
    assert record.header["msmq.ttrq"] == b"86400"
    for box, kind, name in ((delivery, 2, "delivery"), (commitment, 16384, "commitment")):
        [receipt] = box.wait(1)
        assert (receipt.type, receipt.kind, receipt.priority) == (name, kind, 3)
        assert receipt.action == "MSMQ:"
        assert receipt.to == f"http://machine1/MSMQ/private$/{box.path.rpartition('/')[2]}"
        assert receipt.via == "http://machine2/msmq/private$/simpleq"
        assert receipt.acked == f"uuid:1@{NULL}"
        assert receipt.correlation == "AAAAAAAAAAAAAAAAAAAAAAEAAAA="
        assert receipt.decision == ("positive" if name == "commitment" else "")
        assert box.caught[0].headers["host"] == "machine1"


def test_v4(poster: Poster, topics: Topics, catcher: Catcher, appliance: Appliance) -> None:
    """`Stream`, no services, three messages with one id and three sources: one stream. 4.4"""
    box = catcher.box_at("machine1", "receipts", "?SenderStream=XRntV")
    for number in (1, 2, 3):
        assert poster.post(vector(f"V4.{number}")) == 200
        [receipt] = box.wait_last(number)[-1:]  # as Windows had it: one receipt for each
        assert (receipt.type, receipt.last, receipt.stream) == ("stream", number, V4_STREAM)
        assert (receipt.kind, receipt.priority, receipt.correlation) == (255, 0, ZERO)
        assert receipt.action == "MSMQ:QM Ordering Ack"
        assert receipt.to == "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
        assert receipt.via == "http://machine2/msmq/private$/tsimpleq"
        assert receipt.source == appliance.guid
    assert {one.target for one in box.caught} == {"/msmq/private$/receipts?senderstream=xrntv"}
    records = [one for one in topics.all("tsimpleq") if b"mqsender" in one.header["msmq.label"]]
    assert [one.value for one in records] == [b"First Message", b"Message 0", b"Last Message"]
    assert [one.header["msmq.tx.seq"] for one in records] == [b"1", b"2", b"3"]
    assert {one.header["msmq.tx.seqid"] for one in records} == {b"4839986701558349830"}
    assert {one.header["msmq.delivery"] for one in records} == {b"1"}  # 3.1.5.1.6.2
    assert [one.header["msmq.id"].decode() for one in records] == [  # SR-23
        "dc1cd9a6-8130-4504-88d2-851707fe4632\\1",
        "6a74a825-57b2-43e5-9d34-f1d8b2b8950a\\1",
        "f306d4c7-be95-419a-9e3b-8c751d04b1e9\\1",
    ]


# -- framing, 1.3 ---------------------------------------------------------------------------

_NASTY = f"a\r\n--{BOUNDARY}\r\nContent-Length: 1\r\n\r\n--{BOUNDARY}--\r\n".encode()
_ALL_BYTES = bytes(range(256)) * 5


def framings() -> dict[str, tuple[bytes, bytes]]:
    """The request and the body it carries."""

    def mail(body: bytes) -> bytes:
        return Mail(to=PLAIN, body=body).envelope.encode()

    def of(body: bytes, parts: list[Part], **how: object) -> tuple[bytes, bytes]:
        return whole(multipart(mail(body), parts, **how)), body  # type: ignore[arg-type]

    def plain(body: bytes, **how: object) -> tuple[bytes, bytes]:
        return of(body, [body_part(body)], **how)

    def typed(kind: str) -> tuple[bytes, bytes]:
        body = token()
        return whole(multipart(mail(body), [body_part(body)], boundary="B"), kind=kind), body

    a, b, c, d, e, f, g = (token() for _ in range(7))
    extension = Part(f"extension@{uuid4()}", b"\0extra\xff")
    other = Part("photo@somebody", b"\r\n--unknown--\r\n")
    return {
        "as Windows writes it": plain(token()),
        "the body has delimiters": plain(token() + _NASTY),
        "the body is any bytes": plain(token() + _ALL_BYTES),
        "a line end before the delimiter": plain(token() + _NASTY, gap=b"\r\n"),
        "parts that do not count": plain(token(), counted=False, gap=b"\r\n"),
        "not counted, line ends in the body": plain(
            token() + b"\r\n\r\n-- \r\n", counted=False, gap=b"\r\n"
        ),
        "the extension comes first": of(a, [extension, body_part(a)]),
        "the extension comes last": of(b, [body_part(b), extension]),
        "an unknown attachment": of(c, [other, body_part(c), other]),
        "one attachment of another name": of(d, [Part("photo@somebody", d)]),
        "one attachment without a name": of(e, [Part("", e)]),
        "a Content-Id in brackets": of(f, [other, Part(f"<BODY@{uuid4()}>", f)]),
        "an owner that is nobody": of(g, [Part("body@", g), other]),
        "boundary without quotes": typed("multipart/related; boundary=B; type=text/xml"),
        "parameters in another order": typed('Multipart/Related; type="text/xml"; boundary="B"'),
        "folded with a tab": typed('multipart/related; boundary="B";\r\n\ttype=text/xml'),
        "folded with a blank": typed('multipart/related;\r\n boundary="B";\r\n type=text/xml'),
        "large": plain(token() + random.Random(80).randbytes(600_000)),
    }


def test_framing(poster: Poster, topics: Topics) -> None:
    """1.3: parts go by their Content-Length, or are looked for; one connection for all."""
    cases = framings()
    found = {name: poster.post(data) for name, (data, _) in cases.items()}
    assert found == dict.fromkeys(cases, 200)
    counts = topics.count(body for _, body in cases.values())
    assert dict(zip(cases, counts, strict=True)) == dict.fromkeys(cases, 1)
    for name in ("the extension comes first", "the extension comes last"):
        assert one_record(topics, cases[name][1]).header["msmq.extension"] == b"\0extra\xff"
    assert "msmq.extension" not in one_record(topics, cases["an unknown attachment"][1]).header


def test_messages_without_a_body(poster: Poster, topics: Topics) -> None:
    """1.3 D: no attachment, or a plain text/xml request, is an empty body."""
    bare, empty, xml, utf8 = (Mail(to=PLAIN, label=str(uuid4())) for _ in range(4))
    assert poster.post(whole(multipart(bare.envelope.encode(), []))) == 200
    assert poster.post(empty) == 200  # a part of 0 bytes
    assert poster.post(whole(xml.envelope.encode(), kind="text/xml")) == 200
    assert poster.post(whole(utf8.envelope.encode(), kind="Text/XML; charset=utf-8")) == 200
    for mail in (bare, empty, xml, utf8):
        [record] = topics.with_id(mail.id)
        assert record.value == b""
        assert record.header["msmq.label"] == mail.label.encode()
        assert record.header["msmq.soap"] == mail.envelope.encode()


def rewritten(body: bytes, *changes: tuple[str, str]) -> bytes:
    """An envelope of another tool."""
    text = Mail(to=PLAIN, body=body, label="Größe <中>").envelope
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return whole(multipart(text.encode(), [body_part(body)]))


def test_envelopes_of_other_tools(poster: Poster, topics: Topics) -> None:
    """Section 2: prefixes are free, so is white space; text is trimmed. 1.3: accept indented."""
    rp = "http://schemas.xmlsoap.org/rp/"
    soap = "http://schemas.xmlsoap.org/soap/envelope/"
    cases = {
        "indented": [("><", ">\r\n\t <")],
        "a declaration": [("<se:Envelope", '<?xml version="1.0" encoding="UTF-8"?>\n<se:Envelope')],
        "the prefix of SOAP": [
            ("<se:", "<SOAP-ENV:"),
            ("</se:", "</SOAP-ENV:"),
            (" se:", " SOAP-ENV:"),
            ("xmlns:se=", "xmlns:SOAP-ENV="),
        ],
        "a prefix for the path": [
            (f'<path xmlns="{rp}"', f'<x:path xmlns:x="{rp}"'),
            ("</path>", "</x:path>"),
            ("<action>", "<x:action>"),
            ("</action>", "</x:action>"),
            ("<to>", "<x:to>"),
            ("</to>", "</x:to>"),
            ("<id>", "<x:id>"),
            ("</id>", "</x:id>"),
        ],
        "single quotes": [(f'"{soap}"', f"'{soap}'")],
        "white space in text": [("<to>", "<to>\r\n  "), ("</to>", " \n</to>"), (">0<", "> 0\n<")],
        "a comment": [("<se:Header>", "<se:Header><!-- hello -->")],
        "CDATA": [("<to>", "<to><![CDATA["), ("</to>", "]]></to>")],
        "character references": [("<to>http://", "<to>http:&#x2F;&#47;")],
    }
    bodies = {name: token() for name in cases}
    sent = {name: poster.post(rewritten(bodies[name], *cases[name])) for name in cases}
    assert sent == dict.fromkeys(cases, 200)
    for body in bodies.values():
        record = one_record(topics, body)
        assert record.header["msmq.label"] == "Größe <中>".encode()
        assert record.header["msmq.dest"] == f"DIRECT={PLAIN}".encode()


# -- HTTP, 1.2 ------------------------------------------------------------------------------


def unlengthed(mail: Mail, more: str) -> bytes:
    """A head that says nothing about the size."""
    return head(0, more=more).replace(b"Content-Length: 0\r\n", b"")


def test_chunked(poster: Poster, topics: Topics) -> None:
    """1.2: accept it on input."""
    bodies = [token() for _ in range(4)]
    extensions = (b"", b"", b";name=value", b';q="a;b"')
    for body, sizes, extension in zip(
        bodies, ([10_000], [1], [7, 64, 1], [333]), extensions, strict=True
    ):
        mail = Mail(to=PLAIN, body=body)
        content = multipart(mail.envelope.encode(), [body_part(body)])
        first = unlengthed(mail, "Transfer-Encoding: chunked\r\n")
        assert poster.post(first + chunked(content, sizes, extension)) == 200
    trailed, last = Mail(to=PLAIN, body=token()), Mail(to=PLAIN, body=token())
    content = chunked(multipart(trailed.envelope.encode(), [body_part(trailed.body)]), [100])
    first = unlengthed(trailed, "transfer-encoding: Chunked\r\n")
    assert poster.post(first + content[:-2] + b"X-Sum: 1\r\n\r\n") == 200
    assert poster.post(last) == 200  # the trailer did not leak into it
    for body in (*bodies, trailed.body, last.body):
        one_record(topics, body)


def test_expect_100_continue(poster: Poster, topics: Topics) -> None:
    mail = Mail(to=PLAIN, body=token())
    content = multipart(mail.envelope.encode(), [body_part(mail.body)])
    poster.send(head(len(content), more="Expect: 100-continue\r\n"))
    assert poster.read_answer().status == 100
    poster.send(content)
    assert poster.read_answer().status == 200
    one_record(topics, mail.body)


def test_heads_of_other_clients(poster: Poster, topics: Topics) -> None:
    """SOAPAction and Proxy-Accept are ignored, names have no case, a proxy sends the whole URL."""
    mails = [Mail(to=PLAIN, body=token()) for _ in range(6)]
    changes: list[tuple[bytes, bytes]] = [
        (b'SOAPAction: "MSMQMessage"\r\nProxy-Accept: NonInteractiveClient\r\n', b""),
        (b'SOAPAction: "MSMQMessage"', b'SOAPAction: "something else"'),
        (b"Content-Type", b"content-type"),
        (b"POST /msmq", f"POST http://{HOST}/msmq".encode()),
        (f"Host: {HOST}".encode(), b"Host: whoever.example:8080"),
        (b"Content-Length", b"CONTENT-LENGTH"),
    ]
    for mail, (old, new) in zip(mails, changes, strict=True):
        data = request(mail)
        assert old in data.partition(b"\r\n\r\n")[0] + b"\r\n"
        assert poster.post(data.replace(old, new, 1)) == 200
    for mail in mails:
        one_record(topics, mail.body)


def test_a_request_may_come_byte_by_byte(poster: Poster, topics: Topics) -> None:
    mail = Mail(to=PLAIN, body=token())
    for byte in request(mail):
        poster.send(bytes([byte]))
    assert poster.read_answer().status == 200
    one_record(topics, mail.body)


def test_pipelining(poster: Poster, topics: Topics) -> None:
    """1.2: twenty in one write, answers in their order; the refused ones are told apart."""
    mails = [
        Mail(to=url("nowhere") if number % 3 == 0 else PLAIN, body=token()) for number in range(20)
    ]
    expected = [400 if number % 3 == 0 else 200 for number in range(20)]
    assert poster.post_all(mails) == expected
    counts = topics.count(mail.body for mail in mails)
    assert counts == [int(status == 200) for status in expected]


def test_one_sender_keeps_its_order(poster: Poster, topics: Topics) -> None:  # design D2
    source, mark = uuid4(), token()
    mails = [Mail(to=PLAIN, body=b"%s %d" % (mark, n), source=source) for n in range(60)]
    for start in range(0, 60, 15):
        assert set(poster.post_all(mails[start : start + 15])) == {200}
    records = [one for one in topics.all("plain") if one.value.startswith(mark)]
    assert [one.value for one in records] == [mail.body for mail in mails]
    assert len({one.partition for one in records}) == 1


def test_a_closing_client_gets_its_answer(connect: Connect, topics: Topics) -> None:
    """HTTP/1.1: `Connection: close`, or a half-closed connection, after a whole request."""
    mails = [Mail(to=PLAIN, body=token()) for _ in range(2)]
    polite, abrupt = connect(), connect()
    polite.send(request(mails[0]).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    assert polite.read_answer().status == 200
    assert polite.try_post(Mail(to=PLAIN)) == 0
    abrupt.send(request(mails[1]))
    abrupt.half_close()
    assert abrupt.read_answer().status == 200
    for mail in mails:
        one_record(topics, mail.body)
