"""Topics that only a message can name: wildcards, {label}, {source}, auto-create."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.topics import ensure_mapped
from bridge.adapters.kafka.worker import Worker
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits

MAX_MADE: Final = 1000  # names come from outside: bounded
_log = logging.getLogger(__name__)


class TopicMaker:
    """Looks topics up when they are first needed, and makes what is missing."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self._settings = settings
        self.catalogue = catalogue  # replaced when the mappings are
        self._known: set[str] = set()
        self._worker = Worker("topic-maker")

    async def prepare(self, topics: set[str]) -> None:
        """The catalogue knows them afterwards, or that there is none. Raises SinkUnavailable."""
        retained = {queue.topic for queue in self.catalogue.known() if queue.retains}
        found = await self._worker.run(partial(self._ensure, topics, retained))
        for topic, limits in found.items():
            if isinstance(limits, str):
                _log.error("topic %s cannot be made (%s): its messages are refused", topic, limits)
                limits = TopicLimits(UNKNOWN)
            self.catalogue.learn(topic, limits)

    def _ensure(self, topics: set[str], retained: set[str]) -> dict[str, TopicLimits | str]:
        """In the worker, one call after the other: the bound is one for all shards."""
        room = MAX_MADE - len(self._known)
        found = ensure_mapped(self._settings, topics, room, retained)
        self._known.update(topic for topic, limits in found.items() if not isinstance(limits, str))
        return found

    def stop(self) -> None:
        self._worker.stop()
