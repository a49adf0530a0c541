"""The cluster beside the mappings: what `map plan` shows and `map apply` does, here and there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.cluster import Cluster, Outcome, own_topics
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.kafka.worker import Worker
from bridge.adapters.mapping_files import load_mappings
from bridge.config import Config
from bridge.core.mapping_rules import Mappings
from bridge.core.plan import Options, Plan, make_plan
from bridge.core.plan_data import described, entry_of
from bridge.core.reload import changes
from bridge.core.wanted import dynamic_topics, wanted_topics
from bridge.model.errors import Unavailable

FRESH_S: Final = 10.0
Reload = Callable[[bool], Awaitable[dict[str, object]]]


def draw(config: Config, rules: Mappings, cluster: Cluster, options: Options) -> Plan:
    """Blocking."""
    wanted, own = wanted_topics(rules), OwnTopics(config.topic_prefix)
    names = [topic.name for topic in (*wanted, *own_topics(own, config.shards))]
    facts = cluster.read(names)
    notes, shards = dynamic_topics(rules), config.shards
    if own.state in facts.topics and facts.topics[own.state].partitions != shards:
        shards = facts.topics[own.state].partitions
        notes.append(f"'shards' is {config.shards}, but {own.state} was made for {shards}")
    return make_plan([*wanted, *own_topics(own, shards)], facts, options, notes)


class Planner:
    """The plan of a running appliance: its mapping files as they are now against what it uses and
    what is in the cluster. One look at a time; a young one is told again."""

    def __init__(
        self, config: Config, settings: Settings, used: Callable[[], Mappings], reload: Reload
    ) -> None:
        self._config, self._settings = config, settings
        self._used, self._reload = used, reload
        self._busy = asyncio.Lock()
        self._worker = Worker("planner")
        self._plan: dict[str, Any] = {}
        self._at = float("-inf")

    def stop(self) -> None:
        self._worker.stop()

    async def plan(self) -> dict[str, Any]:
        """Raises ConfigError if the files are not in order, Unavailable while Kafka is away."""
        async with self._busy:
            if time.monotonic() - self._at > FRESH_S:
                self._plan = await self._worker.run(self._draw)
                self._at = time.monotonic()
            return self._plan

    async def apply(self, force: bool) -> dict[str, Any]:
        """Change the cluster, then switch to the files; the appliance keeps its mappings if a
        change fails. Raises what `plan` raises, or OrderWouldBreak."""
        async with self._busy:
            self._at = float("-inf")
            outcomes = await self._worker.run(lambda: self._execute(force))
            failed = [f"{o.change.topic}: {o.error}" for o in outcomes if o.error]
            if failed:
                raise ChangesFailed(failed, len(outcomes))
            return {
                "changes": msgspec.to_builtins([entry_of(o.change) for o in outcomes]),
                "appliance": await self._reload(force),
            }

    def _rules(self) -> Mappings:
        return load_mappings(self._config.mappings, reserved=f"{self._config.topic_prefix}.")

    def _draw(self) -> dict[str, Any]:
        rules = self._rules()
        drawn = draw(self._config, rules, Cluster(self._settings), Options())
        changed, unchanged = changes(self._used(), rules)
        queues = {"changed": changed, "unchanged": unchanged}
        return dict(msgspec.to_builtins(described(drawn))) | {"queues": queues}

    def _execute(self, force: bool) -> list[Outcome]:
        cluster = Cluster(self._settings)
        drawn = draw(self._config, self._rules(), cluster, Options(force=force))
        return cluster.execute(drawn.to_do)


class ChangesFailed(Unavailable):
    """Some changes of the cluster were made, some not."""

    def __init__(self, failed: list[str], count: int) -> None:
        super().__init__(f"{len(failed)} of {count} changes failed, first {failed[0]}")
