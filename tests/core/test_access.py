"""Who may send: WRITE_MESSAGE of a queue, judged by GUID, SID or address. DM-14, row 8 of 2.4"""

import pytest

from bridge.core import access
from bridge.core.access import AccessList, AllowedSender
from bridge.model.guid import Guid
from bridge.model.message import Message
from tests.core.messages import OTHER, SENDER, plain

USER = "S-1-5-21-397955417-626881126-188441444-1010"


def said(sender: str = "", peer: str = "10.1.2.3", source: Guid = SENDER) -> Message:
    return plain(source=source, sender=sender, peer=peer)


@pytest.mark.parametrize(
    ("allowed", "message", "expected"),
    [
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
    assert one.permits(message) is expected
    assert one.permits(message) is expected  # remembered


def test_what_is_remembered_is_all_that_was_judged() -> None:
    one = AccessList([USER])
    assert one.permits(said(USER))
    assert not one.permits(said())
    assert not one.permits(said("S-1-5-7", source=OTHER))


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims come from outside."""
    monkeypatch.setattr(access, "_CACHE", 10)
    one = AccessList([USER])
    for number in range(100):
        assert not one.permits(said(f"S-1-5-21-{number}"))
        assert len(one._known) <= 10
    assert one.permits(said(USER))


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
    ],
)
def test_what_may_be_on_a_list(text: str) -> None:
    assert AllowedSender.parse(text) == text
    AccessList([text])


@pytest.mark.parametrize(
    "text", ["", "bob", "S-1", "S-2-1", "S-1-", f"{{{SENDER}}}", "10.1.2.3/8", "10.1.2", "*"]
)
def test_what_may_not(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        AllowedSender.parse(text)
