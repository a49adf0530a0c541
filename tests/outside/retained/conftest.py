"""One appliance for the files of this package that a worker has; readers and senders to it."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.outside.appliance import Appliance
from tests.outside.conftest import Broker
from tests.outside.rawpeer import Recorder
from tests.outside.records import create_topics
from tests.outside.retained.bench import settings
from tests.outside.retained.clerk import Clerk
from tests.outside.srmp.catcher import Box, Catcher
from tests.outside.srmp.post import Poster


@pytest.fixture(scope="package")
def catcher() -> Iterator[Catcher]:
    with Catcher() as catcher:
        yield catcher


@pytest.fixture(scope="package")
def appliance(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory, catcher: Catcher
) -> Iterator[Appliance]:
    """A test may start it again: ask it for its address each time."""
    prefix = f"retained-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    wanted = settings(prefix, catcher)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=wanted)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture(scope="package")
def clerk(appliance: Appliance) -> Clerk:
    return Clerk(appliance)


@pytest.fixture
def sender(appliance: Appliance) -> Iterator[Recorder]:
    """A session that keeps every ack it is sent."""
    with Recorder(appliance.binary_address) as sender:
        sender.connect().handshake()
        yield sender


@pytest.fixture
def poster(appliance: Appliance) -> Iterator[Poster]:
    with Poster(appliance.srmp_address) as poster:
        yield poster.connect()


@pytest.fixture
def box(catcher: Catcher) -> Box:
    return catcher.box()
