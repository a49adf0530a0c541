"""Where a queue manager is known, and what a stranger with its GUID gets."""

import pytest

from bridge.core import known_senders as module
from bridge.core.known_senders import HTTP, SILENT_S, KnownSenders, Pin

GUID, OTHER = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
HOME, AWAY = "10.0.0.1", "10.6.6.6"


class Book:
    def __init__(
        self,
        pin: Pin = "warn",
        configured: dict[str, str] | None = None,
        learned: dict[str, str] | None = None,
    ) -> None:
        self.kept: list[tuple[str, str]] = []
        self.senders = KnownSenders(
            pin, configured or {}, learned or {}, lambda *what: self.kept.append(what), 1000.0
        )


def test_it_is_known_where_its_first_message_was_accepted_from() -> None:
    book = Book()
    assert not book.senders.is_elsewhere(GUID, AWAY)
    book.senders.heard(GUID, HOME, 1001.0)
    book.senders.heard(GUID, HOME, 1002.0)
    assert book.kept == [(GUID, HOME)]
    assert book.senders.address(GUID) == HOME
    assert book.senders.is_elsewhere(GUID, AWAY)
    assert not book.senders.is_elsewhere(GUID, HOME)


def test_what_is_configured_counts_more_than_what_was_seen() -> None:
    senders = Book(configured={GUID.upper(): HOME}, learned={GUID: AWAY}).senders
    assert senders.address(GUID) == HOME
    assert senders.address(HTTP + GUID) == HOME


def test_a_name_in_the_configuration_says_nothing_of_an_address() -> None:
    senders = Book(configured={GUID: "sender01"}).senders
    assert senders.address(GUID) == ""


@pytest.mark.parametrize(("pin", "barred"), [("off", False), ("warn", False), ("enforce", True)])
def test_only_enforce_bars(pin: Pin, barred: bool) -> None:
    senders = Book(pin, learned={GUID: HOME}).senders
    assert senders.bars(GUID, AWAY) is barred
    assert not senders.bars(GUID, HOME)
    assert not senders.bars(OTHER, AWAY)


@pytest.mark.parametrize(
    ("pin", "after", "expected"),
    [
        ("off", 1.0, AWAY),
        ("warn", 1.0, HOME),
        ("warn", SILENT_S + 1, AWAY),
        ("enforce", SILENT_S + 1, HOME),
    ],
)
def test_when_it_may_be_known_elsewhere(pin: Pin, after: float, expected: str) -> None:
    """A laptop moves; a stranger with its GUID should not get the acks that it still waits for."""
    book = Book(pin, learned={GUID: HOME})
    book.senders.heard(GUID, AWAY, 1000.0 + after)
    assert book.senders.address(GUID) == expected
    assert book.kept == ([] if expected == HOME else [(GUID, AWAY)])


def test_over_http_it_is_known_apart() -> None:
    senders = Book(learned={GUID: HOME}).senders
    senders.heard(HTTP + GUID, AWAY, 1001.0)
    assert (senders.address(GUID), senders.address(HTTP + GUID)) == (HOME, AWAY)


def test_one_address_cannot_fill_the_book(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ADDRESS", 3)
    book = Book()
    for number in range(10):
        book.senders.heard(f"guid-{number}", AWAY, 1001.0)
    book.senders.heard(GUID, HOME, 1001.0)
    assert len(book.senders) == 4
    assert book.senders.address(GUID) == HOME


def test_the_book_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    book = Book("off")
    for number in range(10):
        book.senders.heard(f"guid-{number}", f"10.0.0.{number}", 1001.0)
    assert len(book.senders) == len(book.kept) == 3
    book.senders.heard("guid-0", AWAY, 1002.0)  # one that is known may move
    assert book.senders.address("guid-0") == AWAY
