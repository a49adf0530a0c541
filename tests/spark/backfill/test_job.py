"""The whole job in one process, on a real broker."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.model.errors import ConfigError, Unavailable
from msmq_jobs.backfill.job import Order, backfill
from msmq_jobs.backfill.summary import Summary
from msmq_jobs.backfill.transforms import Asked
from tests.adapters.reader.served import Served
from tests.spark.letters import ORDERS, PLAIN, letter, write_lines
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, read_topic, unique

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]


class Silent:
    def __init__(self) -> None:
        self.stages: list[str] = []

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def read(self, source: str, messages: int) -> None:
        pass

    def written(self, counts: Mapping[str, int]) -> None:
        pass


class World:
    def __init__(self, spark: SparkSession, kafka: EmbeddedKafka, folder: Path) -> None:
        self.spark, self.bootstrap, self.folder = spark, kafka.bootstrap_servers, folder
        self.prefix = unique("job")
        self.config = write_config(folder, self.bootstrap, topic_prefix=self.prefix)
        create_topic(self.bootstrap, self.topic("orders"), 2)
        ensure_topics({"bootstrap.servers": self.bootstrap}, OwnTopics(self.prefix), 1, [])

    def topic(self, name: str) -> str:
        return topic(self.prefix, name)

    def run(self, *sources: Path, **changes: Any) -> Summary:
        known = {"sources": tuple(map(str, sources)), "out": str(self.folder / "out")}
        order = Order(config=self.config, **{**known, **changes})
        return backfill(self.spark, order, Silent())

    def values(self, name: str) -> list[bytes | None]:
        return [m.value() for m in read_topic(self.bootstrap, self.topic(name))]


@pytest.fixture
def world(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> World:
    return World(spark, kafka, tmp_path)


def test_from_a_dry_run_to_a_repeated_one(world: World, tmp_path: Path) -> None:
    letters = [letter(n, ORDERS) for n in range(1, 6)]
    late = letter(6, ORDERS, message_class=0x8002)
    lines = write_lines(tmp_path / "a.jsonl", [*letters, late, letter(7)], b"half a line")
    gone = tmp_path / "gone.parquet"

    told = world.run(lines, gone, dry_run=True)
    assert (told.to_write, told.written, told.exit_code) == (5, 0, 2)
    assert told.skipped == {"expired": 1, "topic-missing": 1, "unreadable": 1}
    assert world.values("orders") == []

    told = world.run(lines, gone)  # the others go on
    assert (told.written, told.exit_code) == (5, 2)
    assert world.values("orders") == [data.body for data in letters]
    assert len(told.problems) == 3
    assert any("there is no such file" in line for line in told.problems)
    assert any("map apply" in line for line in told.problems)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["run"] == told.run
    kept = world.spark.read.parquet(str(tmp_path / "out" / "written"))
    assert kept.count() == 5

    create_topic(world.bootstrap, world.topic("plain"), 1)
    told = world.run(write_lines(tmp_path / "b.jsonl", [*letters, letter(7)]))
    assert (told.written, told.already_there, told.exit_code) == (1, 5, 0)
    assert world.values("orders") == [data.body for data in letters]
    assert world.values("plain") == [b"body 7"]


def test_a_plan_brings_exactly_that(world: World, tmp_path: Path) -> None:
    create_topic(world.bootstrap, world.topic("plain"), 1)
    source = write_lines(tmp_path / "a.jsonl", [letter(n) for n in range(1, 5)])
    entries = [
        {"message_id": letter(n).message_id, "queue": PLAIN, "source": str(source)} for n in (2, 9)
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(entries))
    told = world.run(plan=plan, asked=Asked(queues=("private$\\*",)))
    assert world.values("plain") == [b"body 2"]
    assert (told.written, told.not_found, told.skipped) == (1, 1, {"not-in-plan": 3})
    assert told.exit_code == 2


def test_what_makes_no_sense(world: World, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "a.jsonl", [letter(1)])
    with pytest.raises(ConfigError, match="an export cannot be emptied"):
        world.run(lines, receive=True)
    with pytest.raises(ConfigError, match="there is no source"):
        world.run()
    world.config = write_config(tmp_path, world.bootstrap, topic_prefix=unique("never"))
    with pytest.raises(ConfigError, match="start the appliance once"):
        world.run(lines)
    world.config = write_config(tmp_path, None)
    with pytest.raises(Unavailable, match="start the appliance first"):
        world.run(lines)


def test_a_live_queue_is_emptied_after_the_commit(world: World, tmp_path: Path) -> None:
    """Issue: `--receive` empties the source only after the commit."""
    (tmp_path / "password").write_text("secret\n")
    with Served().running() as served:
        for n in range(5):
            served.fake.put(ORDERS, b"m%d" % n, transactional=True)
        text = f"msmq://ann@127.0.0.1:{served.port}/private$/orders"
        common: dict[str, Any] = {"password_file": str(tmp_path / "password")}

        told = world.run(sources=(text,), dry_run=True, receive=True, **common)
        assert (told.to_write, told.removed) == (5, 0)
        told = world.run(sources=(text,), **common)
        assert (told.written, told.removed, told.exit_code) == (5, 0, 0)
        assert served.fake.removed == []

        served.fake.put(ORDERS, b"m5", transactional=True)
        told = world.run(sources=(text,), receive=True, **common)
        assert (told.written, told.already_there, told.removed) == (1, 5, 6)
        assert sorted(served.fake.removed) == [b"m%d" % n for n in range(6)]
    assert sorted(world.values("orders")) == [b"m%d" % n for n in range(6)]  # type: ignore[type-var]
