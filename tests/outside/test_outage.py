"""Kafka goes away and comes back; another appliance takes over. design D1, D2, D3"""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import QUEUES, ROOT, Appliance, command
from tests.outside.fleet import Fleet
from tests.outside.ledger import Load, check
from tests.outside.rawsender import Address, RawSender, soon
from tests.outside.records import create_topics
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
NOWHERE: Address = ("127.0.0.1", 9)
COMMIT_DEADLINE_S = 20  # of the appliance


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker of this module's own, in place of the shared one: it gets stopped."""
    with EmbeddedKafka(tmp_path_factory.mktemp("outage")) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _kafka_is_there(kafka: EmbeddedKafka) -> Iterator[None]:
    yield
    kafka.resume()
    if not kafka.running:
        kafka.start()


@pytest.fixture
def fleet(appliance: Appliance) -> Iterator[Fleet]:
    fleet = Fleet(lambda: appliance.binary_address)
    yield fleet
    fleet.close()


class Patient(Appliance):
    """Started without Kafka: only the admin port is waited for."""

    def _wait_until_ready(self, deadline: float) -> None:
        with self._news:
            assert self._news.wait_for(lambda: "admin" in self.listeners, deadline - soon(0))

    def wait_until_ready(self, seconds: float = 60) -> None:
        super()._wait_until_ready(soon(seconds))


def new_load(fleet: Fleet, seed: int, kinds: str = "ert") -> tuple[RawSender, Load]:
    sender = fleet.add(RawSender(NOWHERE, uuid4()))
    return sender, Load(sender.guid, random.Random(seed), kinds)


def acks(sender: RawSender) -> tuple[int, int]:
    """Messages acked and packets received on this session."""
    return sender.acked, sender.received


def assert_no_ack(sender: RawSender, sent: int, before: tuple[int, int]) -> None:
    """None of the messages sent since then has got a session or order ack on any session."""
    assert acks(sender) in (before, (0, 0)), acks(sender)  # zero: it had to open a new one
    assert len(sender.table) + len(sender.unsent) == sent
    for entry in sender.table:
        assert not any((entry.session_acked, entry.durable, entry.order_acked)), entry


def reasons(appliance: Appliance) -> list[str]:
    """Why it is not ready, or which shards are not while others are."""
    status, text = appliance.get("/readyz")
    assert status in (200, 503), (status, text)
    told: list[str] = json.loads(text)["reasons"]
    assert told or status == 200, (status, text)
    return told


def names_kafka(appliance: Appliance) -> bool:
    return any("kafka" in reason.lower() for reason in reasons(appliance))


def is_alive(appliance: Appliance) -> bool:
    return appliance.process.poll() is None and appliance.get("/livez")[0] == 200


Act = Callable[[EmbeddedKafka], None]
WAYS: Sequence[tuple[str, Act, Act, float, bool]] = [
    # name, leave, come back, seconds in which nothing is acked, long enough to be noticed
    ("killed", EmbeddedKafka.kill, EmbeddedKafka.start, 1, True),
    ("stopped", EmbeddedKafka.stop, EmbeddedKafka.start, 1, True),
    ("frozen", EmbeddedKafka.suspend, EmbeddedKafka.resume, 4, False),
    ("frozen too long", EmbeddedKafka.suspend, EmbeddedKafka.resume, COMMIT_DEADLINE_S + 3, True),
]


@pytest.mark.parametrize(
    ("leave", "come_back", "seconds", "noticed"),
    [way[1:] for way in WAYS],
    ids=[way[0] for way in WAYS],
)
def test_no_ack_without_kafka_and_all_goes_on_when_it_is_back(
    appliance: Appliance,
    kafka: EmbeddedKafka,
    fleet: Fleet,
    leave: Act,
    come_back: Act,
    seconds: float,
    noticed: bool,
) -> None:
    pid = appliance.pid
    quiet, quiet_load = new_load(fleet, 1)
    quiet.unsent.extend(quiet_load.make(48))
    fleet.drain()  # so that every ack it could get from now on is one too many
    busy, busy_load = new_load(fleet, 2)  # this one is cut in the middle
    busy.unsent.extend(busy_load.make(600))
    fleet.until(lambda: busy.acked >= 100)
    leave(kafka)
    before = acks(quiet)
    quiet.unsent.extend(quiet_load.make(90))  # more than the window takes
    if noticed:
        fleet.until(lambda: reasons(appliance), 30)
        assert names_kafka(appliance)
    fleet.watch(seconds)
    assert_no_ack(quiet, 90, before)
    assert is_alive(appliance)
    come_back(kafka)
    fleet.until(appliance.is_ready)
    quiet.unsent.extend(quiet_load.make(50))
    fleet.drain()
    assert is_alive(appliance)
    assert appliance.pid == pid
    check(appliance, [quiet_load, busy_load])


def test_started_without_kafka_it_waits_and_says_why(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    patient = Patient(tmp_path, kafka.bootstrap_servers, f"outage-{uuid4().hex[:8]}")
    create_topics(kafka.bootstrap_servers, [patient.topic(name) for name in QUEUES])
    kafka.kill()
    patient.start()
    fleet = Fleet(lambda: patient.listeners.get("binary"))
    try:
        sender, load = new_load(fleet, 3)
        sender.unsent.extend(load.make(100))
        assert reasons(patient)
        told = soon(10)
        fleet.until(lambda: names_kafka(patient) or soon(0) > told)
        why = reasons(patient)
        assert is_alive(patient)
        assert not sender.acked
        kafka.start()
        patient.wait_until_ready()
        fleet.drain()
        check(patient, [load])
        assert any("kafka" in reason.lower() for reason in why), f"after ten seconds: {why}"
    finally:
        fleet.close()
        patient.terminate()


@pytest.fixture
def twins(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[tuple[Appliance, Appliance]]:
    """Two with one identity and one topic_prefix, none started."""
    prefix, guid = f"outage-{uuid4().hex[:8]}", uuid4()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    pair = (
        Appliance(tmp_path / "first", kafka.bootstrap_servers, prefix, guid),
        Appliance(tmp_path / "second", kafka.bootstrap_servers, prefix, guid),
    )
    create_topics(kafka.bootstrap_servers, [pair[0].topic(name) for name in QUEUES])
    yield pair
    for appliance in pair:
        appliance.kill()


def expect_fenced(appliance: Appliance, seconds: float) -> None:
    """It ends by itself, with exit code 1 and one line that says why."""
    try:
        code = appliance.process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still there after {seconds} s:\n{appliance.log}") from None
    told = re.compile(r"fenced|another|topic_prefix|same", re.I)
    eventually(lambda: told.search(appliance.log), 5)
    assert code == 1, appliance.log
    assert "Traceback" not in appliance.log, appliance.log
    last = [line for line in appliance.lines if line.strip()][-1]
    assert told.search(last), appliance.log


def test_a_second_appliance_fences_the_first_under_load(
    twins: tuple[Appliance, Appliance],
) -> None:
    first, second = twins
    first.start()
    place = first.binary_address
    fleet = Fleet(lambda: place)
    loads = []
    for seed in (4, 5):
        sender, load = new_load(fleet, seed)
        sender.unsent.extend(load.make(500))
        loads.append(load)
    fleet.until(lambda: all(sender.acked >= 100 for sender in fleet.senders))
    second.start()
    unsent = sum(len(sender.unsent) for sender in fleet.senders)
    fleet.until(lambda: first.process.poll() is not None)
    expect_fenced(first, 1)
    assert len(fleet.kept) >= unsent  # it has acked nothing that came after the second was there
    place = second.binary_address
    fleet.drain()
    fleet.close()
    check(second, loads)


def test_a_second_appliance_fences_the_first_when_it_is_idle(
    twins: tuple[Appliance, Appliance],
) -> None:
    first, second = twins
    first.start()
    second.start()
    expect_fenced(first, 30)
    assert second.is_ready()


class Embedded(Appliance):
    """Without kafka.bootstrap.servers: it runs a broker of its own."""

    def _write_configuration(self) -> None:
        super()._write_configuration()
        settings = json.loads(self.config.read_text())
        del settings["kafka"]
        self.config.write_text(json.dumps(settings))

    def start(self, seconds: float = 90.0) -> None:
        super().start(seconds)
        self.bootstrap = self.status()["kafka"]["bootstrap.servers"]

    def status(self) -> dict[str, Any]:
        asked = subprocess.run(
            [*command(), "status", "--config", str(self.config), "-o", "json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        status: dict[str, Any] = json.loads(asked.stdout)
        return status

    def brokers(self) -> list[psutil.Process]:
        """Its children that are Java."""
        children = psutil.Process(self.pid).children(recursive=True)
        return [child for child in children if "java" in child.name()]


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    appliance = Embedded(tmp_path, "", f"embedded-{uuid4().hex[:8]}")
    appliance.start()
    yield appliance
    appliance.terminate()
    shutil.rmtree(appliance.data)


def test_the_embedded_broker_is_started_again_and_dies_with_the_appliance(
    embedded: Embedded,
) -> None:  # design 3.1, D3
    fleet = Fleet(lambda: embedded.binary_address)
    sender, load = new_load(fleet, 6)
    sender.unsent.extend(load.make(300))
    fleet.until(lambda: sender.acked >= 64)
    pid = embedded.pid
    [broker] = embedded.brokers()
    broker.kill()  # SIGKILL
    fleet.until(lambda: [child.pid for child in embedded.brokers()] not in ([], [broker.pid]))
    sender.unsent.extend(load.make(50))
    fleet.drain()
    assert (embedded.pid, embedded.process.poll()) == (pid, None)
    embedded.bootstrap = embedded.status()["kafka"]["bootstrap.servers"]
    check(embedded, [load])

    [broker] = embedded.brokers()
    sender.unsent.extend(load.make(300))
    fleet.until(lambda: len(fleet.kept) < 200)
    embedded.kill()
    _, alive = psutil.wait_procs([broker], timeout=30)
    assert not alive, "the broker outlives the appliance that runs it"
    embedded.start()
    fleet.drain()
    fleet.close()
    check(embedded, [load])
