"""A queue under all its names: DM-33, DM-14, T-25."""

import pytest
from hypothesis import given

from bridge.core import catalogue as module
from bridge.core.catalogue import Catalogue, private_number
from bridge.model.guid import NULL_GUID
from tests.core.messages import LOCAL, OTHER, catalogue, queue, texts

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
