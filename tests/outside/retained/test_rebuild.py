"""The data folder is lost while many messages wait: all of them come back from Kafka."""

import pytest

from tests.outside.appliance import Appliance
from tests.outside.retained.clerk import Clerk, path
from tests.outside.retained.mass import fill

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
COUNTS = [20_000, pytest.param(100_000, marks=pytest.mark.long)]


@pytest.mark.parametrize("count", COUNTS)
def test_identical_order_ids_and_contents(count: int, appliance: Appliance, clerk: Clerk) -> None:
    name = path("many")
    fill(appliance, clerk, "many", count, size=32)
    before = clerk.peek(name)
    assert len({one.id for one in before}) == count
    places = [one.lookup_id for one in before]
    assert places == sorted(set(places))
    for number in (0, count // 2, count - 1):  # at both ends, and in between
        gone = clerk.receive(name, lookup_id=before[number].lookup_id)
        assert gone == before[number]
    del before[count - 1], before[count // 2], before[0]
    appliance.restart(empty_data=True, kill=True)
    assert clerk.peek(name) == before
