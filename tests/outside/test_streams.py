"""Exactly once, in order: duplicates, gaps, sequences, restarts. MS-MQQB 3.1.5.8.1, 3.1.5.8.6"""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import Message, Name, Tx
from tests.outside.rawparse import SessionAck
from tests.outside.rawsender import LOCAL, RawSender, soon
from tests.outside.records import Record, of_source, read_topic

pytestmark = pytest.mark.kafka
SEQUENCE = 0x65000000_00000003


@pytest.fixture(scope="module")
def settings() -> Settings:
    """A router may bring messages of others: here every sender is one."""
    return Settings(top={"routers": [LOCAL]})


def plain(source: UUID, message_id: int, *, recoverable: bool = True) -> Message:
    return Message(
        source=source,
        message_id=message_id,
        destination=queue("plain"),
        body=b"plain %d" % message_id,
        recoverable=recoverable,
    )


def step(
    source: UUID,
    number: int,
    previous: int | None = None,
    *,
    sequence: int = SEQUENCE,
    destination: Name | None = None,
) -> Message:
    previous = number - 1 if previous is None else previous
    return Message(
        source=source,
        message_id=sequence % 1000 * 1000 + number,
        destination=destination or queue("orders"),
        body=b"%x/%d" % (sequence & 0xFFFF, number),
        tx=Tx(sequence_id=sequence, number=number, previous=previous),
    )


def values(appliance: Appliance, name: str, source: UUID) -> list[bytes]:
    return [record.value for record in records_of(appliance, name, source)]


def records_of(appliance: Appliance, name: str, source: UUID) -> list[Record]:
    return of_source(read_topic(appliance.bootstrap, appliance.topic(name)), source)


def order_ack_after(sender: RawSender, *messages: Message) -> tuple[int, int]:
    """Send and return (sequence, number) of the order ack that follows."""
    sender.transmit(messages, keep=False)
    sequence, number, previous = sender.read_user(soon(12)).sequence
    assert previous == number - 1
    settle(sender)
    return sequence, number


def settle(sender: RawSender) -> None:
    """Until the session acks have caught up, so that the next packet answers what is sent next."""
    while sender.in_flight:
        assert isinstance(sender.read_packet(soon(12)), SessionAck)


@pytest.mark.parametrize("recoverable", [True, False], ids=["recoverable", "express"])
def test_a_plain_duplicate_is_acked_and_dropped(
    appliance: Appliance, open_sender: OpenSender, recoverable: bool
) -> None:  # QB-70, QB-71, DM-10
    sender = open_sender(window=2)
    message = plain(sender.guid, 1, recoverable=recoverable)
    for number in (1, 2, 3):
        sender.transmit([message])
        settle(sender)
        assert sender.acked == number
    sender.close()
    other = open_sender(uuid4())  # the same message over another machine's session
    other.send_all_windowed([message, plain(sender.guid, 2)], soon(30))
    assert values(appliance, "plain", sender.guid) == [b"plain 1", b"plain 2"]


def test_both_parts_of_the_id_count(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # CONFLICT-7
    sender = open_sender()
    other = uuid4()
    sender.send_all_windowed([plain(sender.guid, 77), plain(other, 77)])
    assert values(appliance, "plain", sender.guid) == [b"plain 77"]
    assert values(appliance, "plain", other) == [b"plain 77"]


@pytest.mark.parametrize("kill", [False, True], ids=["terminated", "killed"])
def test_duplicates_after_a_restart_on_an_empty_data_folder(
    appliance: Appliance, open_sender: OpenSender, kill: bool
) -> None:  # design 3.2, DM-10, QB-80
    sender = open_sender()
    source = sender.guid
    old = [plain(source, 1), plain(source, 2)]
    steps = [step(source, number) for number in (1, 2, 3)]
    sender.send_all_windowed(old + steps)
    sender.close()
    appliance.restart(empty_data=True, kill=kill)
    again = open_sender(source)
    assert again.server == appliance.guid
    again.send_all_windowed([*old, plain(source, 3)])
    assert order_ack_after(again, steps[1]) == (SEQUENCE, 3)  # DM-16: where the old one stopped
    assert order_ack_after(again, step(source, 4)) == (SEQUENCE, 4)
    assert values(appliance, "plain", source) == [b"plain 1", b"plain 2", b"plain 3"]
    assert values(appliance, "orders", source) == [b"3/1", b"3/2", b"3/3", b"3/4"]


def test_gaps_are_legal(appliance: Appliance, open_sender: OpenSender) -> None:  # QB-82
    sender = open_sender()
    source = sender.guid
    assert order_ack_after(sender, step(source, 5, 0)) == (SEQUENCE, 5)
    assert order_ack_after(sender, step(source, 9, 5)) == (SEQUENCE, 9)
    assert order_ack_after(sender, step(source, 12, 3)) == (SEQUENCE, 12)
    assert values(appliance, "orders", source) == [b"3/5", b"3/9", b"3/12"]


def test_what_is_out_of_order_is_dropped_without_a_word(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-83, QB-85, QB-86
    sender = open_sender()
    source = sender.guid
    assert order_ack_after(sender, step(source, 1)) == (SEQUENCE, 1)
    assert order_ack_after(sender, step(source, 3)) == (SEQUENCE, 1)  # 2 is missing
    assert order_ack_after(sender, step(source, 4, 3)) == (SEQUENCE, 1)
    assert order_ack_after(sender, step(source, 2), step(source, 3)) == (SEQUENCE, 3)
    assert order_ack_after(sender, step(source, 2)) == (SEQUENCE, 3)
    assert values(appliance, "orders", source) == [b"3/1", b"3/2", b"3/3"]


def test_nothing_is_acked_before_the_first_acceptance(open_sender: OpenSender) -> None:  # QB-86
    sender = open_sender()
    sender.transmit([step(sender.guid, 2, 1)], keep=False)
    settle(sender)
    sender.expect_nothing(1.5)


def test_a_new_sequence_begins_and_the_old_one_ends(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-81
    sender = open_sender()
    source = sender.guid
    newer, newest = SEQUENCE + 1, SEQUENCE + (1 << 32) - 2  # the timestamp is the high half
    assert order_ack_after(sender, step(source, 1), step(source, 2)) == (SEQUENCE, 2)
    assert order_ack_after(sender, step(source, 4, 3, sequence=newer)) == (SEQUENCE, 2)
    assert order_ack_after(sender, step(source, 4, 0, sequence=newer)) == (newer, 4)
    assert order_ack_after(sender, step(source, 3)) == (newer, 4)  # late, of the old sequence
    assert order_ack_after(sender, step(source, 1, sequence=newest)) == (newest, 1)
    assert order_ack_after(sender, step(source, 5, sequence=newer)) == (newest, 1)
    assert values(appliance, "orders", source) == [b"3/1", b"3/2", b"4/4", b"1/1"]


def test_two_spellings_are_two_streams(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # DM-8, DM-33
    sender = open_sender()
    source = sender.guid
    for host in ("BRIDGE01", "bridge01"):
        destination = queue("orders", host)
        for number in (1, 2):
            message = step(source, number, destination=destination)
            message = replace(message, message_id=number + 10 * host.islower())
            assert order_ack_after(sender, message) == (SEQUENCE, number)
    assert sorted(values(appliance, "orders", source)) == [b"3/1", b"3/1", b"3/2", b"3/2"]


def test_the_stream_is_the_senders_not_the_sessions(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # QB-80, DM-8
    source = uuid4()
    for number in (1, 2, 3):
        relay = open_sender()  # another machine each time
        assert order_ack_after(relay, step(source, number)) == (SEQUENCE, number)
    assert values(appliance, "orders", source) == [b"3/1", b"3/2", b"3/3"]


@pytest.mark.timeout(240)
def test_killed_in_the_middle_nothing_is_lost_or_doubled(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # design D1, QB-53, QB-95
    sender = open_sender()
    source, total = sender.guid, 600
    messages = [
        replace(step(source, number), destination=queue("many")) for number in range(1, total + 1)
    ]
    sender.unsent.extend(messages)
    for acked in (100, 130):
        sender.send_all_windowed(deadline=soon(30), until_acked=acked)
        assert sender.in_flight
        appliance.restart(empty_data=True, kill=True)
        sender.resume(appliance.binary_address)
    sender.send_all_windowed(deadline=soon(90))
    assert values(appliance, "many", source) == [message.body for message in messages]
