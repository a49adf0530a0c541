r"""What queues are called in here: the path name on this queue manager, in small letters.

    private$\orders            a queue
    private$\orders;journal    its target journal: received messages
    private$\orders;retry      a subqueue
    system$;deadletter         a queue of the machine itself

A family is a queue with its journal and its subqueues.
"""

from __future__ import annotations

from typing import Final

DEADLETTER: Final = "system$;deadletter"
DEADXACT: Final = "system$;deadxact"
MACHINE_JOURNAL: Final = "system$;journal"
SYSTEM_QUEUES: Final = (DEADLETTER, DEADXACT, MACHINE_JOURNAL)

_JOURNAL: Final = ";journal"
_SYSTEM: Final = "system$;"


def journal_of(queue: str) -> str:
    return queue + _JOURNAL


def subqueue_of(queue: str, name: str) -> str:
    return f"{queue};{name.lower()}"


def parent_of(name: str) -> str:
    """The queue that a journal or a subqueue belongs to; a queue is its own parent."""
    return name if name.startswith(_SYSTEM) else name.partition(";")[0]


def is_system(name: str) -> bool:
    """Filled by the queue manager only: journals and the queues of the machine. DM-14"""
    return name.startswith(_SYSTEM) or name.endswith(_JOURNAL)


def is_subqueue(name: str) -> bool:
    return ";" in name and not is_system(name)
