"""Which acknowledgments a message gets when it leaves: every way out x every request x delivery.

data-model.md 2.12, DM-17, DM-18, DM-19; MS-MQQB 3.1.7.2.1, 3.1.7.15. Every message of a way out
is in its queue before the first one leaves, and until then only arrivals were told.
"""

import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import pytest

from tests.outside.appliance import Appliance
from tests.outside.expected import expected_administration_ack, expected_final_ack
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_NR,
    ACK_PA,
    ACK_PR,
    USER_JN,
    USER_JP,
    Message,
    private,
)
from tests.outside.rawparse import Received
from tests.outside.rawpeer import Recorder
from tests.outside.rawsender import soon
from tests.outside.retained.bench import ADMIN, Letters
from tests.outside.retained.clerk import DEADLETTER, DEADXACT, Clerk, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
TTBR_S = 4  # long enough to send all of them, short enough to wait for


@dataclass(frozen=True, slots=True)
class Kind:
    """Journaling of the source, and whether a final ack is asked for."""

    journal: int = 0
    final_ack: bool = False


PLAIN = {"recoverable": Kind(), "JN": Kind(USER_JN), "JP": Kind(USER_JP)}
ORDERED = {
    "transactional": Kind(),
    "FA": Kind(final_ack=True),
    "JN": Kind(USER_JN),
    "JP": Kind(USER_JP),
}


@dataclass(frozen=True, slots=True)
class Way:
    """How messages leave, and the class of what is told then."""

    name: str
    outcome: int
    leave: Callable[[Clerk, str, int], object]
    ttbr: int = 0xFFFFFFFF


def _receive(clerk: Clerk, queue: str, count: int) -> None:
    assert len(clerk.receive_all(queue)) == count


def _purge(clerk: Clerk, queue: str, count: int) -> None:
    assert clerk.purge(queue) == count


def _expire(clerk: Clerk, queue: str, count: int) -> None:
    eventually(lambda: clerk.count(queue) == 0)


def _delete(clerk: Clerk, queue: str, count: int) -> None:
    assert clerk.delete(queue) == count


WAYS = {
    "received": Way("acked", 0x4000, _receive),
    "purged": Way("acked", 0xC001, _purge),
    "expired": Way("acked", 0xC002, _expire, TTBR_S),
    "deleted": Way("doomed", 0xC000, _delete),
}


def wanted(message: Message, outcome: int) -> tuple[list[int], list[int]]:
    """What goes to the administration queue, and the final acks. Table 2.12"""
    administration = [0x0002] if message.acks & ACK_PA else []
    if message.acks & (ACK_PR if outcome == 0x4000 else ACK_NR):
        administration.append(outcome)
    tx = message.tx
    is_final = tx is not None and (tx.final_ack or message.journal)  # DM-18
    return administration, [outcome] if is_final else []


def told(sender: Recorder) -> dict[bytes, tuple[list[int], list[int]]]:
    """By the 20 bytes of the id they speak of; in the order they came."""
    found: dict[bytes, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for packet in sender.kept:
        if packet.is_final_ack:
            found[packet.body[16:]][1].append(packet.message_class)
        elif not packet.is_order_ack:
            found[packet.correlation][0].append(packet.message_class)
    return found


def key(message: Message) -> bytes:
    return message.source.bytes_le + struct.pack("<I", message.message_id)


@contextmanager
def queue_for(clerk: Clerk, appliance: Appliance, way: Way, *, ordered: bool) -> Iterator[str]:
    name = f"{way.name}tx" if ordered else way.name
    if way.name == "doomed":
        topic = appliance.topic(name)
        clerk.create(path(name), transactional=ordered, topic=topic)
    yield name


def everything(letters: Letters, kinds: dict[str, Kind], way: Way) -> list[Message]:
    now = int(time.time())
    made = []
    for (label, kind), acks in product(kinds.items(), range(16)):
        more = {"final_ack": kind.final_ack} if kinds is ORDERED else {}
        made.append(
            letters.make(
                acks=acks,
                journal=kind.journal,
                label=f"{label} {acks:X}",
                ttbr=way.ttbr,
                sent_time=now,
                app=7,
                correlation=bytes(range(20)),
                **more,
            )
        )
    return made


@pytest.mark.parametrize("ordered", [False, True], ids=["plain", "transactional"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_told_when_it_leaves(
    appliance: Appliance, clerk: Clerk, sender: Recorder, way: str, *, ordered: bool
) -> None:
    how = WAYS[way]
    letters = clerk.holds(DEADLETTER)
    with queue_for(clerk, appliance, how, ordered=ordered) as name:
        mine = Letters(sender.guid, name, transactional=ordered)
        sent = everything(mine, ORDERED if ordered else PLAIN, how)
        sender.send_all_windowed(sent, soon(30))
        if way != "expired":
            clerk.wait(path(name), len(sent))
            arrivals = [one for one in sent if one.acks & ACK_PA]
            sender.until(lambda: len(sender.administration) == len(arrivals))
            # D5, issue: nothing of the receive stage before a reader has removed it.
            sender.expect_nothing(0.7)
            assert {one.message_class for one in sender.administration} == {0x0002}
            assert not [one for one in sender.kept if one.is_final_ack]
        how.leave(clerk, path(name), len(sent))
    check(appliance, sender, sent, how.outcome)
    # 2.14: JN and too old -> our DEADLETTER, if it is plain; never DEADXACT, which is the source's.
    dead = [one for one in sent if one.journal == USER_JN and not ordered and way == "expired"]
    found = clerk.wait(DEADLETTER, letters + len(dead))[letters:]
    assert {one.id for one in found} == {f"{one.source}\\{one.message_id}" for one in dead}
    assert {one.kind for one in found} <= {0xC002}
    assert clerk.holds(DEADXACT) == 0


def check(appliance: Appliance, sender: Recorder, sent: list[Message], outcome: int) -> None:
    expected = {key(one): wanted(one, outcome) for one in sent}
    count = sum(len(admin) + len(final) for admin, final in expected.values())

    def came() -> int:
        return sum(len(admin) + len(final) for admin, final in told(sender).values())

    sender.until(lambda: came() >= count, 30)
    sender.expect_nothing(0.7)  # and no more
    found = told(sender)
    wrong = [
        f"{one.label}: got {found[key(one)]}, not {expected[key(one)]}"
        for one in sent
        if found[key(one)] != expected[key(one)]
    ]
    assert not wrong, wrong
    by_key = {key(one): one for one in sent}
    for packet in sender.kept:
        if not packet.is_order_ack:
            check_bytes(appliance, sender, packet, by_key)


def check_bytes(
    appliance: Appliance, sender: Recorder, packet: Received, by_key: dict[bytes, Message]
) -> None:
    """DM-19: a positive one has no body, a negative one the original's; QB-113, 2.18"""
    if packet.is_final_ack:
        acked = by_key[packet.body[16:]]
        assert acked.tx is not None
        assert packet.raw == expected_final_ack(
            packet,
            server=appliance.guid,
            peer=sender.local_ip,
            tx=acked.tx,
            source=acked.source,
            message_id=acked.message_id,
            message_class=packet.message_class,
        ), acked.label
        return
    acked = by_key[packet.correlation]
    assert packet.raw == expected_administration_ack(
        packet,
        server=appliance.guid,
        acked=acked,
        message_class=packet.message_class,
        destination=private(ADMIN),
        queue_manager=acked.source,
    ), acked.label


def test_no_ack_of_an_ack(clerk: Clerk, sender: Recorder) -> None:  # DM-19, note 62
    letters = Letters(sender.guid, "acked")
    asks = ACK_PA | ACK_PR | ACK_NA | ACK_NR
    sent = [letters.make(acks=asks, message_class=kind) for kind in (0x4000, 0x0002, 0xC001)]
    sender.send_all_windowed(sent)
    clerk.wait(path("acked"), len(sent))
    assert clerk.receive(path("acked")) is not None
    assert clerk.purge(path("acked")) == 2
    sender.expect_nothing(1.0)
    assert not sender.kept


def test_acks_wait_for_a_sender_that_is_away(
    appliance: Appliance, clerk: Clerk
) -> None:  # design D1: they are in the outbox from the commit of the removal on
    letters = None
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        letters = Letters(sender.guid, "acked")
        (letter,) = letters.several(1, acks=ACK_PR)
        sender.send_all_windowed([letter])
        clerk.wait(path("acked"), 1)
    assert clerk.receive(path("acked")) is not None
    appliance.restart(empty_data=True, kill=True)
    with Recorder(appliance.binary_address, letter.source) as again:
        again.connect().handshake()
        again.until(lambda: again.administration)
        (ack,) = again.administration
        assert (ack.message_class, ack.correlation) == (0x4000, key(letter))
        again.expect_nothing(0.7)
