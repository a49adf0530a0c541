"""The topics we own and the topics we fill: made when missing, checked at every start."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
)

from bridge.adapters.kafka.client import (
    ATTEMPT_S,
    CALL_TIMEOUT_S,
    MAX_MESSAGE_BYTES,
    Settings,
    admin_client,
    unavailable,
)
from bridge.core.catalogue import FOREVER_MS, UNKNOWN, TopicLimits
from bridge.core.plan import own_replication
from bridge.model.errors import ConfigError

Offsets = dict[str, dict[int, int]]  # topic -> partition -> offset

_log = logging.getLogger(__name__)
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
SEEN_LEAST_BYTES: Final = 128 * _MIB  # a start needs less than half of it (core/history.py)
_BROKER_DEFAULT: Final = -1
_OF_TOPIC: Final = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
# No second attempt will make such a topic. (`retriable()` is not set in answers to an admin.)
_HOPELESS: Final = frozenset(
    (
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.INVALID_REQUEST,
        KafkaError._INVALID_ARG,
    )
)


class OwnTopics(msgspec.Struct, frozen=True):
    """Names of design 3.4; the prefix is part of the appliance's identity."""

    prefix: str

    @property
    def state(self) -> str:
        return f"{self.prefix}.state"

    @property
    def seen(self) -> str:
        return f"{self.prefix}.seen"

    @property
    def audit(self) -> str:
        return f"{self.prefix}.audit"

    @property
    def rejects(self) -> str:
        return f"{self.prefix}.rejects"

    @property
    def deadletter(self) -> str:
        return f"{self.prefix}.deadletter"

    @property
    def lease(self) -> str:
        return f"{self.prefix}.lease"


def own_configs(own: OwnTopics) -> dict[str, dict[str, str]]:
    large = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
    month = {"cleanup.policy": "delete", "retention.ms": str(30 * 24 * _HOUR_MS)}
    return {
        own.state: {
            "cleanup.policy": "compact",
            # A start reads all that is there, and what was removed is there until it is compacted:
            # soon after it was written, by size and by time (only closed segments are compacted),
            # and the marks of removal two minutes later, which is longer than a start reads. Acks
            # and messages for other hosts are large, and gone from here a moment later.
            "min.cleanable.dirty.ratio": "0.1",
            "max.compaction.lag.ms": str(10 * _MINUTE_MS),
            "segment.ms": str(10 * _MINUTE_MS),
            "segment.bytes": str(8 * _MIB),
            "delete.retention.ms": str(2 * _MINUTE_MS),
        }
        | large,
        own.seen: {
            "cleanup.policy": "compact,delete",
            # By size: ids count whatever their age, and a start needs the newest ones only.
            "retention.ms": "-1",
            "retention.bytes": str(4 * SEEN_LEAST_BYTES),
            "segment.bytes": str(32 * _MIB),
            "segment.ms": str(_HOUR_MS // 4),
        }
        | large,
        # By size as well, for each partition: peers decide how much there is. The oldest goes.
        own.audit: month | {"retention.bytes": str(32 * _GIB)} | large,
        own.rejects: month | {"retention.bytes": str(4 * _GIB)} | large,
        own.deadletter: {"cleanup.policy": "delete", "retention.ms": "-1"} | large,
    }


# What earlier versions set: suffix of a topic, name of a setting. Others are the operator's choice.
_EARLIER: Final = {
    ("state", "max.compaction.lag.ms"): str(_HOUR_MS),
    ("state", "segment.ms"): str(_HOUR_MS),
    ("state", "segment.bytes"): str(16 * _MIB),
    ("state", "delete.retention.ms"): str(_HOUR_MS),
    ("seen", "retention.ms"): str(2 * _HOUR_MS),
}
_OF_NEW: Final = ("retention.bytes", "min.cleanable.dirty.ratio", "segment.bytes")


def _outdated(
    own: OwnTopics, topic: str, config: Mapping[str, str], is_set: Collection[str]
) -> dict[str, str]:
    """The settings of a topic of ours that an earlier version made and this one makes otherwise;
    `is_set` are those that the topic has of its own."""
    suffix, wanted = topic.removeprefix(f"{own.prefix}."), own_configs(own)[topic]
    changes = {}
    for key, value in wanted.items():
        is_earlier = config.get(key) == _EARLIER.get((suffix, key))
        is_unset = key not in is_set and (key in _OF_NEW or (suffix, key) in _EARLIER)
        if config.get(key) != value and (is_earlier or is_unset):
            changes[key] = value
    return changes


def ensure_topics(
    settings: Settings,
    own: OwnTopics,
    shards: int,
    mapped: Iterable[str],
    retained: Collection[str] = (),
    *,
    lenient: bool = False,
) -> dict[str, TopicLimits]:
    """Make what is missing; facts of every topic. The state topic's size is the shard count.

    `retained` are the storage of queues: what waits in them must not grow old (design D5).
    `lenient`: another mapped topic that is closed to us is UNKNOWN, and the rest goes on."""
    admin = admin_client(settings)
    try:
        there, copies = _existing(admin), _copies(admin)
        wanted = {
            name: NewTopic(name, shards, copies.replication, config=config | copies.config)
            for name, config in own_configs(own).items()
        } | {name: _mapped(name, is_kept=name in retained) for name in mapped}
        spared = wanted.keys() - own_configs(own).keys() - set(retained) if lenient else set()
        missing = [topic for name, topic in wanted.items() if name not in there]
        _create(admin, [topic for topic in missing if topic.topic not in spared])
        closed = _try_to_create(admin, [topic for topic in missing if topic.topic in spared])
        facts = _facts(admin, wanted.keys() - closed, spared)
        if _renew(admin, own):
            facts |= _facts(admin, [own.state, own.seen])
        _warn_of_one_copy(admin, wanted.keys() - closed)
    except KafkaException as error:
        raise unavailable("preparing topics", error) from error
    _check_own(own, facts)
    _check_retained(facts, retained)
    return {name: facts[name][0] if name in facts else TopicLimits(UNKNOWN) for name in wanted}


def _renew(admin: AdminClient, own: OwnTopics) -> bool:
    """Bring settings of an earlier version up to date, if we may; else `doctor` names them. Returns
    whether something has changed."""
    kind, changed, is_new = ConfigResource.Type.TOPIC, [], False
    resources = [ConfigResource(kind, name) for name in (own.state, own.seen)]
    for resource, future in admin.describe_configs(resources).items():
        found = future.result()
        values = {key: entry.value for key, entry in found.items()}
        is_set = [key for key, entry in found.items() if entry.source == _OF_TOPIC]
        if changes := _outdated(own, resource.name, values, is_set):
            entries = [
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                for key, value in changes.items()
            ]
            changed.append(ConfigResource(kind, resource.name, incremental_configs=entries))
    if not changed:
        return False
    for resource, future in admin.incremental_alter_configs(changed).items():
        try:
            future.result()
            is_new = True
            _log.info("topic %s has the settings of this version now", resource.name)
        except KafkaException as error:
            _log.warning(
                "topic %s keeps the settings of an earlier version (%s): see 'msmq-bridge doctor'",
                resource.name,
                error.args[0].str(),
            )
    return is_new


def _try_to_create(admin: AdminClient, topics: list[NewTopic]) -> set[str]:
    """Those that no second attempt would make either."""
    closed: set[str] = set()
    for topic in topics:
        try:
            _create(admin, [topic])
        except KafkaException as error:
            if error.args[0].code() not in _HOPELESS:
                raise
            _log.error("topic %s cannot be made (%s)", topic.topic, error.args[0].str())
            closed.add(topic.topic)
    return closed


def ensure_lease(settings: Settings, own: OwnTopics) -> None:
    """One partition, no records: who has it leads (lease.py)."""
    admin = admin_client(settings)
    try:
        if own.lease not in _existing(admin):
            copies = _copies(admin)
            _create(admin, [NewTopic(own.lease, 1, copies.replication, config=copies.config)])
        partitions = _partitions(admin, own.lease)
    except KafkaException as error:
        raise unavailable("preparing topics", error) from error
    if partitions != 1:
        raise ConfigError(
            f"has {partitions} partitions",
            where=f"topic {own.lease}",
            mend="two would lead; delete it, it has no records, and it is made anew",
        )


class Survey(msgspec.Struct):
    """What `ensure_mapped` saw and did, also when it failed."""

    existing: frozenset[str] = frozenset()  # all topics of the cluster, before
    made: set[str] = msgspec.field(default_factory=set)


def ensure_mapped(
    settings: Settings,
    names: Iterable[str],
    may_make: int,
    retained: Collection[str],
    survey: Survey,
) -> dict[str, TopicLimits | str]:
    """Topics that messages have named: their limits, or why there are none.

    At most `may_make` of them are made, because senders name queues and labels; those over it are
    not in the answer.
    """
    admin = admin_client(settings)
    found: dict[str, TopicLimits | str] = {}
    try:
        there = _existing(admin)
        survey.existing = frozenset(there)
        for name in sorted(set(names)):
            if name not in there:
                if may_make <= 0:
                    continue
                may_make -= 1
                try:
                    _create(admin, [_mapped(name, is_kept=name in retained)])
                    survey.made.add(name)
                except KafkaException as error:
                    if error.args[0].code() not in _HOPELESS:
                        raise
                    found[name] = error.args[0].str()
                    continue
            found[name] = _facts(admin, [name])[name][0]
    except KafkaException as error:
        raise unavailable("preparing topics", error) from error
    return found


def look_at(settings: Settings, names: Iterable[str] | None) -> dict[str, TopicLimits]:
    """What the cluster says of those topics that are there, or of all; nothing is made."""
    admin = admin_client(settings)
    try:
        there = _existing(admin)
        wanted = sorted(there.keys() if names is None else set(names) & there.keys())
        return {name: fact for name, (fact, _) in _facts(admin, wanted).items()} if wanted else {}
    except KafkaException as error:
        raise unavailable("looking at topics", error) from error


def committed_ends(settings: Settings, topics: Mapping[str, int]) -> Offsets:
    """Per topic and partition, how far a reader of committed records can see now; `topics` says
    how many partitions each has."""
    return _offsets(settings, topics, OffsetSpec.latest(), "end")  # type: ignore[no-untyped-call]


def first_offsets(settings: Settings, topics: Mapping[str, int]) -> Offsets:
    """Per topic and partition, where the first record is that has not aged."""
    spec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    return _offsets(settings, topics, spec, "beginning")


def _offsets(settings: Settings, topics: Mapping[str, int], spec: OffsetSpec, what: str) -> Offsets:
    places = {
        TopicPartition(topic, number): spec
        for topic, partitions in topics.items()
        for number in range(partitions)
    }
    found: Offsets = {topic: {} for topic in topics}
    if not places:
        return found
    admin = admin_client(settings)
    try:
        _existing(admin)  # as in reader.py
        futures = admin.list_offsets(
            places, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=CALL_TIMEOUT_S
        )
        for place, future in futures.items():
            found[place.topic][place.partition] = int(future.result().offset)
    except KafkaException as error:
        raise unavailable(f"looking for the {what} of topics", error) from error
    return found


def _mapped(name: str, *, is_kept: bool = False) -> NewTopic:
    config = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
    if is_kept:
        config["retention.ms"] = "-1"
    return NewTopic(name, _BROKER_DEFAULT, _BROKER_DEFAULT, config=config)


def cluster_of(settings: Settings) -> str:
    """Its id: two clusters may have the same topics, but not the same records in them."""
    try:
        return admin_client(settings).list_topics(timeout=CALL_TIMEOUT_S).cluster_id or ""
    except KafkaException as error:
        raise unavailable("asking for the cluster's id", error) from error


def topic_ids(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Of topics that are there: one that was deleted and made again has another."""
    asked = list(names)
    if not asked:
        return {}
    admin = admin_client(settings)
    try:
        _existing(admin)  # as in reader.py
        futures = admin.describe_topics(TopicCollection(asked), request_timeout=CALL_TIMEOUT_S)
        return {name: str(future.result().topic_id) for name, future in futures.items()}
    except KafkaException as error:
        raise unavailable("asking for the ids of topics", error) from error


def _existing(admin: AdminClient) -> dict[str, int]:
    metadata = admin.list_topics(timeout=CALL_TIMEOUT_S)
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


class _Copies(msgspec.Struct, frozen=True):
    replication: int
    config: dict[str, str]


def _copies(admin: AdminClient) -> _Copies:
    """Of a topic of ours: on three brokers three, two of which must have what is acknowledged.
    (Kafka's own default is one, however many brokers there are.)"""
    brokers = len(admin.list_topics(timeout=CALL_TIMEOUT_S).brokers)
    if brokers < 2:
        return _Copies(_BROKER_DEFAULT, {})
    replication = own_replication(brokers)
    return _Copies(replication, {"min.insync.replicas": "2"} if replication > 2 else {})


def _warn_of_one_copy(admin: AdminClient, names: Collection[str]) -> None:
    metadata = admin.list_topics(timeout=CALL_TIMEOUT_S)
    brokers = len(metadata.brokers)
    found = [
        name
        for name in sorted(names)
        if name in metadata.topics
        and any(len(part.replicas) == 1 for part in metadata.topics[name].partitions.values())
    ]
    if brokers > 1 and found:
        _log.warning(
            "%d of our topics have one copy on a cluster of %d brokers, %s first: what was "
            "acknowledged is lost with that broker's disk; hint: see 'msmq-bridge map plan'",
            len(found),
            brokers,
            found[0],
        )


def _create(admin: AdminClient, topics: list[NewTopic]) -> None:
    if not topics:
        return
    for name, future in admin.create_topics(topics, operation_timeout=CALL_TIMEOUT_S).items():
        try:
            future.result()
            _log.info("created topic %s", name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _facts(
    admin: AdminClient, names: Iterable[str], spared: Collection[str] = ()
) -> dict[str, tuple[TopicLimits, dict[str, str]]]:
    """Those that are `spared` and closed to us are left out."""
    partitions: dict[str, int] = {}
    for name in names:
        try:
            partitions[name] = _partitions(admin, name)
        except KafkaException as error:
            if name not in spared or error.args[0].code() not in _HOPELESS:
                raise
            _log.error("topic %s cannot be used (%s)", name, error.args[0].str())
    wanted = list(partitions)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in wanted]
    facts = {}
    if not resources:
        return {}
    for resource, future in admin.describe_configs(resources).items():
        config = {key: entry.value for key, entry in future.result().items()}
        facts[resource.name] = limits_of(partitions[resource.name], config), config
    return facts


def limits_of(partitions: int, config: Mapping[str, str]) -> TopicLimits:
    """From a topic's settings."""
    by_broker = config.get("message.timestamp.type") == "LogAppendTime"  # then ours is not read
    before = "" if by_broker else config.get("message.timestamp.before.max.ms")
    return TopicLimits(
        partitions,
        min(int(config["max.message.bytes"]), MAX_MESSAGE_BYTES),  # our client's limit
        wants_key="compact" in config["cleanup.policy"],
        before_ms=min(int(before or FOREVER_MS), FOREVER_MS),
    )


def _partitions(admin: AdminClient, name: str) -> int:
    """A topic that was just made may take a moment to be known everywhere."""
    deadline = time.monotonic() + CALL_TIMEOUT_S
    while True:
        topic = admin.list_topics(name, timeout=CALL_TIMEOUT_S).topics[name]
        if topic.error is None and topic.partitions and _serves(admin, name, len(topic.partitions)):
            return len(topic.partitions)
        is_hopeless = topic.error is not None and topic.error.code() in _HOPELESS
        if is_hopeless or time.monotonic() > deadline:
            break
        admin.poll(0.1)
    raise KafkaException(topic.error or KafkaError(KafkaError._UNKNOWN_TOPIC))


def _serves(admin: AdminClient, name: str, partitions: int) -> bool:
    """Whether every leader takes requests already: metadata may be ahead of it."""
    places = {TopicPartition(name, n): OffsetSpec.latest() for n in range(partitions)}  # type: ignore[no-untyped-call]
    try:
        for future in admin.list_offsets(places, request_timeout=ATTEMPT_S).values():
            future.result()
    except KafkaException:
        return False
    return True


def _check_retained(
    facts: Mapping[str, tuple[TopicLimits, dict[str, str]]], retained: Collection[str]
) -> None:
    """They may have been made by others. Not a reason to stay away: nothing is lost yet."""
    for name in sorted(retained):
        config = facts[name][1]
        if config["cleanup.policy"] != "delete" or config["retention.ms"] != "-1":
            _log.warning(
                "topic %s is the storage of a retained queue, but has retention.ms %s and "
                "cleanup.policy %s: what waits longer is lost; set -1 and delete",
                name,
                config["retention.ms"],
                config["cleanup.policy"],
            )


def _check_own(own: OwnTopics, facts: dict[str, tuple[TopicLimits, dict[str, str]]]) -> None:
    """Losing state loses exactly-once, so a wrong setting stops the start."""
    shards = facts[own.state][0].partitions
    for name, wanted in own_configs(own).items():
        fact, config = facts[name]
        policy = set(config["cleanup.policy"].replace(" ", "").split(","))
        if policy != set(wanted["cleanup.policy"].split(",")):
            raise ConfigError(
                f"cleanup.policy is {config['cleanup.policy']}",
                where=f"topic {name}",
                mend=f"set it to {wanted['cleanup.policy']}, or choose another topic_prefix",
            )
        if fact.max_bytes < MAX_MESSAGE_BYTES:
            raise ConfigError(
                f"max.message.bytes is {fact.max_bytes}",
                where=f"topic {name}",
                mend=f"set it to {MAX_MESSAGE_BYTES}",
            )
        if fact.partitions != shards:
            raise ConfigError(
                f"has {fact.partitions} partitions and {own.state} has {shards}",
                where=f"topic {name}",
                mend="a shard has one partition in each; choose another topic_prefix",
            )
    retention = int(facts[own.seen][1]["retention.ms"])
    if 0 <= retention < _HOUR_MS:
        raise ConfigError(
            f"retention.ms is {retention}",
            where=f"topic {own.seen}",
            mend="set it to an hour or more",
        )
    size = int(facts[own.seen][1]["retention.bytes"])
    if 0 <= size < SEEN_LEAST_BYTES:
        raise ConfigError(
            f"retention.bytes is {size}",
            where=f"topic {own.seen}",
            mend=f"set it to {SEEN_LEAST_BYTES} or more",
        )
