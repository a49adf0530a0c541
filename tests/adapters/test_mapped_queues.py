"""Reading the mapping files again under a running appliance."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters import mapped_queues as module
from bridge.adapters.config_files import load_config
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.mapped_queues import MappedQueues
from bridge.core.admission import Policy
from bridge.core.catalogue import TopicLimits, private_number
from bridge.core.reload import OrderWouldBreak
from bridge.core.shard import Shard
from bridge.model.errors import ConfigError
from tests.core.messages import LOCAL, plain, step

ORDERS = "queues: [{queue: private$\\orders, topic: orders, transactional: true}]\n"


class World:
    """Mapped queues on a cluster that is a set of names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = ORDERS) -> None:
        self.made: set[str] = set()
        monkeypatch.setattr(module, "ensure_topics", self._ensure)
        self.file = folder / "mappings.yaml"
        self.file.write_text(text)
        (folder / "bridge.yaml").write_text("mappings: mappings.yaml\ndata: data\n")
        self.queues = MappedQueues(load_config(folder / "bridge.yaml"))
        limits = self._ensure({}, OwnTopics("own"), 1, self.queues.mappings.topics())
        self.queues.open({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"), LOCAL, limits)
        self.shard = Shard(self.queues.catalogue, Policy())

    def _ensure(
        self, _settings: Any, _own: OwnTopics, _shards: int, names: Iterable[str]
    ) -> dict[str, TopicLimits]:
        self.made.update(names)
        return {name: TopicLimits(4) for name in names}

    def reload(self, text: str, *, force: bool = False) -> dict[str, object]:
        self.file.write_text(text)
        return asyncio.run(self.queues.reload([self.shard], force=force))


def test_a_new_queue_counts_from_the_next_message_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    more = ORDERS.replace("]", ", {queue: private$\\plain, topic: plain}]")
    assert [v.reason for v in world.shard.admit([plain(1)])] == ["unknown-queue"]
    assert world.reload(more) == {"applied": ["private$\\plain"], "unchanged": 1}
    assert [v.reason for v in world.shard.admit([plain(2)])] == [""]
    assert world.queues.catalogue.local == LOCAL
    assert world.made == {"orders", "plain"}


def test_a_refused_change_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    world.shard.admit([step(1)])
    with pytest.raises(OrderWouldBreak) as caught:
        world.reload(ORDERS.replace("topic: orders", "topic: elsewhere"))
    assert [b.queue for b in caught.value.breaks] == ["private$\\orders"]
    assert world.made == {"orders"}  # not even a topic
    assert world.queues.mappings.queues[0].topic_name == "orders"
    world.shard.take_unit(0)
    world.shard.admit([step(2)])
    assert [r.topic for r in world.shard.take_unit(0)[1].records] == ["orders"]


def test_force_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    world.shard.admit([step(1)])
    world.reload(ORDERS.replace("topic: orders", "topic: elsewhere"), force=True)
    world.shard.take_unit(0)
    world.shard.admit([step(2)])
    assert [r.topic for r in world.shard.take_unit(0)[1].records] == ["elsewhere"]


def test_a_broken_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match=r"mappings\.yaml:1"):
        world.reload("queues: [{queue: private$\\orders, topik: orders}]\n")
    assert world.queues.mappings.queues[0].topic_name == "orders"


def test_other_defaults_are_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch)
    answer = world.reload(ORDERS + "defaults: {unknown: auto-create}\n")
    assert answer == {"applied": ["defaults"], "unchanged": 1}


def test_numbers_of_names_that_were_seen_stay_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "queues: [{queue: private$\\p*, topic: all}]\n"
    world = World(tmp_path, monkeypatch, text)
    world.shard.admit([plain(1)])
    world.reload(text.replace("all", "other"), force=True)
    number = f"PRIVATE={LOCAL}\\{private_number('plain'):08x}"
    found = world.queues.catalogue.find(number)
    assert found is not None
    assert (found.name, found.topic) == ("private$\\plain", "other")


def test_a_store_for_claims_that_cannot_work_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    text = f"queues: [{{queue: q, oversize: claim-check, claims: {tmp_path}/file}}]\n"
    with pytest.raises(ConfigError, match="claims"):
        World(tmp_path, monkeypatch, text)
