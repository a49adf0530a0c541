"""Fixtures that several packages share."""

from collections.abc import Iterator

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One real broker for the whole run; tests that use it are marked `kafka`."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
