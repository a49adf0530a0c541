"""Mapping rules as values; their files are tested in adapters/test_config_files_mappings."""

import pytest

from bridge.core.mapping_rules import (
    UNSUPPORTED,
    Defaults,
    HeaderRules,
    Key,
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


def test_what_is_not_done_yet_is_refused_and_named() -> None:
    with pytest.raises(ConfigError, match="mode 'retain' is not supported yet") as caught:
        QueueMapping(queue=QueuePath("a"), mode="retain")
    assert caught.value.where == "mode"
    with pytest.raises(ConfigError, match=r"headers\.cloudevents is not supported yet") as caught:
        Defaults(headers=HeaderRules(cloudevents=True))
    assert caught.value.where == "headers/cloudevents"


def test_the_table_names_options_that_exist() -> None:
    fields = {*QueueMapping.__struct_fields__}
    fields |= {f"headers/{name}" for name in HeaderRules.__struct_fields__}
    assert set(UNSUPPORTED) <= fields | {"unknown"}


def test_auto_create_is_refused_by_name() -> None:
    assert Defaults().unknown == "reject"
    with pytest.raises(ConfigError, match="auto-create") as caught:
        Defaults(unknown="auto-create")
    assert caught.value.where == "unknown"


def test_defaults_may_say_what_a_queue_may_say() -> None:
    assert set(QueueSettings.__struct_fields__) == set(Defaults.__struct_fields__) - {"unknown"}
