"""Rows as Arrow batches, the way to Python and back that costs least; a bounded part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

PER_BATCH: Final = 500
BATCH_BYTES: Final = 16 << 20
# Spark counts only rows: so many as large as MSMQ allows (4 MiB) still fit into memory.
SPARK_ROWS: Final = ("spark.sql.execution.arrow.maxRecordsPerBatch", "100")


Batches = Iterable[pa.RecordBatch]


def map_batches(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: StructType
) -> DataFrame:
    """`DataFrame.mapInArrow` without pandas, which it asks for and does not use."""
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    made: Any = UserDefinedFunction(function, schema, evalType=kind)
    column = made(*(frame[name] for name in frame.columns))
    inside: Any = frame
    return DataFrame(inside._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def arrow_schema(schema: StructType) -> pa.Schema:
    return pa.schema([pa.field(field.name, _type(field.dataType)) for field in schema.fields])


def _type(kind: DataType) -> pa.DataType:
    match kind:
        case StringType():
            return pa.string()
        case BinaryType():
            return pa.binary()
        case IntegerType():
            return pa.int32()
        case LongType():
            return pa.int64()
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case MapType():
            return pa.map_(_type(kind.keyType), _type(kind.valueType))
    raise TypeError(f"no column of ours is a {kind}")


def rows_in(batches: Batches) -> Iterator[dict[str, Any]]:
    """By name; a map is a list of pairs, as Arrow has it."""
    for batch in batches:
        yield from batch.to_pylist()


def batches_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    part: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(part) >= PER_BATCH or size >= BATCH_BYTES:
            yield _batch(part, schema)
            part, size = [], 0
    if part:
        yield _batch(part, schema)


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([_pairs(value) for value in column], field.type)
        for column, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value
