"""The words of the mapping language; in files: adapters/test_config_files_mappings."""

import re

import pytest

from bridge.core.mapping_words import Claims, JournalTopic, Key, QueuePath, Topic
from bridge.model.errors import ConfigError

GOOD: list[tuple[type[QueuePath | Topic | Key | Claims], list[str]]] = [
    (
        QueuePath,
        ["orders", "private$\\orders", "PRIVATE$\\o?d*", "*", "a b", "q" * 124, "private$x"],
    ),
    (Topic, ["a", "A.b_c-9", "{queue}.{label}-{source}", "...", "t" * 249]),
    (JournalTopic, ["a", "{queue}.journal"]),
    (Key, ["stream", "none", "header:msmq.label", "json:$.a", "json:$[0]", "json:$.a['b c']"]),
    (Claims, ["s3://bucket", "s3://a.bucket/some/prefix", "claims", "/var/claims", "C:\\claims"]),
]
BAD: list[tuple[type[QueuePath | Topic | Key | Claims], list[str]]] = [
    (QueuePath, ["", "private$\\", "private$/a", "private$*", "a\\b", "a;b", "a\n", "q" * 125]),
    (Topic, ["", ".", "..", "a b", "{x}", "{", "t" * 250, "ä"]),
    (JournalTopic, ["{label}", "a{source}", "", ".."]),
    (Key, ["", "header:", "json:", "json:$", "json:a", "json:$a", "Stream", "header:a\nb"]),
    (Claims, ["", "http://a/b", "s3:///x", "s3://B/x", "a\x00b", "file:///x"]),
]


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in GOOD for t in all_])
def test_good_words(kind: type[Key], text: str) -> None:
    assert kind.parse(text) == text or kind.parse(text) == text.replace("PRIVATE", "private")
    assert re.search(kind.PATTERN, text) or text in getattr(kind, "CHOICES", ())


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in BAD for t in all_])
def test_bad_words(kind: type[Key], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kind.parse(text)
    assert caught.value.mend
    found = re.search(kind.PATTERN.replace("$", r"\Z") if "\n" in text else kind.PATTERN, text)
    assert found is None or kind is Key  # a path is parsed, not matched


def test_parts_of_a_key() -> None:
    assert (Key("header:a:b").header, Key("header:a").json_path) == ("a:b", "")
    assert (Key("json:$.a").json_path, Key("json:$.a").header) == ("$.a", "")
    assert (Key("label").header, Key("label").json_path) == ("", "")


def test_the_queues_of_the_queue_manager_are_closed() -> None:  # DM-14
    for text in ("private$\\order_queue$", "PRIVATE$\\Notify_Queue$"):
        with pytest.raises(ConfigError, match="queue manager itself"):
            QueuePath.parse(text)
