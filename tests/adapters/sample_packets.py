"""Packets as a Windows sender would put them on the wire, made by the kit that plays one."""

from uuid import UUID

from tests.outside.rawmsmq import (
    Message,
    SessionHeader,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    sequence_id,
    session_ack,
)

SENDER = UUID("11111111-2222-3333-4444-555555555555")
SENT = 1_769_860_800  # 2026-01-31 12:00 UTC
QUEUE = direct("OS:BRIDGE01\\private$\\orders")


def order(number: int, body: bytes = b"", label: str = "") -> bytes:
    """Message `number` of a stream."""
    message = Message(
        source=SENDER,
        message_id=number,
        destination=QUEUE,
        body=body or b"<Order><Id>%d</Id></Order>" % number,
        label=label or f"order {number}",
        tx=Tx(sequence_id=sequence_id(SENT, 1), number=number, previous=number - 1),
        sent_time=SENT,
    )
    return build(message)


def handshake() -> bytes:
    return ec_request(SENDER) + cp_request()


def ack() -> bytes:
    return session_ack(SessionHeader(ack=1))
