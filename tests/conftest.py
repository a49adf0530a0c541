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

# The files with the longest tests begin: none of them is left for a single worker at the end.
_LONG = ("spark", "docs", "chaos", "outside")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    package = path.relative_to(Path(__file__).parent).parts[0]
    return _LONG.index(package) if package in _LONG else len(_LONG)


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
