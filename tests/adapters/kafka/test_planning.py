"""The plan of a running appliance: files, what it uses, what is in the cluster."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.kafka.cluster import Cluster, Outcome
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.planning import ChangesFailed, Planner
from bridge.core.mapping_rules import Mappings
from bridge.core.plan import Change
from bridge.model.errors import ConfigError
from tests.support.config import topic, write_config

pytestmark = pytest.mark.kafka


class World:
    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.file = write_config(folder, bootstrap)
        self.config = load_config(self.file)
        self.used = Mappings()
        self.reloads: list[bool] = []
        self.planner = Planner(
            self.config, {"bootstrap.servers": bootstrap}, lambda: self.used, self._reload
        )

    async def _reload(self, force: bool) -> dict[str, object]:
        self.reloads.append(force)
        self.used = load_mappings(self.config.mappings)
        return {"applied": ["private$\\orders"], "unchanged": 0}


def test_plan_then_apply_then_nothing(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    async def run() -> None:
        world = World(tmp_path, kafka.bootstrap_servers)
        wanted = {topic(world.config.topic_prefix, name) for name in ("orders", "plain")}
        before = await world.planner.plan()
        assert before is await world.planner.plan()  # a young one is told again
        assert wanted <= {change["topic"] for change in before["changes"]}
        assert set(before["queues"]["changed"]) == {"private$\\orders", "private$\\plain"}
        made = await world.planner.apply(False)
        assert {change["action"] for change in made["changes"]} == {"create"}
        assert made["appliance"]["applied"] == ["private$\\orders"]
        after = await world.planner.plan()
        assert (after["changes"], after["queues"]["changed"]) == ([], [])
        assert world.reloads == [False]
        world.planner.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_change_that_fails_keeps_the_mappings(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Outcome(Change(action="create", topic="orders"), "not authorized")
    monkeypatch.setattr(Cluster, "execute", lambda *_: [failed])

    async def run() -> None:
        world = World(tmp_path, kafka.bootstrap_servers)
        with pytest.raises(ChangesFailed, match="1 of 1 changes failed, first orders: not auth"):
            await world.planner.apply(True)
        assert world.reloads == []
        world.planner.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_broken_file_is_told_and_nothing_is_done(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    async def run() -> None:
        world = World(tmp_path, kafka.bootstrap_servers)
        world.config.mappings.write_text("queues: 7")
        asked: list[Any] = [world.planner.plan(), world.planner.apply(False)]
        for one in asked:
            with pytest.raises(ConfigError, match=r"mappings\.yaml:1"):
                await one
        assert world.reloads == []
        world.planner.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
