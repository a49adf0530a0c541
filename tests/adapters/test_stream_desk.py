"""Streams that an operator adopts or forgets: each change is a transaction of its shard."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest

from bridge.adapters.intake import STREAM_WAITS, Intake, ShardPump
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.stream_desk import NoSuchStream, StreamDesk
from bridge.adapters.telemetry import PREFIX, Telemetry
from bridge.core.waiting_streams import Turn
from bridge.model.errors import Unavailable
from bridge.model.message import Message
from bridge.model.verdict import Verdict
from tests.adapters.net.memory_server import run
from tests.core.messages import ORDERS, OTHER, SENDER, SEQUENCE, shard, step


class Office:
    """One shard on a log in memory."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.telemetry = Telemetry()
        self.sink = MemoryShardSink(self.log)
        self.pump = ShardPump(shard(), self.sink, self.telemetry)
        self.intake = Intake([self.pump], lambda _shard, _jammed: None)
        self.desk = StreamDesk(lambda: [self.pump])

    async def send(self, *messages: Message) -> list[str]:
        decided: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

        def tell(verdicts: Sequence[Verdict]) -> None:
            decided.set_result([str(verdict.outcome) for verdict in verdicts])

        self.intake.submit(messages, tell, turn=Turn())
        return await decided


def play(scene: Callable[[Office], Awaitable[None]]) -> Office:
    async def whole() -> Office:
        office = Office()
        await office.pump.open()
        running = asyncio.create_task(office.pump.run())
        try:
            await scene(office)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        return office

    made: list[Office] = []

    async def keep() -> None:
        made.append(await whole())

    run(keep())
    return made[0]


def test_a_waiting_stream_is_listed_and_adopted() -> None:
    async def scene(office: Office) -> None:
        assert await office.send(step(7), step(8)) == ["out_of_order"] * 2
        (row,) = office.desk.waiting()
        assert (row["source"], row["destination"]) == (str(SENDER), ORDERS)
        assert (row["have_number"], row["offered_number"], row["offered_previous"]) == (0, 7, 6)
        assert row["offered_sequence_id"] == str(SEQUENCE)
        assert row["since"] == "2023-11-14T22:13:20Z"
        told = await office.desk.adopt(SENDER, ORDERS)
        assert (told["number"], told["next"]) == (6, 7)
        assert f"stream/{SENDER}/{ORDERS}" in office.log.state
        assert (office.desk.waiting(), office.desk.count, office.desk.bytes) == ([], 0, 0)
        assert await office.send(step(7), step(8)) == ["accepted"] * 2

    play(scene)


@pytest.mark.parametrize("failure", ["before", "after"])
def test_an_adoption_outlives_a_commit_that_fails(failure: str) -> None:
    async def scene(office: Office) -> None:
        await office.send(step(7))
        office.sink.fail_next = failure
        assert (await office.desk.adopt(SENDER, ORDERS))["next"] == 7
        assert f"stream/{SENDER}/{ORDERS}" in office.log.state
        assert await office.send(step(7), step(8)) == ["accepted"] * 2

    play(scene)


def test_only_what_is_there_can_be_changed() -> None:
    async def scene(office: Office) -> None:
        with pytest.raises(NoSuchStream, match="stream list"):
            await office.desk.adopt(SENDER, ORDERS)
        with pytest.raises(NoSuchStream, match="stream list"):
            await office.desk.forget(OTHER, ORDERS)
        await office.send(step(7))
        with pytest.raises(NoSuchStream):  # byte for byte
            await office.desk.adopt(SENDER, ORDERS.upper())

    play(scene)


def test_a_stream_is_forgotten() -> None:
    async def scene(office: Office) -> None:
        await office.send(step(1), step(2))
        assert (await office.desk.forget(SENDER, ORDERS))["forgotten"] is True
        assert f"stream/{SENDER}/{ORDERS}" not in office.log.state
        assert await office.send(step(1)) == ["accepted"]

    play(scene)


def test_nothing_is_changed_while_a_shard_is_closed() -> None:
    async def scene(office: Office) -> None:
        await office.send(step(7))
        office.pump.is_open, office.pump.why_closed = False, "Kafka is away"
        with pytest.raises(Unavailable, match="Kafka is away"):
            await office.desk.adopt(SENDER, ORDERS)
        with pytest.raises(Unavailable, match="starting"):
            await StreamDesk(list).adopt(SENDER, ORDERS)

    play(scene)


def test_a_commit_that_takes_long_is_not_waited_for() -> None:
    async def scene(office: Office) -> None:
        await office.send(step(7))
        office.pump.add = lambda task: None  # type: ignore[method-assign]
        desk = StreamDesk(lambda: [office.pump], commit_s=0.01)
        with pytest.raises(Unavailable, match="as soon as"):
            await desk.adopt(SENDER, ORDERS)

    play(scene)


def test_a_waiting_stream_is_logged_and_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(office: Office) -> None:
        for _ in range(3):
            await office.send(step(7), step(8))

    with caplog.at_level(logging.WARNING):
        office = play(scene)
    (line,) = [record for record in caplog.records if "waits" in record.getMessage()]
    assert "message 7 was offered, it follows 6, and none was ever taken" in line.getMessage()
    assert "stream adopt" in line.getMessage()
    assert line.fields["queue_manager"] == SENDER  # type: ignore[attr-defined]
    counted = office.telemetry.registry.get_sample_value(
        f"{PREFIX}refusals_total", {"reason": STREAM_WAITS}
    )
    assert counted == 1
