"""Journal and dead-letter copies that a shard makes, and the quota of the machine.

MS-MQDMPR 3.1.1.12: "If the quota for the dead-letter queue is exceeded, the message MUST be
discarded"; 3.1.7.1.9: an arrival that does not fit the machine is not enqueued (status 2).
"""

from msgspec.structs import replace

from bridge.core.admission import REFUSED_BY_KAFKA
from bridge.core.catalogue import Queue
from bridge.core.retained.keeping import HELD
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.model.guid import NULL_GUID
from bridge.model.message import JOURNAL_NEGATIVE
from tests.core.messages import plain, queue
from tests.core.retained.bench import Bench, kept

FORWARD = "private$\\forward"
KEPT = "private$\\plain"
JOURNAL = journal_of(FORWARD)
KB = 4  # of the machine; half of it is for copies
BODY = bytes(500)


def journaled() -> Queue:
    return queue(
        FORWARD, transactional=False, topic="forward", journal="journal", journal_partitions=1
    )


def test_the_journal_of_a_forward_queue_leaves_room_for_messages() -> None:
    """The journal's topic has every copy; its readers those that had room."""
    bench = Bench(journaled(), kept(), machine_kb=KB)
    for number in range(1, 11):
        bench.put(plain(number, destination=f"DIRECT=OS:BRIDGE01\\{FORWARD}", body=BODY))
    records = [record for record in bench.kafka.logs["journal", 0] if record]
    assert len(records) == 10
    assert [HELD in record.headers for record in records] == [True] * 4 + [False] * 6
    assert bench.queues.quotas.copies() == bench.shelf.totals(JOURNAL).bytes == 2000
    assert bench.queues.quotas.copies_left_out == 6
    assert bench.outcomes(*[plain(n, body=BODY) for n in range(21, 26)]) == [
        *["accepted"] * 4,
        "busy",
    ]


def test_a_journal_that_is_read_has_room_again() -> None:
    bench = Bench(journaled(), machine_kb=KB)
    for number in range(1, 6):
        bench.put(plain(number, destination=f"DIRECT=OS:BRIDGE01\\{FORWARD}", body=BODY))
    bench.receive(JOURNAL)
    bench.commit()
    bench.put(plain(6, destination=f"DIRECT=OS:BRIDGE01\\{FORWARD}", body=BODY))
    assert [row.ordinal for row in bench.waiting(JOURNAL)] == [2, 3, 4, 6]


def test_a_retained_queue_that_is_read_goes_on_when_its_journal_is_full() -> None:
    bench = Bench(kept(journal="journal", journal_partitions=1), machine_kb=KB)
    for number in range(1, 21):
        bench.put(plain(number, body=BODY))
        bench.receive(KEPT)
        bench.commit()
        bench.follow()
    assert bench.waiting(KEPT) == []
    assert [row.ordinal for row in bench.waiting(journal_of(KEPT))] == [1, 2, 3, 4]


def late(number: int) -> object:
    return plain(number, sent_time=0, time_to_reach_queue=1, journal=JOURNAL_NEGATIVE, body=BODY)


def test_dead_letters_leave_room_for_messages() -> None:
    bench = Bench(machine_kb=KB)
    for number in range(1, 11):
        assert bench.outcomes(late(number)) == ["expired"]  # type: ignore[arg-type]
        bench.commit()
        bench.follow()
    assert [row.ordinal for row in bench.waiting(DEADLETTER)] == [1, 2, 3, 4]
    assert bench.outcomes(plain(11, body=BODY)) == ["accepted"]


def test_room_of_copies_that_were_not_made_after_all() -> None:
    """Of a unit that Kafka did not take, of a copy that Kafka refuses, of a topic that is away."""
    bench = Bench(journaled(), machine_kb=KB)
    quotas, message = bench.queues.quotas, plain(1, destination=f"DIRECT=OS:BRIDGE01\\{FORWARD}")
    bench.admit(replace(message, body=BODY))
    assert quotas.copies() == 500
    bench.lose()  # decided again
    assert quotas.copies() == 500
    bench.shard.divert(0, {1: REFUSED_BY_KAFKA})
    assert quotas.copies() == 0
    bench.shard.admit_one(late(2), NULL_GUID, REFUSED_BY_KAFKA)  # type: ignore[arg-type]
    assert quotas.copies() == 0


def test_no_time_to_be_received_at_a_retained_queue() -> None:
    """MS-MQDMPR 3.1.7.1.9, 3.1.2.4: it is enqueued, then its timer removes it: 0xC002."""
    bench = Bench()
    bench.put(plain(1, time_to_be_received=0, journal=JOURNAL_NEGATIVE))
    bench.commit()
    (dead,) = bench.follow()
    assert bench.waiting() == [dead]
    assert (dead.queue, dead.ordinal) == (DEADLETTER, 1)
    assert bench.kafka.record(dead.at).headers["msmq.outcome"] == b"%d" % 0xC002
