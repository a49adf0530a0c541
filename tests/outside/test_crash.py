"""kill -9 of the appliance at every side of a commit: once and in order after it. design D1, 3.2"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import Appliance
from tests.outside.conftest import OpenSender
from tests.outside.fleet import Fleet
from tests.outside.ledger import ORDERS, PLAIN, Load, check
from tests.outside.rawsender import RawSender, soon
from tests.outside.records import text

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
KINDS = pytest.mark.parametrize("kind", ["r", "t"], ids=["recoverable", "transactional"])
FEWER_THAN_HALF_A_WINDOW = 24  # so that only the timers send acks: QB-45
ATTEMPTS = 5


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, in place of the shared one: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("crash")) as broker:
        yield broker


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
def tail(appliance: Appliance, name: str) -> Iterator[Tail]:
    consumer = Consumer(
        {
            "bootstrap.servers": appliance.bootstrap,
            "group.id": uuid4().hex,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    topic = appliance.topic(name)
    try:
        parts = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in parts])
        consumer.poll(0.5)
        yield Tail(consumer)
    finally:
        consumer.close()


def names(kind: str) -> str:
    return ORDERS if kind == "t" else PLAIN


def kill_between_commit_and_ack(
    appliance: Appliance, open_sender: OpenSender, kind: str
) -> tuple[RawSender, Load] | None:
    """None if an ack was faster than we: order acks wait for 500 ms only."""
    sender = open_sender(recoverable_ack_ms=60_000)
    load = Load(sender.guid, random.Random(1), kind)
    messages = load.make(FEWER_THAN_HALF_A_WINDOW)
    with tail(appliance, names(kind)) as records:
        sender.transmit(messages)
        records.wait_for(sender.guid, len(messages))
        appliance.kill()
    came = sender.read_to_end()
    appliance.restart(empty_data=True)
    return None if came else (sender, load)


@KINDS
def test_killed_between_commit_and_ack(
    appliance: Appliance, open_sender: OpenSender, kind: str
) -> None:
    for _ in range(ATTEMPTS):
        if killed := kill_between_commit_and_ack(appliance, open_sender, kind):
            break
    else:
        raise AssertionError("acks were always faster than the kill")
    sender, load = killed
    assert len(sender.table) == FEWER_THAN_HALF_A_WINDOW
    sender.recoverable_ack_ms = 500
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(load.make(3), soon(30))  # all acked, and the stream goes on
    assert sender.acked == FEWER_THAN_HALF_A_WINDOW + 3
    check(appliance, [load])


@KINDS
def test_killed_before_the_commit(
    appliance: Appliance, kafka: EmbeddedKafka, open_sender: OpenSender, kind: str
) -> None:
    sender = open_sender()
    load = Load(sender.guid, random.Random(2), kind)
    sender.send_all_windowed(load.make(5), soon(30))
    kafka.suspend()
    try:
        sender.transmit(load.make(40))
        sender.expect_nothing(1.5)  # it has them and cannot commit
        appliance.kill()
    finally:
        kafka.resume()
    assert not sender.read_to_end()
    appliance.restart(empty_data=True)
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(load.make(3), soon(30))
    check(appliance, [load])


@pytest.mark.parametrize("seed", [7])
def test_killed_at_random_moments_of_a_stream(appliance: Appliance, seed: int) -> None:
    rng = random.Random(seed)
    fleet = Fleet(lambda: appliance.binary_address)
    loads = [Load(uuid4(), rng, "t") for _ in range(4)]
    for load in loads:
        sender = fleet.add(RawSender(appliance.binary_address, load.source))
        sender.unsent.extend(load.make(750))
    total = len(fleet.kept)
    for sent in sorted(rng.sample(range(64, total), 4)):
        if rng.random() < 0.5:  # at the heels of a burst, or of an ack
            fleet.until(lambda at=sent: fleet.sent >= at or not fleet.kept)
        else:
            fleet.until(lambda at=sent: total - len(fleet.kept) >= at or not fleet.kept)
        appliance.restart(empty_data=True, kill=True)
    fleet.drain()
    fleet.close()
    check(appliance, loads)


def test_a_generated_id_is_kept_in_kafka(
    appliance: Appliance, kafka: EmbeddedKafka, tmp_path: Path
) -> None:  # design 3.2
    nameless = Appliance(tmp_path, kafka.bootstrap_servers, f"crash-{uuid4().hex[:8]}")
    settings = json.loads(nameless.config.read_text())
    del settings["queue_manager"]["id"]
    nameless.config.write_text(json.dumps(settings))
    found: list[UUID] = []
    try:
        nameless.start()
        found.append(identity_of(nameless))
        nameless.restart(empty_data=True, kill=True)
        found.append(identity_of(nameless))
    finally:
        nameless.kill()
    assert found[0] == found[1]
    assert found[0] not in (UUID(int=0), nameless.guid, appliance.guid)


def identity_of(appliance: Appliance) -> UUID:
    with RawSender(appliance.binary_address) as sender:
        return sender.connect().handshake()[0].server


