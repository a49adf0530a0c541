"""The table of MS-MQRR 3.1.4.7 and the rules of MS-MQQP 3.1.4.1 and 3.1.4.11"""

import pytest

from bridge.core.remote_read.actions import Wanted, plainly_wanted, wanted, wanted_by_lookup
from bridge.core.retained.errors import Refused
from bridge.core.retained.reading import Seek
from tests.core.retained.world import refused

BAD = 0xC00E0006
LOOKUPS = {
    0x40000010: (False, Seek.CURRENT),
    0x40000011: (False, Seek.NEXT),
    0x40000012: (False, Seek.PREVIOUS),
    0x40000020: (True, Seek.CURRENT),
    0x40000021: (True, Seek.NEXT),
    0x40000022: (True, Seek.PREVIOUS),
}


def test_plain_actions() -> None:
    receive = wanted(0, lookup_id=0, cursor=0, timeout_ms=1500)
    assert receive == Wanted(is_receive=True, wait_s=1.5)  # D-11: milliseconds
    peek = wanted(0x80000000, lookup_id=0, cursor=3, timeout_ms=0xFFFFFFFF)
    assert peek == Wanted(is_receive=False, cursor=3, wait_s=None)
    following = wanted(0x80000001, lookup_id=0, cursor=3, timeout_ms=0)
    assert following == Wanted(is_receive=False, is_next=True, cursor=3, wait_s=0.0)


@pytest.mark.parametrize("code", LOOKUPS)
def test_lookup_actions(code: int) -> None:
    is_receive, seek = LOOKUPS[code]
    assert wanted(code, lookup_id=7, cursor=0, timeout_ms=0) == Wanted(
        is_receive=is_receive, seek=seek, lookup_id=7
    )
    for cursor, timeout_ms in ((1, 0), (0, 1)):
        with refused(BAD):
            wanted(code, lookup_id=7, cursor=cursor, timeout_ms=timeout_ms)


@pytest.mark.parametrize("code", LOOKUPS)
def test_lookup_id_0_is_before_the_first_message(code: int) -> None:
    """MS-MQQP 3.1.4.11: "If LookupId is 0, read the first message" (MQ_LOOKUP_*_NEXT), "MUST NOT be
    set to 0" with the others. The same for R_StartReceive: docs/decisions.md."""
    is_receive, seek = LOOKUPS[code]
    if seek is Seek.NEXT:
        found = wanted(code, lookup_id=0, cursor=0, timeout_ms=0)
        assert found == Wanted(is_receive=is_receive, seek=Seek.FIRST)
    else:
        with refused(BAD):
            wanted(code, lookup_id=0, cursor=0, timeout_ms=0)
    for cursor, timeout_ms in ((1, 0), (0, 1)):
        with refused(BAD):
            wanted(code, lookup_id=0, cursor=cursor, timeout_ms=timeout_ms)


def test_all_ones_is_behind_the_last_one() -> None:
    """D-17: in both protocols, with *_PREV."""
    last = 2**64 - 1
    for code in (0x40000012, 0x40000022):
        assert wanted(code, lookup_id=last, cursor=0, timeout_ms=0).seek is Seek.LAST
        assert wanted_by_lookup(code, lookup_id=last, cursor=0, timeout_ms=0).seek is Seek.LAST
    assert wanted(0x40000010, lookup_id=last, cursor=0, timeout_ms=0).seek is Seek.CURRENT


@pytest.mark.parametrize(
    ("code", "lookup_id", "cursor"),
    [
        (0, 7, 0),  # a lookup id, but no lookup action
        (0x80000000, 7, 0),
        (0x80000001, 0, 0),  # PEEK_NEXT without a cursor
        (1, 0, 0),
        (0x80000002, 0, 1),
        (0x40000013, 7, 0),  # D-16: FIRST and LAST of the API
        (0x40000024, 0, 0),
        (0xFFFFFFFF, 0, 0),
    ],
)
def test_what_is_not_in_the_table(code: int, lookup_id: int, cursor: int) -> None:
    with refused(BAD):
        wanted(code, lookup_id=lookup_id, cursor=cursor, timeout_ms=0)


def test_the_old_protocol() -> None:
    assert plainly_wanted(0, cursor=0, timeout_ms=0) == Wanted(is_receive=True)
    with refused(0xC000000D):  # 2.2: PEEK_NEXT without cursor
        plainly_wanted(0x80000001, cursor=0, timeout_ms=0)
    for code in (1, *LOOKUPS):
        with refused(BAD):
            plainly_wanted(code, cursor=0, timeout_ms=0)


@pytest.mark.parametrize("code", LOOKUPS)
def test_old_lookups(code: int) -> None:
    """2.2: LookupId 0 with *_NEXT is the first one; with CURRENT or PREV it is nothing."""
    is_receive, seek = LOOKUPS[code]
    if seek is Seek.NEXT:
        found = wanted_by_lookup(code, lookup_id=0, cursor=0, timeout_ms=0)
        assert (found.is_receive, found.seek) == (is_receive, Seek.FIRST)
    else:
        with refused(BAD):
            wanted_by_lookup(code, lookup_id=0, cursor=0, timeout_ms=0)
    for cursor, timeout_ms in ((1, 0), (0, 1)):
        with refused(BAD):
            wanted_by_lookup(code, lookup_id=7, cursor=cursor, timeout_ms=timeout_ms)
    assert wanted_by_lookup(code, lookup_id=7, cursor=0, timeout_ms=0).seek is seek


@pytest.mark.parametrize("code", [0, 0x80000000, 0x80000001, 5])
def test_old_lookups_want_lookup_actions(code: int) -> None:
    with pytest.raises(Refused):
        wanted_by_lookup(code, lookup_id=7, cursor=0, timeout_ms=0)
