"""Plain values about shards, streams and acks; sessions are seen in tests/test_app.py."""

import json
from typing import Any

from bridge.adapters import overview
from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath, Topic
from bridge.core.posted import Posted
from bridge.model.guid import Guid
from bridge.model.verdict import Cursor
from tests.adapters.fake_pumps import FakePump, pumps
from tests.core.letters import FAR, letter, waiting

GUID = "11111111-2222-3333-4444-555555555555"


def test_shards() -> None:
    good, away = FakePump(), FakePump()
    away.is_open, away.why_closed = False, "Kafka: committing: timed out"
    good.shard.owe(2, host="sender")
    first, second = overview.shards(pumps(good, away))
    assert first == {
        "shard": 0,
        "state": "open",
        "pending_messages": 3,
        "pending_bytes": 300,
        "streams": 0,
        "waiting_acks": 2,
    }
    assert (second["shard"], second["state"]) == (1, "Kafka: committing: timed out")
    away.why_closed = ""
    assert overview.shards(pumps(away))[0]["state"] == "closed"


def test_acks_by_peer() -> None:
    one, two = FakePump(), FakePump()
    one.shard.owe(1, host="sender01")
    one.shard.owe(2, queue_manager=GUID, host="10.0.0.7")
    two.shard.owe(1, queue_manager=GUID)
    assert overview.acks(pumps(one, two)) == [
        {"peer": GUID, "waiting": 3},
        {"peer": "sender01", "waiting": 1},
    ]


def test_forwards() -> None:  # SR-15
    one, two = FakePump(), FakePump()
    other = "http://far03/MSMQ/q"
    for pump, ordinal, url in ((one, 1, other), (one, 2, FAR), (two, 3, FAR)):
        pump.shard.forwards.add(waiting(letter(url=url), ordinal))
    size = len(waiting().onward.packet)
    first, second = overview.forwards(pumps(one, two), {other.lower()})
    assert first == {"url": FAR, "waiting": 2, "bytes": 2 * size, "failing": False}
    assert (second["url"], second["waiting"], second["failing"]) == (other, 1, True)
    assert overview.forwards(pumps(FakePump()), ()) == []


def test_streams_are_told_up_to_a_number() -> None:
    pump = FakePump()
    for number in range(overview.MOST + 5):
        key = Guid.parse(GUID), f"DIRECT=OS:bridge\\private$\\q{number}"
        pump.shard.streams.advance(key, Cursor(7, number))
    told = overview.streams(pumps(pump))
    assert len(told) == overview.MOST
    assert told[3] == {
        "source": GUID,
        "destination": "DIRECT=OS:bridge\\private$\\q3",
        "sequence_id": 7,
        "number": 3,
    }
    json.dumps(told)


def test_a_stream_over_http() -> None:  # SR-39
    pump = FakePump()
    row = Posted(7, f"uid:{GUID}\\7", 3, "http://s/o", "10.0.0.7", GUID, 2, 1_700_000_000, 4)
    pump.shard.posted.advance((Guid.parse(GUID), "DIRECT=http://b/msmq/q"), row)
    [told] = overview.streams(pumps(pump))
    assert told == {
        "source": GUID,
        "destination": "DIRECT=http://b/msmq/q",
        "sequence_id": 7,
        "number": 3,
        "sender": GUID,
        "last_access": 1_700_000_000,
        "rejects": 4,
        "receipted": 2,
        "receipts_to": "http://s/o",
    }


def test_queues() -> None:
    mappings = Mappings(
        queues=(
            QueueMapping(queue=QueuePath("private$\\orders"), topic=Topic("o"), transactional=True),
            QueueMapping(queue=QueuePath("quiet")),
            QueueMapping(queue=QueuePath("many.*"), topic=Topic("by.{queue}")),
        )
    )
    topics: list[dict[str, Any]] = [{"topic": "o", "records": 5, "per_second": 0.5}]
    assert overview.queues(mappings.queues, topics) == [
        {
            "queue": "private$\\orders",
            "topic": "o",
            "transactional": True,
            "mode": "forward",
            "waiting": None,
            "records": 5,
            "per_second": 0.5,
        },
        {
            "queue": "quiet",
            "topic": "quiet",
            "transactional": False,
            "mode": "forward",
            "waiting": None,
            "records": 0,
            "per_second": 0.0,
        },
        {
            "queue": "many.*",
            "topic": "by.{queue}",
            "transactional": False,
            "mode": "forward",
            "waiting": None,
            "records": None,  # many topics: they are told by name
            "per_second": None,
        },
    ]


def test_how_many_messages_wait_in_retained_queues() -> None:
    kept = [
        QueueMapping(queue=QueuePath(name), mode="retain")
        for name in ("private$\\Kept", "private$\\empty", "private$\\many*")
    ]
    found = overview.queues(kept, [], {"private$\\kept": 7})
    assert [row["waiting"] for row in found] == [7, 0, None]
