"""Association groups. RR-5, MS-RPCE 3.3.1.5.7"""

from __future__ import annotations

from itertools import count

from bridge.protocol.rpc.groups import AssociationGroups


def test_a_group_lives_until_its_last_connection_leaves() -> None:
    groups = AssociationGroups(count(7).__next__)
    group = groups.create("10.0.0.1")
    assert groups.join(group, "10.0.0.1")
    assert not groups.leave(group)
    assert groups.leave(group)
    assert not groups.join(group, "10.0.0.1")
    assert len(groups) == 0


def test_another_client_cannot_join() -> None:
    groups = AssociationGroups(count(7).__next__)
    group = groups.create("10.0.0.1")
    assert not groups.join(group, "10.0.0.2")
    assert not groups.join(group + 1, "10.0.0.1")
    assert not groups.join(group + 1, "")
    assert groups.leave(group)


def test_ids_are_never_zero_nor_in_use() -> None:
    numbers = iter([0, 5, 5, 0, 6])
    groups = AssociationGroups(numbers.__next__)
    assert [groups.create("a"), groups.create("a")] == [5, 6]
