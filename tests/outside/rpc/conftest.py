"""One appliance with queues that remote readers can read, and readers of stock impacket."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Protocol

import pytest

from tests.outside.appliance import Appliance, Settings, queue
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import Message
from tests.outside.rpc.reader import Account, Reader

ANN = Account("ann", "secret", "SHOP")
BOB = Account("bob", "hidden")
USERS = {"ann": "secret", "SHOP\\ann": "secret", "bob": "hidden", "SHOP\\eve": "other"}
KEPT = [f"kept{number}" for number in range(1, 21)]  # each test takes its own


class OpenReader(Protocol):
    def __call__(self, account: Account = ANN) -> Reader: ...


class Send(Protocol):
    """To a queue; returns when they are in Kafka."""

    def __call__(self, name: str, *bodies: bytes) -> None: ...


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        queues={name: {"mode": "retain", "allow_read": ["Ann", "SHOP\\Eve"]} for name in KEPT}
        | {"ordered": {"mode": "retain", "transactional": True, "allow_read": ["*"]}},
        listen={"rpc": 0, "rpc_qp": 0, "endpoint_mapper": 0},
        users=USERS,
        defaults={"allow_read": ["ann"]},
    )


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    """Queues that no other test of the module uses."""
    return iter(KEPT)


@pytest.fixture
def kept(names: Iterator[str]) -> str:
    return next(names)


@pytest.fixture
def open_reader(appliance: Appliance) -> Iterator[OpenReader]:
    close: list[Callable[[], None]] = []

    def make(account: Account = ANN) -> Reader:
        reader = Reader(appliance.listeners["rpc"], account)
        close.append(reader.close)
        return reader

    yield make
    for end in close:
        end()


@pytest.fixture
def send(open_sender: OpenSender) -> Send:
    ids = count(1)

    def deliver(name: str, *bodies: bytes) -> None:
        sender = open_sender()
        sender.send_all_windowed(
            [
                Message(
                    source=sender.guid,
                    message_id=next(ids),
                    destination=queue(name),
                    body=body,
                    recoverable=True,
                )
                for body in bodies
            ]
        )

    return deliver


def path(name: str) -> str:
    return f"OS:BRIDGE01\\private$\\{name}"
