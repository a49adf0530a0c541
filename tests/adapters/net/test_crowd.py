"""Who gives way: at an address's cap, with too many strangers, and when all is full."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bridge.adapters.net.crowd import FEW, LOOK, Crowd, Hall

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
MANY = 10**6


class Guest:
    asked = 0  # by all of them

    def __init__(self, name: str = "", *, busy: bool = False) -> None:
        self.name, self.busy, self.gone = name, busy, False

    def __repr__(self) -> str:
        return self.name

    @property
    def is_idle(self) -> bool:
        Guest.asked += 1
        return not self.busy

    def give_way(self) -> None:
        assert not self.gone
        self.gone = True


class Ward(Crowd[Guest]):
    """A crowd, and a short way to fill it."""

    def come(self, host: str, count: int = 1, *, opened: bool = True, busy: bool = False) -> Guest:
        """The last of them."""
        for number in range(count):
            guest = Guest(f"{host}#{number}", busy=busy)
            guest.gone = not self.arrive(guest, host)
            if opened and not guest.gone:
                self.opened(guest)
        return guest


def ward(
    per_address: int = MANY,
    strangers: int = MANY,
    most: int = MANY,
    *,
    hall: Hall | None = None,
    forces: bool = True,
) -> Ward:
    return Ward(
        hall or Hall(lambda: MANY),
        per_address=per_address,
        strangers=strangers,
        most=most,
        forces=forces,
    )


# -- one address ------------------------------------------------------------------------------


def test_strangers_go_before_sessions_the_oldest_first() -> None:
    made = ward(per_address=3)
    session = made.come(A)
    older, younger = made.come(A, opened=False), made.come(A, opened=False)
    newcomer = made.come(A)
    assert (session.gone, older.gone, younger.gone, newcomer.gone) == (False, True, False, False)
    assert len(made) == 3


def test_then_the_session_that_was_used_longest_ago() -> None:
    made = ward(per_address=3)
    first, second, third = (made.come(A) for _ in range(3))
    made.used(first)
    made.used(second)
    made.come(A)
    assert (first.gone, second.gone, third.gone) == (False, False, True)


def test_one_with_something_under_way_stays() -> None:
    made = ward(per_address=2)
    busy, idle = made.come(A, busy=True), made.come(A)
    made.used(idle)
    assert not made.come(A).gone
    assert (busy.gone, idle.gone) == (False, True)


def test_else_the_newcomer_is_refused() -> None:
    made = ward(per_address=2)
    made.come(A, 2, busy=True)
    assert made.come(A).gone
    assert not made.come(B).gone
    assert (len(made), made.addresses) == (3, 2)


def test_other_addresses_do_not_notice() -> None:
    made = ward(per_address=4)
    others = [made.come(B, opened=False), made.come(B), made.come(C)]
    made.come(A, 100, opened=False)
    made.come(A, 100)
    made.come(A, 100, busy=True)
    assert not any(other.gone for other in others)
    assert len(made) == 4 + 3


def test_a_whole_network_of_ipv6_is_one_address() -> None:
    made = ward(per_address=2)
    other = made.come("2001:db8:0:1::1")
    for number in range(100):
        made.come(f"2001:db8::{number:x}")
    assert (len(made), other.gone) == (3, False)


# -- strangers of all -------------------------------------------------------------------------


def test_who_has_the_most_strangers_loses_the_oldest() -> None:
    made = ward(strangers=4)
    sessions = made.come(A, 10)  # not those who have the most of all
    stranger = made.come(A, opened=False)
    oldest = made.come(B, opened=False)
    made.come(B, 2, opened=False)
    made.come(C, opened=False)
    assert (oldest.gone, stranger.gone, sessions.gone) == (True, False, False)


# -- all --------------------------------------------------------------------------------------


def test_who_has_the_most_gives_way_when_all_is_full() -> None:
    made = ward(most=50)
    other, stranger = made.come(B), made.come(B, opened=False)
    made.come(A, 47)
    first = made.come(A, opened=False)
    assert not made.come(B).gone
    assert (first.gone, stranger.gone) == (True, False)
    assert not made.come(C).gone
    assert (made.weights[A], made.weights[B], other.gone) == (46, 3, False)


def test_even_if_all_its_sessions_are_at_work() -> None:
    made = ward(most=FEW + 3)
    idle = made.come(C)
    used = made.come(A, busy=True)
    made.come(A, FEW + 1, busy=True)
    assert not made.come(B).gone
    assert (used.gone, idle.gone) == (True, False)


def test_an_address_with_few_is_not_forced_while_any_session_is_idle() -> None:
    made = ward(most=3)
    idle = made.come(C)
    used = made.come(A, busy=True)
    made.come(A, busy=True)
    busy = made.come(B, busy=True)
    assert (busy.gone, idle.gone, used.gone) == (False, True, False)
    made.used(used)
    assert not made.come("10.0.0.4", busy=True).gone  # one busy session each, then
    assert (made.weights[A], used.gone) == (1, False)
    assert made.come("10.0.0.5").gone


def test_but_not_where_work_must_be_finished() -> None:
    made = ward(most=4, forces=False)
    made.come(A, 4, busy=True)
    assert made.come(B).gone
    assert made.weights[A] == 4


def test_one_address_cannot_lock_out_the_others() -> None:
    made = ward(most=100)
    made.come(A, 1000, busy=True)
    for number in range(50):
        assert not made.come(f"10.1.0.{number}").gone
    assert made.weights[A] == 50


def test_who_has_the_most_itself_makes_its_own_room() -> None:
    made = ward(most=21)
    idle, stranger = made.come(B), made.come(B, opened=False)
    made.come(A, 19)
    assert not made.come(A).gone
    assert (idle.gone, stranger.gone, made.weights[A]) == (False, False, 19)


def test_where_all_have_few_the_idlest_of_all_goes() -> None:
    """Not the one session that the newcomer's address has, though nothing is under way just now."""
    made = ward(most=4)
    active, idle = made.come(A), made.come(B)
    made.come(C, 2)
    made.used(active)
    assert not made.come(A).gone
    assert (active.gone, idle.gone) == (False, True)


def test_where_each_has_one_strangers_go_first_then_the_idle() -> None:
    made = ward(most=3)
    idle, stranger = made.come(A), made.come(B, opened=False)
    busy = made.come(C, busy=True)
    assert not made.come("10.0.0.4", busy=True).gone
    assert (idle.gone, stranger.gone, busy.gone) == (False, True, False)
    assert not made.come("10.0.0.5", busy=True).gone
    assert idle.gone
    assert made.come("10.0.0.6").gone


def test_all_protocols_share_the_descriptors() -> None:
    """A crowd on one port keeps nobody from another."""
    hall = Hall(lambda: 30)
    sessions, requests = ward(hall=hall), ward(hall=hall, forces=False)
    sessions.come(A, 60, busy=True)
    assert not requests.come(B).gone
    assert (len(sessions), len(requests)) == (29, 1)
    sessions.leave(next(iter(sessions._addresses)))
    sessions.others = 1  # that we opened ourselves
    assert not requests.come(B).gone
    assert (len(sessions), len(requests)) == (27, 2)


def test_the_larger_crowd_loses_its_idlest() -> None:
    hall = Hall(lambda: 5)
    sessions, requests = ward(hall=hall), ward(hall=hall)
    only = sessions.come(A)
    idlest = requests.come(A)
    for host in (B, C, "10.0.0.4"):
        requests.come(host)
    assert not sessions.come(B).gone
    assert (only.gone, idlest.gone) == (False, True)


def test_who_is_gone_is_forgotten() -> None:
    made = ward(per_address=2)
    guests = [made.come(A), made.come(A, opened=False), made.come(B)]
    for guest in [*guests, *guests]:
        made.leave(guest)
        made.opened(guest)
        made.used(guest)
    assert (len(made), made.addresses, made.weights.most) == (0, 0, 0)
    assert not made.come(A, 2).gone


def test_a_crowd_costs_no_search() -> None:
    """However many there are, a newcomer has few of them asked whether they are idle."""
    made = ward(per_address=4_000, most=4_000)
    for number in range(2_000):
        made.come(f"10.{number >> 8}.{number & 255}.1", busy=True)
    made.come(A, 2_000, busy=True)
    Guest.asked = 0
    made.come(A, 1_000)
    made.come(B, 1_000)
    assert Guest.asked <= 2_000 * 3 * LOOK


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_whatever_comes(seed: int) -> None:
    chance = random.Random(seed)
    hall = Hall(lambda: 60)
    crowds = [ward(8, 20, 40, hall=hall), ward(10, 10, 30, hall=hall, forces=False)]
    here: list[tuple[Ward, Guest]] = []
    doings: list[Callable[[Ward, Guest], None]] = [
        lambda made, guest: made.opened(guest),
        lambda made, guest: made.used(guest),
        lambda made, guest: made.leave(guest),
        lambda _, guest: setattr(guest, "busy", not guest.busy),
    ]
    for _ in range(5_000):
        made = chance.choice(crowds)
        here.append((made, made.come(f"10.0.0.{chance.randrange(12)}", opened=False)))
        chance.choice(doings)(*chance.choice(here))
        here = [(made, guest) for made, guest in here if guest in made._addresses]
        assert all(len(one) <= one.most and one.weights.most <= one.per_address for one in crowds)  # type: ignore[operator]
        assert all(len(one._strangers) <= one.most_strangers for one in crowds)
        assert not hall.is_full()
        assert sum(map(len, crowds)) == len(here)
