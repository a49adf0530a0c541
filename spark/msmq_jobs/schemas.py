"""One shape for a message, from whatever source it was read. Design 3.6

The columns are the names of `bridge.core.message_data`. Numbers of 64 bits without a sign are
decimals, which Spark's longs cannot hold; times are text in ISO 8601, as in every export. What
Spark adds to a message says where it was read.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

U64: Final = DecimalType(20, 0)

MESSAGE: Final = StructType(
    [
        StructField("message_id", StringType()),
        StructField("queue", StringType()),
        StructField("source", StringType()),
        StructField("label", StringType()),
        StructField("body", BinaryType()),
        StructField("body_type", LongType()),
        StructField("class", IntegerType()),
        StructField("priority", IntegerType()),
        StructField("delivery", IntegerType()),
        StructField("sent_time", StringType()),
        StructField("arrived_time", StringType()),
        StructField("correlation_id", BinaryType()),
        StructField("response_queue", StringType()),
        StructField("admin_queue", StringType()),
        StructField("extension", BinaryType()),
        StructField("app_specific", LongType()),
        StructField("lookup_id", U64),
        StructField("tx_sequence_id", U64),
        StructField("tx_sequence_number", LongType()),
        StructField("transport", StringType()),
        StructField("headers", MapType(StringType(), StringType())),
    ]
)

# What every source adds.
ORIGIN: Final = "origin"  # the source as the user named it
FAULT: Final = "fault"  # why this is no message; null: it is one
EXACT: Final = "exact"  # its JSON, where a text has half a surrogate pair: no column can hold that

READ: Final = StructType(
    [
        *MESSAGE.fields,
        StructField(ORIGIN, StringType()),
        StructField(FAULT, StringType()),
        StructField(EXACT, BinaryType()),
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
