"""Between an SRMP request and the message that it carries. Digest srmp.md 7.1

What has no place in a Message stays readable in `soap`, the envelope as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    EXPRESS,
    INFINITE,
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    NACK_RECEIVE,
    NO_CORRELATION,
    RECOVERABLE,
    Message,
    Onward,
    Srmp,
    Transaction,
)
from bridge.wire.cursor import decode_utf16, encode_utf16
from bridge.wire.srmp.envelope import (
    MSMQ_PREFIX,
    Envelope,
    MsmqBlock,
    Provider,
    Services,
    Stream,
)
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.request import SrmpRequest
from bridge.wire.srmp.signature import check_digests
from bridge.wire.srmp.values import NEVER, U32, id_text, is_url, make_stream_id, parse_url

_DIRECT: Final = "DIRECT="
_MULTICAST: Final = "MULTICAST="
_MAX_LABEL: Final = 249  # WCHARs without the NUL
_SHA1: Final = 0x8004
# What goes into a queue. Receipts of streams are for queue managers: SR-50, SR-51
_FOR_QUEUES: Final = (Kind.USER, Kind.DELIVERY_RECEIPT, Kind.COMMITMENT_RECEIPT)


def message_from_request(
    request: SrmpRequest,
    *,
    peer: str = "",
    arrived_ms: int = 0,
    transport: str = "http",
    destination: str = "",
    is_here: bool = True,
    onward: Onward | None = None,
    compound: bytes = b"",
    peer_names: tuple[str, ...] = (),
) -> Message:
    """`destination` is where `<to>` was redirected to, `is_here` whether its host is ours, `onward`
    how it goes there if not; `compound` the whole HTTP request, if it is to be kept;
    `peer_names` those of the client's certificate."""
    envelope = request.envelope
    source, ordinal = envelope.identifier
    sent = _sent(envelope, arrived_ms)
    fields = {} if envelope.msmq is None else _msmq_fields(envelope.msmq)
    if envelope.services is not None:
        fields |= _services_fields(envelope.services)
    if envelope.stream is not None:
        fields["transaction"] = _transaction(envelope, envelope.stream)
        if envelope.stream.receipts_to is not None:
            fields["status_queue"] = _DIRECT + envelope.stream.receipts_to
    if envelope.signature is not None:
        fields["signature"] = envelope.signature.value
    return Message(
        source=source,
        ordinal=ordinal,
        destination=format_name(destination or envelope.to),
        label=_label(envelope.label or ""),
        response_queue=format_name(envelope.via),
        sent_time=sent,
        arrived_ms=arrived_ms,
        time_to_reach_queue=_time_to_reach(envelope, sent),
        delivery=RECOVERABLE if envelope.durable else EXPRESS,
        body=request.body or b"",
        extension=request.extension or b"",
        peer=peer,
        transport=transport,
        soap=request.soap.decode(),
        soap_compound=compound,
        expires=0 if envelope.expires_at == NEVER else envelope.expires_at,
        srmp=_srmp(request, is_here, onward, peer_names),
        **fields,
    )


def _srmp(
    request: SrmpRequest, is_here: bool, onward: Onward | None, peer_names: tuple[str, ...]
) -> Srmp:
    envelope = request.envelope
    services = envelope.services or Services()
    stream, block = envelope.stream, envelope.msmq
    starts = stream is not None and stream.current == 1 and stream.receipts_to is not None
    signature = envelope.signature
    return Srmp(
        to=envelope.to,
        stream_id="" if stream is None else stream.id.text,
        starts=starts,
        receipts_to=(stream.receipts_to or "") if stream is not None and starts else "",
        delivery_to=services.delivery_to or "",
        commitment_to=services.commitment_to or "",
        positive=services.positive,
        negative=services.negative,
        first=block is not None and block.first,
        last=block is not None and block.last,
        connector_qm=None if block is None else block.connector_qm,
        flaw="" if signature is None else check_digests(signature, request.attachments),
        is_here=is_here,
        is_known=kind_of(envelope) in _FOR_QUEUES,
        onward=onward,
        peer_names=peer_names,
    )


def format_name(text: str) -> str:
    """SR-11, and the same for every other name (section 6, note 7)."""
    if is_url(text):
        return _DIRECT + text
    prefixed = text[: len(MSMQ_PREFIX)].upper() == MSMQ_PREFIX
    return text[len(MSMQ_PREFIX) :] if prefixed else text


def envelope_name(name: str) -> str:
    """SR-74: http names without `DIRECT=`, others behind `MSMQ:`."""
    kept = name[len(_DIRECT) :] if name[: len(_DIRECT)].upper() == _DIRECT else name
    if is_url(kept):
        return kept
    return MSMQ_PREFIX + name if name else ""


def _sent(envelope: Envelope, arrived_ms: int) -> int:
    """SR-60: without sentAt the time of arrival stands for it."""
    return min(arrived_ms // 1000 if envelope.sent_at is None else envelope.sent_at, U32)


def _time_to_reach(envelope: Envelope, sent: int) -> int:
    """SR-60: from TTrq, without Msmq from expiresAt."""
    block = envelope.msmq
    deadline = envelope.expires_at if block is None else block.time_to_reach_queue
    return INFINITE if deadline == NEVER else min(max(deadline - sent, 0), INFINITE)


def _label(text: str) -> str:
    units = encode_utf16(text)
    if len(units) <= 2 * _MAX_LABEL:
        return text
    end = 2 * _MAX_LABEL
    if 0xD8 <= units[end - 1] <= 0xDB:  # half of a character would remain
        end -= 2
    return decode_utf16(units[:end])


def _services_fields(services: Services) -> dict[str, Any]:
    ack = ACK_ARRIVAL if services.delivery_to is not None else 0
    ack |= ACK_RECEIVE if services.positive else 0
    ack |= NACK_RECEIVE if services.negative else 0
    # One attribute for two URLs; receipts themselves are sent by the envelope (SR-47).
    admin = services.delivery_to or services.commitment_to
    return {"ack": ack, "admin_queue": _DIRECT + admin if admin else ""}


def _transaction(envelope: Envelope, stream: Stream) -> Transaction:
    block, services = envelope.msmq, envelope.services
    return Transaction(
        sequence_id=stream.id.number,
        number=stream.current,
        previous=stream.preceding,
        first=block is not None and block.first,
        last=block is not None and block.last,
        final_ack=services is not None and services.commitment_to is not None,
        connector_qm=None if block is None else block.connector_qm,
        stream=(stream.id.guid, format_name(envelope.to)),
    )


def _msmq_fields(block: MsmqBlock) -> dict[str, Any]:
    journal = JOURNAL_POSITIVE if block.journal else 0
    provider = block.provider
    return {
        "message_class": block.message_class,
        "priority": block.priority,
        "journal": journal | (JOURNAL_NEGATIVE if block.dead_letter else 0),
        "correlation_id": NO_CORRELATION if block.correlation is None else block.correlation,
        "trace_queue": NULL_GUID if block.trace else None,
        "connector": block.connector_type,
        "app_specific": block.app or 0,
        "body_type": block.body_type,
        "hash_algorithm": _SHA1 if block.hash_algorithm is None else block.hash_algorithm,
        "provider": "" if provider is None else f"{provider.type}:{provider.name}",
        "destination_multi": _format_names(block.destination_mqf),
        "admin_multi": _format_names(block.admin_mqf),
        "response_multi": _format_names(block.response_mqf),
    }


def _format_names(names: Iterable[str]) -> str:
    return ",".join(format_name(name) for name in names)


def envelope_from_message(message: Message) -> Envelope:
    """For a message of our own; WireError if SRMP cannot carry it. MC-MQSRM 3.1.7.2.4"""
    return Envelope(
        action=MSMQ_PREFIX + message.label,
        to=_destination(message.destination),
        id=id_text(message.source, message.ordinal),
        via=envelope_name(message.response_queue),
        expires_at=NEVER,  # SR-62: Windows puts the deadline in TTrq only
        sent_at=message.sent_time,
        services=_services(message),
        stream=_stream(message),
        msmq=_block(message),
    )


def _destination(name: str) -> str:
    text = envelope_name(name)
    if not is_url(text) and not name.upper().startswith(_MULTICAST):
        raise WireError("to", name[:80], "SR-70: DIRECT=HTTP, DIRECT=HTTPS or MULTICAST")
    return text


def _services(message: Message) -> Services | None:
    tx = message.transaction
    delivery = bool(message.ack & ACK_ARRIVAL)
    commitment = bool(message.ack & (ACK_RECEIVE | NACK_RECEIVE))
    if tx is not None and tx.final_ack and message.admin_queue:
        commitment = True
    durable = message.delivery == RECOVERABLE or tx is not None
    if not (durable or delivery or commitment):
        return None
    admin = ""
    if delivery or commitment:
        admin = parse_url("sendTo", envelope_name(message.admin_queue))
    return Services(
        durable=durable,
        delivery_to=admin if delivery else None,
        commitment_to=admin if commitment else None,
        positive=bool(message.ack & ACK_RECEIVE),
        negative=bool(message.ack & NACK_RECEIVE),
    )


def _stream(message: Message) -> Stream | None:
    """SR-72: the first message has no `previous`, and says where receipts go."""
    tx = message.transaction
    if tx is None:
        return None
    receipts_to = None
    if tx.number == 1:
        receipts_to = parse_url("sendReceiptsTo", envelope_name(message.status_queue))
    return Stream(
        id=make_stream_id(message.source, tx.sequence_id),
        current=tx.number,
        # A later one says 0 too: left out it would mean the number before. 2.2.5.3.3
        previous=tx.previous if tx.previous or tx.number > 1 else None,
        receipts_to=receipts_to,
    )


def _block(message: Message) -> MsmqBlock:
    tx = message.transaction
    lasts = message.time_to_reach_queue
    return MsmqBlock(
        source=message.source,
        time_to_reach_queue=NEVER if lasts == INFINITE else message.sent_time + lasts,
        message_class=message.message_class,
        priority=message.priority,
        body_type=message.body_type,
        journal=bool(message.journal & JOURNAL_POSITIVE),
        dead_letter=bool(message.journal & JOURNAL_NEGATIVE),
        trace=message.trace_queue is not None,
        correlation=message.correlation_id,
        connector_type=message.connector,
        app=message.app_specific,
        hash_algorithm=message.hash_algorithm,
        first=tx is not None and tx.first,
        last=tx is not None and tx.last,
        connector_qm=None if tx is None else tx.connector_qm,
        provider=_provider(message.provider),
        destination_mqf=_envelope_names(message.destination_multi),
        admin_mqf=_envelope_names(message.admin_multi),
        response_mqf=_envelope_names(message.response_multi),
    )


def _provider(text: str) -> Provider | None:
    number, colon, name = text.partition(":")
    if not (colon and number.isascii() and number.isdigit()):
        return None
    return Provider(type=int(number), name=name)


def _envelope_names(text: str) -> tuple[str, ...]:
    return tuple(envelope_name(name) for name in text.split(",")) if text else ()
