"""The mapping files as a running appliance uses them: its queues, their topics, their claims."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bridge.adapters.claims import ClaimStore
from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.topic_maker import TopicMaker
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.adapters.mapping_changes import Source, add_entry, remove_entry
from bridge.adapters.mapping_editor import yaml_scalar
from bridge.adapters.mapping_files import load_mappings, mapping_files
from bridge.config import Config
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.core.mapping_rules import Mappings
from bridge.core.reload import OrderWouldBreak, changes, mode_changes, order_breaks
from bridge.core.shard import Shard
from bridge.model.errors import BridgeError
from bridge.model.guid import NULL_GUID, Guid

_log = logging.getLogger(__name__)


class MappedQueues:
    """Loaded at once, so that a bad file stops the start; `open` when Kafka is there."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._reserved = f"{config.topic_prefix}."
        self.claims = ClaimStore(config.data)
        self.mappings = self._load()
        self.catalogue = Catalogue(NULL_GUID, ())
        self._topic_maker: TopicMaker | None = None
        self._reloading = asyncio.Lock()

    def open(
        self, settings: Settings, own: OwnTopics, local: Guid, limits: Mapping[str, TopicLimits]
    ) -> None:
        self._settings, self._own = settings, own
        self.catalogue = Catalogue.of(local, self.mappings, limits, self._reserved)
        self._topic_maker = TopicMaker(settings, self.catalogue)

    def close(self) -> None:
        if self._topic_maker is not None:
            self._topic_maker.stop()

    @property
    def made_topics(self) -> int:
        """Since the start, because messages named them."""
        return 0 if self._topic_maker is None else self._topic_maker.made

    async def prepare(self, topics: set[str], peer: str) -> set[str]:
        """See TopicMaker; after `open`."""
        assert self._topic_maker is not None
        return await self._topic_maker.prepare(topics, peer)

    async def reload(self, shards: Sequence[Shard], *, force: bool) -> dict[str, object]:
        """Switch to the files as they are now; sessions and streams go on.

        Raises ConfigError, SinkUnavailable or OrderWouldBreak, and then the old mappings stay.
        """
        async with self._reloading:
            mappings = await asyncio.to_thread(self._load)
            if not force:  # before a topic is made for nothing
                self._check_order(self._catalogue(mappings, {}), shards)
            shard_count, topics = self._config.shards, mappings.topics()
            kept = mappings.retained_topics()
            make = partial(ensure_topics, self._settings, self._own, shard_count, topics, kept)
            catalogue = self._catalogue(mappings, await asyncio.to_thread(make))
            if not force:
                self._check_order(catalogue, shards)
            catalogue.remember(self.catalogue)
            for shard in shards:
                shard.use(catalogue)
            assert self._topic_maker is not None
            self._topic_maker.catalogue = self.catalogue = catalogue
            before, self.mappings = self.mappings, mappings
        changed, unchanged = changes(before, mappings)
        _log.warning("mappings were read again; changed: %s", ", ".join(changed) or "nothing")
        notes = mode_changes(before, mappings)
        for note in notes:
            _log.warning("%s", note)
        return {"applied": changed, "unchanged": unchanged} | ({"notes": notes} if notes else {})

    async def edit(
        self, queue: str, entry: Mapping[str, str] | None, shards: Sequence[Shard]
    ) -> None:
        """Add this entry (values in YAML) to the files, or remove the queue's, and switch to them.

        Raises what `reload` raises; then the files are as they were."""
        source = Source(self._config.mappings, self._reserved)
        undo = await asyncio.to_thread(self._write, source, queue, entry)
        try:
            # Who deletes a queue knows that its senders are refused from then on.
            await self.reload(shards, force=entry is None)
        except BridgeError:
            await asyncio.to_thread(undo)
            raise

    def _write(
        self, source: Source, queue: str, entry: Mapping[str, str] | None
    ) -> Callable[[], None]:
        if entry is None:
            return remove_entry(source, queue).undo
        written = {"queue": yaml_scalar(queue), **entry}
        several = source.path.is_dir() and len(mapping_files(source.path)) > 1
        return add_entry(source, queue, written, Path("created.yaml") if several else None).undo

    def _load(self) -> Mappings:
        mappings = load_mappings(self._config.mappings, reserved=self._reserved)
        self.claims.check(
            str(settings.claims or "")
            for settings in mappings.every()
            if settings.oversize == "claim-check"
        )
        return mappings

    def _catalogue(self, mappings: Mappings, limits: Mapping[str, TopicLimits]) -> Catalogue:
        return Catalogue.of(self.catalogue.local, mappings, limits, self._reserved)

    def _check_order(self, new: Catalogue, shards: Sequence[Shard]) -> None:
        streams = (key for shard in shards for key in (*shard.streams, *shard.posted))
        if breaks := order_breaks(self.catalogue, new, streams):
            raise OrderWouldBreak(breaks)
