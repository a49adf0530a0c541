"""Rows and Arrow, there and back, a bounded part at a time."""

from decimal import Decimal

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyspark.sql.types import BooleanType, StructField, StructType

from msmq_jobs import arrow
from msmq_jobs.arrow import arrow_schema, batches_of, rows_in
from msmq_jobs.rows import data_of_row, fault_values, values_of
from msmq_jobs.schemas import READ, ROUTED, WRITTEN
from tests.spark.letters import ORDERS, letter

SCHEMA = arrow_schema(READ)


def test_every_column_has_a_type() -> None:
    for schema in (READ, ROUTED, WRITTEN):
        assert arrow_schema(schema).names == schema.names
    assert SCHEMA.field("lookup_id").type == pa.decimal128(20, 0)
    with pytest.raises(TypeError, match="BooleanType"):
        arrow_schema(StructType([StructField("x", BooleanType())]))


def test_a_message_comes_back_as_it_was() -> None:
    data = letter(7, ORDERS, lookup_id=2**64 - 1, extension=b"\0x")
    (row,) = rows_in(batches_of([values_of(data, "from")], SCHEMA))
    assert row["lookup_id"] == Decimal(2**64 - 1)
    assert row["origin"] == "from"
    found = data_of_row(row)
    assert (found.message_id, found.headers, found.body) == (
        data.message_id,
        data.headers,
        data.body,
    )
    assert found.extension == data.extension


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "PER_BATCH", 3)
    monkeypatch.setattr(arrow, "BATCH_BYTES", 100)
    rows = [values_of(replace(letter(n), body=bytes(n)), "x") for n in (1, 1, 1, 99, 99, 1)]
    assert [batch.num_rows for batch in batches_of(rows, SCHEMA)] == [3, 2, 1]
    assert [batch.num_rows for batch in batches_of([fault_values("why", "x")], SCHEMA)] == [1]
    assert list(batches_of([], SCHEMA)) == []
