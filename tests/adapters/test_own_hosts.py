"""Which hosts are this machine: MC-MQSRM 3.1.5.1.3."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bridge.adapters import own_hosts as module
from bridge.adapters.own_hosts import MOST_LOOKUPS, SHOWN, Lookups, OwnHosts, RejectedHosts
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


# -- names: auto ----------------------------------------------------------------------------


class NameService:
    """What `socket.getaddrinfo` says; names that are not there do not exist."""

    def __init__(self) -> None:
        self.names: dict[str, list[str] | int] = {
            "alias": ["192.0.2.1", "127.0.0.9"],
            "other": ["192.0.2.1"],
            "scoped": ["fe80::1%lo"],
            "away": socket.EAI_AGAIN,
            "broken": socket.EAI_FAIL,
        }
        self.asked: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        assert self.gate.wait(30)
        if host == "long":
            raise UnicodeError("label too long")
        found = self.names.get(host, socket.EAI_NONAME)
        if isinstance(found, int):
            raise socket.gaierror(found, "no")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 0, "", (one, 0)) for one in found]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameService]:
    made = NameService()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.gate.set()


def test_names_that_lead_here(service: NameService) -> None:
    async def run() -> None:
        lookups = Lookups()
        hosts = OwnHosts(["bridge01"], lookups)
        expected = {"bridge01": True, "alias": True, "other": False, "nowhere": False}
        expected |= {"long": False, "": False, "x" * 256: False, "192.0.2.1": False}
        assert {host: await hosts.include(host) for host in expected} == expected
        assert service.asked == ["alias", "other", "nowhere", "long"]  # no address, no known name
        assert [await hosts.include(host) for host in ("alias", "other")] == [True, False]
        assert len(service.asked) == 4  # they are remembered
        lookups.stop()

    asyncio.run(run())


def test_without_auto_the_name_service_is_not_asked(service: NameService) -> None:
    assert asyncio.run(OwnHosts(["bridge01"]).include("alias")) is False
    assert service.asked == []


def test_answers_age(service: NameService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OURS_S", 0.0)
    monkeypatch.setattr(module, "NOT_OURS_S", 0.0)

    async def run() -> None:
        lookups = Lookups()
        assert [await lookups.lead_here(host) for host in ("alias", "other")] == [True, False]
        service.names |= {"alias": ["192.0.2.1"], "other": ["127.0.0.1"]}
        assert [await lookups.lead_here(host) for host in ("alias", "other")] == [False, True]
        lookups.stop()

    asyncio.run(run())


def test_a_name_service_that_is_away_leaves_it_open(
    service: NameService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 400 would make the sender delete its message."""

    async def run() -> None:
        lookups = Lookups()
        for host in ("away", "broken"):
            assert await lookups.lead_here(host) is None
        service.names["away"] = ["127.0.0.1"]
        assert await lookups.lead_here("away") is True  # it was not remembered
        monkeypatch.setattr(module, "LOOKUP_S", 0.0)
        service.gate.clear()
        assert await lookups.lead_here("alias") is None
        service.gate.set()
        lookups.stop()

    asyncio.run(run())


def test_lookups_are_bounded_and_shared(service: NameService) -> None:
    async def run() -> None:
        lookups = Lookups()
        service.gate.clear()
        names = [f"n{n}" for n in range(MOST_LOOKUPS)]
        asking = [asyncio.create_task(lookups.lead_here(name)) for name in (*names, *names)]
        await asyncio.sleep(0)
        assert await lookups.lead_here("one-more") is None
        service.gate.set()
        assert await asyncio.gather(*asking) == [False] * 2 * MOST_LOOKUPS
        assert sorted(service.asked) == sorted(names)
        lookups.stop()

    asyncio.run(run())


# -- what was refused -----------------------------------------------------------------------


def test_refused_hosts() -> None:
    hosts = RejectedHosts()
    for at in range(3):
        hosts.add("old-name", 1_700_000_000 + at)
    hosts.add("x" * 999, 1_700_000_000.9)
    assert hosts.rows() == [
        {"host": "old-name", "messages": 3, "last": "2023-11-14T22:13:22Z"},
        {"host": "x" * 255, "messages": 1, "last": "2023-11-14T22:13:20Z"},
    ]


def test_refused_hosts_are_bounded() -> None:
    """A stranger who uses a new name each time does not hide the one that counts."""
    hosts = RejectedHosts(most=30)
    for _ in range(2):
        hosts.add("old-name", 1.0)
    for number in range(1000):
        hosts.add(f"n{number}", 2.0)
    rows = hosts.rows()
    assert rows[0]["host"] == "old-name"
    assert len(rows) == SHOWN
    assert len(hosts._rows) == 30
