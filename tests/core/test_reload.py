"""What new mappings would do to live streams: design D2, issue of hot reload."""

from typing import Any

import pytest

from bridge.core.catalogue import Catalogue, TopicLimits, private_number
from bridge.core.mapping_rules import (
    Defaults,
    JournalTopic,
    Key,
    Mappings,
    QueueMapping,
    QueuePath,
    Topic,
)
from bridge.core.reload import OrderBreak, OrderWouldBreak, mode_changes, order_breaks
from bridge.model.errors import BridgeError
from bridge.model.guid import Guid
from tests.core.messages import LOCAL, ORDERS, OTHER, SENDER

LIMITS = {name: TopicLimits(4) for name in ("orders", "other", "journal")}
LIVE = [(SENDER, ORDERS)]
UNMAPPED = "it is no longer mapped: what its senders still have would be refused"


def orders(
    name: str = "private$\\orders", topic: str | None = "orders", **more: Any
) -> QueueMapping:
    settings: dict[str, Any] = {"transactional": True, **more}
    return QueueMapping(
        queue=QueuePath(name), topic=None if topic is None else Topic(topic), **settings
    )


def catalogue(
    *mappings: QueueMapping, limits: dict[str, TopicLimits] = LIMITS, **defaults: Any
) -> Catalogue:
    rules = Mappings(queues=mappings, defaults=Defaults(**defaults))
    return Catalogue.of(LOCAL, rules, limits, "_msmq-bridge.")


def reasons(old: Catalogue, new: Catalogue, destination: str = ORDERS) -> list[str]:
    breaks = order_breaks(old, new, [(SENDER, destination)])
    assert all(found.queue == "private$\\orders" for found in breaks)
    return [found.reason for found in breaks]


@pytest.mark.parametrize(
    "new",
    [
        orders(),
        orders("private$\\ORDERS"),  # case does not count
        orders("private$\\ord*"),
        orders("private$\\*", "{queue}"),
        orders(topic=None),  # named after the queue
        orders(key=Key("label")),  # the stream still picks the partition
        orders(value="json", timestamp="sent", oversize="chunk"),
        orders(journal=JournalTopic("journal"), quota_kb=1, authenticate="optional"),
    ],
)
def test_what_leaves_a_stream_where_it_is(new: QueueMapping) -> None:
    assert reasons(catalogue(orders()), catalogue(new)) == []


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (catalogue(), UNMAPPED),
        (catalogue(orders("private$\\else*")), UNMAPPED),
        (catalogue(orders("orders")), UNMAPPED),  # a public queue is another one
        (catalogue(orders(topic="other")), "its topic changes from orders to other"),
        (catalogue(orders(topic="{label}")), "its topic changes from orders to {label}"),
        (catalogue(orders(transactional=False)), "it would refuse transactional messages"),
        (
            catalogue(orders(order="key", key=Key("label"))),
            "its partitions are picked by key (label), so far by stream",
        ),
        (
            catalogue(orders(), limits={"orders": TopicLimits(8)}),
            "orders went from 4 to 8 partitions: streams move to others",
        ),
    ],
)
def test_what_breaks_a_stream(new: Catalogue, told: str) -> None:
    assert reasons(catalogue(orders()), new) == [told]


def test_all_reasons_are_told() -> None:
    new = catalogue(orders(topic="other", transactional=False, order="key", key=Key("source")))
    assert reasons(catalogue(orders()), new) == [
        "it would refuse transactional messages",
        "its partitions are picked by key (source), so far by stream",
        "its topic changes from orders to other",
    ]


def test_from_one_key_to_another() -> None:
    old = catalogue(orders(order="key", key=Key("label")))
    new = catalogue(orders(order="key", key=Key("source")))
    assert reasons(old, new) == [
        "its partitions are picked by key (source), so far by key (label)",
    ]
    assert reasons(old, catalogue(orders())) == [
        "its partitions are picked by stream, so far by key (label)",
    ]


def test_auto_create_takes_over() -> None:
    """A queue that is made takes both kinds, and its topic has its name."""
    old = catalogue(orders())
    assert reasons(old, catalogue(unknown="auto-create")) == []
    assert reasons(old, catalogue(unknown="auto-create", transactional=True)) == []
    assert reasons(catalogue(orders(topic="other")), catalogue(unknown="auto-create")) == [
        "its topic changes from other to orders"
    ]
    assert reasons(catalogue(unknown="auto-create"), catalogue()) == [UNMAPPED]
    assert reasons(catalogue(unknown="auto-create"), catalogue(unknown="auto-create")) == []


def test_a_more_literal_pattern_takes_over() -> None:
    old = catalogue(orders("private$\\*", "{queue}"))
    new = catalogue(orders("private$\\*", "{queue}"), orders("private$\\o*", "other"))
    assert reasons(old, new) == ["its topic changes from orders to other"]


def test_a_topic_by_label_that_stays_one() -> None:
    old, new = (catalogue(orders(topic="o-{label}")) for _ in range(2))
    assert reasons(old, new) == []
    assert reasons(old, catalogue(orders(topic="p-{label}"))) == [
        "its topic changes from o-{label} to p-{label}"
    ]


def test_a_topic_that_nobody_has_looked_at_is_no_reason() -> None:
    old = catalogue(orders("private$\\*", "{queue}"), limits={})
    assert old.find(ORDERS) is not None
    old.learn("orders", TopicLimits(9))
    assert reasons(old, catalogue(orders("private$\\*", "{queue}"), limits={})) == []
    new = catalogue(orders("private$\\*", "{queue}"))  # somebody has
    assert reasons(old, new) == ["orders went from 9 to 4 partitions: streams move to others"]


def test_only_live_streams_count() -> None:
    assert order_breaks(catalogue(orders()), catalogue(), []) == []
    assert order_breaks(catalogue(orders()), catalogue(), [(SENDER, "DIRECT=OS:a\\x")]) == []
    assert order_breaks(catalogue(), catalogue(), LIVE) == []  # it was refused before


def test_each_queue_and_reason_once_and_in_order() -> None:
    old = catalogue(orders(), orders("private$\\a", "other"), orders("private$\\z", "other"))
    streams = [
        (source, f"DIRECT=OS:{host}\\private$\\{name}")
        for source in (SENDER, OTHER, Guid.random())
        for host in ("bridge01", "BRIDGE01", "10.0.0.1")
        for name in ("z", "orders", "a")
    ]
    assert order_breaks(old, catalogue(orders("private$\\a", "other")), streams) == [
        OrderBreak("private$\\orders", UNMAPPED),
        OrderBreak("private$\\z", UNMAPPED),
    ]


def test_streams_are_asked_for_once() -> None:  # they may come from a generator
    streams = ((source, ORDERS) for source in (SENDER, OTHER))
    assert len(order_breaks(catalogue(orders()), catalogue(), streams)) == 1


BY_NUMBER = f"PRIVATE={LOCAL}\\{private_number('orders'):08x}"


@pytest.mark.parametrize(
    "streams",
    [[(SENDER, ORDERS), (OTHER, BY_NUMBER)], [(OTHER, BY_NUMBER), (SENDER, ORDERS)]],
)
def test_a_stream_by_number_is_not_lost(
    streams: list[tuple[Guid, str]],
) -> None:  # T-25: the number is a hash of the name
    """A pattern takes the queue; the new catalogue has not seen its name yet, the old one has."""
    old, new = (catalogue(orders("private$\\*", "{queue}")) for _ in range(2))
    assert old.find(ORDERS) is not None
    assert order_breaks(old, new, streams) == []
    assert new.find(BY_NUMBER) is not None  # else its next message would be refused


def test_who_asks_reads_which_queues() -> None:
    error = OrderWouldBreak([OrderBreak("b", "x"), OrderBreak("a", "y"), OrderBreak("b", "z")])
    assert isinstance(error, BridgeError)
    assert str(error) == "the order of live streams would break: a, b"
    assert len(error.breaks) == 3


def test_a_change_of_mode_is_named() -> None:  # design D5
    def mappings(**modes: Any) -> Mappings:
        return Mappings(
            queues=tuple(QueueMapping(queue=QueuePath(n), mode=m) for n, m in modes.items())
        )

    old = mappings(a="retain", b="retain", c="retain", d="forward", e="forward")
    new = mappings(a="forward", c="retain", d="retain", f="retain")
    a, b, d = mode_changes(old, new)
    assert a.startswith("a: its mode changes from retain to forward; what waits")
    assert b.startswith("b: it is no longer mapped; what waits")
    assert d.startswith("d: its mode changes from forward to retain; readers get what comes")
    assert mode_changes(old, old) == []
