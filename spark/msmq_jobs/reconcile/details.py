"""`verdicts/` in `--out`: a verdict for every message, as Parquet, in the buckets of the state.

A bucket's verdicts follow from its rows and from what they are judged by. Where both are as they
were when they were written here, they stay; `_judged.json` remembers that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from msmq_jobs.reconcile.files import Folder

NAME: Final = "verdicts"
_MARKS: Final = "_judged.json"  # Spark and others pass over names that begin so


class Details:
    def __init__(self, spark: SparkSession, out: str) -> None:
        self._spark, self._out = spark, Folder(spark, out)
        self._folder = Folder(spark, f"{self._out.root}/{NAME}")

    def stale(self, marks: Mapping[str, str]) -> set[str]:
        """Buckets that have to be judged. `marks` says of each what its verdicts follow from."""
        known = self._marks()
        return {bucket for bucket, mark in marks.items() if known.get(bucket) != mark}

    def write(self, rows: DataFrame, marks: Mapping[str, str], stale: set[str]) -> None:
        """`rows` are those of the stale buckets. Killed meanwhile, it is done again."""
        known = self._marks()
        if not known:
            self._out.delete(NAME)
        kept = {bucket: mark for bucket, mark in known.items() if bucket in marks.keys() - stale}
        self._folder.write(_MARKS, [json.dumps(kept)])
        for name in self._folder.names():
            bucket = name.removeprefix("bucket=")
            if name != _MARKS and bucket not in kept:
                self._folder.delete(name)
        if stale or not kept:
            rows.sortWithinPartitions("bucket", "queue", "message_id").write.mode(
                "append"
            ).partitionBy("bucket").parquet(self._folder.root)
        self._folder.write(_MARKS, [json.dumps(dict(marks), sort_keys=True)])

    def read(self, schema: StructType) -> DataFrame:
        whole = StructType(
            [f for f in schema.fields if f.name != "bucket"] + [StructField("bucket", StringType())]
        )
        return self._spark.read.schema(whole).parquet(self._folder.root)

    def _marks(self) -> dict[str, str]:
        text = self._folder.read(_MARKS)
        try:
            found = json.loads(text or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
