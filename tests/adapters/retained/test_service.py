"""Retained queues between readers, a shelf and a real Kafka: design D1, D5; DM-17 to DM-31."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.kafka import held_follower
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.retained import service as module
from bridge.adapters.store.retained_view import RetainedView, ViewLost, throw_away
from bridge.core.retained.fates import Fated
from bridge.core.retained.place import low_bits
from bridge.core.retained.rows import Row
from bridge.model.errors import SinkUnavailable
from tests.adapters.retained.world import KEPT, Running, World, numbered
from tests.core.messages import LOCAL, SENDER, plain
from tests.support.kafka import create_topic, transactional_producer, unique
from tests.support.waiting import until

pytestmark = pytest.mark.kafka


@pytest.fixture
def world(kafka: EmbeddedKafka, tmp_path: Path) -> World:
    return World(kafka, tmp_path)


# -- start and end ----------------------------------------------------------------------------


def test_a_restart_finds_everything_in_place(world: World) -> None:
    """DM-20: the order is by priority, then by arrival; lookup ids stay what they were."""

    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1, 2)), *numbered((3,), priority=7))
            before = await first.desk.peek(KEPT, limit=9)
        async with world.running() as second:
            assert await second.desk.peek(KEPT, limit=9) == before
        throw_away(world.file)
        async with world.running() as third:
            assert await third.desk.peek(KEPT, limit=9) == before
        assert [held.message.body for held in before] == [b"3", b"1", b"2"]

    asyncio.run(play())


def test_what_was_told_removed_stays_away_without_its_disk(world: World) -> None:
    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered(range(1, 6)))
            second_id = (await first.desk.peek(KEPT, limit=2))[1].lookup_id
            await first.desk.receive(KEPT, lookup_id=second_id)  # out of turn: a fate of its own
            await first.desk.receive(KEPT)
            (moved,) = (await first.desk.peek(KEPT, limit=1)).copy()
            await first.desk.move(KEPT, moved.lookup_id, f"{KEPT};retry")
        throw_away(world.file)
        async with world.running() as second:
            assert await second.bodies() == [b"4", b"5"]
            assert await second.bodies(f"{KEPT};retry") == [b"3"]

    asyncio.run(play())


def test_an_old_backup_of_the_view_is_brought_up_to_date(world: World) -> None:
    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1, 2, 3)))
        old = world.file.read_bytes()
        async with world.running() as second:
            await second.desk.receive(KEPT)
            await second.send(*numbered((4,)))
        throw_away(world.file)
        world.file.write_bytes(old)
        async with world.running() as third:
            assert await third.bodies() == [b"2", b"3", b"4"]

    asyncio.run(play())


def test_the_view_of_another_cluster_is_not_used(world: World) -> None:
    """Whose offsets mean something else. What such a view lacks is there all the same."""

    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1, 2)))
        with closing(sqlite3.connect(world.file)) as db, db:
            db.execute("delete from row where offset = 0")
        async with world.running() as second:
            assert await second.bodies() == [b"2"]  # it is believed
        world.cluster = "another cluster"
        async with world.running() as third:
            assert await third.bodies() == [b"1", b"2"]

    asyncio.run(play())


def test_a_rebuild_that_is_cut_off_goes_on_where_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is saved now and then: not all of the topic is read again, and no message is missing."""
    monkeypatch.setattr(held_follower, "_PER_CALL", 1)
    monkeypatch.setattr(module, "SAVE_ROWS", 2)
    handed: list[int] = []
    replay = RetainedView.replay

    def cut_off(view: RetainedView, events: Iterable[Row | Fated]) -> None:
        rows = list(events)
        if len(handed) > 5:
            raise RuntimeError("cut off")
        handed.extend(row.at.offset for row in rows if isinstance(row, Row))
        replay(view, rows)

    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered(range(1, 11)))
            await first.desk.receive(KEPT)
        throw_away(world.file)
        with monkeypatch.context() as patch:
            patch.setattr(RetainedView, "replay", cut_off)
            with pytest.raises(RuntimeError, match="cut off"):
                async with world.running():
                    pass
        with closing(sqlite3.connect(world.file)) as db:
            (saved,) = db.execute("select max(offset) from row").fetchone()
        assert 0 < saved < 9
        async with world.running() as third:
            assert await third.bodies() == [b"%d" % n for n in range(2, 11)]

    asyncio.run(play())


@pytest.mark.parametrize("junk", [b"", b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_none_is_made_anew(world: World, junk: bytes) -> None:
    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1,)))
        throw_away(world.file)
        world.file.write_bytes(junk)
        async with world.running() as second:
            assert await second.bodies() == [b"1"]

    asyncio.run(play())


def test_an_id_is_not_given_twice(world: World) -> None:
    """DM-1: the mark in Kafka is ahead of all that was given out."""

    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1, 2)))
            last = (await first.desk.peek(KEPT, limit=2))[1].lookup_id
            await first.desk.purge(KEPT)
        throw_away(world.file)
        async with world.running() as second:
            await second.send(*numbered((3,)))
            (held,) = await second.desk.peek(KEPT, limit=1)
            assert low_bits(held.lookup_id) > low_bits(last)

    asyncio.run(play())


def test_who_waits_at_the_end_hears_of_it(world: World) -> None:
    async def play() -> None:
        async with world.running() as process:
            waiting = asyncio.create_task(process.desk.receive(KEPT, wait_s=60))
            queue = process.service.queues.find(KEPT)
            await until(lambda: queue.waiting)
        with pytest.raises(SinkUnavailable, match="stops"):
            await waiting
        assert process.service._answers.keys() <= {(16, 1)}  # nothing else was left behind

    asyncio.run(play())


def test_a_stop_with_a_commit_under_way(world: World) -> None:
    """Nobody can tell what became of it; the next process can."""

    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2)))
            held = asyncio.Event()

            async def hang(*_: object, **__: object) -> None:
                held.set()
                await asyncio.Event().wait()

            process.sink.publish = hang  # type: ignore[method-assign]
            taking = asyncio.create_task(process.desk.receive(KEPT))
            await held.wait()
        with pytest.raises(SinkUnavailable, match="stops"):
            await taking
        async with world.running() as second:
            assert await second.bodies() == [b"1", b"2"]

    asyncio.run(play())


# -- Kafka and its whims ----------------------------------------------------------------------


def test_kafka_goes_away_and_comes_back(
    mortal: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design D3: nothing is told while it is away, and the follower finds its place again."""
    monkeypatch.setattr(held_follower, "RETRY_S", 0.2)
    world = World(mortal, tmp_path)

    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2)))
            mortal.kill()
            with pytest.raises(SinkUnavailable):  # it cannot be read, or not be taken
                await process.desk.receive(KEPT)
            assert process.depth() == 2
            mortal.start()
            await until(lambda: process.pump.is_open, 60)
            await process.send(*numbered((3,)))
            held = await process.desk.receive(KEPT)
            assert held is not None
            assert held.message.body == b"1"
            assert await process.bodies() == [b"2", b"3"]

    asyncio.run(play())


def test_nothing_is_begun_while_kafka_is_away(world: World) -> None:
    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered((1,)))
            (held,) = await process.desk.peek(KEPT, limit=1)
            process.pump.is_open, process.pump.why_closed = False, "Kafka: away"
            desk = process.desk
            for refused in (
                desk.receive(KEPT),
                desk.purge(KEPT),
                desk.move(KEPT, held.lookup_id, f"{KEPT};x"),
                desk.create("private$\\new", transactional=False, topic=None, journal=None),
                desk.delete(KEPT),
            ):
                with pytest.raises(SinkUnavailable, match="Kafka: away"):
                    await refused
            assert await process.bodies() == [b"1"]
            assert not world.edits
            process.pump.is_open = True

    asyncio.run(play())


def test_a_unit_that_was_committed_after_all_is_not_done_again(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """D3: an unknown end is read back. DM-30: one copy in the journal, however often it failed."""
    journal = unique("journal")
    world = World(kafka, tmp_path, journal=journal)

    async def play() -> None:
        async with world.running() as process:
            await process.send(plain(1, ack=0x02, admin_queue="DIRECT=OS:sender\\private$\\admin"))
            publish = process.sink.publish

            async def lose_the_answer(unit: object, *, traced: bool = False) -> None:
                process.sink.publish = publish  # type: ignore[method-assign]
                await publish(unit, traced=traced)  # type: ignore[arg-type]
                raise SinkUnavailable("Kafka: committing: timed out")

            process.sink.publish = lose_the_answer  # type: ignore[method-assign]
            held = await asyncio.wait_for(process.desk.receive(KEPT), 30)
            assert held is not None
            await until(lambda: process.depth(f"{KEPT};journal") == 1)
            assert len(process.pump.shard.outbox) == 1  # one ACK_RECEIVE
        assert len(world.records(journal)) == 1
        assert [v[1] for v in world.verdicts()] == ["accepted", "received"]

    asyncio.run(play())


def test_a_topic_that_comes_later_is_followed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)

    async def play() -> None:
        async with world.running() as process:
            await process._edit("private$\\late", {"mode": "retain"})
            late = "DIRECT=OS:bridge01\\private$\\late"
            await process.send(plain(1, destination=late))
            assert process.depth("private$\\late") == 1
        world.queues = world.queues[:1]  # its mapping is gone, its messages are not
        async with world.running() as second:
            assert second.depth("private$\\late") == 1
            assert "private$\\late" in {info.name for info in second.desk.queues()}
            assert await second.desk.purge("private$\\late") == 1

    asyncio.run(play())


def test_a_topic_that_was_deleted_does_not_stop_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    gone = unique("gone")
    create_topic(world.kafka.bootstrap_servers, gone)

    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1,)))
            first.pump.put(f"{module.TOPIC}{gone}/1", b"1")
            await first.pump.drain()
        await asyncio.to_thread(world.delete_topic, gone)
        async with world.running() as second:
            assert await second.bodies() == [b"1"]
            await second.send(*numbered((2,)))

    asyncio.run(play())
    assert f"topic {gone} is not in Kafka any more" in caplog.text


def test_foreign_records_in_the_topic_are_no_messages(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody may write there, our marks included."""
    held = f"{LOCAL}/{KEPT}".encode()

    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered((1,)))
            (record,) = await asyncio.to_thread(world.records, world.topic)
            producer = transactional_producer(world.kafka.bootstrap_servers, unique("stranger"))
            producer.begin_transaction()
            strangers: list[Any] = [
                [],
                [("msmq.held", held), ("msmq.lookup", b"not a number")],
                [("msmq.held", held), ("msmq.lookup", b"9"), ("msmq.id", b"nonsense")],
                [("msmq.held", b"\xff/\xff"), ("msmq.lookup", b"9")],
                record.headers(),  # a copy of ours
            ]
            for headers in strangers:
                producer.produce(world.topic, b"stranger", headers=headers, partition=0)
            producer.commit_transaction(30)
            await process.send(*numbered((2,)))
            assert await process.bodies() == [b"1", b"2"]
            process.service._check()
        throw_away(world.file)
        async with world.running() as second:
            assert await second.bodies() == [b"1", b"2"]

    asyncio.run(play())
    assert "is marked as ours, but is no message" in caplog.text
    assert "written again by somebody else" in caplog.text


# -- messages whose records are gone ----------------------------------------------------------


def test_a_message_that_kafka_lost_is_named_and_let_go(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention took it while it waited: readers get the next one, its sender a negative ack."""

    async def play() -> None:
        async with world.running() as process:
            nacked = plain(1, ack=0x0C, admin_queue="DIRECT=OS:sender\\private$\\admin")
            await process.send(nacked, *numbered((2, 3)))
            await asyncio.to_thread(world.delete_records, 1)
            held = await process.desk.receive(KEPT)
            assert held is not None
            assert held.message.body == b"2"
            await until(lambda: process.depth() == 1)
            (entry,) = process.pump.shard.outbox.values()
            assert entry.packet  # NACK_Q_PURGED, without the body that nobody has
            assert ("NACK_Q_PURGED", True) in process.removed
        verdict = (f"{SENDER}\\1", "removed", "record-is-gone-from-kafka")
        assert verdict in world.verdicts()

    asyncio.run(play())
    assert f"message {SENDER}\\1 of {KEPT} is lost" in caplog.text
    assert "retention.ms should be -1" in caplog.text


def test_all_of_them_lost(world: World) -> None:
    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered(range(1, 20)))
            end = 1 + max(
                r.offset() or 0 for r in await asyncio.to_thread(world.records, world.topic)
            )
            await asyncio.to_thread(world.delete_records, end)
            assert await process.desk.receive(KEPT) is None
            await until(lambda: process.depth() == 0)
            await process.send(*numbered((20,)))
            assert await process.bodies() == [b"20"]

    asyncio.run(play())


def test_a_purge_of_what_is_lost(world: World) -> None:
    """The nack would repeat the body: it goes without."""

    async def play() -> None:
        async with world.running() as process:
            asking = {"ack": 0x0C, "admin_queue": "DIRECT=OS:sender\\private$\\admin"}
            await process.send(*numbered((1, 2, 3), **asking))
            await asyncio.to_thread(world.delete_records, 2)
            assert await asyncio.wait_for(process.desk.purge(KEPT), 30) == 3
            assert len(process.pump.shard.outbox) == 3

    asyncio.run(play())


# -- the view breaks --------------------------------------------------------------------------


async def _broken(process: Running) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        await asyncio.wait_for(asyncio.shield(process.run), 30)
    return caught.value


def test_a_full_disk_stops_the_service_and_the_next_start_goes_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered((1,)))
            pages = process.service.view._db.execute("pragma page_count").fetchone()[0]
            process.service.view._db.execute(f"pragma max_page_count = {pages}")
            many = numbered(
                range(2, 2000), label="x" * 200, ack=0x0E, admin_queue=f"DIRECT=OS:a\\{'y' * 100}"
            )
            await process.submit(many)
            fault = await _broken(process)
            assert isinstance(fault, ViewLost)
            assert "full" in str(fault)
        async with world.running() as second:
            assert second.depth() == 1999
            assert await second.bodies() == [b"%d" % n for n in range(1, 1001)]

    asyncio.run(play())


def test_a_file_that_is_spoilt_under_us(world: World) -> None:
    """Whatever the reads say then: nothing of it is saved, and Kafka knows better."""

    async def play() -> None:
        async with world.running() as process:
            await process.send(*numbered(range(1, 200)))
            await until(lambda: process.service.view.positions())
            process.service.view.commit()
            process.service.view._db.execute("pragma wal_checkpoint(truncate)")
            size = world.file.stat().st_size
            with world.file.open("r+b") as file:
                file.seek(4096)
                file.write(b"\xff" * (size - 4096))
            process.service.view._db.execute("pragma shrink_memory")
            await process.submit(numbered(range(200, 400)))
            assert isinstance(await _broken(process), ViewLost)
        async with world.running() as second:
            assert second.depth() == 399
            assert [h.message.ordinal for h in await second.desk.peek(KEPT, limit=1000)] == list(
                range(1, 400)
            )

    asyncio.run(play())


def test_a_view_that_breaks_during_the_start_is_no_silent_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with world.running() as first:
            await first.send(*numbered((1,)))
        throw_away(world.file)

        def broken(*_: object) -> None:
            raise ViewLost("the view of the retained queues: disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr(RetainedView, "replay", broken)
            patch.setattr(module.RetainedService, "_bring_up_to_date", lambda _: None)
            with pytest.raises(ViewLost, match="disk I/O"):
                async with world.running():
                    pass

    asyncio.run(play())


# -- time -------------------------------------------------------------------------------------


def test_what_nobody_received_in_time_leaves(world: World) -> None:
    """DM-28, 2.14: with JN a copy lies in DEADLETTER, its class that of the failure."""

    async def play() -> None:
        async with world.running() as process:
            sent = int(time.time())
            await process.submit(
                numbered((1, 2), sent_time=sent, time_to_be_received=1, journal=0x01)
            )
            await until(lambda: process.depth("system$;deadletter") == 2)
            assert process.depth() == 0
            (letter, _) = await process.desk.peek("system$;deadletter", limit=2)
            assert letter.message.message_class == 0xC002
            assert process.removed == [("NACK_RECEIVE_TIMEOUT", False)] * 2

    asyncio.run(play())


def test_no_more_expire_at_once_than_kafka_keeps_up_with(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FLYING", 7)
    monkeypatch.setattr(module, "REST_S", 0.001)

    async def play() -> None:
        async with world.running() as process:
            most = 0
            take = process.service._fetching.take

            def watched(commit: object) -> None:
                nonlocal most
                take(commit)  # type: ignore[arg-type]
                most = max(most, len(process.service._settling))

            process.service._fetching.take = watched  # type: ignore[method-assign]
            sent = int(time.time()) + 1
            await process.submit(numbered(range(100), sent_time=sent, time_to_be_received=1))
            await until(lambda: len(process.removed) == 100)
            assert 0 < most <= 7
            assert process.depth() == 0

    asyncio.run(play())


def test_what_retention_deletes_counts_no_more(
    kafka: EmbeddedKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a reader that would find it missing: copies go quietly, messages are named."""
    monkeypatch.setattr(module, "RETENTION_S", 0.05)
    world = World(kafka, tmp_path, journal=unique("journal"))
    journal = world.queues[0].journal

    async def play() -> None:
        async with world.running(quota_kb=8) as process:
            await process.send(*(plain(n, body=bytes(1000)) for n in range(1, 5)))
            for _ in range(3):
                await process.desk.receive(KEPT)
            await until(lambda: process.depth(f"{KEPT};journal") == 3)
            quotas = process.service.queues.quotas
            assert quotas.copies() == 3000
            ends = {r.partition(): 1 + (r.offset() or 0) for r in world.records(journal)}
            for partition, end in ends.items():
                world.delete_records(end, journal, partition or 0)
            await until(lambda: quotas.copies() == 0)
            assert process.removed == [("ACK_RECEIVE", False)] * 3
            await asyncio.to_thread(world.delete_records, 4)
            await until(lambda: process.service.view.total().count == 0)
            assert process.removed[3:] == [("NACK_Q_PURGED", True)]
            await process.send(plain(9))
        throw_away(world.file)
        async with world.running(quota_kb=8) as process:
            assert process.service.view.total().count == 1

    with caplog.at_level(logging.INFO):
        asyncio.run(play())
    assert "retention has deleted" in caplog.text
    assert f"{world.topic}-0: 1 messages are lost" in caplog.text


def test_copies_without_room_are_told_of(
    kafka: EmbeddedKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "RETENTION_S", 0.05)
    world = World(kafka, tmp_path, journal=unique("journal"), journal_quota_kb=1)

    async def play() -> None:
        async with world.running() as process:
            await process.send(*(plain(n, body=bytes(600)) for n in (1, 2)))
            for _ in range(2):
                assert await process.desk.receive(KEPT) is not None
            await until(lambda: "copies for journals" in caplog.text)
            assert process.depth(f"{KEPT};journal") == 1

    asyncio.run(play())
    assert "1 copies for journals or dead-letter queues were not made" in caplog.text
