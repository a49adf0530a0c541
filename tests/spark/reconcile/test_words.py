"""The words that the page, the terminal and JUnit share."""

from typing import Any

import pytest

from msmq_jobs.reconcile.rules import BREAKING, DELIVERED, LAWFUL, VERDICTS
from msmq_jobs.reconcile.words import (
    allowed,
    counted,
    duration,
    explain,
    kind,
    name,
    quickness,
    sentence,
    totals,
)


def found(messages: int = 0, queues: int = 2, **told: Any) -> dict[str, Any]:
    counts = {verdict: told.pop(verdict, 0) for verdict in VERDICTS}
    broken = sum(counts[v] for v in BREAKING)
    return {
        "parity": broken == 0,
        "thresholds": {},
        "verdicts": counts,
        "messages": messages or sum(counts.values()),
        "queues_total": queues,
        "foreign": 0,
        "inputs": {},
        **told,
    }


def test_verdicts_are_those_of_the_design() -> None:  # design 3.5
    assert (DELIVERED, *BREAKING, *LAWFUL) == VERDICTS
    assert VERDICTS == (
        "delivered_once", "missing", "duplicated", "out_of_order", "altered", "unexpected",
        "expired", "rejected", "dead_lettered", "in_flight",
    )  # fmt: skip
    assert [kind(v) for v in VERDICTS] == ["parity", *["breaks parity"] * 5, *["lawful"] * 4]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_has_a_meaning_and_something_to_do(verdict: str) -> None:
    meaning, what_to_do = explain(verdict)
    assert meaning.endswith(".")
    assert what_to_do.endswith(".")
    assert "_" not in name(verdict)


@pytest.mark.parametrize(
    ("findings", "answer"),
    [
        (
            found(delivered_once=1200, expired=34),
            "Parity: all 1,234 messages in 2 queues are accounted for.",
        ),
        (found(delivered_once=1, queues=1), "Parity: the only one is accounted for."),
        (found(), "Nothing to compare: these inputs have no message."),
        (
            found(delivered_once=9_999, missing=1, queues=1),
            "No parity: 1 of 10,000 messages in 1 queue breaks it (1 missing).",
        ),
        (
            found(delivered_once=994, missing=3, duplicated=2, altered=1),
            "No parity: 6 of 1,000 messages in 2 queues break it"
            " (3 missing, 2 duplicated and 1 altered).",
        ),
        (
            found(delivered_once=997, missing=3, thresholds={"missing": "5"}, parity=True),
            "Parity within the thresholds: 3 of 1,000 messages in 2 queues break it (3 missing).",
        ),
        (
            found(delivered_once=5, parity=False),
            "No parity could be shown for 5 messages in 2 queues.",
        ),
    ],
)
def test_the_answer_is_one_sentence(findings: dict[str, Any], answer: str) -> None:
    assert sentence(findings) == answer


def test_totals_in_words() -> None:
    sources = [{"unreadable": 1}, {"unreadable": 2}, {}]
    told = found(delivered_once=7, expired=1, in_flight=2, foreign=1)
    assert totals(told | {"unseen": 2, "inputs": {"sources": sources}}) == [
        "7 were delivered once.",
        "3 were not, which is lawful: 1 expired and 2 in flight.",
        "Of those delivered, 2 have no record that could be looked at (compacted, aged, or a"
        " mapping leaves out id or queue): only the audit says so.",
        "1 record without an MSMQ id was not counted.",
        "3 entries of the sources cannot be read and were not compared.",
    ]
    assert totals(found(delivered_once=1)) == ["1 was delivered once."]
    assert counted({}, BREAKING) == ""


@pytest.mark.parametrize(
    ("limit", "missing", "passes"),
    [
        ("5", 5, True),
        ("5", 6, False),
        ("0.1%", 10, True),
        ("0.1%", 11, False),
        ("0", 1, False),
        ("few", 1, False),
    ],
)
def test_thresholds(limit: str, missing: int, passes: bool) -> None:
    told = found(10_000, missing=missing, expired=400, thresholds={"missing": limit})
    assert allowed(told, "missing") is passes
    assert allowed(told, "expired")  # lawful
    assert allowed(told, "altered")  # none
    assert not allowed(found(10_000, altered=1), "altered")  # nobody allowed any


def latency(*buckets: tuple[float | None, int]) -> dict[str, Any]:
    return {"latency": {"buckets": [{"le_ms": le, "count": n} for le, n in buckets]}}


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        (
            latency((10, 50), (50, 49), (2000, 1)),
            "Half of 100 messages landed within 10 ms, 99 % within 50 ms.",
        ),
        (latency((10, 1)), "Half of 1 message landed within 10 ms, and so did 99 %."),
        (
            latency((10, 1), (60_000, 0), (None, 1)),
            "Half of 2 messages landed within 10 ms, 99 % after more than 1 min.",
        ),
        (latency((None, 4)), "Half of 4 messages landed at some time, and so did 99 %."),
        (latency(), "No message has both times, so there is no latency to show."),
        (latency((1, 0)), "No message has both times, so there is no latency to show."),
    ],
)
def test_latency_in_words(findings: dict[str, Any], told: str) -> None:
    assert quickness(findings) == told


def test_durations() -> None:
    told = [duration(ms) for ms in (0, 0.5, 12.34, 999, 1500, 90_000, 5_400_000)]
    assert told == ["0 ms", "0.5 ms", "12.3 ms", "999 ms", "1.5 s", "1.5 min", "1.5 h"]
