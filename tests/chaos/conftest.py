"""A broker of this package's own: it gets frozen and killed."""

from collections.abc import Iterator

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path_factory.mktemp("chaos")) as broker:
        yield broker
