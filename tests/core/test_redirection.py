"""URLs that stand for others: SR-13, SR-14, SR-18; MC-MQSRM 3.1.5.1.3, 3.1.7.9."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.redirection import Redirects, host_of

ORDERS = "http://bridge01/msmq/private$/orders"
OTHERS = "http://bridge01/msmq/private$/others"


@pytest.mark.parametrize(
    ("source", "url", "found"),
    [
        # Without * the whole URL, with * any rest (SR-14).
        ("http://nat/msmq/in", "http://nat/msmq/in", True),
        ("http://nat/msmq/in", "http://nat/msmq/in/x", False),
        ("http://nat/msmq/in", "http://nat/msmq/i", False),
        ("http://nat/msmq/in/*", "http://nat/msmq/in/x/y", True),
        ("http://nat/msmq/in/*", "http://nat/msmq/in/", True),
        ("http://nat/msmq/in/*", "http://nat/msmq/in", False),
        ("http://nat/msmq/in*", "http://nat/msmq/inner", True),
        ("http://nat/msmq/in?a=1", "http://nat/msmq/in?a=1", True),
        ("http://nat/msmq/in", "http://nat/msmq/in?a=1", False),
        # Case-insensitive.
        ("http://NAT/msmq/In/*", "HTTP://nat/MSMQ/iN/x", True),
        ("http://nat/msmq/grö*", "http://nat/msmq/GRÖSSE", True),
        # 1.1: / and \ are the same.
        ("http://nat/msmq\\in\\*", "http://nat\\msmq/in\\x", True),
        # http is not https.
        ("http://nat/msmq/*", "https://nat/msmq/x", False),
        # A From without a port is for all ports; one with a port for this one.
        ("http://nat/msmq/*", "http://nat:8080/msmq/x", True),
        ("http://nat/msmq/*", "http://nat:/msmq/x", True),
        ("http://nat/msmq/in", "http://nat:8080/msmq/in", True),
        ("http://nat:8080/msmq/*", "http://nat:8080/msmq/x", True),
        ("http://nat:8080/msmq/*", "http://nat/msmq/x", False),
        ("http://nat:8080/msmq/*", "http://nat:80/msmq/x", False),
        ("http://[fd00::7]/msmq/*", "http://[FD00::7]:81/msmq/x", True),
        # A host is a host: no part of one.
        ("http://nat/*", "http://nat.example.com/msmq/x", False),
        ("http://nat/*", "http://nat:80.example.com/msmq/x", False),
        # A * that is not at the end is a star.
        ("http://nat/*/in", "http://nat/x/in", False),
        ("http://nat/*/in", "http://nat/*/in", True),
        # What is no URL matches nothing.
        ("http://nat/*", "MSMQ:MULTICAST=234.1.1.1:8001", False),
        ("http://nat/*", "", False),
    ],
)
def test_what_matches(source: str, url: str, found: bool) -> None:
    assert Redirects([(source, ORDERS)]).apply(url) == (ORDERS if found else None)


def test_the_first_match_in_configured_order() -> None:  # SR-14 D
    table = [
        ("http://nat/msmq/in/one", ORDERS),
        ("http://nat/msmq/in/*", OTHERS),
        ("http://nat/msmq/in/two", ORDERS),
    ]
    redirects = Redirects(table)
    assert redirects.apply("http://nat/msmq/in/one") == ORDERS
    assert redirects.apply("http://nat/msmq/in/two") == OTHERS
    assert redirects.apply("http://nat:81/msmq/in/one") == ORDERS
    assert Redirects(reversed(table)).apply("http://nat/msmq/in/two") == ORDERS


def test_an_earlier_entry_wins_over_one_that_names_the_port() -> None:
    redirects = Redirects([("http://nat/*", ORDERS), ("http://nat:81/*", OTHERS)])
    assert redirects.apply("http://nat:81/msmq/x") == ORDERS


def test_the_target_is_as_it_was_written() -> None:  # no * in To; the rest is not carried over
    redirects = Redirects([("http://nat/*", "http://Bridge01:8080/MSMQ/Private$/Orders?a=B")])
    assert redirects.apply("http://nat/x/y?z") == "http://Bridge01:8080/MSMQ/Private$/Orders?a=B"


def test_it_is_applied_once() -> None:
    redirects = Redirects([("http://a/*", "http://b/msmq/q"), ("http://b/*", "http://c/msmq/q")])
    assert redirects.apply("http://a/msmq/q") == "http://b/msmq/q"


def test_an_empty_table() -> None:
    assert Redirects().apply(ORDERS) is None
    assert Redirects().hosts() == frozenset()


def test_hosts_that_occur_in_from_are_ours() -> None:  # SR-13
    table = ["http://Nat.Example.Com:81/x/*", "https://[FD00::7]/", "http://10.0.0.7", "http://a./"]
    redirects = Redirects([(source, "http://target/msmq/q") for source in table])
    assert redirects.hosts() == {"nat.example.com", "fd00::7", "10.0.0.7", "a"}


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Machine2/msmq/private$/simpleq", "machine2"),
        ("https://machine2:8443/msmq/q", "machine2"),
        ("HTTP://MACHINE2\\msmq\\q", "machine2"),
        ("http://machine2", "machine2"),
        ("http://machine2?x", "machine2"),
        ("http://machine2:80", "machine2"),
        ("http://machine2:", "machine2"),
        ("http://machine2.example.com./msmq/q", "machine2.example.com"),
        ("http://10.0.0.7:80/msmq/q", "10.0.0.7"),
        ("http://[FE80::1]:80/msmq/q", "fe80::1"),
        ("http://[::1]/msmq/q", "::1"),
        ("http://a b/msmq/q", "a b"),
        ("http://user@machine2/msmq/q", "user@machine2"),  # never taken for machine2
        ("http:///msmq/q", ""),
        ("http://:80/msmq/q", ""),
        ("ftp://machine2/q", ""),
        ("DIRECT=http://machine2/q", ""),
        ("MSMQ:MULTICAST=234.1.1.1:8001", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_url(url: str, host: str) -> None:  # SR-13: without case and port
    assert host_of(url) == host


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text(source: str, url: str) -> None:
    redirects = Redirects([(source, ORDERS)])
    assert redirects.apply(url) in (ORDERS, None)
    host_of(url)
    if not source.endswith("*"):
        assert redirects.apply(source) == ORDERS


def test_a_port_that_the_scheme_implies_is_no_port() -> None:
    table = Redirects([("http://h:80/a", "http://x/"), ("https://h:443/b*", "https://y/")])
    assert table.apply("http://h/a") == "http://x/"
    assert table.apply("https://H/b/c") == "https://y/"
    assert table.apply("https://h:80/a") is None
