"""One writer per partition on a real broker: once each, whatever ends it. Design D1, D3"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.adapters.kafka import client
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import SinkUnavailable
from msmq_jobs.backfill import writer
from msmq_jobs.backfill.writer import PartitionWriter, write_rows
from tests.spark.backfill.bench import Bench, headers_of, id_of
from tests.spark.letters import ORDERS, letter
from tests.support.kafka import transactional_producer

pytestmark = pytest.mark.kafka
LETTERS = [letter(n, ORDERS) for n in range(1, 41)]
IDS = [data.message_id for data in LETTERS]


@pytest.fixture
def bench(kafka: EmbeddedKafka) -> Bench:
    return Bench(kafka)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PER_TRANSACTION", 7)
    monkeypatch.setattr(writer, "RETRY_S", 0.0)


def write(bench: Bench, run: str = "run-1", **changes: Any) -> list[str]:
    return [row[-2] for row in write_rows(bench.rows(LETTERS, run), bench.job(run, **changes))]


def test_all_of_them_in_order(bench: Bench) -> None:  # DM-36
    assert write(bench) == ["written"] * 40
    found = bench.read(bench.orders)
    assert [id_of(message) for message in found] == IDS
    assert [message.value() for message in found] == [data.body for data in LETTERS]
    assert len({message.partition() for message in found}) == 1


def test_the_audit_is_in_the_same_transaction(bench: Bench) -> None:  # design D6
    write(bench)
    entries = [e for m in bench.read(bench.own.audit) for e in json.loads(m.value() or b"")]
    assert sorted(e["id"] for e in entries) == sorted(IDS)
    assert {e["verdict"] for e in entries} == {"backfilled"}
    stamps = {id_of(m): m.timestamp()[1] for m in bench.read(bench.orders)}
    assert all(e["at"] == stamps[e["id"]] for e in entries)  # where `trace` looks for the record


def test_a_repeated_run_writes_nothing(bench: Bench) -> None:
    write(bench)
    assert write(bench, "run-2") == ["already-there"] * 40
    assert bench.ids(bench.orders) == IDS


def test_the_same_run_again_knows_its_own(bench: Bench) -> None:
    """A task that Spark tries again."""
    write(bench)
    assert write(bench) == ["written"] * 40
    assert bench.ids(bench.orders) == IDS


def test_what_live_traffic_has_brought_since_the_plan(bench: Bench) -> None:
    row = bench.rows(LETTERS[:1], "x")[0]
    live = transactional_producer(bench.bootstrap, f"{bench.own.prefix}.shard-0")
    live.begin_transaction()
    headers: list[Any] = [("msmq.id", IDS[4].encode()), ("msmq.queue", ORDERS.upper().encode())]
    live.produce(bench.orders, b"live", partition=row["partition"], headers=headers)
    live.commit_transaction(30)
    results = write(bench, seen_to={bench.orders: {row["partition"]: 0}})
    assert results.count("already-there") == 1
    assert sorted(bench.ids(bench.orders)) == sorted(IDS)


class Flaky:
    """A producer that fails, or lies, at a chosen call."""

    def __init__(self, real: Any, plan: list[str], after: bool) -> None:
        self._real, self._plan, self._after = real, plan, after

    def __len__(self) -> int:
        return len(self._real)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._real, name)
        return self._wrapped(name, call) if self._plan and self._plan[0] == name else call

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*arguments: Any, **named: Any) -> Any:
            self._plan.pop(0)
            if self._after:
                call(*arguments, **named)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

        return failing


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["init_transactions", "produce", "poll", "commit_transaction"])
def test_a_call_that_fails_or_only_seems_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str, after: bool
) -> None:
    """D3: after a doubtful commit what happened is read back, not guessed."""
    plan, real = [call, call], client.producer
    monkeypatch.setattr(writer, "producer", lambda *a: Flaky(real(*a), plan, after))
    assert write(bench) == ["written"] * 40
    assert plan == []
    assert bench.ids(bench.orders) == IDS


def test_a_partition_that_takes_nothing_is_told_and_others_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PartitionWriter._publish

    def publish(self: PartitionWriter, items: Any) -> None:
        if self._topic == bench.orders:
            raise BufferError("full")
        real(self, items)

    monkeypatch.setattr(PartitionWriter, "_publish", publish)
    rows = bench.rows([*LETTERS[:9], letter(90)], "run-1")
    found = list(write_rows(rows, bench.job("run-1")))
    assert {(row[2], row[-2]) for row in found} == {
        (bench.orders, "failed"),
        (bench.plain, "written"),
    }
    assert all("full" in row[-1] for row in found if row[-2] == "failed")
    assert bench.ids(bench.plain) == [letter(90).message_id]


def test_a_second_writer_ends_the_first(bench: Bench) -> None:
    rows = bench.rows(LETTERS, "run-1")
    partition = rows[0]["partition"]
    first = PartitionWriter(bench.job("run-1"), bench.orders, partition)
    items = [writer._item(row) for row in rows]
    first.write(items[:7])
    assert write(bench, "run-2") == ["already-there"] * 7 + ["written"] * 33
    with pytest.raises(SinkUnavailable, match="another backfill writes"):
        first.write([writer._item(row) for row in bench.rows([letter(99, ORDERS)], "run-1")])
    assert bench.ids(bench.orders) == IDS


def test_what_a_dead_writer_left_open(bench: Bench) -> None:
    rows = bench.rows(LETTERS, "run-1")
    where = bench.orders, rows[0]["partition"]
    dead = transactional_producer(
        bench.bootstrap, f"{bench.own.prefix}.backfill-{where[0]}-{where[1]}"
    )
    dead.begin_transaction()
    headers: list[Any] = [("msmq.id", IDS[0].encode()), ("msmq.queue", ORDERS.encode())]
    dead.produce(where[0], b"never", partition=where[1], headers=headers)
    dead.flush(30)
    assert write(bench) == ["written"] * 40
    assert bench.ids(bench.orders) == IDS
    assert all(m.value() != b"never" for m in bench.read(bench.orders))


class Live:
    """The appliance's own producer, with a copy of the first letter."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._producer = transactional_producer(bench.bootstrap, f"{bench.own.prefix}.shard-0")

    def produce(self, partition: int, ids: Sequence[str] = IDS[:1]) -> None:
        self._producer.begin_transaction()
        for id_ in ids:
            headers: list[Any] = [("msmq.id", id_.encode()), ("msmq.queue", ORDERS.encode())]
            self._producer.produce(
                self._bench.orders, b"live", partition=partition, headers=headers
            )
        assert self._producer.flush(30) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        self._producer.abort_transaction(30)


@pytest.mark.parametrize("ends", ["before", "after", "abort"])
def test_a_copy_that_comes_between_the_look_and_the_commit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """It lies in front of ours, so it is seen, committed or not: ours is taken back."""
    live, publish, look = Live(bench), PartitionWriter._publish, PartitionWriter._has_rival
    looks: list[bool] = []

    def publishing(self: PartitionWriter, items: Any) -> None:
        if not looks:
            live.produce(self._partition)
            if ends == "before":
                live.commit()
        publish(self, items)

    def looking(self: PartitionWriter, items: Any, offsets: Any) -> bool:
        looks.append(look(self, items, offsets))
        if len(looks) == 1 and ends != "before":
            live.commit() if ends == "after" else live.abort()
        return looks[-1]

    monkeypatch.setattr(PartitionWriter, "_publish", publishing)
    monkeypatch.setattr(PartitionWriter, "_has_rival", looking)
    found = list(write_rows(bench.rows(LETTERS[:3], "run-1"), bench.job("run-1")))
    first = "written" if ends == "abort" else "already-there"
    assert [row[-2] for row in found] == [first, "written", "written"]
    assert looks[0] is True
    assert sorted(bench.ids(bench.orders)) == sorted(IDS[:3])


def test_other_live_messages_are_no_reason_to_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, publish = Live(bench), PartitionWriter._publish

    def publishing(self: PartitionWriter, items: Any) -> None:
        if live_ids:
            live.produce(self._partition, [live_ids.pop()])
            live.commit()
        publish(self, items)

    live_ids = [f"99999999-2222-3333-4444-555555555555\\{n}" for n in range(3)]
    monkeypatch.setattr(PartitionWriter, "_publish", publishing)
    assert write(bench) == ["written"] * 40
    assert sorted(set(bench.ids(bench.orders)) & set(IDS)) == sorted(IDS)
    assert len(bench.ids(bench.orders)) == 43


def test_a_copy_that_comes_behind_ours_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, look = Live(bench), PartitionWriter._has_rival

    def looking(self: PartitionWriter, items: Any, offsets: Any) -> bool:
        live.produce(self._partition)
        live.commit()
        return look(self, items, offsets)

    monkeypatch.setattr(PartitionWriter, "_has_rival", looking)
    found = list(write_rows(bench.rows(LETTERS[:1], "run-1"), bench.job("run-1")))
    assert [row[-2] for row in found] == ["doubled"]


def test_the_mark_is_on_every_record(bench: Bench) -> None:
    write(bench)
    marks = {headers_of(m)["msmq.backfill"] for m in bench.read(bench.orders)}
    assert marks == {b'{"run":"run-1","source":"x.jsonl"}'}
