"""Texts to queue names. MS-MQMQ 2.1

Total: any text gives a name or IllegalName.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final
from urllib.parse import unquote

from bridge.model.errors import IllegalName
from bridge.model.formats import (
    DEADLETTER,
    DEADXACT,
    HTTP_PORTS,
    JOURNAL,
    KEYWORDS,
    NO_SUFFIX,
    PRIVATE_PREFIX,
    SUBQUEUE_SUFFIX,
    SYSTEM_QUEUE,
    XACTONLY,
    Connector,
    Direct,
    DistributionList,
    FormatName,
    Machine,
    Multicast,
    PathName,
    Private,
    Public,
)
from bridge.model.guid import Guid

__all__ = [
    "Connector",
    "Direct",
    "DistributionList",
    "FormatName",
    "Machine",
    "Multicast",
    "PathName",
    "Private",
    "Public",
    "parse_format_name",
    "parse_format_names",
    "parse_path_name",
]

_MACHINE_SUFFIXES: Final = frozenset({JOURNAL, DEADLETTER, DEADXACT})
_GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_HOST: Final = re.compile(r"[^\x00-\x20\\/;,]{1,256}")
_QUEUE: Final = re.compile(r'[^\x00-\x1f\\;+,"]{1,124}')
_SUBQUEUE: Final = re.compile(r'[^\x00-\x1f\\;+,"]{1,32}')
_NUMBER: Final = re.compile(r"[0-9a-f]{1,8}", re.I)
_SPX: Final = re.compile(r"[0-9a-f]{8}:[0-9a-f]{12}", re.I)
_DOMAIN: Final = re.compile(r"[^\x00-\x20,;]{1,255}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_URL: Final = re.compile(
    r"//(\[[^\]\\/]+\]|[^:\\/\[\]]+)(?::([0-9]{0,5}))?[\\/]msmq[\\/](.*)", re.I | re.S
)


def parse_format_name(text: str) -> FormatName:
    """One format name. MS-MQMQ 2.1.2 to 2.1.6"""
    return (_known_format_name if len(text) <= _KEPT else _parse_format_name)(text)


def _parse_format_name(text: str) -> FormatName:
    keyword, equals, rest = text.partition("=")
    parse = _PARSERS.get(_capitals(keyword))
    if parse is None or not equals:
        raise IllegalName(text, "does not start with DIRECT=, PUBLIC=, PRIVATE= or the like")
    try:
        return parse(rest)
    except _FaultError as fault:
        raise IllegalName(text, str(fault)) from None


def parse_format_names(text: str) -> tuple[FormatName, ...]:
    """One name or a list with commas, each queue once. MS-MQMQ 2.1.7"""
    names = [parse_format_name(part) for part in text.split(",")]
    if len(names) > 1 and any(name.suffix not in (NO_SUFFIX, XACTONLY) for name in names):
        raise IllegalName(text, "a list holds no journals, dead-letter queues or subqueues")
    return tuple(dict.fromkeys(names))


def parse_path_name(text: str) -> PathName:
    """MS-MQMQ 2.1.1"""
    return (_known_path_name if len(text) <= _KEPT else _parse_path_name)(text)


def _parse_path_name(text: str) -> PathName:
    computer, backslash, rest = text.partition("\\")
    try:
        if not backslash:
            raise _FaultError("no queue: a backslash is missing")
        private, queue, suffix, subqueue = _queue(rest)
        return PathName(
            computer=_match(_HOST, computer, "computer"),
            private=private,
            queue=queue,
            suffix=suffix,
            subqueue=subqueue,
        )
    except _FaultError as fault:
        raise IllegalName(text, str(fault)) from None


# Names come from peers: a long one is parsed again rather than kept.
_KEPT: Final = 1024  # characters
_known_format_name = lru_cache(maxsize=4096)(_parse_format_name)
_known_path_name = lru_cache(maxsize=4096)(_parse_path_name)


class _FaultError(Exception):
    """What is wrong with a part; becomes an IllegalName for the whole."""


def _capitals(keyword: str) -> str:
    return keyword.upper() if keyword.isascii() else keyword  # a dotless i is no I


def _match(pattern: re.Pattern[str], text: str, what: str) -> str:
    if pattern.fullmatch(text) is None:
        raise _FaultError(f"bad {what}")
    return text


def _guid(text: str) -> Guid:
    return Guid.parse(_match(_GUID, text, "GUID"))


def _split_suffix(text: str, *allowed: int) -> tuple[str, int]:
    head, semicolon, word = text.partition(";")
    suffix = KEYWORDS.get(_capitals(word), -1) if semicolon else NO_SUFFIX
    if suffix not in allowed:
        raise _FaultError(f"bad suffix {word!r}" if word else "needs a suffix")
    return head, suffix


def _queue(text: str) -> tuple[bool, str, int, str]:
    """private, queue, suffix and subqueue from `[PRIVATE$\\]name[;suffix]`."""
    head, backslash, rest = text.partition("\\")
    private = bool(backslash) and _capitals(head) == PRIVATE_PREFIX
    name, semicolon, word = (rest if private else text).partition(";")
    if _capitals(name) == SYSTEM_QUEUE and not private:
        suffix = KEYWORDS.get(_capitals(word), NO_SUFFIX)
        if suffix not in _MACHINE_SUFFIXES:
            raise _FaultError("SYSTEM$ needs ;JOURNAL, ;DEADLETTER or ;DEADXACT")
        return False, SYSTEM_QUEUE, suffix, ""
    _match(_QUEUE, name, "queue name")
    if _capitals(name) == PRIVATE_PREFIX:
        raise _FaultError("PRIVATE$ is not a queue")
    if not semicolon:
        return private, name, NO_SUFFIX, ""
    suffix = KEYWORDS.get(_capitals(word), SUBQUEUE_SUFFIX)  # a keyword beats a subqueue
    if suffix == JOURNAL:
        return private, name, JOURNAL, ""
    if suffix != SUBQUEUE_SUFFIX:
        raise _FaultError(f"bad suffix {word!r}")
    return private, name, suffix, _match(_SUBQUEUE, word, "subqueue name")


def _direct(text: str) -> Direct:
    protocol, _, rest = text.partition(":")
    protocol = _capitals(protocol)
    if protocol in HTTP_PORTS:
        return _direct_http(protocol, rest)
    check = _ADDRESSES.get(protocol)
    host, backslash, path = rest.partition("\\")
    if check is None or not backslash:
        raise _FaultError("no queue: a backslash is missing" if check else "unknown protocol")
    check(host)
    private, queue, suffix, subqueue = _queue(path)
    return Direct(
        protocol=protocol,
        host=host,
        private=private,
        queue=queue,
        suffix=suffix,
        subqueue=subqueue,
    )


def _direct_http(protocol: str, rest: str) -> Direct:
    # The ABNF has a backslash after /MSMQ, every example a slash: both are the same.
    match = _URL.fullmatch(rest)
    if match is None:
        raise _FaultError("not //host[:port]/MSMQ/queue")
    path = unquote(match[3].partition("?")[0])  # a query belongs to whoever wrote it
    private, queue, suffix, subqueue = _queue(path.replace("/", "\\"))
    return Direct(
        protocol=protocol,
        host=_match(_HOST, match[1], "host"),
        port=_port(match[2]) if match[2] else HTTP_PORTS[protocol],
        private=private,
        queue=queue,
        suffix=suffix,
        subqueue=subqueue,
    )


def _port(text: str) -> int:
    port = int(_match(_PORT, text, "port"))
    if port > 0xFFFF:
        raise _FaultError("bad port")
    return port


def _check_host(text: str) -> None:
    _match(_HOST, text, "host")


def _check_ip(text: str) -> None:
    _match(_HOST, text, "address")
    try:
        ip_address(text)
    except ValueError:
        raise _FaultError("bad IP address") from None


def _check_spx(text: str) -> None:
    _match(_SPX, text, "SPX address")


def _private(text: str) -> Private:
    name, suffix = _split_suffix(text, NO_SUFFIX, JOURNAL)
    machine, _, number = name.partition("\\")
    number = _match(_NUMBER, number, "queue number")
    return Private(guid=_guid(machine), number=int(number, 16), suffix=suffix)


def _public(text: str) -> Public:
    name, suffix = _split_suffix(text, NO_SUFFIX, JOURNAL)
    return Public(guid=_guid(name), suffix=suffix)


def _machine(text: str) -> Machine:
    name, suffix = _split_suffix(text, *_MACHINE_SUFFIXES)
    return Machine(guid=_guid(name), suffix=suffix)


def _connector(text: str) -> Connector:
    name, suffix = _split_suffix(text, NO_SUFFIX, XACTONLY)
    return Connector(guid=_guid(name), suffix=suffix)


def _distribution_list(text: str) -> DistributionList:
    name, at, domain = text.partition("@")
    if at:
        _match(_DOMAIN, domain, "domain")
    return DistributionList(guid=_guid(name), domain=domain)


def _multicast(text: str) -> Multicast:
    address, _, port = text.partition(":")
    try:
        multicast = IPv4Address(address).is_multicast  # 224 to 239
    except ValueError:
        multicast = False
    if not multicast:
        raise _FaultError("not a multicast address")
    return Multicast(address=address, port=_port(port))


_ADDRESSES: Final = {
    "OS": _check_host,
    "TCP": _check_ip,
    "SPX": _check_spx,
    "IPX": _check_spx,
}
_PARSERS: Final[dict[str, Callable[[str], FormatName]]] = {
    "DIRECT": _direct,
    "PRIVATE": _private,
    "PUBLIC": _public,
    "MACHINE": _machine,
    "CONNECTOR": _connector,
    "DL": _distribution_list,
    "MULTICAST": _multicast,
}
