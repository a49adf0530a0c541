from collections.abc import Iterator

import pytest

from tests.adapters.reader.served import Served


@pytest.fixture
def served() -> Iterator[Served]:
    with Served().running() as running:
        yield running
