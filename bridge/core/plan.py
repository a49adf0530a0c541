"""What the mappings want of the cluster against what is there: `map plan` (design 3.1, D7).

`bridge.core.wanted` says which topics there should be, `make_plan` compares them with the facts.
What could cost an order, a disk or somebody else's data is a warning and not done by `apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from bridge.core.wanted import FOREVER, SENDER_KEEPS_MS, Wanted, longer
from bridge.model.errors import ConfigError

SHOWN_QUEUES: Final = 3

Action = Literal["create", "alter", "warn"]


class TopicState(Struct, frozen=True, kw_only=True):
    partitions: int
    replication: int
    config: Mapping[str, str]
    empty: bool = False
    """Nothing was ever written to it."""

    def number(self, setting: str) -> int | None:
        value = self.config.get(setting, "")
        return int(value) if value.removeprefix("-").isdigit() else None

    @property
    def policies(self) -> set[str]:
        return set(filter(None, self.config["cleanup.policy"].replace(" ", "").split(",")))


class ClusterState(Struct, frozen=True, kw_only=True):
    """The facts; None = the cluster does not tell us what a new topic gets."""

    brokers: int
    topics: Mapping[str, TopicState]
    partitions: int | None = None
    replication: int | None = None
    min_insync: int | None = None
    retention_ms: int | None = None


class Options(Struct, frozen=True, kw_only=True):
    """What the operator asks for."""

    partitions: int | None = None
    replication: int | None = None
    force: bool = False


class NewTopic(Struct, frozen=True, kw_only=True):
    partitions: int | None
    replication: int | None
    config: Mapping[str, str]


Value = str | int | NewTopic | None


class Change(Struct, frozen=True, kw_only=True):
    action: Action
    topic: str
    setting: str = ""
    before: Value = None
    after: Value = None
    reason: str = ""


class Plan(Struct, frozen=True, kw_only=True):
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, action: Action) -> list[Change]:
        return [change for change in self.changes if change.action == action]

    @property
    def to_do(self) -> list[Change]:
        """What `apply` does; a warning is left to the operator."""
        return [change for change in self.changes if change.action != "warn"]


def make_plan(
    wanted: Iterable[Wanted], cluster: ClusterState, options: Options, notes: Iterable[str] = ()
) -> Plan:
    """By topic in the order given; in a topic what cannot be undone comes last."""
    changes: list[Change] = []
    remarks = list(notes)
    seen: dict[str, Wanted] = {}
    for topic in wanted:
        if seen.setdefault(topic.name, topic) is not topic:
            raise ConfigError(
                f"topic {topic.name} is wanted by {_who(seen[topic.name])} and by {_who(topic)}",
                where="mappings",
                mend="choose another topic, or another topic_prefix",
            )
        there = cluster.topics.get(topic.name)
        if there is None:
            changes += _create(topic, cluster, options)
        else:
            changes += _differences(topic, there, cluster, options)
            remarks += _remarks(topic, there, cluster, options)
    return Plan(changes=tuple(changes), notes=tuple(remarks))


def own_replication(brokers: int, default: int | None = None) -> int:
    """Copies of a topic of ours: what was acknowledged rests on them."""
    return max(default or 1, min(3, brokers))


def _create(topic: Wanted, cluster: ClusterState, options: Options) -> Iterator[Change]:
    replication = options.replication or cluster.replication
    if topic.own_partitions and not options.replication:
        replication = own_replication(cluster.brokers, cluster.replication)
    config = {"cleanup.policy": topic.policy}
    if topic.max_bytes:
        config["max.message.bytes"] = str(topic.max_bytes)
    if "delete" in topic.policy:
        kept = topic.kept_ms
        if not topic.own_partitions and cluster.retention_ms is not None:
            kept = longer(kept, cluster.retention_ms)
        config["retention.ms"] = str(kept)
    if replication is not None and _min_insync(replication, cluster) != cluster.min_insync:
        config["min.insync.replicas"] = str(_min_insync(replication, cluster))
    made = NewTopic(
        partitions=topic.own_partitions or options.partitions or cluster.partitions,
        replication=replication,
        config=config | dict(topic.config),
    )
    yield Change(action="create", topic=topic.name, after=made, reason=_who(topic))
    if replication == 1 and cluster.brokers > 1:
        why = f"{_one_copy(cluster)}; pass --replication, or set default.replication.factor"
        yield _warn(topic, "replication", 1, min(3, cluster.brokers), why)


def _differences(
    topic: Wanted, there: TopicState, cluster: ClusterState, options: Options
) -> Iterator[Change]:
    yield from _size(topic, there)
    yield from _retention(topic, there)
    yield from _insync(topic, there, cluster)
    yield from _cleanup(topic, there)
    yield from _partitions(topic, there, options)
    yield from _replication(topic, there, cluster, options)


def _size(topic: Wanted, there: TopicState) -> Iterator[Change]:
    limit = there.number("max.message.bytes")
    if limit is not None and limit < topic.max_bytes:
        why = "a 4 MiB message and its headers do not fit"
        yield _alter(topic, "max.message.bytes", limit, topic.max_bytes, why)


def _retention(topic: Wanted, there: TopicState) -> Iterator[Change]:
    deletes = topic.policy.split(",") if topic.own_partitions else there.policies
    if "delete" not in deletes:
        return
    kept = there.number("retention.ms")
    if kept is not None and kept != FOREVER and longer(kept, topic.least_ms) != kept:
        yield _alter(
            topic,
            "retention.ms",
            kept,
            topic.kept_ms if topic.own_partitions else topic.least_ms,
            _too_short(topic),
        )
    size, most = there.number("retention.bytes"), dict(topic.config).get("retention.bytes")
    if most is not None:  # one of our own that peers could fill
        if size == FOREVER:
            why = "peers decide how large it becomes; set a bound that fits the disks"
            yield _warn(topic, "retention.bytes", size, int(most), why)
        return
    if size is not None and size != FOREVER:
        why = "a full topic drops records whatever their age; set -1 if there is room on the disks"
        yield _warn(topic, "retention.bytes", size, FOREVER, why)


def _too_short(topic: Wanted) -> str:
    if topic.least_ms == FOREVER:
        return "its messages stay until they are taken"
    if topic.least_ms == SENDER_KEEPS_MS:
        return "shorter than the four days a sender keeps a message"
    return f"shorter than the {topic.least_ms // 1000} s that the appliance relies on"


def _insync(topic: Wanted, there: TopicState, cluster: ClusterState) -> Iterator[Change]:
    now = there.number("min.insync.replicas")
    least = _min_insync(there.replication, cluster)
    if now is None or least <= now <= there.replication:
        return
    if now > there.replication:
        why = f"nothing can be written with {_count(there.replication, 'replica')}"
    else:
        why = "a message is acknowledged when a single broker has it"
    yield _alter(topic, "min.insync.replicas", now, least, why)


def _min_insync(replication: int, cluster: ClusterState) -> int:
    """As the cluster has it, but never one copy of three and never more than there are."""
    return min(replication, max(cluster.min_insync or 1, 2 if replication >= 3 else 1))


def _cleanup(topic: Wanted, there: TopicState) -> Iterator[Change]:
    policy = there.config["cleanup.policy"]
    if topic.own_partitions and there.policies != set(topic.policy.split(",")):
        yield _alter(topic, "cleanup.policy", policy, topic.policy, "the appliance relies on it")
    elif not topic.own_partitions and "compact" in there.policies:
        why = "compaction drops all but the last message of a key; set delete, or map another topic"
        yield _warn(topic, "cleanup.policy", policy, topic.policy, why)


def _partitions(topic: Wanted, there: TopicState, options: Options) -> Iterator[Change]:
    now = there.partitions
    if topic.own_partitions:
        if now != topic.own_partitions:
            why = (
                f"a shard has one partition in each of our topics, here {topic.own_partitions}; "
                "choose another topic_prefix"
            )
            yield _warn(topic, "partitions", now, topic.own_partitions, why)
    elif options.partitions is not None and now < options.partitions:
        if there.empty or options.force:
            why = "it is empty" if there.empty else "streams move to other partitions"
            yield _alter(topic, "partitions", now, options.partitions, why)
        else:
            why = (
                f"{options.partitions} are wanted, but streams would move to other partitions "
                "and lose their order; --force adds them"
            )
            yield _warn(topic, "partitions", now, options.partitions, why)


def _replication(
    topic: Wanted, there: TopicState, cluster: ClusterState, options: Options
) -> Iterator[Change]:
    best = options.replication or cluster.replication or 1
    if there.replication == 1 and cluster.brokers > 1:
        best = max(best, 2)
        why = _one_copy(cluster)
    else:
        why = f"{best} are wanted" if options.replication else f"the cluster's default is {best}"
    if there.replication < best:
        why += "; move it with kafka-reassign-partitions"
        yield _warn(topic, "replication", there.replication, best, why)


def _one_copy(cluster: ClusterState) -> str:
    return f"one copy on a cluster of {cluster.brokers} brokers: its disk is all there is"


def _remarks(
    topic: Wanted, there: TopicState, cluster: ClusterState, options: Options
) -> Iterator[str]:
    """Worth a line, but nothing is wrong: a topic may well be meant to have one partition."""
    usual = cluster.partitions or 0
    if not topic.own_partitions and options.partitions is None and there.partitions < usual:
        have = _count(there.partitions, "partition")
        yield f"topic {topic.name} has {have}; a new topic would get {usual} (--partitions)"


def _alter(topic: Wanted, setting: str, before: Value, after: Value, why: str) -> Change:
    return Change(
        action="alter", topic=topic.name, setting=setting, before=before, after=after, reason=why
    )


def _warn(topic: Wanted, setting: str, before: Value, after: Value, why: str) -> Change:
    return Change(
        action="warn", topic=topic.name, setting=setting, before=before, after=after, reason=why
    )


def _who(topic: Wanted) -> str:
    more = len(topic.why) - SHOWN_QUEUES
    return ", ".join(topic.why[:SHOWN_QUEUES]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
