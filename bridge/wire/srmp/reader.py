"""Bytes to an Envelope. Any departure from section 2 of the digest is a WireError, and ends as
400 without a trace (SR-5). What Microsoft's own examples do is accepted: see 3.1 of the digest.

Elements are matched by namespace and local name, in any order; one that may stand once and
stands twice is refused.
"""

from __future__ import annotations

import re
from typing import Final

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.model.message import NO_CORRELATION
from bridge.wire.srmp.envelope import (
    MSMQ,
    MSMQ_PREFIX,
    RP,
    SOAP,
    SRMP,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    MsmqBlock,
    Provider,
    Services,
    Stream,
    StreamReceipt,
)
from bridge.wire.srmp.signature import DS, read_signature
from bridge.wire.srmp.tree import Element, content_of, parse_xml, source_of
from bridge.wire.srmp.values import (
    SPACE,
    U32,
    U64,
    is_url,
    parse_base64,
    parse_date,
    parse_guid,
    parse_id,
    parse_name,
    parse_number,
    parse_stream_id,
    parse_url,
    trim,
)

_MUST_UNDERSTAND: Final = (SOAP, "mustUnderstand")
_ACTOR: Final = (SOAP, "actor")
_NEXT: Final = "http://schemas.xmlsoap.org/soap/actor/next"
_MULTICAST: Final = re.compile(r"MSMQ:MULTICAST=[0-9.]{7,15}:[0-9]{1,5}", re.I)
_MAX_PRIORITY: Final = 7
MAX_NAMES: Final = 8192  # as in a binary packet: the specification has no limit
_KNOWN: Final = frozenset(
    {(RP, "path"), (MSMQ, "Msmq"), (DS, "Signature")}
    | {(SRMP, name) for name in ("properties", "services", "stream", "Stream")}
    | {(SRMP, name) for name in ("deliveryReceipt", "commitmentReceipt", "streamReceipt")}
)


def read_envelope(data: bytes) -> Envelope:
    header, _ = _sections(parse_xml(data))
    for entry in header.children:
        if entry.tag not in _KNOWN and _is_mandatory(entry) and _is_for_us(entry):
            space, name = entry.tag
            rule = "SOAP 1.1 4.2.3: a header entry that is not understood"
            raise WireError("mustUnderstand", f"{name[:40]} of {space[:80]!r}", rule)
    path = _mandatory(_require(header, RP, "path"))
    properties = _mandatory(_require(header, SRMP, "properties"))
    msmq = _msmq(_optional(header, MSMQ, "Msmq"))
    stream = _stream(_stream_entry(header))
    if stream is not None and msmq is None:
        raise WireError("stream", stream.id.text, "SR-5: a stream needs Msmq")
    identifier = _text(_require(path, RP, "id"))
    if msmq is not None:
        parse_id("id", identifier)
    sent_at = _optional(properties, SRMP, "sentAt")
    signature = _optional(header, DS, "Signature")
    return Envelope(
        action=_action(_require(path, RP, "action")),
        to=_destination(_text(_require(path, RP, "to"))),
        id=identifier,
        via=_via(_optional(path, RP, "rev")),
        expires_at=_date(properties, "expiresAt"),
        sent_at=None if sent_at is None else parse_date("sentAt", _text(sent_at)),
        services=_services(_optional(header, SRMP, "services")),
        stream=stream,
        delivery_receipt=_delivery_receipt(_optional(header, SRMP, "deliveryReceipt")),
        stream_receipt=_stream_receipt(_optional(header, SRMP, "streamReceipt")),
        commitment_receipt=_commitment_receipt(_optional(header, SRMP, "commitmentReceipt")),
        msmq=msmq,
        signature=None if signature is None else read_signature(signature, data),
    )


def soap_texts(data: bytes) -> tuple[str, str]:
    """The SOAP header and the SOAP body as their sender wrote them, tags included. SR-9"""
    header, body = _sections(parse_xml(data))
    return source_of(header, data).decode(), source_of(body, data).decode()


def place_of_to(data: bytes) -> slice:
    """Where the text of `<to>` lies, with all that stands around it between the tags."""
    header, _ = _sections(parse_xml(data))
    return content_of(_require(_require(header, RP, "path"), RP, "to"), data)


def _sections(root: Element) -> tuple[Element, Element]:
    """MC-MQSRM 2.2.2: Header is the first child, Body comes directly after it."""
    if root.tag != (SOAP, "Envelope"):
        raise WireError("Envelope", root.tag[1][:80], "SR-5: se:Envelope")
    expected = [(SOAP, "Header"), (SOAP, "Body")]
    if [child.tag for child in root.children[:2]] != expected:
        raise WireError("Envelope", len(root.children), "SR-5: Header, then Body")
    if any(child.tag in expected for child in root.children[2:]):
        raise WireError("Envelope", len(root.children), "SR-5: one Header and one Body")
    return root.children[0], root.children[1]


def _is_mandatory(entry: Element) -> bool:
    return entry.attributes.get(_MUST_UNDERSTAND) == "1"  # only "1" counts


def _is_for_us(entry: Element) -> bool:
    """SOAP 1.1 4.2.2: without an actor it is for the recipient of the message; `next` is for the
    first that processes it. Any other actor is another machine, which is not asked for."""
    return trim(entry.attributes.get(_ACTOR, "")) in ("", _NEXT)


def _mandatory(entry: Element) -> Element:
    if not _is_mandatory(entry):
        raise WireError("mustUnderstand", entry.tag[1][:40], "SR-5: must be 1")
    return entry


def _optional(parent: Element, space: str, name: str) -> Element | None:
    return parent.find((space, name))


def _require(parent: Element, space: str, name: str) -> Element:
    found = _optional(parent, space, name)
    if found is None:
        raise WireError(name, None, "SR-5: missing")
    return found


def _text(element: Element) -> str:
    return trim(element.text)


def _action(element: Element) -> str:
    """A label is all that follows `MSMQ:` (MC-MQSRM 3.1.5.1.1), blanks at its end, too. A line end
    behind it, and what follows that, is the layout of the XML."""
    text = element.text.lstrip(SPACE)
    said = text.rstrip(SPACE)
    blanks, _, _ = text[len(said) :].replace("\r", "\n").partition("\n")
    return said + blanks


def _date(parent: Element, name: str) -> int:
    return parse_date(name, _text(_require(parent, SRMP, name)))


def _url(parent: Element, name: str) -> str:
    return parse_url(name, _text(_require(parent, SRMP, name)))


def _destination(text: str) -> str:
    return text if _MULTICAST.fullmatch(text) else parse_url("to", text)


def _via(rev: Element | None) -> str:
    """Neither empty nor in a form that we know: no response queue. MC-MQSRM 2.2.4.4"""
    via = None if rev is None else _optional(rev, RP, "via")
    text = "" if via is None else parse_name("via", _text(via))
    return text if is_url(text) or text.startswith(MSMQ_PREFIX) else ""


def _services(element: Element | None) -> Services | None:
    if element is None:
        return None
    _mandatory(element)
    delivery = _optional(element, SRMP, "deliveryReceiptRequest")
    commitment = _optional(element, SRMP, "commitmentReceiptRequest")
    return Services(
        durable=_optional(element, SRMP, "durable") is not None,
        delivery_to=None if delivery is None else _url(delivery, "sendTo"),
        commitment_to=None if commitment is None else _url(commitment, "sendTo"),
        positive=commitment is not None and _flag(commitment, SRMP, "positiveOnly"),
        negative=commitment is not None and _flag(commitment, SRMP, "negativeOnly"),
    )


def _flag(parent: Element, space: str, name: str) -> bool:
    return _optional(parent, space, name) is not None


def _stream_entry(header: Element) -> Element | None:
    """The text of the specification writes `stream`, its examples `Stream`."""
    small, capital = _optional(header, SRMP, "stream"), _optional(header, SRMP, "Stream")
    if small is not None and capital is not None:
        raise WireError("stream", "twice", "SR-5: at most once")
    return capital if small is None else small


def _stream(element: Element | None) -> Stream | None:
    if element is None:
        return None
    _mandatory(element)
    # unsignedLong in 2.2.5.3.2, but the attributes behind them have 32 bits (3.1.1.2).
    current = parse_number("current", _text(_require(element, SRMP, "current")), U32)
    previous = _optional(element, SRMP, "previous")
    start = _optional(element, SRMP, "start") if current == 1 else None  # else ignored
    return Stream(
        id=parse_stream_id("streamId", _text(_require(element, SRMP, "streamId"))),
        current=current,
        previous=None if previous is None else parse_number("previous", _text(previous), U32),
        receipts_to=None if start is None else _url(start, "sendReceiptsTo"),
    )


def _delivery_receipt(element: Element | None) -> DeliveryReceipt | None:
    if element is None:
        return None
    identifier = _text(_require(element, SRMP, "id"))
    return DeliveryReceipt(received_at=_date(element, "receivedAt"), id=identifier)


def _commitment_receipt(element: Element | None) -> CommitmentReceipt | None:
    if element is None:
        return None
    decision = _text(_require(element, SRMP, "decision"))
    if decision not in ("positive", "negative"):
        raise WireError("decision", decision[:40], "SR-5: positive or negative")
    return CommitmentReceipt(
        decided_at=_date(element, "decidedAt"),
        positive=decision == "positive",
        id=_text(_require(element, SRMP, "id")),
    )


def _stream_receipt(element: Element | None) -> StreamReceipt | None:
    if element is None:
        return None
    last = _text(_require(element, SRMP, "lastOrdinal"))
    return StreamReceipt(
        stream_id=parse_stream_id("streamId", _text(_require(element, SRMP, "streamId"))),
        last_ordinal=parse_number("lastOrdinal", last, U32),
    )


def _msmq(element: Element | None) -> MsmqBlock | None:
    if element is None:
        return None
    priority = _number(element, "Priority")
    if priority > _MAX_PRIORITY:
        raise WireError("Priority", priority, "SR-5: 0 to 7")
    eod = _optional(element, MSMQ, "Eod")
    return MsmqBlock(
        source=parse_guid("SourceQmGuid", _text(_require(element, MSMQ, "SourceQmGuid"))),
        time_to_reach_queue=parse_date("TTrq", _text(_require(element, MSMQ, "TTrq"))),
        message_class=_number(element, "Class", U64),  # one that nobody knows is ignored (SR-8)
        priority=priority,
        body_type=_number(element, "BodyType"),
        journal=_flag(element, MSMQ, "Journal"),
        dead_letter=_flag(element, MSMQ, "DeadLetter"),
        trace=_flag(element, MSMQ, "Trace"),
        correlation=_correlation(element),
        connector_type=_maybe_guid(element, "ConnectorType"),
        app=_maybe_number(element, "App"),
        hash_algorithm=_maybe_number(element, "HashAlgorithm"),
        first=eod is not None and _flag(eod, MSMQ, "First"),
        last=eod is not None and _flag(eod, MSMQ, "Last"),
        connector_qm=None if eod is None else _maybe_guid(eod, "ConnectorId"),
        provider=_provider(_optional(element, MSMQ, "Provider")),
        destination_mqf=_names(element, "DestinationMqf"),
        admin_mqf=_names(element, "AdminMqf"),
        response_mqf=_names(element, "ResponseMqf"),
    )


def _number(parent: Element, name: str, most: int = U32) -> int:
    return parse_number(name, _text(_require(parent, MSMQ, name)), most)


def _maybe_number(parent: Element, name: str) -> int | None:
    found = _optional(parent, MSMQ, name)
    return None if found is None else parse_number(name, _text(found), U32)


def _maybe_guid(parent: Element, name: str) -> Guid | None:
    found = _optional(parent, MSMQ, name)
    return None if found is None else parse_guid(name, _text(found))


def _correlation(parent: Element) -> bytes | None:
    found = _optional(parent, MSMQ, "Correlation")
    if found is None:
        return None
    raw = parse_base64("Correlation", found.text)
    if len(raw) != len(NO_CORRELATION):
        raise WireError("Correlation", len(raw), "SR-5: 20 bytes")
    return raw


def _provider(element: Element | None) -> Provider | None:
    if element is None:
        return None
    name = parse_name("Name", _text(_require(element, MSMQ, "Name")))
    return Provider(type=_number(element, "Type"), name=name)


def _names(parent: Element, name: str) -> tuple[str, ...]:
    """Split by white space. MC-MQSRM 2.2.6.14; a comma splits them everywhere else"""
    found = _optional(parent, MSMQ, name)
    text = "" if found is None else trim(found.text)
    if "," in text:
        raise WireError(name, text[:80], "MS-MQMQ 2.1.1: no comma in a name")
    names = tuple(text.split(None, MAX_NAMES))
    if len(names) > MAX_NAMES:
        raise WireError(name, len(names), f"at most {MAX_NAMES} names")
    return tuple(parse_name(name, one) for one in names)
