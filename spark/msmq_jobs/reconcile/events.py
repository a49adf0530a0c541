"""The one shape of a ledger's row: what was seen of a message, once. No bodies, only hashes.

Ledgers are kept as Parquet and put together by id and queue (`verdicts`). Hashes are null where a
ledger does not tell the property, and then nobody compares it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from msmq_jobs.reconcile.rules import PROPERTIES

BODY, LABEL, CORRELATION, TX, CLASS, REST, WHICH = (
    *("body_sha", "label", "correlation", "tx", "class"),
    *("rest", "which"),
)
CRC: Final = "body_crc"
HASHES: Final = (BODY, CRC, LABEL, CORRELATION, TX, CLASS, REST, WHICH)

EVENT: Final = StructType(
    [
        StructField("message_id", StringType()),  # in lower case
        StructField("queue", StringType()),  # in lower case
        StructField("name", StringType()),  # of the queue, as it is written
        StructField("kind", IntegerType()),  # `rules.Kind`
        StructField("at", LongType()),  # ms: of the verdict, or of the record
        StructField("sent", LongType()),  # ms
        StructField("end", IntegerType()),  # class by which it ended
        *(StructField(name, LongType()) for name in HASHES),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("domain", LongType()),  # its stream, where that has to be in order
        StructField("sequence", LongType()),  # sequence id, less 2^63 to have a sign
        StructField("number", LongType()),
        StructField("run", StringType()),  # of the backfill that brought it
        StructField("origin", StringType()),  # the source that has it
    ]
)
NAMES: Final = tuple(field.name for field in EVENT.fields)

HALF: Final = str(1 << 63)
_LAST_MS: Final = (1 << 32) * 1000  # MSMQ has 32 bits for seconds


def event(rows: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Rows of EVENT; what is not named is null."""
    unknown = columns.keys() - set(NAMES)
    assert not unknown, unknown
    return rows.select(
        *(
            columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in EVENT.fields
        )
    )


def hash_of(text: Column) -> Column:
    """Of a text; null for half a surrogate pair, which every ledger writes in its own way."""
    return F.when(F.is_valid_utf8(text), F.xxhash64(text))


def sha_of(body: Column) -> Column:
    """Null for none: Spark's hash of null is a number."""
    return F.when(body.isNotNull(), F.xxhash64(F.sha2(body, 256)))


def moment(ms: Column) -> Column:
    """Null for what is no time: Spark would end the run."""
    return F.when(ms.between(0, _LAST_MS), ms)


def tx_of(sequence_id: Column, number: Column) -> Column:
    """Null for what is in no stream."""
    told = sequence_id.isNotNull() & number.isNotNull()
    return F.when(told, F.xxhash64(sequence_id.cast("string"), number.cast("string")))


def sequence_of(sequence_id: Column) -> Column:
    """64 bits without a sign, in their order, as a number with one; null for what is none."""
    return (sequence_id.try_cast("decimal(20,0)") - F.lit(HALF).cast("decimal(20,0)")).try_cast(
        "long"
    )


def rest_of(properties: Sequence[Column]) -> tuple[Column, Column]:
    """Of the PROPERTIES as text: a hash of all, and eight bits of each to tell which differs."""
    assert len(properties) == len(PROPERTIES) == 8
    each = [
        F.shiftleft(F.xxhash64(p).bitwiseAND(F.lit(255)), 8 * n) for n, p in _numbered(properties)
    ]
    return F.xxhash64(*properties), reduce(Column.bitwiseOR, each)


def differing(first: Column, second: Column) -> list[Column]:
    """The names of the PROPERTIES that two values of WHICH do not share; else null."""
    apart = first.bitwiseXOR(second)
    return [
        F.when(F.shiftrightunsigned(apart, 8 * n).bitwiseAND(F.lit(255)) != 0, F.lit(name))
        for n, name in enumerate(PROPERTIES)
    ]


def _numbered(columns: Sequence[Column]) -> list[tuple[int, Column]]:
    return list(enumerate(columns))
