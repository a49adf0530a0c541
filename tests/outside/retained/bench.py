"""What the tests of retained queues share: the queues, and messages for them."""

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from tests.outside.appliance import Settings, queue
from tests.outside.rawmsmq import Message, Tx, private
from tests.outside.srmp.catcher import Catcher

ADMIN = 0x55  # the private number of the sender's administration queue
SEQUENCE = 0x65000000_00000800
JOURNALED: dict[str, object] = {"mode": "retain", "journal": "{prefix}-kept.journal"}


def kept(*names: str, **more: object) -> dict[str, dict[str, object]]:
    return {name: {"mode": "retain", **more} for name in names}


def settings(prefix: str, catcher: Catcher) -> Settings:
    journal = f"{prefix}-kept.journal"
    return Settings(
        queues={
            **kept("held", "order", "moving", "waits", "acked", "late", "many", "purged", "http"),
            **kept("heldtx", "ackedtx", "latetx", "httptx", transactional=True),
            **kept("kept", journal=journal),
            **kept("brief", journal=f"{prefix}-brief.journal", journal_quota_kb=1),
            **kept("small", quota_kb=4),
            **kept("smalltx", quota_kb=4, transactional=True),
        },
        listen={"srmp": 0},
        srmp={"receipt_targets": ["sender", "loopback"]},
    )


class Letters:
    """Messages of one source for one queue; transactional ones are a stream."""

    def __init__(self, source: UUID, name: str, *, transactional: bool = False) -> None:
        self.source, self.name = source, name
        self._transactional = transactional
        self._ids, self._numbers = count(1), count(1)

    def make(self, **properties: Any) -> Message:
        """Recoverable unless told otherwise; it asks for acks at the sender's ADMIN queue."""
        number, tx = next(self._ids), None
        if self._transactional:
            place = next(self._numbers)
            tx = Tx(
                sequence_id=SEQUENCE,
                number=place,
                previous=place - 1,
                final_ack=properties.pop("final_ack", False),
            )
        usual: dict[str, Any] = {
            "source": self.source,
            "message_id": number,
            "destination": queue(self.name),
            "body": f"{self.name} {number}".encode(),
            "body_type": 8,
            "label": f"letter {number}",
            "recoverable": True,
            "admin": private(ADMIN, code=2),
            "tx": tx,
        }
        return Message(**{**usual, **properties})

    def several(self, number: int, **properties: Any) -> list[Message]:
        return [self.make(**properties) for _ in range(number)]


def ids(messages: Sequence[Message]) -> list[str]:
    return [f"{one.source}\\{one.message_id}" for one in messages]
