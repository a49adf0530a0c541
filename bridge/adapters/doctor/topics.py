"""The topics we own and the topics we fill: there, and as they should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bridge.adapters.doctor.cluster import Place, TopicState
from bridge.adapters.doctor.finding import Finding, fail, ok, warn
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.topics import SEEN_LEAST_BYTES, OwnTopics, own_configs
from bridge.core.wanted import FOREVER, Wanted, wanted_topics

_HOUR_MS: Final = 3_600_000
_PRECIOUS: Final = (".state", ".seen")
_MUCH: Final = {"max.compaction.lag.ms": 5, "delete.retention.ms": 5}  # times what we set
_ALTER: Final = "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name"


def own_names(visit: Visit) -> list[str]:
    return list(own_configs(OwnTopics(visit.config.topic_prefix)))


def mapped_names(visit: Visit) -> list[str]:
    """Those whose name is known before a message comes."""
    return [wanted.name for wanted in wanted_topics(visit.mappings)]


def all_names(visit: Visit) -> list[str]:
    return own_names(visit) + mapped_names(visit)


def places(states: Mapping[str, TopicState]) -> list[Place]:
    """Every partition that can be asked."""
    return [(name, p.number) for name, s in states.items() for p in s.partitions if p.has_leader]


# -- ours ----------------------------------------------------------------------------------------


def own_topics(visit: Visit) -> Iterator[Finding]:
    names = own_names(visit)
    states = visit.kafka.topics(names)
    missing = [name for name in names if states[name].is_missing]
    if len(missing) == len(names) and visit.status is None:
        yield ok(f"{visit.config.topic_prefix}.* not there yet: the first start makes them")
        return
    for name in missing:
        yield _lost(name)
    there = [name for name in names if not states[name].error]
    troubles = [
        *_unhealthy(visit, there, states),
        *_partitions(visit, there, states),
        *_settings(visit, there),
    ]
    yield from troubles
    if there and not troubles:
        yield ok(f"{', '.join(there)} are as they should be")


def _lost(name: str) -> Finding:
    if name.endswith(_PRECIOUS):
        return fail(
            "is missing, others of ours are there: what was taken already is forgotten",
            name,
            mend="bring it back from a backup, or choose a new topic_prefix and expect resends",
        )
    return warn("is missing", name, mend="restart the appliance: it makes it again, empty")


def _partitions(
    visit: Visit, names: Sequence[str], states: Mapping[str, TopicState]
) -> Iterator[Finding]:
    state = f"{visit.config.topic_prefix}.state"
    if state not in names:
        return
    shards = len(states[state].partitions)
    for name in names:
        count = len(states[name].partitions)
        if count != shards:
            yield fail(
                f"has {count} partitions and {state} has {shards}: a shard has one in each",
                name,
                mend="choose another topic_prefix; partitions cannot be taken away",
            )
    if shards != visit.config.shards:
        yield warn(
            f"has {shards} partitions, so there are {shards} shards and not {visit.config.shards}",
            state,
            mend=f"set 'shards' to {shards}: the number is fixed when the topic is made",
        )


def _settings(visit: Visit, names: Sequence[str]) -> Iterator[Finding]:
    wanted = own_configs(OwnTopics(visit.config.topic_prefix))
    alter = _ALTER.format(visit.kafka.bootstrap)
    for name, config in visit.kafka.topic_config(names).items():
        policy = wanted[name]["cleanup.policy"]
        if _words(config["cleanup.policy"]) != _words(policy):
            yield fail(
                f"cleanup.policy is {config['cleanup.policy']}, not {policy}",
                name,
                mend="set it, or choose another topic_prefix",
                commands=[f"{alter} {name} --add-config cleanup.policy=[{policy}]"],
            )
        if int(config["max.message.bytes"]) < MAX_MESSAGE_BYTES:
            yield fail(
                f"max.message.bytes is {config['max.message.bytes']}",
                name,
                mend=f"set it to {MAX_MESSAGE_BYTES}",
                commands=[f"{alter} {name} --add-config max.message.bytes={MAX_MESSAGE_BYTES}"],
            )
        yield from _retention(name, config, wanted[name], alter)
        yield from _room_for_ids(name, config, wanted[name], alter)
        yield from _bounds(name, config, wanted[name], alter)


def _room_for_ids(
    name: str, config: Mapping[str, str], wanted: Mapping[str, str], alter: str
) -> Iterator[Finding]:
    size = int(config.get("retention.bytes", -1))
    if name.endswith(".seen") and 0 <= size < SEEN_LEAST_BYTES:
        yield fail(
            f"retention.bytes is {size}: ids are forgotten while they still count",
            name,
            mend=f"set it to {SEEN_LEAST_BYTES} or more",
            commands=[f"{alter} {name} --add-config retention.bytes={wanted['retention.bytes']}"],
        )


def _bounds(
    name: str, config: Mapping[str, str], wanted: Mapping[str, str], alter: str
) -> Iterator[Finding]:
    """Settings of newer versions, which are only set when a topic is made: without them a flood
    fills the disk, or makes the next start slow."""
    changes = {
        key: wanted[key]
        for key in ("retention.bytes", "max.compaction.lag.ms", "delete.retention.ms")
        if key in wanted
        and not 0 <= int(config.get(key, -1)) <= _MUCH.get(key, 1024) * int(wanted[key])
    }
    if changes:
        listed = ",".join(f"{key}={value}" for key, value in changes.items())
        yield warn(
            f"{' and '.join(changes)} not bounded: peers decide how large the topic becomes",
            name,
            mend="set a bound that fits the disks of the brokers",
            commands=[f"{alter} {name} --add-config {listed}"],
        )


def _retention(
    name: str, config: Mapping[str, str], wanted: Mapping[str, str], alter: str
) -> Iterator[Finding]:
    if "retention.ms" not in wanted:
        return
    is_, should = int(config["retention.ms"]), int(wanted["retention.ms"])
    if is_ < 0 or 0 <= should <= is_:
        return
    commands = [f"{alter} {name} --add-config retention.ms={should}"]
    if name.endswith(".seen") and is_ < _HOUR_MS:
        yield fail(
            f"retention.ms is {is_}: ids are forgotten while they still count",
            name,
            mend="set it to an hour or more",
            commands=commands,
        )
    else:
        yield warn(
            f"retention.ms is {is_}, less than we ask for ({should})",
            name,
            mend="set it, or accept that it goes sooner",
            commands=commands,
        )


def _words(policy: str) -> set[str]:
    return set(policy.replace(" ", "").split(","))


# -- the mapped ones -----------------------------------------------------------------------------


def mapped_topics(visit: Visit) -> Iterator[Finding]:
    names = mapped_names(visit)
    states = visit.kafka.topics(names)
    there = [name for name in names if not states[name].error]
    missing = [name for name in names if states[name].is_missing]
    troubles = [*_unhealthy(visit, there, states), *_unfit(visit, there)]
    if missing:
        troubles.insert(0, _unmade(visit, missing))
    yield from troubles
    if not troubles:
        listed = ", ".join(there[:5]) + (f" and {len(there) - 5} more" if len(there) > 5 else "")
        yield ok(f"{listed} can be written" if there else "no topic has a fixed name")


def _unmade(visit: Visit, names: Sequence[str]) -> Finding:
    if visit.status is not None:
        return fail(
            f"{', '.join(names)}: gone while the appliance runs, messages cannot be taken",
            mend="make them again with 'msmq-bridge map apply', or restart the appliance",
        )
    return warn(
        f"{', '.join(names)}: not there yet",
        mend="'msmq-bridge map plan' shows what they would be; the next start makes them",
    )


def _unfit(visit: Visit, names: Sequence[str]) -> Iterator[Finding]:
    configs = visit.kafka.topic_config(names)
    for wanted in wanted_topics(visit.mappings):
        if wanted.name in configs:
            troubles = list(_troubles(wanted, configs[wanted.name]))
            if troubles:
                yield warn(
                    "; ".join(troubles),
                    wanted.name,
                    mend="'msmq-bridge map plan' shows what should be, 'map apply' makes it so",
                )


def _troubles(wanted: Wanted, config: Mapping[str, str]) -> Iterator[str]:
    most, kept = int(config["max.message.bytes"]), int(config["retention.ms"])
    if most < wanted.max_bytes:
        yield f"max.message.bytes is {most}: larger messages are refused"
    if _words(config["cleanup.policy"]) != _words(wanted.policy):
        yield f"cleanup.policy is {config['cleanup.policy']}, not {wanted.policy}"
    if kept != FOREVER and (wanted.least_ms == FOREVER or kept < wanted.least_ms):
        yield f"retention.ms is {kept}: messages may go before anybody has read them"


def _unhealthy(
    visit: Visit, names: Sequence[str], states: Mapping[str, TopicState]
) -> Iterator[Finding]:
    """Partitions that cannot be written, or could not after one more loss."""
    configs = visit.kafka.topic_config(names)
    for name in names:
        least = int(configs.get(name, {}).get("min.insync.replicas", 1))
        parts = states[name].partitions
        headless = [str(p.number) for p in parts if not p.has_leader]
        stuck = [str(p.number) for p in parts if p.has_leader and p.in_sync < least]
        behind = [str(p.number) for p in parts if least <= p.in_sync < p.replicas]
        if headless:
            yield fail(
                f"no leader for partition {', '.join(headless)}",
                name,
                mend="bring the brokers back that hold it",
            )
        if stuck:
            yield fail(
                f"fewer than {least} replicas in sync (min.insync.replicas) in partition "
                f"{', '.join(stuck)}: it cannot be written",
                name,
                mend="bring the missing brokers back, or lower min.insync.replicas",
            )
        if behind:
            yield warn(
                f"replicas are behind in partition {', '.join(behind)}",
                name,
                mend="look at the brokers that are missing",
            )
