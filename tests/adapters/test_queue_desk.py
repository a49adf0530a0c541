r"""How users name queues, and what is told of a message in one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.queue_desk import Held, queue_name, written_name
from bridge.core.retained.naming import SYSTEM_QUEUES, is_system
from bridge.model.errors import IllegalName
from tests.core.messages import plain


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("private$\\orders", "private$\\orders"),
        ("PRIVATE$\\Orders", "private$\\orders"),
        ("private$/orders", "private$\\orders"),
        (".\\private$\\orders", "private$\\orders"),  # `.` is this computer, MS-MQMQ 2.1.1
        ("./private$/orders", "private$\\orders"),
        ("orders", "orders"),
        ("orders/2024", "orders/2024"),  # a slash is lawful in a name
        ("private$\\a/b", "private$\\a/b"),
        ("private$\\orders;JOURNAL", "private$\\orders;journal"),
        ("private$/orders;Retry", "private$\\orders;retry"),
        ("orders;retry", "orders;retry"),
        (";deadletter", "system$;deadletter"),
        (";DeadXact", "system$;deadxact"),
        (";journal", "system$;journal"),
        ("SYSTEM$;journal", "system$;journal"),
        (".\\system$;deadletter", "system$;deadletter"),
    ],
)
def test_names(text: str, name: str) -> None:  # data-model.md section 3
    assert queue_name(text) == name


@pytest.mark.parametrize("name", SYSTEM_QUEUES)
def test_the_queues_of_the_machine_are_those_of_the_core(name: str) -> None:
    assert queue_name(name.removeprefix("system$")) == queue_name(name) == name
    assert is_system(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".\\",
        ";",
        ";poison",  # no queue of the machine
        ";xactonly",
        "private$",
        "private$\\",
        "private$/",
        "private$\\a\\b",
        "host\\private$\\orders",
        "private$\\a;b;c",
        "private$\\a;",
        "private$\\a+b",
        "private$\\a;deadletter",
        "DIRECT=OS:a\\private$\\q",
        "private$\\" + "q" * 125,
        "private$\\q;" + "s" * 33,
        "private$\\a\0b",
    ],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(IllegalName) as caught:
        queue_name(text)
    assert caught.value.text == text  # as it was written


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PRIVATE$/Orders", "private$\\Orders"),
        ("Orders;JOURNAL", "Orders;journal"),
        ("Orders;Retry", "Orders;Retry"),
        (";DEADLETTER", "system$;deadletter"),
    ],
)
def test_a_new_queue_keeps_the_case_of_its_name(text: str, name: str) -> None:
    """A topic may be named after it, and Kafka's topics have case."""
    assert written_name(text) == name


@given(st.text())
def test_any_text_is_a_name_or_none(text: str) -> None:
    try:
        name = queue_name(text)
    except IllegalName:
        return
    assert queue_name(name) == name


def test_counters_by_their_names_in_the_table() -> None:  # MS-MQRR 2.2.5.3
    held = Held(queue="q", lookup_id=1, message=plain())
    assert held.counters == {}
    moved = Held(queue="q;a", lookup_id=2, message=plain(), aborts=1, moves=2, moved_at=1_700)
    assert moved.counters == {
        "msmq.sub.aborts": "1",
        "msmq.sub.moves": "2",
        "msmq.sub.moved": "1700",
    }
