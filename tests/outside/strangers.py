"""What a stranger can send in the name of a victim, and how its victim finds out."""

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from tests.outside.appliance import Appliance, number_of, queue
from tests.outside.rawmsmq import (
    ORDER_LABEL,
    ORDER_QUEUE,
    ZERO,
    Message,
    Name,
    Tx,
    direct,
    pad4,
    private,
    public,
)
from tests.outside.rawparse import Received, SessionAck
from tests.outside.rawpeer import Recorder
from tests.outside.rawsender import HungUpError, soon
from tests.outside.reader import Reader
from tests.outside.records import Record, identity
from tests.outside.siege import sample
from tests.support.waiting import eventually

SEQUENCE = 0x65000000_00000700
ALL_ONES = 2**64 - 1
VICTIM_IP, STRANGE_IP = "127.0.0.2", "127.0.0.9"
_ids = count(1_000_000)  # of messages whose id does not matter


def counted(appliance: Appliance, reason: str) -> int:
    return int(sample(appliance, "refusals_total", f'reason="{reason}"'))


def wait_counted(appliance: Appliance, reason: str, at_least: int) -> None:
    """The peer may see the end of its connection before the counter is up."""
    eventually(lambda: counted(appliance, reason) >= at_least, 10)


def plain(source: UUID, message_id: int, destination: Name | None = None) -> Message:
    return Message(
        source=source,
        message_id=message_id,
        destination=destination or queue("plain"),
        body=f"plain {message_id}".encode(),
        recoverable=True,
    )


def step(
    source: UUID,
    number: int,
    previous: int | None = None,
    *,
    destination: Name | None = None,
    sequence: int = SEQUENCE,
    final_ack: bool = False,
) -> Message:
    """Message `number` of a stream; its id is its number."""
    tx = Tx(
        sequence_id=sequence,
        number=number,
        previous=number - 1 if previous is None else previous,
        final_ack=final_ack,
    )
    return Message(
        source=source,
        message_id=number,
        destination=destination or queue("orders"),
        body=f"step {number}".encode(),
        tx=tx,
    )


def odd_direct(text: str) -> Name:
    """A direct name with half of a surrogate pair in it, which UTF-16 on the wire can have."""
    raw = text.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return Name(7, pad4(struct.pack("<H", len(raw)) + raw))


def several(*names: str) -> bytes:
    """MultiQueueFormatHeader with private queues of ours as destinations. MS-MQMQ 2.2.20.1"""
    elements = b"".join(
        struct.pack("<H", 3) + f"OS:BRIDGE01\\private$\\{name}\0".encode("utf-16-le")
        for name in names
    )
    parts = [(0x64, len(names), elements), (0xC8, 0, b""), (0x12C, 0, b"")]
    addresses = b"".join(
        pad4(struct.pack("<IHHI", 12 + len(data), code, 0, number) + data)
        for code, number, data in parts
    )
    return addresses + struct.pack("<HHI", 0x015E, 0, 0)


@contextmanager
def session(
    appliance: Appliance, guid: UUID | None = None, *, local: str, auto_ack: bool = True
) -> Iterator[Recorder]:
    with Recorder(appliance.binary_address, guid, auto_ack=auto_ack) as sender:
        sender.local = local
        sender.connect().handshake()
        yield sender


@contextmanager
def maybe_session(appliance: Appliance, guid: UUID, *, local: str) -> Iterator[Recorder | None]:
    """A session, or None if the handshake is refused."""
    with Recorder(appliance.binary_address, guid) as sender:
        sender.local = local
        sender.connect()
        try:
            sender.handshake()
        except (HungUpError, AssertionError):
            yield None
        else:
            yield sender


def impersonate(
    appliance: Appliance, guid: UUID, messages: Sequence[Message], *, local: str = STRANGE_IP
) -> int:
    """Shake hands as `guid` and send; the bridge may take them or hang up. How many it acked."""
    with maybe_session(appliance, guid, local=local) as stranger:
        if stranger is None:
            return 0
        with suppress(HungUpError):
            stranger.transmit(messages, keep=False)
            stranger.until(lambda: stranger.acked == len(messages))
        return stranger.acked


class Topics(Reader):
    """The records, rejects and verdicts of one appliance."""

    def __init__(self, appliance: Appliance, names: Sequence[str] = ()) -> None:
        self._appliance = appliance
        topics = [appliance.topic(name) for name in names or appliance.queues]
        owned = [appliance.audit_topic, appliance.rejects_topic]
        super().__init__(appliance.bootstrap, [*topics, *owned])

    def bodies(self, name: str, source: UUID) -> list[bytes]:
        return [record.value for record in self.of(source, [self._appliance.topic(name)])]

    def rejects(self, message: Message) -> list[Record]:
        self._catch_up()
        wanted = identity(message.source, message.message_id)
        found = self._records[self._appliance.rejects_topic]
        return [record for record in found if record.header.get("msmq.id") == wanted]

    def verdicts(self, message: Message, peer: str = "") -> list[tuple[str, str]]:
        """(verdict, reason) of every entry for its id, or of those that came from one address."""
        self._catch_up()
        wanted = identity(message.source, message.message_id).decode()
        records = self._records[self._appliance.audit_topic]
        entries: list[dict[str, Any]] = [one for r in records for one in json.loads(r.value)]
        return [
            (one["verdict"], one.get("reason", ""))
            for one in entries
            if one["id"] == wanted and peer in ("", one.get("peer"))
        ]


# -- attacks --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoof:
    """Messages in the victim's name. The victim itself sends to `name` of the queue `queue`."""

    messages: Callable[[UUID, Appliance], Sequence[Message]]
    queue: str = "orders"
    name: Callable[[Appliance], Name] = field(default=lambda _: queue("orders"))
    addressed: bool = False  # the victim's messages name our queue manager, as DQ 3 and 5 need
    transactional: bool = True


def _to(name: Name) -> Callable[[UUID, Appliance], Sequence[Message]]:
    return lambda victim, _: [step(victim, 1, 0, destination=name, sequence=ALL_ONES)]


def _number(_: Appliance) -> Name:
    return private(number_of("orders"))


def _ordinals(**more: Any) -> Callable[[UUID, Appliance], Sequence[Message]]:
    return lambda victim, _: [replace(plain(victim, n), **more) for n in range(1, 31)]


def transactional_ack(source: UUID, kind: int, server: UUID, body: bytes) -> Message:
    """An order ack or a final ack for our order queue. MS-MQQB 3.1.7.15"""
    return Message(
        source=source,
        message_id=next(_ids),
        destination=private(ORDER_QUEUE),
        queue_manager=server,
        label=ORDER_LABEL,
        message_class=kind,
        body=body,
        recoverable=kind != 0x00FF,
    )


_DIRECT_QUEUE = queue("orders")
SPOOFS: Mapping[str, Spoof] = {
    "a sequence id of all ones": Spoof(messages=_to(_DIRECT_QUEUE)),
    "a number of all ones": Spoof(
        messages=lambda victim, _: [step(victim, 2**32 - 1, 0)],
    ),
    "the next sequence": Spoof(
        messages=lambda victim, _: [step(victim, 1, 0, sequence=SEQUENCE + 1)]
    ),
    "the victim's own next number": Spoof(
        messages=lambda victim, _: [step(victim, n, 0) for n in (1, 3, 5)]
    ),
    "a final ack is wanted": Spoof(messages=lambda victim, _: [step(victim, 9, 0, final_ack=True)]),
    "expired": Spoof(
        messages=lambda victim, _: [
            replace(step(victim, 1, 0, sequence=ALL_ONES), sent_time=1, ttrq=1)
        ]
    ),
    "plain ids": Spoof(
        messages=_ordinals(), queue="plain", name=lambda _: queue("plain"), transactional=False
    ),
    "plain ids, express": Spoof(
        messages=_ordinals(recoverable=False),
        queue="plain",
        name=lambda _: queue("plain"),
        transactional=False,
    ),
    "plain ids to a queue that does not exist": Spoof(
        messages=_ordinals(destination=queue("nowhere")),
        queue="plain",
        name=lambda _: queue("plain"),
        transactional=False,
    ),
    "plain ids to a transactional queue": Spoof(
        messages=_ordinals(destination=queue("orders")),
        queue="plain",
        name=lambda _: queue("plain"),
        transactional=False,
    ),
    "plain ids with several destinations": Spoof(
        messages=_ordinals(multi=several("plain", "plain2")),
        queue="plain",
        name=lambda _: queue("plain"),
        transactional=False,
    ),
    "plain ids for another queue manager": Spoof(
        messages=_ordinals(destination=private(7), queue_manager=UUID(int=77)),
        queue="plain",
        name=lambda _: queue("plain"),
        transactional=False,
    ),
    "a stream to several destinations": Spoof(
        messages=lambda victim, _: [
            replace(step(victim, 1, 0, sequence=ALL_ONES), multi=several("orders", "orders2"))
        ]
    ),
    "a stream for another queue manager": Spoof(
        messages=lambda victim, _: [
            replace(step(victim, 1, 0, sequence=ALL_ONES), queue_manager=UUID(int=77))
        ]
    ),
    "a stream to a plain queue": Spoof(
        messages=_to(queue("plain2")),
    ),
    "DQ 3": Spoof(
        messages=lambda victim, appliance: [
            replace(
                step(victim, 1, 0, sequence=ALL_ONES, destination=_number(appliance)),
                queue_manager=appliance.guid,
            )
        ],
        name=_number,
        addressed=True,
    ),
    "DQ 5": Spoof(
        messages=lambda victim, appliance: [
            replace(
                step(victim, 1, 0, sequence=ALL_ONES, destination=public(UUID(int=5))),
                queue_manager=appliance.guid,
            )
        ],
    ),
    "another case of the name": Spoof(
        messages=_to(direct("OS:bridge01\\PRIVATE$\\ORDERS")),
        name=lambda _: direct("OS:bridge01\\PRIVATE$\\ORDERS"),
    ),
    "a queue that does not exist": Spoof(messages=_to(queue("nowhere"))),
    "the journal of the queue": Spoof(
        messages=_to(direct("OS:BRIDGE01\\private$\\orders;journal")),
    ),
    "the dead letters": Spoof(messages=_to(direct("OS:BRIDGE01\\SYSTEM$;DEADXACT"))),
    "the order queue": Spoof(messages=_to(queue("order_queue$"))),
}


class Victim:
    """An honest sender on an address of its own. `send` checks every ack."""

    def __init__(self, appliance: Appliance, spoof: Spoof, local: str) -> None:
        self.guid, self.local = uuid4(), local
        self._appliance, self._spoof = appliance, spoof
        self._last = 0

    def _message(self, number: int) -> Message:
        made = plain(self.guid, number)
        if self._spoof.transactional:
            made = step(self.guid, number)
        owner = self._appliance.guid if self._spoof.addressed else ZERO
        name = self._spoof.name(self._appliance)
        return replace(made, destination=name, queue_manager=owner)

    def open(self) -> Recorder:
        sender = Recorder(self._appliance.binary_address, self.guid)
        sender.local = self.local
        sender.connect().handshake()
        return sender

    def send(self, sender: Recorder, messages: int = 2) -> None:
        numbers = range(self._last + 1, self._last + messages + 1)
        self._last += messages
        sender.send_all_windowed([self._message(number) for number in numbers], soon(20))

    @property
    def expected(self) -> list[bytes]:
        kind = "step" if self._spoof.transactional else "plain"
        return [f"{kind} {number}".encode() for number in range(1, self._last + 1)]

    @property
    def queue(self) -> str:
        return self._spoof.queue


def spoof(
    appliance: Appliance, messages: Sequence[Message], *, local: str = STRANGE_IP
) -> tuple[int, UUID]:
    """Send a message of one's own, then these; both in one write. Returns how many were acked by
    the time the connection ended, and who sent them."""
    with session(appliance, local=local) as stranger:
        own = plain(stranger.guid, next(_ids), queue("plain2"))
        stranger.transmit([own, *messages, own], keep=False)
        stranger.read_to_end(soon(10))
        return stranger.acked, stranger.guid


def session_acks(packets: Sequence[object]) -> list[int]:
    return [one.session.ack for one in packets if isinstance(one, SessionAck)]


def order_acks(packets: Sequence[Received]) -> list[tuple[int, int]]:
    return [one.sequence[:2] for one in packets if one.is_order_ack]


def administration(message: Message, packets: Sequence[Received]) -> list[int]:
    """Classes of the administration acks for one message."""
    key = message.source.bytes_le + struct.pack("<I", message.message_id)
    return [one.message_class for one in packets if one.correlation == key]
