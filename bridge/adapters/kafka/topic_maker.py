"""Topics that only a message can name: wildcards, {label}, {source}, auto-create.

Topics are made within bounds, in all and by the address whose messages name them. Over the bound of
an address, its messages to topics that do not exist are refused; those of other addresses are not,
so nothing is learned for them. An address at its bound is answered from a list of the cluster's
topics that is a few seconds old at most: it cannot make the others wait for Kafka.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from functools import partial
from typing import Final

from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.topics import Survey, ensure_mapped
from bridge.adapters.kafka.worker import Worker
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits
from bridge.model.hosts import neighbourhood

MAX_MADE: Final = 1000  # names come from outside: bounded
MAX_MADE_BY_PEER: Final = 100
FRESH_S: Final = 5.0
_log = logging.getLogger(__name__)


class TopicMaker:
    """Looks topics up when they are first needed, and makes what is missing."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self._settings = settings
        self.catalogue = catalogue  # replaced when the mappings are
        self._made: Counter[str] = Counter()  # topics of this run, by peer
        self._existing: frozenset[str] = frozenset()
        self._looked = float("-inf")
        self._told: set[str] = set()  # peers at their bound
        self._worker = Worker("topic-maker")

    @property
    def made(self) -> int:
        """Topics that were made since the start."""
        return self._made.total()

    async def prepare(self, topics: set[str], peer: str = "") -> set[str]:
        """The catalogue knows them afterwards, or that there is none. Returns those that were not
        made because `peer` is at its bound: its messages to them are refused, now. Raises
        SinkUnavailable."""
        peer = neighbourhood(peer)
        if self._room(peer) <= 0 and time.monotonic() - self._looked < FRESH_S:
            if denied := topics - self._existing:
                self._tell(peer)
            topics = topics & self._existing
        else:
            denied = set()
        if not topics:
            return denied
        retained = {queue.topic for queue in self.catalogue.known() if queue.retains}
        found = await self._worker.run(partial(self._ensure, topics, retained, peer))
        for topic, limits in found.items():
            if isinstance(limits, str):
                _log.error("topic %s cannot be made (%s): its messages are refused", topic, limits)
                limits = TopicLimits(UNKNOWN)
            self.catalogue.learn(topic, limits)
        if missing := topics - found.keys():
            self._tell(peer)
        return denied | missing

    def _room(self, peer: str) -> int:
        """Topics that may be made for this peer. A peer that is not told has no bound of its own:
        it is not one that sends messages."""
        in_all = MAX_MADE - self._made.total()
        return in_all if not peer else min(in_all, MAX_MADE_BY_PEER - self._made[peer])

    def _tell(self, peer: str) -> None:
        if peer not in self._told and len(self._told) < MAX_MADE:
            self._told.add(peer)
            _log.error(
                "messages from %s named %d topics that did not exist, %d were made in all: its "
                "messages to further ones are refused until the next start",
                peer or "this host",
                self._made[peer],
                self._made.total(),
            )

    def _ensure(
        self, topics: set[str], retained: set[str], peer: str
    ) -> dict[str, TopicLimits | str]:
        """In the worker, one call after the other: the bound is one for all shards."""
        survey = Survey()
        try:
            return ensure_mapped(self._settings, topics, self._room(peer), retained, survey)
        finally:
            self._existing, self._looked = survey.existing | survey.made, time.monotonic()
            if survey.made:
                self._made[peer] += len(survey.made)

    def stop(self) -> None:
        self._worker.stop()
