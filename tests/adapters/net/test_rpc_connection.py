"""One connection: what becomes of its calls. Groups and limits: test_rpc_server."""

from __future__ import annotations

import asyncio

import pytest

from tests.adapters.net.test_rpc_server import Stranger
from tests.support.rpc import FAIL, RAW_ECHO, SOURCE_DATA, WAIT, World, run, world
from tests.support.waiting import until
from tests.wire.rpc import raw


def results(made: World) -> dict[str, float]:
    value = made.telemetry.registry.get_sample_value
    names = ("answered", "fault", "cancelled", "failed")
    found = {name: value("msmq_bridge_rpc_calls_total", {"result": name}) for name in names}
    return {name: number for name, number in found.items() if number}


@pytest.mark.parametrize(
    ("opnum", "answer"),
    [
        (RAW_ECHO, raw.response(b"stub")),
        (FAIL, raw.fault(0xC00E0003, ran=True)),
        (99, raw.fault(0x1C010002)),  # RR-11
    ],
)
def test_an_answer_byte_by_byte(opnum: int, answer: bytes) -> None:
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            assert await stranger.ask(raw.request(b"stub", opnum=opnum)) == answer
            call = made.echo.calls[0]
            name = stranger.writer.get_extra_info("peername")
            assert (call.peer, call.local) == (name[0], ("127.0.0.1", made.address.port))
            stranger.writer.close()

    run(test())


def test_answers_in_completion_order() -> None:  # RR-6
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            stranger.writer.write(raw.request(opnum=WAIT))
            later = raw.request(b"quick", opnum=RAW_ECHO, call_id=3)
            assert await stranger.ask(later) == raw.response(b"quick", call_id=3)
            made.echo.gate.set()
            assert await stranger.ask(b"") == raw.response(b"waited")
            assert results(made) == {"answered": 2}
            stranger.writer.close()

    run(test())


def test_two_large_answers_do_not_mix() -> None:  # RR-6: fragments contiguously
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            size = (1 << 20).to_bytes(4, "little")
            for call_id in (2, 3):
                stranger.writer.write(raw.request(size, opnum=SOURCE_DATA, call_id=call_id))
            seen = [await stranger.ask(b"")]
            while [one[3] & raw.LAST for one in seen].count(raw.LAST) < 2:
                seen.append(await stranger.ask(b""))
            ids = [one[12] for one in seen]
            assert ids == sorted(ids)
            stranger.writer.close()

    run(test())


def test_an_orphan_that_ends_late_answers_nobody_elses_call() -> None:
    async def test() -> None:
        async with world() as made:
            release, entered = asyncio.Event(), asyncio.Event()
            plain = made.echo.call

            async def call(call: object) -> object:
                if entered.is_set():
                    return await plain(call)  # type: ignore[arg-type]
                entered.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await release.wait()
                return b"of the orphan"

            made.echo.call = call  # type: ignore[assignment, method-assign]
            stranger = await Stranger.come(made)
            await stranger.bind()
            again = raw.bind_body(raw.proposal(1, made.echo.uuid + b"\1\0\0\0", raw.NDR))
            await stranger.ask(raw.pdu(raw.ALTER, again))
            stranger.writer.write(raw.request(opnum=WAIT))
            await entered.wait()
            stranger.writer.write(raw.pdu(raw.ORPHANED, call_id=2))
            stranger.writer.write(raw.request(opnum=WAIT, context=1))  # the same id
            await until(lambda: made.echo.waiting == 1)
            release.set()
            await until(lambda: results(made) == {"answered": 1})
            made.echo.gate.set()
            answer = await stranger.ask(b"")
            assert answer[24:] == b"waited"
            stranger.writer.close()

    run(test())


def test_refusals_are_counted_by_names_that_are_ours() -> None:
    async def test() -> None:
        async with world() as made:
            for _ in range(3):
                stranger = await Stranger.come(made)
                stranger.writer.write(bytes(64))
                await stranger.is_sent_away()
            assert made.refused("malformed") == 3

    run(test())


def test_who_reads_no_more_still_answers() -> None:
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            stranger.writer.write(raw.request(opnum=WAIT))
            await until(lambda: made.echo.waiting == 1)
            made.process.stop_reading()
            (connection,) = made.process.connections
            connection.pause_writing()
            connection.resume_writing()  # who was slow is not heard either
            stranger.writer.write(raw.request(b"late", opnum=RAW_ECHO, call_id=3))
            made.echo.gate.set()
            assert await stranger.ask(b"") == raw.response(b"waited")
            await made.process.stop()
            assert await stranger.is_sent_away() == b""
            assert len(made.echo.calls) == 1

    run(test())
