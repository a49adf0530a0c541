"""A broker of this package's own: it gets frozen and killed."""

from collections.abc import Iterator

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.hostile import BROKER


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    settings = {**BROKER, "group.min.session.timeout.ms": "1000"}  # for leases that are soon over
    with EmbeddedKafka(tmp_path_factory.mktemp("chaos"), settings=settings) as broker:
        yield broker
