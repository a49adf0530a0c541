"""Exports in both formats give the same rows; what is broken in one is told, the rest is read."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.adapters.exports.parquet import write_parquet
from bridge.core.message_data import MessageData
from msmq_jobs.rows import data_of_row
from msmq_jobs.schemas import READ
from msmq_jobs.sources.exports import SourceFailed, files_of, read_export, reason_of
from msmq_jobs.sources.locator import Export
from tests.spark.letters import ORDERS, PLAIN, letter, write_lines

LETTERS = [
    letter(1),
    letter(2, ORDERS, lookup_id=2**64 - 1, body=bytes(range(256)), extension=b"\0e"),
    letter(3, label="a\ud800b", correlation_id=bytes(range(20))),
    letter(4, sent_time=None, arrived_time=None, headers={"msmq.peer": "10.0.0.1"}),
    MessageData(message_id=letter(5).message_id, queue=PLAIN),
]


def read(spark: SparkSession, path: Path) -> list[MessageData]:
    frame = read_export(spark, Export(str(path)))
    assert [f.name for f in frame.schema.fields] == READ.fieldNames()
    rows = sorted(frame.collect(), key=lambda row: str(row["message_id"]))
    assert {row["origin"] for row in rows} == {str(path)}
    return [data_of_row(row.asDict()) for row in rows]


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    assert read(spark, write_lines(tmp_path / "a.jsonl", LETTERS)) == LETTERS


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", LETTERS)
    assert read(spark, tmp_path / "a.parquet") == LETTERS


def test_half_a_line_and_garbage(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", LETTERS, b'\xff\n\n{"message_id": "ha')
    rows = read_export(spark, Export(str(path))).collect()
    assert [row["fault"] is None for row in rows] == [True] * 5 + [False] * 2
    assert "is no JSON" in rows[-1]["fault"]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("gone.jsonl", None, "there is no such file"),
        ("gone.parquet", None, "there is no such file"),
        ("empty.parquet", b"", ""),
        ("half.parquet", b"PAR1 and no end", ""),
    ],
)
def test_what_cannot_be_read_at_all(
    spark: SparkSession, tmp_path: Path, name: str, data: bytes | None, why: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises((SourceFailed, Py4JJavaError, PySparkException)) as caught:
        read_export(spark, Export(str(tmp_path / name))).collect()
    line = reason_of(caught.value)
    assert why in line
    assert "\n" not in line


def test_a_parquet_file_of_something_else(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "other.parquet"))
    with pytest.raises(SourceFailed, match="has no column message_id"):
        read_export(spark, Export(str(tmp_path / "other.parquet")))


def test_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.parquet", "notes.txt"):
        (tmp_path / name).touch()
    found = files_of(spark, Export(str(tmp_path)))
    assert [Path(export.text).name for export in found] == ["a.parquet", "b.jsonl"]
    assert files_of(spark, Export("x.jsonl")) == [Export("x.jsonl")]


def test_folders_without_exports(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="has no export"):
        files_of(spark, Export(str(tmp_path)))
    with pytest.raises(SourceFailed, match="does not exist"):
        files_of(spark, Export(str(tmp_path / "nowhere")))


def test_a_torn_file_is_named_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and no more")
    with pytest.raises((Py4JJavaError, PySparkException)) as raised:
        spark.read.parquet(str(torn)).collect()
    assert "is not a Parquet file" in reason_of(raised.value)


def test_the_last_line_of_python_is_the_reason(spark: SparkSession) -> None:
    def broken(_: object) -> object:
        raise ValueError("no such thing")

    with pytest.raises((Py4JJavaError, PySparkException)) as raised:
        spark.sparkContext.parallelize([1], 1).map(broken).collect()
    assert reason_of(raised.value) == "ValueError: no such thing"
