"""SRMP as a sending queue manager writes it, and the receipts it reads: from the digest alone.

Nothing here comes from `bridge`, so the wire code of the product is never tested against itself.
Beside it: `post` sends the bytes, `catcher` is where receipts go.
"""

import base64
import calendar
import re
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple
from uuid import UUID, uuid4
from xml.sax.saxutils import escape

from tests.outside.appliance import HOST

NULL = UUID(int=0)
NEVER = "20380119T031407"
FOUR_DAYS = 345_600
MUST = ' se:mustUnderstand="1"'
ZERO = base64.b64encode(bytes(20)).decode()
ORDER_LABEL = "QM Ordering Ack"
_ids = count(1)
_OPEN = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
)
_PATH = '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
_CLOSE = "</se:Header><se:Body></se:Body></se:Envelope>"


def date(unix: float) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(unix))


def unix(text: str) -> int:
    return calendar.timegm(time.strptime(text, "%Y%m%dT%H%M%S"))


def url(name: str, host: str = HOST) -> str:
    return f"http://{host}/msmq/private$/{name}"


def correlation(source: UUID, number: int) -> str:
    """20 bytes: GUID little-endian, then the ordinal. MS-MQMQ 2.2.8"""
    return base64.b64encode(source.bytes_le + struct.pack("<I", number)).decode()


def stream_id(guid: UUID | str, ordinal: int = 1, timestamp: int = 0x65000000) -> str:
    """TimeStamp is the high half. 2.2.5.3.1"""
    return f"uid:{guid}\\{timestamp << 32 | ordinal}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The element `stream`."""

    stream: str
    current: int
    previous: int | None = None
    receipts: str | None = None  # start/sendReceiptsTo
    tag: str = "Stream"

    @property
    def text(self) -> str:
        inner = f"<streamId>{self.stream}</streamId><current>{self.current}</current>"
        if self.previous is not None:
            inner += f"<previous>{self.previous}</previous>"
        if self.receipts is not None:
            to = escape(self.receipts)
            inner += f"<start><sendReceiptsTo>{to}</sendReceiptsTo></start>"
        return f"<{self.tag}{MUST}>{inner}</{self.tag}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A user message; the defaults are an express message as Windows sends it."""

    to: str
    body: bytes = b""
    source: UUID = field(default_factory=uuid4)
    number: int = field(default_factory=lambda: next(_ids))
    label: str = ""
    action: str | None = None  # in place of MSMQ: and the label
    path: str = ""  # further children of path
    sent: int = field(default_factory=lambda: int(time.time()))
    expires: str = NEVER
    services: str = ""  # children of services
    step: Step | None = None
    header: str = ""  # further header entries
    bare: bool = False  # without Msmq
    priority: int = 3
    kind: int = 0  # Class
    flags: str = ""  # Journal, DeadLetter
    correlation: str = ZERO
    msmq: str = ""  # further children of Msmq
    body_type: int = 0
    app: int = 0
    hash: int = 32772
    ttrq: int = FOUR_DAYS

    @property
    def id(self) -> str:
        """The Identifier a record carries."""
        return f"{NULL}\\1" if self.bare else f"{self.source}\\{self.number}"

    @property
    def envelope(self) -> str:
        action = escape(f"MSMQ:{self.label}" if self.action is None else self.action)
        return (
            f"{_OPEN}{_PATH}<action>{action}</action><to>{escape(self.to)}</to>"
            f"<id>uuid:{self.number}@{self.source}</id>{self.path}</path>"
            f"<properties{MUST}><expiresAt>{self.expires}</expiresAt>"
            f"<sentAt>{date(self.sent)}</sentAt></properties>"
            + (f"<services{MUST}>{self.services}</services>" if self.services else "")
            + (self.step.text if self.step else "")
            + self.header
            + ("" if self.bare else self._msmq)
            + _CLOSE
        )

    @property
    def _msmq(self) -> str:
        priority = 0 if self.step else self.priority
        return (
            f'<Msmq xmlns="msmq.namespace.xml"><Class>{self.kind}</Class>'
            f"<Priority>{priority}</Priority>{self.flags}"
            f"<Correlation>{self.correlation}</Correlation><App>{self.app}</App>"
            f"<BodyType>{self.body_type}</BodyType><HashAlgorithm>{self.hash}</HashAlgorithm>"
            f"{self.msmq}<SourceQmGuid>{self.source}</SourceQmGuid>"
            f"<TTrq>{date(self.sent + self.ttrq)}</TTrq></Msmq>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One stream of one sender to one queue name."""

    to: str
    receipts: str
    stream: str = field(default_factory=lambda: stream_id(uuid4()))
    tag: str = "Stream"
    name: str = field(default_factory=lambda: uuid4().hex[:8])  # begins every body
    source: UUID = field(default_factory=uuid4)

    def body(self, current: int) -> bytes:
        return f"{self.name} {current}".encode()

    def mail(
        self,
        current: int,
        previous: int | None = None,
        *,
        start: bool | None = None,
        body: bytes | None = None,
        source: UUID | None = None,
        services: str = "<durable/>",
        flags: str = "",
        label: str = "",
        sent: int | None = None,
        ttrq: int = FOUR_DAYS,
        number: int | None = None,
    ) -> Mail:
        """Message `current`; the first one carries start, unless told otherwise."""
        starts = current == 1 if start is None else start
        step = Step(
            stream=self.stream,
            current=current,
            previous=previous,
            receipts=self.receipts if starts else None,
            tag=self.tag,
        )
        return Mail(
            to=self.to,
            body=self.body(current) if body is None else body,
            source=source or self.source,
            number=next(_ids) if number is None else number,
            services=services,
            flags=flags,
            label=label,
            step=step,
            sent=int(time.time()) if sent is None else sent,
            ttrq=ttrq,
        )


class Part(NamedTuple):
    content_id: str
    data: bytes


BOUNDARY = "MSMQ - SOAP boundary, 26500"


def body_part(data: bytes, owner: UUID = NULL) -> Part:
    return Part(f"body@{owner}", data)


def multipart(
    envelope: bytes,
    parts: Sequence[Part],
    *,
    boundary: str = BOUNDARY,
    counted: bool = True,
    gap: bytes = b"",
) -> bytes:
    """Digest 1.3; other senders do not count, or write a line end before the delimiter."""
    delimiter = gap + b"--" + boundary.encode()
    size = b"Content-Length: %d\r\n"
    whole = delimiter.removeprefix(gap) + b"\r\nContent-Type: text/xml; charset=UTF-8\r\n"
    whole += (size % len(envelope) if counted else b"") + b"\r\n" + envelope + delimiter
    for name, data in parts:
        whole += b"\r\nContent-Type: application/octet-stream\r\n"
        whole += size % len(data) if counted else b""
        whole += b"Content-Id: %s\r\n\r\n" % name.encode() if name else b"\r\n"
        whole += data + delimiter
    return whole + b"--\r\n"


def content_type(boundary: str = BOUNDARY) -> str:
    return f'multipart/related; boundary="{boundary}"; type=text/xml'


def head(
    length: int,
    *,
    target: str = "/msmq/private$/any",
    host: str = HOST,
    kind: str = content_type(),
    more: str = "",
) -> bytes:
    """Digest 1.2"""
    return (
        f"POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {length}\r\n"
        f'SOAPAction: "MSMQMessage"\r\nProxy-Accept: NonInteractiveClient\r\n{more}\r\n'
    ).encode()


def whole(body: bytes, **options: str) -> bytes:
    return head(len(body), **options) + body


def request(mail: Mail) -> bytes:
    return text_request(mail.envelope, mail.body, mail.source)


def text_request(envelope: str, body: bytes = b"", owner: UUID = NULL) -> bytes:
    """An envelope that somebody has changed."""
    return whole(multipart(envelope.encode(), [body_part(body, owner)]))


# -- receipts -------------------------------------------------------------------------------

_WRITTEN = (
    f"{_OPEN}{_PATH}<action>{{action}}</action><to>{{to}}</to><rev><via>{{via}}</via></rev>"
    f"<id>uuid:{{number}}@{{source}}</id></path><properties{MUST}><expiresAt>{NEVER}</expiresAt>"
    '<sentAt>{sent}</sentAt></properties>{receipt}<Msmq xmlns="msmq.namespace.xml">'
    "<Class>{kind}</Class><Priority>{priority}</Priority><Correlation>{correlation}</Correlation>"
    "<App>0</App><BodyType>0</BodyType><HashAlgorithm>0</HashAlgorithm>"
    f"<SourceQmGuid>{{owner}}</SourceQmGuid><TTrq>{{ttrq}}</TTrq></Msmq>{_CLOSE}"
)
_STREAM = (
    "<streamReceipt><streamId>{stream}</streamId><lastOrdinal>{last}</lastOrdinal></streamReceipt>"
)
_DELIVERY = "<deliveryReceipt><receivedAt>{at}</receivedAt><id>{acked}</id></deliveryReceipt>"
_COMMITMENT = (
    "<commitmentReceipt><decidedAt>{at}</decidedAt><decision>{decision}</decision>"
    "<id>{acked}</id></commitmentReceipt>"
)
_NAMES = ("delivery", "stream", "final", "final", "commitment")
_RECEIPTS = (_DELIVERY, _STREAM, _STREAM + _COMMITMENT, _COMMITMENT + _STREAM, _COMMITMENT)


def _matcher(layout: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^<]*)", re.escape(layout)))


_ENVELOPES = tuple(
    (name, _matcher(_WRITTEN.replace("{receipt}", inner)))
    for name, inner in zip(_NAMES, _RECEIPTS, strict=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Text as it lies in the XML; `type` as in the table of digest 3.7."""

    type: str
    action: str
    to: str
    via: str
    number: int
    source: UUID
    sent: int
    kind: int
    priority: int
    correlation: str
    stream: str = ""
    last: int = 0
    at: int = 0  # receivedAt or decidedAt
    acked: str = ""
    decision: str = ""


def parse_receipt(data: bytes) -> Receipt:
    """The layout of digest 3.7, byte for byte but for ids and dates."""
    text = data.decode()
    for name, layout in _ENVELOPES:
        if found := layout.fullmatch(text):
            return _receipt(name, found.groupdict())
    raise AssertionError(f"not the layout of a receipt: {text}")


def _receipt(name: str, values: dict[str, str]) -> Receipt:
    sent = unix(values["sent"])
    assert unix(values["ttrq"]) == sent + FOUR_DAYS, values
    assert values["owner"] == values["source"] == str(UUID(values["source"])), values
    return Receipt(
        type=name,
        action=values["action"],
        to=values["to"],
        via=values["via"],
        number=int(values["number"]),
        source=UUID(values["source"]),
        sent=sent,
        kind=int(values["kind"]),
        priority=int(values["priority"]),
        correlation=values["correlation"],
        stream=values.get("stream", ""),
        last=int(values.get("last", 0)),
        at=unix(values["at"]) if "at" in values else 0,
        acked=values.get("acked", ""),
        decision=values.get("decision", ""),
    )
