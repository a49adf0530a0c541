"""A queue under all its names: DM-33, DM-14, T-25."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given

from bridge.core import catalogue as module
from bridge.core.access import AllowedSender
from bridge.core.catalogue import UNKNOWN, Catalogue, Queue, TopicLimits, private_number
from bridge.core.mapping_rules import Defaults, JournalTopic, QueueMapping, QueuePath, Topic
from bridge.model.guid import NULL_GUID
from tests.core.messages import LOCAL, OTHER, SENDER, catalogue, queue, texts

NUMBER = private_number("orders")


@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=OS:bridge01\\private$\\orders",
        "DIRECT=OS:bridge01.example.com\\private$\\orders",
        "DIRECT=OS:.\\private$\\orders",
        "DIRECT=TCP:10.1.2.3\\private$\\orders",
        "DIRECT=TCP:fe80::1\\private$\\orders",
        "DIRECT=HTTP://bridge01/msmq/private$/orders",
        "DIRECT=HTTPS://bridge01:8443/MSMQ/private$/orders",
        "DIRECT=HTTP://bridge01/msmq\\private$\\orders",
        f"PRIVATE={LOCAL}\\{NUMBER:08x}",
        f"PRIVATE={LOCAL}\\{NUMBER:x}",
        f"PRIVATE={str(LOCAL).upper()}\\{NUMBER:08X}",
        "direct=os:BRIDGE01\\PRIVATE$\\ORDERS",
        "Direct=Os:Bridge01\\Private$\\Orders",
    ],
)
def test_all_names_of_one_queue(name: str) -> None:  # DM-33, DM-32: case does not count
    found = catalogue().find(name)
    assert found is not None
    assert found.name == "private$\\orders"


def test_a_mapping_in_capitals_is_found_too() -> None:  # DM-32
    found = catalogue(queue("private$\\Orders")).find("DIRECT=OS:a\\private$\\oRDERS")
    assert found is not None
    assert found.name == "private$\\Orders"
    assert catalogue(queue("private$\\Orders")).find(f"PRIVATE={LOCAL}\\{NUMBER:x}") is not None


def test_a_public_name_is_another_queue() -> None:
    known = catalogue(queue("orders"), queue("private$\\orders"))
    public = known.find("DIRECT=OS:a\\orders")
    private = known.find("DIRECT=OS:a\\private$\\orders")
    assert public is not None
    assert private is not None
    assert (public.name, private.name) == ("orders", "private$\\orders")
    assert catalogue().find("DIRECT=OS:a\\orders") is None
    # A public queue has no private number.
    assert catalogue(queue("orders")).find(f"PRIVATE={LOCAL}\\{NUMBER:x}") is None


@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=OS:bridge01\\private$\\orders;JOURNAL",
        "DIRECT=OS:bridge01\\private$\\orders;journal",
        "DIRECT=OS:bridge01\\private$\\orders;poison",
        "DIRECT=OS:bridge01\\SYSTEM$;JOURNAL",
        "DIRECT=OS:bridge01\\SYSTEM$;DEADLETTER",
        "DIRECT=OS:bridge01\\SYSTEM$;DEADXACT",
        f"PRIVATE={LOCAL}\\{NUMBER:x};JOURNAL",
        f"PRIVATE={LOCAL}\\4",  # the order queue
        f"MACHINE={LOCAL};DEADXACT",
        "DIRECT=OS:bridge01\\private$\\order_queue$",
        "DIRECT=OS:bridge01\\PRIVATE$\\Notify_Queue$",
    ],
)
def test_what_takes_no_application_send(name: str) -> None:  # DM-14
    closed = queue("private$\\order_queue$"), queue("private$\\notify_queue$")
    assert catalogue().find(name) is None
    assert catalogue(queue(), *closed).find(name) is None  # not even when somebody maps it


@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=OS:bridge01\\private$\\other",
        f"PRIVATE={OTHER}\\{NUMBER:x}",  # a foreign queue manager's number
        f"PRIVATE={LOCAL}\\{NUMBER ^ 1:x}",
        f"PUBLIC={LOCAL}",
        f"CONNECTOR={LOCAL}",
        f"DL={LOCAL}",
        "MULTICAST=234.1.1.1:8001",
        "DIRECT=OS:a\\private$\\orders,DIRECT=OS:a\\private$\\orders",
        "private$\\orders",
        "DIRECT=OS:bridge01",
        "DIRECT=",
        "",
        "\ud800",
    ],
)
def test_unknown_and_illegal_names(name: str) -> None:  # row 3: a value, never an exception
    assert catalogue().find(name) is None


@given(texts)
def test_any_text_is_answered(text: str) -> None:  # DM-32: total
    assert catalogue().find(text) is None
    assert catalogue().find(f"DIRECT=OS:a\\private$\\{text}x") is None


def test_the_number_of_a_private_queue() -> None:  # T-25: h = 33h + c mod 2**32 of the name
    assert private_number("a") == ord("a")
    assert private_number("ab") == 33 * ord("a") + ord("b")
    assert private_number("AB") == private_number("ab")
    number = 0
    for char in "a-rather-long-name":
        number = (33 * number + ord(char)) % 2**32
    assert private_number("a-rather-long-name") == number


def test_of_two_queues_with_one_number_the_first_keeps_it() -> None:  # T-25: the hash if free
    first, second = queue("private$\\aa"), queue("private$\\b@", topic="b")
    assert private_number("aa") == private_number("b@")
    known = Catalogue(LOCAL, (first, second))
    assert known.find(f"PRIVATE={LOCAL}\\{private_number('aa'):x}") is first
    assert known.find("DIRECT=OS:a\\private$\\b@") is second


def test_the_null_guid_is_local() -> None:  # T-14: direct packets carry NULL
    known = catalogue()
    assert known.is_local(NULL_GUID)
    assert known.is_local(LOCAL)
    assert not known.is_local(OTHER)


def test_what_strangers_ask_for_is_remembered_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CACHE", 10)
    known = catalogue()
    for number in range(1000):
        assert known.find(f"DIRECT=OS:a\\private$\\invented-{number}") is None
        assert len(known._cache) <= 10
    assert known.find("DIRECT=OS:a\\private$\\orders") is not None
    assert known.find("DIRECT=OS:a\\private$\\orders") is known.find(
        "DIRECT=OS:a\\private$\\orders"
    )


def test_a_null_guid_is_local() -> None:  # CONFLICT-3: zero = LOCAL everywhere
    known = catalogue()
    number = private_number("orders")
    assert known.find(f"PRIVATE={NULL_GUID}\\{number:08x}") is known.queues[0]


# --- wildcards and queues that nobody listed ---------------------------------------------------


def direct(path: str, host: str = "a") -> str:
    return f"DIRECT=OS:{host}\\{path}"


def pattern(
    text: str, topic: str | None = None, *, journal: str | None = None, **fields: Any
) -> Queue:
    mapping = QueueMapping(
        queue=QueuePath(text),
        topic=Topic(topic) if topic else None,
        journal=JournalTopic(journal) if journal else None,
    )
    return Queue(
        mapping=mapping,
        name=text,
        topic=mapping.topic_name,
        journal=mapping.journal_for(text),
        **fields,
    )


def test_exact_names_then_patterns_then_nothing() -> None:
    known = Catalogue(
        LOCAL,
        (
            pattern("private$\\*", "rest"),
            pattern("private$\\ord*", "ord", partitions=7),
            queue("private$\\orders"),
        ),
    )
    found = {name: known.find(direct(f"private$\\{name}")) for name in ("orders", "ord1", "x")}
    assert [q.topic for q in found.values() if q] == ["orders", "ord", "rest"]
    assert found["ord1"] is not None
    assert (found["ord1"].name, found["ord1"].partitions) == ("private$\\ord1", 7)
    assert known.find(direct("orders")) is None  # a public queue


def test_one_queue_however_it_is_spelled() -> None:  # DM-32
    known = Catalogue(LOCAL, [pattern("private$\\*")])
    one = known.find(direct("private$\\Orders"))
    assert one is not None
    assert (one.name, one.topic) == ("private$\\orders", "orders")
    assert known.find(direct("PRIVATE$\\ORDERS", "b")) is one
    assert known.find("DIRECT=HTTP://a/msmq/private$/orders") is one


def test_a_number_is_known_once_its_name_was_seen() -> None:  # T-25
    known = Catalogue(LOCAL, [pattern("private$\\*")])
    number = f"PRIVATE={LOCAL}\\{NUMBER:x}"
    assert known.find(number) is None
    seen = known.find(direct("private$\\orders"))
    assert known.find(number) is seen
    assert known.find(f"PRIVATE={OTHER}\\{NUMBER:x}") is None


@pytest.mark.parametrize("name", ["private$\\order_queue$", "private$\\Notify_Queue$"])
def test_no_pattern_opens_what_is_closed(name: str) -> None:  # DM-14
    known = Catalogue(LOCAL, [pattern("private$\\*")], defaults=Defaults(unknown="auto-create"))
    assert known.find(direct(name)) is None
    assert known.find(direct("private$\\x;journal")) is None
    assert known.find(f"PRIVATE={LOCAL}\\4") is None


def test_a_topic_that_depends_on_the_message() -> None:
    known = Catalogue(LOCAL, [pattern("a*", "{queue}.{label}")], reserved="abc.")
    found = known.find(direct("abc"))
    assert found is not None
    assert found.topic == ""
    assert found.topic_of("x y", SENDER) == "-bc.x-y"  # not a topic of the bridge itself
    other = known.find(direct("axe"))
    assert other is not None
    assert other.topic_of("", SENDER) == "axe.no-label"


def test_an_exact_queue_may_depend_on_the_message_too() -> None:
    known = Catalogue(LOCAL, [pattern("a", "{label}")], reserved="own.")
    found = known.find(direct("a"))
    assert found is not None
    assert (found.topic, found.topic_of("own.state", SENDER)) == ("", "-wn.state")
    assert queue(topic="t").topic_of("x", SENDER) == "t"


def test_unknown_queues_are_made_when_defaults_say_so() -> None:
    assert Catalogue(LOCAL, (), defaults=Defaults()).find(direct("x")) is None
    defaults = Defaults(unknown="auto-create", quota_kb=5, allow=(AllowedSender("10.0.0.1"),))
    known = Catalogue(LOCAL, [queue()], defaults=defaults)
    made = known.find(direct("private$\\New One"))
    assert made is not None
    assert (made.name, made.topic) == ("private$\\new one", "new-one")
    assert made.any_kind
    assert made.mapping.quota_kb == 5
    assert made.access is not None
    listed = known.find(direct("private$\\orders"))
    assert listed is not None
    assert not listed.any_kind


def test_defaults_can_want_transactions() -> None:
    defaults = Defaults(unknown="auto-create", transactional=True)
    made = Catalogue(LOCAL, (), defaults=defaults).find(direct("x"))
    assert made is not None
    assert (made.any_kind, made.mapping.transactional) == (False, True)


def test_names_that_kafka_refuses_are_no_fault_of_ours() -> None:
    known = Catalogue(LOCAL, (), defaults=Defaults(unknown="auto-create"))
    for name, topic in (("..", "--"), ("__x", "-_x"), ("\ud800", "-"), ("q" * 124, "q" * 124)):
        found = known.find(direct(f"private$\\{name}"))
        assert found is not None
        assert found.topic == topic


def test_limits_are_learned() -> None:
    known = Catalogue(
        LOCAL, [pattern("a*", journal="{queue}.j")], limits={"ax": TopicLimits(3, 100)}
    )
    ready, fresh = known.find(direct("ax")), known.find(direct("ay"))
    assert ready is not None
    assert fresh is not None
    assert (ready.partitions, ready.max_bytes) == (3, 100)
    assert (fresh.partitions, fresh.journal, fresh.journal_partitions) == (UNKNOWN, "ay.j", UNKNOWN)
    assert known.limits_of("ay") is None
    known.learn("ay", TopicLimits(6, 200))
    known.learn("ay.j", TopicLimits(2))
    again = known.find(direct("ay"))
    assert again is not None
    assert (again.partitions, again.max_bytes, again.journal_partitions) == (6, 200, 2)
    assert known.limits_of("ay") == TopicLimits(6, 200)


def test_learning_keeps_the_numbers() -> None:
    known = Catalogue(LOCAL, [pattern("private$\\*")])
    known.find(direct("private$\\orders"))
    known.learn("orders", TopicLimits(4))
    found = known.find(f"PRIVATE={LOCAL}\\{NUMBER:x}")
    assert found is not None
    assert found.partitions == 4


def test_a_shared_journal_keeps_what_is_known_of_it() -> None:
    known = Catalogue(LOCAL, [pattern("a*", "all", journal="all.j", journal_partitions=9)])
    found = known.find(direct("ax"))
    assert found is not None
    assert (found.journal, found.journal_partitions) == ("all.j", 9)


def test_what_is_made_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHE", 10)
    known = Catalogue(LOCAL, (), defaults=Defaults(unknown="auto-create"))
    for number in range(100):
        assert known.find(direct(f"private$\\invented-{number}")) is not None
        known.learn(f"invented-{number}", TopicLimits(1))
    for kept in (known._made, known._numbers, known._cache, known._limits):
        assert len(kept) <= 10
    assert known.find(f"PRIVATE={LOCAL}\\{private_number('invented-0'):x}") is None
    assert known.find(f"PRIVATE={LOCAL}\\{private_number('invented-99'):x}") is not None


def test_asking_what_a_queue_would_be_makes_none() -> None:
    """A remote reader may name what he likes: only what he may read comes into being."""
    made = Catalogue(LOCAL, [queue(), queue("private$\\x-*", topic="x")])
    model = made.would_be("private$\\X-1")
    assert model is not None
    assert model.mapping.queue == "private$\\x-*"
    assert [known.name for known in made.known()] == ["private$\\orders"]
    assert made.would_be("PRIVATE$\\Orders") is made.by_name("private$\\orders")
    assert made.would_be("private$\\other") is None
    assert made.would_be("private$\\order_queue$") is None


def test_long_names_are_not_remembered() -> None:
    """They are found all the same, and numbers and topics are right."""
    known = Catalogue(LOCAL, (), defaults=Defaults(unknown="auto-create"))
    tracemalloc.start()
    for number in range(1000):
        name = f"{number}".ljust(30_000, "x")
        found = known.find(f"DIRECT=OS:a\\private$\\{name}")
        assert found is None or found.name.endswith(name)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 20 << 20
    assert known.cached_bytes <= 17 << 20
