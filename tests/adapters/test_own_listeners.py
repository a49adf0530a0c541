"""Which addresses end on this machine. Nothing is sent, no name is resolved."""

import socket
from ipaddress import ip_address

import pytest

from bridge.adapters.own_listeners import OwnListeners, forms, is_here


def own_address() -> str:
    """An address of this machine beside loopback; skips where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has loopback only")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("text", ["127.0.0.1", "127.255.0.9", "::1", "0.0.0.0", "::"])
def test_here(text: str) -> None:
    assert is_here(ip_address(text))


@pytest.mark.parametrize("text", ["192.0.2.1", "2001:db8::1", "255.255.255.255", "224.0.0.1"])
def test_elsewhere(text: str) -> None:
    assert not is_here(ip_address(text))


def test_an_address_of_an_interface() -> None:
    assert is_here(ip_address(own_address()))


def test_that_it_can_be_bound_does_not_make_it_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With net.ipv4.ip_nonlocal_bind every address can be."""
    monkeypatch.setattr(socket.socket, "bind", lambda *_: None)
    assert not is_here(ip_address("192.0.2.1"))


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("10.0.0.7", []),
        ("fd00::7", []),
        ("::ffff:10.0.0.7", ["10.0.0.7"]),
        ("2002:a00:7::1", ["10.0.0.7"]),
        ("64:ff9b::a00:7", ["10.0.0.7"]),
    ],
)
def test_what_an_address_stands_for(text: str, inner: list[str]) -> None:
    assert [str(form) for form in forms(ip_address(text))][1:] == inner


def test_the_port_and_the_machine_count() -> None:
    ports = {80}
    own = OwnListeners(lambda: ports, ["BRIDGE01.", "[fd00::1]"])
    here, there = ip_address("127.0.0.1"), ip_address("192.0.2.1")
    assert own.include(here, 80)
    assert not own.include(here, 81)
    assert not own.include(there, 80)
    assert own.are_named("Bridge01", 80)
    assert own.are_named("bridge01.", 80)
    assert own.are_named("fd00::1", 80)
    assert not own.are_named("Bridge01", 81)
    assert not own.are_named("bridge02", 80)
    ports.add(81)  # what is listened on later counts, too
    assert own.include(here, 81)
    assert own.are_named("Bridge01", 81)
