"""ACLs: what is missing is named, and what is asked for is enough for a real appliance."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bridge.adapters.config_files import load_mappings
from bridge.adapters.doctor import brokers, files, rights
from bridge.adapters.doctor.cluster import TopicState
from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.kafka.broker import free_port
from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.adapters.doctor.fake_cluster import ALL, FakeCluster, bad, one, topic, visit_to
from tests.cli.program import serve
from tests.support.config import write_config
from tests.support.kafka import create_topic, unique
from tests.support.waiting import eventually


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def visit(cluster: FakeCluster, tmp_path: Path) -> Visit:
    return visit_to(cluster, tmp_path)


def test_all_is_allowed(visit: Visit, cluster: FakeCluster) -> None:
    finding = one(rights.rights, visit)
    assert finding.result is Result.OK
    assert "6 topics" in finding.found
    assert len(finding.commands) == 5
    assert cluster.config is not None
    cluster.config["authorizer.class.name"] = ""
    assert "no authorizer" in one(rights.rights, visit).found


def test_what_is_not_allowed(visit: Visit, cluster: FakeCluster) -> None:
    cluster.states["orders"] = topic(operations=ALL - {"WRITE"})
    cluster.states["own.state"] = TopicState(error="TOPIC_AUTHORIZATION_FAILED")
    finding = bad(rights.rights, visit)
    assert finding.result is Result.FAIL
    assert "Write on orders" in finding.found
    assert "Read and Write and Describe and DescribeConfigs on own.state" in finding.found


def test_topics_that_we_may_not_make(visit: Visit, cluster: FakeCluster) -> None:
    del cluster.states["orders"]
    assert one(rights.rights, visit).result is Result.OK
    cluster.may = frozenset()
    assert bad(rights.rights, visit).result is Result.WARN


def test_brokers_that_do_not_say(visit: Visit, cluster: FakeCluster) -> None:
    cluster.states = dict.fromkeys(cluster.states, topic(operations=None))
    assert one(rights.rights, visit).result is Result.SKIP


def test_the_commands(tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": "broker1:9092", "sasl.username": "bridge user"}
    commands = rights.acl_commands(visit_to(FakeCluster(), tmp_path, kafka=kafka))
    start = "kafka-acls.sh --bootstrap-server broker1:9092 --add --allow-principal "
    assert all(command.startswith(f"{start}'User:bridge user' ") for command in commands)
    ends = [command.removeprefix(f"{start}'User:bridge user' ") for command in commands]
    assert ends[1].endswith("--operation Create --topic orders")
    assert ends[2] == (
        "--operation Write --operation Describe "
        "--transactional-id own.shard- --resource-pattern-type prefixed"
    )
    assert ends[4] == "--operation IdempotentWrite --operation DescribeConfigs --cluster"


@pytest.mark.parametrize(
    ("topic", "resource"),
    [
        ("by-label.{label}", "--topic by-label. --resource-pattern-type prefixed"),
        ("{source}", "--topic '*'"),
    ],
)
def test_topics_that_only_a_message_can_name(tmp_path: Path, topic: str, resource: str) -> None:
    visit = visit_to(FakeCluster(), tmp_path)
    queues = f"queues: [{{queue: 'private$\\orders', topic: '{topic}'}}]"
    (tmp_path / "mappings.yaml").write_text(queues)
    visit.mappings = load_mappings(tmp_path / "mappings.yaml")
    (found,) = [line for line in rights.acl_commands(visit) if line.endswith(resource)]
    assert "--operation Write" in found


# -- a broker that asks who we are ------------------------------------------------------------

USER = "bridge"
SECRET = unique("secret")
KINDS = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
    "--cluster": ResourceType.BROKER,
}


class Guarded:
    """Its own listener is for super users, the other one for `USER`, who may nothing yet."""

    def __init__(self, folder: Path) -> None:
        inner, outer, controller = (free_port() for _ in range(3))
        self.address = f"127.0.0.1:{outer}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        self.broker = EmbeddedKafka(
            folder,
            inner,
            settings={
                "listeners": f"PLAINTEXT://127.0.0.1:{inner},CLIENT://{self.address},"
                f"CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{inner},CLIENT://{self.address}",
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.client.plain.sasl.jaas.config": f"{module} required "
                f'user_{USER}="{SECRET}";',
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            },
        )

    def settings(self, password: str = SECRET) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
        }

    def grant(self, commands: tuple[str, ...]) -> None:
        """Does what kafka-acls.sh does."""
        bindings = [binding for command in commands for binding in bindings_of(command)]
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        for future in admin.create_acls(bindings).values():
            future.result(30)


def bindings_of(command: str) -> Iterator[AclBinding]:
    words = shlex.split(command)
    (kind,) = set(words) & set(KINDS)
    name = "kafka-cluster" if kind == "--cluster" else words[words.index(kind) + 1]
    pattern = ResourcePatternType.PREFIXED if "prefixed" in words else ResourcePatternType.LITERAL
    principal = words[words.index("--allow-principal") + 1]
    for at, word in enumerate(words):
        if word == "--operation":
            operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words[at + 1]).upper()
            yield AclBinding(
                KINDS[kind],
                name,
                pattern,
                principal,
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    with made.broker:
        yield made


def look(config: Path) -> Finding:
    visit = Visit(config)
    for check in (files.configuration, files.mappings, brokers.reachable):
        for finding in check(visit):
            if finding.result is Result.FAIL:
                return finding
    return one(rights.rights, visit)


@pytest.mark.kafka
def test_the_acls_are_enough(guarded: Guarded, tmp_path: Path) -> None:
    prefix = unique("guarded")
    config = write_config(tmp_path, None, topic_prefix=prefix, kafka=guarded.settings())
    create_topic(guarded.broker.bootstrap_servers, f"{prefix}-orders")
    denied = look(config)
    assert denied.result is Result.FAIL
    assert f"on {prefix}-orders" in denied.found
    assert len(denied.commands) == 6
    guarded.grant(denied.commands)
    eventually(lambda: look(config).result is not Result.FAIL)
    with serve(config) as program:
        program.wait_line("ready: ")
        allowed = look(config)
        assert allowed.result is Result.OK
        assert "all that is needed on 7 topics" in allowed.found


@pytest.mark.kafka
def test_a_wrong_password(guarded: Guarded, tmp_path: Path) -> None:
    finding = look(write_config(tmp_path, None, kafka=guarded.settings("wrong")))
    assert finding.result is Result.FAIL
    assert "uthentication" in finding.found
    assert "sasl.password" in finding.mend
    assert "wrong" not in finding.found
