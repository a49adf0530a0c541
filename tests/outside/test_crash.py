"""kill -9 of the appliance at every side of a commit: once and in order after it. design D1, 3.2"""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import QUEUES, Appliance
from tests.outside.conftest import OpenSender
from tests.outside.fleet import Fleet
from tests.outside.ledger import ORDERS, PLAIN, Load, check
from tests.outside.rawsender import RawSender, soon
from tests.outside.records import create_topics, text

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
FEWER_THAN_HALF_A_WINDOW = 24  # so that only the timers send acks: QB-45
ATTEMPTS = 5


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, in place of the shared one: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("crash")) as broker:
        yield broker


@pytest.fixture(scope="module")
def appliance(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Appliance]:
    """One without an id in its configuration: every restart on empty data has to find it."""
    prefix = f"crash-{uuid4().hex[:8]}"
    appliance = Appliance(tmp_path_factory.mktemp(prefix), kafka.bootstrap_servers, prefix)
    settings = json.loads(appliance.config.read_text())
    del settings["queue_manager"]["id"]
    appliance.config.write_text(json.dumps(settings))
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in QUEUES])
    appliance.start()
    yield appliance
    appliance.terminate()


class Tail:
    """A reader of committed records that is there before they are, so that it loses no time."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def wait_for(self, source: UUID, count: int, seconds: float = 20) -> None:
        deadline = soon(seconds)
        while count:
            assert soon(0) < deadline, f"{count} records are missing"
            record = self._consumer.poll(0.1)
            if record is not None and record.error() is None:
                count -= dict(record.headers() or []).get("msmq.source") == text(source)


@contextmanager
def tail(bootstrap: str, topics: Sequence[str]) -> Iterator[Tail]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        known = consumer.list_topics(timeout=20).topics
        consumer.assign(
            [
                TopicPartition(topic, number, OFFSET_BEGINNING)
                for topic in topics
                for number in known[topic].partitions
            ]
        )
        consumer.poll(0.5)
        yield Tail(consumer)
    finally:
        consumer.close()


def kill_between_commit_and_ack(
    appliance: Appliance, open_sender: OpenSender
) -> tuple[RawSender, Load] | None:
    """None if an ack was faster than we: order acks wait for 500 ms only."""
    sender = open_sender(recoverable_ack_ms=60_000)
    load = Load(sender.guid, random.Random(1), "rt")
    messages = load.make(FEWER_THAN_HALF_A_WINDOW)
    topics = [appliance.topic(PLAIN), appliance.topic(ORDERS)]
    with tail(appliance.bootstrap, topics) as records:
        sender.transmit(messages)
        records.wait_for(sender.guid, len(messages))
        appliance.kill()
    came = sender.read_to_end()
    appliance.restart(empty_data=True)
    return None if came else (sender, load)


def test_killed_between_commit_and_ack(appliance: Appliance, open_sender: OpenSender) -> None:
    for _ in range(ATTEMPTS):
        if killed := kill_between_commit_and_ack(appliance, open_sender):
            break
    else:
        raise AssertionError("acks were always faster than the kill")
    sender, load = killed
    assert len(sender.table) == FEWER_THAN_HALF_A_WINDOW
    sender.recoverable_ack_ms = 500
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(load.make(4), soon(30))  # all acked, and the streams go on
    assert sender.acked == FEWER_THAN_HALF_A_WINDOW + 4
    check(appliance, [load])


def test_killed_before_the_commit(
    appliance: Appliance, kafka: EmbeddedKafka, open_sender: OpenSender
) -> None:
    sender = open_sender()
    load = Load(sender.guid, random.Random(2), "rt")
    sender.send_all_windowed(load.make(6), soon(30))
    kafka.suspend()
    try:
        sender.transmit(load.make(40))
        sender.expect_nothing(1.5)  # it has them and cannot commit
        appliance.kill()
    finally:
        kafka.resume()
    assert not sender.read_to_end()
    assert len(sender.table) == 40
    appliance.restart(empty_data=True)
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(load.make(4), soon(30))
    check(appliance, [load])


@pytest.mark.parametrize("seed", [7])
def test_killed_at_random_moments_of_a_stream(appliance: Appliance, seed: int) -> None:
    rng = random.Random(seed)
    fleet = Fleet(lambda: appliance.binary_address)
    loads = [Load(uuid4(), rng, "t") for _ in range(4)]
    for load in loads:
        fleet.add(RawSender(appliance.binary_address, load.source))
    for _ in range(4):
        for load, sender in zip(loads, fleet.senders, strict=True):
            sender.unsent.extend(load.make(400))
        at_an_ack = rng.random() < 0.5  # or at the heels of a burst
        # An order ack may release all that one sender keeps; the other three keep 1200 or more.
        fleet.advance(rng.randrange(1, 600), acked=at_an_ack)
        assert fleet.kept
        appliance.restart(empty_data=True, kill=True)
    fleet.drain()
    fleet.close()
    check(appliance, loads)


def test_a_generated_id_is_kept_in_kafka(appliance: Appliance) -> None:  # design 3.2
    before = identity_of(appliance)
    appliance.restart(empty_data=True, kill=True)
    assert identity_of(appliance) == before
    assert before not in (UUID(int=0), appliance.guid)


def identity_of(appliance: Appliance) -> UUID:
    with RawSender(appliance.binary_address) as sender:
        return sender.connect().handshake()[0].server
