"""The brokers: whether they answer, what they can, what they limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bridge.adapters.config_files import kafka_properties
from bridge.adapters.doctor.cluster import connect
from bridge.adapters.doctor.finding import Finding, fail, ok, skip, warn
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.embedded import running_broker
from bridge.model.errors import Unavailable

TRANSACTION_TIMEOUT: Final = "transaction.timeout.ms"
OUR_TRANSACTION_TIMEOUT_MS: Final = 60_000  # unless the configuration says otherwise

# API key and version -> the first Kafka that has it; the newest first.
_RELEASES: Final = (
    (26, 5, "4.0"),  # EndTxn 5: KIP-890
    (80, 0, "3.9"),  # AddRaftVoter
    (69, 0, "3.7"),  # ConsumerGroupDescribe
    (66, 0, "3.0"),  # ListTransactions: KIP-664
    (60, 0, "2.8"),  # DescribeCluster
    (22, 3, "2.5"),  # InitProducerId 3: KIP-360
    (22, 0, "0.11"),  # InitProducerId: transactions
)
_INIT_PRODUCER_ID: Final = 22


def reachable(visit: Visit) -> Iterator[Finding]:
    properties = dict(kafka_properties(visit.config))
    if visit.embedded:
        state = running_broker(visit.config.data / "kafka")
        if state is None:
            yield skip("the embedded Kafka is not running; it starts with the appliance")
            return
        properties["bootstrap.servers"] = state.bootstrap_servers
    try:
        visit.cluster = connect(properties)
    except Unavailable as error:
        yield fail(str(error), mend=_mend(str(error)))
        return
    count = len(visit.cluster.brokers)
    kind = "embedded, " if visit.embedded else ""
    yield ok(f"{visit.cluster.bootstrap} answers ({kind}{count} {_brokers(count)})")


def _brokers(count: int) -> str:
    return "broker" if count == 1 else "brokers"


def _mend(reason: str) -> str:
    text = reason.lower()
    if "resolve" in text:
        return "check the host names in kafka.bootstrap.servers"
    if "refused" in text:
        return "start the brokers, or correct kafka.bootstrap.servers"
    if "authentication" in text or "sasl" in text:
        return "check kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password"
    if "ssl" in text or "certificate" in text or "disconnected" in text:
        return "check kafka.security.protocol and kafka.ssl.ca.location"
    return "check kafka.bootstrap.servers, kafka.security.protocol and the firewalls between"


def version(visit: Visit) -> Iterator[Finding]:
    known = visit.kafka.api_versions()
    if not known:
        yield skip("the client does not tell the brokers' API versions")
        return
    release = next((name for key, least, name in _RELEASES if known.get(key, -1) >= least), "")
    if _INIT_PRODUCER_ID not in known:
        yield fail("the brokers have no transactions", mend="use Kafka 2.5 or later, best 3.0")
    elif known[_INIT_PRODUCER_ID] < 3:
        yield fail(
            f"Kafka {release} or a little later: a producer cannot go on after an error (KIP-360)",
            mend="use Kafka 2.5 or later, best 3.0",
        )
    elif release in ("2.5", "2.8"):
        yield warn(
            f"Kafka {release} or a little later: hanging transactions cannot be listed (KIP-664)",
            mend="use Kafka 3.0 or later",
        )
    else:
        yield ok(f"Kafka {release} or later, with transactions")


def limits(visit: Visit) -> Iterator[Finding]:
    config = visit.kafka.broker_config(min(visit.kafka.brokers))
    if config is None:
        yield skip(
            "the brokers' settings may not be seen",
            mend="allow DescribeConfigs on the cluster to have them checked",
        )
        return
    yield _transaction_timeout(visit, config)
    yield _request_bytes(config)
    yield _message_bytes(config)
    if not visit.embedded:
        yield _copies(len(visit.kafka.brokers), config)


def _transaction_timeout(visit: Visit, config: Mapping[str, str]) -> Finding:
    name = "transaction.max.timeout.ms"
    ours = int(str(visit.config.kafka.get(TRANSACTION_TIMEOUT, OUR_TRANSACTION_TIMEOUT_MS)))
    theirs = int(config[name])
    if theirs < ours:
        return fail(
            f"is {theirs}, and our transactions ask for {ours}: no shard can open",
            name,
            mend=f"set kafka.{TRANSACTION_TIMEOUT} to {theirs} or less, or raise it on the brokers",
        )
    return ok(f"{theirs}, we ask for {ours}", name)


def _request_bytes(config: Mapping[str, str]) -> Finding:
    name = "socket.request.max.bytes"
    if int(config[name]) < MAX_MESSAGE_BYTES:
        return fail(
            f"is {config[name]}: a large message breaks the connection to the broker",
            name,
            mend=f"set it to {2 * MAX_MESSAGE_BYTES} or more on the brokers",
        )
    return ok(config[name], name)


def _message_bytes(config: Mapping[str, str]) -> Finding:
    """Topics that we make have a limit of their own; others may have inherited this one."""
    name = "message.max.bytes"
    if int(config[name]) < MAX_MESSAGE_BYTES:
        return ok(f"{config[name]}; topics that the bridge makes take {MAX_MESSAGE_BYTES}", name)
    return ok(config[name], name)


def _copies(brokers: int, config: Mapping[str, str]) -> Finding:
    name = "default.replication.factor"
    factor, least = int(config[name]), int(config["min.insync.replicas"])
    found = f"{factor}, min.insync.replicas {least}, {brokers} {_brokers(brokers)}"
    if factor > brokers or least > factor:
        return fail(
            f"{found}: a new topic could not be made or written",
            name,
            mend="min.insync.replicas <= default.replication.factor <= number of brokers",
        )
    if factor < 3 or least < 2:
        return warn(
            f"{found}: what was acknowledged may be lost with one machine",
            name,
            mend="three brokers, default.replication.factor=3 and min.insync.replicas=2",
        )
    return ok(found, name)
