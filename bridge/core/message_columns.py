"""The columns of an export: a message as data (design 3.6), with a type for each name.

Written down once, for Parquet files and for Spark, without either of them. Spark reads unsigned
numbers of Parquet into the next larger signed type, and 64 bits of them into a decimal.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """The value is Spark's name of it."""

    TEXT = "STRING"
    BYTES = "BINARY"
    U16 = "INT"
    U32 = "BIGINT"
    U64 = "DECIMAL(20,0)"
    TEXTS = "MAP<STRING,STRING>"


class Column(NamedTuple):
    name: str
    kind: Kind
    is_required: bool = False  # never null


COLUMNS: Final = (
    Column("message_id", Kind.TEXT, True),
    Column("queue", Kind.TEXT, True),
    Column("source", Kind.TEXT),
    Column("label", Kind.TEXT, True),
    Column("body", Kind.BYTES, True),
    Column("body_type", Kind.U32, True),
    Column("class", Kind.U16, True),
    Column("priority", Kind.U16, True),
    Column("delivery", Kind.U16, True),
    Column("sent_time", Kind.TEXT),
    Column("arrived_time", Kind.TEXT),
    Column("correlation_id", Kind.BYTES),
    Column("response_queue", Kind.TEXT),
    Column("admin_queue", Kind.TEXT),
    Column("extension", Kind.BYTES),
    Column("app_specific", Kind.U32, True),
    Column("lookup_id", Kind.U64),
    Column("tx_sequence_id", Kind.U64),
    Column("tx_sequence_number", Kind.U32),
    Column("transport", Kind.TEXT, True),
    Column("headers", Kind.TEXTS, True),
)


def spark_schema() -> str:
    """As DDL, which `spark.read.schema(...)` takes."""
    return ", ".join(
        f"`{column.name}` {column.kind.value}{' NOT NULL' if column.is_required else ''}"
        for column in COLUMNS
    )
