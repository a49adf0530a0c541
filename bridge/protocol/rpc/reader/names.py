r"""Which queue is meant, as the server wants to hear it. RR-45, digest 3.1

A format name, a path name with its computer, or a path name on the host that is asked:
`private$\orders`, `orders;retry`, `;deadletter`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

import msgspec

from bridge.model.errors import IllegalName
from bridge.model.formats import (
    KEYWORDS,
    MACHINE,
    NO_SUFFIX,
    PRIVATE_PREFIX,
    PUBLIC,
    SUBQUEUE_SUFFIX,
    SYSTEM_QUEUE,
    Direct,
    Machine,
    PathName,
    Private,
    Public,
)
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.names import parse_format_name, parse_path_name
from bridge.wire.rpc.queue_format import SYSTEM, QueueFormat

_WORDS: Final = {number: word.lower() for word, number in KEYWORDS.items()}
_HERE: Final = (".\\", "./")
_READABLE: Final = ("OS", "TCP")


class Target(msgspec.Struct, frozen=True):
    """`name` is its path name on its computer, as exports have it."""

    format: QueueFormat
    name: str
    manager: Guid = NULL_GUID  # of its queue manager, if the name tells


def target(text: str, host: str) -> Target:
    """IllegalName if it is none, or names a queue that remote read does not reach."""
    if "=" in text.partition("\\")[0].partition(";")[0]:
        return _of_format(text)
    return _of_path(parse_path_name(_with_computer(text, host)))


def _with_computer(text: str, host: str) -> str:
    name = text[2:] if text.startswith(_HERE) else text
    if name.upper().startswith(f"{PRIVATE_PREFIX}/"):
        name = name.replace("/", "\\", 1)
    if name.startswith(";"):
        name = SYSTEM_QUEUE + name
    head, backslash, _ = name.partition("\\")
    is_here = not backslash or head.upper() == PRIVATE_PREFIX
    return f"{host}\\{name}" if is_here else name


def _of_path(path: PathName) -> Target:
    direct = Direct(
        protocol=_protocol(path.computer),
        host=path.computer,
        private=path.private,
        queue=path.queue,
        suffix=path.suffix,
        subqueue=path.subqueue,
    )
    return _of_direct(direct)


def _protocol(host: str) -> str:
    try:
        ip_address(host)
    except ValueError:
        return "OS"
    return "TCP"  # MS-MQMQ 2.1.2: an address and no name


def _of_format(text: str) -> Target:
    name = parse_format_name(text)
    match name:
        case Direct() if name.protocol in _READABLE:
            return _of_direct(name)
        case Private():
            wanted = QueueFormat(
                kind=name.kind, suffix=_suffix(name.suffix), guid=name.guid, number=name.number
            )
            return Target(wanted, name.canonical.lower(), name.guid)
        case Public():
            wanted = QueueFormat(kind=PUBLIC, suffix=_suffix(name.suffix), guid=name.guid)
            return Target(wanted, name.canonical.lower())
        case Machine():
            wanted = QueueFormat(kind=MACHINE, suffix=_suffix(name.suffix), guid=name.guid)
            return Target(wanted, f"{SYSTEM_QUEUE};{_WORDS[name.suffix]}".lower(), name.guid)
    raise IllegalName(text, "such a queue cannot be read from afar")


def _of_direct(name: Direct) -> Target:
    wanted = QueueFormat(
        kind=name.kind,
        suffix=_suffix(name.suffix),
        text=str(name).removeprefix("DIRECT="),  # and the suffix in the text too: "send both"
    )
    tail = name.subqueue or _WORDS.get(name.suffix, "")
    private = f"{PRIVATE_PREFIX}\\" if name.private else ""
    shown = f"{private}{name.queue}{f';{tail}' if tail else ''}"
    return Target(wanted, shown.lower())


def _suffix(suffix: int) -> int:
    """Legal pairs of m_SuffixAndFlags: 00, 81, 82, 83, 05."""
    return suffix if suffix in (NO_SUFFIX, SUBQUEUE_SUFFIX) else SYSTEM | suffix
