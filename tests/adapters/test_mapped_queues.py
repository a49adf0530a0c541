"""Reading the mapping files again under a running appliance."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.adapters import mapped_queues as module
from bridge.adapters.config_files import load_config
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.mapped_queues import MappedQueues
from bridge.core.admission import Policy
from bridge.core.catalogue import TopicLimits, private_number
from bridge.core.reload import OrderWouldBreak
from bridge.core.shard import Shard
from bridge.model.errors import ConfigError, SinkUnavailable
from tests.core.messages import LOCAL, plain, step

ORDERS = "queues: [{queue: private$\\orders, topic: orders, transactional: true}]\n"


class World:
    """Mapped queues on a cluster that is a set of names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = ORDERS) -> None:
        self.made: set[str] = set()
        self.fault: Exception | None = None
        monkeypatch.setattr(module, "ensure_topics", self._ensure)
        self.file = folder / "mappings.yaml"
        self.file.write_text(text)
        (folder / "bridge.yaml").write_text("mappings: mappings.yaml\ndata: data\n")
        self.queues = MappedQueues(load_config(folder / "bridge.yaml"))
        limits = self._ensure({}, OwnTopics("own"), 1, self.queues.mappings.topics())
        self.queues.open({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"), LOCAL, limits)
        self.shard = Shard(self.queues.catalogue, Policy())

    def _ensure(
        self,
        _settings: Any,
        _own: OwnTopics,
        _shards: int,
        names: Iterable[str],
        kept: Iterable[str] = (),
    ) -> dict[str, TopicLimits]:
        if self.fault is not None:
            raise self.fault
        self.kept = set(kept)
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


# -- one entry more or less -----------------------------------------------------------------


def edit(world: World, queue: str, entry: dict[str, str] | None) -> None:
    asyncio.run(world.queues.edit(queue, entry, [world.shard]))


def test_a_queue_is_created_and_deleted_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch)
    edit(world, "private$\\kept", {"mode": "retain"})
    found = world.queues.catalogue.by_name("private$\\kept")
    assert found is not None
    assert found.retains
    assert world.kept == {"kept"}  # its topic is storage: nothing in it grows old
    assert "mode: retain" in world.file.read_text()
    edit(world, "private$\\kept", None)
    assert world.queues.catalogue.by_name("private$\\kept") is None
    assert world.queues.mappings.by_name().keys() == {"private$\\orders"}


@pytest.mark.parametrize("entry", [{"mode": "retain"}, None])
def test_files_are_as_they_were_if_kafka_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, str] | None
) -> None:
    world = World(tmp_path, monkeypatch)
    before = world.file.read_bytes()
    world.fault = SinkUnavailable("Kafka: preparing topics: away")
    with pytest.raises(SinkUnavailable):
        edit(world, "private$\\orders" if entry is None else "private$\\kept", entry)
    assert world.file.read_bytes() == before
    assert world.queues.catalogue.by_name("private$\\orders") is not None
    assert world.queues.catalogue.by_name("private$\\kept") is None


def test_a_new_queue_does_not_apply_what_would_break_an_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has changed the file and not applied it: who creates a queue did not mean that."""
    world = World(tmp_path, monkeypatch)
    world.shard.admit([step(1)])
    world.file.write_text(ORDERS.replace("topic: orders", "topic: elsewhere"))
    before = world.file.read_bytes()
    with pytest.raises(OrderWouldBreak):
        edit(world, "private$\\kept", {"mode": "retain"})
    assert world.file.read_bytes() == before


def test_of_several_files_a_new_one_gets_what_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mappings"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.yaml").write_text(f"queues: [{{queue: private$\\{name}}}]\n")
    world = World(tmp_path, monkeypatch)
    world.queues = MappedQueues(
        msgspec.structs.replace(load_config(tmp_path / "bridge.yaml"), mappings=folder)
    )
    limits = {"a": TopicLimits(1), "b": TopicLimits(1)}
    world.queues.open({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"), LOCAL, limits)
    edit(world, "private$\\kept", {"mode": "retain"})
    assert "kept" in (folder / "created.yaml").read_text()
    world.fault = SinkUnavailable("away")
    (folder / "created.yaml").unlink()
    with pytest.raises(SinkUnavailable):
        edit(world, "private$\\kept", {"mode": "retain"})
    assert not (folder / "created.yaml").exists()
