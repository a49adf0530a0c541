"""The embedded broker as a part of the appliance: started, started again when it dies, stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from bridge.adapters.kafka.embedded import EmbeddedKafka

_log = logging.getLogger(__name__)


class OwnBroker:
    def __init__(self, folder: Path) -> None:
        self._kafka = EmbeddedKafka(folder)
        self._starting: asyncio.Task[None] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self._kafka.bootstrap_servers

    async def start(self) -> None:
        await self._begin(self._kafka.start)

    async def watch(self) -> None:
        """When it dies, start it again on the same folder and port."""
        while True:
            await asyncio.to_thread(self._kafka.wait_dead, None)
            _log.error("the embedded Kafka has died; starting it again")
            await self._begin(self._kafka.restart)

    async def stop(self) -> None:
        """Also one that is just being started: no broker may outlive us."""
        await asyncio.to_thread(self._kafka.stop)
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
            await asyncio.to_thread(self._kafka.stop)

    async def _begin(self, start: Callable[[], None]) -> None:
        """Who is cancelled leaves it to `stop`."""
        self._starting = asyncio.create_task(asyncio.to_thread(start))
        await asyncio.shield(self._starting)
