"""Where a receipt may go: SR-49, SR-18, `peers`. No name is asked of a real name service."""

import asyncio
import socket
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from bridge.adapters import own_listeners
from bridge.adapters import receipt_targets as module
from bridge.adapters.own_listeners import OwnListeners
from bridge.adapters.receipt_targets import ReceiptTargets, Target, TargetRefused
from bridge.config import Address, PeerName, ReceiptTarget
from bridge.core.redirection import Redirects
from bridge.model.errors import WireError

PEER = "10.1.2.3"
NAMES = {
    "sender01": [PEER],
    "both": ["192.0.2.7", PEER],
    "six": ["fd00::7"],
    "mapped": ["::ffff:10.1.2.3"],
    "elsewhere": ["192.0.2.7"],
    "metadata": ["169.254.169.254"],
    "sneaky": ["::ffff:169.254.169.254"],
    "local": ["127.0.0.1"],
    "multicast": ["224.0.0.1"],
    "nothing": ["0.0.0.0"],
    "linked": ["fe80::1%eth0"],
}


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """NAMES is the name service; addresses are resolved as they are everywhere."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        found = NAMES.get(host.lower())
        if found is None:
            kind = socket.SOCK_STREAM
            return real(host, port, type=kind, flags=socket.AI_NUMERICHOST)
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0))
            for one in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def find(
    url: str,
    *allowed: str,
    peer: str = PEER,
    peers: Mapping[str, Address] | None = None,
    redirects: Iterable[tuple[str, str]] = (),
    own: Collection[int] = (),
) -> Target:
    listeners = OwnListeners(lambda: own, ("BRIDGE01", "bridge01.example.com"))
    targets = ReceiptTargets(
        [ReceiptTarget.parse(one) for one in allowed], peers, Redirects(redirects), listeners
    )
    return asyncio.run(targets.find(url, peer))


def place(url: str, *allowed: str, **more: Any) -> tuple[str, int]:
    target = find(url, *allowed, **more)
    return target.address, target.port


@pytest.mark.parametrize(
    ("host", "allowed", "address"),
    [
        # The peer's own address, by any name.
        ("sender01", ["sender"], PEER),
        (PEER, ["sender"], PEER),
        ("both", ["sender"], PEER),  # of several the one that is allowed
        ("mapped", ["sender"], PEER),
        ("SENDER01", ["SENDER01"], PEER),
        ("sender01.", ["SENDER01"], PEER),
        ("local", ["loopback"], "127.0.0.1"),
        ("127.8.9.1", ["loopback"], "127.8.9.1"),
        ("[::1]", ["loopback"], "::1"),
        ("[::ffff:127.0.0.1]", ["loopback"], "127.0.0.1"),
        # Networks and addresses.
        ("elsewhere", ["192.0.2.0/24"], "192.0.2.7"),
        ("elsewhere", ["192.0.2.7"], "192.0.2.7"),
        ("six", ["fd00::/8"], "fd00::7"),
        ("[fd00::7]", ["fd00::7"], "fd00::7"),
        ("[fd00::7]", ["[fd00::7]"], "fd00::7"),
        ("[fd00::7]", ["[fd00::7]:80"], "fd00::7"),
        # Names, with and without a port.
        ("elsewhere", ["elsewhere"], "192.0.2.7"),
        ("elsewhere", ["Elsewhere:80"], "192.0.2.7"),
        ("192.0.2.7", ["192.0.2.7:80"], "192.0.2.7"),
        # Anywhere.
        ("elsewhere", ["*"], "192.0.2.7"),
        ("six", ["*"], "fd00::7"),
        ("elsewhere", ["loopback", "sender", "*"], "192.0.2.7"),
    ],
)
def test_allowed(host: str, allowed: list[str], address: str) -> None:  # SR-49
    assert place(f"http://{host}/MSMQ/Private$/O", *allowed) == (address, 80)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("elsewhere", []),
        ("sender01", ["loopback"]),
        ("elsewhere", ["192.0.3.0/24"]),
        ("192.0.2.7", ["elsewhere"]),  # a name is a name
        ("elsewhere", ["elsewhere:81"]),
        ("elsewhere", ["else"]),
        # Nobody's network, whatever stands before it (cloud metadata).
        ("metadata", ["*"]),
        ("169.254.169.254", ["*"]),
        ("sneaky", ["*"]),
        ("[::ffff:169.254.169.254]", ["*"]),
        ("linked", ["*"]),
        ("[fe80::1]", ["*"]),
        ("169.254.169.254", ["0.0.0.0/0"]),
        ("[64:ff9b::a9fe:a9fe]", ["*"]),  # NAT64
        ("[2002:a9fe:a9fe::1]", ["*"]),  # 6to4
        ("[64:ff9b::7f00:1]", ["::/0"]),
        # Loopback is there only for who writes it.
        ("local", ["*"]),
        ("127.0.0.1", ["*", "0.0.0.0/0"]),
        ("[::1]", ["*", "::/0"]),
        ("2130706433", ["*"]),
        ("multicast", ["*"]),
        ("nothing", ["*"]),
        ("[::]", ["*"]),
    ],
)
def test_refused(host: str, allowed: list[str]) -> None:  # SR-49
    with pytest.raises(TargetRefused, match=r"srmp\.receipt_targets"):
        find(f"http://{host}/MSMQ/Private$/O", *allowed)


# -- hosts that only the sender knows -------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["SENDERBOX", "elsewhere", "local", "metadata", "multicast", "nothing", "linked", "a..b"],
)
def test_another_host_becomes_the_sender_s_address(host: str) -> None:
    """MC-MQSRM 2.2.5.3.4 has a URL, whose host may be a NetBIOS name of the sender: the receipt
    goes back where the message came from, to the port and the path of the URL."""
    target = find(f"http://{host}:8080/MSMQ/O", "sender")
    assert (target.address, target.port) == (PEER, 8080)
    assert (target.endpoint.authority, target.endpoint.target) == (f"{host}:8080", "/msmq/o")
    assert target.instead
    assert not find("http://sender01/o", "sender").instead


def test_a_certificate_must_still_have_the_name_of_the_url() -> None:
    target = find("https://senderbox/o", "sender")
    assert (target.address, target.port, target.tls_name) == (PEER, 443, "senderbox")


def test_a_name_on_the_list_is_waited_for() -> None:
    """The operator knows it: the name service may have it again in a while."""
    for listed in ("senderbox", "senderbox:80"):
        with pytest.raises(socket.gaierror):
            find("http://senderbox/o", "sender", listed)
    assert place("http://senderbox/o", "sender", "senderbox:81") == (PEER, 80)


@pytest.mark.parametrize(
    ("peer", "allowed", "own"),
    [
        (PEER, ["loopback"], ()),  # without `sender` its address is not a target
        (PEER, [], ()),
        ("127.0.0.1", ["sender"], ()),  # it may be a proxy before us
        ("::1", ["sender"], ()),
        ("::ffff:127.0.0.1", ["sender"], ()),
        ("127.0.0.1", ["sender", "loopback"], [80]),  # a listener of our own
        ("169.254.1.1", ["sender"], ()),
        ("", ["sender"], ()),
        ("not an address", ["sender"], ()),
    ],
)
def test_no_sender_s_address(peer: str, allowed: list[str], own: Collection[int]) -> None:
    for host in ("elsewhere", "a..b"):
        with pytest.raises(TargetRefused):
            find(f"http://{host}/o", *allowed, peer=peer, own=own)
    with pytest.raises(socket.gaierror):
        find("http://senderbox/o", *allowed, peer=peer, own=own)


def test_a_sender_on_loopback_if_loopback_is_allowed() -> None:
    allowed = "sender", "loopback"
    assert place("http://senderbox:81/o", *allowed, peer="127.0.0.1") == ("127.0.0.1", 81)


def test_loopback_as_any_address_has_a_port() -> None:
    """A socket that is bound to 0.0.0.0 would take it: it is loopback in disguise."""
    with pytest.raises(TargetRefused):
        find("http://0.0.0.0/o", "loopback")


# -- listeners of our own -------------------------------------------------------------------

HERE = [
    "127.0.0.1",
    "127.1",
    "127.8.9.1",
    "0",
    "0.0.0.0",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "017700000001",
    "2130706433",
    "localhost",
    "LocalHost",
    "localhost.",
    "local",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0.0.0.0]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "bridge01",  # a name of ours, wherever it leads
    "BRIDGE01.EXAMPLE.COM.",
]
EVERYTHING = ("sender", "loopback", "*", "0.0.0.0/0", "::/0", "127.0.0.0/8", "bridge01")


@pytest.mark.parametrize("host", HERE)
@pytest.mark.parametrize("peer", ["127.0.0.1", "::ffff:127.0.0.1", "::1", PEER])
def test_never_a_listener_of_our_own(host: str, peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any spelling, for any sender, whatever the list says."""
    for name in ("localhost", "localhost."):
        monkeypatch.setitem(NAMES, name, ["::1", "127.0.0.1"])
    allowed = (*EVERYTHING, host.lower())
    for port in (80, 1801, 9180):
        with pytest.raises(TargetRefused):
            find(f"http://{host}:{port}/msmq/o", *allowed, peer=peer, own={80, 1801, 9180})
    with pytest.raises(TargetRefused):  # the port need not be written
        find(f"http://{host}/msmq/o", *allowed, peer=peer, own={80})


def test_an_address_of_this_machine_that_is_not_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_listeners, "is_here", lambda address: str(address) == PEER)
    with pytest.raises(TargetRefused):
        find("http://sender01:9180/o", *EVERYTHING, own={9180})
    assert place("http://sender01:9181/o", "sender", own={9180}) == (PEER, 9181)


@pytest.mark.parametrize("peer", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_a_sender_on_this_machine_gets_its_receipts(peer: str) -> None:
    """By `sender` alone, at its own address, on ports that are not ours."""
    assert place("http://local:8080/o", "sender", peer=peer, own={80}) == ("127.0.0.1", 8080)
    with pytest.raises(TargetRefused):
        find("http://127.0.0.2:8080/o", "sender", peer=peer, own={80})


def test_what_the_operator_wrote_may_lead_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect has host and port; of `peers` a stranger chooses the port."""
    table = [("http://elsewhere/*", "http://127.0.0.1:8080/")]
    assert place("http://elsewhere/o", redirects=table, own={8080}) == ("127.0.0.1", 8080)
    peers: dict[str, Address] = {PeerName.parse("box"): Address.parse("127.0.0.1:8080")}
    assert place("http://box/o", peers=peers, own={8080}) == ("127.0.0.1", 8080)
    for url in ("http://box:9180/o", "http://BOX:80/o", "https://box:443/o"):
        with pytest.raises(TargetRefused, match="of our own"):
            find(url, "*", "loopback", peers=peers, own={80, 443, 8080, 9180})


def test_the_address_that_was_checked_is_the_one_that_is_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name service that gives another answer the second time is not asked again."""
    answers = iter([[PEER], ["127.0.0.1"]])

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in next(answers)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert place("http://rebound/o", "sender", own={80}) == (PEER, 80)
    with pytest.raises(TargetRefused):
        find("http://rebound/o", "sender", own={80})


# -- hosts without a URL --------------------------------------------------------------------


def host(name: str, *allowed: str, peers: Collection[str] = (PEER,)) -> Any:
    targets = ReceiptTargets(allowed, own=OwnListeners(lambda: [1802]))
    address, granted = asyncio.run(targets.find_host(name, 1801, peers))
    return address, sorted(granted)


def test_a_host_that_several_peers_name() -> None:
    assert host("both", "sender", peers=[PEER, "192.0.2.8"]) == (PEER, [PEER])
    assert host("both", "sender", "192.0.2.7", peers=["192.0.2.8"]) == ("192.0.2.7", ["192.0.2.8"])
    assert host("both", "*", peers=["a", "b"]) == ("192.0.2.7", ["a", "b"])
    for peers in ([], [""], ["not an address"], ["192.0.2.8"]):
        with pytest.raises(TargetRefused, match=r"both is not in srmp\.receipt_targets"):
            host("both", "sender", peers=peers)


def test_what_is_ours_by_its_address() -> None:
    targets = ReceiptTargets((), own=OwnListeners(lambda: [1801]))
    assert [targets.is_own("127.0.0.1", port) for port in (1801, 80)] == [True, False]
    assert targets.is_own("::ffff:127.0.0.1", 1801)
    assert not targets.is_own("192.0.2.7", 1801)


def test_the_port_of_a_name_counts() -> None:
    assert place("http://elsewhere:8080/o", "elsewhere:8080") == ("192.0.2.7", 8080)
    assert place("https://elsewhere/o", "elsewhere:443") == ("192.0.2.7", 443)
    with pytest.raises(TargetRefused):
        find("https://elsewhere/o", "elsewhere:80")


def test_what_is_posted_to() -> None:  # srmp.md 1.1: the target in small letters, Host as written
    endpoint = find("http://Sender01:8080/MSMQ/O?X=Y", "*", "sender01").endpoint
    assert (endpoint.scheme, endpoint.authority) == ("http", "Sender01:8080")
    assert endpoint.target == "/msmq/o?x=y"


# -- redirect_out ---------------------------------------------------------------------------


def test_a_redirected_url() -> None:  # SR-18: connect to the host of To, all else as it is
    table = [("http://machine1/*", "http://sender01:8080/whatever")]
    target = find("http://Machine1/MSMQ/Private$/O?a", redirects=table)
    assert (target.address, target.port) == (PEER, 8080)
    assert (target.endpoint.authority, target.endpoint.target) == ("Machine1", "/msmq/private$/o?a")


def test_a_redirect_is_the_operator_s_word() -> None:  # no list, no name service for the old host
    table = [("http://unknown.invalid/*", "http://elsewhere/")]
    assert place("http://unknown.invalid:81/o", redirects=table) == ("192.0.2.7", 80)
    with pytest.raises(TargetRefused):
        find("http://elsewhere/o", redirects=table)


def test_an_exception_is_an_entry_that_leads_to_itself() -> None:
    """SR-18: OutboundRedirectionExceptionCollection; the first entry that matches decides."""
    table = [
        ("http://elsewhere/msmq/private$/local", "http://elsewhere/"),
        ("http://elsewhere/*", "http://sender01:8080/"),
    ]
    assert place("http://elsewhere/msmq/private$/other", redirects=table) == (PEER, 8080)
    assert place("http://elsewhere/MSMQ/Private$/Local", redirects=table) == ("192.0.2.7", 80)


# -- peers ----------------------------------------------------------------------------------

PEERS = {PeerName.parse("SenderBox"): Address.parse("192.0.2.7:1801")}


def test_a_peer_is_where_the_operator_says() -> None:
    assert place("http://SENDERBOX/o", peers=PEERS) == ("192.0.2.7", 80)
    assert place("https://senderbox/o", peers=PEERS) == ("192.0.2.7", 443)
    assert place("http://senderbox:8080/o", peers=PEERS) == ("192.0.2.7", 8080)


def test_a_peer_by_a_name() -> None:
    peers: dict[str, Address] = {PeerName.parse("box"): Address.parse("elsewhere")}
    assert place("http://box/o", peers=peers) == ("192.0.2.7", 80)


def test_a_peer_by_its_ipv6_address() -> None:  # a URL has it in brackets
    peers = {PeerName.parse("fd00::9"): Address.parse("192.0.2.7")}
    assert place("http://[FD00::9]:81/o", peers=peers) == ("192.0.2.7", 81)


def test_a_redirect_may_lead_into_tls_and_out_of_it() -> None:
    table = [("http://a/*", "https://127.0.0.1/"), ("https://b/*", "http://127.0.0.1/")]
    assert find("http://a/o", redirects=table).tls_name == "127.0.0.1"
    assert find("https://b/o", redirects=table).tls_name == ""
    assert find("https://Local/o", "loopback").tls_name == "local"


def test_a_redirect_comes_before_a_peer() -> None:
    table = [("http://senderbox/*", "http://sender01:8080/")]
    assert place("http://senderbox/o", peers=PEERS, redirects=table) == (PEER, 8080)


# -- what cannot be found -------------------------------------------------------------------


@pytest.mark.parametrize("url", ["ftp://a/o", "http://", "http://a:99999/o", "http://ä/o", ""])
def test_no_url(url: str) -> None:
    with pytest.raises(WireError):
        find(url, "*")


def test_a_host_that_nobody_knows_may_be_known_later() -> None:
    with pytest.raises(OSError, match=r".") as caught:
        find("http://unknown.invalid/o", "*")
    assert isinstance(caught.value, socket.gaierror)


@pytest.mark.parametrize("host", ["a..b", ".a", "x" * 64, f"{'x' * 64}.example.com"])
def test_a_name_that_no_name_service_takes(host: str) -> None:
    """It comes from a stranger: it must not be a fault of ours."""
    with pytest.raises(TargetRefused):
        find(f"http://{host}/o", "*")


def test_a_slow_name_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESOLVE_S", 0.0)

    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def never(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        monkeypatch.setattr(loop, "getaddrinfo", never)
        with pytest.raises(TimeoutError):
            await ReceiptTargets(["*"]).find("http://elsewhere/o", PEER)

    asyncio.run(run())


# -- URLs of the operator's own -------------------------------------------------------------


def reach(url: str, **more: Any) -> Target:
    peers, redirects = more.get("peers"), more.get("redirects", ())
    return asyncio.run(ReceiptTargets((), peers, Redirects(redirects)).reach(url))


@pytest.mark.parametrize(
    ("url", "address", "port", "tls_name"),
    [
        ("http://Elsewhere/q", "elsewhere", 80, ""),  # looked up when it is connected
        ("http://169.254.169.254:81/q", "169.254.169.254", 81, ""),
        ("https://[fd00::7]/q", "fd00::7", 443, "fd00::7"),
        ("https://nowhere:8443/q", "nowhere", 8443, "nowhere"),
    ],
)
def test_the_operator_s_own_may_lead_anywhere(
    url: str, address: str, port: int, tls_name: str
) -> None:  # SR-15
    target = reach(url)
    assert (target.address, target.port, target.tls_name) == (address, port, tls_name)
    assert target.endpoint.target == "/q"


def test_the_operator_s_own_obey_what_else_he_says() -> None:  # SR-18, peers
    peers = {"far": Address("local", 81)}
    assert (
        reach("http://far/q", peers=peers).address,
        reach("http://far/q", peers=peers).port,
    ) == (
        "127.0.0.1",
        81,
    )
    target = reach("http://far/q", redirects=[("http://far/*", "https://six:8443/x")])
    assert (target.address, target.port, target.tls_name) == ("fd00::7", 8443, "six")
    assert target.endpoint.authority == "far"
    with pytest.raises(WireError):
        reach("ftp://far/q")
