"""Partitions whose last stable offset stands still."""

import asyncio
import logging
from collections.abc import Collection

import pytest

from bridge.adapters.kafka import stable_offsets as module
from bridge.adapters.kafka.client import producer
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.reader import STUCK_AFTER_S
from bridge.adapters.kafka.stable_offsets import Ends, KafkaOffsets, Place, StableOffsets
from tests.support.kafka import create_topic, unique
from tests.support.waiting import eventually


class Cluster:
    """Offsets as a test wants them."""

    def __init__(self) -> None:
        self.ends: dict[Place, tuple[int, int]] = {}
        self.asked: list[Place] = []
        self.topics = {"orders": 2, "own.state": 1}
        self.now = 0.0
        self.watch = StableOffsets(self, lambda: self.topics, lambda: self.now)

    def look(self, places: Collection[Place]) -> Ends:
        self.asked += places
        found = {place: self.ends.get(place, (7, 7)) for place in places}
        found = {place: ends for place, ends in found.items() if ends[0] >= 0}
        return (
            {place: ends[0] for place, ends in found.items()},
            {place: ends[1] for place, ends in found.items()},
        )

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        asyncio.run(self.watch.look())


def test_a_unit_that_is_being_committed_is_no_trouble() -> None:
    cluster = Cluster()
    for end in range(10, 100):
        cluster.ends["orders", 1] = end - 3, end
        cluster.pass_time(10)
        assert cluster.watch.invisible == 3
        assert cluster.watch.hanging() == []
    cluster.ends["orders", 1] = 99, 99
    cluster.pass_time(10)
    assert cluster.watch.invisible == 0


def test_one_that_stands_still_hangs(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    with caplog.at_level(logging.INFO):
        for end in range(20):
            cluster.ends["orders", 1] = 5, 10 + end  # records are still written behind it
            cluster.pass_time(10)
    assert cluster.watch.hanging() == [(("orders", 1), 5, 190.0)]
    assert cluster.watch.complaints() == [
        "topic orders-1: consumers see nothing behind offset 5 for 190 s: a transaction hangs; "
        "see 'Hanging transactions' in the README"
    ]
    assert caplog.text.count("a transaction hangs") == 1  # in the log once
    cluster.ends["orders", 1] = 30, 30
    with caplog.at_level(logging.INFO):
        cluster.pass_time(10)
    assert cluster.watch.complaints() == []
    assert "orders-1: the transaction that hung has ended" in caplog.text


def test_a_partition_that_does_not_answer_is_as_it_was() -> None:
    cluster = Cluster()
    cluster.ends["orders", 0] = cluster.ends["orders", 1] = 5, 10
    cluster.pass_time(0)
    cluster.ends["orders", 0] = -1, -1  # in the middle of a commit, for all that is known
    cluster.pass_time(STUCK_AFTER_S + 1)
    cluster.ends["orders", 1] = -1, -1
    cluster.pass_time(10)
    assert [place for place, _, _ in cluster.watch.hanging()] == [("orders", 1)]


def test_a_topic_that_is_mapped_no_more_is_forgotten() -> None:
    cluster = Cluster()
    cluster.ends["orders", 1] = 5, 10
    cluster.pass_time(0)
    del cluster.topics["orders"]
    cluster.pass_time(STUCK_AFTER_S + 1)
    assert cluster.watch.hanging() == []
    cluster.topics.clear()
    cluster.pass_time(1)
    assert cluster.watch.invisible == 0


def test_many_partitions_are_looked_at_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    cluster = Cluster()
    cluster.topics = {"a": 3, "b": 3, "c": 3}
    for _ in range(9):
        cluster.pass_time(1)
    assert len(cluster.asked) == 36
    assert {cluster.asked.count((name, n)) for name in "abc" for n in range(3)} == {4}


@pytest.mark.kafka
def test_a_real_transaction(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("stable"), 2)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    offsets, places = KafkaOffsets(settings), [(topic, 0), (topic, 1)]
    writer = producer(settings, unique("stable"))
    writer.init_transactions(20)
    writer.begin_transaction()
    for _ in range(3):
        writer.produce(topic, b"x", None, 1)
    writer.flush(20)
    assert offsets.look(places) == (
        {(topic, 0): 0, (topic, 1): 0},
        {(topic, 0): 0, (topic, 1): 3},
    )
    writer.commit_transaction(20)
    ended = {(topic, 0): 0, (topic, 1): 4}  # the marker has an offset, and comes a moment later
    eventually(lambda: offsets.look(places) == (ended, ended))
    assert offsets.look([("not-there", 0), (topic, 0)]) == ({(topic, 0): 0}, {(topic, 0): 0})
