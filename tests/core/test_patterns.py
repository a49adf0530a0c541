"""Wildcards in queue names, placeholders in topics."""

import pytest
from hypothesis import given

from bridge.core.patterns import (
    MAX_TOPIC,
    PatternTable,
    compile_pattern,
    depends_on_message,
    fill_plainly,
    fill_topic,
    has_wildcard,
    is_legal_topic,
    literals,
)
from tests.core.messages import texts


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("orders*", "orders", True),
        ("orders*", "orders.new", True),
        ("orders*", "my orders", False),
        ("*orders", "my orders", True),
        ("order?", "orders", True),
        ("order?", "order", False),
        ("order?", "orders2", False),
        ("a*b*c", "a--b--c", True),
        ("a**c", "abc", True),
        ("Ord*", "orders", True),
        ("a.b*", "axb", False),  # a dot is a dot
        ("[ab]*", "a", False),
        ("private$\\*", "private$\\x", True),
    ],
)
def test_wildcards(pattern: str, path: str, matches: bool) -> None:
    assert has_wildcard(pattern)
    assert bool(compile_pattern(pattern).fullmatch(path)) is matches


def test_many_stars_are_no_trap() -> None:
    pattern = compile_pattern("*" * 60 + "x")  # a run of them is one
    assert pattern.fullmatch("a" * 124) is None


@pytest.mark.parametrize(
    ("patterns", "path", "found"),
    [
        (["*", "ord*", "o*"], "orders", "ord*"),  # the most literal characters
        (["o*", "o?ders", "ord*"], "orders", "o?ders"),
        (["*s", "o*"], "orders", "*s"),  # the first of two equals
        (["o*", "*s"], "orders", "o*"),
        (["x*"], "orders", None),
        (["*"], "private$\\orders", None),  # `*` means public queues
        (["private$\\*"], "orders", None),
        (["*", "private$\\*"], "private$\\orders", "private$\\*"),
        (["PRIVATE$\\O*".replace("PRIVATE", "private")], "private$\\orders", "private$\\O*"),
    ],
)
def test_precedence(patterns: list[str], path: str, found: str | None) -> None:
    table = PatternTable((pattern, pattern) for pattern in patterns)
    assert table.find(path) == found


def test_a_table_is_in_the_order_of_asking() -> None:
    assert list(PatternTable((p, p) for p in ("*", "a*", "b*", "abc?"))) == [
        "abc?",
        "a*",
        "b*",
        "*",
    ]
    assert not PatternTable([])
    assert literals("a*b??") == 2


def test_placeholders() -> None:
    assert fill_topic("{queue}.{label}.{source}", "q", "l", "s") == "q.l.s"
    assert fill_topic("x", "q", "l", "s") == "x"
    assert fill_topic("{label}", "q") == "no-label"
    assert fill_topic("{label}", "q", "{queue}") == "-queue-"  # filled once, not again
    assert fill_topic("{label}", "q", "Äpfel/Birnen") == "-pfel-Birnen"
    assert fill_plainly("x.{queue}", "my orders") == "x.my-orders"
    assert depends_on_message("a{label}")
    assert depends_on_message("{source}")
    assert not depends_on_message("{queue}")


def test_names_that_kafka_or_the_bridge_own_are_avoided() -> None:
    assert fill_topic("{label}", "q", ".") == "-"
    assert fill_topic("{label}", "q", "..") == "--"
    assert fill_topic("{label}", "q", "__consumer_offsets") == "-_consumer_offsets"
    assert fill_topic("_{label}", "q", "x") == "_x"  # the mapping says so


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = (fill_topic("{queue}{label}", "q" * 124, "l" * 200 + end) for end in "ab")
    assert len(one) == len(other) == MAX_TOPIC
    assert one != other
    assert one == fill_topic("{queue}{label}", "q" * 124, "l" * 200 + "a")
    assert fill_topic("{label}", "", "x" * MAX_TOPIC) == "x" * MAX_TOPIC
    # Also what only differs in characters that become hyphens.
    assert fill_topic("{label}", "", "a b" * 100) != fill_topic("{label}", "", "a/b" * 100)


@given(texts, texts)
def test_whatever_a_sender_writes_is_a_legal_topic(queue: str, label: str) -> None:
    for template in ("{queue}", "{label}", "{queue}{label}", "a.{label}", "{source}{label}"):
        name = fill_topic(template, queue or "q", label, "guid")
        assert is_legal_topic(name)
        assert not name.startswith("_")
