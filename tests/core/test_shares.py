"""Bytes that peers make us keep, and who may add more."""

from bridge.core.shares import Shares


def test_a_peer_has_a_bound() -> None:
    shares = Shares(1000, 100)
    assert shares.has_room("10.0.0.1", 100)
    assert not shares.has_room("10.0.0.1", 101)
    shares.count("10.0.0.1", 60)
    assert not shares.has_room("10.0.0.1", 41)
    assert shares.has_room("10.0.0.2", 100)


def test_when_all_is_full_who_has_little_may_add() -> None:
    shares = Shares(100, 90)
    shares.count("10.0.0.1", 90)
    shares.count("10.0.0.2", 20)
    assert not shares.has_room("10.0.0.2", 20)  # an equal share is 33
    assert shares.has_room("10.0.0.2", 13)
    assert shares.has_room("10.0.0.3", 33)
    assert not shares.has_room("10.0.0.3", 34)


def test_twice_the_bound_is_the_end() -> None:
    shares = Shares(100, 90)
    for number in range(201):
        shares.count(f"10.0.0.{number}", 1)
    assert not shares.has_room("10.1.1.1", 0)


def test_a_network_of_ipv6_addresses_is_one_peer() -> None:
    shares = Shares(1000, 100)
    shares.count("2001:db8::1", 60)
    assert not shares.has_room("2001:db8::ffff", 50)
    assert shares.has_room("2001:db8:0:1::1", 50)
    shares.count("2001:db8::2", -60)
    assert shares.of_peer == {}
    assert shares.total == 0
