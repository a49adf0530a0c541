"""One appliance for the files of this package that a worker has, and what they talk to it with."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.conftest import Broker
from tests.outside.records import create_topics
from tests.outside.srmp.bench import Topics, settings
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.post import Poster

Connect = Callable[[], Poster]


@pytest.fixture(scope="package")
def catcher() -> Iterator[Catcher]:
    with Catcher() as catcher:
        yield catcher


@pytest.fixture(scope="package")
def appliance(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory, catcher: Catcher
) -> Iterator[Appliance]:
    """A test may start it again: ask it for its address each time."""
    prefix = f"srmp-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings(catcher))
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture(scope="package")
def topics(appliance: Appliance) -> Iterator[Topics]:
    with Topics(appliance) as topics:
        yield topics


@pytest.fixture
def connect(appliance: Appliance) -> Iterator[Connect]:
    made: list[Poster] = []

    def make() -> Poster:
        made.append(Poster(appliance.srmp_address).connect())
        return made[-1]

    yield make
    for poster in made:
        poster.close()


@pytest.fixture
def poster(connect: Connect) -> Poster:
    return connect()


@pytest.fixture
def box(catcher: Catcher) -> Box:
    return catcher.box()
