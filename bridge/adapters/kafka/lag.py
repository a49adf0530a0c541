"""How far a reader of topics is behind their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

LOOK_S: Final = 1.0
Partition = tuple[str, int]


class Lag:
    """In the reader's own thread. The client has the ends of what it fetches: nobody is asked.

    A position is what was read, or the end of the partition as the client told it: transaction
    markers behind the last record are nothing that is left to read.
    """

    def __init__(self, positions: Mapping[Partition, int]) -> None:
        self._positions = dict(positions)
        self._looked = 0.0
        self._records = 0

    def follow(self, positions: Mapping[Partition, int]) -> None:
        self._positions |= positions

    def saw(self, message: Message) -> None:
        """A record, or the end of its partition."""
        at, offset = (message.topic() or "", message.partition() or 0), message.offset()
        if offset is not None and offset >= 0:
            self._positions[at] = offset if message.error() is not None else offset + 1

    def measure(self, source: Consumer) -> int:
        """Once a second at most; in between what was found last."""
        if time.monotonic() - self._looked >= LOOK_S:
            self._records = sum(
                _behind(source, at, position) for at, position in self._positions.items()
            )
            self._looked = time.monotonic()
        return self._records


def _behind(source: Consumer, at: Partition, position: int) -> int:
    ends = source.get_watermark_offsets(TopicPartition(*at), cached=True)
    if ends is None or ends[1] < 0:  # not known yet
        return 0
    low, high = ends
    return max(0, high - max(position, low))
