"""A message that a reader has, but has not answered for. DM-27, DM-28; data-model.md 2.10, 2.14

A receive locks its message before its record is read from Kafka. After a restart no record is at
hand: while the broker is suspended the reader has the lock and nothing more.
"""

import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import Appliance, Settings
from tests.outside.rawmsmq import ACK_NR, ACK_PR, Message
from tests.outside.rawpeer import Recorder
from tests.outside.records import create_topics
from tests.outside.retained.bench import Letters, ids, kept
from tests.outside.retained.clerk import Clerk, Waiting, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
LOCKED = path("locked")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("locks")) as broker:
        yield broker


@pytest.fixture(scope="module")
def appliance(
    kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Appliance]:
    prefix = f"locks-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    wanted = Settings(queues=kept("locked"))
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=wanted)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture(scope="module")
def clerk(appliance: Appliance) -> Clerk:
    return Clerk(appliance)


def send(appliance: Appliance, clerk: Clerk, count: int, **properties: int) -> list[Message]:
    """They wait, and no record of theirs is at hand."""
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        sent = Letters(sender.guid, "locked").several(count, acks=ACK_PR | ACK_NR, **properties)
        sender.send_all_windowed(sent)
        clerk.wait(LOCKED, count)
    appliance.restart(empty_data=False)
    return sent


def told(appliance: Appliance, sent: list[Message]) -> list[int]:
    """Classes of the acks that the sender gets, in the order of its messages."""
    with Recorder(appliance.binary_address, sent[0].source) as sender:
        sender.connect().handshake()
        sender.until(lambda: len(sender.administration) >= len(sent))
        sender.expect_nothing(0.5)
        acks = sorted(sender.administration, key=lambda one: one.correlation)
        assert len({one.correlation for one in acks}) == len(sent)
        return [one.message_class for one in acks]


def test_a_purge_takes_the_locked_one_too(
    kafka: EmbeddedKafka, appliance: Appliance, clerk: Clerk
) -> None:
    """DM-27: gone with C001 although its reader confirms it; no other reader gets it."""
    sent = send(appliance, clerk, 3)
    kafka.suspend()
    try:
        reader = Waiting(clerk, LOCKED)
        eventually(lambda: clerk.info(LOCKED)["readers"] == 1)
        purge = threading.Thread(target=clerk.purge, args=(LOCKED,), daemon=True)
        purge.start()
        eventually(lambda: clerk.info(LOCKED)["readers"] == 2)
        assert clerk.count(LOCKED) == 3  # nothing is gone before Kafka has it
    finally:
        kafka.resume()
    got = reader.result()
    assert got is not None
    assert got.id == ids(sent)[0]
    purge.join(30)
    assert not purge.is_alive()
    eventually(lambda: clerk.count(LOCKED) == 0)
    assert told(appliance, sent) == [0xC001] * 3


def test_time_does_not_take_what_is_locked(
    kafka: EmbeddedKafka, appliance: Appliance, clerk: Clerk
) -> None:
    """DM-28: its deadline passes while a reader has it; he receives it. The other one is late."""
    sent = send(appliance, clerk, 2, sent_time=(now := int(time.time())), ttbr=20)
    eventually(lambda: time.time() > now + 17)
    kafka.suspend()
    try:
        assert time.time() < now + 20, "too slow a machine: the message is late already"
        reader = Waiting(clerk, LOCKED)
        eventually(lambda: clerk.info(LOCKED)["readers"] == 1)
        eventually(lambda: time.time() > now + 22)
    finally:
        kafka.resume()
    got = reader.result()
    assert got is not None
    assert got.id == ids(sent)[0]
    eventually(lambda: clerk.count(LOCKED) == 0)
    assert told(appliance, sent) == [0x4000, 0xC002]
