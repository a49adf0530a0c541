"""Mapping rules as values; their files are tested in adapters/test_config_files_mappings."""

import pytest

from bridge.core.mapping_rules import (
    Defaults,
    HeaderRules,
    JournalTopic,
    Key,
    Mappings,
    QueueMapping,
    QueuePath,
    QueueSettings,
    Topic,
    is_legal_topic,
)
from bridge.model.errors import ConfigError


def test_queue_paths() -> None:  # MS-MQMQ 2.1.1
    assert QueuePath.parse("PRIVATE$\\Orders") == "private$\\Orders"
    assert QueuePath.parse("private$\\Orders").name == "Orders"
    assert QueuePath.parse("Orders").name == "Orders"
    assert QueuePath.parse("q" * 124)
    assert QueuePath.parse("private$\\" + "q" * 124)


@pytest.mark.parametrize("character", '\\;+,"\n\x7f')
def test_characters_that_no_queue_has(character: str) -> None:  # MS-MQMQ 2.1.1
    with pytest.raises(ConfigError):
        QueuePath.parse(f"private$\\a{character}b")


@pytest.mark.parametrize("text", ["", "private$\\", "q" * 125])
def test_queue_names_have_1_to_124_characters(text: str) -> None:
    with pytest.raises(ConfigError, match="1 to 124"):
        QueuePath.parse(text)


@pytest.mark.parametrize(
    ("queue", "topic", "name"),
    [
        ("private$\\orders", None, "orders"),
        ("private$\\my orders!", None, "my-orders-"),
        ("Orders", None, "Orders"),
        ("private$\\orders", "all", "all"),
        ("private$\\orders", "msmq.{queue}", "msmq.orders"),
    ],
)
def test_the_topic_of_a_queue(queue: str, topic: str | None, name: str) -> None:
    mapping = QueueMapping(queue=QueuePath(queue), topic=Topic(topic) if topic else None)
    assert mapping.topic_name == name
    assert is_legal_topic(name)


def test_topics_follow_the_rule_of_kafka() -> None:
    assert Topic.parse("a.b_c-D9") == "a.b_c-D9"
    assert Topic.parse("{queue}.{label}.{source}")
    for text in ("", ".", "..", "a/b", "a b", "ä", "t" * 250, "{x}", "a}"):
        with pytest.raises(ConfigError):
            Topic.parse(text)


def test_keys() -> None:
    for text in ("stream", "message_id", "correlation_id", "label", "source", "none"):
        assert QueueMapping(queue=QueuePath("a"), key=Key.parse(text)).key == text
    assert Key.parse("header:msmq.label")
    assert Key.parse("json:$.order.id")
    for text in ("", "header:", "json:", "json:a", "Stream"):
        with pytest.raises(ConfigError):
            Key.parse(text)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("value", "text"),
        ("value", "envelope"),
        ("oversize", "chunk"),
        ("oversize", "claim-check"),
        ("headers", HeaderRules(include=())),
        ("headers", HeaderRules(rename={"msmq.label": "title"})),
        ("topic", Topic("{label}")),
        ("topic", Topic("all-{source}")),
    ],
)
def test_a_retained_queue_can_give_its_messages_back(option: str, value: object) -> None:
    """Design D5: the topic is its storage, so a record has all of its message."""
    assert QueueMapping(queue=QueuePath("a"), mode="retain").mode == "retain"
    with pytest.raises(ConfigError, match="mode: retain, but") as caught:
        QueueMapping(queue=QueuePath("a"), mode="retain", **{option: value})  # type: ignore[arg-type]
    assert caught.value.where == option
    assert caught.value.mend


def test_headers_may_be_added_to_what_is_retained() -> None:
    rules = HeaderRules(add={"env": "prod"}, cloudevents=True)
    assert QueueMapping(queue=QueuePath("a"), mode="retain", headers=rules).headers == rules


def test_which_topics_are_storage() -> None:
    kept = QueueMapping(queue=QueuePath("a"), topic=Topic("kept"), mode="retain")
    pattern = QueueMapping(queue=QueuePath("b*"), mode="retain")
    mappings = Mappings(queues=(kept, pattern, mapped("c", "passed-on")))
    assert mappings.retained_topics() == {"kept"}


def test_auto_create() -> None:
    assert Defaults().unknown == "reject"
    made = Defaults(unknown="auto-create", key=Key("label"), quota_kb=7).mapping()
    assert (made.key, made.quota_kb) == ("label", 7)
    assert made.is_dynamic
    assert made.topic_for("private$\\orders", "", "") == "orders"


def mapped(queue: str, topic: str | None = None, journal: str | None = None) -> QueueMapping:
    return QueueMapping(
        queue=QueuePath(queue),
        topic=Topic(topic) if topic else None,
        journal=JournalTopic(journal) if journal else None,
    )


@pytest.mark.parametrize(
    ("queue", "topic", "is_dynamic", "by_message"),
    [
        ("a", None, False, False),
        ("a", "x.{queue}", False, False),
        ("a*", "all", False, False),
        ("a*", None, True, False),
        ("a?", "x.{queue}", True, False),
        ("a", "{label}", True, True),
        ("a*", "{source}", True, True),
    ],
)
def test_when_the_topic_is_known(
    queue: str, topic: str | None, is_dynamic: bool, by_message: bool
) -> None:
    mapping = mapped(queue, topic)
    assert (mapping.is_dynamic, mapping.depends_on_message) == (is_dynamic, by_message)
    assert bool(mapping.topic_name) is not is_dynamic


def test_the_topic_of_a_message() -> None:
    mapping = mapped("private$\\ord*", "{queue}.{label}.{source}")
    assert mapping.topic_for("private$\\orders", "big one", "guid") == "orders.big-one.guid"
    assert mapping.topic_for("PRIVATE$\\orders", "", "guid") == "orders.no-label.guid"
    assert mapped("a*", "all").topic_for("abc", "x", "y") == "all"
    assert mapped("_a").topic_for("_a", "x", "y") == "_a"  # as the mapping spells it


def test_the_journal_of_a_queue() -> None:
    assert mapped("a").journal_for("a") == ""
    assert mapped("my a", journal="{queue}.j").journal_for("my a") == "my-a.j"
    assert mapped("private$\\*", journal="{queue}.j").journal_for("private$\\b c") == "b-c.j"
    assert mapped("private$\\*", journal="all.j").journal_for("private$\\b") == "all.j"


def test_what_is_known_before_a_message_comes() -> None:
    mappings = Mappings(
        queues=(
            mapped("x*", journal="{queue}.j"),
            mapped("x?z*", "all", "all.j"),
            mapped("a", journal="{queue}.j"),
            mapped("b", "{label}"),
            mapped("x??"),
        )
    )
    assert mappings.topics() == ("a", "a.j", "all", "all.j")
    assert [m.queue for m in mappings.ranked()] == ["a", "b", "x?z*", "x*", "x??"]


def test_defaults_may_say_what_a_queue_may_say() -> None:
    assert set(QueueSettings.__struct_fields__) == set(Defaults.__struct_fields__) - {"unknown"}
