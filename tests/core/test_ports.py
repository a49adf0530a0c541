"""The values that go through the ports."""

import pytest

from bridge.core.ports import Record, Snapshot, Unit
from tests.core.letters import waiting


@pytest.mark.parametrize(
    "unit",
    [
        Unit(records=[Record(topic="t", value=b"")]),
        Unit(state={"key": None}),
        Unit(seen={"key": b""}),
        Unit(audit=[b""]),
        Unit(rejects=[Record(topic="", value=b"")]),
    ],
)
def test_a_unit_with_any_effect_counts(unit: Unit) -> None:  # design D1
    assert unit


def test_units_do_not_share_what_they_hold() -> None:
    assert not Unit()
    first, second = Unit(), Unit()
    first.records.append(Record(topic="t", value=b""))
    first.state["key"] = b"value"
    assert not second


def test_a_forward_weighs_more_than_its_bytes() -> None:  # SR-15: what waits is bounded
    forward = waiting()
    assert forward.size == len(forward.onward.packet) + len(forward.onward.was) + 1024
    assert len(forward.encode()) < forward.size


def test_a_record_leaves_key_partition_and_time_open() -> None:
    record = Record(topic="t", value=b"v")
    assert (record.key, record.partition, record.timestamp_ms) == (None, None, 0)
    assert record.headers == {}


def test_a_snapshot_is_state_and_seen() -> None:
    assert Snapshot({"a": b"1"}, [b"2"]) == Snapshot({"a": b"1"}, [b"2"])
