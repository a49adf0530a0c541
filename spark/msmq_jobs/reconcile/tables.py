"""Tables of the state in the format that the user chose: Parquet, Delta or Iceberg.

A table is written once, whole, in a folder of its own, and never changed. So the formats need not
agree on how to replace anything: `state.json` says which tables count.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.model.errors import ConfigError

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
_CLASSES: Final = {
    DELTA: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    ICEBERG: "org.apache.iceberg.spark.SparkCatalog",
}
_SESSION: Final = "spark.sql.catalog.spark_catalog"


class Tables:
    """Those of one folder. `name` is the state's own: Iceberg knows folders as catalogs."""

    def __init__(self, spark: SparkSession, root: str, format_: str, name: str) -> None:
        require(spark, format_)
        self._spark, self._root, self._format = spark, root, format_
        self._catalog = f"msmq_state_{name}"
        if format_ == ICEBERG:
            at = f"spark.sql.catalog.{self._catalog}"
            spark.conf.set(at, _CLASSES[ICEBERG])
            spark.conf.set(f"{at}.type", "hadoop")  # its folder is all that it needs
            spark.conf.set(f"{at}.warehouse", root)

    def write(self, frame: DataFrame, version: int, name: str, by: str = "") -> None:
        """There is none yet: what a dead run left is deleted before."""
        if self._format == ICEBERG:
            new = frame.writeTo(self._identifier(version, name)).using(ICEBERG)
            (new.partitionedBy(F.col(by)) if by else new).create()
            return
        writer = frame.write.format(self._format)
        (writer.partitionBy(by) if by else writer).save(f"{self._root}/{version}/{name}")

    def read(self, version: int, name: str, frame: DataFrame) -> DataFrame:
        """With the columns of `frame`, which has no rows."""
        if self._format == ICEBERG:
            found = self._spark.table(self._identifier(version, name))
        else:
            reader = self._spark.read.format(self._format)
            if self._format == PARQUET:  # a bucket that looks like a day stays a text
                reader = reader.schema(frame.schema)
            found = reader.load(f"{self._root}/{version}/{name}")
        return found.select(*frame.columns)

    def _identifier(self, version: int, name: str) -> str:
        return f"{self._catalog}.`{version}`.{name}"


def require(spark: SparkSession, format_: str) -> None:
    """Parquet is always there; the others when the user brings them. Raises ConfigError."""
    if format_ not in FORMATS:
        raise ConfigError(
            f"{format_} is no format", where="--state-format", mend="parquet, delta or iceberg"
        )
    if format_ == PARQUET:
        return
    try:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.lang.Class.forName(
            _CLASSES[format_], False, jvm.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:  # py4j's own, and whatever it wraps
        mend = "add its packages to spark-submit, or leave the option out"
        raise ConfigError(f"Spark has no {format_}", where="--state-format", mend=mend) from error
    if format_ == DELTA and spark.conf.get(_SESSION, "") != _CLASSES[DELTA]:
        mend = f"start Spark with its extension and {_SESSION}={_CLASSES[DELTA]}"
        raise ConfigError("Spark is not set up for delta", where="--state-format", mend=mend)
