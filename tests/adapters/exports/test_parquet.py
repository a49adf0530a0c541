"""Parquet: every message goes there and comes back equal; others read it by its schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.adapters.exports.parquet import SCHEMA, read_parquet, write_parquet
from bridge.core.message_columns import COLUMNS
from bridge.core.message_data import data_of, message_of
from bridge.model.errors import ConfigError
from bridge.model.message import Message
from tests.core.messages import messages, plain
from tests.core.test_message_data import from_the_wire

QUEUE = "private$\\orders"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(messages, max_size=4))
def test_there_and_back(tmp_path: Path, found: list[Message]) -> None:
    found = [from_the_wire(message) for message in found]
    rows = [data_of(message, QUEUE) for message in found]
    file = tmp_path / "o.parquet"
    assert write_parquet(file, rows) == len(rows)
    assert list(read_parquet(file)) == rows
    assert [message_of(data) for data in read_parquet(file)] == found


def test_as_others_see_it(tmp_path: Path) -> None:
    file = tmp_path / "o.parquet"
    write_parquet(file, [data_of(plain(body=b"\0\xff", lookup_id=(1 << 64) - 1), QUEUE)])
    table = pq.read_table(file)
    assert table.schema.equals(SCHEMA)
    assert table.column_names == [column.name for column in COLUMNS]
    (row,) = table.to_pylist(maps_as_pydicts="strict")
    assert row["body"] == b"\0\xff"
    assert row["lookup_id"] == (1 << 64) - 1
    assert row["correlation_id"] is None
    assert row["headers"]["msmq.v"] == "1"


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    data = data_of(plain(label="a\ud800b", soap="\udfff"), QUEUE)
    file = tmp_path / "o.parquet"
    write_parquet(file, [data])
    (row,) = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    assert row["label"] == "a\ufffdb"
    assert row["headers"]["exact.label"] == r'"a\ud800b"'
    assert list(read_parquet(file)) == [data]


def test_many_are_several_groups(tmp_path: Path) -> None:
    file = tmp_path / "o.parquet"
    rows = (data_of(plain(number), QUEUE) for number in range(1, 3001))
    assert write_parquet(file, rows) == 3000
    assert pq.ParquetFile(file).num_row_groups == 3
    assert [data.message_id.rpartition("\\")[2] for data in read_parquet(file)] == [
        str(number) for number in range(1, 3001)
    ]


def test_none_at_all(tmp_path: Path) -> None:
    file = tmp_path / "o.parquet"
    assert write_parquet(file, []) == 0
    assert pq.read_table(file).schema.equals(SCHEMA)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PAR1" * 10])
def test_what_is_no_export(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "o.parquet"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"o\.parquet"):
        list(read_parquet(file))


def test_other_columns_are_no_export(tmp_path: Path) -> None:
    file = tmp_path / "o.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(ConfigError):
        list(read_parquet(file))


SPARK = """
import sys
from pyspark.sql import SparkSession
from bridge.core.message_columns import spark_schema

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
own = session.read.parquet(sys.argv[1])
told = session.read.schema(spark_schema()).parquet(sys.argv[1])
assert own.dtypes == told.dtypes, own.dtypes
row = told.collect()[0]
print("READ", row.message_id, row.lookup_id, row.app_specific, bytes(row.body).hex())
session.stop()
"""


@pytest.mark.timeout(300)
def test_spark_reads_it_by_the_schema(tmp_path: Path) -> None:
    """Numbers without a sign become what `spark_schema` says, with every bit."""
    file = tmp_path / "o.parquet"
    message = plain(7, body=b"\0\xff", lookup_id=(1 << 64) - 1, app_specific=0xFFFFFFFF)
    write_parquet(file, [data_of(message, QUEUE)])
    told = subprocess.run(
        [sys.executable, "-c", SPARK, str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    assert f"READ {message.id} {(1 << 64) - 1} {0xFFFFFFFF} 00ff\n" in told.stdout
