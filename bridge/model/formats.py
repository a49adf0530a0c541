"""Queue names as values: the seven format names and the path name. MS-MQMQ 2.1

A name keeps the spelling of its hosts and queues but compares without regard to case.
`canonical` writes keywords in capitals, GUIDs small, numbers as eight hex digits.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from bridge.model.guid import Guid

# FormatName.kind. MS-MQMQ 2.2.6
PUBLIC: Final = 1
PRIVATE: Final = 2
DIRECT: Final = 3
MACHINE: Final = 4
CONNECTOR: Final = 5
DISTRIBUTION_LIST: Final = 6
MULTICAST: Final = 7
SUBQUEUE: Final = 8

# FormatName.suffix. MS-MQMQ 2.2.11
NO_SUFFIX: Final = 0
JOURNAL: Final = 1
DEADLETTER: Final = 2
DEADXACT: Final = 3
XACTONLY: Final = 4
SUBQUEUE_SUFFIX: Final = 5

ORDER_QUEUE: Final = 4  # Private.number; only queue managers send there

KEYWORDS: Final = {
    "JOURNAL": JOURNAL,
    "DEADLETTER": DEADLETTER,
    "DEADXACT": DEADXACT,
    "XACTONLY": XACTONLY,
}
HTTP_PORTS: Final = {"HTTP": 80, "HTTPS": 443}
SYSTEM_QUEUE: Final = "SYSTEM$"
PRIVATE_PREFIX: Final = "PRIVATE$"

_SUFFIX_TEXT: Final = {number: f";{word}" for word, number in KEYWORDS.items()}


def _suffix(suffix: int, subqueue: str = "") -> str:
    return f";{subqueue}" if suffix == SUBQUEUE_SUFFIX else _SUFFIX_TEXT.get(suffix, "")


class _Name(msgspec.Struct, frozen=True, kw_only=True, gc=False, eq=False):
    @property
    def canonical(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Name):
            return NotImplemented
        return str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())


class Direct(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """A queue by the address of its computer. MS-MQMQ 2.1.2"""

    protocol: str  # OS, TCP, SPX, IPX, HTTP or HTTPS
    host: str
    port: int | None = None  # HTTP and HTTPS only
    private: bool = False
    queue: str  # "SYSTEM$" for the queues of the machine itself
    suffix: int = NO_SUFFIX
    subqueue: str = ""

    @property
    def kind(self) -> int:
        return SUBQUEUE if self.suffix == SUBQUEUE_SUFFIX else DIRECT

    @property
    def system(self) -> bool:
        return self.queue == SYSTEM_QUEUE

    @property
    def sendable(self) -> bool:
        return self.suffix == NO_SUFFIX

    @property
    def readable(self) -> bool:
        return self.port is None

    @property
    def path(self) -> str:
        """Where a POST goes, as Windows writes it; empty unless HTTP. MC-MQSRM 4.4"""
        if self.port is None:
            return ""
        return f"/msmq/{'private$/' if self.private else ''}{self.queue}".lower()

    def __str__(self) -> str:
        tail = self.queue + _suffix(self.suffix, self.subqueue)
        if self.port is None:
            private = f"{PRIVATE_PREFIX}\\" if self.private else ""
            return f"DIRECT={self.protocol}:{self.host}\\{private}{tail}"
        port = "" if self.port == HTTP_PORTS[self.protocol] else f":{self.port}"
        private = f"{PRIVATE_PREFIX}/" if self.private else ""
        tail = tail.replace("%", "%25").replace("?", "%3F")  # as they are they would be a URL's own
        return f"DIRECT={self.protocol}://{self.host}{port}/MSMQ/{private}{tail}"


class Private(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """A private queue by its number on a queue manager. MS-MQMQ 2.1.4"""

    guid: Guid
    number: int
    suffix: int = NO_SUFFIX
    kind = PRIVATE
    readable = True

    @property
    def sendable(self) -> bool:
        return self.suffix == NO_SUFFIX and self.number != ORDER_QUEUE

    def __str__(self) -> str:
        return f"PRIVATE={self.guid}\\{self.number:08x}{_suffix(self.suffix)}"


class Public(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """A queue in the directory. MS-MQMQ 2.1.3"""

    guid: Guid
    suffix: int = NO_SUFFIX
    kind = PUBLIC
    readable = True

    @property
    def sendable(self) -> bool:
        return self.suffix == NO_SUFFIX

    def __str__(self) -> str:
        return f"PUBLIC={self.guid}{_suffix(self.suffix)}"


class Machine(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """The journal or a dead-letter queue of a queue manager. MS-MQMQ 2.1.6"""

    guid: Guid
    suffix: int
    kind = MACHINE
    sendable = False
    readable = True

    def __str__(self) -> str:
        return f"MACHINE={self.guid}{_suffix(self.suffix)}"


class Connector(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """A foreign queue manager's connector queue. MS-MQMQ 2.1.6"""

    guid: Guid
    suffix: int = NO_SUFFIX  # or XACTONLY
    kind = CONNECTOR
    sendable = True
    readable = True

    def __str__(self) -> str:
        return f"CONNECTOR={self.guid}{_suffix(self.suffix)}"


class DistributionList(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """MS-MQMQ 2.1.5"""

    guid: Guid
    domain: str = ""
    kind = DISTRIBUTION_LIST
    suffix = NO_SUFFIX
    sendable = True
    readable = False

    def __str__(self) -> str:
        return f"DL={self.guid}@{self.domain}" if self.domain else f"DL={self.guid}"


class Multicast(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """MS-MQMQ 2.1.6"""

    address: str
    port: int
    kind = MULTICAST
    suffix = NO_SUFFIX
    sendable = True
    readable = False

    def __str__(self) -> str:
        return f"MULTICAST={self.address}:{self.port}"


class PathName(_Name, frozen=True, kw_only=True, gc=False, eq=False):
    """`Computer\\private$\\Queue`; the computer `.` is this one. MS-MQMQ 2.1.1"""

    computer: str
    private: bool = False
    queue: str
    suffix: int = NO_SUFFIX
    subqueue: str = ""

    @property
    def local(self) -> bool:
        return self.computer == "."

    def __str__(self) -> str:
        private = f"{PRIVATE_PREFIX}\\" if self.private else ""
        tail = _suffix(self.suffix, self.subqueue)
        return f"{self.computer}\\{private}{self.queue}{tail}"


FormatName: TypeAlias = (
    Direct | Private | Public | Machine | Connector | DistributionList | Multicast
)
