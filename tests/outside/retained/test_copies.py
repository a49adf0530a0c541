"""Target journals and dead letters. DM-12, DM-30; data-model.md 2.14"""

import time

import pytest

from tests.outside.appliance import Appliance
from tests.outside.rawmsmq import ACK_NA, USER_JN, build
from tests.outside.rawpeer import Recorder
from tests.outside.records import read_topic
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import DEADLETTER, MACHINE_JOURNAL, Clerk, RefusedError, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
JOURNAL = f"{path('kept')};journal"


def test_what_is_received_is_copied_to_the_journal(
    appliance: Appliance, clerk: Clerk, sender: Recorder
) -> None:
    """DM-30: on receive only; 2.6: the copy has a lookup id of its own; MS-MQDMPR 3.1.1.12"""
    before = len(read_topic(appliance.bootstrap, f"{appliance.prefix}-kept.journal"))
    held_before = clerk.holds(JOURNAL)
    letters = Letters(sender.guid, "kept")
    sent = letters.several(3, priority=5, app=99)
    sender.send_all_windowed(sent)
    held = clerk.wait(path("kept"), 3)
    assert clerk.holds(JOURNAL) == held_before  # not when it arrives
    taken = [clerk.receive(path("kept")) for _ in range(2)]
    copies = clerk.wait(JOURNAL, held_before + 2)[held_before:]
    assert [one.id for one in copies] == ids(sent[:2])
    assert [one.body for one in copies] == [one.body for one in sent[:2]]
    assert [(one.kind, one.priority) for one in copies] == [(0, 5)] * 2
    assert not {one.lookup_id for one in copies} & {one.lookup_id for one in held}
    assert taken == held[:2]
    records = read_topic(appliance.bootstrap, f"{appliance.prefix}-kept.journal")
    assert sorted(one.header["msmq.id"].decode() for one in records[before:]) == sorted(
        ids(sent[:2])
    )
    assert clerk.purge(path("kept")) == 1  # purge: no copy
    sender.send_all_windowed([letters.make(ttbr=1, sent_time=int(time.time()) - 60)])
    eventually(lambda: clerk.count(path("kept")) == 0)
    assert clerk.holds(JOURNAL) == held_before + 2  # nor expiry


def test_a_journal_is_a_queue(appliance: Appliance, clerk: Clerk, sender: Recorder) -> None:
    """DM-14: to be read and purged; what leaves it is not journaled again, and nothing is told."""
    clerk.purge(JOURNAL)
    letters = Letters(sender.guid, "kept")
    sender.send_all_windowed(letters.several(3))
    clerk.wait(path("kept"), 3)
    clerk.receive_all(path("kept"))
    copies = clerk.wait(JOURNAL, 3)
    assert clerk.receive(JOURNAL, lookup_id=copies[1].lookup_id) == copies[1]
    appliance.restart(empty_data=True, kill=True)
    assert clerk.peek(JOURNAL) == [copies[0], copies[2]]
    assert clerk.purge(JOURNAL) == 2
    assert clerk.holds(JOURNAL) == 0
    assert clerk.holds(MACHINE_JOURNAL) == 0  # 2.14: ours stays empty


def test_a_full_journal_loses_the_copy_only(clerk: Clerk, sender: Recorder) -> None:
    """DM-30: over quota the copy is lost, the operation succeeds."""
    sent = Letters(sender.guid, "brief").several(3, body=b"x" * 600)
    assert len(build(sent[0])) * 2 > 1024
    sender.send_all_windowed(sent)
    clerk.wait(path("brief"), 3)
    assert [one.id for one in clerk.receive_all(path("brief"))] == ids(sent)
    journal = f"{path('brief')};journal"
    assert [one.id for one in clerk.wait(journal, 1)] == ids(sent[:1])
    assert clerk.purge(journal) == 1


def test_over_quota_the_dead_letter_has_the_class_of_its_failure(
    clerk: Clerk, sender: Recorder
) -> None:  # DM-12: 8003, and local dead letter only for plain + JN; 2.14: its class is rewritten
    before = clerk.holds(DEADLETTER)
    letters = Letters(sender.guid, "small")
    big = [letters.make(body=b"b" * 8192, journal=jn, acks=ACK_NA) for jn in (USER_JN, 0)]
    sender.send_all_windowed(big)
    [dead] = clerk.wait(DEADLETTER, before + 1)[before:]
    assert (dead.id, dead.kind, dead.body) == (ids(big)[0], 0x8003, b"b" * 8192)
    sender.until(lambda: len(sender.administration) == 2)
    assert {one.message_class for one in sender.administration} == {0x8003}
    assert clerk.receive(DEADLETTER, lookup_id=dead.lookup_id) == dead
    assert clerk.holds(DEADLETTER) == before


@pytest.mark.parametrize("target", ["kept;journal", "kept;sub"])
def test_nobody_sends_to_a_part_of_a_queue(
    appliance: Appliance, clerk: Clerk, sender: Recorder, target: str
) -> None:  # DM-14
    before = clerk.holds(JOURNAL)
    (letter,) = Letters(sender.guid, target).several(1)
    sender.send_all_windowed([letter])
    assert clerk.holds(JOURNAL) == before
    assert clerk.count(path("kept")) == 0
    rejected = read_topic(appliance.bootstrap, appliance.rejects_topic)
    assert ids([letter])[0] in [one.header["msmq.id"].decode() for one in rejected]


def test_a_system_queue_is_no_target_of_moves(clerk: Clerk, sender: Recorder) -> None:  # DM-14
    sender.send_all_windowed(Letters(sender.guid, "kept").several(1))
    (held,) = clerk.wait(path("kept"), 1)
    for target in (JOURNAL, DEADLETTER):
        with pytest.raises(RefusedError) as refused:
            clerk.move(path("kept"), held.lookup_id, target)
        assert refused.value.code == "0xC00E0020"
    assert clerk.purge(path("kept")) == 1
