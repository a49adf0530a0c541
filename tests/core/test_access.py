"""Who may send: WRITE_MESSAGE of a queue, judged by GUID, SID or address. DM-14, row 8 of 2.4"""

import pytest

from bridge.core import access
from bridge.core.access import Access, AccessList, AllowedSender
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from tests.core.messages import OTHER, SENDER, plain
from tests.core.posts import mail

USER = "S-1-5-21-397955417-626881126-188441444-1010"


def said(sender: str = "", peer: str = "10.1.2.3", source: Guid = SENDER) -> Message:
    return plain(source=source, sender=sender, peer=peer)


def shown(*names: str) -> Message:
    """Over HTTPS, by a client whose certificate has these names."""
    return mail(asks={"peer_names": names})


def permits(one: AccessList, message: Message) -> bool:
    return one.judge(message) is Access.GRANTED


@pytest.mark.parametrize(
    ("allowed", "message", "expected"),
    [
        ([f"{SENDER}@10.0.0.0/8"], said(), True),
        ([f"{SENDER}@10.0.0.0/8"], said(peer="11.1.2.3"), False),  # both must hold
        ([f"{SENDER}@10.0.0.0/8"], said(source=OTHER), False),
        ([f"{SENDER}@11.0.0.0/8", f"{SENDER}@10.1.2.3"], said(), True),
        ([f"{SENDER}@10.0.0.0/8"], said(peer="::ffff:10.1.2.3"), True),
        ([], said(), False),  # an empty list is nobody
        ([str(SENDER)], said(), True),
        ([str(SENDER).upper()], said(), True),
        ([str(SENDER)], said(source=OTHER), False),
        ([USER], said(USER), True),
        ([USER.lower()], said(USER), True),
        ([USER], said("S-1-5-21-1-2-3-4"), False),
        ([USER], said(), False),
        (["S-1-5-7"], said(), True),  # 2.4: without a sender it is Anonymous
        (["S-1-5-7"], said(USER), False),
        (["S-1-1-0"], said(USER), True),  # Everyone
        (["S-1-1-0"], said(), True),
        (["S-1-1-0"], said(str(OTHER)), True),  # 2.4: sender = QM GUID, test Everyone
        (["10.1.2.3"], said(), True),
        (["10.1.2.4"], said(), False),
        (["10.0.0.0/8"], said(), True),
        (["10.0.0.0/8"], said(peer="11.1.2.3"), False),
        (["fd00::/8"], said(peer="fd12::1"), True),
        (["fd00::/8"], said(), False),  # another family is no error
        (["10.0.0.0/8"], said(peer=""), False),
        (["10.0.0.0/8"], said(peer="sender01"), False),
        ([USER, str(OTHER), "192.0.2.0/24"], said(peer="192.0.2.9"), True),  # any one is enough
    ],
)
def test_one_mark_on_the_list_is_enough(
    allowed: list[str], message: Message, expected: bool
) -> None:
    one = AccessList(allowed)
    assert permits(one, message) is expected
    assert permits(one, message) is expected  # remembered


@pytest.mark.parametrize(
    ("allowed", "message", "expected"),
    [
        (["cn:orders"], shown("cn:orders"), Access.GRANTED),
        (["CN:Orders"], shown("cn:orders", "san:x"), Access.GRANTED),
        (["san:sender01.example.com"], shown("cn:x", "san:sender01.example.com"), Access.GRANTED),
        (["san:ann@example.com"], shown("san:ann@example.com"), Access.GRANTED),
        (["cn:orders"], shown("san:orders"), Access.PEER_DENIED),  # one kind of name is not another
        (["san:orders"], shown("cn:orders"), Access.PEER_DENIED),
        (["cn:orders"], shown("cn:orders2"), Access.PEER_DENIED),
        (["cn:orders"], shown(), Access.PEER_DENIED),
        (["cn:orders"], said(), Access.PEER_DENIED),  # a binary session shows no certificate
        (["cn:orders"], said("cn:orders"), Access.PEER_DENIED),  # a claim is not a certificate
        (["cn:orders", "10.1.0.0/16"], said(), Access.GRANTED),  # any one is enough
        (["cn:orders", USER], shown("cn:x"), Access.USER_DENIED),
    ],
)
def test_names_of_a_certificate(allowed: list[str], message: Message, expected: Access) -> None:
    one = AccessList(allowed)
    assert [one.judge(message) for _ in range(2)] == [expected, expected]


def test_what_is_remembered_is_all_that_was_judged() -> None:
    by_name = AccessList(["cn:orders"])
    assert permits(by_name, shown("cn:orders"))
    assert not permits(by_name, shown())
    one = AccessList([USER])
    assert permits(one, said(USER))
    assert not permits(one, said())
    assert not permits(one, said("S-1-5-7", source=OTHER))


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims come from outside."""
    monkeypatch.setattr(access, "_CACHE", 10)
    one = AccessList([USER])
    for number in range(100):
        assert not permits(one, said(f"S-1-5-21-{number}"))
        assert len(one._known) <= 10
    assert permits(one, said(USER))


@pytest.mark.parametrize(
    "text",
    [
        USER,
        "s-1-1-0",
        str(SENDER),
        str(SENDER).upper(),
        "10.1.2.3",
        "10.0.0.0/8",
        "::1",
        "fd00::/8",
        f"{SENDER}@10.0.0.0/8",
        f"{SENDER}@fd00::1",
        "cn:orders",
        "CN:Order Service 7",
        "san:sender01.example.com",
        "san:ann@example.com",
        "san:spiffe://example.com/orders",
    ],
)
def test_what_may_be_on_a_list(text: str) -> None:
    assert AllowedSender.parse(text) == text
    AccessList([text])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bob",
        "S-1",
        "S-2-1",
        "S-1-",
        f"{{{SENDER}}}",
        "10.1.2.3/8",
        "10.1.2",
        "*",
        "cn:",
        "cn: orders",
        "cn:orders ",
        "san:",
        "cn:a\nb",
        "cn:" + "x" * 257,
        "dn:orders",
        f"{SENDER}@",
        f"{SENDER}@bob",
        "bob@10.0.0.0/8",
        "@10.0.0.0/8",
        f"10.0.0.0/8@{SENDER}",
    ],
)
def test_what_may_not(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        AllowedSender.parse(text)


@pytest.mark.parametrize(
    ("allowed", "message", "expected"),
    [
        ([str(OTHER)], said(), Access.PEER_DENIED),
        (["192.0.2.0/24"], said(), Access.PEER_DENIED),
        ([f"{SENDER}@192.0.2.0/24"], said(), Access.PEER_DENIED),
        ([], said(), Access.PEER_DENIED),
        # With the right user it could come from there: a reason of the message's own.
        ([USER], said(), Access.USER_DENIED),
        (["192.0.2.0/24", USER], said(), Access.USER_DENIED),
    ],
)
def test_a_peer_that_is_kept_out_is_told_from_a_user(
    allowed: list[str], message: Message, expected: Access
) -> None:
    assert AccessList(allowed).judge(message) is expected


def test_a_list_without_users_names_peers() -> None:
    routers = AccessList([str(SENDER), "10.9.0.0/16", f"{OTHER}@10.1.2.3"])
    assert routers.lists(SENDER, "192.0.2.1")
    assert routers.lists(Guid(16), "10.9.8.7")
    assert routers.lists(OTHER, "10.1.2.3")
    assert not routers.lists(OTHER, "10.1.2.4")


@pytest.mark.parametrize("peer", ["10.1.2.3", "::ffff:10.1.2.3"])
@pytest.mark.parametrize("allowed", ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:10.1.2.3"])
def test_an_ipv4_address_in_either_spelling(allowed: str, peer: str) -> None:
    assert AllowedSender.parse(allowed) == allowed
    assert AccessList([allowed]).lists(NULL_GUID, peer)
    assert not AccessList([allowed]).lists(NULL_GUID, "::1")
    assert AccessList([f"{NULL_GUID}@{allowed}"]).lists(NULL_GUID, peer)


def test_ipv6_networks() -> None:
    networks = AccessList(["fd00::/8", "fe80::/10"])
    assert networks.lists(NULL_GUID, "fd00::7")
    assert networks.lists(NULL_GUID, "fe80::1%eth0")
    assert not networks.lists(NULL_GUID, "10.1.2.3")
