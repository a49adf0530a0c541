"""`msmq-bridge serve`: the appliance, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer
from msgspec.structs import replace

from bridge.adapters.config_files import load_config
from bridge.adapters.logs import say_what_was_left_out, setup_logging
from bridge.adapters.net.files import raise_file_limit
from bridge.app import Appliance
from bridge.cli.live import LivePicture
from bridge.cli.options import ConfigOption
from bridge.model.errors import BridgeError

_log = logging.getLogger(__name__)


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    config: ConfigOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show a live picture of what arrives.")
    ] = False,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby", help="Wait while another appliance leads, take over when it is gone."
        ),
    ] = False,
    log_level: Annotated[
        LogLevel | None,
        typer.Option("--log-level", help="What goes to stderr.", case_sensitive=False),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            "--log-format", help="auto: text on a terminal, else JSON.", case_sensitive=False
        ),
    ] = None,
) -> None:
    """Be an MSMQ queue manager whose messages are Kafka records.

    Without kafka.bootstrap.servers in the configuration it starts the embedded Kafka.

    Example: msmq-bridge serve --config bridge.yaml
    """
    settings = load_config(config)
    usual = LogLevel.WARNING if live else LogLevel.INFO
    setup_logging(log_level or settings.log.level or usual, log_format or settings.log.format)
    raise_file_limit()
    if standby:
        settings = replace(settings, standby=True)
    try:
        asyncio.run(_serve(Appliance(settings), live=live))
    except Exception as error:
        if not isinstance(error, BridgeError):  # a bug: its traceback is a line of the log, too
            _log.exception("a fault of ours ends the appliance")
            raise typer.Exit(1) from None
        raise
    finally:
        say_what_was_left_out(all_of_it=True)


async def _serve(appliance: Appliance, *, live: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    tasks = [asyncio.create_task(_run(appliance, live=live)), asyncio.create_task(stop.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _announce("stopping")
        await appliance.stop()


async def _run(appliance: Appliance, *, live: bool) -> None:
    await appliance.start(_announce)
    # What start made stays; records that wait for their commit are many and have no cycles.
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    if not live:
        await appliance.run()
        return
    picture = asyncio.create_task(LivePicture(appliance).run())
    try:
        await appliance.run()
    finally:
        picture.cancel()


def _announce(line: str) -> None:
    """The reader of our output may be gone; that must not keep us from stopping in order."""
    with suppress(OSError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
