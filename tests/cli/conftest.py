"""One running appliance for all tests of this package that only need one to talk to."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.adapters.reader.served import Served as ServedRpc
from tests.cli.program import serve
from tests.cli.remote_host import Host
from tests.support.config import topic, write_config
from tests.support.kafka import unique


class Served(msgspec.Struct, frozen=True):
    config: Path
    bootstrap: str
    prefix: str
    binary: str

    def topic(self, name: str) -> str:
        return topic(self.prefix, name)


@pytest.fixture(scope="package")
def appliance(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    prefix = unique("cli")
    folder = tmp_path_factory.mktemp(prefix)
    config = write_config(folder, kafka.bootstrap_servers, topic_prefix=prefix)
    with serve(config) as program:
        program.wait_line("ready: ")
        yield Served(config, kafka.bootstrap_servers, prefix, program.address("binary"))


@pytest.fixture
def host(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """An MSMQ host that is not ours."""
    with ServedRpc().running() as served:
        yield Host(served, capsys, monkeypatch)
