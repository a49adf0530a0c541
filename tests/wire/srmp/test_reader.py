from __future__ import annotations

import pytest

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.srmp.envelope import Services
from bridge.wire.srmp.reader import MAX_NAMES, place_of_to, read_envelope, soap_texts
from bridge.wire.srmp.values import MAX_BASE64, MAX_NAME
from tests.vectors.srmp import V4_RECEIPT_1
from tests.wire.srmp.build import MSMQ, MUST, PATH, PROPERTIES, QM, SERVICES, STREAM, TO, good, soap

ALL = (SERVICES, STREAM, MSMQ)


def test_everything_at_once() -> None:
    envelope = read_envelope(good(*ALL))
    assert envelope.action == "MSMQ:a"
    assert envelope.services == Services(
        durable=True,
        delivery_to="http://a/msmq/d",
        commitment_to="http://a/msmq/c",
        positive=True,
        negative=True,
    )
    assert envelope.stream is not None
    assert envelope.stream.receipts_to == "http://a/msmq/o"
    assert envelope.msmq is not None
    assert envelope.msmq.source == Guid.parse(QM)


def without(*names: str) -> bytes:
    """The good envelope, with `<name>…</name>` cut out."""
    text = good(*ALL).decode()
    for name in names:
        start, end = text.index(f"<{name}"), text.index(f"</{name}>") + len(name) + 3
        text = text[:start] + text[end:]
    return text.encode()


@pytest.mark.parametrize(
    "name",
    [
        *("path", "action", "to", "id", "properties", "expiresAt", "sendTo", "sendReceiptsTo"),
        *("streamId", "current", "Class", "Priority", "BodyType", "SourceQmGuid", "TTrq", "Msmq"),
        *("se:Header", "se:Body"),
    ],
)
def test_missing(name: str) -> None:  # SR-5, the list of 400
    with pytest.raises(WireError):
        read_envelope(without(name))


@pytest.mark.parametrize("name", ["sentAt", "services", "stream", "deliveryReceiptRequest"])
def test_may_be_missing(name: str) -> None:
    assert read_envelope(without(name)).action == "MSMQ:a"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("20380119T031407", "2038"),
        ("20070608T023719", "20070608T0237190"),
        ("20070612T023719", "20071312T023719"),
        ("<Class>0", "<Class>x"),
        ("<Priority>3", "<Priority>8"),
        ("<Priority>3", "<Priority>-1"),
        ("<BodyType>8", "<BodyType>4294967296"),
        (f"<SourceQmGuid>{QM}", f"<SourceQmGuid>{{{QM}}}"),
        ("uuid:7@", "7@"),
        ("uuid:7@", "uuid:4294967296@"),
        ("uid:" + QM + "\\77", "uid:" + QM),
        ("<current>1", "<current>4294967296"),
        ("<current>1", "<current>"),
        ("http://a/msmq/c", "MSMQ:DIRECT=OS:a\\q"),
        ("http://a/msmq/d", ""),
        ("http://a/msmq/o", "ftp://a/msmq/o"),
        ("http://bridge/msmq", "DIRECT=http://bridge/msmq"),
        ("http://bridge/msmq", "bridge/msmq"),
        ("http://bridge/msmq/private$/q", "MSMQ:MULTICAST=nowhere"),
        ("http://bridge/msmq/private$/q", "MSMQ:DIRECT=OS:a\\q"),
        ("</TTrq>", "</TTrq><Correlation>AAAA</Correlation>"),
        ("</TTrq>", "</TTrq><Correlation>*</Correlation>"),
        ("</TTrq>", "</TTrq><ConnectorType>x</ConnectorType>"),
        ("</TTrq>", "</TTrq><Eod><ConnectorId/></Eod>"),
        ("</TTrq>", "</TTrq><Provider><Type>1</Type></Provider>"),
        ("</TTrq>", "</TTrq><Provider><Name>a</Name></Provider>"),
        ("</TTrq>", "</TTrq><App>-1</App>"),
        ("</TTrq>", "</TTrq><AdminMqf>http://a/msmq/a,b</AdminMqf>"),
        ("</TTrq>", f"</TTrq><AdminMqf>{'a ' * (MAX_NAMES + 1)}</AdminMqf>"),
        ("</TTrq>", f"</TTrq><AdminMqf>MSMQ:{'a' * MAX_NAME}</AdminMqf>"),
        ("</TTrq>", f"</TTrq><Correlation>{'AAAA' * MAX_BASE64}</Correlation>"),
        ("</id></path>", f"</id><rev><via>MSMQ:{'a' * MAX_NAME}</via></rev></path>"),
        ("</id></path>", "</id><rev><via>http://a</via><via>http://b</via></rev></path>"),
        ("</id></path>", "</id><id>uuid:8@" + QM + "</id></path>"),
        ("<durable/>", "<durable/><durable/>"),
        ("</se:Header>", f"{PATH}</se:Header>"),
        ("</se:Header>", f"<Stream {MUST}/></se:Header>"),
        ("</se:Header>", f"<x:y xmlns:x='urn:a' {MUST}/></se:Header>"),
        ("</se:Header>", f"<unknown {MUST}/></se:Header>"),
        ("</se:Header>", "<deliveryReceipt><id>a</id></deliveryReceipt></se:Header>"),
        ("</se:Header>", "<streamReceipt><lastOrdinal>1</lastOrdinal></streamReceipt></se:Header>"),
        (
            "</se:Header>",
            "<commitmentReceipt><decidedAt>20070608T023719</decidedAt><decision>maybe</decision>"
            "<id>a</id></commitmentReceipt></se:Header>",
        ),
        ("<se:Header>", "<x/><se:Header>"),
        ("</se:Header>", "</se:Header><x/>"),
        ("</se:Envelope>", "<se:Body/></se:Envelope>"),
        ("soap/envelope/", "soap/other/"),
        ("schemas.xmlsoap.org/rp/", "example.org/rp/"),
    ],
)
def test_refused(old: str, new: str) -> None:  # SR-5
    text = good(*ALL).decode()
    assert old in text
    with pytest.raises(WireError):
        read_envelope(text.replace(old, new, 1).encode())


@pytest.mark.parametrize("entry", ["path", "properties", "services", "stream"])
@pytest.mark.parametrize("value", ["0", "", "true", " 1", None])
def test_must_understand(entry: str, value: str | None) -> None:  # SR-5; only "1" counts
    text = good(*ALL).decode()
    start = text.index(MUST, text.index(f"<{entry}"))
    attribute = "" if value is None else f'se:mustUnderstand="{value}"'
    broken = text[:start] + attribute + text[start + len(MUST) :]
    with pytest.raises(WireError, match="mustUnderstand"):
        read_envelope(broken.encode())


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("MSMQ:a", "a"),
        ("MSMQ:a  ", "a  "),
        ("MSMQ:a\t ", "a\t "),
        ("MSMQ:  a", "  a"),
        ("MSMQ:  ", "  "),
        ("MSMQ:", ""),
        ("\r\n  MSMQ:a \r\n  ", "a "),  # the layout of the XML
        ("MSMQ:a\nb  ", "a\nb  "),
        ("  MSMQ:a", "a"),
        ("Generic label ", None),
    ],
)
def test_a_label_is_all_that_follows_the_prefix(action: str, label: str | None) -> None:
    """MC-MQSRM 3.1.5.1.1: "the suffix of the <action> element directly following the "MSMQ:"
    prefix"."""
    text = good().decode().replace("MSMQ:a<", f"{action}<")
    assert read_envelope(text.encode()).label == label


NEXT = "http://schemas.xmlsoap.org/soap/actor/next"


@pytest.mark.parametrize("actor", [None, "", NEXT, f" {NEXT} "])
def test_an_entry_that_we_must_understand(actor: str | None) -> None:
    """SOAP 1.1 4.2.2: "Omitting the SOAP actor attribute indicates that the recipient is the
    ultimate destination"; 4.2.3: it "MUST fail processing the message". The refusal names it."""
    attribute = "" if actor is None else f'se:actor="{actor}"'
    entry = f'<x:Audit xmlns:x="urn:example:audit" {MUST} {attribute}/>'
    with pytest.raises(WireError, match="mustUnderstand") as caught:
        read_envelope(good(entry))
    assert "Audit" in str(caught.value)
    assert "urn:example:audit" in str(caught.value)


@pytest.mark.parametrize("actor", ["http://proxy.example.com/", "urn:x", NEXT.upper()])
def test_an_entry_that_another_must_understand(actor: str) -> None:
    """SOAP 1.1 4.2.3: a recipient of the header entry; that is whom its actor names."""
    entry = f'<x:Audit xmlns:x="urn:example:audit" {MUST} se:actor="{actor}"/>'
    assert read_envelope(good(entry)) == read_envelope(good())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<stream ", "<Stream "),  # the spelling of 4.4
        ("<durable/>", ""),
        ("<current>1", "<current> 1\r\n"),
        ("</current>", "</current><streamReceiptRequest/><end/>"),
        ("<start>", "<start><expiresAt>never</expiresAt>"),
        ("http://a/msmq/o", "\r\n http://a/msmq/o\t"),
        ("</se:Header>", "<x:y xmlns:x='urn:a'/></se:Header>"),
        ("</se:Header>", "<x:y xmlns:x='urn:a' se:mustUnderstand='0'/></se:Header>"),
        ("<se:Body>", "<se:Body><any>thing</any>"),
        ("</se:Envelope>", "<x/></se:Envelope>"),
        ("</action>", "</action><fwd/><fwd/><from/><relatesTo/><fault/>"),
        ("</sentAt>", "</sentAt><inReplyTo>x</inReplyTo>"),
        ("</id></path>", "</id><rev/></path>"),
        ("</id></path>", "</id><rev><via/></rev></path>"),
        ("</id></path>", "</id><rev><via></via></rev></path>"),
        ("<to>http", "<to>HTTP"),
        (QM, "00000000-0000-0000-0000-000000000008"),
    ],
)
def test_accepted(old: str, new: str) -> None:  # digest 3.1, "must be accepted"
    text = good(*ALL).decode()
    assert old in text
    text = text.replace(old, new, 1)
    if new == "<Stream ":
        text = text.replace("</stream>", "</Stream>")
    envelope = read_envelope(text.encode())
    assert envelope.stream is not None
    assert envelope.stream.current == 1
    assert envelope.stream.receipts_to == "http://a/msmq/o"
    assert envelope.via == ""


def test_start_on_a_later_message_is_ignored() -> None:  # digest 3.1
    later = STREAM.replace("<current>1", "<current>2").replace("http://a/msmq/o", "nonsense")
    stream = read_envelope(good(later, MSMQ)).stream
    assert stream is not None
    assert stream.receipts_to is None


def test_id_counts_only_with_msmq() -> None:  # 2.2.4.3
    path = PATH.replace(f"uuid:7@{QM}", "whatever")
    assert read_envelope(soap(path + PROPERTIES)).id == "whatever"
    with pytest.raises(WireError):
        read_envelope(soap(path + PROPERTIES + MSMQ))


def test_a_class_nobody_knows_is_not_malformed() -> None:  # SR-8: ignored, with 200
    block = MSMQ.replace("<Class>0", "<Class>18446744073709551615")
    assert read_envelope(good(block)).message_class == 0xFFFFFFFFFFFFFFFF


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("http://a/msmq/q", "http://a/msmq/q"),
        ("MSMQ:DIRECT=OS:a\\q", "MSMQ:DIRECT=OS:a\\q"),
        ("mailto:a", ""),
    ],
)
def test_response_queue(via: str, expected: str) -> None:  # 2.2.4.4
    path = PATH.replace("<id>", f"<rev><via>{via}</via></rev><id>")
    assert read_envelope(soap(path + PROPERTIES)).via == expected


def test_lists_of_names() -> None:  # 2.2.6.14 to .16: split by white space
    names = "<DestinationMqf>\r\nhttp://a/msmq/q\r\n MSMQ:PUBLIC=x\t</DestinationMqf>"
    block = read_envelope(good(MSMQ.replace("</Msmq>", f"{names}</Msmq>"))).msmq
    assert block is not None
    assert block.destination_mqf == ("http://a/msmq/q", "MSMQ:PUBLIC=x")
    assert block.admin_mqf == ()


def test_stream_receipt() -> None:  # V4
    receipt = read_envelope(V4_RECEIPT_1).stream_receipt
    assert receipt is not None
    assert receipt.last_ordinal == 1
    assert receipt.stream_id.number == 0x432B164300000006


def test_soap_texts() -> None:  # SR-9
    data = soap(PATH + PROPERTIES, "<se:Body><a>ä</a></se:Body>")
    header, body = soap_texts(data)
    assert header == f"<se:Header>{PATH}{PROPERTIES}</se:Header>"
    assert body == "<se:Body><a>ä</a></se:Body>"
    assert soap_texts(soap(PATH, "<se:Body/>"))[1] == "<se:Body/>"


def test_where_the_destination_lies() -> None:  # SR-15: white space around it belongs to it
    data = good(*ALL).replace(b"<to>", b"<to >\r\n ")
    assert data[place_of_to(data)] == b"\r\n " + TO.encode()
    with pytest.raises(WireError):
        place_of_to(without("to"))


def test_vector_4_cut_anywhere() -> None:  # SR-5
    for length in range(len(V4_RECEIPT_1)):
        with pytest.raises(WireError):
            read_envelope(V4_RECEIPT_1[:length])
