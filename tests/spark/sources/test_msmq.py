"""A live queue as a data source: real RPC with NTLM, the server of the digest behind it."""

import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.core.message_data import message_of
from bridge.model.errors import ConfigError
from msmq_jobs.backfill import io
from msmq_jobs.backfill.reading import Reading
from msmq_jobs.rows import data_of_row
from msmq_jobs.schemas import READ
from msmq_jobs.sources.locator import LiveQueue
from msmq_jobs.sources.msmq import PASSWORD, MsmqDataSource, options_of, place_of, take_out
from tests.adapters.reader.served import Served, closed_port

ORDERS = "private$\\orders"


@pytest.fixture
def served() -> Iterator[Served]:
    with Served().running() as running:
        yield running


@pytest.fixture
def password(tmp_path: Path) -> str:
    (tmp_path / "password").write_text("secret\nno more\n")
    return str(tmp_path / "password")


def source(port: int, queue: str = ORDERS, user: str = "ann") -> LiveQueue:
    return LiveQueue(text="msmq://here/q", host="127.0.0.1", port=port, user=user, queue=queue)


def test_every_message_and_none_is_touched(
    spark: SparkSession, served: Served, password: str
) -> None:
    bodies = [b"m%d" % n for n in range(1200)]  # more than one batch
    for body in bodies:
        served.fake.put(ORDERS, body, label="ä")
    spark.dataSource.register(MsmqDataSource)
    frame = spark.read.format("msmq").options(**options_of(source(served.port), password)).load()
    rows = frame.collect()
    assert frame.schema == READ
    assert [bytes(row["body"]) for row in rows] == bodies
    assert {row["origin"] for row in rows} == {"msmq://here/q"}
    with RemoteReader(served.place()) as reader:
        reads = list(reader.scan(ORDERS))
    assert [message_of(data_of_row(row.asDict())) for row in rows] == [r.message for r in reads]
    assert served.fake.removed == []


def test_a_long_queue_is_read_in_parts(spark: SparkSession, served: Served, password: str) -> None:
    """A partition per queue, split by ranges of lookup ids where the queue is long."""
    bodies = [b"m%d" % n for n in range(300)]
    for n, body in enumerate(bodies):
        served.fake.put(ORDERS, body, gap=n % 3)
    spark.dataSource.register(MsmqDataSource)
    options = options_of(source(served.port), password) | {"parts": "3", "per_part": "50"}
    frame = spark.read.format("msmq").options(**options).load()
    numbered = frame.select("body", F.spark_partition_id().alias("part")).collect()
    assert [bytes(row["body"]) for row in numbered] == bodies  # parts are in order, too
    assert {row["part"] for row in numbered} == {0, 1, 2}
    assert served.fake.removed == []


@pytest.mark.timeout(600)
def test_rows_so_far_are_told_while_a_queue_is_read(
    spark: SparkSession, served: Served, password: str, tmp_path: Path
) -> None:
    """The host waits before it gives the last ones until somebody was told of the first."""
    for n in range(1200):
        served.fake.put(ORDERS, b"m%d" % n)
    told: dict[str, int] = {}
    is_told = threading.Event()

    def tell(origin: str, rows: int) -> None:
        told.setdefault(origin, rows)
        is_told.set()

    def before(call: int) -> None:
        if call == 1150:
            is_told.wait(300)

    served.reading.before = before
    folder = io.RunFolder(str(tmp_path / "out"), "r")
    with Reading(tell) as reading:
        sources = [source(served.port)]
        kept, refused = io.keep_sources(spark, sources, folder, password, reading)
    assert (kept, refused) == ([0], [])
    assert 0 < told["msmq://here/q"] < 1200
    assert io.read_kept(spark, folder, kept).count() == 1200


def test_what_is_wrong_is_one_line(
    spark: SparkSession, served: Served, password: str, tmp_path: Path
) -> None:
    """Unreachable host, wrong password, queue missing: each its own, the others go on."""
    served.fake.put(ORDERS, b"one")
    (tmp_path / "wrong").write_text("other\n")
    folder = io.RunFolder(str(tmp_path / "out"), "r")
    with closed_port() as closed:
        sources = [source(closed), source(served.port, "private$\\none"), source(served.port)]
        kept, refused = io.keep_sources(spark, sources, folder, password)
    assert kept == [2]
    assert len(refused) == 2
    (line,) = io.keep_sources(spark, [source(served.port)], folder, str(tmp_path / "wrong"))[1]
    lines = [*(r.why for r in refused), line.why]
    assert len(set(lines)) == 3
    assert all(text.startswith("msmq://here/q: ") and "\n" not in text for text in lines)
    assert "other" not in line.why


def test_only_what_was_read_is_taken_out(served: Served) -> None:
    for n in range(3):
        served.fake.put(ORDERS, b"m%d" % n)
    with RemoteReader(served.place()) as reader:
        first, second, third = reader.scan(ORDERS)
        wanted = [
            (Decimal(first.lookup_id), first.message.id.upper()),
            (Decimal(second.lookup_id), third.message.id),  # another one: it stays
        ]
        assert take_out(reader, ORDERS, wanted) == 1
        assert [read.message.body for read in reader.scan(ORDERS)] == [b"m1", b"m2"]
    assert served.fake.removed == [b"m0"]


def test_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, password: str) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    assert place_of({"host": "h"}).credentials is None
    with pytest.raises(ConfigError, match="has no password"):
        place_of({"host": "h", "user": "ann"})
    with pytest.raises(ConfigError, match="--password-file"):
        place_of({"host": "h", "user": "ann", "password_file": str(tmp_path / "none")})
    monkeypatch.setenv(PASSWORD, "from outside")
    found = [
        place_of({"host": "h", "user": "ann", **more}).credentials
        for more in ({}, {"password_file": password})
    ]
    assert [c.password for c in found if c] == ["from outside", "secret"]
    assert "secret" not in str(options_of(source(1), password))
