"""An export that is cut off anywhere goes on: nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.adapters.exports.export import Exported, export
from bridge.adapters.exports.journal import Journal, format_of
from bridge.adapters.exports.sources import RemoteSource
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import ConfigError
from bridge.protocol.rpc.reader.packets import Read
from bridge.protocol.rpc.reader.steps import ConnectionLost
from tests.adapters.exports.test_journal import read
from tests.adapters.reader.served import Served
from tests.protocol.rpc.reader.running import ORDERS


@pytest.fixture(params=["o.jsonl", "o.parquet"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def fill(served: Served, count: int) -> list[bytes]:
    for number in range(count):
        served.fake.put(ORDERS, b"m%d" % number)
    return [b"m%d" % number for number in range(count)]


def run(
    served: Served,
    out: Path,
    *,
    receive: bool,
    resume: bool = False,
    limit: int | None = None,
    queue: str = ORDERS,
) -> Exported:
    with (
        RemoteReader(served.place(), sleep=lambda _: None) as reader,
        Journal(out, format_of(out, None), resume=resume) as journal,
    ):
        return export(RemoteSource(reader, queue), journal, receive=receive, limit=limit)


def bodies(out: Path) -> list[bytes]:
    return [data.body for data in read(out)]


@pytest.mark.parametrize("receive", [False, True])
def test_all_of_it(served: Served, out: Path, receive: bool) -> None:
    wanted = fill(served, 150)
    told = run(served, out, receive=receive)
    assert (told.messages, told.resumed, told.removed) == (150, 0, 150 if receive else 0)
    assert bodies(out) == wanted
    assert served.fake.bodies(ORDERS) == ([] if receive else wanted)


def test_every_property_is_the_message(served: Served, out: Path) -> None:
    served.fake.put(ORDERS, b"x", label="a label", priority=5)
    with RemoteReader(served.place()) as reader:
        (seen,) = reader.scan(ORDERS)
    run(served, out, receive=False)
    (data,) = read(out)
    assert (data.label, data.priority, data.lookup_id) == ("a label", 5, seen.lookup_id)
    assert data.headers["msmq.sub.moves"] == "1"
    assert isinstance(seen, Read)


class Crash(BaseException):
    """Not to be caught: as the process's end would be."""


@pytest.mark.parametrize("receive", [False, True])
@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_crash_and_another_run(
    served: Served,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    receive: bool,
    is_written: bool,
    batch: int,
) -> None:
    """Before or after a batch is on disk, before its Ends: the next run has the rest."""
    wanted = fill(served, 120)
    add, calls = Journal.add, 0

    def crash(self: Journal, messages: object) -> None:
        nonlocal calls
        calls += 1
        if calls == batch and not is_written:
            raise Crash
        add(self, messages)  # type: ignore[arg-type]
        if calls == batch:
            raise Crash

    monkeypatch.setattr(Journal, "add", crash)
    with pytest.raises(Crash):
        run(served, out, receive=receive)
    monkeypatch.undo()
    assert not out.exists()
    told = run(served, out, receive=receive, resume=True)
    assert bodies(out) == wanted
    assert told.messages == 120
    if receive:
        assert served.fake.bodies(ORDERS) == []
        assert sorted(served.fake.removed) == sorted(wanted)


@pytest.mark.parametrize("receive", [False, True])
def test_a_host_that_goes_away_and_another_run(served: Served, out: Path, receive: bool) -> None:
    wanted = fill(served, 120)
    served.cut_at(*range(20, 1000), is_done=True)
    with pytest.raises(ConnectionLost):
        run(served, out, receive=receive)
    served.cut_at(is_done=True)
    run(served, out, receive=receive, resume=True)
    assert bodies(out) == wanted
    assert served.fake.bodies(ORDERS) == ([] if receive else wanted)


def test_a_limit_counts_what_is_there(served: Served, out: Path) -> None:
    wanted = fill(served, 30)
    with Journal(out, format_of(out, None), resume=False) as journal:
        with RemoteReader(served.place()) as reader:
            (page,) = RemoteSource(reader, ORDERS).peek(after=None, limit=1)
        journal.add(page)
    told = run(served, out, receive=True, resume=True, limit=10)
    assert (told.messages, told.resumed) == (10, 1)
    assert bodies(out) == wanted[:10]
    assert len(served.fake.bodies(ORDERS)) == 20


def test_a_whole_one_is_done(served: Served, out: Path) -> None:
    wanted = fill(served, 3)
    run(served, out, receive=False)
    assert run(served, out, receive=False, resume=True).messages == 0
    assert bodies(out) == wanted


def test_another_queue_is_another_export(served: Served, out: Path) -> None:
    fill(served, 3)
    served.fake.queues["other"] = []
    with (
        RemoteReader(served.place()) as reader,
        Journal(out, format_of(out, None), resume=False) as journal,
    ):
        (page,) = RemoteSource(reader, ORDERS).peek(after=None, limit=1)
        journal.add(page)
    with pytest.raises(ConfigError, match="and this is other"):
        run(served, out, receive=False, resume=True, queue="other")


def test_progress(served: Served, out: Path) -> None:
    fill(served, 40)
    told: list[int] = []
    with (
        RemoteReader(served.place()) as reader,
        Journal(out, format_of(out, None), resume=False) as journal,
    ):
        export(RemoteSource(reader, ORDERS), journal, receive=False, progress=told.append)
    assert told[0] == 0
    assert told == sorted(told)
    assert told[-1] == 40
