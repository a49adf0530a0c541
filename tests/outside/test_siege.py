"""Many that mean harm, or nothing at all: memory stays bounded and a good session notices nothing.

The bounds on memory are of the process; what was measured stands beside them.
"""

from collections.abc import Iterator
from functools import partial
from uuid import UUID, uuid4

import pytest

from tests.outside.advisories import ADVISORIES, WITHOUT_HANDSHAKE, monsters
from tests.outside.appliance import Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.hostile import patched
from tests.outside.rawmsmq import Message, build, cp_request, ec_request
from tests.outside.rawsender import RawSender, soon
from tests.outside.records import of_source, read_topic
from tests.outside.siege import (
    Crowd,
    Witness,
    at_most,
    closed,
    connections,
    few_files,
    hung_up,
    read_to_end,
    reasons,
    together,
    wait_closed,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def witness(appliance: Appliance) -> Iterator[Witness]:
    eventually(lambda: connections(appliance) == 0)  # of the test before
    good = Witness(appliance)
    good.go_on(0)
    yield good
    good.stop()


def test_idle_sessions_are_small(appliance: Appliance, open_sender: OpenSender) -> None:
    with at_most(appliance, 500 * 64 // 1024):  # 64 KiB each; 7 KiB were measured
        idle = [open_sender() for _ in range(500)]
    idle[-1].send_all_windowed([message(idle[-1].guid)])


def test_five_thousand_half_open_connections(
    appliance: Appliance, open_sender: OpenSender, witness: Witness
) -> None:
    """From several addresses: one may have `listen.per_address`, see test_crowds."""
    gone = closed(appliance, "peer-closed")
    with at_most(appliance, 64), Crowd(appliance, 5000, 10) as crowd:  # 27: six KiB each
        crowd.wait_accepted()
        newcomer = open_sender()
        newcomer.send_all_windowed([message(newcomer.guid)])
        witness.go_on()
        crowd.leave()
    wait_closed(appliance, "peer-closed", gone + 5000)
    with (
        at_most(appliance, 16),
        Crowd(appliance, 2000, 10) as crowd,
    ):  # 0: in the place of the first
        crowd.wait_accepted()
        crowd.leave()
    witness.unharmed()


def test_more_connections_than_file_descriptors(
    appliance: Appliance, open_sender: OpenSender, witness: Witness
) -> None:
    """The oldest of those that say nothing make room; neither accept() nor the admin port fail."""
    before, lines = closed(appliance, "crowded"), len(appliance.lines)
    with few_files(appliance, 200), Crowd(appliance, 600) as crowd:
        wait_closed(appliance, "crowded", before + 400)
        assert hung_up(crowd.sockets[0])
        newcomer = open_sender()
        newcomer.send_all_windowed([message(newcomer.guid)])
        witness.go_on()
        assert connections(appliance) < 200
        assert not hung_up(crowd.sockets[-1])
    witness.unharmed()
    assert "out of system resource" not in "\n".join(appliance.lines[lines:])


def test_handshakes_byte_by_byte(appliance: Appliance, witness: Witness) -> None:
    """It is the init timer that ends them (tests/protocol), nothing else; nobody waits for them."""
    hello = ec_request(uuid4())
    with (
        at_most(appliance, 16),
        Crowd(appliance, 300) as begun,
        Crowd(appliance, 300) as silent,  # EstablishConnection, and then nothing
        Crowd(appliance, 10) as finished,
    ):
        begun.dribble(hello[:40])
        for one in silent.sockets:
            one.sendall(hello)
            assert len(one.recv(572)) == 572
        finished.dribble(hello)
        finished.dribble(cp_request())
        answers = [one.makefile("rb").read(572 + 32) for one in finished.sockets]
        assert {len(answer) for answer in answers} == {572 + 32}
        witness.go_on()
        assert not any(hung_up(one) for one in (*begun.sockets, *silent.sockets))
    witness.unharmed()


def test_large_packets_that_come_slowly(
    appliance: Appliance, open_sender: OpenSender, witness: Witness
) -> None:
    """Memory follows what came, not what was announced, and goes with the session."""
    body = bytes(3 << 20)
    with at_most(appliance, 96):  # 40 came, 160 were announced
        slow = [open_sender() for _ in range(40)]
        for sender in slow:
            packet = build(message(sender.guid, body=body))
            sender.send(patched(8, "<I", 0x400000, packet)[: 1 << 20])
        for _ in range(64):
            for sender in slow:
                sender.send(b"x")
        witness.go_on()
    for sender in slow:
        sender.close()
    late = open_sender()
    packet = build(message(late.guid, body=body))
    late.sent = late.sent_recoverable = 1
    for start in range(0, len(packet), 64 * 1024):
        late.send(packet[start : start + 64 * 1024])
    eventually(lambda: late.read_packet() and late.acked == 1)  # slow is not wrong
    witness.unharmed()


FLOODERS, FLOOD = 64, 32


def test_sixty_four_senders_that_ignore_the_window(appliance: Appliance, witness: Witness) -> None:
    """QB-50 binds the sender; a receiver has no rule against more. It reads what it can hold, TCP
    holds the rest: back-pressure. Nobody is closed, nothing is lost."""
    others = reasons(appliance)
    source = uuid4()  # of all, so that one shard has all the work
    body = bytes(64 * 1024)

    def flood(number: int) -> None:
        with RawSender(appliance.binary_address, source) as sender:
            sender.connect().handshake()
            first = number * FLOOD + 1
            sender.transmit([message(source, first + n, body, name="bulk") for n in range(FLOOD)])
            sender.send_all_windowed(deadline=soon(90))
            assert sender.acked == FLOOD

    with at_most(appliance, 384):  # 64 MiB that wait for Kafka, as messages and as records
        together([*(partial(flood, number) for number in range(FLOODERS)), witness.go_on])
    assert reasons(appliance) == others
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("bulk")), source)
    found = [int(record.header["msmq.id"].rpartition(b"\\")[2]) for record in records]
    assert len(found) == FLOODERS * FLOOD
    for number in range(FLOODERS):
        own = range(number * FLOOD + 1, (number + 1) * FLOOD + 1)
        assert [n for n in found if n in own] == list(own)
    witness.unharmed()


def test_packets_of_the_advisories(appliance: Appliance, witness: Witness) -> None:
    """Each ends its own connection, for a reason that is counted; what came before it counts."""
    expected, good = reasons(appliance), list[UUID]()
    with at_most(appliance, 16):
        for data, reason in ADVISORIES.values():
            with RawSender(appliance.binary_address) as sender:
                sender.connect().handshake()
                sender.send(build(message(sender.guid)) + data)
                read_to_end(sender)
                good.append(sender.guid)
                expected[reason] += 1
        for data, reason in WITHOUT_HANDSHAKE.values():
            with RawSender(appliance.binary_address) as sender:
                sender.connect().send(data)
                sender.expect_closed(soon(15))
                expected[reason] += 1
    eventually(lambda: reasons(appliance) == expected)
    witness.unharmed()
    records = read_topic(appliance.bootstrap, appliance.topic("fuzz"))
    assert [len(of_source(records, guid)) for guid in good] == [1] * len(good)


def test_messages_as_large_as_may_be(
    appliance: Appliance, open_sender: OpenSender, witness: Witness
) -> None:
    """Legal, so each gets its ack, whatever becomes of it; the session goes on."""
    sender = open_sender()
    with at_most(appliance, 128):
        sender.send_all_windowed(monsters(sender.guid))
    sender.send_all_windowed([message(sender.guid)])
    witness.unharmed()


def message(source: UUID, number: int = 1, body: bytes = b"good", name: str = "fuzz") -> Message:
    return Message(
        source=source, message_id=number, destination=queue(name), body=body, recoverable=True
    )
