"""What a consumer of committed records sees of verdicts and records."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from confluent_kafka import Producer

from bridge.adapters.demo import witness as module
from bridge.adapters.demo.witness import Watch, read_back
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.core.audit import AuditEntry
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, read_topic, transactional_producer, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
NOW = int(time.time() * 1000)


def entry(number: int, topic: str = "", partition: int = -1, **fields: int | str) -> AuditEntry:
    at = NOW + number
    values = {"id": f"guid\\{number}", "verdict": "accepted", "at": at, "dest": "q"} | fields
    return AuditEntry(topic=topic, partition=partition, **values)  # type: ignore[arg-type]


@contextmanager
def transaction(kafka: EmbeddedKafka, *, commit: bool = True) -> Iterator[Producer]:
    producer = transactional_producer(kafka.bootstrap_servers, unique("demo"))
    producer.begin_transaction()
    yield producer
    producer.flush()
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def settings(kafka: EmbeddedKafka) -> dict[str, str]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


# -- verdicts ---------------------------------------------------------------------------------


def test_verdicts_from_now_on_and_only_committed_ones(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("audit"), 2)

    def write(number: int, *, commit: bool = True) -> None:
        with transaction(kafka, commit=commit) as producer:
            value = msgspec.json.encode([entry(number), entry(number + 100)])
            producer.produce(topic, value, partition=number % 2)

    write(1)
    assert len(read_topic(kafka.bootstrap_servers, topic)) == 1
    seen: list[str] = []
    threads = threading.active_count()
    watch = Watch(settings(kafka), topic, lambda found: seen.extend(e.id for e in found))
    watch.start()
    write(2, commit=False)
    write(3)
    write(4)
    eventually(lambda: len(seen) == 4)
    watch.stop()
    assert sorted(seen) == ["guid\\103", "guid\\104", "guid\\3", "guid\\4"]
    assert threading.active_count() <= threads


def test_a_watch_that_never_began_can_be_stopped(kafka: EmbeddedKafka) -> None:
    watch = Watch(settings(kafka), unique("audit"), lambda _: None)
    watch.stop()


def test_kafka_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.2)
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(SinkUnavailable, match="looking at the audit topic"):
        Watch(nobody, "audit", lambda _: None).start()
    with pytest.raises(SinkUnavailable, match="reading the records back"):
        read_back(nobody, "rejects", [entry(1, "orders", 0)])


# -- records ----------------------------------------------------------------------------------


def test_records_are_found(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("orders"), 2)
    rejects = create_topic(kafka.bootstrap_servers, unique("rejects"), 2)
    with transaction(kafka) as producer:
        for number in range(1, 7):
            headers: dict[str, str | bytes | None] = {
                "msmq.id": f"guid\\{number}".encode(),
                "msmq.label": b"\xff",
            }
            where = rejects if number == 6 else topic
            producer.produce(
                where, b"v%d" % number, b"k", number % 2, timestamp=NOW + number, headers=headers
            )
    with transaction(kafka, commit=False) as producer:
        producer.produce(topic, b"never", partition=1, headers={"msmq.id": b"guid\\1"})
    entries = [
        entry(2, topic, 0),
        entry(3, topic, 1),
        entry(5, topic, 1),
        entry(6, verdict="rejected", message_class=0x8000),
        entry(3, verdict="duplicate"),  # has no record of its own
    ]
    found = read_back(settings(kafka), rejects, entries)
    assert [(r.topic, r.partition, r.message_id, r.value) for r in found] == [
        (topic, 0, "guid\\2", b"v2"),
        (topic, 1, "guid\\3", b"v3"),
        (topic, 1, "guid\\5", b"v5"),
        (rejects, 0, "guid\\6", b"v6"),
    ]
    assert [r.offset for r in found] == [0, 1, 2, 0]
    first = found[0]
    assert (first.key, first.timestamp_ms) == (b"k", NOW + 2)
    assert first.headers == {"msmq.id": b"guid\\2", "msmq.label": b"\xff"}


def test_a_record_without_an_id_is_found_by_its_time(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("bare"))
    with transaction(kafka) as producer:
        for number, stamp in ((1, 50), (2, 60), (3, 60), (4, 70)):
            producer.produce(topic, b"%d" % number, timestamp=NOW + stamp)
    entries = [entry(n, topic, 0, stamp=NOW + stamp) for n, stamp in ((2, 60), (3, 60), (4, 70))]
    found = read_back(settings(kafka), "no-rejects", entries)
    assert [(r.message_id, r.value, r.key) for r in found] == [
        ("guid\\2", b"2", None),
        ("guid\\3", b"3", None),
        ("guid\\4", b"4", None),
    ]


def test_what_is_not_there_is_not_waited_for_long(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_S", 0.5)
    topic = create_topic(kafka.bootstrap_servers, unique("gone"))
    assert read_back(settings(kafka), "no-rejects", [entry(1, topic, 0)]) == []
    assert read_back(settings(kafka), "no-rejects", []) == []
