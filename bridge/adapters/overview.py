"""What `status` tells of sessions, shards, streams and what waits: plain values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.net.connection import Connection
from bridge.core.mapping_rules import QueueMapping

MOST: Final = 100  # of a list; its length is told beside it


def queues(
    mappings: Sequence[QueueMapping],
    topics: Sequence[Mapping[str, Any]],
    depths: Mapping[str, int] | None = None,
) -> list[dict[str, Any]]:
    """With what their topics got; a topic that only a message can name is among the topics.

    `depths`: how many messages wait, by the queue's name in small letters."""
    counted = {row["topic"]: row for row in topics}
    nothing = {"records": 0, "per_second": 0.0}
    return [
        {
            "queue": m.queue,
            "topic": m.topic_name or m.template,
            "transactional": m.transactional,
            "mode": m.mode,
            "waiting": _waiting(m, depths or {}),
            "records": counted.get(m.topic_name, nothing)["records"] if m.topic_name else None,
            "per_second": (
                counted.get(m.topic_name, nothing)["per_second"] if m.topic_name else None
            ),
        }
        for m in mappings
    ]


def _waiting(mapping: QueueMapping, depths: Mapping[str, int]) -> int | None:
    if mapping.mode != "retain" or mapping.queue.has_wildcard:
        return None
    return depths.get(mapping.queue.lower(), 0)


def sessions(connections: Iterable[Connection]) -> list[dict[str, Any]]:
    return [
        {
            "peer": c.name,
            "queue_manager": str(c.session.remote),
            "state": c.session.state.name,
            "received": c.session.received.received,
            "decided": c.session.received.decided,
        }
        for c in islice(connections, MOST)
    ]


def shards(pumps: Sequence[ShardPump]) -> list[dict[str, Any]]:
    return [
        {
            "shard": number,
            "state": "open" if pump.is_open else pump.why_closed or "closed",
            "pending_messages": pump.pending,
            "pending_bytes": pump.pending_bytes,
            "streams": len(pump.shard.streams) + len(pump.shard.posted),
            "waiting_acks": len(pump.shard.outbox),
        }
        for number, pump in enumerate(pumps)
    ]


def streams(pumps: Sequence[ShardPump]) -> list[dict[str, Any]]:
    cursors = chain.from_iterable(pump.shard.streams.items() for pump in pumps)
    found = [
        {
            "source": str(source),
            "destination": destination,
            "sequence_id": cursor.sequence_id,
            "number": cursor.number,
        }
        for (source, destination), cursor in islice(cursors, MOST)
    ]
    posted = chain.from_iterable(pump.shard.posted.items() for pump in pumps)
    return found + [
        {
            "source": str(source),
            "destination": destination,
            "sequence_id": row.id,
            "number": row.number,
            "sender": row.source,  # SR-39
            "last_access": row.at,
            "rejects": row.rejects,
            "receipted": row.receipted,
            "receipts_to": row.receipts_to,
        }
        for (source, destination), row in islice(posted, MOST)
    ]


def acks(pumps: Sequence[ShardPump]) -> list[dict[str, Any]]:
    """Durable, and not yet taken by their peers; the longest queue first."""
    waiting = Counter(
        entry.url or entry.queue_manager or entry.host
        for pump in pumps
        for entry in pump.shard.outbox.values()
    )
    return [{"peer": peer, "waiting": count} for peer, count in waiting.most_common(MOST)]


def forwards(pumps: Sequence[ShardPump], failing: Collection[str]) -> list[dict[str, Any]]:
    """Messages for other hosts; the longest queue first. `failing` URLs did not take the last."""
    waiting, size = Counter[str](), Counter[str]()
    for forward in chain.from_iterable(pump.shard.forwards for pump in pumps):
        url = forward.onward.url
        waiting[url] += 1
        size[url] += len(forward.onward.packet)
    return [
        {"url": url, "waiting": count, "bytes": size[url], "failing": url.lower() in failing}
        for url, count in waiting.most_common(MOST)
    ]
