"""Wrong passwords: how many at once, how many later, and who else has to wait for them."""

from __future__ import annotations

import pytest

from bridge.protocol.rpc import guesses as module
from bridge.protocol.rpc.guesses import ACCOUNT, ADDRESS, Guesses

HERE, THERE = "192.0.2.1", "192.0.2.2"


def wrong(guesses: Guesses, account: str, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        assert guesses.wait_s(HERE, account, now) == 0.0
        guesses.wrong(HERE, account, now)


def test_some_at_once_then_one_a_minute() -> None:
    guesses = Guesses()
    wrong(guesses, "ann", ACCOUNT.burst)
    assert guesses.wait_s(HERE, "ann", 0.0) == 60.0
    assert guesses.wait_s(HERE, "ANN", 20.0) == pytest.approx(40.0)
    wrong(guesses, "ann", 1, now=60.0)
    assert guesses.wait_s(HERE, "ann", 60.0) == 60.0
    wrong(guesses, "ann", ACCOUNT.burst, now=3600.0)  # all is forgotten


def test_in_a_day_little_more_than_one_a_minute() -> None:
    guesses, tried = Guesses(), 0
    for second in range(86_400):
        if not guesses.wait_s(HERE, "ann", float(second)):
            guesses.wrong(HERE, "ann", float(second))
            tried += 1
    assert tried <= 24 * 60 + ACCOUNT.burst


def test_another_account_and_another_address_need_not_wait() -> None:
    guesses = Guesses()
    wrong(guesses, "ann", ACCOUNT.burst)
    assert guesses.wait_s(HERE, "bob", 0.0) == 0.0
    assert guesses.wait_s(THERE, "ann", 0.0) == 0.0


def test_many_accounts_of_one_address() -> None:
    guesses = Guesses()
    for number in range(ADDRESS.burst):
        wrong(guesses, f"user{number}", 1)
    assert guesses.wait_s(HERE, "another", 0.0) == ADDRESS.every_s
    assert guesses.wait_s(THERE, "another", 0.0) == 0.0
    wrong(guesses, "another", 1, now=ADDRESS.every_s)


def test_an_account_that_has_logged_on_there_goes_on() -> None:
    """The guesser may be behind the same NAT."""
    guesses = Guesses()
    guesses.right(HERE, "ann")
    for number in range(ADDRESS.burst):
        wrong(guesses, f"user{number}", 1)
    assert guesses.wait_s(HERE, "bob", 0.0) > 0
    assert guesses.wait_s(HERE, "ann", 0.0) == 0.0


def test_the_right_password_forgets_the_wrong_ones_of_its_account() -> None:
    guesses = Guesses()
    wrong(guesses, "ann", ACCOUNT.burst - 1)
    guesses.right(HERE, "ann")
    wrong(guesses, "ann", ACCOUNT.burst - 1)
    assert guesses.wait_s(HERE, "bob", 0.0) == 0.0  # and not those of its address


@pytest.mark.parametrize("name", ["x" * 32_768, "\ud800", ""])
def test_any_name(name: str) -> None:
    guesses = Guesses()
    wrong(guesses, name, ACCOUNT.burst)
    assert guesses.wait_s(HERE, name, 0.0)
    assert all(len(key) == 16 for key in guesses._known)


def test_invented_names_take_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    guesses = Guesses()
    for number in range(1_000):
        guesses.wrong(HERE, f"user{number}", 0.0)
    assert len(guesses) == 100
    assert guesses.wait_s(HERE, "another", 0.0) > 0  # the address stays known
