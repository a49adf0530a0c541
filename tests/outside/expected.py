"""The exact bytes the bridge must answer.

Where the specification leaves a choice we expect: BaseHeader.Reserved 0, OperatingSystem says
server class, hash and encryption algorithm of acks SHA-1 and RC4, their TTRQ infinite, window 64.
MessageID and SentTime of an ack are the bridge's own: `like` is the packet received, they are read
from it and then the whole packet is compared.
"""

import struct
from dataclasses import replace
from uuid import UUID

from tests.outside.rawmsmq import (
    INFINITE,
    ORDER_LABEL,
    ORDER_QUEUE,
    ZERO,
    Message,
    Name,
    SessionHeader,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    private,
    session_ack,
)
from tests.outside.rawparse import Received


def expected_ec_response(
    *,
    client: UUID,
    server: UUID,
    timestamp: int = 0x1DDECA4E,
    no_ping: bool = True,
    refused: bool = False,
) -> bytes:
    """QB-13: ClientGuid, TimeStamp and SE echoed; ServerGuid, OS and padding are ours."""
    system = 0x0210 | (0x0100 if no_ping else 0)
    return ec_request(client, server, timestamp=timestamp, system=system, refused=refused)


def expected_cp_response(
    *, recoverable_ack_ms: int = 500, ack_ms: int = 20_000, window: int = 64
) -> bytes:
    """QB-16: both timeouts echoed, the window is our own."""
    return cp_request(recoverable_ack_ms=recoverable_ack_ms, ack_ms=ack_ms, window=window)


def expected_session_ack(
    *,
    ack: int,
    recoverable_ack: int = 0,
    flags: int = 0,
    sent: int = 0,
    sent_recoverable: int = 0,
    window: int = 64,
) -> bytes:
    """QB-43"""
    return session_ack(
        SessionHeader(
            ack=ack,
            recoverable_ack=recoverable_ack,
            flags=flags,
            sent=sent,
            sent_recoverable=sent_recoverable,
            window=window,
        )
    )


def order_queue(peer: str | UUID) -> tuple[Name, UUID]:
    """Where order and final acks go: a peer's address (DQ=7) or its GUID (DQ=3)."""
    if isinstance(peer, UUID):
        return private(ORDER_QUEUE), peer
    return direct(f"TCP:{peer}\\PRIVATE$\\order_queue$"), ZERO


def _order_queue_packet(like: Received, server: UUID, peer: str | UUID, template: Message) -> bytes:
    destination, queue_manager = order_queue(peer)
    message = replace(
        template,
        source=server,
        destination=destination,
        queue_manager=queue_manager,
        message_id=like.message_id,
        sent_time=like.sent_time,
    )
    return build(message)  # MS-MQQB 2.2.4, 2.2.5: BaseHeader.Flags has all bits set to 0


_ACK = Message(
    source=ZERO,
    message_id=0,
    destination=Name(0),
    label=ORDER_LABEL,
    priority=0,
    ttrq=INFINITE,
    sent_time=0,
)


def expected_order_ack(
    like: Received, *, server: UUID, peer: str | UUID, sequence_id: int, number: int
) -> bytes:
    """MS-MQQB 2.2.4. `like` is the packet received: MessageID and SentTime come from it."""
    body = struct.pack("<QII20x", sequence_id, number, number - 1)
    return _order_queue_packet(like, server, peer, replace(_ACK, message_class=0x00FF, body=body))


def expected_final_ack(
    like: Received,
    *,
    server: UUID,
    peer: str | UUID,
    tx: Tx,
    source: UUID,
    message_id: int,
    message_class: int = 0x4000,
) -> bytes:
    """2.18; `tx`, `source` and `message_id` are those of the message it answers."""
    body = struct.pack("<QII", tx.sequence_id, tx.number, tx.previous)
    body += source.bytes_le + struct.pack("<I", message_id)
    template = replace(_ACK, message_class=message_class, body=body, recoverable=True)
    return _order_queue_packet(like, server, peer, template)


def expected_administration_ack(
    like: Received,
    *,
    server: UUID,
    acked: Message,
    message_class: int,
    destination: Name,
    queue_manager: UUID,
) -> bytes:
    """QB-113: `destination` on `queue_manager` is where AQ of the message points. QB-112"""
    negative = bool(message_class & 0x8000)
    message = Message(
        source=server,
        queue_manager=queue_manager,
        destination=destination,
        response=acked.destination,
        message_id=like.message_id,
        sent_time=like.sent_time,
        message_class=message_class,
        correlation=acked.source.bytes_le + struct.pack("<I", acked.message_id),
        label=acked.label,
        recoverable=acked.is_recoverable,
        ttrq=INFINITE,
        body=acked.body if negative else b"",
        body_type=acked.body_type if negative else 0,
    )
    return build(message, like.session)
