r"""Which queue of ours a QUEUE_FORMAT means: its name as in `bridge.core.retained.naming`. RR-17

A suffix may stand in the text (`OS:host\private$\orders;JOURNAL`), in the byte for it, or in both;
Windows writes both. Two that differ are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.naming import journal_of, subqueue_of
from bridge.model.errors import IllegalName
from bridge.model.formats import (
    DEADLETTER,
    DEADXACT,
    DIRECT,
    JOURNAL,
    KEYWORDS,
    MACHINE,
    NO_SUFFIX,
    PRIVATE,
    PUBLIC,
    SUBQUEUE,
    SUBQUEUE_SUFFIX,
    Direct,
)
from bridge.model.guid import Guid
from bridge.model.names import parse_format_name
from bridge.wire.rpc.queue_format import SYSTEM, QueueFormat

_WORDS: Final = {number: word for word, number in KEYWORDS.items()}
# The kinds that may have a suffix, by the whole byte. Digest remote-read.md 3.1
_LAWFUL: Final = {
    NO_SUFFIX: (PUBLIC, PRIVATE, DIRECT, SUBQUEUE),
    SYSTEM | JOURNAL: (PUBLIC, PRIVATE, DIRECT, MACHINE, SUBQUEUE),
    SYSTEM | DEADLETTER: (DIRECT, MACHINE, SUBQUEUE),
    SYSTEM | DEADXACT: (DIRECT, MACHINE),
    SUBQUEUE_SUFFIX: (SUBQUEUE,),
}
_PROTOCOLS: Final = ("OS", "TCP")


class Home(msgspec.Struct, frozen=True):
    """What is local: our GUID, our hosts in lower case, and our private queues by their numbers."""

    guid: Guid
    is_ours: Callable[[str], bool]
    path_of: Callable[[int], str | None]


def queue_of(name: QueueFormat, home: Home) -> str:
    """Refused: INVALID_PARAMETER if no queue can be called that, QUEUE_NOT_FOUND if it is not
    one of ours. Whether there is such a queue is for others to say."""
    if name.kind not in _LAWFUL.get(name.suffix, ()):
        raise Refused(Status.INVALID_PARAMETER, f"type {name.kind} with suffix {name.suffix:#x}")
    suffix = name.suffix & ~SYSTEM
    if name.kind in (DIRECT, SUBQUEUE):
        return _direct(name.text, suffix, home)
    if name.kind == PUBLIC or name.guid != home.guid:  # we have no directory
        raise Refused(Status.QUEUE_NOT_FOUND, str(name.guid))
    if name.kind == MACHINE:
        return f"system$;{_WORDS[suffix].lower()}"
    path = home.path_of(name.number)
    if path is None:
        raise Refused(Status.QUEUE_NOT_FOUND, f"{name.number:08x}")
    return journal_of(path.lower()) if suffix == JOURNAL else path.lower()


def _direct(text: str | None, suffix: int, home: Home) -> str:
    name = _parse(text or "", suffix)
    if name.protocol not in _PROTOCOLS:
        raise Refused(Status.INVALID_PARAMETER, f"nothing is read by {name.protocol}")
    if suffix not in (NO_SUFFIX, name.suffix):
        raise Refused(Status.INVALID_PARAMETER, f"{text!r}, but its suffix says {suffix}")
    if not home.is_ours(name.host.lower().removesuffix(".")):
        raise Refused(Status.QUEUE_NOT_FOUND, name.host)
    path = f"private$\\{name.queue}".lower() if name.private else name.queue.lower()
    if name.suffix == NO_SUFFIX:
        return path
    if name.suffix == SUBQUEUE_SUFFIX:
        return subqueue_of(path, name.subqueue)
    return f"{path};{_WORDS[name.suffix].lower()}"


def _parse(text: str, suffix: int) -> Direct:
    """The byte can say it instead of the text."""
    if ";" not in text and suffix in _WORDS:
        text = f"{text};{_WORDS[suffix]}"
    try:
        name = parse_format_name(f"DIRECT={text}")
    except IllegalName as error:
        raise Refused(Status.INVALID_PARAMETER, str(error)) from None
    assert isinstance(name, Direct)
    return name
