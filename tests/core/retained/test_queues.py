import pytest

from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.naming import DEADLETTER, DEADXACT, MACHINE_JOURNAL, journal_of
from bridge.core.retained.queues import Access, Descriptor, Queue, QueueTable, Share, Traits
from tests.core.retained.world import ORDERS, PLAIN, RETRY

ALONE, BOTH = Share.DENY_RECEIVE, Share.DENY_NONE
RECEIVE, PEEK, MOVE = Access.RECEIVE, Access.PEEK, Access.MOVE


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        ((RECEIVE, ALONE), {(RECEIVE, ALONE), (PEEK, ALONE), (RECEIVE, BOTH)}),
        ((PEEK, ALONE), {(RECEIVE, ALONE), (RECEIVE, BOTH)}),
        ((RECEIVE, BOTH), {(RECEIVE, ALONE), (PEEK, ALONE)}),
        ((PEEK, BOTH), set()),
    ],
)
def test_share_modes(holder: tuple[Access, Share], refused: set[tuple[Access, Share]]) -> None:
    """The matrix of remote-read.md 2.5; data-model.md 2.3, point 7."""
    queue = Queue(PLAIN, Traits())
    queue.handles[1] = Descriptor(1, queue, *holder)
    every = [(access, share) for access in (RECEIVE, PEEK) for share in (ALONE, BOTH)]
    assert {new for new in every if not queue.admits(*new)} == refused
    assert queue.admits(MOVE, BOTH)


def test_receive_access_lets_a_reader_peek() -> None:
    queue = Queue(PLAIN, Traits())
    Descriptor(1, queue, RECEIVE, BOTH).demand(PEEK)
    for access, wanted in ((PEEK, RECEIVE), (MOVE, PEEK), (MOVE, RECEIVE)):
        with pytest.raises(Refused) as error:
            Descriptor(1, queue, access, BOTH).demand(wanted)
        assert error.value.status is Status.ACCESS_DENIED


def test_system_queues_are_there_from_the_start() -> None:
    """data-model.md 1.2: DEADLETTER, DEADXACT, JOURNAL of the machine."""
    table = QueueTable()
    for name in (DEADLETTER, DEADXACT, MACHINE_JOURNAL):
        assert table.find(name).journal == ""
    assert table.find(DEADXACT).traits.transactional
    assert not table.find(DEADLETTER).traits.transactional


def test_each_queue_owns_a_journal() -> None:
    """data-model.md 1.2: each queue that is not a subqueue owns a journal."""
    table = QueueTable()
    table.define(PLAIN, Traits(journaling=True, quota_kb=2, journal_quota_kb=1))
    assert table.find(PLAIN).journal == journal_of(PLAIN)
    assert table.find(PLAIN).quota == 2048
    journal = table.find(journal_of(PLAIN))
    assert (journal.journal, journal.quota) == ("", 1024)
    table.define(PLAIN, Traits())
    assert table.find(PLAIN).journal == ""
    assert journal.quota is None


def test_a_subqueue_comes_when_it_is_named() -> None:
    """data-model.md 2.11: subqueues: no journal."""
    table = QueueTable()
    with pytest.raises(Refused) as error:
        table.find(RETRY)
    assert error.value.status is Status.QUEUE_NOT_FOUND
    table.define(ORDERS, Traits(transactional=True, journaling=True))
    retry = table.find(RETRY)
    assert retry.traits.transactional
    assert retry.journal == ""
    assert {queue.name for queue in table.family(ORDERS)} == {ORDERS, RETRY, journal_of(ORDERS)}
    table.define(ORDERS, Traits())
    assert not retry.traits.transactional
    table.forget(retry)
    assert {queue.name for queue in table.family(ORDERS)} == {ORDERS, journal_of(ORDERS)}


def test_a_deleted_queue_is_not_found() -> None:
    table = QueueTable()
    table.define(ORDERS, Traits())
    table.find(RETRY)
    table.find(ORDERS).delete()
    for name in (ORDERS, RETRY, journal_of(ORDERS)):
        with pytest.raises(Refused) as error:
            table.find(name)
        assert error.value.status is Status.QUEUE_NOT_FOUND
    with pytest.raises(Refused) as error:
        table.define(ORDERS, Traits())
    assert error.value.status is Status.QUEUE_EXISTS
