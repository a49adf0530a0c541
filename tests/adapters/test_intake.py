"""Verdicts after the commit, exactly once, whatever Kafka does: design D1, D3; DM-15, DM-37."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters import intake as module
from bridge.adapters.intake import Intake, ShardPump, Submission
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.suspects import PART
from bridge.adapters.telemetry import Telemetry
from bridge.core.ports import Record, Snapshot, Unit
from bridge.core.posted import Due
from bridge.core.retained.leaving import Leaving
from bridge.core.shard import Shard, shard_of
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import Guid
from bridge.model.message import INFINITE, Message
from bridge.model.verdict import Cursor, Outcome, Verdict
from tests.core.messages import OTHER, PLAIN, SENDER, SEQUENCE, plain, shard, step
from tests.core.posts import mail, part
from tests.support.waiting import until as becomes

SOON = 5.0


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", (0.0,))


class Sink(MemoryShardSink):
    """Fails by a plan, and can be held in the middle of a publish."""

    def __init__(self, log: MemoryLog, plan: Sequence[str] = ()) -> None:
        super().__init__(log)
        self.plan = list(plan)
        self.gate = asyncio.Event()
        self.gate.set()
        self.publishing = asyncio.Event()
        self.opened = 0

    async def open(self) -> Snapshot:
        await asyncio.sleep(0)
        self.opened += 1
        if self.plan and self.plan[0] == "closed":
            self.plan.pop(0)
            raise SinkUnavailable("memory: closed")
        return await super().open()

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        self.publishing.set()
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.plan and self.plan[0] in ("", "before", "after"):
            self.fail_next = self.plan.pop(0)
        await super().publish(unit, traced=traced)


class World:
    """One intake on as many shards as asked for, and all that it answered."""

    def __init__(self, plan: Sequence[str] = (), shards: int = 1) -> None:
        self.logs = [MemoryLog() for _ in range(shards)]
        self.sinks = [Sink(log, plan) for log in self.logs]
        self.telemetry = Telemetry()
        self.pumps = [ShardPump(shard(), sink, self.telemetry) for sink in self.sinks]
        self.jams: list[bool] = []
        self.intake = Intake(self.pumps, lambda _, jammed: self.jams.append(jammed))
        self.answers: list[tuple[Sequence[Message], Sequence[Verdict]]] = []
        self.due: list[tuple[int, int]] = []  # numbers of stream receipts, and units until then
        for pump, log in zip(self.pumps, self.logs, strict=True):
            pump.on_due = lambda dues, _, log=log: self.due.extend(  # type: ignore[misc]
                (due.number, log.units) for due in dues
            )
        self.log, self.sink, self.pump = self.logs[0], self.sinks[0], self.pumps[0]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for pump in self.pumps:
            while not pump.is_open:
                with suppress(SinkUnavailable):
                    await pump.open()
        self.run()

    def run(self) -> None:
        self._tasks = [asyncio.create_task(pump.run()) for pump in self.pumps]

    def submit(self, *messages: Message) -> None:
        self.intake.submit(
            messages, lambda verdicts: self.answers.append((messages, list(verdicts)))
        )

    def post(self, message: Message) -> Submission:
        """Arrived now: the row of a stream that nobody used for 90 days would be dropped."""
        message = msgspec.structs.replace(message, arrived_ms=int(time.time() * 1000))
        return self.intake.submit_posted(
            message, lambda verdicts: self.answers.append(([message], list(verdicts)))
        )

    async def drain(self) -> None:
        for pump in self.pumps:
            await asyncio.wait_for(pump.drain(), SOON)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for pump in self.pumps:
            await pump.close()

    @property
    def outcomes(self) -> list[list[str]]:
        return [[str(v.outcome) for v in verdicts] for _, verdicts in self.answers]

    @property
    def values(self) -> list[bytes]:
        return [record.value for log in self.logs for record in log.records]

    @property
    def entries(self) -> list[dict[str, object]]:
        return [e for log in self.logs for value in log.audit for e in msgspec.json.decode(value)]


def play(scene: Callable[[World], Awaitable[None]], world: Callable[[], World] = World) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):  # wait_for may swallow what it should tell
            made = world()
            await made.start()
            try:
                await scene(made)
            finally:
                await made.stop()
            return made

    return asyncio.run(run())


async def until(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), SOON)


# -- the good case --------------------------------------------------------------------------


def test_a_verdict_is_told_after_the_commit_and_not_before() -> None:  # DM-15, DM-37
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.submit(plain(1), step(1))
        await until(world.sink.publishing)
        assert world.answers == []
        assert world.log.records == []
        assert world.intake.pending == 2
        world.sink.gate.set()
        await world.drain()
        assert world.outcomes == [["accepted", "accepted"]]
        assert world.intake.pending == 0

    assert play(scene).values == [b"plain 1", b"step 1"]


def test_the_next_unit_fills_while_one_commits() -> None:  # design D2: large by load
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.submit(plain(1))
        await until(world.sink.publishing)
        for ordinal in range(2, 50):
            world.submit(plain(ordinal))
        world.sink.gate.set()
        await world.drain()

    world = play(scene)
    assert world.log.units == 2
    assert world.values == [b"plain %d" % n for n in range(1, 50)]
    assert [m.ordinal for messages, _ in world.answers for m in messages] == list(range(1, 50))


def test_duplicates_within_what_is_not_committed_yet() -> None:
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.submit(plain(1), step(1))
        await until(world.sink.publishing)
        world.submit(plain(1), step(1), step(2))
        world.sink.gate.set()
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"] * 2, ["duplicate", "duplicate", "accepted"]]
    assert world.values == [b"plain 1", b"step 1", b"step 2"]


def test_metrics_count_each_message_once() -> None:
    async def scene(world: World) -> None:
        world.submit(plain(1), plain(1), plain(2, destination="DIRECT=OS:a\\private$\\no"))
        await world.drain()

    world = play(scene, lambda: World(["before", "after"]))
    text = world.telemetry.exposition()[0].decode()
    assert 'messages_total{class="",transport="binary",verdict="accepted"} 1.0' in text
    assert 'messages_total{class="",transport="binary",verdict="duplicate"} 1.0' in text
    assert (
        'messages_total{class="NACK_BAD_DST_Q",transport="binary",verdict="rejected"} 1.0' in text
    )


def test_metrics_and_audit_name_the_transport() -> None:
    async def scene(world: World) -> None:
        world.submit(plain(1), plain(2))
        for number, transport in ((3, "http"), (4, "http"), (5, "https")):
            world.intake.submit_posted(plain(number, transport=transport), lambda _: None)
        await world.drain()

    world = play(scene)
    text = world.telemetry.exposition()[0].decode()
    for transport, count in (("binary", 2), ("http", 2), ("https", 1)):
        sample = f'messages_total{{class="",transport="{transport}",verdict="accepted"}} {count}.0'
        assert sample in text
    entries = [entry for record in world.log.audit for entry in msgspec.json.decode(record)]
    assert [(entry["id"][-1], entry["transport"]) for entry in entries] == [
        *(("1", "binary"), ("2", "binary"), ("3", "http"), ("4", "http"), ("5", "https"))
    ]


# -- failures -------------------------------------------------------------------------------


def test_what_was_not_committed_is_decided_again() -> None:  # design D3
    async def scene(world: World) -> None:
        world.submit(plain(1), step(1))
        await world.drain()

    world = play(scene, lambda: World(["before"]))
    assert world.outcomes == [["accepted", "accepted"]]
    assert world.values == [b"plain 1", b"step 1"]
    assert len(world.entries) == 2


def test_what_was_committed_stands_when_the_answer_is_lost() -> None:  # design D3, DM-34
    async def scene(world: World) -> None:
        world.submit(plain(1), step(1), step(9))
        await world.drain()

    world = play(scene, lambda: World(["after"]))
    # Decided again they would be duplicates: the first verdicts are told.
    assert world.outcomes == [["accepted", "accepted", "out_of_order"]]
    assert world.answers[0][1][1].cursor == Cursor(SEQUENCE, 1)
    assert world.values == [b"plain 1", b"step 1"]
    assert [entry["verdict"] for entry in world.entries] == ["accepted", "accepted", "out_of_order"]
    assert world.intake.pending == 0


@pytest.mark.parametrize("failure", ["before", "after"])
def test_order_is_kept_when_later_messages_came_meanwhile(failure: str) -> None:  # DM-36
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.submit(step(1), plain(1))
        await until(world.sink.publishing)
        world.submit(step(2))  # decided in advance on what then fails
        world.submit(step(3), plain(1))
        world.sink.gate.set()
        await world.drain()

    world = play(scene, lambda: World([failure]))
    assert world.outcomes == [["accepted", "accepted"], ["accepted"], ["accepted", "duplicate"]]
    assert world.values == [b"step 1", b"plain 1", b"step 2", b"step 3"]
    assert [m.ordinal for messages, _ in world.answers for m in messages] == [1, 1, 2, 3, 1]
    assert len(world.entries) == 5


def test_messages_wait_while_kafka_is_away() -> None:  # design D3: accept nothing, withhold acks
    async def scene(world: World) -> None:
        closed = asyncio.Event()
        world.log.up.clear()
        world.submit(step(1))
        changed = world.pump.on_change

        def on_change() -> None:
            changed()
            if not world.pump.is_open:
                closed.set()

        world.pump.on_change = on_change
        await until(closed)
        assert world.intake.jammed
        assert world.jams == [True]
        assert world.intake.complaints()[0].startswith("shard 0: memory: ")
        world.submit(step(2))
        world.submit(step(1))
        assert world.answers == []
        assert world.intake.pending == 3
        world.log.up.set()
        await world.drain()
        assert world.jams == [True, False]
        assert world.intake.complaints() == []

    world = play(scene)
    assert world.outcomes == [["accepted"], ["accepted"], ["duplicate"]]
    assert world.values == [b"step 1", b"step 2"]
    assert world.intake.pending == 0


def test_what_comes_before_the_first_open_waits() -> None:
    async def run() -> World:
        world = World(["closed", "closed"])
        world.submit(step(1))
        assert world.intake.jammed
        assert world.intake.complaints() == ["shard 0: starting"]
        world.run()
        await world.drain()
        await world.stop()
        return world

    world = asyncio.run(asyncio.wait_for(run(), 30))
    assert world.outcomes == [["accepted"]]
    assert world.values == [b"step 1"]


def test_a_time_from_a_clock_that_was_ahead_is_set_right() -> None:
    """Kafka refuses it, again and again: message.timestamp.after.max.ms is an hour."""
    ahead_ms = int((time.time() + 7200) * 1000)

    async def run() -> World:
        world = World(["closed"])
        world.submit(
            step(1, arrived_ms=ahead_ms, time_to_reach_queue=INFINITE),
            step(2, arrived_ms=5, time_to_reach_queue=INFINITE),
        )
        world.run()
        await world.drain()
        await world.stop()
        return world

    world = asyncio.run(asyncio.wait_for(run(), 30))
    first, second = (record.timestamp_ms for record in world.log.records)
    assert first < ahead_ms - 3600 * 1000
    assert second == 5


def test_a_sink_that_was_fenced_is_opened_anew() -> None:
    async def scene(world: World) -> None:
        world.submit(step(1))
        await world.drain()
        intruder = MemoryShardSink(world.log)
        await intruder.open()
        world.submit(step(2))
        await world.drain()  # fences the intruder in turn

    world = play(scene)
    assert world.values == [b"step 1", b"step 2"]
    assert world.outcomes == [["accepted"], ["accepted"]]


@pytest.mark.parametrize("plan", [["before"], ["after"], ["before", "closed", "after", "before"]])
def test_what_the_owner_puts_survives_a_failed_unit(plan: list[str]) -> None:  # DM-1
    async def scene(world: World) -> None:
        world.pump.put("identity", b"1")
        world.sink.gate.clear()
        await until(world.sink.publishing)
        world.pump.put("identity", b"2")
        world.pump.put("ordinals", b"3")
        world.sink.gate.set()
        await world.drain()
        assert world.log.state["identity"] == b"2"
        assert world.log.state["ordinals"] == b"3"

    play(scene, lambda: World(plan))


@pytest.mark.parametrize("plan", [[], ["before"], ["after"], ["before", "closed", "after"]])
def test_what_was_put_is_settled_when_kafka_has_it(plan: list[str]) -> None:  # DM-1
    async def scene(world: World) -> None:
        assert world.pump.has_settled("mark")
        world.sink.gate.clear()
        world.pump.put("mark", b"1")
        assert not world.pump.has_settled("mark")
        await until(world.sink.publishing)
        assert not world.pump.has_settled("mark")  # on its way
        world.pump.put("mark", b"2")
        world.sink.gate.set()
        await world.drain()
        assert world.log.state["mark"] == b"2"
        assert world.pump.has_settled("mark")

    play(scene, lambda: World(plan))


def test_nothing_is_decided_while_ids_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """DM-1: an id beyond the mark that Kafka has could come again after a crash."""
    monkeypatch.setattr(module, "REST_S", 0.0)

    async def scene(world: World) -> None:
        asked, is_short = asyncio.Event(), True

        def short() -> bool:
            asked.set()
            return is_short

        world.pump.is_short = short
        world.submit(step(1))
        world.submit(step(2))
        asked.clear()
        await until(asked)  # it asks again and again
        committed = asyncio.Event()
        world.pump.on_change = committed.set
        world.pump.put("mark", b"1")  # what makes ids plenty is not held up
        await until(committed)
        assert world.pump.has_settled("mark")
        assert world.values == []
        assert world.answers == []
        is_short = False
        await world.drain()
        assert world.values == [b"step 1", b"step 2"]
        assert world.outcomes == [["accepted"], ["accepted"]]

    play(scene)


def test_draining_waits_for_puts_and_messages_but_not_for_nothing() -> None:
    async def scene(world: World) -> None:
        await world.drain()
        assert world.log.units == 0
        world.pump.put("a", b"1")
        await world.drain()
        assert world.log.state["a"] == b"1"
        world.sink.gate.clear()
        world.submit(plain(1))
        late = asyncio.create_task(world.pump.drain())
        await until(world.sink.publishing)
        await asyncio.sleep(0)
        assert not late.done()
        world.sink.gate.set()
        await asyncio.wait_for(late, SOON)
        assert world.outcomes == [["accepted"]]

    play(scene)


def test_an_idle_shard_commits_nothing() -> None:
    async def scene(world: World) -> None:
        world.submit(plain(1))
        await world.drain()
        for _ in range(20):
            await asyncio.sleep(0)

    assert play(scene).log.units == 1


def test_an_idle_shard_commits_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it hears that it was fenced, and opens its sink anew."""
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.001)

    async def scene(world: World) -> None:
        await MemoryShardSink(world.log).open()  # somebody else takes the shard
        async with asyncio.timeout(SOON):
            while world.log.owner is not world.sink:
                world.sink.publishing.clear()
                await world.sink.publishing.wait()

    world = play(scene)
    assert world.sink.opened == 2
    assert world.values == []


@pytest.mark.parametrize("pauses", range(12))
def test_a_pump_ends_whenever_it_is_told_to(pauses: int) -> None:
    """Also in the very moment in which work comes: a cancellation must not get lost."""

    async def run() -> None:
        world = World()
        await world.start()
        for _ in range(pauses):
            await asyncio.sleep(0)
        world.submit(plain(1))
        if pauses % 2:
            await asyncio.sleep(0)
        async with asyncio.timeout(SOON):
            await world.stop()

    asyncio.run(run())


def test_who_raises_when_told_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """What is committed stands, and every other submission hears of it."""

    def wrong(_: Sequence[Verdict]) -> None:
        raise RuntimeError("a bug")

    async def scene(world: World) -> None:
        world.intake.submit([plain(1)], wrong)
        world.submit(plain(2))
        await world.drain()

    assert play(scene).outcomes == [["accepted"]]
    assert "RuntimeError: a bug" in caplog.text


def test_retries_slow_down_and_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds:
            waited.append(seconds)
        await real(0)

    monkeypatch.setattr(module, "RETRY_S", (0.1, 0.5, 1.0))
    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def scene(world: World) -> None:
        world.submit(plain(1))
        await world.drain()
        world.sink.plan = ["before"]
        world.submit(plain(2))
        await world.drain()

    play(scene, lambda: World(["before", "closed", "closed", "closed"]))
    assert waited == [0.1, 0.5, 1.0, 1.0, 0.1]


# -- several shards -------------------------------------------------------------------------


def of_shard(number: int, count: int) -> Guid:
    return next(g for g in iter(Guid.random, None) if shard_of(g, count) == number)


@pytest.mark.parametrize("plan", [[], ["before"], ["after"], ["", "before", "closed", "after"]])
def test_one_submission_for_several_shards(plan: list[str]) -> None:  # a routed session
    async def scene(world: World) -> None:
        sources = [of_shard(n, 3) for n in range(3)]
        for start in (0, 10):
            several = [
                plain(start + n, source=sources[n % 3], body=b"%d" % (start + n)) for n in range(10)
            ]
            several.insert(5, several[0])
            world.submit(*several)
        await world.drain()

    world = play(scene, lambda: World(plan, shards=3))
    expected = ["accepted"] * 5 + ["duplicate"] + ["accepted"] * 5
    assert world.outcomes == [expected, expected]
    assert sorted(map(int, world.values)) == list(range(20))
    assert all(log.records for log in world.logs)
    assert world.intake.pending == 0


def test_one_shard_that_is_away_holds_back_the_whole_answer() -> None:
    async def scene(world: World) -> None:
        first, second = of_shard(0, 2), of_shard(1, 2)
        world.sinks[1].gate.clear()
        world.submit(plain(1, source=first), plain(1, source=second))
        await until(world.sinks[1].publishing)
        await asyncio.wait_for(world.pumps[0].drain(), SOON)
        assert world.answers == []
        world.sinks[1].gate.set()
        await world.drain()
        assert world.outcomes == [["accepted", "accepted"]]

    play(scene, lambda: World(shards=2))


def test_several_senders_of_one_shard_are_one_submission() -> None:
    async def scene(world: World) -> None:
        world.submit(plain(1), plain(1, source=OTHER), plain(2, source=SENDER))
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"] * 3]
    assert world.log.units == 1


# -- back-pressure --------------------------------------------------------------------------


def test_too_many_messages_jam_and_half_of_them_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 10)

    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.submit(*(plain(n) for n in range(6)))
        await until(world.sink.publishing)
        world.submit(*(plain(n) for n in range(6, 10)))
        assert not world.intake.jammed  # 10 are not more than 10
        world.submit(plain(10))
        assert world.intake.jammed
        assert world.jams == [True]
        world.submit(plain(11))
        assert world.jams == [True]  # told once
        left: list[tuple[int, bool]] = []
        look = world.pump.on_change

        def on_change() -> None:
            look()
            left.append((world.intake.pending, world.intake.jammed))

        world.pump.on_change = on_change
        world.sink.gate.set()
        await world.drain()
        assert left == [(6, True), (0, False)]  # six are more than half of ten
        assert world.jams == [True, False]

    play(scene)


def test_too_many_bytes_jam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 1000)

    async def scene(world: World) -> None:
        world.submit(plain(1, body=bytes(500), wire=bytes(500)))
        assert not world.intake.jammed
        world.submit(plain(2, body=b"x"))
        assert world.intake.jammed
        await world.drain()
        assert world.jams == [True, False]
        assert world.pump.pending_bytes == 0

    play(scene)


# -- what comes over HTTP -------------------------------------------------------------------


def test_all_that_a_post_brings_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING_BYTES", 1000)

    async def scene(world: World) -> None:
        for field in ("body", "soap", "extension", "soap_compound"):
            empty: dict[str, Any] = {"body": b"", "soap": ""}
            full = "x" * 900 if field == "soap" else bytes(900)
            world.post(mail(1, **{**empty, field: full}))
            world.post(mail(2, body=b"", soap="x" * 100))
            assert not world.intake.jammed
            world.post(mail(3, body=b"x", soap=""))
            assert world.intake.jammed, field
            await world.drain()
            assert world.pump.pending_bytes == 0
            assert not world.intake.jammed

    play(scene)


def test_a_stream_lives_in_the_shard_of_its_own_guid() -> None:  # SR-33; 4.4 varies the source
    async def scene(world: World) -> None:
        qm = of_shard(2, 3)
        for number, source in enumerate((of_shard(0, 3), of_shard(1, 3), qm), 1):
            world.post(part(number, qm=qm, source=source))
        world.post(mail(1, source=of_shard(1, 3)))
        await world.drain()

    world = play(scene, lambda: World(shards=3))
    assert world.outcomes == [["accepted"]] * 4
    assert [[r.value for r in log.records] for log in world.logs] == [
        [],
        [b"mail 1"],
        [b"part 1", b"part 2", b"part 3"],
    ]


def test_binary_and_http_meet_in_one_shard() -> None:  # but know different ids
    async def scene(world: World) -> None:
        source = of_shard(1, 3)
        world.post(mail(7, source=source))
        world.submit(plain(7, source=source))
        await world.drain()

    world = play(scene, lambda: World(shards=3))
    assert world.outcomes == [["accepted"], ["accepted"]]


def test_a_receipt_is_due_after_the_commit_and_not_before() -> None:  # SR-36, design D1
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        world.post(part(1))
        world.post(part(2))
        await until(world.sink.publishing)
        world.post(part(3))
        assert world.due == []
        world.sink.gate.set()
        await world.drain()
        assert world.due == [(1, 1), (2, 1), (3, 2)]

    play(scene)


@pytest.mark.parametrize("failure", ["before", "after"])
def test_what_may_not_have_been_told_is_told_again(failure: str) -> None:  # SR-81, design D3
    async def scene(world: World) -> None:
        world.post(part(1))
        await world.drain()
        world.sink.plan = [failure]
        world.post(part(2))
        await world.drain()

    world = play(scene)
    assert world.values == [b"part 1", b"part 2"]
    # The shard was opened anew in between: the row says what nobody is known to have heard. What
    # is decided again is not told before it is committed (SR-36).
    again = [(1, 1)] if failure == "before" else []
    assert world.due == [(1, 1), *again, (2, 2)]


def test_that_a_receipt_was_taken_is_durable() -> None:  # SR-81
    async def scene(world: World) -> None:
        dues: list[Due] = []
        world.pump.on_due = lambda more, _: dues.extend(more)
        world.post(part(1))
        world.post(part(2))
        await world.drain()
        world.pump.receipted(dues[0])
        await world.drain()
        assert [due.number for due in world.pump.shard.posted.unreceipted()] == [2]
        world.pump.receipted(dues[1])
        await world.drain()

    world = play(scene)

    async def reopened() -> list[Due]:
        pump = ShardPump(shard(), MemoryShardSink(world.log), Telemetry())
        told: list[Due] = []
        pump.on_due = lambda more, _: told.extend(more)
        await pump.open()
        return told

    assert asyncio.run(reopened()) == []


# -- withdrawn ------------------------------------------------------------------------------


def test_what_is_withdrawn_before_it_was_decided_never_was_there() -> None:
    """Its sender has heard 503 and will send it again."""

    async def run() -> World:
        world = World(["closed", "closed"])
        first, second = world.post(part(1)), world.post(mail(1))
        world.post(mail(2))
        first.withdraw()
        second.withdraw()
        second.withdraw()
        world.run()
        await world.drain()
        assert world.intake.pending == 0
        assert world.pump.pending_bytes == 0
        world.post(part(1))
        world.post(mail(1))
        await world.drain()
        await world.stop()
        return world

    world = asyncio.run(asyncio.wait_for(run(), 30))
    assert [m.body for messages, _ in world.answers for m in messages] == [
        b"mail 2",
        b"part 1",
        b"mail 1",
    ]
    assert world.outcomes == [["accepted"]] * 3
    assert world.values == [b"mail 2", b"part 1", b"mail 1"]


def test_if_all_are_withdrawn_nothing_is_left_to_wait_for() -> None:
    async def run() -> World:
        world = World(["closed"])
        world.post(part(1)).withdraw()
        world.run()
        await world.drain()
        await world.stop()
        return world

    world = asyncio.run(asyncio.wait_for(run(), 30))
    assert world.answers == []
    assert world.values == []
    assert world.intake.pending == 0
    assert not world.intake.jammed


@pytest.mark.parametrize("failure", ["", "after"])
def test_what_is_withdrawn_too_late_stands(failure: str) -> None:
    """It is in Kafka; when its sender comes again it is a duplicate."""

    async def scene(world: World) -> None:
        world.sink.gate.clear()
        flying = world.post(part(1))
        await until(world.sink.publishing)
        flying.withdraw()
        world.sink.gate.set()
        await world.drain()
        world.post(part(1))
        await world.drain()

    world = play(scene, lambda: World([failure]))
    assert world.values == [b"part 1"]
    assert world.outcomes == [["accepted"], ["duplicate"]]
    assert world.intake.pending == 0


def test_what_is_withdrawn_is_not_decided_again() -> None:  # design D3: the unit was not committed
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        flying = world.post(part(1))
        await until(world.sink.publishing)
        filling = world.post(mail(1))
        world.post(part(2))  # decided on what then never was
        world.post(mail(2))
        flying.withdraw()
        filling.withdraw()
        world.sink.gate.set()
        await world.drain()
        assert world.intake.pending == 0
        world.post(part(1))
        world.post(part(2))
        await world.drain()

    world = play(scene, lambda: World(["before"]))
    assert world.outcomes == [["out_of_order"], ["accepted"], ["accepted"], ["accepted"]]
    assert world.values == [b"mail 2", b"part 1", b"part 2"]


# -- any schedule ---------------------------------------------------------------------------

plans = st.lists(st.sampled_from(("", "before", "after", "closed")), max_size=12)
# How many messages each submission has, and how often the pump may run before the next one.
submissions = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(plans, submissions, st.integers(1, 3), st.data())
def test_exactly_once_in_order_under_any_failures(
    plan: list[str], sizes: list[tuple[int, int]], shards: int, data: st.DataObject
) -> None:  # DM-34, DM-36, D1: transactional and plain, new and repeated
    sources = [of_shard(n, shards) for n in range(shards)]
    made: Counter[tuple[Guid, str]] = Counter()

    def message() -> Message:
        source = data.draw(st.sampled_from(sources))
        kind = data.draw(st.sampled_from(("plain", "step")))
        again = made[source, kind] and data.draw(st.booleans())
        if not again:
            made[source, kind] += 1
        number = made[source, kind]
        make = plain if kind == "plain" else step
        return make(number, source=source, body=b"%s %d" % (kind.encode(), number))

    async def scene(world: World) -> None:
        for size, pauses in sizes:
            world.submit(*(message() for _ in range(size)))
            for _ in range(pauses):
                await asyncio.sleep(0)
        await world.drain()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RETRY_S", (0.0,))
        world = play(scene, lambda: World(plan, shards))

    assert len(world.answers) == len(sizes)  # every callback once
    assert all(len(messages) == len(verdicts) for messages, verdicts in world.answers)
    for source, log in zip(sources, world.logs, strict=True):
        for kind in ("plain", "step"):
            prefix = kind.encode()
            values = [r.value for r in log.records if r.value.startswith(prefix)]
            count = made[source, kind]
            assert values == [b"%s %d" % (prefix, n) for n in range(1, count + 1)]
    told = Counter(str(v.outcome) for _, verdicts in world.answers for v in verdicts)
    assert told["accepted"] == sum(made.values())
    assert set(told) <= {Outcome.ACCEPTED, Outcome.DUPLICATE}
    assert Counter(str(entry["verdict"]) for entry in world.entries) == told
    assert world.intake.pending == 0
    assert all(pump.pending_bytes == 0 for pump in world.pumps)
    assert not world.intake.jammed


@settings(max_examples=80, deadline=None)
@given(plans, st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6), st.booleans()), max_size=8))
def test_no_receipt_before_its_message_is_there_under_any_failures(
    plan: list[str], sizes: list[tuple[int, int, bool]]
) -> None:  # SR-33, SR-36: streams over HTTP, some of whose senders have lost their patience
    async def scene(world: World) -> None:
        acknowledged = 0

        def on_due(dues: Sequence[Due], pump: ShardPump) -> None:
            nonlocal acknowledged
            for due in dues:
                assert b"part %d" % due.number in world.values
                acknowledged = max(acknowledged, due.number)
                pump.receipted(due)

        world.pump.on_due = on_due
        sent = 0
        for size, pauses, patient in sizes:
            for _ in range(size):
                sent += 1
                submission = world.post(part(sent))
            if not patient:
                submission.withdraw()
            for _ in range(pauses):
                await asyncio.sleep(0)
        await world.drain()
        for number in range(1, sent + 1):  # go-back-N: what was not acknowledged comes again
            world.post(part(number))
        await world.drain()
        assert acknowledged == sent
        assert world.values == [b"part %d" % n for n in range(1, sent + 1)]
        assert world.pump.shard.posted.unreceipted() == []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RETRY_S", (0.0,))
        world = play(scene, lambda: World(plan))
    assert world.intake.pending == 0
    assert world.pump.pending_bytes == 0


def test_messages_that_are_refused_have_a_line_without_their_body(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        known, *others = [plain(n, body=b"secret body") for n in range(1, 4)]
        strangers = [msgspec.structs.replace(m, destination=f"{PLAIN}-nowhere") for m in others]
        world.submit(known, *strangers)
        await world.drain()

    with caplog.at_level("INFO"):
        play(scenario)
    (line,) = [r for r in caplog.records if r.getMessage() == "message refused"]
    told = line.__dict__["fields"]
    assert (told["reason"], told["messages"], told["transport"]) == ("unknown-queue", 2, "binary")
    assert told["message_id"] == plain(2).id
    assert "secret body" not in str(told)


def test_who_closes_is_jammed_for_good() -> None:
    async def scene(world: World) -> None:
        world.submit(plain(1))
        world.intake.close()
        assert world.jams == [True]
        await world.drain()  # what was there is committed
        assert world.intake.jammed
        assert world.jams == [True]

    play(scene)


# -- what Kafka refuses for good ------------------------------------------------------------


def poisoned(world: World, *bodies: bytes, error: str = "INVALID_RECORD") -> None:
    for log in world.logs:
        log.refuses = lambda record: error if record.value in bodies else ""


@pytest.mark.parametrize("bad", [(3,), (1,), (9,), (2, 3, 8), tuple(range(1, 10))])
def test_a_poisoned_message_is_rejected_alone(bad: tuple[int, ...]) -> None:
    steps = [step(number) for number in range(1, 10)]
    bodies = [message.body for message in steps]

    async def scene(world: World) -> None:
        poisoned(world, *(bodies[number - 1] for number in bad))
        world.submit(*steps[:5])
        world.submit(*steps[5:])
        world.submit(plain(1))
        await world.drain()
        world.submit(step(10), plain(2))
        await world.drain()

    world = play(scene)
    good = [body for number, body in enumerate(bodies, 1) if number not in bad]
    assert [value for value in world.values if value in bodies] == good
    assert len(world.values) == len(good) + 3
    wanted = ["rejected" if number in bad else "accepted" for number in range(1, 10)]
    assert world.outcomes[0] + world.outcomes[1] == wanted
    assert world.outcomes[2:] == [["accepted"], ["accepted", "accepted"]]
    assert [r.value for r in world.log.rejects] == [bodies[number - 1] for number in bad]
    for reject in world.log.rejects:
        told = reject.headers["__connect.errors.exception.message"]
        assert told == b"refused-by-kafka: INVALID_RECORD: memory: refused"
    assert not world.pump._suspects  # back to the quick way


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_message_that_is_too_large_for_kafka_is_a_dead_letter(everywhere: bool) -> None:
    """MS-MQQB 3.1.5.8.8; where Kafka refuses the dead letter, too, the reject is all there is."""
    large = plain(1, journal=1, body=b"large")

    async def scene(world: World) -> None:
        for log in world.logs:
            log.refuses = lambda record: (
                "MSG_SIZE_TOO_LARGE"
                if record.value == b"large" and (everywhere or record.topic == "plain")
                else ""
            )
        world.submit(large, plain(2))
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["rejected", "accepted"]]
    assert sorted(world.values) == sorted([plain(2).body] + [b"large"] * (not everywhere))
    (reject,) = world.log.rejects
    assert reject.headers["__connect.errors.exception.message"].startswith(b"larger-than-the-topic")


def test_many_messages_around_a_poisoned_one() -> None:
    steps = [step(number) for number in range(1, 3 * PART)]

    async def scene(world: World) -> None:
        poisoned(world, steps[PART + 7].body)
        world.submit(*steps)
        await world.drain()

    world = play(scene)
    (verdicts,) = world.outcomes
    assert verdicts.count("rejected") == 1
    assert verdicts[PART + 7] == "rejected"
    assert world.values == [m.body for m in steps if m is not steps[PART + 7]]
    assert (world.pump.pending, world.pump.pending_bytes) == (0, 0)


def test_our_own_clock_is_no_reason_to_lose_a_message() -> None:
    async def scene(world: World) -> None:
        told: list[tuple[str, str]] = []
        heard = asyncio.Event()

        def hear(topic: str, why: str) -> None:
            told.append((topic, why))
            poisoned(world)  # somebody has set the clock
            heard.set()

        world.pump.on_refused_topic = hear
        poisoned(world, step(1).body, error="INVALID_TIMESTAMP")
        world.submit(step(1))
        await until(heard)
        await world.drain()
        assert [topic for topic, _ in told] == [world.log.records[0].topic]

    world = play(scene)
    assert world.outcomes == [["accepted"]]
    assert world.log.rejects == []


def test_a_jam_is_of_one_shard() -> None:
    async def scene(world: World) -> None:
        mine, others = shard_of(SENDER, 2), 1 - shard_of(SENDER, 2)
        world.logs[mine].up.clear()
        world.submit(step(1))
        await becomes(lambda: world.intake.is_jammed((mine,)))
        assert not world.intake.is_jammed((others,))
        assert not world.intake.is_jammed(())
        assert not world.intake.is_all_jammed
        assert [text.startswith(f"shard {mine}: ") for text in world.intake.complaints()] == [True]
        world.logs[mine].up.set()
        await world.drain()

    def two() -> World:
        world = World(shards=2)
        for number, pump in enumerate(world.pumps):
            pump.name = str(number)
        return world

    assert play(scene, two).outcomes == [["accepted"]]


def test_a_state_topic_that_lost_its_end_is_not_trusted() -> None:
    """It was deleted, and made again by somebody: what was taken would be taken twice."""

    async def scene(world: World) -> None:
        world.submit(step(1))
        await world.drain()
        kept = dict(world.log.state)
        world.log.state.clear()
        world.sink.plan = ["before"]
        world.submit(step(2))
        await becomes(lambda: "deleted or cut off" in "".join(world.intake.complaints()))
        assert world.outcomes == [["accepted"]]
        world.log.state |= kept  # restored
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"], ["accepted"]]
    assert world.values == [step(1).body, step(2).body]


class Copy:
    """A task that writes a record to a topic that refuses it."""

    size = 1

    def __init__(self) -> None:
        self.is_settled = asyncio.Event()

    def fill(self, shard: Shard) -> None:
        copies = [Record("journal", value) for value in (b"copy", b"fine", b"copy too")]
        shard.leave(Leaving(fates=[], records=copies, acks=[], entries=[]), {})

    def settled(self) -> None:
        self.is_settled.set()


def test_a_copy_that_its_topic_refuses_lies_among_the_rejects() -> None:
    async def scene(world: World) -> None:
        poisoned(world, b"copy", b"copy too")
        copy = Copy()
        world.pump.add(copy)
        world.submit(step(1))
        await until(copy.is_settled)
        await world.drain()

    world = play(scene)
    assert world.outcomes == [["accepted"]]
    assert sorted(world.values) == sorted([step(1).body, b"fine"])
    assert [reject.value for reject in world.log.rejects] == [b"copy", b"copy too"]
    assert world.log.rejects[0].headers["__connect.errors.topic"] == b"journal"
