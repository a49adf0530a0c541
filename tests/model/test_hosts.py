"""One spelling for each address."""

from ipaddress import ip_network

import pytest

from bridge.model.hosts import canonical, neighbourhood, network, without_scope


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("Sender01", "sender01"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("FE80:0:0::1", "fe80::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("::FFFF:0a01:0203", "10.1.2.3"),
        ("[::ffff:10.1.2.3]", "10.1.2.3"),
        ("no:address", "no:address"),
        ("No:Address", "no:address"),
        ("?", "?"),
    ],
)
def test_canonical(written: str, meant: str) -> None:
    assert canonical(written) == meant
    assert canonical(meant) == meant


def test_the_interface_of_an_address_is_of_this_machine() -> None:
    assert without_scope("fe80::1%eth0") == "fe80::1"
    assert without_scope("10.1.2.3") == "10.1.2.3"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("fd00::/8", "fd00::/8"),
        ("::1", "::1/128"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.1.2.3", "10.1.2.3/32"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::/0", "::/0"),
    ],
)
def test_networks(written: str, meant: str) -> None:
    assert network(written) == ip_network(meant)


@pytest.mark.parametrize("text", ["", "sender01", "10.0.0.1/8", "fe80::1/10", "10.0.0.0/33"])
def test_what_is_not_a_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        network(text)


@pytest.mark.parametrize(
    ("host", "unit"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff::9", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),  # as a socket for both families shows it
        ("sender01", "sender01"),
        ("http://sender01/", "http://sender01/"),
        ("?", "?"),
        ("", ""),
    ],
)
def test_the_unit_that_is_counted(host: str, unit: str) -> None:
    assert neighbourhood(host) == unit
