"""Reads what the bridge sends, strictly: anything it should not send fails an assertion."""

import struct
from dataclasses import dataclass
from uuid import UUID

from tests.outside.rawmsmq import (
    BASE_INTERNAL,
    BASE_SESSION,
    ORDER_LABEL,
    SIGNATURE,
    USER_CONNECTOR,
    USER_MP,
    USER_MQF,
    USER_SECURITY,
    USER_SOAP,
    USER_TX,
    Name,
    SessionHeader,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    raw: bytes
    flags: int
    ttrq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Establish(Packet):
    refused: bool
    client: UUID
    server: UUID
    timestamp: int
    system: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters(Packet):
    refused: bool
    recoverable_ack_ms: int
    ack_ms: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAck(Packet):
    session: SessionHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Packet):
    """A user message from the bridge: order ack, final ack, or an administration ack."""

    source: UUID
    queue_manager: UUID
    sent_time: int
    message_id: int
    user_flags: int
    destination: Name
    acks: int
    message_class: int
    correlation: bytes
    label: str
    body: bytes
    session: SessionHeader | None

    @property
    def is_recoverable(self) -> bool:
        return self.user_flags >> 5 & 3 == 1

    @property
    def is_order_ack(self) -> bool:
        return self.label == ORDER_LABEL and self.message_class == 0x00FF

    @property
    def is_final_ack(self) -> bool:
        return self.label == ORDER_LABEL and self.message_class >= 0x4000

    @property
    def sequence(self) -> tuple[int, int, int]:
        """TxSequenceID, number and previous number of an order or final ack."""
        sequence, number, previous = struct.unpack_from("<QII", self.body)
        return int(sequence), int(number), int(previous)


def _guid(raw: bytes, at: int) -> UUID:
    return UUID(bytes_le=raw[at : at + 16])


def wire_length(first16: bytes) -> int:
    """How many bytes the packet takes that starts so; the bridge never counts a piggyback."""
    version, flags, signature, size = struct.unpack_from("<BxHII", first16)
    assert (version, signature) == (0x10, SIGNATURE), first16.hex(" ")
    assert 16 <= size <= 0x400000, size
    piggyback = flags & (BASE_SESSION | BASE_INTERNAL) == BASE_SESSION
    return int(size) + (16 if piggyback else 0)


def parse(raw: bytes) -> Packet:
    assert len(raw) == wire_length(raw[:16]), raw.hex(" ")
    flags, ttrq = struct.unpack_from("<2xH8xI", raw)
    if not flags & BASE_INTERNAL:
        return _parse_user(raw, flags, ttrq)
    kind = struct.unpack_from("<H", raw, 18)[0]
    refused = bool(kind & 0x10)
    match kind & 0xF:
        case 1:
            header = SessionHeader.unpack(raw[20:36])
            return SessionAck(raw=raw, flags=flags, ttrq=ttrq, session=header)
        case 2:
            stamp, system = struct.unpack_from("<IH", raw, 52)
            guids = {"client": _guid(raw, 20), "server": _guid(raw, 36)}
            return Establish(
                raw=raw,
                flags=flags,
                ttrq=ttrq,
                refused=refused,
                timestamp=stamp,
                system=system,
                **guids,
            )
        case 3:
            rec, ack, window = struct.unpack_from("<II2xH", raw, 20)
            return Parameters(
                raw=raw,
                flags=flags,
                ttrq=ttrq,
                refused=refused,
                recoverable_ack_ms=rec,
                ack_ms=ack,
                window=window,
            )
    raise AssertionError(f"internal packet of unknown type: {raw.hex(' ')}")


def _name_length(raw: bytes, at: int, code: int) -> int:
    if code == 7:
        length = 2 + int.from_bytes(raw[at : at + 2], "little")
        return length + -length % 4
    return {0: 0, 1: 0, 2: 4, 3: 4, 4: 4, 5: 16, 6: 20}[code]


def _parse_user(raw: bytes, flags: int, ttrq: int) -> Received:
    sent_time, message_id, user = struct.unpack_from("<III", raw, 52)
    at, names = 64, []
    for code in (user >> 10 & 7, user >> 13 & 7, user >> 16 & 7):
        length = _name_length(raw, at, code)
        names.append(Name(code, raw[at : at + length]))
        at += length
    assert user & USER_MP, hex(user)
    assert not user & (USER_TX | USER_SECURITY | USER_CONNECTOR | USER_MQF | USER_SOAP), hex(user)
    acks, label_length, message_class, correlation = struct.unpack_from("<BBH20s", raw, at)
    size, extension = struct.unpack_from("<I16xI", raw, at + 32)
    label_at = at + 56
    body_at = label_at + 2 * label_length + extension
    end = body_at + size
    session = SessionHeader.unpack(raw[-16:]) if flags & BASE_SESSION else None
    assert end + -end % 4 + (16 if session else 0) == len(raw), raw.hex(" ")
    label = raw[label_at : label_at + 2 * label_length].decode("utf-16-le")
    return Received(
        raw=raw,
        flags=flags,
        ttrq=ttrq,
        source=_guid(raw, 16),
        queue_manager=_guid(raw, 32),
        sent_time=sent_time,
        message_id=message_id,
        user_flags=user,
        destination=names[0],
        acks=acks,
        message_class=message_class,
        correlation=correlation,
        label=label.removesuffix("\0"),
        body=raw[body_at:end],
        session=session,
    )
