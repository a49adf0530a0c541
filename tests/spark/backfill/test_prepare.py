"""A backfilled record is what live traffic would have made, marked; properties are untouched."""

import json
from typing import Any
from zlib import crc32

import msgspec
import pytest

from bridge.core.catalogue import TopicLimits
from bridge.core.chunks import join
from bridge.core.mapper import Mapper
from bridge.core.mapping import message_from_record
from bridge.core.mapping_rules import HeaderRules, JournalTopic
from bridge.core.message_data import MessageData, message_of
from bridge.core.ports import Record
from bridge.model.message import Message
from msmq_jobs.backfill.prepare import (
    MARK,
    Preparer,
    Route,
    Target,
    bare_path,
    decode_prepared,
    failure_of,
)
from tests.spark.letters import ORDERS, PLAIN, SENDER, letter, mappings

LIMITS = {name: TopicLimits(4) for name in ("orders", "plain")}


def target(limits: dict[str, TopicLimits] | None = None, **settings: Any) -> Target:
    return Target(
        run="run-1", mappings=mappings(**settings), limits=limits or LIMITS, audit_partitions=3
    )


def route(data: MessageData, where: Target | None = None) -> Route:
    return Preparer(where or target()).route(data, "export.jsonl")


def records(found: Route) -> list[Record]:
    assert found.reason == ""
    assert found.prepared is not None
    return decode_prepared(found.prepared.encode()).records


@pytest.mark.parametrize("queue", [ORDERS, PLAIN])
def test_the_record_is_that_of_live_traffic(queue: str) -> None:
    data = letter(7, queue)
    (record,) = records(route(data))
    catalogue = target().catalogue()
    message = message_of(data)
    mapped = catalogue.find(message.destination)
    assert mapped is not None
    live = Mapper(catalogue).record(message, mapped)
    assert record.headers.pop("msmq.arrived") == b"1769864400250"
    assert json.loads(record.headers.pop(MARK)) == {"run": "run-1", "source": "export.jsonl"}
    assert record == live


def test_the_partition_is_that_of_the_stream() -> None:  # DM-36
    found = route(letter(7, ORDERS))
    key = f"{SENDER}/DIRECT=OS:old01\\{ORDERS}"
    assert found.partition == crc32(key.encode()) % 4
    assert found.stream == key


def test_the_record_becomes_the_same_message() -> None:  # DM-35
    data = letter(7, ORDERS, correlation_id=bytes(range(20)), lookup_id=2**63, message_class=0x8002)
    (record,) = records(route(data))
    again: Message = message_from_record(record)
    assert again == message_of(data)


def test_a_dead_letter_says_how_it_died() -> None:  # data-model.md 2.14
    (record,) = records(route(letter(1, message_class=0x8002)))
    assert record.headers["msmq.outcome"] == b"32770"
    assert "msmq.outcome" not in records(route(letter(1)))[0].headers
    told = letter(1, headers={**letter(1).headers, "msmq.outcome": "49154"})
    assert failure_of(told) == 0xC002
    assert failure_of(letter(1, message_class=0x4000)) == 0  # an acknowledgment that is good


def test_the_audit_entry() -> None:  # design D6
    found = route(letter(7, ORDERS, message_class=0xC002))
    assert found.prepared is not None
    (entry,) = msgspec.json.decode(found.prepared.entry)
    assert entry["id"] == f"{SENDER}\\7"
    assert (entry["verdict"], entry["reason"], entry["class"]) == ("backfilled", "run-1", 0xC002)
    assert (entry["queue"], entry["topic"]) == (ORDERS, "orders")
    assert entry["partition"] == found.partition
    assert entry["tx_sequence_number"] == 7
    assert 0 <= found.prepared.shard < 3


def test_a_mapping_that_hides_the_id() -> None:
    rules = HeaderRules(include=("msmq.label",), prefix="x-")
    (record,) = records(route(letter(1), target(headers=rules)))
    assert json.loads(record.headers[MARK]) == {
        "run": "run-1",
        "source": "export.jsonl",
        "id": f"{SENDER}\\1",
        "queue": PLAIN,
    }
    assert set(record.headers) == {MARK, "x-label"}


def test_headers_by_the_rules() -> None:
    rules = HeaderRules(rename={"msmq.outcome": "died"}, prefix="x-")
    (record,) = records(route(letter(1, message_class=0x8000), target(headers=rules)))
    assert record.headers["died"] == b"32768"
    assert record.headers["x-arrived"] == b"1769864400250"


def test_the_time_of_sending_if_asked() -> None:
    found = route(letter(0), target(timestamp="sent"))
    assert found.prepared is not None
    assert found.prepared.keeps_time
    assert found.prepared.records[0].timestamp_ms == 1_769_860_800_000  # 2026-01-31T12:00:00Z
    assert not route(letter(0)).prepared.keeps_time  # type: ignore[union-attr]


def test_a_copy_for_the_journal() -> None:  # DM-30
    limits = {**LIMITS, "copies": TopicLimits(2)}
    where = target(limits, journal=JournalTopic("copies"))
    record, copy = records(route(letter(1), where))
    assert (record.topic, copy.topic) == ("plain", "copies")
    assert copy.partition == (record.partition or 0) % 2
    assert copy.headers == record.headers


def test_what_is_too_large() -> None:  # design D7: never dropped
    small = {"orders": TopicLimits(4, 2000), "plain": TopicLimits(4, 2000)}
    data = letter(1, body=bytes(5000))
    assert route(data, target(small)).reason == "larger-than-the-topic-takes"
    parts = records(route(data, target(small, oversize="chunk")))
    assert len(parts) > 1
    assert join(parts).value == data.body
    found = route(data, target(small, oversize="claim-check"))
    assert found.prepared is not None
    assert [claim.data for claim in found.prepared.claims] == [data.body]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (letter(1, "private$\\nobody"), "unknown-queue"),
        (letter(1, tx_sequence_id=1, tx_sequence_number=1), "transactional-message-to-plain-queue"),
        (
            letter(1, ORDERS, tx_sequence_id=None, tx_sequence_number=None),
            "plain-message-to-transactional-queue",
        ),
        (letter(1, headers={"msmq.dest": "x", "msmq.encrypted": "1"}), "encrypted-body"),
        (letter(1, source="00000000-0000-0000-0000-000000000000"), "no-identity"),
        (letter(1, sent_time="yesterday"), "unreadable"),
    ],
)
def test_what_stays_and_why(data: MessageData, reason: str) -> None:
    found = route(data)
    assert found.reason == reason
    assert found.prepared is None


def test_a_topic_that_is_not_there() -> None:
    found = route(letter(1), target({"orders": TopicLimits(1)}))
    assert (found.reason, found.topic) == ("topic-missing", "plain")


def test_a_retained_queue_is_not_for_backfill() -> None:
    assert route(letter(1), target(mode="retain")).reason == "retained-queue"


@pytest.mark.parametrize(
    ("held_in", "path"),
    [
        ("private$\\orders;journal", "private$\\orders"),
        ("old01\\private$\\orders", "private$\\orders"),
        ("old01\\orders;JOURNAL", "orders"),
        ("orders", "orders"),
        (";deadletter", ""),
        ("old01\\system$;deadxact", ""),
    ],
)
def test_the_queue_behind_a_journal(held_in: str, path: str) -> None:
    assert bare_path(held_in) == path


def test_a_name_that_only_its_own_host_knows() -> None:
    """PRIVATE=guid\\number of another queue manager: the journal it lay in tells."""
    dest = "PRIVATE=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\\00000007"
    data = letter(1, f"{PLAIN};journal", headers={"msmq.dest": dest})
    assert route(data).queue == PLAIN
