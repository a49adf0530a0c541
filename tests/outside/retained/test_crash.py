"""kill -9 at every step of a removal. design D1, D5; DM-17, DM-21, DM-26, DM-30

What a reader was told is removed is gone for good; what he was not told is there, in its place and
with its lookup id, unless the transaction was committed. Journal copy, ack and verdict are in that
transaction: each is there once, or not at all.
"""

import http.client
import json
import random
import shutil
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from uuid import uuid4

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.process import Bridge
from tests.outside.rawmsmq import ACK_PR, Message
from tests.outside.rawpeer import Recorder
from tests.outside.records import create_topics, read_topic
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import CUT_OFF, Clerk, RefusedError, Seen, Waiting, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
QUEUE = "kept"
JOURNAL = f"{path(QUEUE)};journal"
BEFORE = ("before-begin", "after-produce", "before-commit")
AFTER = ("commit-unread", "after-commit")
ATTEMPTS = 4  # an idle shard commits now and then: the armed point may be reached by that


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own: it gets suspended."""
    with EmbeddedKafka(tmp_path_factory.mktemp("removal")) as broker:
        yield broker


@pytest.fixture(scope="module")
def bridge(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    prefix = f"removal-{uuid4().hex[:8]}"
    queues = {QUEUE: {"mode": "retain", "journal": f"{prefix}-journal"}}
    folder = tmp_path_factory.mktemp(prefix)
    bridge = Bridge(folder, kafka.bootstrap_servers, prefix, uuid4(), queues=queues)
    create_topics(bridge.bootstrap, [bridge.topic(QUEUE), f"{prefix}-journal"])
    bridge.start()
    yield bridge
    bridge.kill()


@pytest.fixture(scope="module")
def clerk(bridge: Bridge) -> Clerk:
    return Clerk(bridge)


@pytest.fixture(autouse=True)
def clean(bridge: Bridge, clerk: Clerk) -> Iterator[None]:
    """Nothing waits before a test, and nothing after it."""
    yield
    for name in (path(QUEUE), JOURNAL):
        eventually(lambda name=name: clerk.purge(name) == 0)  # type: ignore[misc]


def send(bridge: Bridge, count: int) -> list[Message]:
    """All of them ask to hear that they were received."""
    with Recorder(bridge.binary_address) as sender:
        sender.connect().handshake()
        sent = Letters(sender.guid, QUEUE).several(count, acks=ACK_PR)
        sender.send_all_windowed(sent)
    return sent


def acked(bridge: Bridge, sent: Sequence[Message], count: int) -> Counter[str]:
    """How often a sender that comes back hears of each of its messages; distinct acks only."""
    with Recorder(bridge.binary_address, sent[0].source) as sender:
        sender.connect().handshake()
        sender.until(lambda: len(sender.administration) >= count)
        sender.expect_nothing(0.5)
        by_id = {one.message_id: one for one in sender.administration}
        assert {one.message_class for one in by_id.values()} <= {0x4000}
        return Counter(_name(one.correlation, sent[0]) for one in by_id.values())


def _name(correlation: bytes, message: Message) -> str:
    assert correlation[:16] == message.source.bytes_le
    return f"{message.source}\\{struct.unpack('<I', correlation[16:])[0]}"


def received(bridge: Bridge, wanted: Sequence[str]) -> Counter[str]:
    """Verdicts in the audit topic, which are in the transaction of the removal."""
    records = read_topic(bridge.bootstrap, bridge.audit_topic)
    entries = [entry for record in records for entry in json.loads(record.value)]
    told = Counter(entry["id"] for entry in entries if entry["verdict"] == "received")
    return Counter({name: told[name] for name in wanted})


def crash(bridge: Bridge, kafka: EmbeddedKafka, clerk: Clerk, point: str, number: int) -> None:
    """While a reader waits for the end of its receive."""
    bridge.arm(point, number, kafka.pid)
    reader = Waiting(clerk, path(QUEUE), wait_s=5)
    try:
        assert bridge.reap(20), f"{point} was not reached"
    finally:
        kafka.resume()
    assert bridge.died_at(point), bridge.lines[-3:]
    with pytest.raises(CUT_OFF):  # he was told nothing
        reader.result()


@pytest.mark.parametrize("empty", [False, True], ids=["view kept", "view lost"])
@pytest.mark.parametrize("point", [*BEFORE, *AFTER])
def test_killed_at(
    bridge: Bridge, kafka: EmbeddedKafka, clerk: Clerk, point: str, *, empty: bool
) -> None:
    for _ in range(ATTEMPTS):
        sent = send(bridge, 3)
        held = clerk.wait(path(QUEUE), 3)
        number = 3 if point == "after-produce" else 1  # with the copy, the fate and more behind it
        crash(bridge, kafka, clerk, point, number)
        if empty:
            bridge.empty_data()
        bridge.start()
        name = ids(sent)[0]
        is_committed = received(bridge, [name])[name] == 1
        check_after(bridge, clerk, sent, held, is_committed=is_committed)
        if point in BEFORE:
            assert not is_committed
            return
        if is_committed:
            return
        clerk.purge(path(QUEUE))
        clerk.purge(JOURNAL)
    raise AssertionError(f"{point} was always reached by something else")


def check_after(
    bridge: Bridge, clerk: Clerk, sent: list[Message], held: list[Seen], *, is_committed: bool
) -> None:
    """DM-17: all of it happened, or nothing did; DM-21: what is there is where it was."""
    assert clerk.peek(path(QUEUE)) == held[is_committed:]
    copies = clerk.wait(JOURNAL, int(is_committed))
    assert [one.id for one in copies] == ids(sent)[: len(copies)]
    assert acked(bridge, sent, len(copies)) == Counter([one.id for one in copies])
    taken = clerk.receive(path(QUEUE))
    assert taken == held[is_committed]  # and the next reader gets the first that is there
    clerk.wait(JOURNAL, len(copies) + 1)


@pytest.mark.parametrize("empty", [False, True], ids=["view kept", "view lost"])
def test_killed_when_the_reader_was_just_told(bridge: Bridge, clerk: Clerk, *, empty: bool) -> None:
    """What was told is gone, even if nothing of it is on our disk yet."""
    sent = send(bridge, 4)
    held = clerk.wait(path(QUEUE), 4)
    assert clerk.receive(path(QUEUE), lookup_id=held[2].lookup_id) == held[2]
    assert clerk.receive(path(QUEUE)) == held[0]
    bridge.kill()
    if empty:
        bridge.empty_data()
    bridge.start()
    assert clerk.peek(path(QUEUE)) == [held[1], held[3]]
    gone = [held[0].id, held[2].id]
    assert sorted(one.id for one in clerk.wait(JOURNAL, 2)) == sorted(gone)
    assert acked(bridge, sent, 2) == Counter(gone)


def test_an_old_copy_of_the_data_folder(bridge: Bridge, clerk: Clerk) -> None:
    """A backup is put back: what was removed, moved or came since then is as Kafka says."""
    sent = send(bridge, 6)
    held = clerk.wait(path(QUEUE), 6)
    bridge.kill()
    backup = bridge.folder / "backup"
    shutil.copytree(bridge.data, backup)
    bridge.start()
    assert clerk.receive(path(QUEUE)) == held[0]
    assert clerk.receive(path(QUEUE), lookup_id=held[3].lookup_id) == held[3]
    place = clerk.move(path(QUEUE), held[1].lookup_id, f"{path(QUEUE)};aside")
    more = send(bridge, 2)
    both = clerk.wait(path(QUEUE), 5)
    aside = clerk.peek(f"{path(QUEUE)};aside")
    assert [one.lookup_id for one in aside] == [place]
    bridge.kill()
    shutil.rmtree(bridge.data)
    backup.rename(bridge.data)
    bridge.start()
    assert clerk.peek(path(QUEUE)) == both
    assert [one.id for one in both] == [*ids(sent)[2:3], *ids(sent)[4:], *ids(more)]
    assert clerk.peek(f"{path(QUEUE)};aside") == aside
    assert len(clerk.peek(JOURNAL)) == 2
    clerk.purge(f"{path(QUEUE)};aside")


@pytest.mark.parametrize("harm", ["cut", "zeros", "garbage", "log lost", "nothing in it"])
def test_a_broken_view(bridge: Bridge, clerk: Clerk, harm: str) -> None:
    """It is made again, whatever became of the file."""
    send(bridge, 30)
    held = clerk.wait(path(QUEUE), 30)
    assert clerk.receive(path(QUEUE), lookup_id=held[7].lookup_id) == held[7]
    clerk.wait(JOURNAL, 1)
    if harm == "log lost":
        bridge.kill()
    else:
        bridge.terminate()  # all of it is in the file itself
    (file,) = bridge.data.glob("*.retained.sqlite")
    data = file.read_bytes()
    middle = len(data) // 2
    match harm:
        case "cut":
            file.write_bytes(data[:middle])
        case "zeros":
            file.write_bytes(data[:4096] + bytes(middle) + data[4096 + middle :])
        case "garbage":
            noise = random.Random(5).randbytes(middle)
            file.write_bytes(data[:4096] + noise + data[4096 + middle :])
        case "log lost":
            file.with_name(f"{file.name}-wal").unlink(missing_ok=True)
        case _:
            file.write_bytes(b"")
    bridge.start()
    assert clerk.peek(path(QUEUE)) == held[:7] + held[8:]


def test_killed_at_random_while_two_readers_receive(bridge: Bridge, clerk: Clerk) -> None:
    """Never readable again once its removal was told; copies, acks and verdicts exactly once."""
    rng = random.Random(11)
    sent = send(bridge, 240)
    names = ids(sent)
    clerk.wait(path(QUEUE), len(sent))
    told: list[str] = []
    cut_off = 0
    for turn in range(5):
        stop_at = len(told) + rng.randrange(10, 50)
        cut_off += read_until_killed(bridge, clerk, told, stop_at)
        if turn % 2:
            bridge.empty_data()
        bridge.start()
        there = [one.id for one in clerk.peek(path(QUEUE))]
        assert not set(there) & set(told)
        assert there == [name for name in names if name in set(there)]  # in place
        assert len(names) - len(told) - len(there) <= cut_off
    told += [one.id for one in clerk.receive_all(path(QUEUE))]
    assert max(Counter(told).values()) == 1
    assert [name for name, times in received(bridge, names).items() if times != 1] == []
    copies = [one.id for one in clerk.wait(JOURNAL, len(sent))]
    assert sorted(copies) == sorted(names)
    assert acked(bridge, sent, len(sent)) == Counter(names)
    assert len(names) - len(told) <= cut_off


def read_until_killed(bridge: Bridge, clerk: Clerk, told: list[str], stop_at: int) -> int:
    """Two readers; how many of them were cut off in the middle of a receive."""
    lost, enough = [], threading.Event()

    def read() -> None:
        try:
            while (one := clerk.receive(path(QUEUE))) is not None:
                told.append(one.id)
                if len(told) >= stop_at:
                    enough.set()
        except (OSError, RefusedError, http.client.HTTPException) as error:
            lost.append(error)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for reader in readers:
        reader.start()
    assert enough.wait(60)
    bridge.kill()
    for reader in readers:
        reader.join(30)
    return len(lost)
