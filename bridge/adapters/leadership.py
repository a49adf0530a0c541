"""Of several appliances one leads: the lease says who, a lifeline tells the others when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.lease import Lease, new_name
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.net.lifeline import Lifeline
from bridge.adapters.succession import Succession
from bridge.config import Config
from bridge.model.errors import ConfigError

_log = logging.getLogger(__name__)


class Leadership:
    """`win`, lead until the task that it gave ends, `leave`."""

    def __init__(self, settings: Settings, own: OwnTopics, config: Config) -> None:
        name = new_name()
        self.lifeline = _bind(config, name)
        port = self.lifeline.port if self.lifeline is not None else 0
        self.lease = Lease(settings, own, config.lease_s, name=name, lifeline=port)
        self._succession = Succession(settings, own, self.lease)

    @property
    def is_held(self) -> bool:
        return self.lease.is_held

    @property
    def complaint(self) -> str:
        """Why the lease cannot be had; empty when nothing is wrong."""
        return "" if self.is_held else self.lease.why

    async def win(self) -> asyncio.Task[None]:
        """The task that comes back ends when we lead no more."""
        succession = asyncio.create_task(self._succession.run())
        try:
            await unless(succession, self.lease.won())
        finally:
            succession.cancel()
            await asyncio.gather(succession, return_exceptions=True)
        if self.lifeline is not None:
            await self.lifeline.open()
        return asyncio.create_task(self.lease.lost())

    async def leave(self, patience_s: float) -> None:
        """Not before all that is ours is settled; and we have not ended before we have left."""
        await self.lease.leave(patience_s)
        if self.lifeline is not None:
            self.lifeline.close()


def _bind(config: Config, name: str) -> Lifeline | None:
    """The address may be one that only the leader has: no reason not to stand by."""
    listen = config.listen
    if listen.lease is None:
        return None
    try:
        return Lifeline(listen.host, listen.lease, name)
    except ConfigError as error:
        _log.warning(
            "no lifeline, listen.lease: %s; "
            "if this one leads and crashes, its lease has to run out first",
            error.what,
        )
        return None


async def unless(lost: asyncio.Task[None], work: Coroutine[Any, Any, None]) -> None:
    """Do it, unless the other one ends meanwhile: the lease is lost, say."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    if lost.done():
        lost.result()
    task.result()
