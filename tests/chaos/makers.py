"""What applications hand to a queue manager: messages with bodies that nobody else has."""

import random
from typing import Final
from uuid import UUID

from tests.chaos.history import Mode, Op, digest_of, make_body

LARGE: Final = 48 * 1024
FRESH: Final = "new-"  # a queue that nobody listed: it is made, with a topic of its name


def queue_name(prefix: str, name: str) -> str:
    return f"{prefix}-{name}" if name.startswith(FRESH) else name


def topic_name(prefix: str, name: str) -> str:
    return f"{prefix}-{name}"


class Source:
    """One queue manager: all its messages have their ids from one row."""

    def __init__(self, guid: UUID, rng: random.Random, prefix: str) -> None:
        self.guid, self._rng, self._prefix = guid, rng, prefix
        self.elsewhere = ""  # while it is set, messages go to this queue
        self.ordinal = 0
        self._numbers: dict[str, int] = {}

    def make(self, mode: Mode, name: str, kind: int, *, posted: bool = False) -> tuple[Op, bytes]:
        """The next message for the queue `name`, and its body."""
        self.ordinal += 1
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        filler = self._rng.randbytes(self._size())
        body = make_body(self.guid.bytes_le, kind, self.ordinal, filler)
        op = Op(
            identity=f"{self.guid}\\{self.ordinal}",
            mode=mode,
            stream=f"{self.guid}/{name}",
            topic=topic_name(self._prefix, name),
            number=number,
            digest=digest_of(body),
            posted=posted,
        )
        return op, body

    def _size(self) -> int:
        return self._rng.randrange(LARGE) if self._rng.random() < 0.01 else self._rng.randrange(900)
