"""Between a UserMessage packet and the message that it carries. Digest data-model.md section 4"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import Any, Final

from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message, Transaction
from bridge.wire.binary import multiqueue, user
from bridge.wire.binary.base import TRACE, BaseHeader
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.security import (
    SENDER_NONE,
    SENDER_QM,
    SENDER_SID,
    SecurityHeader,
    sid_text,
)
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import NO_QUEUE, QueueRef, UserHeader
from bridge.wire.cursor import decode_utf16

_U32: Final = Struct("<I")
_DIRECT: Final = "DIRECT="


def message_from_packet(packet: UserMessage, peer: str, arrived_ms: int) -> Message:
    """Names become format names as text; nothing that a sender wrote is changed (DM-3)."""
    header, properties, base = packet.user, packet.properties, packet.base
    message = Message(
        source=header.source,
        ordinal=header.message_id,
        destination=_name(header.destination, header),
        destination_qm=header.queue_manager,
        transaction=_transaction(packet.transaction) if packet.transaction else None,
        delivery=header.delivery,
        priority=base.priority,
        sent_time=header.sent_time,
        arrived_ms=arrived_ms,
        time_to_reach_queue=base.time_to_reach_queue,
        time_to_be_received=header.time_to_be_received,
        message_class=properties.message_class,
        label=properties.label,
        body=properties.body,
        body_type=properties.body_type,
        extension=properties.extension,
        correlation_id=properties.correlation_id,
        app_specific=properties.app_specific,
        ack=properties.ack_flags,
        journal=header.journal,
        privacy_level=properties.privacy_level,
        hash_algorithm=properties.hash_algorithm,
        encryption_algorithm=properties.encryption_algorithm,
        hops=header.hop_count,
        peer=peer,
        wire=packet.wire_without_body,
    )
    return replace(message, **_rare(packet)) if _has_more(packet) else message


def _has_more(packet: UserMessage) -> bool:
    """Most messages have none of these."""
    header = packet.user
    return not (
        header.admin is NO_QUEUE
        and header.response is NO_QUEUE
        and header.connector_type is None
        and packet.security is None
        and packet.multi is None
        and packet.soap is None
        and packet.debug is None
    )


def _rare(packet: UserMessage) -> dict[str, Any]:
    header = packet.user
    fields: dict[str, Any] = {
        "admin_queue": _name(header.admin, header),
        "response_queue": _name(header.response, header),
        "connector": header.connector_type,
    }
    if security := packet.security:
        fields |= {
            "sender": sender_text(security),
            "certificate": security.certificate,
            "signature": security.signature,
            "provider": _provider(security.provider_info),
            "encrypted": security.encrypted,
        }
    if multi := packet.multi:
        fields |= {
            "destination_multi": _names(multi.destination),
            "admin_multi": _names(multi.admin),
            "response_multi": _names(multi.response),
        }
        if multi.signature and not (security and security.signature):
            fields["signature"] = multi.signature
    if packet.soap:
        fields["soap"] = packet.soap.header + packet.soap.body
    if packet.debug and packet.base.flags & TRACE:
        fields["trace_queue"] = packet.debug.queue or NULL_GUID
    return fields


def _transaction(header: TransactionHeader) -> Transaction:
    return Transaction(
        sequence_id=header.sequence_id,
        number=header.number,
        previous=header.previous_number,
        index=header.index,
        first=header.first,
        last=header.last,
        final_ack=header.final_ack,
        connector_qm=header.connector_qm,
    )


def _name(queue: QueueRef, header: UserHeader) -> str:
    match queue.code:
        case user.DIRECT:
            return _DIRECT + queue.text
        case user.NONE:
            return ""
        case user.AS_ADMIN:
            return _name(header.admin, header)
        case user.PRIVATE_AT_SOURCE:
            return _private(header.source, queue.number)
        case user.PRIVATE_AT_DESTINATION:
            return _private(header.queue_manager, queue.number)
        case user.PRIVATE_AT_ADMIN:
            home = _home(header.admin, header)
            return "" if home is None else _private(home, queue.number)
        case user.PUBLIC:
            return f"PUBLIC={queue.guid}"
        case _:
            return _private(queue.guid, queue.number)


def _home(queue: QueueRef, header: UserHeader) -> Guid | None:
    """The queue manager that an administration queue lives on. None: the packet does not say; a
    public name has the GUID of its queue, a direct one a host name."""
    match queue.code:
        case user.PRIVATE_AT_SOURCE:
            return header.source
        case user.PRIVATE_AT_DESTINATION:
            return header.queue_manager
        case user.PRIVATE:
            return queue.guid
        case _:
            return None


def _private(owner: Guid, number: int) -> str:
    return f"PRIVATE={owner}\\{number:08x}"


def _names(elements: tuple[multiqueue.MqfElement, ...]) -> str:
    return ",".join(_element(element) for element in elements)


def _element(element: multiqueue.MqfElement) -> str:
    match element.kind:
        case multiqueue.DIRECT:
            return _DIRECT + element.text
        case multiqueue.PUBLIC:
            return f"PUBLIC={element.guid}"
        case multiqueue.DISTRIBUTION_LIST:
            return f"DL={element.guid}"
        case _:
            return _private(element.guid, element.number)


def sender_text(security: SecurityHeader) -> str:
    """A SID or a queue manager's GUID; what is neither is shown in hex."""
    raw = security.sender_id
    if security.sender_type == SENDER_NONE or not raw:
        return ""
    if security.sender_type == SENDER_QM and len(raw) == len(NULL_GUID):
        return str(Guid(raw))
    with suppress(WireError):
        if security.sender_type == SENDER_SID:
            return sid_text(raw)
    return f"0x{raw.hex()}"


def _provider(info: bytes) -> str:
    """`type:name` of the cryptographic provider; hex if it is cut short."""
    if not info:
        return ""
    if len(info) < _U32.size or len(info) % 2:
        return f"0x{info.hex()}"
    return f"{_U32.unpack_from(info)[0]}:{decode_utf16(info[_U32.size :]).rstrip(chr(0))}"


def packet_from_message(message: Message) -> UserMessage:
    """A packet for a message of our own; direct and private destinations."""
    if message.transaction is None:
        transaction = None
    else:
        tx = message.transaction
        transaction = TransactionHeader(
            sequence_id=tx.sequence_id,
            number=tx.number,
            previous_number=tx.previous,
            index=tx.index,
            first=tx.first,
            last=tx.last,
            final_ack=tx.final_ack,
            connector_qm=tx.connector_qm,
        )
    manager = _manager(message)
    return UserMessage(
        base=BaseHeader(priority=message.priority, time_to_reach_queue=message.time_to_reach_queue),
        user=UserHeader(
            source=message.source,
            queue_manager=manager,
            time_to_be_received=message.time_to_be_received,
            sent_time=message.sent_time,
            message_id=message.ordinal,
            delivery=message.delivery,
            journal=message.journal,
            hop_count=message.hops,
            destination=_reference(message.destination, message.source, manager),
            admin=_reference(message.admin_queue, message.source, manager),
            response=_reference(message.response_queue, message.source, manager),
            connector_type=message.connector,
        ),
        transaction=transaction,
        properties=PropertiesHeader(
            ack_flags=message.ack,
            label=message.label,
            message_class=message.message_class,
            correlation_id=message.correlation_id,
            body_type=message.body_type,
            app_specific=message.app_specific,
            privacy_level=message.privacy_level,
            hash_algorithm=message.hash_algorithm,
            encryption_algorithm=message.encryption_algorithm,
            extension=message.extension,
            body=message.body,
        ),
    )


def _manager(message: Message) -> Guid:
    """A private destination names its queue manager, and a packet has one place for it."""
    kind, _, rest = message.destination.partition("=")
    if kind.upper() != "PRIVATE":
        return message.destination_qm
    return Guid.parse(rest.partition("\\")[0])


def _reference(name: str, source: Guid, manager: Guid) -> QueueRef:
    """The shortest code that says where a queue is. MS-MQMQ 2.2.19.2"""
    kind, _, rest = name.partition("=")
    match kind.upper():
        case "":
            return NO_QUEUE
        case "DIRECT":
            return QueueRef(code=user.DIRECT, text=rest)
        case "PUBLIC":
            return QueueRef(code=user.PUBLIC, guid=Guid.parse(rest))
        case "PRIVATE":
            text, _, digits = rest.partition("\\")
            owner, number = Guid.parse(text), int(digits, 16)
            if owner == manager:
                return QueueRef(code=user.PRIVATE_AT_DESTINATION, number=number)
            if owner == source:
                return QueueRef(code=user.PRIVATE_AT_SOURCE, number=number)
            return QueueRef(code=user.PRIVATE, guid=owner, number=number)
        case _:
            raise WireError("QueueFormatName", name, "MS-MQMQ 2.2.19.2: cannot be in a packet")
