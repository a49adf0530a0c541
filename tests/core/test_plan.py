"""What differs between the mappings and a cluster, setting by setting."""

from typing import Any

import pytest

from bridge.core.plan import (
    Change,
    ClusterState,
    NewTopic,
    Options,
    Plan,
    TopicState,
    make_plan,
)
from bridge.core.wanted import DAY_MS, FOREVER, LARGE_BYTES, Wanted
from bridge.model.errors import ConfigError

FINE = {
    "max.message.bytes": str(LARGE_BYTES),
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "min.insync.replicas": "1",
}
ORDERS = Wanted(name="orders", why=("queue private$\\orders",))
STATE = Wanted(name="own.state", why=("the appliance itself",), policy="compact", own_partitions=2)
SEEN = Wanted(
    name="own.seen",
    why=("the appliance itself",),
    policy="compact,delete",
    least_ms=3_600_000,
    kept_ms=7_200_000,
    own_partitions=2,
    config={"segment.ms": "900000"},
)


def topic(
    partitions: int = 4, replication: int = 1, empty: bool = False, **config: str
) -> TopicState:
    changed = {name.replace("_", "."): value for name, value in config.items()}
    return TopicState(
        partitions=partitions, replication=replication, empty=empty, config={**FINE, **changed}
    )


def cluster(brokers: int = 1, **facts: Any) -> ClusterState:
    topics = facts.pop("topics", {})
    known = {"partitions": 4, "replication": 1, "min_insync": 1, "retention_ms": 7 * DAY_MS}
    return ClusterState(brokers=brokers, topics=topics, **{**known, **facts})


def differences(
    there: TopicState, wanted: Wanted = ORDERS, brokers: int = 1, **facts: Any
) -> list[tuple[str, str, object, object]]:
    options = Options(
        partitions=facts.pop("ask_partitions", None),
        replication=facts.pop("ask_replication", None),
        force=facts.pop("force", False),
    )
    plan = make_plan([wanted], cluster(brokers, topics={wanted.name: there}, **facts), options)
    assert all(change.topic == wanted.name and change.reason for change in plan.changes)
    return [(c.action, c.setting, c.before, c.after) for c in plan.changes]


def created(wanted: Wanted, options: Options | None = None, **facts: Any) -> NewTopic:
    (change,) = make_plan([wanted], cluster(**facts), options or Options()).changes
    assert (change.action, change.topic, change.setting) == ("create", wanted.name, "")
    assert isinstance(change.after, NewTopic)
    return change.after


def test_nothing_to_do() -> None:
    assert make_plan([ORDERS], cluster(topics={"orders": topic()}), Options()) == Plan()


# -- a topic that is missing --------------------------------------------------------------------


def test_a_missing_topic_is_made_as_the_cluster_makes_them() -> None:
    assert created(ORDERS) == NewTopic(
        partitions=4,
        replication=1,
        config={
            "cleanup.policy": "delete",
            "max.message.bytes": "5242880",
            "retention.ms": "604800000",
        },
    )


def test_or_as_the_operator_asks() -> None:
    made = created(ORDERS, Options(partitions=12, replication=3))
    assert (made.partitions, made.replication) == (12, 3)
    assert made.config["min.insync.replicas"] == "2"


@pytest.mark.parametrize(
    ("brokers", "default", "copies", "least"),
    [
        (1, 1, 1, None),
        (2, 1, 2, None),
        (3, 1, 3, "2"),
        (5, 1, 3, "2"),
        (5, 5, 5, "2"),
        (3, 3, 3, "2"),
    ],
)
def test_our_own_topics_rest_on_three_brokers_where_there_are_three(
    brokers: int, default: int, copies: int, least: str | None
) -> None:
    """Kafka's default is one copy, however many brokers there are."""
    plan = make_plan([STATE], cluster(brokers, replication=default), Options())
    (change,) = plan.changes
    assert isinstance(change.after, NewTopic)
    assert change.after.replication == copies
    assert change.after.config.get("min.insync.replicas") == least


def test_a_mapped_topic_with_one_copy_is_warned_of() -> None:
    made, warned = make_plan([ORDERS], cluster(3), Options()).changes
    assert isinstance(made.after, NewTopic)
    assert made.after.replication == 1  # as the cluster's owner has it
    assert (warned.action, warned.setting, warned.before, warned.after) == (
        "warn",
        "replication",
        1,
        3,
    )
    assert "one copy on a cluster of 3 brokers" in warned.reason
    assert len(make_plan([ORDERS], cluster(3), Options(replication=3)).changes) == 1
    assert len(make_plan([ORDERS], cluster(1), Options()).changes) == 1


def test_a_cluster_that_does_not_tell_uses_its_own() -> None:
    made = created(ORDERS, partitions=None, replication=None, min_insync=None, retention_ms=None)
    assert (made.partitions, made.replication) == (None, None)
    assert "min.insync.replicas" not in made.config


@pytest.mark.parametrize(
    ("default", "made"), [(DAY_MS, 7 * DAY_MS), (30 * DAY_MS, 30 * DAY_MS), (FOREVER, FOREVER)]
)
def test_a_cluster_may_keep_longer_but_not_shorter(default: int, made: int) -> None:
    assert created(ORDERS, retention_ms=default).config["retention.ms"] == str(made)


def test_our_own_are_made_as_a_start_makes_them() -> None:
    made = created(SEEN, Options(partitions=12), retention_ms=FOREVER)
    assert made.partitions == 2
    assert made.config == {
        "cleanup.policy": "compact,delete",
        "max.message.bytes": "5242880",
        "retention.ms": "7200000",
        "segment.ms": "900000",
    }
    assert "retention.ms" not in created(STATE).config


# -- a topic that is there ----------------------------------------------------------------------


def test_a_large_message_must_fit() -> None:  # D7: checked when the mapping is applied
    small = topic(max_message_bytes="1048588")
    assert differences(small) == [("alter", "max.message.bytes", 1_048_588, 5_242_880)]
    chunks = Wanted(name="orders", why=("queue a",), max_bytes=0)
    assert differences(small, chunks) == []


@pytest.mark.parametrize(("kept", "found"), [("345600000", False), ("345599999", True)])
def test_records_outlive_the_senders_four_days(kept: str, found: bool) -> None:
    expected = [("alter", "retention.ms", int(kept), 345_600_000)] if found else []
    assert differences(topic(retention_ms=kept)) == expected


def test_forever_is_long_enough_and_sometimes_nothing_else_is() -> None:  # D5
    retained = Wanted(name="orders", why=("queue a",), least_ms=FOREVER, kept_ms=FOREVER)
    assert differences(topic(retention_ms="-1"), retained) == []
    assert differences(topic(), retained) == [("alter", "retention.ms", 7 * DAY_MS, -1)]


def test_a_bound_on_bytes_is_the_operators_decision() -> None:
    bounded = topic(retention_bytes="1073741824")
    assert differences(bounded) == [("warn", "retention.bytes", 1_073_741_824, -1)]


def test_our_own_topics_that_peers_could_fill_have_a_bound() -> None:
    rejects = Wanted(
        name="orders",
        why=("the appliance itself",),
        own_partitions=4,
        config={"retention.bytes": "1000"},
    )
    assert differences(topic(), rejects) == [("warn", "retention.bytes", -1, 1000)]
    assert differences(topic(retention_bytes="77"), rejects) == []  # the operator's own


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete, compact"])
def test_compaction_loses_messages(policy: str) -> None:
    assert differences(topic(cleanup_policy=policy)) == [
        ("warn", "cleanup.policy", policy, "delete")
    ]


def test_retention_counts_where_something_is_deleted() -> None:
    there = topic(cleanup_policy="compact", retention_ms="1000", retention_bytes="5")
    assert [setting for _, setting, _, _ in differences(there)] == ["cleanup.policy"]


@pytest.mark.parametrize(
    ("replication", "default", "now", "expected"),
    [
        (1, 1, 2, 1),  # nothing could be written
        (3, 1, 1, 2),  # an ack would rest on one broker
        (3, 1, 2, None),
        (3, 3, 2, 3),
        (2, 1, 1, None),  # with 2 a broker's restart would stop us
        (2, 2, 1, 2),
    ],
)
def test_an_ack_rests_on_enough_brokers(
    replication: int, default: int, now: int, expected: int | None
) -> None:
    there = topic(replication=replication, min_insync_replicas=str(now))
    found = differences(there, brokers=3 if replication > 1 else 1, min_insync=default)
    assert found == ([("alter", "min.insync.replicas", now, expected)] if expected else [])


@pytest.mark.parametrize(
    ("brokers", "default", "asked", "there", "best"),
    [
        (1, 1, None, 1, None),
        (3, 1, None, 1, 2),  # one copy, though there are brokers for more
        (3, 3, None, 1, 3),
        (3, 3, None, 2, 3),
        (3, 3, None, 3, None),
        (3, None, None, 2, None),
        (1, 1, 2, 1, 2),
        (5, 3, 4, 3, 4),
    ],
)
def test_replicas(
    brokers: int, default: int | None, asked: int | None, there: int, best: int | None
) -> None:
    found = differences(
        topic(replication=there, min_insync_replicas=str(min(there, 2))),
        brokers=brokers,
        replication=default,
        ask_replication=asked,
    )
    assert found == ([("warn", "replication", there, best)] if best else [])


def test_more_partitions_only_by_force() -> None:  # D2: a stream lives in one partition
    there = topic(partitions=2)
    assert differences(there, ask_partitions=8) == [("warn", "partitions", 2, 8)]
    assert differences(there, ask_partitions=8, force=True) == [("alter", "partitions", 2, 8)]
    assert differences(there, ask_partitions=2) == []
    assert differences(there, ask_partitions=1) == []


def test_an_empty_topic_has_no_order_to_lose() -> None:
    there = topic(partitions=2, empty=True)
    assert differences(there, ask_partitions=8) == [("alter", "partitions", 2, 8)]


def test_fewer_partitions_than_usual_are_only_worth_a_line() -> None:
    plan = make_plan(
        [ORDERS], cluster(topics={"orders": topic(partitions=1)}), Options(), ["before"]
    )
    assert plan.changes == ()
    assert plan.notes == (
        "before",
        "topic orders has 1 partition; a new topic would get 4 (--partitions)",
    )


# -- our own ------------------------------------------------------------------------------------


def test_our_own_topics_are_set_right() -> None:  # design 3.4
    assert differences(topic(2, cleanup_policy="delete", retention_ms="1"), STATE) == [
        ("alter", "cleanup.policy", "delete", "compact")
    ]
    assert differences(topic(2, cleanup_policy="delete,compact"), SEEN) == []
    assert differences(topic(2, cleanup_policy="compact", retention_ms="3599999"), SEEN) == [
        ("alter", "retention.ms", 3_599_999, 7_200_000),
        ("alter", "cleanup.policy", "compact", "compact,delete"),
    ]


@pytest.mark.parametrize("options", [{}, {"ask_partitions": 9}, {"force": True}])
def test_a_shard_has_one_partition_in_each_of_them(options: dict[str, Any]) -> None:
    there = topic(3, cleanup_policy="compact")
    assert differences(there, STATE, **options) == [("warn", "partitions", 3, 2)]
    assert differences(topic(2, cleanup_policy="compact"), STATE, **options) == []


def test_nobody_is_mapped_to_them() -> None:
    mapped = Wanted(name="own.state", why=("queue a",))
    with pytest.raises(ConfigError) as caught:
        make_plan([mapped, STATE], cluster(), Options())
    assert caught.value.what == "topic own.state is wanted by queue a and by the appliance itself"
    assert caught.value.mend


# -- the whole ----------------------------------------------------------------------------------


def test_what_apply_does_and_what_it_leaves() -> None:
    there = topic(2, cleanup_policy="compact", max_message_bytes="1000", retention_ms="5")
    plan = make_plan(
        [Wanted(name="new", why=("a", "b", "c", "d", "e")), ORDERS],
        cluster(topics={"orders": there}),
        Options(partitions=3),
    )
    assert [(change.action, change.topic, change.setting) for change in plan.changes] == [
        ("create", "new", ""),
        ("alter", "orders", "max.message.bytes"),
        ("warn", "orders", "cleanup.policy"),
        ("warn", "orders", "partitions"),
    ]
    assert plan.changes[0].reason == "a, b, c and 2 more"
    assert plan.to_do == list(plan.changes[:2])
    assert plan.of("warn") == list(plan.changes[2:])


def test_the_whole_of_one_change() -> None:
    (change,) = make_plan(
        [ORDERS], cluster(topics={"orders": topic(max_message_bytes="1048588")}), Options()
    ).changes
    assert change == Change(
        action="alter",
        topic="orders",
        setting="max.message.bytes",
        before=1_048_588,
        after=5_242_880,
        reason="a 4 MiB message and its headers do not fit",
    )
