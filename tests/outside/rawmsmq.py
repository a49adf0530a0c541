"""MSMQ packets as a Windows sender makes and reads them: struct and the byte tables, nothing else.

Nothing here comes from `bridge`, so the wire code of the product is never tested against itself.
Beside it: `rawparse` reads what the bridge answers, `expected` gives the bytes an answer must have,
`rawsender` plays a sending queue manager on a socket.
"""

import struct
import time
from dataclasses import dataclass, field
from uuid import UUID

ZERO = UUID(int=0)
INFINITE = 0xFFFFFFFF
DEFAULT_TTRQ = 0x54600  # four days
SIGNATURE = 0x524F494C  # "LIOR"
ORDER_QUEUE = 4  # private number of order_queue$
ORDER_LABEL = "QM Ordering Ack"

BASE_INTERNAL, BASE_SESSION, BASE_DEBUG, BASE_TRACE = 0x08, 0x10, 0x20, 0x100
USER_JN, USER_JP, USER_SECURITY, USER_TX = 0x100, 0x200, 0x80000, 0x100000
USER_MP, USER_CONNECTOR, USER_MQF, USER_SOAP = 0x200000, 0x400000, 0x800000, 0x10000000
ACK_PA, ACK_PR, ACK_NA, ACK_NR = 1, 2, 4, 8


def pad4(data: bytes, fill: int = 0) -> bytes:
    return data + bytes([fill]) * (-len(data) % 4)


def base(size: int, flags: int, ttrq: int = INFINITE, reserved: int = 0) -> bytes:
    return struct.pack("<BBHIII", 0x10, reserved, flags, SIGNATURE, size, ttrq)


def _internal(size: int, kind: int, *, refused: bool = False, flags: int = 0x0B) -> bytes:
    return base(size, flags) + struct.pack("<HH", 0, kind | (0x10 if refused else 0))


def ec_request(
    client: UUID,
    server: UUID = ZERO,
    *,
    timestamp: int = 0x1DDECA4E,
    system: int = 0x0310,
    padding: int = 0x5A,
    refused: bool = False,
) -> bytes:
    """EstablishConnection, 572 bytes. MS-MQQB 2.2.3"""
    head = _internal(572, 2, refused=refused) + client.bytes_le + server.bytes_le
    return head + struct.pack("<IHH", timestamp, system, 0) + bytes([padding]) * 512


def cp_request(*, recoverable_ack_ms: int = 500, ack_ms: int = 20_000, window: int = 64) -> bytes:
    """ConnectionParameters, 32 bytes. MS-MQQB 2.2.2"""
    return _internal(32, 3) + struct.pack("<IIHH", recoverable_ack_ms, ack_ms, 0, window)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """MS-MQMQ 2.2.20.4; counters are cut to 16 bits here."""

    ack: int = 0
    recoverable_ack: int = 0
    flags: int = 0
    sent: int = 0
    sent_recoverable: int = 0
    window: int = 64

    def pack(self) -> bytes:
        counts = (self.sent & 0xFFFF, self.sent_recoverable & 0xFFFF, self.window, 0)
        return struct.pack(
            "<HHIHHHH", self.ack & 0xFFFF, self.recoverable_ack & 0xFFFF, self.flags, *counts
        )

    @classmethod
    def unpack(cls, data: bytes) -> "SessionHeader":
        ack, rec, flags, sent, sent_rec, window, _ = struct.unpack("<HHIHHHH", data)
        return cls(
            ack=ack,
            recoverable_ack=rec,
            flags=flags,
            sent=sent,
            sent_recoverable=sent_rec,
            window=window,
        )


def session_ack(header: SessionHeader) -> bytes:
    """A stand-alone SessionAck: here PacketSize includes the header (F8)."""
    return _internal(36, 1, flags=0x1B) + header.pack()


@dataclass(frozen=True, slots=True)
class Name:
    """A queue name as it lies in UserHeader: the code for DQ, AQ or RQ, and its bytes."""

    code: int
    data: bytes = b""


NONE = Name(0)


def direct(text: str) -> Name:
    raw = text.encode("utf-16-le") + b"\0\0"
    return Name(7, pad4(struct.pack("<H", len(raw)) + raw))


def private(number: int, code: int = 3) -> Name:
    """Code 3: on QueueManagerAddress; 2: on the source; 4 (response only): on the admin's host."""
    return Name(code, struct.pack("<I", number))


def private_on(guid: UUID, number: int) -> Name:
    return Name(6, guid.bytes_le + struct.pack("<I", number))


def public(guid: UUID) -> Name:
    return Name(5, guid.bytes_le)


def sequence_id(timestamp: int, ordinal: int) -> int:
    """TxSequenceID as one number: TimeStamp is the high half. MS-MQMQ 2.2.18.1.2"""
    return timestamp << 32 | ordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class Tx:
    sequence_id: int
    number: int
    previous: int
    final_ack: bool = False
    first: bool = True
    last: bool = True
    index: int = 1
    connector: UUID | None = None

    def pack(self) -> bytes:
        flags = (self.connector is not None) | self.final_ack << 1 | self.first << 2
        flags |= self.last << 3 | self.index << 4
        head = struct.pack("<IQII", flags, self.sequence_id, self.number, self.previous)
        return head + (self.connector.bytes_le if self.connector else b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A user message; the defaults are an express message as Windows sends it."""

    source: UUID
    message_id: int
    destination: Name
    body: bytes = b""
    label: str = ""
    recoverable: bool = False
    tx: Tx | None = None
    queue_manager: UUID = ZERO  # ours for DQ 3 and 5, zero for direct names
    admin: Name = NONE
    response: Name = NONE
    priority: int = 3
    ttrq: int = DEFAULT_TTRQ
    ttbr: int = INFINITE
    sent_time: int = field(default_factory=lambda: int(time.time()))
    acks: int = 0
    journal: int = 0  # USER_JN | USER_JP
    message_class: int = 0
    correlation: bytes = bytes(20)
    body_type: int = 0
    app: int = 0
    hash_algorithm: int = 0x8004
    encryption: int = 0x6801
    privacy: int = 0
    extension: bytes = b""
    hops: int = 0
    connector: UUID | None = None
    trace: UUID | None = None
    security: bytes = b""  # ready-made headers
    soap: bytes = b""
    multi: bytes = b""
    fill: int = 0  # value of padding and reserved bytes; Windows leaves anything there

    @property
    def is_recoverable(self) -> bool:
        return self.recoverable or self.tx is not None

    @property
    def user_flags(self) -> int:
        flags = self.hops | self.is_recoverable << 5 | self.journal | USER_MP
        flags |= self.destination.code << 10 | self.admin.code << 13 | self.response.code << 16
        flags |= USER_SECURITY if self.security else 0
        flags |= USER_TX if self.tx else 0
        flags |= USER_CONNECTOR if self.connector else 0
        flags |= USER_MQF if self.multi else 0
        return flags | (USER_SOAP if self.soap else 0)

    @property
    def base_flags(self) -> int:
        flags = 0 if self.tx else self.priority  # transactional messages have priority 0
        return flags | (BASE_DEBUG | BASE_TRACE if self.trace else 0)


def _user_header(m: Message) -> bytes:
    fixed = struct.pack("<IIII", m.ttbr, m.sent_time, m.message_id, m.user_flags)
    names = m.destination.data + m.admin.data + m.response.data
    connector = m.connector.bytes_le if m.connector else b""
    return m.source.bytes_le + m.queue_manager.bytes_le + fixed + names + connector


def _properties(m: Message) -> bytes:
    label = (m.label + "\0").encode("utf-16-le") if m.label else b""
    fixed = struct.pack("<BBH20s", m.acks, len(label) // 2, m.message_class, m.correlation)
    sizes = struct.pack("<IIII", m.body_type, m.app, len(m.body), len(m.body))
    crypto = struct.pack("<IIII", m.privacy, m.hash_algorithm, m.encryption, len(m.extension))
    return fixed + sizes + crypto + label + m.extension


def _parts(m: Message) -> tuple[bytes, bytes]:
    """What lies between BaseHeader and body, and what lies behind the body."""
    head = _user_header(m) + (m.tx.pack() if m.tx else b"") + m.security + _properties(m)
    pad = bytes([m.fill]) * (-(len(head) + len(m.body)) % 4)
    debug = struct.pack("<HH", 1, 0) + m.trace.bytes_le if m.trace else b""
    return head, pad + debug + m.soap + m.multi


def build(m: Message, session: SessionHeader | None = None, *, counted: bool = False) -> bytes:
    """The packet; a piggybacked SessionHeader follows PacketSize, or is `counted` in it."""
    head, tail = _parts(m)
    size = 16 + len(head) + len(m.body) + len(tail) + (16 if counted else 0)
    flags = m.base_flags | (BASE_SESSION if session else 0)
    packet = base(size, flags, m.ttrq, m.fill) + head + m.body + tail
    return packet + (session.pack() if session else b"")


def without_body(m: Message) -> bytes:
    """What `msmq.wire` must hold: the packet minus the bytes of the body."""
    head, tail = _parts(m)
    return build(m)[: 16 + len(head)] + tail


def security_header(sid: bytes, *, sender_type: int = 1) -> bytes:
    """A SecurityHeader with nothing but a sender id, as direct-name messages carry it (F7)."""
    return struct.pack("<HHHHII", sender_type, len(sid), 0, 0, 0, 0) + pad4(sid)
