"""Where a queue manager is known, and what a stranger with its GUID gets."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import known_senders as module
from bridge.core.known_senders import ELSEWHERE, HTTP, NO_ROOM, SILENT_S, KnownSenders, Pin

GUID, OTHER = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
HOME, AWAY = "10.0.0.1", "10.6.6.6"


class Book:
    def __init__(
        self,
        pin: Pin = "warn",
        configured: dict[str, str] | None = None,
        learned: dict[str, str] | None = None,
    ) -> None:
        self.kept: list[tuple[str, str | None]] = []
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
    assert senders.why_barred(GUID, AWAY) == (ELSEWHERE if barred else "")
    assert not senders.why_barred(GUID, HOME)
    assert not senders.why_barred(OTHER, AWAY)


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


def full_book(pin: Pin, monkeypatch: pytest.MonkeyPatch) -> Book:
    """Six places: one address has three of them, two have one."""
    monkeypatch.setattr(module, "MOST", 6)
    monkeypatch.setattr(module, "MOST_OF_ADDRESS", 4)
    learned = {f"many-{n}": AWAY for n in range(4)}
    return Book(pin, learned=learned | {GUID: HOME, OTHER: "10.0.0.2"})


@pytest.mark.parametrize("pin", ["off", "warn", "enforce"])
def test_in_a_full_book_the_address_that_has_most_gives_way(
    pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = full_book(pin, monkeypatch)
    book.senders.heard("many-0", AWAY, 1001.0)  # the next one is silent for longest now
    for number in range(2):
        newcomer = f"new-{number}"
        assert not book.senders.why_barred(newcomer, f"10.0.1.{number}")
        book.senders.heard(newcomer, f"10.0.1.{number}", 1002.0)
    assert len(book.senders) == 6
    assert book.kept == [
        ("many-1", None),
        ("new-0", "10.0.1.0"),
        ("many-2", None),
        ("new-1", "10.0.1.1"),
    ]
    assert (book.senders.address(GUID), book.senders.address(OTHER)) == (HOME, "10.0.0.2")


def test_who_has_as_few_as_all_others_is_not_pushed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    book = Book("off")
    for number in range(10):
        book.senders.heard(f"guid-{number}", f"10.0.0.{number}", 1001.0)
    assert len(book.senders) == len(book.kept) == 3
    book.senders.heard("guid-0", AWAY, 1002.0)  # one that is known may move
    assert book.senders.address("guid-0") == AWAY


def test_what_cannot_be_pinned_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a stranger who fills the book could speak for every sender that comes after it."""
    book = full_book("enforce", monkeypatch)
    assert book.senders.why_barred("one-more", AWAY) == NO_ROOM
    assert not book.senders.why_barred("many-0", AWAY)
    assert not book.senders.why_barred(GUID, HOME)
    monkeypatch.setattr(module, "MOST", 3)
    few = Book("enforce", learned={f"guid-{n}": f"10.0.0.{n}" for n in range(3)})
    assert few.senders.why_barred(GUID, HOME) == NO_ROOM
    assert not full_book("warn", monkeypatch).senders.why_barred("one-more", AWAY)


def test_what_is_configured_needs_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 0)
    book = Book("enforce", configured={GUID: HOME})
    assert not book.senders.why_barred(GUID, HOME)
    assert book.senders.why_barred(GUID, AWAY) == ELSEWHERE


def test_a_network_of_ipv6_addresses_is_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ADDRESS", 3)
    book = Book("enforce")
    for number in range(10):
        book.senders.heard(f"guid-{number}", f"2001:db8::{number}", 1001.0)
    assert len(book.senders) == 3
    assert book.senders.why_barred("guid-9", "2001:db8::9") == NO_ROOM
    assert not book.senders.why_barred("guid-9", "2001:db8:0:1::9")
    # Bound to its own address, not to the network.
    assert book.senders.why_barred("guid-1", "2001:db8::9") == ELSEWHERE


def test_two_addresses_cannot_claim_one_guid_at_once() -> None:
    """Both have a session before either is known; the second waits for the first one's verdict."""
    senders = Book("enforce").senders
    senders.claim(GUID, HOME, 1)
    senders.claim(GUID, HOME, 1)
    assert senders.why_barred(GUID, AWAY) == ELSEWHERE
    assert not senders.why_barred(GUID, HOME)
    senders.claim(GUID, HOME, -1)
    assert senders.why_barred(GUID, AWAY) == ELSEWHERE
    senders.claim(GUID, HOME, -1)  # all of it was refused
    assert not senders.why_barred(GUID, AWAY)
    senders.claim(GUID, HOME, 1)
    senders.heard(GUID, HOME, 1001.0)
    senders.claim(GUID, HOME, -1)
    assert senders.why_barred(GUID, AWAY) == ELSEWHERE


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.booleans()), max_size=200),
    st.sampled_from(["off", "warn", "enforce"]),
)
def test_counts_and_what_is_kept_agree(events: list[tuple[int, int, bool]], pin: Pin) -> None:
    kept: dict[str, str] = {}

    def keep(name: str, address: str | None) -> None:
        if address is None:
            del kept[name]
        else:
            kept[name] = address

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST", 12)
        patch.setattr(module, "MOST_OF_ADDRESS", 5)
        senders = KnownSenders(pin, {}, {}, keep)
        now = 0.0
        for name, address, waits in events:
            now += SILENT_S * 2 if waits else 1.0
            where = f"10.0.0.{address}"
            if not senders.why_barred(str(name), where):
                senders.heard(str(name), where, now)
                if pin == "enforce":
                    assert senders.address(str(name)) == where
            counts = Counter(kept.values())
            assert len(senders) == len(kept) <= 12
            assert all(count <= 5 for count in counts.values())
            assert {name: senders.address(name) for name in kept} == kept
            assert senders._ranks.most == max(counts.values(), default=0)
