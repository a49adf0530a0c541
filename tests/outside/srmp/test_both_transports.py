"""One queue, fed by TCP sessions and by HTTP at once: every stream in order, each message once."""

import random
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.fleet import Fleet
from tests.outside.ledger import Load, check
from tests.outside.rawsender import RawSender
from tests.outside.srmp.bench import Topics
from tests.outside.srmp.catcher import Catcher
from tests.outside.srmp.senders import StreamSender
from tests.outside.srmp.wire import Flow, url

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
COUNT = 200


def test_both_at_once_over_a_kill(appliance: Appliance, topics: Topics, catcher: Catcher) -> None:
    """D1, D2, DM-7, DM-36: kill -9 in the middle and an empty data folder change nothing."""
    rng = random.Random(80)
    loads = [Load(uuid4(), rng, "t") for _ in range(2)]
    fleet = Fleet(lambda: appliance.listeners.get("binary"))
    for load in loads:
        fleet.add(RawSender(appliance.binary_address, load.source)).unsent.extend(load.make(COUNT))
    boxes = [catcher.box() for _ in range(3)]
    flows = [Flow(to=url("orders"), receipts=box.url) for box in boxes]
    streams = [
        StreamSender(lambda: appliance.listeners.get("srmp"), flow, box)
        for flow, box in zip(flows, boxes, strict=True)
    ]
    for stream in streams:
        stream.start(COUNT)
    fleet.advance(COUNT // 2, acked=False)
    boxes[0].pause(0.3)
    appliance.restart(empty_data=True, kill=True)
    for load, sender in zip(loads, fleet.senders, strict=True):
        sender.unsent.extend(load.make(COUNT // 4))
    fleet.drain()
    fleet.close()
    for stream in streams:
        stream.finish()
    check(appliance, loads)
    for stream in streams:
        assert topics.numbers("orders", stream.flow) == list(range(1, COUNT + 1))
    transports = {one.header["msmq.transport"] for one in topics.all("orders")}
    assert transports >= {b"http"}
    assert len(transports) == 2
