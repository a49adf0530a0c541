"""How much queues hold. DM-11, DM-12, DM-31; data-model.md 2.4 rows 12 and 13, 2.5"""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.conftest import Broker
from tests.outside.rawmsmq import ACK_NA, ACK_PA, build
from tests.outside.rawpeer import Recorder
from tests.outside.records import create_topics
from tests.outside.retained.bench import Letters, ids, kept
from tests.outside.retained.clerk import Clerk, path
from tests.outside.srmp.post import Poster
from tests.outside.srmp.wire import Mail, url

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
QUEUE_KB, MACHINE_KB = 4, 16


@pytest.mark.parametrize("transactional", [False, True])
def test_a_full_queue_nacks_and_a_removal_makes_room(
    clerk: Clerk, sender: Recorder, *, transactional: bool
) -> None:
    """Row 13: 8003, to the administration queue if NA, final always; DM-31: exit frees the room.
    Subqueues count: a move frees nothing."""
    name = "smalltx" if transactional else "small"
    letters = Letters(sender.guid, name, transactional=transactional)
    sent = letters.several(5, body=b"q" * 1000, acks=ACK_NA | ACK_PA)
    room = QUEUE_KB * 1024 // len(build(sent[0]))
    assert room == 3
    sender.send_all_windowed(sent)
    held = clerk.wait(path(name), room)
    assert [one.id for one in held] == ids(sent[:room])
    sender.until(lambda: len(sender.administration) == len(sent))
    told = {one.correlation[16:]: one.message_class for one in sender.administration}
    assert [told[one.message_id.to_bytes(4, "little")] for one in sent] == [2] * 3 + [0x8003] * 2
    finals = [one for one in sender.kept if one.is_final_ack]
    assert [one.message_class for one in finals] == ([0x8003] * 2 if transactional else [])
    clerk.move(path(name), held[0].lookup_id, f"{path(name)};aside")
    more = letters.several(1, body=b"q" * 1000)
    sender.send_all_windowed(more)
    assert clerk.count(path(name)) == room - 1
    clerk.receive(f"{path(name)};aside")
    more = letters.several(1, body=b"q" * 1000)
    sender.send_all_windowed(more)
    assert [one.id for one in clerk.wait(path(name), room)] == ids([*sent[1:room], *more])
    assert clerk.purge(path(name)) == room


def test_over_http_a_full_queue_answers_500(clerk: Clerk, poster: Poster) -> None:  # SR-7
    assert poster.post(Mail(to=url("small"), body=b"x" * 5000)) == 500
    assert poster.post(Mail(to=url("small"), body=b"x" * 100)) == 200
    clerk.wait(path("small"), 1)
    assert clerk.purge(path("small")) == 1


class Machine:
    """One with little room."""

    def __init__(self, appliance: Appliance) -> None:
        self.appliance, self.clerk = appliance, Clerk(appliance)


@pytest.fixture(scope="module")
def machine(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    prefix = f"retained-{uuid4().hex[:8]}"
    wanted = Settings(
        queues=kept("one", "two"), manager={"quota_kb": MACHINE_KB}, listen={"srmp": 0}
    )
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=wanted)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield Machine(appliance)
    appliance.terminate()


def test_a_full_machine_closes_the_session(machine: Machine) -> None:
    """DM-11, row 12: no nack; the sender keeps what it has, and it comes once there is room."""
    clerk, address = machine.clerk, machine.appliance.binary_address
    with Recorder(address) as sender:
        sender.connect().handshake()
        letters = Letters(sender.guid, "one")
        sent = letters.several(3, body=b"m" * 5000, acks=ACK_NA)
        sender.send_all_windowed(sent)
        clerk.wait(path("one"), 3)
        (other,) = Letters(sender.guid, "two").several(1, body=b"m" * 5000, acks=ACK_NA)
        (late,) = [Letters(sender.guid, "two").make(message_id=99, body=b"m" * 5000, acks=ACK_NA)]
        del other
        sender.transmit([late])
        packets = sender.read_to_end()
        assert not sender.administration, packets
        assert [entry.message for entry in sender.table] == [late]
        with Poster(machine.appliance.srmp_address) as poster:  # SR-6
            assert poster.connect().post(Mail(to=url("two"), body=b"m" * 5000)) == 500
        assert clerk.receive(path("one")) is not None
        sender.resume()
        sender.send_all_windowed()
        (held,) = clerk.wait(path("two"), 1)
        assert held.id == ids([late])[0]
    assert (clerk.purge(path("one")), clerk.purge(path("two"))) == (2, 1)


def test_what_waits_counts_after_a_rebuild(machine: Machine) -> None:  # DM-31, design 3.2
    clerk, appliance = machine.clerk, machine.appliance
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        sender.send_all_windowed(Letters(sender.guid, "one").several(3, body=b"m" * 5000))
    clerk.wait(path("one"), 3)
    size = clerk.info(path("one"))["bytes"]
    appliance.restart(empty_data=True, kill=True)
    assert clerk.info(path("one"))["bytes"] == size
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        sender.transmit(Letters(sender.guid, "two").several(1, body=b"m" * 5000))
        sender.read_to_end()
        assert len(sender.table) == 1
    assert clerk.purge(path("one")) == 3
