"""What we owe a sender for a message that has its verdict. MS-MQQB 3.1.7.15, 3.1.7.17

An ack is made once, with its id and its bytes, and lies in the outbox (the state topic) from the
transaction of its cause until the peer has session-acked it, or its time is over. So a restart
neither loses it nor sends a second one with another id.

For an administration queue `DIRECT=HTTP` the ack is a receipt of MC-MQSRM. SRMP has receipts for a
message that reached its queue; for one that did not it has none, and a receiver ignores what is not
a receipt (MC-MQSRM 3.1.5.1.5; docs/decisions.md, Q4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from struct import Struct
from typing import Final

import msgspec

from bridge.core.ports import OutboxEntry
from bridge.model.classes import MessageClass
from bridge.model.errors import IllegalName, WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.hosts import canonical
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    FOUR_DAYS,
    INFINITE,
    NACK_ARRIVAL,
    NACK_RECEIVE,
    RECOVERABLE,
    Message,
    Transaction,
)
from bridge.model.names import Direct, FormatName, Private, Public, parse_format_name
from bridge.protocol.binary.order_acks import to_order_queue
from bridge.wire.binary.acks import FinalAckBody
from bridge.wire.binary.convert import message_from_packet, packet_from_message
from bridge.wire.binary.packet import UserMessage
from bridge.wire.srmp.convert import envelope_name
from bridge.wire.srmp.kinds import NEGATIVE, POSITIVE
from bridge.wire.srmp.receipts import Original, Post, commitment_receipt, delivery_receipt
from bridge.wire.srmp.values import legible
from bridge.wire.srmp.writer import write_envelope

LEAST_S: Final = 600  # an ack to a message that had less time is tried for so long
MAX_HOST: Final = 255  # characters of a host name. RFC 1035 2.3.4
_U32: Final = Struct("<I")
_RECEIVE_STAGE: Final = 0xC000  # a class with one of these bits is an ack already
_ACKS: Final = (MessageClass.REPORT, MessageClass.ACK_REACH_QUEUE, MessageClass.ORDER_ACK)
_RECEIPTS: Final = POSITIVE | NEGATIVE | {MessageClass.ACK_REACH_QUEUE}  # that SRMP has
# Told to a stranger they would say which queues exist: only if asked for. DM-13, QB-111
_INSECURE: Final = frozenset(
    (
        MessageClass.NACK_BAD_DST_Q,
        MessageClass.NACK_ACCESS_DENIED,
        MessageClass.NACK_BAD_SIGNATURE,
        MessageClass.NACK_BAD_ENCRYPTION,
        MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    )
)
# By name, and by number: PRIVATE=…\\00000003 is the notify queue, 4 the order queue.
_SYSTEM_QUEUES: Final = frozenset(
    ("order_queue$", "notify_queue$", "admin_queue$", "00000003", "00000004")
)


class Receipts:
    """Makes acks. `local` and `ordinals` are set once the identity is known."""

    def __init__(
        self,
        *,
        insecure_nacks: bool = False,
        names: Collection[str] = (),
        peers: Collection[str] = (),
    ) -> None:
        self.local: Guid = NULL_GUID
        self.ordinals: Callable[[], int] = lambda: 0
        self._insecure_nacks = insecure_nacks
        self.serves: Callable[[str], bool] = lambda _name: False  # whether a queue is one of ours
        # Hears of acks that go nowhere: the administration queue, the peer that named it, and why.
        self.undeliverable: Callable[[str, str, str], None] = lambda _queue, _peer, _why: None
        self._names = frozenset(canonical(name) for name in names)
        self._peers = frozenset(peer.lower() for peer in peers)

    def accepted(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        """A forward queue receives what it takes (design D5): both stages at once."""
        yield from self.arrived(message, via)
        yield from self._left_at_once(message, MessageClass.ACK_RECEIVE, ACK_RECEIVE, via)

    def expired(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        """It reached its queue, where its time was over at once. MS-MQDMPR 3.1.2.4, 3.1.7.2.7"""
        yield from self.arrived(message, via)
        yield from self._left_at_once(message, MessageClass.NACK_RECEIVE_TIMEOUT, NACK_RECEIVE, via)

    def _left_at_once(
        self, message: Message, outcome: MessageClass, asked: int, via: Guid
    ) -> Iterator[OutboxEntry]:
        tx = message.transaction
        yield from self.left(
            message,
            outcome,
            via,
            admin=bool(message.ack & asked) and _may_be_acked(message),
            final=tx is not None and (tx.final_ack or message.journal != 0),  # DM-18
        )

    def arrived(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        """It is in its queue."""
        if message.ack & ACK_ARRIVAL and _may_be_acked(message):
            yield from self._admin(message, MessageClass.ACK_REACH_QUEUE, via)

    def left(
        self, message: Message, outcome: MessageClass, via: Guid, *, admin: bool, final: bool
    ) -> Iterator[OutboxEntry]:
        """It has left its queue, for good or bad; who wants to hear of it is known. DM-17"""
        if admin:
            yield from self._admin(message, outcome, via)
        if final and message.transaction is not None:
            yield self._final(message, message.transaction, outcome, via)

    def refused(self, message: Message, message_class: int, via: Guid) -> Iterator[OutboxEntry]:
        if (
            message.ack & NACK_ARRIVAL
            and _may_be_acked(message)
            and (self._insecure_nacks or message_class not in _INSECURE)
        ):
            yield from self._admin(message, message_class, via)
        if message.transaction is not None:  # QB-90: always, and at once
            yield self._final(message, message.transaction, message_class, via)

    def report(self, message: Message) -> Iterator[OutboxEntry]:
        """A traced message has arrived. MS-MQQB 3.1.5.8.9, QB-122"""
        queue = message.trace_queue
        if queue is None or str(queue) not in self._peers:
            return
        at = datetime.fromtimestamp(message.arrived_ms // 1000, UTC)
        ordinal = self.ordinals()
        number = f"{message.ordinal:08X}"
        body = (
            f"<MESSAGE ID>{number}</MESSAGE ID>\r\n"
            f"<TARGET QUEUE>{message.destination}</TARGET QUEUE>\r\n"
        )
        trace = Message(
            source=self.local,
            ordinal=ordinal,
            destination=f"PUBLIC={queue}",
            sent_time=message.arrived_ms // 1000,
            message_class=MessageClass.REPORT,
            label=f"{str(message.source)[:4].upper()}:{number}:{message.hops:02X} received by "
            f"{str(message.source).upper()} at {at:%I:%M:%S %p %a,%b %d %y}",
            body=body.encode("utf-16-le", "surrogatepass"),
        )
        packet = packet_from_message(trace).pack()
        yield OutboxEntry(
            ordinal=ordinal,
            host=str(queue),  # not a QM's GUID
            packet=packet,
            expires=expires_of(message),
            cause=message.peer,
        )

    def _final(
        self, message: Message, tx: Transaction, message_class: int, via: Guid
    ) -> OutboxEntry:
        direct = message.destination.startswith("DIRECT=")
        ordinal = self.ordinals()
        packet = to_order_queue(
            source=message.source,
            peer=message.peer if direct else "",
            local=self.local,
            ordinal=ordinal,
            now=message.arrived_ms // 1000,
            message_class=message_class,
            body=FinalAckBody(
                sequence_id=tx.sequence_id,
                number=tx.number,
                previous_number=tx.previous,
                source=message.source,
                message_id=message.ordinal,
            ).pack(),
            delivery=RECOVERABLE,
        )
        # A routed message came from a neighbour of its source, and its ack goes back that way.
        return OutboxEntry(
            ordinal=ordinal,
            queue_manager=str(via),
            host=message.peer,
            packet=packet.pack(),
            expires=expires_of(message),
        )

    def _admin(self, message: Message, message_class: int, via: Guid) -> Iterator[OutboxEntry]:
        url = self._url(message.admin_queue)
        if url:
            yield from self._over_http(message, message_class, url)
            return
        where = self._where(message, via)
        if where is None:  # MS-MQQB 3.1.7.15: it is not sent
            self.undeliverable(message.admin_queue, message.peer, "it is not known where that is")
            return
        queue_manager, host, owner = where
        negative = message_class & 0x8000
        ordinal = self.ordinals()
        ack = Message(
            source=self.local,
            ordinal=ordinal,
            destination=message.admin_queue,
            destination_qm=owner,
            delivery=message.delivery,
            sent_time=message.arrived_ms // 1000,
            time_to_reach_queue=INFINITE,
            time_to_be_received=INFINITE,
            message_class=message_class,
            label=message.label,
            correlation_id=message.source + _U32.pack(message.ordinal),
            response_queue=message.destination,
            body=message.body if negative and not message.encrypted else b"",
            body_type=message.body_type if negative and not message.encrypted else 0,
        )
        try:
            packet = packet_from_message(ack).pack()
        except WireError:  # the names of the ack made it larger than a packet may be
            bare = msgspec.structs.replace(ack, body=b"", body_type=0)
            packet = packet_from_message(bare).pack()
        yield OutboxEntry(
            ordinal=ordinal,
            queue_manager=queue_manager,
            host=host,
            packet=packet,
            expires=expires_of(message),
            cause=message.peer,
        )

    def _over_http(self, message: Message, message_class: int, url: str) -> Iterator[OutboxEntry]:
        """A delivery or commitment receipt. MC-MQSRM 2.2.5.4, 2.2.5.5"""
        if message_class not in _RECEIPTS:
            why = "SRMP has no receipt for a message that did not reach its queue"
            self.undeliverable(message.admin_queue, message.peer, why)
            return
        now = message.arrived_ms // 1000
        post = Post(to=url, source=self.local, ordinal=self.ordinals(), now=now)
        original = Original(
            to=legible(envelope_name(message.destination)),
            identifier=(message.source, message.ordinal),
            label=legible(message.label),
        )
        if message_class == MessageClass.ACK_REACH_QUEUE:
            envelope = delivery_receipt(post, original, now)
        else:
            envelope = commitment_receipt(post, original, message_class, now)
        try:
            packet = write_envelope(envelope)
        except WireError as error:
            self.undeliverable(message.admin_queue, message.peer, str(error))
            return
        yield OutboxEntry(
            ordinal=post.ordinal,
            host=message.peer,
            url=url,
            packet=packet,
            expires=expires_of(message),
        )

    def _url(self, queue: str) -> str:
        """Where a receipt is POSTed to; empty: it is not for HTTP, or the queue is one of ours."""
        try:
            name = parse_format_name(queue)
        except IllegalName:
            return ""
        is_http = isinstance(name, Direct) and name.protocol in ("HTTP", "HTTPS")
        if not is_http or self._is_here(name):
            return ""
        return envelope_name(queue)

    def _is_here(self, name: FormatName) -> bool:
        return isinstance(name, Direct) and (
            canonical(name.host) in self._names or name.host == "."
        )

    def _where(self, message: Message, via: Guid) -> tuple[str, str, Guid] | None:
        """Who takes messages for the administration queue: GUID, host, QueueManagerAddress."""
        try:
            name = parse_format_name(message.admin_queue)
        except IllegalName:
            return None
        if isinstance(name, Private):
            if name.guid in (self.local, NULL_GUID):
                return str(self.local), "", self.local
            if name.guid == message.source:  # back the way it came
                return str(via), message.peer, name.guid
            return str(name.guid), "", name.guid
        if isinstance(name, Public):  # no directory: `peers` can say where it is, or it is ours
            if str(name.guid) in self._peers:
                return "", str(name.guid), NULL_GUID
            is_ours = self.serves(message.admin_queue)
            return (str(self.local), "", self.local) if is_ours else None
        if self._is_here(name):
            return str(self.local), "", NULL_GUID
        if isinstance(name, Direct) and name.protocol in ("OS", "TCP"):
            return None if len(name.host) > MAX_HOST else ("", name.host, NULL_GUID)
        return None


def expires_of(message: Message) -> int:
    """When an ack to this message ends, in Unix seconds: after the time that the message had, and
    four days at most. Counted from `arrived_ms`, which is when the ack is made."""
    had = max(message.time_to_reach_queue, message.time_to_be_received)
    return message.arrived_ms // 1000 + min(max(had, LEAST_S), FOUR_DAYS)


def bare(entry: OutboxEntry) -> OutboxEntry:
    """The same ack, without the body of the message that it is about. A receipt over HTTP, an ack
    that has no such body, and a final ack are returned as they are."""
    if entry.url:
        return entry
    packet = UserMessage.unpack(entry.packet)
    ack = message_from_packet(packet, "", 0)
    if not ack.body or ack.destination.rpartition("\\")[2].lower() in _SYSTEM_QUEUES:
        return entry
    ack = msgspec.structs.replace(ack, body=b"", body_type=0, wire=b"")
    return msgspec.structs.replace(entry, packet=packet_from_message(ack).pack())


def _may_be_acked(message: Message) -> bool:
    """No ack of an ack, none without an administration queue, none for system queues."""
    if not message.admin_queue or message.message_class & _RECEIVE_STAGE:
        return False
    return message.message_class not in _ACKS and (
        message.destination.rpartition("\\")[2].lower() not in _SYSTEM_QUEUES
    )
