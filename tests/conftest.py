"""Fixtures that several packages share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.masking import SECRETS
from tests.docs.guarantees import PAGE, Proofs

# How fast a machine is says nothing about what it runs.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

# A Spark of a test lives for seconds: what a long run gains by compiling well, it only pays for.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# The longest files do not come at the end, where a single worker would be left with them; Spark
# does, because it leaves sockets to the garbage collector, which may find them in a later test.
_TURNS = {"docs": 0, "chaos": 1, "outside": 2, "spark": 4}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="only the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        chosen[is_long == config.getoption("--long")].append(item)
    config.hook.pytest_deselected(items=chosen[False])
    items[:] = sorted(chosen[True], key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    package = path.relative_to(Path(__file__).parent).parts[0]
    return _TURNS.get(package, 3)


@pytest.fixture(autouse=True)
def _forgotten_secrets() -> Iterator[None]:
    """What one test calls a password another may print."""
    yield
    SECRETS.clear()


def pytest_configure(config: pytest.Config) -> None:
    """Of several processes the first hears of all tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Proofs(PAGE.read_text()), "guarantees")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One real broker for the whole run; tests that use it are marked `kafka`."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
