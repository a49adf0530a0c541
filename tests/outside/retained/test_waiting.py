"""Readers who wait, and more readers than messages. DM-21, DM-23; data-model.md 2.5, 2.7"""

import threading

import pytest

from tests.outside.appliance import Appliance
from tests.outside.rawpeer import Recorder
from tests.outside.retained.bench import Letters, ids
from tests.outside.retained.clerk import CUT_OFF, Clerk, RefusedError, Seen, Waiting, path
from tests.support.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
WAITS = path("waits")


def wait_in_turn(clerk: Clerk, count: int) -> list[Waiting]:
    """Each one is seen to wait before the next comes."""
    made = []
    for number in range(1, count + 1):
        made.append(Waiting(clerk, WAITS))
        eventually(lambda number=number: clerk.info(WAITS)["readers"] == number)  # type: ignore[misc]
    return made


def test_first_come_first_served(clerk: Clerk, sender: Recorder) -> None:
    """DM-23: one destructive waiter per arrival, FIFO."""
    waiting = wait_in_turn(clerk, 4)
    letters = Letters(sender.guid, "waits")
    for number, reader in enumerate(waiting, 1):
        (letter,) = letters.several(1)
        sender.send_all_windowed([letter])
        got = reader.result()
        assert got is not None
        assert got.id == ids([letter])[0]
        assert [one.is_over for one in waiting] == [True] * number + [False] * (4 - number)
    assert clerk.count(WAITS) == 0


def test_nobody_waits_longer_than_asked(clerk: Clerk) -> None:  # 2.7: IO_TIMEOUT
    assert clerk.receive(WAITS, wait_s=0.3) is None
    assert clerk.receive(WAITS) is None
    assert clerk.info(WAITS)["readers"] == 0


def test_a_reader_that_went_away_takes_nothing(clerk: Clerk, sender: Recorder) -> None:
    """DM-22: whoever hangs up while he waits gets no message, and nobody lacks one."""
    first = clerk.ask_to_receive(WAITS, wait_s=60)
    eventually(lambda: clerk.info(WAITS)["readers"] == 1)
    other = Waiting(clerk, WAITS)
    eventually(lambda: clerk.info(WAITS)["readers"] == 2)
    first.close()
    eventually(lambda: clerk.info(WAITS)["readers"] == 1)
    (letter,) = letters = Letters(sender.guid, "waits").several(1)
    sender.send_all_windowed(letters)
    got = other.result()
    assert got is not None
    assert got.id == ids([letter])[0]
    assert clerk.count(WAITS) == 0


def test_a_stop_ends_the_waits(appliance: Appliance, clerk: Clerk, sender: Recorder) -> None:
    """Nothing is taken for a reader that cannot be told, and the appliance stops as it should."""
    waiting = wait_in_turn(clerk, 2)
    appliance.restart(empty_data=False)
    for one in waiting:
        with pytest.raises((*CUT_OFF, RefusedError)):  # told so, or cut off
            one.result()
    assert "Traceback" not in appliance.log, appliance.log
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(Letters(sender.guid, "waits").several(1))
    clerk.wait(WAITS, 1)
    assert clerk.purge(WAITS) == 1


def test_many_readers_share_a_queue(clerk: Clerk, sender: Recorder) -> None:
    """DM-21: what one reader has taken, no other one sees; in order for each of them."""
    sent = Letters(sender.guid, "waits").several(200)
    taken: list[list[Seen]] = [[] for _ in range(4)]

    def take(mine: list[Seen]) -> None:
        while (one := clerk.receive(WAITS, wait_s=3)) is not None:
            mine.append(one)

    readers = [threading.Thread(target=take, args=(mine,), daemon=True) for mine in taken]
    for reader in readers:
        reader.start()
    sender.send_all_windowed(sent)
    for reader in readers:
        reader.join(90)
        assert not reader.is_alive()
    assert sorted(one.id for mine in taken for one in mine) == sorted(ids(sent))
    for mine in taken:
        assert [one.lookup_id for one in mine] == sorted(one.lookup_id for one in mine)
    assert clerk.count(WAITS) == 0
