"""Subqueues. DM-29; data-model.md 2.11; MS-MQRR 3.1.4.10"""

import time

import pytest

from tests.outside.appliance import Appliance
from tests.outside.rawmsmq import ACK_NR, ACK_PA, ACK_PR
from tests.outside.rawpeer import Recorder
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import Clerk, RefusedError, Waiting, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
HERE, RETRY, POISON = path("moving"), f"{path('moving')};retry", f"{path('moving')};poison"


def test_a_move_gives_a_new_place_and_no_ack(
    appliance: Appliance, clerk: Clerk, sender: Recorder
) -> None:
    """DM-29: same family, new lookup id, MoveCounter + 1, no ack; then it ends as any message."""
    sent = Letters(sender.guid, "moving").several(3, acks=ACK_PA | ACK_PR | ACK_NR, priority=6)
    sender.send_all_windowed(sent)
    held = clerk.wait(HERE, 3)
    sender.until(lambda: len(sender.administration) == 3)
    place = clerk.move(HERE, held[1].lookup_id, RETRY)
    assert place > max(one.lookup_id for one in held)
    assert place >> 56 == 7 - 6  # its priority moves with it
    assert clerk.peek(HERE) == [held[0], held[2]]
    [moved] = clerk.peek(RETRY)
    assert (moved.id, moved.body, moved.lookup_id) == (held[1].id, held[1].body, place)
    assert moved.headers["msmq.sub.moves"] == "1"
    assert abs(int(moved.headers["msmq.sub.moved"]) - time.time()) < 300  # T-22: seconds
    sender.expect_nothing(0.7)
    appliance.restart(empty_data=True, kill=True)
    assert clerk.peek(RETRY) == [moved]
    assert clerk.info(HERE)["subqueues"] == {"retry": 1}
    again = clerk.move(RETRY, place, POISON)  # between two of them
    back = clerk.move(POISON, again, HERE)
    assert [one.lookup_id for one in clerk.peek(HERE)] == [
        held[0].lookup_id,
        held[2].lookup_id,
        back,
    ]
    assert clerk.peek_at(HERE, back).headers["msmq.sub.moves"] == "3"
    assert clerk.info(HERE)["subqueues"] == {}
    sender.resume(appliance.binary_address)
    assert clerk.receive(HERE, lookup_id=back) is not None
    sender.until(lambda: any(one.message_class == 0x4000 for one in sender.administration))
    assert clerk.purge(HERE) == 2


def test_what_cannot_be_moved(clerk: Clerk, sender: Recorder) -> None:  # 2.11
    sender.send_all_windowed(Letters(sender.guid, "moving").several(1))
    (held,) = clerk.wait(HERE, 1)
    for target, code in (
        (f"{path('held')};retry", "0xC000000D"),
        (HERE, "0xC000000D"),
        (f"{path('nowhere')};retry", "0xC00E0003"),
    ):
        with pytest.raises(RefusedError) as refused:
            clerk.move(HERE, held.lookup_id, target)
        assert refused.value.code == code, target
    with pytest.raises(RefusedError) as refused:
        clerk.move(HERE, held.lookup_id + 1, RETRY)
    assert refused.value.code == "0xC00E0088"
    assert clerk.purge(HERE) == 1


def test_a_move_wakes_who_waits(clerk: Clerk, sender: Recorder) -> None:  # T-10
    sender.send_all_windowed(Letters(sender.guid, "moving").several(1))
    (held,) = clerk.wait(HERE, 1)
    clerk.move(HERE, held.lookup_id, RETRY)
    waiting = Waiting(clerk, HERE)
    eventually(lambda: clerk.info(HERE)["readers"] == 1)
    place = clerk.move(RETRY, clerk.peek(RETRY)[0].lookup_id, HERE)
    got = waiting.result()
    assert got is not None
    assert (got.id, got.lookup_id) == (held.id, place)


def test_purge_of_a_queue_leaves_its_subqueues(clerk: Clerk, sender: Recorder) -> None:  # 2.11
    sent = Letters(sender.guid, "moving").several(2)
    sender.send_all_windowed(sent)
    held = clerk.wait(HERE, 2)
    clerk.move(HERE, held[0].lookup_id, RETRY)
    assert clerk.purge(HERE) == 1
    assert [one.id for one in clerk.peek(RETRY)] == ids(sent[:1])
    assert clerk.purge(RETRY) == 1
