"""One appliance per test module, on a prefix and topics of its own, and senders to it."""

from collections.abc import Callable, Iterator
from typing import Protocol
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import Appliance, Settings
from tests.outside.rawsender import RawSender
from tests.outside.records import create_topics


class Broker(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


class OpenSender(Protocol):
    """A sender with an open session, or only a connection."""

    def __call__(
        self,
        guid: UUID | None = None,
        *,
        window: int = 64,
        recoverable_ack_ms: int = 500,
        auto_ack: bool = True,
        handshake: bool = True,
    ) -> RawSender: ...


@pytest.fixture(scope="module")
def settings() -> Settings:
    """A module that wants another appliance has a fixture of this name."""
    return Settings()


@pytest.fixture(scope="module")
def appliance(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory, settings: Settings
) -> Iterator[Appliance]:
    prefix = f"outside-{uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp(prefix)
    appliance = Appliance(folder, kafka.bootstrap_servers, prefix, settings=settings)
    create_topics(appliance.bootstrap, [appliance.topic(name) for name in appliance.queues])
    appliance.start()
    yield appliance
    appliance.terminate()


@pytest.fixture
def open_sender(appliance: Appliance) -> Iterator[OpenSender]:
    close: list[Callable[[], None]] = []

    def make(
        guid: UUID | None = None,
        *,
        window: int = 64,
        recoverable_ack_ms: int = 500,
        auto_ack: bool = True,
        handshake: bool = True,
    ) -> RawSender:
        sender = RawSender(
            appliance.binary_address,
            guid,
            window=window,
            recoverable_ack_ms=recoverable_ack_ms,
            auto_ack=auto_ack,
        )
        close.append(sender.close)
        sender.connect()
        if handshake:
            sender.handshake()
        return sender

    yield make
    for end in close:
        end()
