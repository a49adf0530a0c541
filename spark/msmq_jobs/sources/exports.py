"""Exports of `queue export`, JSON lines and Parquet, as rows of the canonical schema.

Spark reads the files, so they may lie wherever it can go (a disk, HDFS, an object store). JSON is
parsed by the same code as everywhere (`message_data`); a line that is no message becomes a row
with its fault, and the others go on.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, TimestampNTZType, TimestampType

from bridge.model.errors import BridgeError, ConfigError
from msmq_jobs.arrow import Batches, arrow_schema, batches_of, map_batches, rows_in
from msmq_jobs.rows import rows_of_lines
from msmq_jobs.schemas import FAULT, MESSAGE, ORIGIN, READ
from msmq_jobs.sources.locator import SUFFIXES, Export

_DEEPEST: Final = 20  # a cause can be its own
_NEEDED: Final = ("message_id", "queue")
_ARROW: Final = arrow_schema(READ)


class SourceFailed(BridgeError):
    """A source that cannot be read at all; the others go on."""


def files_of(spark: SparkSession, export: Export) -> list[Export]:
    """The export itself, or those that a folder has. Raises SourceFailed."""
    if export.is_file:
        return [export]
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(export.text)
    try:
        system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        names = sorted(str(s.getPath().toString()) for s in system.listStatus(path))
    except Exception as error:  # py4j's own, around any of Java's
        raise SourceFailed(f"{export.text}: {reason_of(error)}") from error
    found = [Export(name) for name in names if name.rstrip("/").lower().endswith(SUFFIXES)]
    if not found:
        raise SourceFailed(f"{export.text}: has no export ({', '.join(SUFFIXES)})")
    return found


def read_export(spark: SparkSession, export: Export, origin: str = "") -> DataFrame:
    """Raises SourceFailed when there is nothing to read; half of it may still fail later."""
    origin = origin or export.text
    try:
        if export.is_parquet:
            return _parquet(spark, export, origin)
        lines = spark.read.text(export.text).select(F.col("value").cast("binary"))
    except AnalysisException as error:
        why = reason_of(error)
        if "PATH_NOT_FOUND" in why:
            why = "there is no such file"
        raise SourceFailed(f"{export.text}: {why}") from error
    return map_batches(lines, partial(_parse, origin=origin), READ)


def _parse(batches: Batches, origin: str) -> Batches:
    lines = (row["value"] for row in rows_in(batches))
    return batches_of(rows_of_lines(lines, origin), _ARROW)


def _parquet(spark: SparkSession, export: Export, origin: str) -> DataFrame:
    found = spark.read.parquet(export.text)
    types = {field.name: field.dataType for field in found.schema.fields}
    for name in _NEEDED:
        if name not in types:
            raise SourceFailed(str(ConfigError(f"has no column {name}", where=export.text)))
    columns = [_column(f.name, f.dataType, types).alias(f.name) for f in MESSAGE.fields]
    return found.select(
        *columns,
        F.lit(origin).alias(ORIGIN),
        F.lit(None).cast("string").alias(FAULT),
    )


def _column(name: str, wanted: DataType, types: dict[str, DataType]) -> Column:
    if name not in types:
        return F.lit(None).cast(wanted)
    if isinstance(types[name], TimestampType | TimestampNTZType):
        return F.date_format(F.col(name), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    return F.col(name).cast(wanted)


def reason_of(error: Exception) -> str:
    """One line of what Spark says in a hundred: the innermost cause; of Python's, its last line."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = str(error) if java is None else _innermost(java)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback ") for line in lines):
        lines = [line for line in lines if not line.startswith("at ")][-1:]
    first = lines[0] if lines else type(error).__name__
    return first.partition("SQLSTATE")[0].strip()[:300]


def _innermost(java: Any) -> str:
    for _ in range(_DEEPEST):
        if (cause := java.getCause()) is None:
            break
        java = cause
    return str(java.getMessage() or java.toString())
