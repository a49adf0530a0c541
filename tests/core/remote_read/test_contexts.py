"""Handles that say nothing to anybody else. RR-5, RR-11"""

import os

import pytest

from bridge.core.remote_read.codes import Failed
from bridge.core.remote_read.contexts import Contexts
from bridge.protocol.rpc.calls import Fault


def test_a_handle_belongs_to_its_group() -> None:
    contexts = Contexts[str](os.urandom)
    handle = contexts.add(1, "one")
    assert len(handle) == 20
    assert handle[:4] == bytes(4)
    assert contexts.get(1, handle) == "one"
    for group, other in ((2, handle), (1, bytes(20)), (1, b"\1" + handle[1:])):
        with pytest.raises(Fault) as caught:
            contexts.get(group, other)
        assert caught.value.status == 0x1C00001A


def test_a_handle_is_used_up() -> None:
    contexts = Contexts[str](os.urandom)
    handle = contexts.add(1, "one")
    assert contexts.pop(1, handle) == "one"
    with pytest.raises(Fault):
        contexts.pop(1, handle)
    assert len(contexts) == 0
    contexts.discard(1, handle)
    contexts.discard(1, again := contexts.add(1, "two"))
    with pytest.raises(Fault):
        contexts.get(1, again)


def test_another_table_does_not_know_it() -> None:
    """RR-11: other-interface handles"""
    one, other = Contexts[str](os.urandom), Contexts[str](os.urandom)
    handle = one.add(1, "one")
    with pytest.raises(Fault):
        other.get(1, handle)


def test_rundown() -> None:
    contexts = Contexts[str](os.urandom)
    mine = [contexts.add(1, name) for name in "ab"]
    contexts.add(2, "c")
    assert contexts.run_down(1) == ["a", "b"]
    assert contexts.run_down(1) == []
    assert len(contexts) == 1
    with pytest.raises(Fault):
        contexts.get(1, mine[0])


def test_what_is_gone_is_forgotten_by_all() -> None:
    contexts = Contexts[str](os.urandom)
    for group, name in ((1, "a"), (1, "b"), (2, "a")):
        contexts.add(group, name)
    contexts.forget(lambda item: item == "a")
    assert (contexts.run_down(1), contexts.run_down(2)) == (["b"], [])


def test_a_group_has_a_limit() -> None:
    contexts = Contexts[int](os.urandom, most=3)
    for number in range(3):
        contexts.add(1, number)
    with pytest.raises(Failed) as caught:
        contexts.add(1, 3)
    assert caught.value.status == 0xC00E0027
    contexts.add(2, 3)
