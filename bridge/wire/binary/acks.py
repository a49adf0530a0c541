"""Bodies of the messages that answer transactional ones. MS-MQQB 2.2.4, 2.2.5"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.cursor import guid

ORDER_ACK_LABEL: Final = "QM Ordering Ack"  # of both kinds
ORDER_QUEUE_NUMBER: Final = 4
ORDER_QUEUE_PATH: Final = "\\PRIVATE$\\order_queue$"

_ORDER: Final = Struct("<QII20x")  # x: Windows sends garbage, MS-MQQB <17>
_FINAL: Final = Struct("<QII16sI")


class OrderAckBody(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All messages of the sequence up to `number` are taken. MS-MQQB 2.2.4.1"""

    sequence_id: int
    number: int
    previous_number: int

    def pack(self) -> bytes:
        return _ORDER.pack(self.sequence_id, self.number, self.previous_number)

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        if len(body) != _ORDER.size:
            raise WireError("OrderAck.MessageSize", len(body), "MS-MQQB 2.2.4: 36 bytes")
        sequence_id, number, previous = _ORDER.unpack(body)
        return cls(sequence_id=sequence_id, number=number, previous_number=previous)


class FinalAckBody(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What finally became of one message; the verdict is the message class. MS-MQQB 2.2.5"""

    sequence_id: int
    number: int
    previous_number: int
    source: Guid
    message_id: int

    def pack(self) -> bytes:
        return _FINAL.pack(
            self.sequence_id, self.number, self.previous_number, self.source, self.message_id
        )

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        if len(body) != _FINAL.size:
            raise WireError("FinalAck.MessageSize", len(body), "MS-MQQB 2.2.5: 36 bytes")
        sequence_id, number, previous, source, message_id = _FINAL.unpack(body)
        return cls(
            sequence_id=sequence_id,
            number=number,
            previous_number=previous,
            source=guid(source),
            message_id=message_id,
        )
