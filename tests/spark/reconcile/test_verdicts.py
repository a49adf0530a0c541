"""Any mix of faults, judged by Spark and by the oracle: the same verdicts. Design 3.5"""

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_jobs.reconcile import ledgers, order, sent, verdicts
from msmq_jobs.reconcile.events import event
from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.verdicts import Bounds
from tests.spark.reconcile.world import ORDERS, PLAIN, SENDERS, Copy, Seen, World

PLACES = "place long, topic string, partition int, compacted boolean, oldest long"


def some_world(seed: int, step_ms: int = 1000) -> World:
    """Half of the messages are as they should be; the others have anything."""
    chance = random.Random(seed)
    pick = chance.choice
    messages = [
        Seen(n, step_ms=step_ms) if chance.random() < 0.5 else odd(n, pick, step_ms)
        for n in range(1, 151)
    ]
    return World(messages)


def odd(number: int, pick: Callable[[Sequence[Any]], Any], step_ms: int) -> Seen:
    verdicts = ("accepted", "accepted", "backfilled", "expired", "rejected")
    others = ("duplicate", "out_of_order", "received")
    return Seen(
        number,
        queue=pick((ORDERS, PLAIN)),
        sender=pick(SENDERS),
        is_sent=pick((True, False)),
        dead=pick((0, 0, 0x8000, 0x8002, 0xC003)),
        audit=tuple(pick((*verdicts, *others)) for _ in range(pick((0, 1, 1, 2)))),
        copies=tuple(
            Copy(
                altered=pick(("", "", "", "body", "label", "app")),
                run=pick(("", "", "", "run-1")),
                behind=pick((0, 0, 0, 1, 2, 7)),
            )
            for _ in range(pick((0, 1, 1, 1, 2)))
        ),
        delivery=pick((0, 1)),
        step_ms=step_ms,
    )


def judge(
    spark: SparkSession, world: World, places: list[Any] | None = None, **bounds: Any
) -> DataFrame:
    read = world.read(spark).withColumn("home", F.expr(r"regexp_extract(queue, '^OLD01.(.*);', 1)"))
    landed = ledgers.landed(world.records(spark)).cache()
    events = (
        ledgers.accepted(world.audit(spark))
        .union(landed)
        .union(sent.sent(read))
        .union(order.swapped(landed, slice_size=7))  # many slices, even here
    )
    queues = events.groupBy("queue").agg(F.min("name").alias("name")).where("name is not null")
    limits = Bounds(new_from=world.watermark - world.window_ms, **bounds)
    known = spark.createDataFrame(places or [], PLACES)
    found = verdicts.judged(
        verdicts.gathered(events), known, queues.withColumn("hidden", F.lit(False)), limits
    )
    return verdicts.rows(found, spark.createDataFrame([], "key long, text string"))


def told(frame: DataFrame) -> dict[tuple[str, str], str]:
    return {(row["message_id"], row["queue"]): row["verdict"] for row in frame.collect()}


# One world, which costs Spark seconds; `test_merging` has more of them, and many with --long.
@settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(seed=st.integers(0, 1 << 32))
def test_any_mix_of_faults(spark: SparkSession, seed: int) -> None:
    world = some_world(seed)
    assert told(judge(spark, world)) == world.verdicts()


# One of each, and what the reason says.
CASES = {
    "delivered_once": Seen(1),
    "missing": Seen(2, copies=()),
    "duplicated": Seen(3, copies=(Copy(), Copy(behind=2))),
    "out_of_order": Seen(4, copies=(Copy(behind=2),)),
    "altered": Seen(7, copies=(Copy(altered="app"),)),
    "unexpected": Seen(8, is_sent=False, audit=()),
    "expired": Seen(9, audit=(), dead=0xC002, copies=()),
    "rejected": Seen(10, audit=("rejected",), copies=()),
    "dead_lettered": Seen(11, audit=(), dead=0x8000, copies=()),
    "in_flight": Seen(40, audit=(), copies=()),
}


def test_one_of_each_and_why(spark: SparkSession) -> None:
    more = [Seen(5), Seen(6), Seen(12, copies=(Copy(altered="body"),)), Seen(41)]
    more += [Seen(13, audit=(), copies=(), delivery=0, queue=PLAIN)]
    messages = sorted([*CASES.values(), *more], key=lambda seen: seen.number)
    rows = {row["tx_sequence_number"]: row for row in judge(spark, World(messages)).collect()}
    for verdict, seen in CASES.items():
        assert rows[seen.number]["verdict"] == verdict
    reasons = {n: row["reason"] for n, row in rows.items()}
    assert reasons[1] is None
    assert reasons[2] == "accepted, but there is no record"
    assert reasons[3] == "2 copies"
    assert reasons[7] == "differs: msmq.app"
    assert reasons[12] == "differs: body"
    assert reasons[None] == "sent express, never accepted: MSMQ may lose it"  # DM-2
    assert {n: rows[n]["class"] for n in (9, 10, 11)} == {9: 0xC002, 10: 0x8003, 11: 0x8000}
    assert rows[1]["tx_sequence_id"] == 2**63 + 5


def test_when_a_record_expires_is_not_compared(spark: SparkSession) -> None:
    """It follows from other properties, and neither records nor exports of earlier builds have
    it: such a record is not altered."""
    world = World([Seen(1, copies=(Copy(expires=True),)), Seen(2), Seen(3)])
    assert told(judge(spark, world)) == world.verdicts()
    assert {row["verdict"] for row in judge(spark, world).collect()} == {"delivered_once"}


def test_what_a_topic_does_not_keep_is_not_missing(spark: SparkSession) -> None:
    """Compaction and retention take records away; the audit has their commits."""
    gone = [Seen(n, queue, copies=()) for n in (1, 2) for queue in (ORDERS, PLAIN)]
    world = World([*gone, *(Seen(n) for n in range(3, 30))])
    keys = spark.sql("select xxhash64('orders', 0) as o, xxhash64('plain', 0) as p").collect()[0]
    places = [(keys["o"], "orders", 0, True, None), (keys["p"], "plain", 0, False, gone[2].at)]
    found = {(r["message_id"], r["queue"]): r for r in judge(spark, world, places).collect()}
    said = [
        (found[seen.id, seen.queue]["verdict"], found[seen.id, seen.queue]["reason"])
        for seen in gone
    ]
    assert said == [
        ("delivered_once", "compacted: the audit has its commit"),
        ("delivered_once", "aged out: the audit has its commit"),
        ("delivered_once", "compacted: the audit has its commit"),
        ("missing", "accepted, but there is no record"),
    ]


def test_a_window_judges_only_its_messages(spark: SparkSession) -> None:
    world = World([Seen(n) for n in range(1, 20)])
    some = judge(spark, world, since=world.messages[4].sent, until=world.messages[9].sent)
    assert sorted(r["tx_sequence_number"] for r in some.collect()) == [5, 6, 7, 8, 9]


def test_a_record_older_than_the_audit(spark: SparkSession) -> None:
    """It may have lost what accepted them."""
    old = [Seen(1, is_sent=False, audit=()), Seen(2, audit=("rejected",))]
    world = World([*old, *(Seen(n) for n in range(3, 30))])
    found = judge(spark, world, audit_from=world.messages[2].at)
    assert set(told(found).values()) == {"delivered_once"}


def test_a_clock_that_is_ahead_hides_nothing(spark: SparkSession) -> None:
    """What is new is told by the appliance's clock and Kafka's, if they have seen it at all."""
    now, later = 1_800_000_000_000, 1_900_000_000_000
    known = [
        ("accepted", Kind.SENT, None, later),
        ("accepted", Kind.ACCEPTED, now - 60_000, None),
        ("stray", Kind.LANDED, now - 60_000, later),
        ("ahead", Kind.AHEAD, now - 1, None),  # a short disorder: its sender tries again
        ("stuck", Kind.AHEAD, now - 60_000, None),
        ("sent", Kind.SENT, None, now - 1),
    ]
    rows = spark.createDataFrame(
        [(name, int(kind), at, sent) for name, kind, at, sent in known],
        "message_id string, kind int, at long, sent long",
    )
    columns = {name: F.col(name) for name in rows.columns} | {"queue": F.lit("q")}
    events = event(rows, columns)
    nothing = spark.createDataFrame([], PLACES)
    names = spark.createDataFrame([("q", "q", False)], "queue string, name string, hidden boolean")
    bounds = Bounds(new_from=now - 5_000)
    found = verdicts.judged(verdicts.gathered(events), nothing, names, bounds)
    assert {row["message_id"]: row["verdict"] for row in found.collect()} == {
        **dict.fromkeys(("accepted", "stuck"), "missing"),
        "stray": "unexpected",
        **dict.fromkeys(("ahead", "sent"), "in_flight"),
    }


REFUSED = {
    1: Seen(1, audit=("rejected", "accepted")),  # a resend that was taken
    2: Seen(2, audit=("rejected",), is_sent=False),
    3: Seen(3, audit=("expired",)),  # a source has it, and yet nobody committed it
    4: Seen(4, audit=("rejected", "backfilled"), copies=(Copy(run="run-1"),)),
    5: Seen(5),
    60: Seen(60, audit=("rejected",)),  # its entry may come after the end of the audit
}


def test_a_record_of_what_was_refused(spark: SparkSession) -> None:
    """The table of `rules`: it is nobody's, unless it was accepted at some other time."""
    world = World(list(REFUSED.values()))
    rows = {row["tx_sequence_number"]: row for row in judge(spark, world).collect()}
    assert {n: row["verdict"] for n, row in rows.items()} == {
        **dict.fromkeys((1, 4, 5), "delivered_once"),
        **dict.fromkeys((2, 3), "unexpected"),
        60: "in_flight",
    }
    assert rows[3]["reason"] == "refused, but there is a record"
    assert {n: row["verdict"] for n, row in rows.items()} == {
        seen.number: world.verdicts()[seen.id, seen.queue] for seen in world.messages
    }
