"""A broker that tests may kill; each leaves it running."""

from collections.abc import Iterator

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka


@pytest.fixture(scope="session")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path_factory.mktemp("mortal")) as broker:
        yield broker
