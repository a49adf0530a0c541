"""The view of retained queues: always right about some moment, never trusted when it may not be.

What it promises as a shelf is in tests/core/retained/test_shelf.py, and the state machine in
test_model.py restarts on it.
"""

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.adapters.store.retained_view import RetainedView, ViewLost, throw_away
from bridge.core.retained.fates import Fate, Fated
from bridge.core.retained.place import START
from bridge.core.retained.rows import RecordAt, Row, aborted, moved
from bridge.core.retained.shelf import Totals
from tests.adapters.store import retained_log
from tests.adapters.store.retained_log import DATA, STATE, Log, expected
from tests.core.retained.world import ORDERS, PLAIN, RETRY, row

ME = "3f8a0c5e/cluster-1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / "view.db"


def content(view: RetainedView) -> dict[str, list[Row]]:
    return {queue: list(view.after(queue, START, 10**6)) for queue in sorted(view.queues())}


def filled(file: Path, count: int = 3) -> None:
    view = RetainedView(file, ME)
    view.add(row(n) for n in range(1, count + 1))
    view.commit({DATA: count + 1})
    view.close()


# -- moments --------------------------------------------------------------------------------


def test_rows_and_positions_together(file: Path) -> None:
    view = RetainedView(file, ME)
    assert view.positions() == {}
    view.add([row(1)])
    view.commit({DATA: 2, STATE: 0})
    view.add([row(2)])
    view.remove(row(1))
    view.close()  # nobody committed that
    view = RetainedView(file, ME)
    assert content(view) == {PLAIN: [row(1)]}
    assert view.positions() == {DATA: 2}
    assert view.total() == Totals(1, 100)
    view.close()


def test_copies_are_counted_again_when_it_is_opened(file: Path) -> None:
    view = RetainedView(file, ME)
    view.add([row(1), row(2, f"{PLAIN};journal"), row(3, "system$;deadletter")])
    view.commit()
    view.close()
    view = RetainedView(file, ME)
    assert (view.copies(), view.total()) == (Totals(2, 200), Totals(3, 300))
    view.close()


def test_rows_of_records_before_an_offset(file: Path) -> None:
    view = RetainedView(file, ME)
    rows = [row(n) for n in range(1, 1200)]
    view.add(rows)
    assert view.held_before(*DATA, 4, -1) == rows[:3]
    assert view.held_before(*DATA, 4, 2) == rows[2:3]
    assert view.held_before(*DATA, 4, 3) == []
    assert view.held_before(*DATA, 9999, -1) == rows[:500]
    assert view.held_before("unknown", 0, 9999, -1) == []
    view.close()


def test_positions_never_go_back(file: Path) -> None:
    view = RetainedView(file, ME)
    view.commit({DATA: 5})
    view.commit({DATA: 3})
    assert view.positions() == {DATA: 5}
    view.close()


def test_totals_are_kept(file: Path) -> None:
    """DM-31"""
    filled(file)
    view = RetainedView(file, ME)
    for n in (1, 2):
        view.remove(row(n))
    view.commit()
    view.close()
    view = RetainedView(file, ME)
    assert (view.totals(PLAIN), list(view.queues())) == (Totals(1, 100), [PLAIN])
    view.remove(row(3))
    view.commit()
    view.close()
    view = RetainedView(file, ME)
    assert list(view.queues()) == []
    view.close()


def test_names_that_are_not_unicode(file: Path) -> None:
    odd = row(1, queue="private$\\half\ud800")
    view = RetainedView(file, ME)
    view.add([odd])
    view.commit()
    view.close()
    view = RetainedView(file, ME)
    assert content(view) == {odd.queue: [odd]}
    view.close()


def test_looking_for_unknown_queues_writes_nothing(file: Path) -> None:
    view = RetainedView(file, ME)
    assert view.get("private$\\nobody", 1) is None
    assert list(view.after("private$\\nobody", START, 5)) == []
    assert not view._db.in_transaction
    view.close()


# -- replay ---------------------------------------------------------------------------------


def test_a_fate_may_come_before_its_record(file: Path) -> None:
    view = RetainedView(file, ME)
    gone, new = row(1), moved(row(2, ORDERS), queue=RETRY, sequential_id=9, unix=5)
    view.replay([Fated(gone.at, Fate(0x4000)), Fated(new.at, Fate.of(new))])
    assert content(view) == {}
    view.replay([row(1), row(2, ORDERS)])
    assert content(view) == {RETRY: [new]}
    view.close()


def test_what_has_gone_stays_gone_when_its_record_comes_again(file: Path) -> None:
    """Its removal is known, but the position of its partition lags: another transaction in it is
    not settled yet."""
    view = RetainedView(file, ME)
    view.add([row(5)])
    view.remove(row(5))
    view.commit({DATA: 3, STATE: 99})
    view.close()
    view = RetainedView(file, ME)
    view.replay([row(3), row(4), row(5), row(6)])
    assert content(view) == {PLAIN: [row(3), row(4), row(6)]}
    view.commit({DATA: 7})
    assert not view._any_fate()  # nobody will ask again
    view.close()


def test_what_is_here_is_not_added_again(file: Path) -> None:
    view = RetainedView(file, ME)
    counted = aborted(row(1))
    view.add([counted, row(2)])
    view.replay([row(1), row(2), row(3), row(3)])
    assert content(view) == {PLAIN: [counted, row(2), row(3)]}
    assert view.total() == Totals(3, 300)
    view.close()


def test_old_fates_of_what_has_gone_are_ignored(file: Path) -> None:
    view = RetainedView(file, ME)
    view.commit({DATA: 10})
    view.replay([Fated(row(4).at, Fate.of(aborted(row(4)))), row(4)])
    assert content(view) == {}
    view.close()


def test_two_messages_never_share_a_place(file: Path) -> None:
    """A lookup id that was given twice is our own bug: no message is dropped for it."""
    view = RetainedView(file, ME)
    view.replay([row(1)])
    with pytest.raises(ValueError, match="one place"):
        view.replay([row(1, at=row(2).at, ordinal=2)])
    view.close()


def test_a_record_that_somebody_wrote_again_is_no_second_message(file: Path) -> None:
    """A tool that copies records within a topic copies our marks, too."""
    view = RetainedView(file, ME)
    view.replay([row(1), row(2)])
    again = [row(1, at=row(8).at), row(3), row(3, at=row(9).at)]
    assert view.unknown(again) == [row(3)]
    view.replay(again)
    assert content(view) == {PLAIN: [row(1), row(2), row(3)]}
    view.close()


def test_an_arrival_meets_its_fate(file: Path) -> None:
    """Removed and told so while its record was still to come: it must not come back. DM-17"""
    view = RetainedView(file, ME)
    view.replay([Fated(row(1).at, Fate(0x4000)), Fated(row(2).at, Fate.of(aborted(row(2))))])
    assert view.as_fated([row(1), row(2), row(3)]) == [aborted(row(2)), row(3)]
    view.commit({("data", 0): 3})
    assert view.as_fated([row(1), row(2), row(3)]) == [row(3)]  # from before our time
    view.close()


def test_the_next_record_of_a_partition(file: Path) -> None:
    view = RetainedView(file, ME)
    view.add([row(3), row(5), row(4, at=RecordAt("data", 1, 4))])
    assert [view.next_offset("data", 0, n) for n in (-1, 2, 3, 4, 5)] == [3, 3, 5, 5, None]
    assert view.next_offset("data", 1, -1) == 4
    assert view.next_offset("elsewhere", 0, -1) is None
    view.close()


def test_what_kafka_has_no_more(file: Path) -> None:
    """The records below the start of the log are deleted, and the entries of their fates too."""
    view = RetainedView(file, ME)
    view.add(row(n) for n in range(1, 2500))
    view.trim("data", 0, 2498)
    view.trim("elsewhere", 0, 9999)
    view.trim("data", 1, 9999)
    assert content(view) == {PLAIN: [row(2498), row(2499)]}
    assert view.total() == Totals(2, 200)
    view.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(log=retained_log.logs(), data=st.data())
def test_any_old_view_and_the_tail_are_the_whole(
    log: Log, data: st.DataObject, tmp_path: Path
) -> None:
    """An old backup plus the rest of Kafka gives what a full replay gives; all of it may come
    twice, and the topics in any order."""
    whole = expected(log)
    file = tmp_path / "view.db"
    throw_away(file)
    view = RetainedView(file, ME)
    for _ in range(data.draw(st.integers(0, 3))):
        reached = {topic: data.draw(st.integers(0, len(log[topic]))) for topic in log}
        view.replay(shuffled(log, view.positions(), reached, data))
        view.commit(reached)
    ends = {topic: len(log[topic]) for topic in log}
    view.replay(shuffled(log, view.positions(), ends, data))
    view.replay(shuffled(log, view.positions(), ends, data))
    view.commit(ends)
    assert content(view) == whole
    assert view.total().count == sum(map(len, whole.values()))
    assert not view._any_fate()
    view.close()


def shuffled(
    log: Log,
    start: dict[tuple[str, int], int],
    end: dict[tuple[str, int], int],
    data: st.DataObject,
) -> Iterator[Row | Fated]:
    """Each topic in order, one or the other first."""
    left = {topic: list(log[topic][start.get(topic, 0) : end[topic]]) for topic in log}
    while any(left.values()):
        topic = data.draw(st.sampled_from([topic for topic in left if left[topic]]))
        yield left[topic].pop(0)


# -- files that are not trusted -------------------------------------------------------------


def rebuilt(file: Path, identity: str = ME) -> bool:
    """It was thrown away, and the new one works."""
    view = RetainedView(file, identity)
    is_new = view.positions() == {} and content(view) == {}
    view.add([row(77)])
    view.commit({DATA: 78})
    view.close()
    again = RetainedView(file, identity)
    assert again.get(PLAIN, row(77).lookup_id) == row(77)
    again.close()
    return is_new


def test_a_good_file_is_kept(file: Path) -> None:
    filled(file)
    assert not rebuilt(file)


def test_another_queue_manager_or_cluster(file: Path) -> None:
    filled(file)
    assert rebuilt(file, "3f8a0c5e/cluster-2")


def test_another_version(file: Path) -> None:
    filled(file)
    with sqlite3.connect(file) as db:
        db.execute("pragma user_version = 999")
    db.close()
    assert rebuilt(file)


def test_half_made(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as db:
        db.execute("pragma user_version = 1")
    db.close()
    assert rebuilt(file)


@pytest.mark.parametrize("data", [b"", b"no database at all", b"SQLite format 3\x00" + bytes(5000)])
def test_something_else(file: Path, data: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(data)
    assert rebuilt(file)


def test_cut_off(file: Path) -> None:
    filled(file, 2000)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    assert rebuilt(file)


@pytest.mark.parametrize("seed", range(8))
def test_overwritten_in_the_middle(file: Path, seed: int) -> None:
    filled(file, 2000)
    data = bytearray(file.read_bytes())
    dice = random.Random(seed)
    page = dice.randrange(1, len(data) // 4096)
    data[page * 4096 : page * 4096 + 64] = dice.randbytes(64)
    file.write_bytes(data)
    assert rebuilt(file)


def test_an_old_log_does_not_meet_a_new_file(file: Path) -> None:
    filled(file)
    beside = file.with_name("view.db-wal")
    beside.write_bytes(b"old")
    throw_away(file)
    assert list(file.parent.iterdir()) == []


def test_a_file_that_breaks_later(file: Path) -> None:
    filled(file, 60_000)
    view = RetainedView(file, ME)
    with file.open("r+b") as raw:
        for page in range(50, 1000):
            raw.seek(page * 4096)
            raw.write(b"\xff" * 4096)
    with pytest.raises(ViewLost):
        content(view)
    view.close()
    assert rebuilt(file)


def test_a_file_that_somebody_else_has(file: Path) -> None:
    """It is not thrown away under his feet."""
    filled(file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin immediate")
    with pytest.raises(ViewLost, match="locked"):
        RetainedView(file, ME)
    other.execute("rollback")
    other.close()
    assert not rebuilt(file)


# -- killed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment(file: Path, seed: int) -> None:
    """kill -9: what is left is some committed moment, and the tail of Kafka makes it whole."""
    dice = random.Random(seed)
    log = retained_log.random_log(seed, 4000)
    for _ in range(3):
        _run_and_kill(file, seed, after=dice.randrange(1, 12))
        view = RetainedView(file, ME)
        reached = view.positions()
        assert content(view) == expected(log, reached)
        view.close()
    view = RetainedView(file, ME)
    view.replay(retained_log.tail(log, view.positions()))
    view.commit({topic: len(events) for topic, events in log.items()})
    assert content(view) == expected(log)
    view.close()


def _run_and_kill(file: Path, seed: int, after: int) -> None:
    """A child that replays and says when it has committed; killed in what it does next."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.store.retained_log", str(file), ME, str(seed)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert child.stdout is not None
    for _ in islice(child.stdout, after):
        pass
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


# -- large ----------------------------------------------------------------------------------

_LARGE = """
import sys
from pathlib import Path
from bridge.adapters.store.retained_view import RetainedView
from bridge.core.retained.queues import Access, Traits
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.protocol.events import Instant
from tests.core.retained.world import NOW, PLAIN, row

file, count = Path(sys.argv[1]), int(sys.argv[2])
if count:
    view = RetainedView(file, "large")
    view.replay(row(n, priority=n % 8, expires=NOW + n) for n in range(1, count + 1))
    view.commit({("data", 0): count + 1})
else:
    view = RetainedView(file, "large")
    queues = RetainedQueues(view, iter(range(10**7, 10**8)).__next__)
    queues.define(PLAIN, Traits())
    handle = queues.handles.open(PLAIN, Access.RECEIVE)
    now = Instant(0.0, 0.0)
    for tag in range(1000):
        (got,) = queues.reading.receive(handle, tag, now)
        (commit,) = queues.answering.end(handle, tag, now, delete=True)
        queues.settle(commit.ticket, now)
    view.commit()
    print(view.total().count)
view.close()
# Not ru_maxrss: that begins with what the parent had when it forked.
(peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(int(peak.split()[1]) // 1024)
"""


def _large(file: Path, count: int) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", _LARGE, str(file), str(count)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[3],
        text=True,
    )
    return [int(line) for line in done.stdout.split()]


def test_a_million_messages_do_not_fill_the_memory(file: Path) -> None:
    """Bodies are in Kafka and rows on disk: what a start and a thousand reads need is bounded."""
    (building_mb,) = _large(file, 1_000_000)
    left, reading_mb = _large(file, 0)
    assert left == 999_000
    assert max(building_mb, reading_mb) < 150
