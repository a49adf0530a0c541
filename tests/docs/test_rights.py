"""The rights that GUARANTEES.md asks for, on a broker that checks them: enough, none too many."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bridge.adapters.kafka import folder as broker_folder
from bridge.adapters.kafka.broker import HOST, free_port
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.net.binary_client import send_all
from bridge.app import Appliance
from bridge.model.guid import Guid
from bridge.model.message import RECOVERABLE, Message
from bridge.protocol.binary.outgoing import Outgoing
from tests.docs.guarantees import PAGE, Right, rights
from tests.support.config import write_config
from tests.support.waiting import until
from tests.test_app import running, send

pytestmark = pytest.mark.kafka
USER: Final = "bridge"
KINDS: Final = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
}
# What the authorizer writes of every question (kafka.authorizer.logger, DEBUG).
_ASKED: Final = re.compile(
    rf"Principal = User:{USER} is (?P<answer>Allowed|Denied) operation = (?P<operation>\w+) "
    r"from host = \S+ on resource = (?P<kind>\w+):\w+:(?P<name>\S+) for request"
)


class Guarded(NamedTuple):
    """We are its super user on one listener, the appliance is USER on another."""

    broker: EmbeddedKafka
    users: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
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
    logged = (
        f"{broker_folder._LOG4J}logger.rights.name = kafka.authorizer.logger\n"
        "logger.rights.level = DEBUG\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_folder, "_LOG4J", logged)
        folder, number = tmp_path_factory.mktemp("guarded"), int(port.rpartition(":")[2])
        with EmbeddedKafka(folder, number, settings=settings) as broker:
            yield Guarded(broker, users)


def grant(broker: EmbeddedKafka, granted: list[Right]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    acls = [
        AclBinding(
            KINDS[right.kind],
            right.name,
            ResourcePatternType[right.pattern.upper()],
            f"User:{USER}",
            "*",
            AclOperation[_constant(right.operation)],
            AclPermissionType.ALLOW,
        )
        for right in granted
    ]
    for answer in admin.create_acls(acls).values():
        answer.result(30)


def _constant(operation: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()


def asked(broker: EmbeddedKafka) -> list[re.Match[str]]:
    return list(_ASKED.finditer((broker.folder / "kafka.log").read_text()))


def is_used(right: Right, questions: list[re.Match[str]]) -> bool:
    return any(
        (question["kind"], question["operation"]) == (right.kind, _constant(right.operation))
        and (
            question["name"].startswith(right.name)
            if right.pattern == "prefixed"
            else question["name"] == right.name
        )
        for question in questions
    )


def configuration(folder: Path, users: str) -> Path:
    """The default prefix, a forward queue, a retained one, and a lease."""
    kafka = {
        "bootstrap.servers": users,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": "secret",
    }
    config = write_config(folder, None, kafka=kafka, topic_prefix="_msmq-bridge", standby=True)
    queues = [
        {"queue": "private$\\orders", "topic": "orders", "transactional": True},
        {"queue": "private$\\tickets", "topic": "tickets", "mode": "retain"},
    ]
    (folder / "mappings.yaml").write_text(json.dumps({"queues": queues}))
    return config


async def send_ticket(address: str) -> None:
    source = Guid.random()
    outgoing = Outgoing(local=source, sequence_timestamp=1, ordinals=count(1000).__next__)
    name = "DIRECT=OS:bridge01\\private$\\tickets"
    ticket = Message(
        source=source,
        ordinal=1,
        destination=name,
        delivery=RECOVERABLE,
        sent_time=int(time.time()),
        body=b"ticket",
    )
    outgoing.add([ticket])
    host, port = address.split(":")
    await send_all(outgoing, host, int(port), deadline_s=30)


async def use(appliance: Appliance) -> None:
    """Streams, plain messages, readers, trace."""
    source, address = Guid.random(), appliance.listeners["binary"]
    await send(address, source, 5)
    await send_ticket(address)
    assert appliance.desk is not None
    held = await appliance.desk.receive("private$\\tickets", wait_s=30)
    assert held is not None
    async with asyncio.timeout(30):
        while not (verdicts := await appliance.trace("id", f"{source}\\1")):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert verdicts[0]["verdict"] == "accepted"


def test_the_rights_are_enough_and_none_is_too_much(guarded: Guarded, tmp_path: Path) -> None:
    broker, users = guarded
    page = rights(PAGE.read_text())
    grant(broker, page)

    async def test() -> None:
        async with running(configuration(tmp_path, users)) as appliance:
            await use(appliance)
            await until(lambda: all(is_used(right, asked(broker)) for right in page))

    try:
        asyncio.run(test())
    finally:
        questions = asked(broker)
        unused = [right for right in page if not is_used(right, questions)]
    assert unused == []
    denied = {match.group(0) for match in questions if match["answer"] == "Denied"}
    assert denied == set()
