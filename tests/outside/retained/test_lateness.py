"""Time to be received. DM-28; data-model.md 2.14"""

import time

import pytest

from tests.outside.appliance import Appliance
from tests.outside.rawmsmq import ACK_NA, ACK_NR, ACK_PA, USER_JN
from tests.outside.rawpeer import Recorder
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import DEADLETTER, Clerk, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
LATE = path("late")


def test_from_the_sent_time_on(clerk: Clerk, sender: Recorder) -> None:
    """DM-28: deadline = SentTime + TTBR, infinite is never; not before it."""
    now, letters = int(time.time()), Letters(sender.guid, "late")
    stays = letters.make()
    soon = letters.make(sent_time=now - 10, ttbr=13)
    later = letters.make(sent_time=now, ttbr=3600)
    sender.send_all_windowed([stays, soon, later])
    assert [one.id for one in clerk.wait(LATE, 3)] == ids([stays, soon, later])
    held = clerk.wait(LATE, 2)
    assert time.time() >= now + 3
    assert [one.id for one in held] == ids([stays, later])
    assert clerk.purge(LATE) == 2


def test_too_late_already_when_it_arrives(clerk: Clerk, sender: Recorder) -> None:
    """MS-MQMQ 2.2.18.1.6: over before arrival is 8002, with NA."""
    letters = Letters(sender.guid, "late")
    sent = [
        letters.make(ttbr=3, sent_time=int(time.time()) - 60, acks=ACK_NA | ACK_NR),
        letters.make(ttbr=5, sent_time=int(time.time()) - 60, acks=ACK_NA, journal=USER_JN),
    ]
    before = clerk.holds(DEADLETTER)
    sender.send_all_windowed(sent)
    sender.until(lambda: len(sender.administration) == 2)
    assert {one.message_class for one in sender.administration} == {0x8002}
    assert clerk.receive(LATE) is None
    assert clerk.count(LATE) == 0
    [dead] = clerk.wait(DEADLETTER, before + 1)[before:]
    assert (dead.id, dead.kind) == (ids(sent)[1], 0x8002)


def test_no_time_to_be_received(clerk: Clerk, sender: Recorder) -> None:
    """MS-MQDMPR 3.1.2.4: 0 "expires immediately", in the queue (3.1.7.1.9): PA is answered, then
    0xC002 (3.1.7.2.7), and a dead letter with that class."""
    letters = Letters(sender.guid, "late")
    one = letters.make(ttbr=0, acks=ACK_PA | ACK_NA | ACK_NR, journal=USER_JN)
    before = clerk.holds(DEADLETTER)
    sender.send_all_windowed([one])
    sender.until(lambda: len(sender.administration) == 2)
    assert [each.message_class for each in sender.administration] == [0x0002, 0xC002]
    assert clerk.receive(LATE) is None
    [dead] = clerk.wait(DEADLETTER, before + 1)[before:]
    assert (dead.id, dead.kind) == (ids([one])[0], 0xC002)


def test_what_grows_too_old_while_the_appliance_is_down(appliance: Appliance, clerk: Clerk) -> None:
    """It is gone, told and a dead letter once, whenever the appliance is back. DM-17, DM-28"""
    before = clerk.holds(DEADLETTER)
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        letters = Letters(sender.guid, "late")
        now = int(time.time())
        sent = letters.several(20, ttbr=4, sent_time=now, acks=ACK_NR, journal=USER_JN)
        sender.send_all_windowed(sent)
        assert len(clerk.wait(LATE, 20)) == 20
    appliance.kill()
    eventually(lambda: time.time() > now + 6)
    appliance.start()
    with Recorder(appliance.binary_address, sender.guid) as again:
        again.connect().handshake()
        again.until(lambda: len(again.administration) >= 20)
        assert [one.message_class for one in again.administration] == [0xC002] * 20
        again.expect_nothing(0.7)
        assert len({one.correlation for one in again.administration}) == 20
    assert clerk.count(LATE) == 0
    dead = clerk.wait(DEADLETTER, before + 20)[before:]
    assert sorted(one.id for one in dead) == sorted(ids(sent))
