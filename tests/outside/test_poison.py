"""What Kafka refuses for good is rejected alone; a topic that is away stops its own queue only.

MS-MQQB 3.1.5.8.6: a stream moves on past a message that is refused."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from uuid import UUID, uuid4

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from bridge.adapters.kafka.broker import HOST, free_port
from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.fleet import Fleet
from tests.outside.rawmsmq import INFINITE, Message, Tx
from tests.outside.rawsender import Address, RawSender
from tests.outside.records import Record, create_topics, identity, of_source, read_topic
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
NOWHERE: Address = ("127.0.0.1", 9)
USER = "bridge"
SEQUENCE = 0x65000000_00000019
REASON = "__connect.errors.exception.message"
_ids = count(1)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One that checks rights: we are its super user, the appliance is USER on a listener of its
    own."""
    port, users, controller = (f"{HOST}:{free_port()}" for _ in range(3))
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "listeners": f"PLAINTEXT://{port},USERS://{users},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{port},USERS://{users}",
        "controller.quorum.bootstrap.servers": controller,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "USERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{login} user_{USER}="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    folder, number = tmp_path_factory.mktemp("poison"), int(port.rpartition(":")[2])
    with EmbeddedKafka(folder, number, settings=settings) as broker:
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
            every = AclBinding(
                kind,
                "*",
                ResourcePatternType.LITERAL,
                f"User:{USER}",
                "*",
                AclOperation.ALL,
                AclPermissionType.ALLOW,
            )
            for answer in admin(broker).create_acls([every]).values():
                answer.result(30)
        broker.users = users  # type: ignore[attr-defined]
        yield broker


@pytest.fixture(scope="module")
def settings(kafka: EmbeddedKafka) -> Settings:
    login = {
        "bootstrap.servers": kafka.users,  # type: ignore[attr-defined]
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": "secret",
    }
    queues: dict[str, dict[str, object]] = {
        "small": {"transactional": True},
        "keyless": {"transactional": True, "key": "none"},
        "timed": {"transactional": True, "timestamp": "sent"},
        "gone": {"transactional": True},
        "denied": {"transactional": True},
    }
    return Settings(queues=queues, top={"kafka": login})


@pytest.fixture
def fleet(appliance: Appliance) -> Iterator[Fleet]:
    fleet = Fleet(lambda: appliance.binary_address)
    yield fleet
    fleet.close()


def admin(broker: EmbeddedKafka) -> AdminClient:
    return _admin(broker.bootstrap_servers)


@cache
def _admin(bootstrap: str) -> AdminClient:
    """Kept: a client that is thrown away ends the calls under way."""
    return AdminClient({"bootstrap.servers": bootstrap})


def alter(broker: EmbeddedKafka, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for answer in admin(broker).incremental_alter_configs([resource]).values():
        answer.result(30)


def denial(topic: str, what: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        what,
        AclPermissionType.DENY,
    )


def take_away(broker: EmbeddedKafka, topic: str, what: AclOperation = AclOperation.WRITE) -> None:
    for answer in admin(broker).create_acls([denial(topic, what)]).values():
        answer.result(30)


def give_back(broker: EmbeddedKafka, topic: str, what: AclOperation = AclOperation.WRITE) -> None:
    one = denial(topic, what)
    every = AclBindingFilter(
        one.restype,
        topic,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )
    for answer in admin(broker).delete_acls([every]).values():
        answer.result(30)


class Stream:
    """Transactional messages of one source to one queue."""

    def __init__(self, fleet: Fleet, name: str, source: UUID | None = None) -> None:
        self.name = name
        self.sender = fleet.add(RawSender(NOWHERE, source or uuid4()))
        self.messages: list[Message] = []

    def make(self, body: bytes = b"good", **changes: object) -> Message:
        number = len(self.messages) + 1
        message = Message(
            source=self.sender.guid,
            message_id=next(_ids),
            destination=queue(self.name),
            body=b"%d %s" % (number, body),
            tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1),
            **changes,  # type: ignore[arg-type]
        )
        self.messages.append(message)
        self.sender.unsent.append(message)
        return message

    def good(self, many: int) -> None:
        for _ in range(many):
            self.make()

    def check(self, appliance: Appliance, *without: Message, since: int = 0) -> None:
        """Once, in order, all but those."""
        left = {message.message_id for message in without}
        wanted = [m.body for m in self.messages[since:] if m.message_id not in left]
        found = of_source(
            read_topic(appliance.bootstrap, appliance.topic(self.name)), self.sender.guid
        )
        assert [record.value for record in found] == wanted


def rejects(appliance: Appliance, messages: Sequence[Message]) -> list[Record]:
    found = {
        r.header["msmq.id"]: r for r in read_topic(appliance.bootstrap, appliance.rejects_topic)
    }
    return [found[identity(m.source, m.message_id)] for m in messages]


def readyz(appliance: Appliance) -> tuple[int, list[str]]:
    status, text = appliance.get("/readyz")
    return status, json.loads(text)["reasons"]


LONG_AGO = {"sent_time": 1_000_000, "ttrq": INFINITE}
SURPRISES = [
    ("small", "max.message.bytes", "20000", {"body": b"x" * 60_000}, b"larger-than"),
    ("keyless", "cleanup.policy", "compact", {}, b"compacted-topic-wants-a-key"),
    ("timed", "message.timestamp.before.max.ms", "3600000", LONG_AGO, b"time-is"),
]


@pytest.mark.parametrize(("name", "key", "value", "poison", "told"), SURPRISES)
def test_a_record_that_a_topic_no_longer_takes_is_rejected_alone(
    appliance: Appliance,
    kafka: EmbeddedKafka,
    fleet: Fleet,
    name: str,
    key: str,
    value: str,
    poison: dict[str, object],
    told: bytes,
) -> None:
    victims = [Stream(fleet, name), *(Stream(fleet, "orders") for _ in range(4))]
    for victim in victims:
        victim.good(20)
    fleet.drain()
    alter(kafka, appliance.topic(name), key, value)
    poisoned = victims[0]
    if name == "keyless":  # all of its messages are
        bad = [poisoned.make() for _ in range(3)]
    else:
        poisoned.good(10)
        bad = [poisoned.make(**poison)]  # type: ignore[arg-type]
        poisoned.good(10)
        bad.append(poisoned.make(**poison))  # type: ignore[arg-type]
        poisoned.good(10)
    for victim in victims[1:]:
        victim.good(20)
    fleet.drain(120)
    for victim in victims:
        victim.check(appliance, *bad)
    for record in rejects(appliance, bad):
        reason = record.header[REASON]
        assert reason.startswith((told, b"refused-by-kafka: ")), reason
    poisoned.good(0 if name == "keyless" else 5)
    fleet.drain()
    poisoned.check(appliance, *bad)
    eventually(lambda: readyz(appliance) == (200, []))


def test_a_topic_that_is_deleted_stops_its_queue_alone(
    appliance: Appliance, kafka: EmbeddedKafka, fleet: Fleet
) -> None:
    topic = appliance.topic("gone")
    victim, other = Stream(fleet, "gone"), [Stream(fleet, "orders2") for _ in range(4)]
    for stream in (victim, *other):
        stream.good(30)
    fleet.drain()
    admin(kafka).delete_topics([topic])[topic].result(30)
    for stream in (victim, *other):
        stream.good(30)
    own = victim.sender
    fleet.until(lambda: all(not s.sender.table and not s.sender.unsent for s in other), 120)
    assert len(own.table) + len(own.unsent) == 30  # none is acked
    # That topic alone, once shards that took a unit apart are open again.
    fleet.until(lambda: [topic in reason for reason in readyz(appliance)[1]] == [True], 60)
    assert readyz(appliance)[0] == 200
    assert f"topic {topic} is gone" in appliance.log
    create_topics(appliance.bootstrap, [topic], partitions=2)
    fleet.drain(120)
    victim.check(appliance, since=30)
    for stream in other:
        stream.check(appliance)
    eventually(lambda: readyz(appliance) == (200, []))


def test_a_right_that_is_taken_away_and_given_back(
    appliance: Appliance, kafka: EmbeddedKafka, fleet: Fleet
) -> None:
    topic = appliance.topic("denied")
    victim, other = Stream(fleet, "denied"), [Stream(fleet, "many") for _ in range(4)]
    for stream in (victim, *other):
        stream.good(30)
    fleet.drain()
    take_away(kafka, topic)
    for stream in (victim, *other):
        stream.good(30)
    fleet.until(lambda: all(not s.sender.table and not s.sender.unsent for s in other), 120)
    fleet.until(lambda: any(topic in reason for reason in readyz(appliance)[1]), 60)
    assert readyz(appliance)[0] == 200
    give_back(kafka, topic)
    fleet.drain(120)
    for stream in (victim, *other):
        stream.check(appliance)
    eventually(lambda: readyz(appliance) == (200, []))


def test_a_topic_of_our_own_is_named_and_waited_for(
    appliance: Appliance, kafka: EmbeddedKafka, fleet: Fleet
) -> None:
    victim = Stream(fleet, "orders")
    victim.good(10)
    fleet.drain()
    take_away(kafka, appliance.audit_topic)
    victim.good(10)
    fleet.until(
        lambda: (
            readyz(appliance)[0] == 503
            and any(appliance.audit_topic in reason for reason in readyz(appliance)[1])
        ),
        60,
    )
    assert f"our topic {appliance.audit_topic} may not be written by us" in appliance.log
    give_back(kafka, appliance.audit_topic)
    fleet.drain(120)
    victim.check(appliance)
    eventually(lambda: readyz(appliance) == (200, []))


def test_a_start_without_a_right_on_one_topic(
    appliance: Appliance, kafka: EmbeddedKafka, fleet: Fleet
) -> None:
    topic = appliance.topic("denied")
    take_away(kafka, topic, AclOperation.ALL)
    appliance.terminate()
    appliance.start()
    victim, other = Stream(fleet, "denied"), Stream(fleet, "orders2")
    victim.good(10)
    other.good(10)
    fleet.until(lambda: not other.sender.table and not other.sender.unsent, 60)
    status, reasons = readyz(appliance)
    assert (status, [topic in reason for reason in reasons]) == (200, [True])
    assert len(victim.sender.table) + len(victim.sender.unsent) == 10
    give_back(kafka, topic, AclOperation.ALL)
    fleet.drain(120)
    victim.check(appliance)
    other.check(appliance)
