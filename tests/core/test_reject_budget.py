"""Refused bodies have a budget; verdicts have none."""

from typing import Any

from bridge.core.copies import OMITTED
from bridge.core.reject_budget import DEAD_LETTERS, RejectBudget
from bridge.core.retained.keeping import Keeper
from bridge.core.shard import Shard
from bridge.model.message import JOURNAL_NEGATIVE
from tests.core.messages import NOW, ORDERS, plain, shard
from tests.core.units import entries

STRANGER, VICTIM = "192.0.2.66", "10.1.2.3"


def test_by_address_and_minute() -> None:
    budget = RejectBudget(by_address=100, in_all=1000)
    assert budget.takes("a", 60, 0)
    assert not budget.takes("a", 60, 59)
    assert budget.takes("a", 40, 59)
    assert budget.takes("b", 100, 59)
    assert budget.takes("a", 100, 60)
    assert (budget.used, budget.omitted) == (100, 1)


def test_in_all() -> None:
    budget = RejectBudget(by_address=100, in_all=250)
    assert [budget.takes(who, 100, 0) for who in "abcd"] == [True, True, False, False]
    assert budget.takes("c", 50, 0)


def test_addresses_without_end_share_one_budget() -> None:
    budget = RejectBudget(by_address=1, in_all=1 << 30)
    assert sum(budget.takes(f"{n}", 1, 0) for n in range(20_000)) == 10_001


def small(by_address: int = 25_000) -> Shard:
    one = shard()
    one._reject_budget = RejectBudget(by_address=by_address)
    return one


def refused(ordinal: int, **more: Any) -> Any:
    known = {"destination": ORDERS, "peer": STRANGER, "body": bytes(10_000), "label": "why"}
    return plain(ordinal, **{**known, **more})


def test_a_flood_of_refused_messages_leaves_verdicts_and_few_bodies() -> None:
    one = small()
    one.admit([refused(n) for n in range(10)])
    one.admit([refused(99, peer=VICTIM)])
    unit = one.take_unit(NOW)[1]
    assert [len(r.value) for r in unit.rejects] == [10_000] * 2 + [0] * 8 + [10_000]
    assert [r.headers.get(OMITTED) for r in unit.rejects] == [None] * 2 + [b"10000"] * 8 + [None]
    bare = unit.rejects[5].headers
    assert (bare["msmq.label"], bare["msmq.outcome"]) == (b"why", b"32778")
    assert bare["__connect.errors.exception.message"] == b"plain-message-to-transactional-queue"
    assert len(entries(unit)) == 11


def test_large_headers_go_with_the_body() -> None:
    one = small(1000)
    one.admit([refused(1, extension=bytes(100_000), wire=bytes(50_000))])
    (record,) = one.take_unit(NOW)[1].rejects
    assert sum(len(value) for value in record.headers.values()) < 2000


def late(ordinal: int) -> Any:
    return plain(
        ordinal, sent_time=NOW - 100, time_to_reach_queue=1, journal=JOURNAL_NEGATIVE, peer=STRANGER
    )


def test_no_dead_letters_above_the_budget() -> None:
    one = small(20)
    one.admit([late(n) for n in range(10)])
    unit = one.take_unit(NOW)[1]
    assert (len(unit.records), len(unit.rejects)) == (2, 10)


class FullKeeper(Keeper):
    def __init__(self) -> None:
        pass

    def held(self, queue: str) -> int:
        assert queue == "system$;deadletter"
        return DEAD_LETTERS


def test_the_dead_letter_queue_has_a_bound() -> None:
    """What lies there counts against the quota of the machine."""
    one = small()
    one.keeper = FullKeeper()
    one.admit([late(1)])
    unit = one.take_unit(NOW)[1]
    assert (unit.records, len(unit.rejects)) == ([], 1)
