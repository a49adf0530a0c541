"""Looks after topics: one that takes no records is closed, the rest goes on without it.

Messages to a closed topic stay at their senders (BUSY). It is opened again when the cluster says
that it is well, or, where the cluster does not tell what is wrong, after a while to try again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.topic_states import TopicState
from bridge.adapters.kafka.worker import Worker
from bridge.core.catalogue import Catalogue
from bridge.model.errors import SinkUnavailable

EVERY_S: Final = 3.0
SHORT_LOOKS: Final = 3  # until brokers that are missing count: most come back at once
TRY_AGAIN_S: Final = (2.0, 5.0, 15.0, 60.0)
MOST_NAMED: Final = 10  # topics in a list for people

_log = logging.getLogger(__name__)


class States(Protocol):
    def look(self, names: Collection[str]) -> dict[str, TopicState]: ...


class _Refusal(msgspec.Struct):
    """By a transaction; the cluster may see nothing wrong."""

    why: str
    until: float
    times: int


class TopicWatch:
    def __init__(
        self,
        states: States,
        catalogue: Callable[[], Catalogue],
        own: Mapping[str, int],
        pumps: Sequence[ShardPump],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own` topics, and the record size that each must take."""
        self._states, self._catalogue, self._own, self._pumps = states, catalogue, own, pumps
        self._clock = clock
        self._refused: dict[str, _Refusal] = {}
        self._short: dict[str, int] = {}  # looks in a row that found brokers missing
        self.own_troubles: dict[str, str] = {}
        self._seen: dict[str, TopicState] = {}
        self._worker = Worker("topic-watch")
        self._looking: asyncio.Task[None] | None = None
        for pump in pumps:
            pump.on_refused_topic = self.refused
            pump.on_failure = self.look

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    def stop(self) -> None:
        self._worker.stop()

    async def look(self) -> None:
        """Once for all who ask meanwhile. A Kafka that does not answer changes nothing."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        try:
            names = self._catalogue().topics() | self._own.keys()
            found = await self._worker.run(lambda: self._states.look(names))
        except SinkUnavailable as error:
            _log.debug("%s", error)
        else:
            self._seen = found
            self._short = {t: self._short.get(t, 0) + 1 for t, s in found.items() if s.is_short}
            self._learn(found)
            self._apply()
        finally:
            self._looking = None

    def refused(self, topic: str, why: str) -> None:
        """A transaction failed because of it."""
        times = self._refused[topic].times + 1 if topic in self._refused else 0
        pause = TRY_AGAIN_S[min(times, len(TRY_AGAIN_S) - 1)]
        self._refused[topic] = _Refusal(why, self._clock() + pause, times)
        self._apply()

    def complaints(self) -> list[str]:
        """Topics of queues that take nothing now. Nothing else suffers."""
        return [
            f"topic {topic} {why}; its messages wait at their senders"
            for topic, why in sorted(self._catalogue().closed.items())[:MOST_NAMED]
            if topic not in self._own
        ]

    def own_complaints(self) -> list[str]:
        """Without them nothing goes on."""
        return [f"our topic {topic} {why}" for topic, why in sorted(self.own_troubles.items())]

    def partitions(self) -> dict[str, int]:
        """Of every topic that was found, ours too."""
        return {
            topic: state.limits.partitions
            for topic, state in self._seen.items()
            if state.limits is not None
        }

    def is_all_closed(self) -> bool:
        """No queue has a topic that takes its messages."""
        catalogue = self._catalogue()
        topics = {queue.topic for queue in catalogue.queues if queue.topic}
        return bool(topics) and topics <= catalogue.closed.keys()

    def _learn(self, found: Mapping[str, TopicState]) -> None:
        catalogue, is_news = self._catalogue(), False
        for topic, state in found.items():
            known = catalogue.limits_of(topic)
            if topic in self._own or state.limits is None or known is None:
                continue
            partitions = min(known.partitions or state.limits.partitions, state.limits.partitions)
            limits = msgspec.structs.replace(state.limits, partitions=partitions)
            if limits != known:
                _log.warning("topic %s is not as it was: %s, so far %s", topic, limits, known)
                catalogue.learn(topic, limits)
                is_news = True
        if is_news:
            self._renew()

    def _apply(self) -> None:
        """Closes and opens topics by what is known now."""
        troubles = self._troubles()
        own = {topic: why for topic, why in troubles.items() if topic in self._own}
        for topic in own.keys() - self.own_troubles.keys():
            _log.error("our topic %s %s; nothing is taken until then", topic, own[topic])
        for topic in self.own_troubles.keys() - own.keys():
            _log.info("our topic %s is well again", topic)
        self.own_troubles = own
        closed = self._catalogue().closed
        if troubles == closed:
            return
        for topic in sorted(troubles.keys() - closed.keys() - own.keys()):
            _log.error("topic %s %s; its messages wait, the rest goes on", topic, troubles[topic])
        for topic in sorted(closed.keys() - troubles.keys() - self._own.keys()):
            _log.info("topic %s takes records again", topic)
        fresh = troubles.keys() - closed.keys()
        closed.clear()
        closed |= troubles
        self._renew()
        for pump in self._pumps:
            pump.let_go_of(set(fresh))

    def _renew(self) -> None:
        """What shards have worked out from their queues is worked out again."""
        catalogue = self._catalogue()
        for pump in self._pumps:
            pump.shard.use(catalogue)

    def _troubles(self) -> dict[str, str]:
        found: dict[str, str] = {}
        now = self._clock()
        is_own_short = any(self._seen[t].is_short for t in self._own if t in self._seen)
        for topic, state in self._seen.items():
            # If ours are short too, it is the cluster: all is held until it is back.
            if state.is_short and (is_own_short or self._short[topic] < SHORT_LOOKS):
                continue
            if why := state.why or self._too_small(topic, state):
                found[topic] = why
        for topic, refusal in list(self._refused.items()):
            if refusal.until > now:
                found.setdefault(topic, refusal.why)
            elif refusal.until + 10 * TRY_AGAIN_S[-1] < now:
                del self._refused[topic]  # it was well for long
        return found

    def _too_small(self, topic: str, state: TopicState) -> str:
        least = self._own.get(topic, 0)
        if state.limits is None or state.limits.max_bytes >= least:
            return ""
        return f"has max.message.bytes {state.limits.max_bytes}: set it to {least}"
