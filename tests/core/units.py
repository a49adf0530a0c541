"""What a shard made, and a shard that begins with it."""

from collections.abc import Iterable

import msgspec

from bridge.core.ports import Snapshot, Unit
from bridge.core.shard import Shard


def entries(unit: Unit) -> list[dict[str, object]]:
    return [e for value in unit.audit for e in msgspec.json.decode(value)]


def restarted(one: Shard, units: Iterable[Unit]) -> Shard:
    """A new shard that knows what is in Kafka."""
    state: dict[str, bytes] = {}
    seen: dict[str, bytes] = {}
    for unit in units:
        seen |= unit.seen
        for key, value in unit.state.items():
            state.pop(key, None)
            if value is not None:
                state[key] = value
    fresh = Shard(one._catalogue, one._policy, one._receipts)
    fresh.restore(Snapshot(state, list(seen.values())))
    return fresh
