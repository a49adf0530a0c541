"""Fixtures that several packages share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.docs.guarantees import PAGE, Proofs

# How fast a machine is says nothing about what it runs.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


def pytest_configure(config: pytest.Config) -> None:
    """Of several processes the first hears of all tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Proofs(PAGE.read_text()), "guarantees")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One real broker for the whole run; tests that use it are marked `kafka`."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
