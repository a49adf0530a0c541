"""`msmq-bridge demo`: the appliance, senders that use it, and what became of their messages."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from bridge.adapters.config_files import kafka_properties, load_config
from bridge.adapters.demo.folder import demo_folder
from bridge.adapters.demo.script import Part, Stage, acts
from bridge.adapters.demo.senders import Told, perform
from bridge.adapters.demo.witness import Watch, read_back
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.logs import setup_logging
from bridge.app import Appliance
from bridge.cli.demo_board import Board
from bridge.cli.demo_text import Answers
from bridge.cli.options import ConfigOption
from bridge.cli.output import Output, OutputOption
from bridge.config import Address, Config
from bridge.core.audit import AuditEntry
from bridge.model.errors import ConfigError, Unavailable

VERDICTS_S: Final = 60.0
MOST: Final = 1000
INTERRUPTED: Final = 130
_REACHED: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # bound to all of them, reached at this


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Keep everything in this folder; else in one that goes."),
    ] = None,
    config: ConfigOption = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=MOST, help="Messages of each delivery mode.")
    ] = 5,
    once: Annotated[bool, typer.Option("--once", help="Leave after the answers.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """See it work: an appliance on a Kafka of its own, senders of every kind, and three answers.

    What came in, where is it in Kafka, what was the sender told? Then it stays until Ctrl-C, which
    stops all that it started. Exit code 0 once the answers are shown, 130 when Ctrl-C came before.
    With --config it is that appliance, and the messages go to the first queues it maps.

    Example: msmq-bridge demo --once --count 3
    """
    setup_logging("WARNING")
    board = Board(output)
    if config is not None:
        _run(config, data, board, count, once)
    else:
        with demo_folder(data) as made:
            _run(made, None, board, count, once)
    if not board.answered:
        raise typer.Exit(INTERRUPTED)


def _run(config: Path, data: Path | None, board: Board, count: int, once: bool) -> None:
    settings = load_config(config)
    if data is not None:
        settings = msgspec.structs.replace(settings, data=data.absolute())
    if settings.listen.binary is None:
        what = "listen.binary is null, so nobody can send anything"
        raise ConfigError(what, where=str(config), mend="give it a port, 0 for any free one")
    asyncio.run(_Demo(settings, config, board).run(count, once))


class _Demo:
    def __init__(self, config: Config, path: Path, board: Board) -> None:
        self._config, self._path, self._board = config, path, board
        self._appliance = Appliance(config)
        self._stage = Stage.of(self._appliance.mappings)
        self._own = OwnTopics(config.topic_prefix)
        self._watch: Watch | None = None

    async def run(self, count: int, once: bool) -> None:
        """Everything that it starts has ended when it returns."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await _first(self._live(count, once), stop.wait())
        finally:
            try:
                self._board.say("stopping")
            finally:
                if self._watch is not None:
                    await asyncio.to_thread(self._watch.stop)
                await self._appliance.stop()

    async def _live(self, count: int, once: bool) -> None:
        await self._appliance.start(self._board.say)
        await _first(self._appliance.run(), self._perform(count, once))

    async def _perform(self, count: int, once: bool) -> None:
        await self._look()
        answers = await _first(self._act(count), self._board.draw("what arrives"))
        self._board.answer(answers)
        if not once:
            self._invite()
            await self._board.draw("what arrives now; Ctrl-C stops all of it")

    async def _look(self) -> None:
        """Every verdict from now on comes to the board."""
        loop = asyncio.get_running_loop()

        def tell(entries: list[AuditEntry]) -> None:
            loop.call_soon_threadsafe(self._board.add, entries)

        self._watch = Watch(self._kafka, self._own.audit, tell)
        await asyncio.to_thread(self._watch.start)

    async def _act(self, count: int) -> Answers:
        address = self._address
        http = str(self._reached("srmp")) if "srmp" in self._appliance.listeners else ""
        told: list[tuple[Part, Told]] = []
        for act in acts(self._stage, count, int(time.time()), http):
            heard = await asyncio.gather(*(perform(part, address) for part in act))
            told += zip(act, heard, strict=True)
        verdicts = await self._verdicts([m.id for part, _ in told for m in part.messages])
        records = await asyncio.to_thread(read_back, self._kafka, self._own.rejects, verdicts)
        return Answers(verdicts=verdicts, records=records, told=told)

    async def _verdicts(self, ids: list[str]) -> list[AuditEntry]:
        try:
            async with asyncio.timeout(VERDICTS_S):
                return await self._board.verdicts(set(ids), len(ids))
        except TimeoutError as error:
            what = f"some of {len(ids)} verdicts are not in {self._own.audit}"
            raise Unavailable(f"{what} after {VERDICTS_S:g} s; see 'msmq-bridge status'") from error

    @property
    def _kafka(self) -> dict[str, Any]:
        told = self._appliance.status()["kafka"]
        assert isinstance(told, dict)
        servers = {"bootstrap.servers": told["bootstrap.servers"]}
        return {**kafka_properties(self._config), **servers}

    @property
    def _address(self) -> Address:
        return self._reached("binary")

    def _reached(self, listener: str) -> Address:
        bound = Address.parse(self._appliance.listeners[listener])
        return Address(_REACHED.get(bound.host, bound.host), bound.port)

    def _invite(self) -> None:
        queue = self._stage.transactional or self._stage.recoverable
        kind = " --transactional" if self._stage.transactional else ""
        self._board.say("")
        self._board.say("It stays, in another terminal you can try:")
        self._board.say(f"  msmq-bridge send --host {self._address} --queue '{queue}'{kind}")
        self._board.say(f"  msmq-bridge status --config {self._path}")


async def _first(*coroutines: Coroutine[Any, Any, Any]) -> Any:
    """What the first of them returns or raises; the others are cancelled."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task.result() for task in tasks if task in done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
