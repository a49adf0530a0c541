"""An Envelope as Windows writes it: compact, no declaration, one blank between attributes.

The order is that of Windows' own output (digest 3.7 and V5), which is not quite what
MC-MQSRM 3.1.7.2.4 says: `rev` before `id`, and App, Correlation and HashAlgorithm even if zero.
"""

from __future__ import annotations

from typing import Final

from bridge.model.message import NO_CORRELATION
from bridge.wire.srmp.envelope import (
    MSMQ,
    RP,
    SOAP,
    SRMP,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    MsmqBlock,
    Services,
    Stream,
    StreamReceipt,
)
from bridge.wire.srmp.signature import signature_xml
from bridge.wire.srmp.values import base64_text, date_text, escape

# The text of MC-MQSRM (2.2.5.3, 3.1.7.2.4) has `stream`, its examples (4.4) have `Stream`.
STREAM_TAG: Final = "stream"

_OPEN: Final = f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}"><se:Header>'
_CLOSE: Final = "</se:Header><se:Body></se:Body></se:Envelope>"
_MUST: Final = ' se:mustUnderstand="1"'


def write_envelope(envelope: Envelope, stream_tag: str = STREAM_TAG) -> bytes:
    """WireError if a text holds what XML cannot say."""
    pieces = [_OPEN, _path(envelope), _properties(envelope)]
    if envelope.services is not None:
        pieces.append(_services(envelope.services))
    if envelope.stream is not None:
        pieces.append(_stream(envelope.stream, stream_tag))
    if envelope.delivery_receipt is not None:
        pieces.append(_delivery_receipt(envelope.delivery_receipt))
    if envelope.stream_receipt is not None:
        pieces.append(_stream_receipt(envelope.stream_receipt))
    if envelope.commitment_receipt is not None:
        pieces.append(_commitment_receipt(envelope.commitment_receipt))
    if envelope.msmq is not None:
        pieces.append(_msmq(envelope.msmq))
    if envelope.signature is not None:
        pieces.append(signature_xml(envelope.signature))
    pieces.append(_CLOSE)
    return "".join(pieces).encode()


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(name, text)}</{name}>"


def _flag(name: str, on: bool) -> str:
    return f"<{name}/>" if on else ""


def _path(envelope: Envelope) -> str:
    rev = f"<rev>{_element('via', envelope.via)}</rev>" if envelope.via else ""
    action, to = _element("action", envelope.action), _element("to", envelope.to)
    return f'<path xmlns="{RP}"{_MUST}>{action}{to}{rev}{_element("id", envelope.id)}</path>'


def _properties(envelope: Envelope) -> str:
    expires = _element("expiresAt", date_text(envelope.expires_at))
    sent = "" if envelope.sent_at is None else _element("sentAt", date_text(envelope.sent_at))
    return f"<properties{_MUST}>{expires}{sent}</properties>"


def _services(services: Services) -> str:
    delivery = commitment = ""
    if services.delivery_to is not None:
        send_to = _element("sendTo", services.delivery_to)
        delivery = f"<deliveryReceiptRequest>{send_to}</deliveryReceiptRequest>"
    if services.commitment_to is not None:
        send_to = _element("sendTo", services.commitment_to)
        flags = _flag("positiveOnly", services.positive) + _flag("negativeOnly", services.negative)
        commitment = f"<commitmentReceiptRequest>{send_to}{flags}</commitmentReceiptRequest>"
    return f"<services{_MUST}>{_flag('durable', services.durable)}{delivery}{commitment}</services>"


def _stream(stream: Stream, tag: str) -> str:
    previous = start = ""
    if stream.previous is not None:
        previous = _element("previous", str(stream.previous))
    if stream.receipts_to is not None:
        start = f"<start>{_element('sendReceiptsTo', stream.receipts_to)}</start>"
    numbers = _element("streamId", stream.id.text) + _element("current", str(stream.current))
    return f"<{tag}{_MUST}>{numbers}{previous}{start}</{tag}>"


def _delivery_receipt(receipt: DeliveryReceipt) -> str:
    received = _element("receivedAt", date_text(receipt.received_at))
    return f"<deliveryReceipt>{received}{_element('id', receipt.id)}</deliveryReceipt>"


def _stream_receipt(receipt: StreamReceipt) -> str:
    last = _element("lastOrdinal", str(receipt.last_ordinal))
    stream_id = _element("streamId", receipt.stream_id.text)
    return f"<streamReceipt>{stream_id}{last}</streamReceipt>"


def _commitment_receipt(receipt: CommitmentReceipt) -> str:
    decided = _element("decidedAt", date_text(receipt.decided_at))
    decision = _element("decision", "positive" if receipt.positive else "negative")
    identifier = _element("id", receipt.id)
    return f"<commitmentReceipt>{decided}{decision}{identifier}</commitmentReceipt>"


def _msmq(block: MsmqBlock) -> str:
    correlation = NO_CORRELATION if block.correlation is None else block.correlation
    return "".join(
        (
            f'<Msmq xmlns="{MSMQ}">',
            _element("Class", str(block.message_class)),
            _element("Priority", str(block.priority)),
            _flag("Journal", block.journal),
            _flag("DeadLetter", block.dead_letter),
            _element("Correlation", base64_text(correlation)),
            _flag("Trace", block.trace),
            _guid("ConnectorType", block.connector_type),
            _element("App", str(block.app or 0)),
            _element("BodyType", str(block.body_type)),
            _element("HashAlgorithm", str(block.hash_algorithm or 0)),
            _eod(block),
            _provider(block),
            _guid("SourceQmGuid", block.source),
            _names("DestinationMqf", block.destination_mqf),
            _names("AdminMqf", block.admin_mqf),
            _names("ResponseMqf", block.response_mqf),
            _element("TTrq", date_text(block.time_to_reach_queue)),
            "</Msmq>",
        )
    )


def _guid(name: str, value: object) -> str:
    return "" if value is None else _element(name, str(value))


def _eod(block: MsmqBlock) -> str:
    inner = _flag("First", block.first) + _flag("Last", block.last)
    inner += _guid("ConnectorId", block.connector_qm)
    return f"<Eod>{inner}</Eod>" if inner else ""


def _provider(block: MsmqBlock) -> str:
    if block.provider is None:
        return ""
    inner = _element("Type", str(block.provider.type)) + _element("Name", block.provider.name)
    return f"<Provider>{inner}</Provider>"


def _names(name: str, names: tuple[str, ...]) -> str:
    """Each name is followed by a blank. MC-MQSRM 3.1.7.2.4"""
    return _element(name, "".join(f"{one} " for one in names)) if names else ""
