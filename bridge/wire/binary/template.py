"""The shortest way: packets that look like the one before.

What a sender puts into a queue has the same names, flags and limits from message to message. Once
two packets of a session agree in all of that, a template reads the next ones: one unpacking, a
comparison of the bytes that must be the same, and what is left is each message's own. A packet
that differs ends the run; `read_message` looks at it then.
tests/wire/binary/test_template.py compares both ways.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from msgspec.structs import astuple

from bridge.model.message import Kind, Message, Transaction
from bridge.wire.binary.base import MAX_PACKET
from bridge.wire.binary.fast import label_of, labels
from bridge.wire.binary.properties import MAX_LABEL
from bridge.wire.binary.transaction import INDEX
from bridge.wire.binary.transaction import LAYOUT as TRANSACTION

_FIELDS: Final = Message.__struct_fields__
_COMMON: Final = slice(_FIELDS.index("delivery"), _FIELDS.index("admin_queue"))
_COUNT: Final = slice(64, 66)  # the length of the name, behind UserHeader.Flags
_unpack_transaction: Final = TRANSACTION.unpack_from


@lru_cache(maxsize=1024)
def _layout(named: int, transaction: int) -> Struct:
    """All up to the label; `named` bytes of flags and name, `transaction` of its header.

    Bytes that must be the same are one field, whatever they mean.
    """
    return Struct(f"<8sI40sII{named}s{transaction}scB2s20s8sII12sI")


def common_of(message: Message) -> tuple[object, ...]:
    """What is the same in every message of a template; of one that `read_message` has read."""
    return message.source, message.destination, *astuple(message)[_COMMON]


class Template:
    """`message` was read from `start`, and the packet before it had the same `common_of`."""

    __slots__ = ("_common", "_fixed", "_in_order", "_name", "_size", "_source", "_unpack")

    def __init__(self, message: Message, data: bytes, start: int) -> None:
        count = int.from_bytes(data[start:][_COUNT], "little")
        self._in_order = message.transaction is not None
        layout = _layout(4 + (count + 5 & ~3), TRANSACTION.size if self._in_order else 0)
        self._unpack, self._size = layout.unpack_from, layout.size
        head, _, limits, _, _, names, _, acks, _, class_, _, kind, _, _, crypto, _ = self._unpack(
            data, start
        )
        self._fixed: tuple[bytes, ...] = head, limits, names, acks, class_, kind, crypto
        self._source, self._name = message.source, message.destination
        self._common = Kind(), *astuple(message)[_COMMON]

    def read(
        self, data: bytes, start: int, available: int, arrived_ms: int, found: list[Message]
    ) -> int:
        """Add all messages from `start` on that look alike; returns where the first other is.

        Long, because a call in it would cost more than most of its lines.
        """
        unpack, size, in_order = self._unpack, self._size, self._in_order
        head_, limits_, names_, acks_, class_, kind_, crypto_ = self._fixed
        source, destination = self._source, self._name
        mark, delivery, priority, ttrq, ttbr, body_type, peer, transport = self._common[:8]
        manager, number_, app, asked, journal, hops, privacy, hash_, cipher = self._common[8:]
        transaction = None
        while available - start >= size:
            (
                head,
                length,
                limits,
                sent,
                ordinal,
                names,
                order,
                acks,
                label_size,
                class__,
                correlation,
                kind,
                body_size,
                room,
                crypto,
                extension_size,
            ) = unpack(data, start)
            end, label = start + length, start + size
            extension = label + 2 * label_size
            body = extension + extension_size
            after = body + body_size
            if (
                names != names_
                or limits != limits_
                or kind != kind_
                or crypto != crypto_
                or acks != acks_
                or class__ != class_
                or head != head_
                or end > available
                or length > MAX_PACKET
                or label_size > MAX_LABEL
                or after + (start - after & 3) > end
                or room < body_size
            ):
                break
            if in_order:
                bits, sequence, number, previous = _unpack_transaction(order)
                if bits & 0x1:  # CG: a GUID follows
                    break
                transaction = Transaction(
                    sequence,
                    number,
                    previous,
                    bits >> 4 & INDEX,
                    bits & 4 != 0,
                    bits & 8 != 0,
                    bits & 2 != 0,
                )
            text = ""
            if label_size:
                raw = data[label:extension]
                text = labels.get(raw) or label_of(raw)
            found.append(
                Message(
                    source,
                    ordinal,
                    destination,
                    transaction,
                    sent,
                    arrived_ms,
                    data[body:after],
                    data[start:body] + data[after:end],
                    text,
                    correlation,
                    data[extension:body],
                    mark,
                    delivery,
                    priority,
                    ttrq,
                    ttbr,
                    body_type,
                    peer,
                    transport,
                    manager,
                    number_,
                    app,
                    asked,
                    journal,
                    hops,
                    privacy,
                    hash_,
                    cipher,
                )
            )
            start = end
        return start
