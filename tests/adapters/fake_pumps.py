"""Stand in for shards and sessions behind the admin port: only what is looked at."""

from types import SimpleNamespace
from typing import Any, cast

from bridge.adapters.intake import ShardPump
from bridge.adapters.net.connection import Connection
from bridge.core.forwards import Forwards, Room
from bridge.core.ports import OutboxEntry
from bridge.core.posted import PostedStreams
from bridge.core.streams import Streams
from bridge.model.guid import Guid


class FakeShard:
    def __init__(self) -> None:
        self.streams = Streams()
        self.posted = PostedStreams()
        self.outbox: dict[int, OutboxEntry] = {}
        self.forwards = Forwards(Room(1 << 20))

    def owe(self, count: int, *, queue_manager: str = "", host: str = "") -> None:
        for _ in range(count):
            ordinal = len(self.outbox)
            self.outbox[ordinal] = OutboxEntry(
                ordinal=ordinal, queue_manager=queue_manager, host=host, packet=b""
            )


class FakePump:
    def __init__(self) -> None:
        self.shard = FakeShard()
        self.is_open, self.why_closed = True, ""
        self.pending, self.pending_bytes = 3, 300


def pumps(*made: FakePump) -> list[ShardPump]:
    return cast(list[ShardPump], list(made))


def connection(number: int, **changes: Any) -> Connection:
    """The peer is 10.0.x.y:2000, its GUID ends in the number."""
    received = SimpleNamespace(
        received=changes.pop("received", number), decided=changes.pop("decided", number)
    )
    session = SimpleNamespace(
        remote=guid(number),
        state=SimpleNamespace(name=changes.pop("state", "OPEN")),
        received=received,
    )
    made = SimpleNamespace(name=f"10.0.{number // 256}.{number % 256}:2000", session=session)
    made.dialed = changes.pop("dialed", None)
    assert not changes
    return cast(Connection, made)


def guid(number: int) -> Guid:
    return Guid.parse(f"11111111-2222-3333-4444-{number:012d}")
