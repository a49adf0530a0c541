"""Which message is it that Kafka refuses? The messages of a unit that was refused are tried again
in small units, each record traced to its message, until all of them have a verdict."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Final, Protocol, TypeVar

import msgspec

from bridge.core.admission import REFUSED_BY_KAFKA, TOO_LARGE, Refusal
from bridge.core.ports import RefusedRecord
from bridge.model.message import Message
from bridge.model.verdict import Verdict

PART: Final = 200  # messages of a traced unit
MAX_TEXT: Final = 500
_SIZES: Final = frozenset(("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE"))
CLOCK: Final = "INVALID_TIMESTAMP"


class Cuttable(Protocol):
    """Messages that came together."""

    messages: Sequence[Message]
    on_decided: Callable[[Sequence[Verdict]], None]
    doomed: Mapping[int, Refusal]

    def measure(self) -> None: ...


Whole = TypeVar("Whole", bound=Cuttable)


def reason_of(refused: RefusedRecord) -> Refusal:
    base = TOO_LARGE if refused.error in _SIZES else REFUSED_BY_KAFKA
    detail = f"{refused.error}: {refused.text}"[:MAX_TEXT]
    return msgspec.structs.replace(base, detail=detail)


def cut(whole: Whole, most: int = PART) -> list[Whole]:
    """The same messages in parts, to be decided in this order; who sent them hears all at once."""
    verdicts: list[Verdict] = []
    total = len(whole.messages)
    on_decided = whole.on_decided

    def collect(decided: Sequence[Verdict]) -> None:
        verdicts.extend(decided)
        if len(verdicts) == total:
            on_decided(verdicts)

    parts: list[Whole] = []
    for start in range(0, total, most):
        part = copy(whole)
        part.messages = whole.messages[start : start + most]
        part.doomed = {i - start: why for i, why in whole.doomed.items() if 0 <= i - start < most}
        part.on_decided = collect
        part.measure()
        parts.append(part)
    return parts


class Suspects:
    """How much of what waits is to be tried carefully, and what the last traced unit showed."""

    def __init__(self) -> None:
        self.left = 0  # submissions at the head of what waits
        self.ends: list[int] = []  # records of the traced unit up to each of its messages

    def __bool__(self) -> bool:
        return self.left > 0

    def settled(self, submissions: int) -> None:
        self.left = max(0, self.left - submissions)

    def message_of(self, position: int) -> int | None:
        """Which message of the traced unit made this record."""
        index = bisect_right(self.ends, position)
        return index if index < len(self.ends) else None

    def blame(self, refused: Iterable[RefusedRecord]) -> dict[int, RefusedRecord]:
        """Messages whose records are refused for what they are: the first refusal of each."""
        found: dict[int, RefusedRecord] = {}
        for one in refused:
            index = self.message_of(one.position)
            if index is not None and not one.of_topic:
                found.setdefault(index, one)
        return found
