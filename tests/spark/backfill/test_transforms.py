"""Which messages go, on tiny frames: one rule at a time, then their order."""

import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from msmq_jobs.backfill import transforms
from msmq_jobs.backfill.transforms import Asked
from msmq_jobs.rows import fault_values, values_of
from msmq_jobs.schemas import HEADERS, KNOWN, READ, ROUTED, WRITTEN
from tests.spark.letters import ORDERS, PLAIN, letter

NOON = 1_769_860_800  # 2026-01-31T12:00:00Z; `letter(1)` was sent a second later


def routed(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    known = {"message_id": "a\\1", "queue": PLAIN, "topic": "plain", "partition": 0, "class": 0}
    made = [{**dict.fromkeys(ROUTED.fieldNames()), **known, "origin": "x", **row} for row in rows]
    return spark.createDataFrame([tuple(r[n] for n in ROUTED.fieldNames()) for r in made], ROUTED)


def reasons(frame: DataFrame) -> dict[str, str | None]:
    return {row["message_id"]: row["reason"] for row in frame.collect()}


def known(spark: SparkSession, *keys: tuple[str, str]) -> DataFrame:
    return spark.createDataFrame(list(keys), KNOWN)


@pytest.mark.parametrize(
    ("asked", "going"),
    [
        (Asked(), {1, 2, 3, 6}),
        (Asked(include_expired=True), {1, 2, 3, 4, 5, 6}),
        (Asked(since="2026-01-31T12:00:02+00:00"), {2, 3, 6}),
        (Asked(until="2026-01-31T12:00:02+00:00"), {1}),
        (Asked(classes=(0x8000,)), {3}),
        (Asked(classes=(0x8002,)), set()),
        (Asked(classes=(0x8002,), include_expired=True), {4}),
        (Asked(label="letter ?"), {1, 3, 6}),
        (Asked(label="100%*"), {2}),
        (Asked(label="nothing"), set()),
    ],
)
def test_what_was_asked_for(spark: SparkSession, asked: Asked, going: set[int]) -> None:
    letters = [
        letter(1),
        letter(2, label="100% _x_"),
        letter(3, message_class=0x8000),
        letter(4, message_class=0x8002),
        letter(5, headers={"msmq.outcome": "49154"}),
        letter(6, headers={"msmq.outcome": "x", "msmq.ttbr": "y"}),  # no numbers: as if none
    ]
    rows = [values_of(data, "x") for data in letters] + [fault_values("broken", "x")]
    found = transforms.chosen(spark.createDataFrame(rows, READ), asked, NOON + 60).collect()
    assert {int(r["message_id"].split("\\")[1]) for r in found if r["reason"] is None} == going
    assert [r["reason"] for r in found if r["fault"]] == ["unreadable"]


@pytest.mark.parametrize(
    ("queue", "ttbr", "reason"),
    [
        (";deadletter", "58", "expired"),
        (";deadletter", "59", None),
        (";deadletter", "0", "expired"),
        (PLAIN, "58", "expired"),
        (f"{PLAIN};journal", "58", None),  # it was received in time
    ],
)
def test_the_time_to_be_received(
    spark: SparkSession, queue: str, ttbr: str, reason: str | None
) -> None:  # DM-28: from the time of sending on
    data = letter(1, queue, message_class=0x8003, headers={"msmq.ttbr": ttbr})
    frame = spark.createDataFrame([values_of(data, "x")], READ)
    (row,) = transforms.chosen(frame, Asked(), NOON + 60).collect()
    assert row["reason"] == reason
    (row,) = transforms.chosen(frame, Asked(include_expired=True), NOON + 60).collect()
    assert row["reason"] is None


def test_what_is_there_more_than_once(spark: SparkSession) -> None:
    frame = routed(
        spark,
        {"message_id": "g\\1"},
        {"message_id": "G\\1", "queue": PLAIN.upper()},
        {"message_id": "g\\2"},
        {"message_id": "g\\2", "reason": "expired"},
        {"message_id": "g\\3"},
        {"message_id": "g\\3", "queue": ORDERS},
    )
    found = transforms.repeated(frame).collect()
    assert [(row["message_id"], row["queue"]) for row in found] == [("g\\1", PLAIN)]


def test_by_queue(spark: SparkSession) -> None:
    frame = routed(
        spark,
        {"message_id": "a"},
        {"message_id": "b", "queue": ORDERS},
        {"message_id": "c", "queue": ORDERS, "reason": "topic-missing"},
        {"message_id": "d", "queue": None, "reason": "unreadable"},
        {"message_id": "e", "queue": ";deadxact", "reason": "expired"},
    )
    found = reasons(transforms.of_queues(frame, ["PRIVATE$\\pl*"]))
    early = {"d": "unreadable", "e": "expired"}
    assert found == {"a": None, "b": "filtered", "c": "filtered", **early}
    assert reasons(transforms.of_queues(frame, [])) == reasons(frame)


def test_by_plan(spark: SparkSession) -> None:
    frame = routed(spark, {"message_id": "g\\1"}, {"message_id": "g\\2"}, {"message_id": "g\\3"})
    plan = known(spark, ("G\\1", PLAIN.upper()), ("g\\2", ORDERS), ("g\\9", PLAIN))
    found = reasons(transforms.of_plan(frame, plan))
    assert found == {"g\\1": None, "g\\2": "not-in-plan", "g\\3": "not-in-plan"}
    assert transforms.missing(plan, frame).count() == 2


def test_what_two_sources_hold(spark: SparkSession) -> None:
    frame = routed(
        spark,
        {"message_id": "a", "origin": "dead", "class": 0x8000},
        {"message_id": "A", "origin": "journal"},
        {"message_id": "a", "queue": ORDERS},
        {"message_id": "b", "reason": "filtered"},
        {"message_id": "b"},
    )
    found = transforms.once(frame).collect()
    kept = {(r["message_id"], r["queue"], r["origin"]) for r in found if r["reason"] is None}
    assert kept == {("A", PLAIN, "journal"), ("a", ORDERS, "x"), ("b", PLAIN, "x")}
    assert sorted(r["reason"] or "" for r in found) == [
        "",
        "",
        "",
        "filtered",
        "repeated-in-sources",
    ]


def test_what_is_there(spark: SparkSession) -> None:
    frame = routed(
        spark,
        {"message_id": "a"},
        {"message_id": "b"},
        {"message_id": "c", "reason": "expired"},
    )
    there = known(spark, ("A", PLAIN.upper()), ("a", PLAIN), ("b", ORDERS), ("c", PLAIN))
    found = transforms.not_there(frame, there)
    assert reasons(found) == {"a": "already-there", "b": None, "c": "expired"}
    assert found.count() == 3  # no row more, though two records are of one message
    assert found.schema == frame.schema


def test_messages_in_records(spark: SparkSession) -> None:
    mark = json.dumps({"run": "r", "source": "s", "id": "hidden", "queue": "q4"}).encode()
    headers = [
        [("msmq.id", b"plain"), ("msmq.queue", b"q1")],
        [("x-id", b"renamed"), ("queue", b"q2")],
        [("msmq.id", b"no queue")],
        None,
        [("msmq.backfill", mark)],
        [("msmq.backfill", b"no JSON")],
    ]
    rows = [(h, "t") for h in headers] + [([("msmq.id", b"told by its topic")], "lone")]
    frame = spark.createDataFrame(rows, f"headers {HEADERS.simpleString()}, topic string")
    names = (["msmq.id", "x-id"], ["msmq.queue", "queue"])
    there = {("plain", "q1"), ("renamed", "q2"), ("hidden", "q4")}
    found = transforms.in_topics(frame, *names, {})
    assert {tuple(row) for row in found.collect()} == there
    found = transforms.in_topics(frame, *names, {"lone": "q5"})
    assert {tuple(row) for row in found.collect()} == there | {("told by its topic", "q5")}


def test_messages_in_the_audit(spark: SparkSession) -> None:
    verdicts = ("accepted", "backfilled", "duplicate", "rejected")
    entries = [{"id": v, "verdict": v, "queue": "q", "at": 1} for v in verdicts]
    values = [(json.dumps(entries).encode(),), (b"no JSON",), (None,)]
    found = transforms.in_audit(spark.createDataFrame(values, "value binary"))
    assert {tuple(row) for row in found.collect()} == {("accepted", "q"), ("backfilled", "q")}


def test_a_partition_has_one_task_and_streams_their_order(spark: SparkSession) -> None:  # DM-36
    rows: list[dict[str, Any]] = []
    for number in (10, 9, 2, 1):
        for partition in (0, 1, 2):
            row: dict[str, Any] = {
                "message_id": f"g\\{number}",
                "partition": partition,
                "stream": "s",
            }
            row |= {"tx_sequence_id": Decimal(2**63), "tx_sequence_number": number}
            rows.append(row)
    rows.append({"message_id": "old", "partition": 0, "stream": "s", "tx_sequence_id": Decimal(7)})
    rows.append({"message_id": "stays", "partition": 0, "reason": "expired"})
    made = transforms.in_order(routed(spark, *rows), 3)
    tasks = [
        [(r["partition"], r["message_id"]) for r in task] for task in made.rdd.glom().collect()
    ]
    homes = {p: {n for n, task in enumerate(tasks) for q, _ in task if p == q} for p in (0, 1, 2)}
    assert all(len(home) == 1 for home in homes.values())
    for partition in (1, 2):
        ids = [id_ for task in tasks for p, id_ in task if p == partition]
        assert ids == ["g\\1", "g\\2", "g\\9", "g\\10"]
    assert next(id_ for task in tasks for p, id_ in task if p == 0) == "old"
    assert all(id_ != "stays" for task in tasks for _, id_ in task)


def test_plain_messages_by_time_and_number(spark: SparkSession) -> None:
    rows = [
        {"message_id": "3", "stream": "s", "sent_time": "2026-01-02T00:00:00Z", "ordinal": 1},
        {"message_id": "2", "stream": "s", "sent_time": "2026-01-01T00:00:00Z", "ordinal": 10},
        {"message_id": "1", "stream": "s", "sent_time": "2026-01-01T00:00:00Z", "ordinal": 9},
    ]
    made = transforms.in_order(routed(spark, *rows), 1)
    assert [row["message_id"] for row in made.collect()] == ["1", "2", "3"]


def test_sums(spark: SparkSession) -> None:
    frame = routed(
        spark,
        {"reason": None},
        {"reason": None},
        {"reason": "unreadable", "detail": "b"},
        {"reason": "unreadable", "detail": "a"},
    )
    found = [tuple(row) for row in transforms.counted(frame).collect()]
    assert found == [
        ("x", PLAIN, "plain", None, 2, None),
        ("x", PLAIN, "plain", "unreadable", 2, "a"),
    ]
    rows = [("a", "q", "t", 0, "x", "h", None, result, None) for result in ("written", "written")]
    (row,) = transforms.results(spark.createDataFrame(rows, WRITTEN)).collect()
    assert (row["result"], row["messages"]) == ("written", 2)
