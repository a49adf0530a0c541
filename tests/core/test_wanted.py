"""Which topics the mappings need."""

from typing import Any

import pytest

from bridge.core.mapping_rules import Defaults, Mappings, QueueMapping
from bridge.core.mapping_words import JournalTopic, QueuePath, Topic
from bridge.core.wanted import (
    FOREVER,
    KEPT_MS,
    LARGE_BYTES,
    SENDER_KEEPS_MS,
    Wanted,
    dynamic_topics,
    longer,
    wanted_topic,
    wanted_topics,
)


def queue(
    name: str, topic: str | None = None, journal: str | None = None, **options: Any
) -> QueueMapping:
    return QueueMapping(
        queue=QueuePath(name),
        topic=None if topic is None else Topic(topic),
        journal=None if journal is None else JournalTopic(journal),
        **options,
    )


def mapped(*queues: QueueMapping, **options: Any) -> Mappings:
    return Mappings(queues=queues, **options)


def test_a_topic_for_each_queue_and_each_journal() -> None:
    wanted = wanted_topics(
        mapped(
            queue("private$\\orders", "orders", journal="{queue}.journal"),
            queue("private$\\an invoice"),
        )
    )
    assert wanted == [
        Wanted(name="an-invoice", why=("queue private$\\an invoice",)),
        Wanted(name="orders", why=("queue private$\\orders",)),
        Wanted(name="orders.journal", why=("the journal of queue private$\\orders",)),
    ]


def test_four_days_and_four_mebibytes() -> None:  # D7; a sender's 345600 s
    (wanted,) = wanted_topics(mapped(queue("a")))
    assert wanted.max_bytes == LARGE_BYTES == 5_242_880
    assert wanted.least_ms == SENDER_KEEPS_MS == 345_600 * 1000
    assert (wanted.policy, wanted.own_partitions) == ("delete", 0)


def test_queues_may_share_a_topic_and_the_strictest_counts() -> None:
    (shared,) = wanted_topics(
        mapped(queue("a", "all", oversize="chunk"), queue("b", "all"), queue("c?", "all"))
    )
    assert shared.max_bytes == LARGE_BYTES
    assert shared.why == ("queue a", "queue b", "queue c?")


def test_what_is_cut_or_kept_elsewhere_needs_no_large_records() -> None:  # oversize
    (wanted,) = wanted_topics(mapped(queue("a", oversize="chunk")))
    assert wanted.max_bytes == 0


def test_a_topic_that_only_a_message_can_name_is_told_not_wanted() -> None:
    mappings = mapped(
        queue("private$\\*", journal="{queue}.journal"),
        queue("orders?", "all-orders", journal="all-journals"),
        queue("fan", "fan.{label}"),
        defaults=Defaults(unknown="auto-create"),
    )
    assert [wanted.name for wanted in wanted_topics(mappings)] == ["all-journals", "all-orders"]
    assert dynamic_topics(mappings) == [
        "topic {queue} of queue private$\\* is made when the first message comes",
        "topic {queue}.journal of queue private$\\* is made when the first message comes",
        "topic fan.{label} of queue fan is made when the first message comes",
        "the topic of a queue that is not listed is made when its first message comes",
    ]


def test_such_a_topic_is_wanted_like_any_other() -> None:
    made = wanted_topic("fan.red", queue("fan", "fan.{label}"), "queue fan")
    assert made == Wanted(name="fan.red", why=("queue fan",))


@pytest.mark.parametrize(
    ("one", "two", "answer"), [(1, 2, 2), (KEPT_MS, FOREVER, FOREVER), (FOREVER, 1, FOREVER)]
)
def test_forever_is_longer_than_anything(one: int, two: int, answer: int) -> None:
    assert longer(one, two) == answer


def test_the_topic_of_a_retained_queue_is_kept_for_ever() -> None:  # design D5
    kept = QueueMapping(queue=QueuePath("a"), mode="retain", journal=JournalTopic("a.journal"))
    data, journal = wanted_topics(Mappings(queues=(kept,)))
    assert (data.name, data.least_ms, data.kept_ms) == ("a", FOREVER, FOREVER)
    assert journal.least_ms != FOREVER
