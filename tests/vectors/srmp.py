"""Requests of SRMP. Digest srmp.md section 6

V5 is byte for byte what Windows sent. The print of the specification has lost the white space of
the others: their content and every length are the specification's (a receipt's is not: names in
it were edited for print), the missing bytes are blanks behind the envelope's start tag.
"""

from __future__ import annotations

from typing import NamedTuple


class Request(NamedTuple):
    source: str
    target: str
    host: str
    content_type: str
    body: bytes
    length: int  # what the specification prints as the outer Content-Length


_ENVELOPE = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/">'
)
_PATH = '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
_MUST = ' se:mustUnderstand="1"'
_END = "</se:Header><se:Body></se:Body></se:Envelope>"
_ZERO = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
OWNER = "ff3af301-3196-497a-a918-72147c871a13"
V2_QM = "caf195ea-615c-4264-ae08-11a4e60194c0"
V5_QM = "32221eda-9376-46df-b6ed-783091123831"
STREAM_ID = "uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830"


def _properties(expires: str, sent: str) -> str:
    inner = f"<expiresAt>{expires}</expiresAt><sentAt>{sent}</sentAt>"
    return f"<properties{_MUST}>{inner}</properties>"


def _msmq(
    kind: int, priority: int, correlation: str, body_type: int, algorithm: int, qm: str, ttrq: str
) -> str:
    return (
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{kind}</Class><Priority>{priority}</Priority>'
        f"<Correlation>{correlation}</Correlation><App>0</App><BodyType>{body_type}</BodyType>"
        f"<HashAlgorithm>{algorithm}</HashAlgorithm><SourceQmGuid>{qm}</SourceQmGuid>"
        f"<TTrq>{ttrq}</TTrq></Msmq>"
    )


def _padded(head: str, rest: str, length: int) -> bytes:
    missing = length - len(head) - len(rest)
    assert missing >= 0
    return (head + " " * missing + rest).encode()


def multipart(number: int, envelope: bytes, body: bytes, owner: str) -> bytes:
    """Digest srmp.md 1.3, spelled out."""
    delimiter = f"--MSMQ - SOAP boundary, {number}".encode()
    return (
        delimiter
        + b"\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n" % len(envelope)
        + envelope
        + delimiter
        + b"\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n" % len(body)
        + b"Content-Id: body@%s\r\n\r\n" % owner.encode()
        + body
        + delimiter
        + b"--\r\n"
    )


def _type(number: int, fold: str = " ") -> str:
    return f'multipart/related; boundary="MSMQ - SOAP boundary, {number}";{fold}type=text/xml'


_V1 = _padded(
    _ENVELOPE,
    f"<se:Header>{_PATH}<action>MSMQ:mqsender label</action>"
    "<to>http://machine2/msmq/private$/simpleq</to>"
    "<id>uuid:1@00000000-0000-0000-0000-000000000000</id></path>"
    + _properties("20070609T164419", "20070608T164419")
    + _END,
    619,
)
V2_BODY = (
    b'<?xml version="1.0"?>\r\n'
    b'<Order xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    b'xmlns:xsd="http://www.w3.org/2001/XMLSchema">\r\n'
    b"  <orderId>3</orderId>\r\n"
    b"  <orderTime>2007-07-18T20:11:40.2614595-07:00</orderTime>\r\n"
    b"</Order>"
)
_V2 = _padded(
    _ENVELOPE,
    f"<se:Header>{_PATH}<action>MSMQ:</action>"
    f"<to>http://machine2/msmq/private$/simpleQ</to><id>uuid:20503@{V2_QM}</id></path>"
    + _properties("20380119T031407", "20070719T031140")
    + _msmq(0, 3, _ZERO, 0, 32772, V2_QM, "20070723T031140")
    + _END,
    775,
)
V3_BODY = b"Both delivery and commitment receipt requests"
_V3 = _padded(
    '<se:Envelope xmlns:se= "http://schemas.xmlsoap.org/soap/envelope/"\r\n'
    'xmlns:rp="http://schemas.xmlsoap.org/rp/"\r\nxmlns="http://schemas.xmlsoap.org/srmp/">\r\n',
    '<se:Header>\r\n<rp:path se:mustUnderstand="1">\r\n<rp:action>Generic label</rp:action>\r\n'
    "<rp:to>http://machine2/msmq/private$/simpleq</rp:to>\r\n"
    "<rp:id>uuid:1@00000000-0000-0000-0000-000000000008</rp:id>\r\n"
    "<rp:rev>\r\n<rp:via>http://machine1/MSMQ/private$/Q1</rp:via>\r\n</rp:rev>\r\n</rp:path>\r\n"
    + _properties("20070720T032452", "20070719T032452")
    + f'<services xmlns="http://schemas.xmlsoap.org/srmp/"\r\n{_MUST}>\r\n'
    "<commitmentReceiptRequest>\r\n<sendTo>http://machine1/MSMQ/private$/deliverydone</sendTo>\r\n"
    "<negativeOnly/>\r\n<positiveOnly/>\r\n</commitmentReceiptRequest>\r\n"
    "<deliveryReceiptRequest>\r\n<sendTo>http://machine1/MSMQ/private$/receipts</sendTo>\r\n"
    "</deliveryReceiptRequest>\r\n</services>\r\n" + _END,
    1233,
)


def _stream(current: int, inner: str, moment: str, qm: str, length: int) -> bytes:
    sent, expires = f"20070619T{moment}", f"20070620T{moment}"
    return _padded(
        _ENVELOPE,
        f"<se:Header>{_PATH}<action>MSMQ:mqsender label</action>"
        "<to>http://machine2/msmq/private$/tsimpleq</to>"
        "<id>uuid:1@00000000-0000-0000-0000-000000000008</id></path>"
        + _properties(expires, sent)
        + f"<Stream{_MUST}><streamId>{STREAM_ID}</streamId><current>{current}</current>"
        + f"{inner}</Stream>"
        + _msmq(0, 0, _ZERO, 0, 32772, qm, expires)
        + _END,
        length,
    )


_START = (
    "<start><sendReceiptsTo>\r\nhttp://machine1/MSMQ/private$/receipts?SenderStream=XRntV\r\n"
    "</sendReceiptsTo><expiresAt>20070620T165959</expiresAt></start><streamReceiptRequest/>"
)
_V4 = (
    _stream(1, _START, "165959", "dc1cd9a6-8130-4504-88d2-851707fe4632", 1465),
    _stream(2, "", "170000", "6a74a825-57b2-43e5-9d34-f1d8b2b8950a", 1220),
    _stream(3, "<end/>", "170001", "f306d4c7-be95-419a-9e3b-8c751d04b1e9", 1240),
)
V5_ENVELOPE = (
    f"{_ENVELOPE}<se:Header>{_PATH}<action>MSMQ:mqsender label</action>"
    f"<to>MSMQ:MULTICAST=234.1.1.1:8001</to><id>uuid:4494@{V5_QM}</id></path>"
    + _properties("20380119T031407", "20070608T023719")
    + _msmq(0, 3, _ZERO, 8, 32772, V5_QM, "20070612T023719")
    + _END
).encode()
V5_BODY = "ardenwhite".encode("utf-16-le")


def _receipt(to: str, via: str, number: str, qm: str, sent: str, inner: str, block: str) -> bytes:
    action = "MSMQ:" if "machine2/msmq/private$/simpleq" in via else "MSMQ:QM Ordering Ack"
    return (
        f"{_ENVELOPE}<se:Header>{_PATH}<action>{action}</action><to>{to}</to>"
        f"<rev><via>{via}</via></rev><id>uuid:{number}@{qm}</id></path>"
        + _properties("20380119T031407", sent)
        + inner
        + block
        + _END
    ).encode()


V3_QM = "ac678228-2dd6-418b-b31f-0539ffeea853"
_V3_ID = "<id>uuid:1@00000000-0000-0000-0000-000000000000</id>"
_V3_CORRELATION = "AAAAAAAAAAAAAAAAAAAAAAEAAAA="
_RECEIPTS = "http://machine1/MSMQ/private$/receipts"
_SIMPLE = "http://machine2/msmq/private$/simpleq"
V3_DELIVERY = _receipt(
    _RECEIPTS,
    _SIMPLE,
    "34826",
    V3_QM,
    "20070719T032451",
    f"<deliveryReceipt><receivedAt>20070719T032454</receivedAt>{_V3_ID}</deliveryReceipt>",
    _msmq(2, 3, _V3_CORRELATION, 0, 0, V3_QM, "20070723T032451"),
)
V3_COMMITMENT = _receipt(
    _RECEIPTS,
    _SIMPLE,
    "34827",
    V3_QM,
    "20070719T032721",
    "<commitmentReceipt><decidedAt>20070719T032721</decidedAt><decision>positive</decision>"
    f"{_V3_ID}</commitmentReceipt>",
    _msmq(16384, 3, _V3_CORRELATION, 0, 0, V3_QM, "20070723T032721"),
)


def _v4_receipt(last: int, number: str, sent: str, ttrq: str) -> bytes:
    return _receipt(
        f"{_RECEIPTS}?SenderStream=XRntV",
        "http://machine2/msmq/private$/tsimpleq",
        number,
        V5_QM,
        sent,
        f"<streamReceipt><streamId>{STREAM_ID}</streamId><lastOrdinal>{last}</lastOrdinal>"
        "</streamReceipt>",
        _msmq(255, 0, _ZERO, 0, 0, V5_QM, ttrq),
    )


V4_RECEIPT_1 = _v4_receipt(1, "26641", "20070619T165958", "20070623T165958")
V4_RECEIPT_3 = _v4_receipt(3, "26645", "20070619T170001", "20070623T170001")

_POST = "/msmq/private$/"
REQUESTS = {
    "V1": Request(
        "MC-MQSRM 4.1",
        f"{_POST}simpleq",
        "machine2",
        _type(53287, "\r\n "),
        multipart(53287, _V1, b"First Message", OWNER),
        906,
    ),
    "V2": Request(
        "MC-MQSRM 4.2",
        f"{_POST}simpleq",
        "machine2",
        _type(26500, "\r\n\t"),
        multipart(26500, _V2, V2_BODY, V2_QM),
        1273,
    ),
    "V3": Request(
        "MC-MQSRM 4.3",
        f"{_POST}simpleq",
        "machine2",
        _type(95692),
        multipart(95692, _V3, V3_BODY, OWNER),
        1553,
    ),
    "V4.1": Request(
        "MC-MQSRM 4.4, first message",
        f"{_POST}tsimpleq",
        "machine2",
        _type(1672),
        multipart(1672, _V4[0], b"First Message", OWNER),
        1750,
    ),
    "V4.2": Request(
        "MC-MQSRM 4.4, second message",
        f"{_POST}tsimpleq",
        "machine2",
        _type(1672),
        multipart(1672, _V4[1], b"Message 0", OWNER),
        1500,
    ),
    "V4.3": Request(
        "MC-MQSRM 4.4, third message",
        f"{_POST}tsimpleq",
        "machine2",
        _type(1672),
        multipart(1672, _V4[2], b"Last Message", OWNER),
        1524,
    ),
    "V5": Request(
        "MC-MQSRM 4.5",
        "234.1.1.1:8001",
        "234.1.1.1:8001",
        _type(292),
        multipart(292, V5_ENVELOPE, V5_BODY, V5_QM),
        1067,
    ),
}
