r"""The queues of this queue manager, for those who look after them: list, read, move, make, end.

The admin port asks through `QueueDesk`. Queues are named there as `bridge.core.retained.naming`
has it, in small letters: `private$\orders`, `private$\orders;journal`, `private$\orders;retry`,
`system$;deadletter`. `queue_name` makes such a name of what a user writes.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from msgspec import Struct

from bridge.model.errors import IllegalName
from bridge.model.formats import KEYWORDS, SYSTEM_QUEUE
from bridge.model.message import Message
from bridge.model.names import parse_path_name

_HERE: Final = (".\\", "./")
_PRIVATE: Final = "private$\\"
_WORDS: Final = {number: word.lower() for word, number in KEYWORDS.items()}


class QueueInfo(Struct, frozen=True, kw_only=True):
    """One queue. Its journal and its subqueues are told with it."""

    name: str  # path name
    mode: Literal["forward", "retain", "system"]
    transactional: bool
    topic: str
    messages: int = 0
    bytes: int = 0
    journal: str = ""  # its topic; empty: there is none
    journal_messages: int = 0
    subqueues: dict[str, int] = {}  # those with messages, and how many
    readers: int = 0  # open handles
    quota_kb: int | None = None  # None: no limit


class Held(Struct, frozen=True, kw_only=True):
    """A message in a queue, or just taken from it."""

    queue: str
    lookup_id: int
    message: Message
    is_locked: bool = False  # somebody is about to receive it
    aborts: int = 0  # MS-MQRR 2.2.5.3
    moves: int = 0
    moved_at: int = 0  # Unix seconds of the last move

    @property
    def counters(self) -> dict[str, str]:
        """Those that are not 0, by their names in the header table."""
        counted = {"aborts": self.aborts, "moves": self.moves, "moved": self.moved_at}
        return {f"msmq.sub.{name}": str(count) for name, count in counted.items() if count}


class QueueDesk(Protocol):
    """Every call raises Refused (with its MSMQ status) if it cannot be done, Unavailable while
    Kafka is away. Then nothing has happened, or nobody can tell (SinkUnavailable)."""

    def queues(self) -> list[QueueInfo]:
        """All of them, those of the machine too."""

    async def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> list[Held]:
        """The first ones, or those behind the lookup id `after`, in order, locked ones too.

        With `lookup_id` that one message; Refused(MESSAGE_NOT_FOUND) if it is not there.
        """

    async def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> Held | None:
        """The first one that nobody holds, or the one with that id (for which nobody waits).

        Removed and committed when it returns; None when none came in time. A caller that is
        cancelled while it waits has taken nothing.
        """

    async def purge(self, queue: str) -> int:
        """Remove all that is in it now; returns how many these were."""

    async def move(self, queue: str, lookup_id: int, to: str) -> int:
        """To its subqueue, back, or between two of them; returns the new lookup id."""

    async def create(
        self, queue: str, *, transactional: bool, topic: str | None, journal: str | None
    ) -> None:
        """A retained queue, in the mapping files too; the name has the case that it was written in.

        Raises ConfigError if no mapping can say it.
        """

    async def delete(self, queue: str) -> int:
        """With its journal, its subqueues and its entry in the mapping files.

        Returns how many messages went with it. Raises ConfigError if it has no entry of its own.
        """


def queue_name(text: str) -> str:
    """The name of a queue that a user wrote; IllegalName if it is none."""
    return written_name(text).lower()


def written_name(text: str) -> str:
    r"""The same, but the queue's own name keeps its case.

    A path name of this queue manager, with or without `.\` in front; `private$/orders` for
    `private$\orders` (any other slash belongs to the name); `;deadletter`, `;deadxact` and
    `;journal` are the queues of the machine.
    """
    name = text[2:] if text.startswith(_HERE) else text
    if name[: len(_PRIVATE)].lower() == _PRIVATE.replace("\\", "/"):
        name = _PRIVATE + name[len(_PRIVATE) :]
    if name.startswith(";"):
        name = SYSTEM_QUEUE + name
    try:
        path = parse_path_name(f".\\{name}")
    except IllegalName as error:
        raise IllegalName(text, error.why) from None
    queue = path.queue.lower() if path.queue == SYSTEM_QUEUE else path.queue
    suffix = path.subqueue or _WORDS.get(path.suffix, "")
    return f"{_PRIVATE if path.private else ''}{queue}{f';{suffix}' if suffix else ''}"
