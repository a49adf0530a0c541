"""What becomes of queues when their topics do not stay as they were. design D5"""

import pytest
from confluent_kafka.admin import AdminClient

from tests.outside.appliance import Appliance
from tests.outside.rawpeer import Recorder
from tests.outside.retained.bench import Letters
from tests.outside.retained.clerk import Clerk, path

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


def test_a_topic_that_was_deleted_with_its_queue(appliance: Appliance, clerk: Clerk) -> None:
    """Nobody needs it any more: the other queues are read as before, after a restart too."""
    topic = appliance.topic("fleeting")
    clerk.create(path("fleeting"), topic=topic)
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        sender.send_all_windowed(Letters(sender.guid, "fleeting").several(2))
        clerk.wait(path("fleeting"), 2)
        assert clerk.delete(path("fleeting")) == 2
        admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
        admin.delete_topics([topic])[topic].result(30)
        sender.send_all_windowed(Letters(sender.guid, "held").several(1, message_id=77))
    (held,) = clerk.wait(path("held"), 1)
    appliance.restart(empty_data=True, kill=True)
    assert clerk.peek(path("held")) == [held]
    assert clerk.receive(path("held")) == held
