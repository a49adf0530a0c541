"""The data folder is lost with 100,000 waiting messages. design 3.2, D5; DM-1, DM-20"""

import pytest

from tests.outside.appliance import Appliance
from tests.outside.retained.clerk import Clerk, path
from tests.outside.retained.mass import fill

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
COUNT = 100_000


def test_identical_order_ids_and_contents(appliance: Appliance, clerk: Clerk) -> None:
    name = path("many")
    fill(appliance, clerk, "many", COUNT, size=32)
    before = clerk.peek(name)
    assert len({one.id for one in before}) == COUNT
    places = [one.lookup_id for one in before]
    assert places == sorted(set(places))  # DM-20
    for number in (0, COUNT // 2, COUNT - 1):  # at both ends, and in between
        gone = clerk.receive(name, lookup_id=before[number].lookup_id)
        assert gone == before[number]
    del before[COUNT - 1], before[COUNT // 2], before[0]
    appliance.restart(empty_data=True, kill=True)
    assert clerk.peek(name) == before
