"""One shape for a message, from whatever source it was read. Design 3.6

The columns are those of `bridge.core.message_columns`. Numbers of 64 bits without a sign are
decimals, which Spark's longs cannot hold; times are text in ISO 8601, as in every export. What
Spark adds to a message says where it was read.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from bridge.core.message_columns import COLUMNS, Kind

U64: Final = DecimalType(20, 0)

_TYPES: Final[dict[Kind, DataType]] = {
    Kind.TEXT: StringType(),
    Kind.BYTES: BinaryType(),
    Kind.U16: IntegerType(),
    Kind.U32: LongType(),
    Kind.U64: U64,
    Kind.TEXTS: MapType(StringType(), StringType()),
}
# Every column may be null: a row in place of what cannot be read has none of them.
MESSAGE: Final = StructType([StructField(c.name, _TYPES[c.kind]) for c in COLUMNS])

# What every source adds.
ORIGIN: Final = "origin"  # the source as the user named it
FAULT: Final = "fault"  # why this is no message; null: it is one

READ: Final = StructType(
    [
        *MESSAGE.fields,
        StructField(ORIGIN, StringType()),
        StructField(FAULT, StringType()),
    ]
)

# A message on its way into a topic.
ROUTED: Final = StructType(
    [
        StructField("message_id", StringType()),
        StructField("queue", StringType()),  # as this appliance calls it
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("stream", StringType()),
        StructField("tx_sequence_id", U64),
        StructField("tx_sequence_number", LongType()),
        StructField("sent_time", StringType()),
        StructField("lookup_id", U64),
        StructField("ordinal", LongType()),
        StructField("class", IntegerType()),
        StructField("label", StringType()),
        StructField(ORIGIN, StringType()),
        StructField("held_in", StringType()),  # the queue that it was read from
        StructField("reason", StringType()),  # why it stays where it is; null: it goes
        StructField("detail", StringType()),
        StructField("unit", BinaryType()),  # all that is written for it (`prepare.Prepared`)
    ]
)

# What became of a message that was to be written.
WRITTEN: Final = StructType(
    [
        StructField("message_id", StringType()),
        StructField("queue", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField(ORIGIN, StringType()),
        StructField("held_in", StringType()),
        StructField("lookup_id", U64),
        StructField("result", StringType()),  # written, or why not
        StructField("detail", StringType()),
    ]
)

# What a topic or the audit has already.
KNOWN: Final = StructType(
    [StructField("message_id", StringType()), StructField("queue", StringType())]
)

# Spark's Kafka source with `includeHeaders`.
HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
