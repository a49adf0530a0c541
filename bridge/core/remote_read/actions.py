"""What a reader can ask for: action codes, and what else a call may say with each of them.

MS-MQRR 3.1.4.7, MS-MQQP 3.1.4.1 and 3.1.4.11 have the same codes; the lookup rules of MS-MQQP apply
to both (docs/decisions.md, "LookupId 0").
"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.reading import Seek

RECEIVE: Final = 0x00000000
PEEK_CURRENT: Final = 0x80000000
PEEK_NEXT: Final = 0x80000001
LAST: Final = 0xFFFFFFFFFFFFFFFF  # with a *_PREV action: no message has this lookup id
FOR_EVER: Final = 0xFFFFFFFF

_SEEKS: Final = {
    0x40000010: (False, Seek.CURRENT),
    0x40000011: (False, Seek.NEXT),
    0x40000012: (False, Seek.PREVIOUS),
    0x40000020: (True, Seek.CURRENT),
    0x40000021: (True, Seek.NEXT),
    0x40000022: (True, Seek.PREVIOUS),
}


class Wanted(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A read that makes sense."""

    is_receive: bool
    is_next: bool = False
    cursor: int = 0
    wait_s: float | None = 0.0  # None: for ever
    seek: Seek | None = None  # by lookup id
    lookup_id: int = 0


def wanted(code: int, *, lookup_id: int, cursor: int, timeout_ms: int) -> Wanted:
    """By the table of MS-MQRR 3.1.4.7, except that LookupId 0 with a *_NEXT action is the first
    message, as in MS-MQQP 3.1.4.11."""
    if code in _SEEKS:
        return wanted_by_lookup(code, lookup_id=lookup_id, cursor=cursor, timeout_ms=timeout_ms)
    if lookup_id:
        raise Refused(Status.INVALID_PARAMETER, "a lookup id, but no lookup action")
    if code == PEEK_NEXT and not cursor:
        raise Refused(Status.INVALID_PARAMETER, "there is no next one without a cursor")
    return plainly_wanted(code, cursor=cursor, timeout_ms=timeout_ms)


def plainly_wanted(code: int, *, cursor: int, timeout_ms: int) -> Wanted:
    """MS-MQQP 3.1.4.1: the first one, or that of a cursor."""
    if code not in (RECEIVE, PEEK_CURRENT, PEEK_NEXT):
        raise Refused(Status.INVALID_PARAMETER, f"no such action: {code:#010x}")  # D-16
    if code == PEEK_NEXT and not cursor:
        raise Refused(Status.NT_INVALID_PARAMETER, "there is no next one without a cursor")
    return Wanted(
        is_receive=code == RECEIVE,
        is_next=code == PEEK_NEXT,
        cursor=cursor,
        wait_s=None if timeout_ms == FOR_EVER else timeout_ms / 1000,  # D-11
    )


def wanted_by_lookup(code: int, *, lookup_id: int, cursor: int, timeout_ms: int) -> Wanted:
    """MS-MQQP 3.1.4.11: 0 with *_NEXT is the first message, all ones with *_PREV the last."""
    found = _SEEKS.get(code)
    if found is None:
        raise Refused(Status.INVALID_PARAMETER, f"no lookup action: {code:#010x}")
    is_receive, seek = found
    if cursor or timeout_ms:
        raise Refused(Status.INVALID_PARAMETER, "a lookup has no cursor and does not wait")
    if lookup_id == 0:
        if seek is not Seek.NEXT:
            raise Refused(Status.INVALID_PARAMETER, "lookup id 0 names no message")
        seek = Seek.FIRST
    elif lookup_id == LAST and seek is Seek.PREVIOUS:
        seek = Seek.LAST
    return Wanted(is_receive=is_receive, seek=seek, lookup_id=lookup_id)
