"""Fixtures that several packages share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bridge.adapters.kafka.embedded import EmbeddedKafka

# How fast a machine is says nothing about what it runs.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One real broker for the whole run; tests that use it are marked `kafka`."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
