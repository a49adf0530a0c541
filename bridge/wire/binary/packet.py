"""From a TCP stream to packets, and the one packet that carries a message.

`PacketReader.feed` cuts. It judges a BaseHeader as soon as its 16 bytes are there, waits for
the announced size, and reads the packet straight out of the chunk it came in. Headers of a
user message follow each other in one order (MS-MQMQ 2.2.20); each one checks its own lengths
against the end of the packet and says where the next one starts.

CONFLICT-1: PacketSize should leave out a SessionHeader that rides on a user message, but need
not. If the headers end 16 bytes before PacketSize it was counted, else it follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self, TypeAlias, cast

import msgspec

from bridge.model.classes import MessageClass
from bridge.model.errors import WireError
from bridge.model.message import Message
from bridge.wire.binary.acks import ORDER_ACK_LABEL, ORDER_QUEUE_NUMBER, ORDER_QUEUE_PATH
from bridge.wire.binary.base import DEBUG, INTERNAL, MAX_PACKET, SESSION, TRACE, BaseHeader
from bridge.wire.binary.debug import DebugHeader
from bridge.wire.binary.fast import read_message
from bridge.wire.binary.internal import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    SESSION_ACK,
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    packet_type,
)
from bridge.wire.binary.multiqueue import MultiQueueHeader
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.security import SecurityHeader
from bridge.wire.binary.session import SessionHeader
from bridge.wire.binary.soap import SoapHeader
from bridge.wire.binary.template import Template, common_of
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import (
    DIRECT,
    MULTI_QUEUE,
    PRIVATE_AT_DESTINATION,
    RECOVERABLE,
    SECURITY,
    SOAP,
    TRANSACTION,
    UserHeader,
)

_BASE_SIZE: Final = BaseHeader.SIZE
_SESSION_SIZE: Final = SessionHeader.SIZE
_ORDER_QUEUE: Final = ORDER_QUEUE_PATH.upper()
_ORDER_ACK: Final = MessageClass.ORDER_ACK.value
_FINAL_ACK: Final = MessageClass.ACK_RECEIVE.value  # and everything above: QB-4
_SECTION: Final = "MS-MQMQ 2.2.20"


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False, eq=False):
    """A message and every header that came with it. MS-MQMQ 2.2.20

    Two are equal if their headers are; what pack() computes (packet size, presence bits) and
    the received bytes do not count.
    """

    base: BaseHeader = BaseHeader()
    user: UserHeader
    properties: PropertiesHeader
    transaction: TransactionHeader | None = None
    security: SecurityHeader | None = None
    debug: DebugHeader | None = None
    soap: SoapHeader | None = None
    multi: MultiQueueHeader | None = None
    session: SessionHeader | None = None
    # As received, less the body and less a SessionHeader (and its announcement in the
    # BaseHeader); empty in a message that was not received. See restore().
    wire_without_body: bytes = b""

    def pack(self) -> bytes:
        headers = b"".join(
            (
                self.user.pack(self._present()),
                b"" if self.transaction is None else self.transaction.pack(),
                b"" if self.security is None else self.security.pack(),
                self.properties.pack(),
                b"" if self.debug is None else self.debug.pack(),
                b"" if self.soap is None else self.soap.pack(),
                b"" if self.multi is None else self.multi.pack(),
            )
        )
        size = _BASE_SIZE + len(headers)
        if size > MAX_PACKET:
            raise WireError("BaseHeader.PacketSize", size, "MS-MQMQ 2.2.19.1")
        base = BaseHeader(
            packet_size=size,
            flags=(0 if self.debug is None else DEBUG | self.base.flags & TRACE)
            | (0 if self.session is None else SESSION),
            priority=self.base.priority,
            time_to_reach_queue=self.base.time_to_reach_queue,
        )
        return base.pack() + headers + (b"" if self.session is None else self.session.pack())

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """From the bytes of one packet, with or without a SessionHeader behind it."""
        base = BaseHeader.unpack(data)
        if base.flags & INTERNAL:
            raise WireError("BaseHeader.Flags", hex(base.flags), f"{_SECTION}: IN must be 0")
        if base.packet_size > len(data):
            raise WireError("BaseHeader.PacketSize", base.packet_size, f"{len(data)} bytes")
        message, after = cls._read(data, 0, base)
        if message is None:
            raise WireError("SessionHeader", len(data), f"{_SECTION}: ends at {after}")
        return message

    @classmethod
    def restored(cls, wire: bytes, body: bytes) -> Self:
        """The message that `wire_without_body` and its body came from."""
        return cls.unpack(restore(wire, body))

    @classmethod
    def _read(cls, data: bytes, start: int, base: BaseHeader) -> tuple[Self | None, int]:
        """The message at `start`, or None if its SessionHeader is not there yet; and its end."""
        end = start + base.packet_size
        user, present, offset = UserHeader.unpack_from(data, start + _BASE_SIZE, end)
        transaction = security = debug = soap = multi = session = None
        if present & TRANSACTION:
            transaction, offset = TransactionHeader.unpack_from(data, offset, end)
        if present & SECURITY:
            security, offset = SecurityHeader.unpack_from(data, offset, end)
        properties, body, offset = PropertiesHeader.unpack_from(data, offset, end)
        if base.flags & DEBUG:
            debug, offset = DebugHeader.unpack_from(data, offset, end)
        if present & SOAP:
            soap, offset = SoapHeader.unpack_from(data, offset, end)
        if present & MULTI_QUEUE:
            multi, offset = MultiQueueHeader.unpack_from(data, offset, end)
        after = end
        wire = data[start:body]
        if base.flags & SESSION:
            if offset + _SESSION_SIZE == end:
                end -= _SESSION_SIZE
            after = end + _SESSION_SIZE
            if after > len(data):
                return None, after
            session = SessionHeader.unpack(data, end)
            wire = _without_session(wire, end - start)
        message = cls(
            base=base,
            user=user,
            properties=properties,
            transaction=transaction,
            security=security,
            debug=debug,
            soap=soap,
            multi=multi,
            session=session,
            wire_without_body=wire + data[body + len(properties.body) : end],
        )
        return message, after

    @property
    def is_recoverable(self) -> bool:
        return self.user.delivery == RECOVERABLE

    @property
    def is_order_ack(self) -> bool:
        return self.properties.message_class == _ORDER_ACK and self._is_for_order_queue()

    @property
    def is_final_ack(self) -> bool:
        return self.properties.message_class >= _FINAL_ACK and self._is_for_order_queue()

    def _is_for_order_queue(self) -> bool:
        queue = self.user.destination
        if queue.code == PRIVATE_AT_DESTINATION:
            named = queue.number == ORDER_QUEUE_NUMBER
        else:
            named = queue.code == DIRECT and queue.text.upper().endswith(_ORDER_QUEUE)
        return named and self.properties.label == ORDER_ACK_LABEL  # MS-MQQB 3.1.5.1.1

    def _present(self) -> int:
        return (
            (0 if self.transaction is None else TRANSACTION)
            | (0 if self.security is None else SECURITY)
            | (0 if self.soap is None else SOAP)
            | (0 if self.multi is None else MULTI_QUEUE)
        )

    def _identity(self) -> tuple[object, ...]:
        return (
            self.base.priority,
            self.base.time_to_reach_queue,
            self.base.flags & TRACE,
            self.user,
            self.properties,
            self.transaction,
            self.security,
            self.debug,
            self.soap,
            self.multi,
            self.session,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserMessage):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self.user.source, self.user.message_id))


Packet: TypeAlias = EstablishConnection | ConnectionParameters | SessionAck | UserMessage

_INTERNAL: Final[dict[int, type[EstablishConnection | ConnectionParameters | SessionAck]]] = {
    SESSION_ACK: SessionAck,
    ESTABLISH_CONNECTION: EstablishConnection,
    CONNECTION_PARAMETERS: ConnectionParameters,
}


def restore(wire: bytes, body: bytes) -> bytes:
    """The packet that `UserMessage.wire_without_body` and its body came from."""
    _properties, gap = body_place(wire, len(body))
    return wire[:gap] + body + wire[gap:]


def body_place(wire: bytes, size: int) -> tuple[int, int]:
    """Where the MessagePropertiesHeader starts in a packet that lost a body of this size, and
    where the body was."""
    base = BaseHeader.unpack(wire)
    end = len(wire)
    _user, present, offset = UserHeader.unpack_from(wire, _BASE_SIZE, end)
    if present & TRANSACTION:
        _transaction, offset = TransactionHeader.unpack_from(wire, offset, end)
    if present & SECURITY:
        _security, offset = SecurityHeader.unpack_from(wire, offset, end)
    gap, said = PropertiesHeader.body_gap(wire, offset, end)
    if said != size or base.packet_size != end + size:
        raise WireError("MessagePropertiesHeader.MessageSize", said, f"{size} bytes of body")
    return offset, gap


def _without_session(head: bytes, size: int) -> bytes:
    flags = head[2] & ~SESSION
    return head[:2] + bytes((flags,)) + head[3:8] + size.to_bytes(4, "little") + head[12:]


class PacketReader:
    """Cuts one direction of one TCP connection into packets.

    `max_packet` may be lowered and raised at any time, also between two packets of one feed:
    nothing larger is waited for. After a WireError every feed raises it again.
    """

    def __init__(self, max_packet: int = MAX_PACKET) -> None:
        self.max_packet = max_packet
        self._pending = bytearray()
        self._needed = _BASE_SIZE  # bytes before the next packet can be looked at
        self._fault: WireError | None = None
        self._template: Template | None = None
        self._last: tuple[object, ...] = ()  # what the last message without it was like

    @property
    def unfinished(self) -> int:
        """Bytes that wait for the rest of their packet."""
        return len(self._pending)

    def feed(self, data: bytes) -> Iterator[Packet]:
        """All packets that `data` completes; to be run to its end."""
        return cast(Iterator[Packet], self._cut(data, None, 0))

    def feed_open(
        self, data: bytes, peer: str, arrived_ms: int
    ) -> Iterator[Packet | list[Message]]:
        """The same for an open session: most user messages come as what they carry, in runs."""
        return self._cut(data, peer, arrived_ms)

    def _cut(
        self, data: bytes, peer: str | None, arrived_ms: int
    ) -> Iterator[Packet | list[Message]]:
        if self._fault is not None:
            raise self._fault
        if self._pending:
            self._pending += data
            if len(self._pending) < self._needed:
                return
            data = bytes(self._pending)
            self._pending.clear()
        offset, available, self._needed = 0, len(data), _BASE_SIZE
        try:
            while available - offset >= _BASE_SIZE:
                if peer is not None:
                    run: list[Message] = []
                    offset = self._read_run(run, data, offset, available, peer, arrived_ms)
                    if run:
                        yield run
                        continue
                packet, after = self._read(data, offset)
                if packet is None:  # not all there yet
                    self._needed = after - offset
                    break
                yield packet
                offset = after
        except WireError as fault:
            # Without its traceback: that leads back here, and only the collector ends a cycle.
            self._fault = WireError(fault.field, fault.value, fault.rule)
            raise
        self._pending += data[offset:]

    def _read_run(
        self,
        run: list[Message],
        data: bytes,
        offset: int,
        available: int,
        peer: str,
        arrived_ms: int,
    ) -> int:
        """Add all messages up to the first packet that only the long way can read."""
        while True:
            if self._template is not None:
                offset = self._template.read(data, offset, available, arrived_ms, run)
            found = read_message(data, offset, available, peer, arrived_ms)
            if found is None:
                return offset
            message, end = found
            common = common_of(message)  # twice the same: they begin to look alike
            self._template = Template(message, data, offset) if common == self._last else None
            self._last = common
            run.append(message)
            offset = end

    def _read(self, data: bytes, offset: int) -> tuple[Packet | None, int]:
        base = BaseHeader.unpack(data, offset)
        if base.packet_size > self.max_packet:
            raise WireError("BaseHeader.PacketSize", base.packet_size, "too large here")
        if base.flags & INTERNAL:
            return _read_internal(data, offset, base)
        if offset + base.packet_size > len(data):
            return None, offset + base.packet_size
        return UserMessage._read(data, offset, base)


def _read_internal(data: bytes, start: int, base: BaseHeader) -> tuple[Packet | None, int]:
    size = base.packet_size
    if size > EstablishConnection.SIZE:  # none is longer
        raise WireError("BaseHeader.PacketSize", size, "MS-MQQB 2.2.1")
    if base.flags & SESSION and size == SessionAck.SIZE - _SESSION_SIZE:
        size = SessionAck.SIZE  # CONFLICT-1
    end = start + size
    if end > len(data):
        return None, end
    raw = data[start:end]
    kind = packet_type(raw)
    if kind not in _INTERNAL:
        raise WireError("InternalHeader.PT", kind, "MS-MQQB 2.2.1")
    return _INTERNAL[kind].unpack(raw), end
