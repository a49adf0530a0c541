"""Several sessions, several queues and sources on one of them, nothing mixed up."""

from collections import Counter
from uuid import UUID, uuid4

import psutil
import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import Message, Tx
from tests.outside.rawsender import LOCAL, soon
from tests.outside.records import of_source, read_topic
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
SEQUENCE = 0x65000000_00000100


@pytest.fixture(scope="module")
def settings() -> Settings:
    """A router may bring messages of others: here every sender is one."""
    return Settings(top={"routers": [LOCAL]})


def step(source: UUID, name: str, number: int, sequence: int = SEQUENCE) -> Message:
    return Message(
        source=source,
        message_id=sequence % 1000 * 1000 + number,
        destination=queue(name),
        body=f"{name} {number}".encode(),
        tx=Tx(sequence_id=sequence, number=number, previous=number - 1),
    )


def values(appliance: Appliance, name: str, source: UUID) -> list[str]:
    records = of_source(read_topic(appliance.bootstrap, appliance.topic(name)), source)
    return [record.value.decode() for record in records]


def numbered(name: str, last: int) -> list[str]:
    return [f"{name} {number}" for number in range(1, last + 1)]


def test_two_sessions_take_turns(appliance: Appliance, open_sender: OpenSender) -> None:
    senders = [open_sender(), open_sender()]
    for number in range(1, 31):
        for sender in senders:
            sender.transmit([step(sender.guid, "orders", number)])
    for sender in senders:  # each has its own counters, its own acks
        sender.send_all_windowed(deadline=soon(30))
        assert sender.acked == 30
        assert values(appliance, "orders", sender.guid) == numbered("orders", 30)


def test_one_machine_with_two_sessions(appliance: Appliance, open_sender: OpenSender) -> None:
    """A sender may hold one session per address it knows us by."""
    guid = uuid4()
    first, second = open_sender(guid), open_sender(guid)
    for number in range(1, 11):
        first.transmit([step(guid, "orders", number)])
        second.transmit([step(guid, "orders2", number, SEQUENCE + 1)])
    first.send_all_windowed(deadline=soon(30))
    second.send_all_windowed(deadline=soon(30))
    assert values(appliance, "orders", guid) == numbered("orders", 10)
    assert values(appliance, "orders2", guid) == numbered("orders2", 10)


def test_one_session_carries_many_queues_and_sources(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # section 7 (9): a routing server passes on what others sent
    sources = [uuid4() for _ in range(3)]
    relay = open_sender()
    messages: list[Message] = []
    for number in range(1, 41):
        for index, source in enumerate(sources):
            messages.append(step(source, "orders", number, SEQUENCE + 10 * index))
            messages.append(step(source, "orders2", number, SEQUENCE + 10 * index + 1))
            messages.append(
                Message(
                    source=source,
                    message_id=number,
                    destination=queue("plain"),
                    body=f"plain {number}".encode(),
                    recoverable=number % 2 == 0,
                )
            )
    relay.send_all_windowed(messages, soon(60))
    for source in sources:
        for name in ("orders", "orders2", "plain"):
            assert values(appliance, name, source) == numbered(name, 40)


def test_every_stream_gets_its_own_order_ack(open_sender: OpenSender) -> None:  # QB-80, QB-86
    relay = open_sender()
    streams = {SEQUENCE + index: uuid4() for index in range(5)}
    relay.transmit(
        [
            step(source, "orders", number, sequence)
            for number in (1, 2, 3)
            for sequence, source in streams.items()
        ]
    )
    highest: Counter[int] = Counter()
    while len(highest) < len(streams) or min(highest.values()) < 3:
        sequence, number, _ = relay.read_user(soon(12)).sequence
        highest[sequence] = number
    assert set(highest) == set(streams)


def test_a_lost_session_resumes_on_the_next(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-53, QB-95: the network went away, the bridge did not
    sender = open_sender()
    source = sender.guid
    messages = [step(source, "orders", number) for number in range(1, 301)]
    sender.send_all_windowed(messages, soon(30), until_acked=64)
    for _ in range(3):
        sender.resume()
        sender.send_all_windowed(deadline=soon(30), until_acked=32)
    sender.resume()
    sender.send_all_windowed(deadline=soon(60))
    assert values(appliance, "orders", source) == numbered("orders", 300)


@pytest.mark.timeout(300)
def test_ten_thousand_sessions_leave_nothing_behind(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    """Opened and closed: no connection, no file descriptor, no memory stays."""
    process = psutil.Process(appliance.pid)
    guid = uuid4()

    def open_and_close(count: int) -> tuple[int, int]:
        for _ in range(count):
            open_sender(guid).close()
        eventually(lambda: appliance.status()["session_count"] == 0)
        return process.num_fds(), process.memory_info().rss

    files, memory = open_and_close(3_000)  # what the first ones need, caches and pools, may stay
    files_after, memory_after = open_and_close(7_000)
    assert files_after <= files + 5
    assert memory_after - memory < 8 << 20
