"""Which hosts are this machine: SR-13."""

import socket

import pytest

from bridge.adapters import own_hosts as module
from bridge.adapters.own_hosts import OwnHosts
from bridge.core.redirection import host_of


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("http://bridge01/msmq/q", True),
        ("http://BRIDGE01:8080/msmq/q", True),  # without case and port
        ("https://Bridge01.Example.Com./msmq/q", True),
        ("http://10.255.254.253/msmq/q", True),  # an address behind a NAT is a name
        ("http://[fd00::7]:81/msmq/q", True),
        ("http://localhost/msmq/q", True),
        ("http://127.0.0.1/msmq/q", True),
        ("http://127.9.8.7/msmq/q", True),
        ("http://bridge02/msmq/q", False),
        ("http://bridge01.example.org/msmq/q", False),
        ("http://xbridge01/msmq/q", False),
        ("http://192.0.2.1/msmq/q", False),  # TEST-NET-1 is nobody's
        ("http://[2001:db8::1]/msmq/q", False),
        ("http://0.0.0.0/msmq/q", False),  # it can be bound, and is no address
        ("http://[::]/msmq/q", False),
        ("http://224.0.0.1/msmq/q", False),
        ("http://[ff02::1]/msmq/q", False),
        ("http://127.1/msmq/q", False),
        ("http://0x7f000001/msmq/q", False),
        ("http://:80/msmq/q", False),
        ("MSMQ:MULTICAST=234.1.1.1:8001", False),
    ],
)
def test_this_machine(url: str, ours: bool) -> None:
    names = ["BRIDGE01", "bridge01.example.com.", "10.255.254.253", "[FD00::7]"]
    hosts = OwnHosts(names)
    for _ in range(2):  # asked again it says the same
        assert (host_of(url) in hosts) is ours


def test_nobody_listed_anything() -> None:
    assert "localhost" in OwnHosts([])
    assert "127.0.0.1" in OwnHosts([])
    assert "" not in OwnHosts([])


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_loopback_in_any_spelling() -> None:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    assert "::1" in OwnHosts([])
    assert "0:0:0:0:0:0:0:1" in OwnHosts([])


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHE", 3)
    hosts = OwnHosts(["bridge01"])
    for number in range(20):
        assert f"stranger{number}" not in hosts
        assert "127.0.0.1" in hosts
        assert len(hosts._addresses) <= 3
