"""Bytes no Windows sender makes: the connection ends, nothing else does. MS-MQQB 3.1.5.1"""

import random
from uuid import uuid4

import psutil
import pytest

from tests.outside.appliance import Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.hostile import BROKEN_HANDSHAKES, MALFORMED, damaged, patched
from tests.outside.rawmsmq import (
    Message,
    SessionHeader,
    build,
    cp_request,
    ec_request,
    session_ack,
)
from tests.outside.rawsender import HungUpError, RawSender, soon
from tests.outside.records import of_source, read_topic

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("packet", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_packet_closes_without_a_word(
    appliance: Appliance, open_sender: OpenSender, packet: bytes
) -> None:  # QB-2, QB-3
    before = appliance.closed_for_a_reason()
    sender = open_sender()
    sender.send(packet)
    sender.expect_closed(soon(8))
    appliance.wait_for_reasons(before + 1)


@pytest.mark.parametrize("data", BROKEN_HANDSHAKES.values(), ids=BROKEN_HANDSHAKES.keys())
def test_a_broken_handshake_closes_without_a_word(
    appliance: Appliance, open_sender: OpenSender, data: bytes
) -> None:
    before = appliance.closed_for_a_reason()
    sender = open_sender(handshake=False)
    sender.send(data)
    sender.expect_closed(soon(8))
    appliance.wait_for_reasons(before + 1)


def test_a_short_parameters_packet_closes(open_sender: OpenSender) -> None:
    sender = open_sender(handshake=False)
    sender.establish()
    sender.send(patched(8, "<I", 24, cp_request())[:24])
    sender.expect_closed(soon(8))


def survives(sender: RawSender, data: bytes) -> None:
    """Whatever it makes of the data, what it answers is well formed and then it hangs up."""
    try:
        sender.send(data)
        sender.half_close()
    except HungUpError:
        return
    sender.sent = sender.sent_recoverable = 1  # the damage may be harmless, then it is acked
    sender.read_to_end(soon(10))


def check_alive(appliance: Appliance, sender: RawSender, message_id: int) -> None:
    """A session opened before the storm goes on as if nothing had been."""
    sender.send_all_windowed(
        [
            Message(
                source=sender.guid,
                message_id=message_id,
                destination=queue("plain"),
                recoverable=True,
                body=b"alive",
            )
        ]
    )
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("plain")), sender.guid)
    assert len(records) == message_id
    assert appliance.is_ready()


@pytest.mark.timeout(240)
def test_random_damage_harms_nobody_else(appliance: Appliance, open_sender: OpenSender) -> None:
    witness = open_sender()
    check_alive(appliance, witness, 1)
    for seed in range(300):
        with RawSender(appliance.binary_address) as sender:
            sender.connect().handshake()
            survives(sender, damaged(seed))
    check_alive(appliance, witness, 2)


def resident(appliance: Appliance) -> int:
    process = psutil.Process(appliance.pid)
    family = [process, *process.children(recursive=True)]
    return sum(int(member.memory_info().rss) for member in family)


def bad_connection(appliance: Appliance, number: int) -> None:
    packets = list(MALFORMED.values())
    with RawSender(appliance.binary_address) as sender:
        sender.connect()
        data = random.Random(number).randbytes(2000)
        if number % 2:
            data = ec_request(uuid4()) + cp_request() + packets[number % len(packets)]
        try:
            sender.send(data)
            sender.half_close()
            sender.read_to_end(soon(10))
        except HungUpError:
            return


@pytest.mark.timeout(300)
def test_two_thousand_bad_connections_leave_no_memory_behind(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    witness = open_sender()
    check_alive(appliance, witness, 1)
    for number in range(300):  # pools and caches fill first
        bad_connection(appliance, number)
    before = resident(appliance)
    closed = appliance.closed_for_a_reason()
    for number in range(2000):
        bad_connection(appliance, number)
    assert resident(appliance) - before < 16 * 1024 * 1024
    appliance.wait_for_reasons(closed + 2000)
    check_alive(appliance, witness, 2)


def test_a_claim_of_four_megabytes_takes_no_memory(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    """The largest legal PacketSize, then silence: memory follows what came, not what was said."""
    before = resident(appliance)
    senders = [open_sender() for _ in range(40)]
    for sender in senders:
        sender.send(patched(8, "<I", 0x400000))
        sender.expect_nothing(0)
    assert resident(appliance) - before < 60 * 1024 * 1024  # 40 x 4 MiB would be 160


def test_garbage_behind_a_good_message_takes_nothing_back(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    sender = open_sender()
    good = Message(
        source=sender.guid, message_id=1, destination=queue("fuzz"), recoverable=True, body=b"ok"
    )
    sender.send(build(good) + session_ack(SessionHeader(sent=1, sent_recoverable=1)) + bytes(64))
    sender.sent = sender.sent_recoverable = 1
    sender.read_to_end(soon(12))
    again = open_sender(sender.guid)
    again.send_all_windowed([good])
    records = of_source(read_topic(appliance.bootstrap, appliance.topic("fuzz")), sender.guid)
    assert [record.value for record in records] == [b"ok"]
