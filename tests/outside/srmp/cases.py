"""What must be refused with 400, and what must be taken although it looks odd. SR-5, digest 3.1

A case is a good message and changes of its text; every change must find what it replaces.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID, uuid4

from tests.outside.srmp.wire import (
    MUST,
    NEVER,
    Flow,
    Mail,
    date,
    stream_id,
    text_request,
    url,
    whole,
)

Change = tuple[str, str]
RECEIPTS = "http://127.0.0.1:9/msmq/private$/r"
_BODY = "<se:Body></se:Body>"
_RP = "http://schemas.xmlsoap.org/rp/"
_SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


class Case(NamedTuple):
    name: str
    base: str  # plain, bare, stream, or the name of a receipt
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A request, and how to find the record it would become."""

    name: str
    request: bytes
    body: bytes
    id: str


def _plain(body: bytes) -> Mail:
    return Mail(
        to=url("plain"),
        body=body,
        label="good",
        path="<rev><via>http://machine1/msmq/q</via></rev>",
        services="<durable/>"
        "<deliveryReceiptRequest><sendTo>http://127.0.0.1:9/d</sendTo></deliveryReceiptRequest>"
        "<commitmentReceiptRequest><sendTo>http://127.0.0.1:9/c</sendTo><positiveOnly/>"
        "</commitmentReceiptRequest>",
        msmq=f"<ConnectorType>{UUID(int=5)}</ConnectorType>"
        f"<Eod><First/><Last/><ConnectorId>{UUID(int=6)}</ConnectorId></Eod>"
        "<Provider><Type>1</Type><Name>p</Name></Provider>",
    )


def _calm(body: bytes) -> Mail:
    """A plain one that asks for nothing."""
    return Mail(to=url("plain"), body=body, label="calm")


def _bare(body: bytes) -> Mail:
    return Mail(to=url("plain"), body=body, bare=True)


def _stream(body: bytes) -> Mail:
    return Flow(to=url("orders"), receipts=RECEIPTS).mail(1, body=body)


_STREAM_RECEIPT = (
    f"<streamReceipt><streamId>{stream_id(UUID(int=3))}</streamId><lastOrdinal>4</lastOrdinal>"
    "</streamReceipt>"
)
_DELIVERY_RECEIPT = (
    "<deliveryReceipt><receivedAt>20250101T000000</receivedAt>"
    f"<id>uuid:1@{UUID(int=3)}</id></deliveryReceipt>"
)
_COMMITMENT_RECEIPT = (
    "<commitmentReceipt><decidedAt>20250101T000000</decidedAt><decision>positive</decision>"
    f"<id>uuid:1@{UUID(int=3)}</id></commitmentReceipt>"
)


def delivery_receipt(name: str = "plain", kind: int = 2) -> Mail:
    return Mail(to=url(name), kind=kind, header=_DELIVERY_RECEIPT)


def commitment_receipt(name: str = "plain", kind: int = 16384, decision: str = "positive") -> Mail:
    header = _COMMITMENT_RECEIPT.replace("positive", decision)
    return Mail(to=url(name), kind=kind, header=header)


def stream_receipt(name: str = "order_queue$", kind: int = 255) -> Mail:
    return Mail(to=url(name), kind=kind, header=_STREAM_RECEIPT, label="QM Ordering Ack")


def final_receipt(
    name: str = "order_queue$", kind: int = 16384, decision: str = "positive"
) -> Mail:
    header = _STREAM_RECEIPT + _COMMITMENT_RECEIPT.replace("positive", decision)
    return Mail(to=url(name), kind=kind, header=header, label="QM Ordering Ack")


_BASES: dict[str, Callable[[bytes], Mail]] = {
    "plain": _plain,
    "calm": _calm,
    "bare": _bare,
    "stream": _stream,
    "delivery": lambda _: delivery_receipt(),
    "commitment": lambda _: commitment_receipt(),
    "streamReceipt": lambda _: stream_receipt(),
}


def make(case: Case) -> Made:
    body = f"{case.name} {uuid4()}".encode()
    mail = _BASES[case.base](body)
    text = mail.envelope
    for old, new in case.changes:
        changed = re.sub(old, lambda _, new=new: new, text, flags=re.DOTALL)  # type: ignore[misc]
        assert changed != text, f"{case.name}: nothing to change for {old}"
        text = changed
    if case.base in ("delivery", "commitment", "streamReceipt"):
        return Made(
            name=case.name,
            request=whole(text.encode(), kind="text/xml"),
            body=body,
            id=mail.id,
        )
    request = text_request(text, body, mail.source)
    return Made(name=case.name, request=request, body=body, id=mail.id)


def without(base: str, *elements: str) -> Iterator[Case]:
    """The first such element and all that is in it."""
    for name in elements:
        tag = rf"<{name}(?: [^>]*)?(?:/>|>.*?</{name}>)"
        yield Case(f"no {name}", base, ((tag, ""),))


def with_text(base: str, element: str, *texts: str) -> Iterator[Case]:
    """The element with another text."""
    for text in texts:
        yield Case(
            f"{element} is {text[:70]!r}",
            base,
            ((rf"<{element}>[^<]*</{element}>", f"<{element}>{text}</{element}>"),),
        )


def not_understood(base: str, element: str, start: str) -> Iterator[Case]:
    for name, value in (
        ("nothing", ""),
        ("0", ' se:mustUnderstand="0"'),
        ("true", ' se:mustUnderstand="true"'),
        ("no namespace", ' mustUnderstand="1"'),
    ):
        change = (re.escape(start + MUST), start + value)
        yield Case(f"mustUnderstand of {element}: {name}", base, (change,))


_BAD_DATES = ("", "2007-06-09T16:44:19", "20070609", "20071309T164419", "20070230T000000")
_MORE_BAD_DATES = ("20070609T164419Z", "20070609T246060", "tomorrow")
_BAD_NUMBERS = ("", "x", "-1", "1.5", "0x10", "1 2", "18446744073709551616")
_BAD_GUIDS = ("", "x", "{32221eda-9376-46df-b6ed-783091123831}", "32221eda937646dfb6ed783091123831")
_BAD_URLS = ("", "ftp://a/b", "MSMQ:DIRECT=OS:a\\private$\\b", "DIRECT=http://a/msmq/b", "/msmq/b")
_GUID = "32221eda-9376-46df-b6ed-783091123831"

REFUSED: tuple[Case, ...] = (
    # The envelope, 2.2.2
    *without("plain", "se:Header", "se:Body"),
    Case("Body before Header", "plain", ((_BODY, ""), ("<se:Header>", f"{_BODY}<se:Header>"))),
    Case("something between them", "plain", ((_BODY, f"<other/>{_BODY}"),)),
    Case("something before Header", "plain", (("<se:Header>", "<other/><se:Header>"),)),
    Case("another root", "plain", (("se:Envelope", "se:Enveloppe"),)),
    Case("another SOAP", "plain", ((_SOAP, "http://www.w3.org/2003/05/soap-envelope"),)),
    Case("two envelopes", "plain", (("(<se:Envelope.*</se:Envelope>)", "<a/><b/>"),)),
    Case("no XML", "plain", ((".+", "hello"),)),
    Case("nothing", "plain", ((".+", ""),)),
    Case("not closed", "plain", (("</se:Envelope>", ""),)),
    Case("an unknown prefix", "plain", (("<action>", "<x:action>"), ("</action>", "</x:action>"))),
    Case("a DTD", "plain", (("^", "<!DOCTYPE a>"),)),
    Case(
        "an entity",
        "plain",
        (("^", '<!DOCTYPE a [<!ENTITY q "plain">]>'), (r"/plain</to>", "/&q;</to>")),
    ),
    Case("an instruction before it", "plain", (("^", "<?go now?>"),)),
    Case("an instruction in it", "plain", (("<se:Header>", "<se:Header><?go now?>"),)),
    # path, 2.2.4
    *without("plain", "path", "action", "to", "id"),
    *without("bare", "path", "action", "to", "id"),
    *not_understood("plain", "path", f'<path xmlns="{_RP}"'),
    Case("path of another namespace", "plain", ((_RP, "http://schemas.xmlsoap.org/rq/"),)),
    Case("two paths", "plain", (("(?=<properties)", f'<path xmlns="{_RP}"{MUST}></path>'),)),
    Case("two via", "plain", (("</rev>", "<via>http://machine1/msmq/p</via></rev>"),)),
    *with_text("plain", "to", *_BAD_URLS),
    *with_text("plain", "id", "", "1", "uuid:1", f"1@{_GUID}", f"uuid:x@{_GUID}", "uuid:1@x"),
    *with_text("plain", "id", f"uuid:-1@{_GUID}", f"uuid:@{_GUID}", f"uuid:1@{{{_GUID}}}"),
    # properties, 2.2.5.1
    *without("plain", "properties", "expiresAt"),
    *without("bare", "properties", "expiresAt"),
    *not_understood("plain", "properties", "<properties"),
    *with_text("plain", "expiresAt", *_BAD_DATES, *_MORE_BAD_DATES),
    *with_text("bare", "expiresAt", *_BAD_DATES),
    *with_text("plain", "sentAt", *_BAD_DATES[1:]),
    # services, 2.2.5.2
    *not_understood("plain", "services", "<services"),
    Case("delivery without sendTo", "plain", (("<sendTo>[^<]*/d</sendTo>", ""),)),
    Case("commitment without sendTo", "plain", (("<sendTo>[^<]*/c</sendTo>", ""),)),
    *with_text("plain", "sendTo", *_BAD_URLS),
    # stream, 2.2.5.3
    *not_understood("stream", "stream", "<Stream"),
    *without("stream", "Msmq", "streamId", "current", "sendReceiptsTo"),
    *with_text("stream", "sendReceiptsTo", *_BAD_URLS),
    *with_text("stream", "current", *_BAD_NUMBERS),
    *with_text("stream", "streamId", "", _GUID, f"uid:{_GUID}", f"{_GUID}\\1", f"uid:{_GUID}\\"),
    *with_text("stream", "streamId", f"uid:{_GUID}\\x", f"uid:{_GUID}/1", "uid:x\\1"),
    *with_text("stream", "streamId", f"uid:{_GUID}\\18446744073709551616", f"uuid:{_GUID}\\1"),
    Case("previous is no number", "stream", (("</current>", "</current><previous>x</previous>"),)),
    # Msmq, 2.2.6
    *without("plain", "Class", "Priority", "BodyType", "SourceQmGuid", "TTrq"),
    *with_text("plain", "Class", *_BAD_NUMBERS[:4]),
    *with_text("plain", "Priority", "8", *_BAD_NUMBERS),
    *with_text("plain", "BodyType", *_BAD_NUMBERS),
    *with_text("plain", "App", *_BAD_NUMBERS[1:]),
    *with_text("plain", "HashAlgorithm", *_BAD_NUMBERS[1:]),
    *with_text("plain", "SourceQmGuid", *_BAD_GUIDS),
    *with_text("plain", "ConnectorType", *_BAD_GUIDS[1:]),
    *with_text("plain", "ConnectorId", *_BAD_GUIDS[1:]),
    *with_text("plain", "TTrq", *_BAD_DATES, *_MORE_BAD_DATES),
    *with_text("plain", "Correlation", "AAAA", "A", "?" * 28, "A" * 26 + "==", "A" * 32),
    *with_text("plain", "Type", *_BAD_NUMBERS[:4]),
    # receipts, 2.2.5.4 to 2.2.5.6
    *without("delivery", "receivedAt"),
    *with_text("delivery", "receivedAt", *_BAD_DATES[:3]),
    *without("commitment", "decidedAt", "decision"),
    *with_text("commitment", "decision", "", "maybe"),
    *without("streamReceipt", "streamId", "lastOrdinal"),
    *with_text("streamReceipt", "lastOrdinal", *_BAD_NUMBERS[:4]),
    # SOAP 1.1, 4.2.3
    Case(
        "an unknown entry that must be understood",
        "plain",
        (("</se:Header>", f'<a:x xmlns:a="urn:a"{MUST}/></se:Header>'),),
    ),
)

_EARLIER, _LATER = "20250101T000000", date(2_000_000_000)
ACCEPTED: tuple[Case, ...] = (
    Case("Stream", "stream", (("</path>", " </path>"),)),
    Case("stream", "stream", (("<Stream", "<stream"), ("</Stream>", "</stream>"))),
    Case("a stream without services", "stream", (("<services.*</services>", ""),)),
    Case("a stream that is not durable", "stream", (("<durable/>", "<other/>"),)),
    Case(
        "children of 4.4",
        "stream",
        (("</start>", f"<expiresAt>{NEVER}</expiresAt></start><streamReceiptRequest/><end/>"),),
    ),
    Case("an id of somebody else", "stream", (("@[^<]*</id>", f"@{_GUID}</id>"),)),
    Case(
        "white space in urls",
        "stream",
        (
            ("<to>", "<to>\r\n   "),
            ("</to>", "\t\r\n</to>"),
            ("<sendReceiptsTo>", "<sendReceiptsTo>\n"),
            ("</sendReceiptsTo>", "\n </sendReceiptsTo>"),
        ),
    ),
    Case("white space in numbers", "stream", (("<current>1", "<current> 1\n"), (">0<", "> 0 <"))),
    Case(
        "rev before id",
        "calm",
        (("<id>", "<rev><via>http://machine1/msmq/q</via></rev><id>"),),
    ),
    Case("expiresAt after TTrq", "calm", (("<TTrq>[^<]*", f"<TTrq>{_LATER}"),)),
    Case("TTrq after expiresAt", "calm", (("<expiresAt>[^<]*", f"<expiresAt>{_EARLIER}"),)),
    Case(
        "unknown entries",
        "calm",
        (
            (
                "</se:Header>",
                '<a:x xmlns:a="urn:a">hello<b/></a:x><y se:mustUnderstand="0"/></se:Header>',
            ),
        ),
    ),
    Case("a Body with content", "calm", ((_BODY, '<se:Body><o xmlns="urn:o">1</o></se:Body>'),)),
    Case("an empty Body", "calm", ((_BODY, "<se:Body/>"),)),
    Case("unknown children", "calm", (("<Class>", "<Klass>1</Klass><Class>"),)),
    Case("unknown in path", "calm", (("<action>", "<other>1</other><action>"),)),
    Case(
        "unknown in properties", "calm", (("<expiresAt>", "<inReplyTo>1</inReplyTo><expiresAt>"),)
    ),
    Case(
        "what path may have",
        "calm",
        (("</path>", "<fwd><via>a</via></fwd><from>b</from><relatesTo>c</relatesTo></path>"),),
    ),
    Case("no sentAt", "calm", (("<sentAt>[^<]*</sentAt>", ""),)),
    Case("no Correlation", "calm", (("<Correlation>[^<]*</Correlation>", ""),)),
    Case("no App, no HashAlgorithm", "calm", (("<App>0</App>", ""), ("<Hash.*Algorithm>", ""))),
    Case("an empty via", "calm", (("</path>", "<rev><via/></rev></path>"),)),
    Case("an id that means nothing", "bare", (("<id>[^<]*", "<id>whatever"),)),
    Case("the bare message", "bare", (("<action>", "<action >"),)),
    Case("an action without prefix", "bare", (("<action>[^<]*", "<action>Generic label"),)),
    Case("other attributes", "calm", (("<properties ", '<properties id="p" '),)),
)
