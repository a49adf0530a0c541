"""The sums of the verdicts, as the report has them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from msmq_jobs.reconcile import findings

T0 = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROW = (
    "message_id string, queue string, verdict string, reason string, source string, class int, "
    "topic string, partition int, offset long, copies int, backfill_run string, "
    "sent_time timestamp, accepted_time timestamp, landed_time timestamp"
)
COPIES = "message_id string, queue string, topic string, partition int, offset long"


def row(number: int, verdict: str, class_: int | None = None, delay_ms: int | None = 40) -> Any:
    sent = T0 + timedelta(seconds=number)
    landed = None if delay_ms is None else sent + timedelta(milliseconds=delay_ms)
    copies = 0 if landed is None else 2 if verdict == "duplicated" else 1
    where = ("t", 0, number, copies) if landed else (None, None, None, copies)
    told = (f"g\\\\{number}", "Q", verdict, "why", "g", class_)
    return (*told, *where, None, sent, landed, landed)


def test_the_sums(spark: SparkSession) -> None:
    rows = [row(n, "delivered_once") for n in range(1, 99)]
    rows += [row(99, "missing", delay_ms=None), row(100, "duplicated", delay_ms=7000)]
    rows += [row(101, "expired", 0xC002, None), row(102, "rejected", 0x81FF, None)]
    rows += [row(103, "unexpected")]
    copies = [("g\\\\100", "q", "t", 0, n) for n in (5, 9)]
    told = findings.find(
        spark.createDataFrame(rows, ROW),
        spark.createDataFrame(copies, COPIES),
        {"window": {}},
        {"q": ("retain", "compared")},
        {"missing": "1"},
        3,
    )
    assert (told["parity"], told["strict"], told["messages"], told["foreign"]) == (
        False,
        False,
        103,
        3,
    )
    assert told["verdicts"]["delivered_once"] == 98
    assert len(told["verdicts"]) == 10
    (queue,) = told["queues"]
    assert queue["verdicts"] == {
        "delivered_once": 98,
        "missing": 1,
        "duplicated": 1,
        "unexpected": 1,
        "expired": 1,
        "rejected": 1,
    }
    assert queue["classes"] == {"0xC002 NACK_RECEIVE_TIMEOUT": 1, "0x81FF": 1}
    assert (queue["mode"], queue["topics"]) == ("retain", ["t"])
    assert (queue["latency_ms"]["p50"], queue["latency_ms"]["max"]) == (40, 7000)
    assert (queue["first"], queue["last"]) == ("2026-01-31T12:00:01Z", "2026-01-31T12:01:47Z")
    (sender,) = told["senders"]
    assert (sender["source"], sender["queues"], sender["messages"]) == ("g", 1, 103)
    assert (told["queues_total"], told["senders_total"]) == (1, 1)
    assert told["timeline"]["bucket_s"] == 1
    assert sum(point["sent"] for point in told["timeline"]["points"]) == 103
    assert sum(point["accepted"] for point in told["timeline"]["points"]) == 100
    assert told["unseen"] == 0
    assert sum(point["landed"] for point in told["timeline"]["points"]) == 100
    counts = {b["le_ms"]: b["count"] for b in told["latency"]["buckets"] if b["count"]}
    assert counts == {50: 99, 10_000: 1}
    assert set(told["offenders"]) == {
        "missing",
        "duplicated",
        "unexpected",
        "expired",
        "rejected",
    }
    (doubled,) = told["offenders"]["duplicated"]
    assert [copy["offset"] for copy in doubled["copies"]] == [5, 9]
    (stray,) = told["offenders"]["unexpected"]  # the only one lies where its row says
    assert stray["copies"] == [{"topic": "t", "partition": 0, "offset": 103}]
    assert told["offenders"]["missing"][0]["copies"] == []
    assert told["offenders"]["rejected"][0]["class"] == "0x81FF"


def test_what_was_refused_or_cannot_be_seen(spark: SparkSession) -> None:
    """A refusal has the time of the wire, and is none that was accepted. Where the audit alone
    says that a message was delivered, its number is told."""
    refused = list(row(1, "rejected", 0x8003))
    late = list(row(4, "expired", 0x8002))
    refused[9] = late[9] = 0
    hidden = list(row(2, "delivered_once"))
    hidden[9] = 0
    rows = [tuple(refused), tuple(late), tuple(hidden), row(3, "delivered_once")]
    told = findings.find(
        spark.createDataFrame(rows, ROW), spark.createDataFrame([], COPIES), {}, {}, {}, 0
    )
    assert sum(point["accepted"] for point in told["timeline"]["points"]) == 2
    assert (told["unseen"], told["verdicts"]["delivered_once"]) == (1, 2)


def test_senders_cannot_make_it_long(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the most broken messages are named; all are counted."""
    monkeypatch.setattr(findings, "MAX_QUEUES", 2)
    monkeypatch.setattr(findings, "MAX_SENDERS", 2)
    kinds = {"a": ("delivered_once", 0), "b": ("missing", 0), "c": ("rejected", 0x8003)}
    kinds |= {"d": ("missing", 0), "e": ("delivered_once", 0)}
    rows = []
    for number, (name, (verdict, class_)) in enumerate(kinds.items()):
        made = list(row(number, verdict, class_, None))
        made[1] = made[4] = name
        rows.append(tuple(made))
    told = findings.find(
        spark.createDataFrame(rows, ROW), spark.createDataFrame([], COPIES), {}, {}, {}, 0
    )
    assert [queue["queue"] for queue in told["queues"]] == ["b", "d"]
    assert [sender["source"] for sender in told["senders"]] == ["b", "d"]
    assert (told["queues_total"], told["senders_total"], told["messages"]) == (5, 5, 5)
    assert (told["verdicts"]["missing"], told["verdicts"]["rejected"]) == (2, 1)
    assert [queue["classes"] for queue in told["queues"]] == [{}, {}]
    monkeypatch.setattr(findings, "MAX_QUEUES", 4)  # a name that somebody made up goes first
    told = findings.find(
        spark.createDataFrame(rows, ROW), spark.createDataFrame([], COPIES), {}, {}, {}, 0
    )
    assert [queue["queue"] for queue in told["queues"]] == ["a", "b", "d", "e"]


def test_nothing_at_all(spark: SparkSession) -> None:
    told = findings.find(
        spark.createDataFrame([], ROW), spark.createDataFrame([], COPIES), {}, {}, {}, 0
    )
    assert told["parity"]
    assert told["strict"]
    assert told["queues"] == told["senders"] == told["timeline"]["points"] == []
    assert told["offenders"] == {}
