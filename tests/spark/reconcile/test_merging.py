"""Cut anywhere into runs, a world gets the verdicts that it gets as a whole. Design 3.5"""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_jobs.reconcile import ledgers, sent, verdicts
from msmq_jobs.reconcile.merging import NEVER, settle
from msmq_jobs.reconcile.state import ACCEPTED, LANDED, SENT, State
from msmq_jobs.reconcile.verdicts import Bounds
from tests.spark.letters import mappings
from tests.spark.reconcile import world
from tests.spark.reconcile.test_verdicts import PLACES, some_world, told
from tests.spark.reconcile.world import RECORD, Copy, Place, Seen, World

DAY_MS = 86_400_000
LONG = pytest.mark.long


class Run:
    """What one run finds new. A source is read as a whole each time: it holds what it holds."""

    def __init__(
        self, places: Iterable[Place] = (), audit: Iterable[Seen] = (), source: World | None = None
    ) -> None:
        self._places, self._audit, self._source = list(places), list(audit), source

    def settle(self, spark: SparkSession, state: State) -> None:
        if self._places:
            records = [world.record(place) for place in self._places]
            state.stage(LANDED, ledgers.landed(spark.createDataFrame(records, RECORD)))
        if self._audit:
            entries = [world.audit_record([seen]) for seen in self._audit]
            state.stage(ACCEPTED, ledgers.accepted(spark.createDataFrame(entries, RECORD)))
        if self._source:
            home = F.expr(r"regexp_extract(queue, '^OLD01.(.*);', 1)")
            state.stage(SENT, sent.sent(self._source.read(spark).withColumn("home", home)))
        settle(spark, state, mappings(), state.known)


def cut(of: World, seed: int, runs: int) -> Iterator[Run]:
    """Every partition, and the audit, at places of its own; the source comes in any two runs."""
    chance = random.Random(seed)
    turns = sorted(chance.choices(range(runs), k=len(of.messages)))
    by_partition: dict[Any, list[Place]] = {}
    for place in sorted(of.places, key=lambda p: p.offset):
        by_partition.setdefault((place.topic, place.partition), []).append(place)
    lines = list(by_partition.values())
    ends = [sorted(chance.randint(0, len(line)) for _ in range(runs - 1)) for line in lines]
    sources = {chance.randrange(runs), chance.randrange(runs)}
    for run in range(runs):
        places: list[Place] = []
        for line, end in zip(lines, ends, strict=True):
            places += line[end[run - 1] if run else 0 : end[run] if run < runs - 1 else None]
        audit = [seen for seen, turn in zip(of.messages, turns, strict=True) if turn == run]
        yield Run(places, audit, of if run in sources else None)


def judged(spark: SparkSession, state: State, of: World) -> DataFrame:
    texts = state.small("texts")
    queues = texts.where("kind = 'queue'").select(
        F.lower("text").alias("queue"), F.col("text").alias("name"), F.lit(False).alias("hidden")
    )
    limits = Bounds(new_from=of.watermark - of.window_ms)
    found = verdicts.judged(state.rows(), spark.createDataFrame([], PLACES), queues, limits)
    return verdicts.rows(found, texts.where("kind = 'text'"), "bucket")


def lines_of(frame: DataFrame) -> Sequence[Any]:
    return sorted(map(str, frame.collect()))


SEEDS = [pytest.param(77, 2), *(pytest.param(n, 2 + n % 3, marks=LONG) for n in range(8))]


@pytest.mark.parametrize(("seed", "runs"), SEEDS)
def test_any_cut_gives_what_the_whole_gives(
    spark: SparkSession, tmp_path: Path, seed: int, runs: int
) -> None:
    of = some_world(seed, step_ms=20 * 60_000)  # over three days
    for run in cut(of, seed, runs):
        run.settle(spark, State(spark, str(tmp_path / "cut"), "m"))
    state = State(spark, str(tmp_path / "cut"), "m")
    found = judged(spark, state, of)
    assert told(found) == of.verdicts()
    assert len(state.known.buckets) > 3
    whole = State(spark, str(tmp_path / "whole"), "m")
    Run(of.places, of.messages, of).settle(spark, whole)
    assert lines_of(found) == lines_of(judged(spark, whole, of))
    for name in ("texts", "streams", "copies"):
        assert lines_of(state.small(name)) == lines_of(whole.small(name)), name
    names = ("newest", "newest_sent")
    assert [getattr(state.known, n) for n in names] == [getattr(whole.known, n) for n in names]


@LONG
def test_what_nothing_new_touches_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither written nor put together again: its files are those of the first run."""
    days = [Seen(n, step_ms=DAY_MS) for n in range(1, 5)]
    doubled = Seen(2, copies=(Copy(), Copy(behind=5)), step_ms=DAY_MS)
    of = World([days[0], doubled, *days[2:], Seen(5, step_ms=DAY_MS)])
    late = [place for place in of.places if place.copy.behind or place.seen.number == 5]
    first = [place for place in of.places if place not in late]
    state = State(spark, str(tmp_path), "m")
    lost = {"orders": {0: NEVER, 1: NEVER}, "audit": {0: 7}}  # aged, before it was read
    state.known = replace(state.known, oldest=lost)
    Run(first, of.messages[:4], of).settle(spark, state)
    assert state.known.oldest == {"orders": {0: of.messages[0].at, 1: NEVER}, "audit": {0: 7}}
    buckets = sorted(state.known.buckets)
    assert buckets == ["2023-11", *(f"2023-11-{n}" for n in range(15, 19))]
    files = set((tmp_path / "0").rglob("*.parquet"))
    put_together: list[int] = []
    merged = verdicts.merged

    def counting(rows: DataFrame) -> DataFrame:
        put_together.append(rows.select("message_id").distinct().count())
        return merged(rows)

    monkeypatch.setattr(verdicts, "merged", counting)
    Run(late, of.messages[4:]).settle(spark, state)
    # A copy of the second day's message, and the fifth with its entry, which a source had before.
    runs = {name: bucket.run for name, bucket in state.known.buckets.items()}
    assert runs == {f"2023-11-{n}": int(n in (16, 19)) for n in range(15, 20)}
    assert put_together == [2]
    assert files <= set((tmp_path / "0").rglob("*.parquet"))
    assert told(judged(spark, state, of)) == of.verdicts()
    places = [(row["partition"], row["offset"]) for row in state.small("copies").collect()]
    assert sorted(places) == [(p.partition, p.offset) for p in of.places if p.seen.number == 2]
