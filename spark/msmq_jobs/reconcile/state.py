"""The ledgers between runs: what was read once is not read again.

A folder with a part per run and ledger, and `state.json`, which says what counts: it is replaced
in one step after its parts are written, so a run that dies has done nothing. Reading goes on at
the positions that it has. Nothing else depends on offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.events import EVENT
from msmq_jobs.reconcile.files import Folder

ACCEPTED, LANDED, SENT = "accepted", "landed", "sent"
LEDGERS: Final = (ACCEPTED, LANDED, SENT)
VERSION: Final = 1
_CLASSES: Final = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.SparkCatalog",
}


class Part(msgspec.Struct, frozen=True):
    number: int
    ledgers: tuple[str, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`"""

    version: int = VERSION
    mapping: str = ""  # hash: other mappings read records in another way
    format: str = "parquet"
    next: int = 0  # number of the next part
    parts: tuple[Part, ...] = ()
    first: dict[str, dict[int, int]] = {}  # where topics began when they were first read
    positions: dict[str, dict[int, int]] = {}  # where to read on
    sources: dict[str, dict[str, Any]] = {}
    foreign: int = 0


class State:
    def __init__(self, spark: SparkSession, root: str, mapping: str, format_: str = "parquet"):
        self._spark, self._folder = spark, Folder(spark, root)
        found = self._folder.read("state.json")
        self.known = Known(mapping=mapping, format=format_) if found is None else _decode(found)
        if self.known.mapping != mapping:
            mend = "name a new folder: records are read in another way now"
            raise ConfigError("was made with other mappings", where=f"--state {root}", mend=mend)
        if self.known.format != format_:
            what = f"is kept as {self.known.format}"
            raise ConfigError(what, where=f"--state {root}", mend="ask for the same format")
        require(spark, format_)

    def append(self, ledgers: Mapping[str, DataFrame], changed: Known) -> None:
        """Keeps the events, then says so. `changed` has the new positions."""
        number = self.known.next
        for name, frame in ledgers.items():
            writer = frame.write.format(self.known.format).mode("overwrite")
            writer.save(self._place(name, number))
        made = Part(number, tuple(sorted(ledgers)))
        self.known = msgspec.structs.replace(
            changed, next=number + 1, parts=(*self.known.parts, *([made] if ledgers else []))
        )
        self._folder.replace(
            "state.json", json.dumps(msgspec.to_builtins(self.known, str_keys=True))
        )

    def events(self, names: Iterable[str] = LEDGERS) -> DataFrame:
        frames = [
            self._spark.read.format(self.known.format).load(self._place(name, part.number))
            for name in names
            for part in self.known.parts
            if name in part.ledgers
        ]
        empty = self._spark.createDataFrame([], EVENT)
        return reduce(DataFrame.unionByName, frames) if frames else empty

    def _place(self, name: str, number: int) -> str:
        return f"{self._folder.root}/{name}/part={number}"


def require(spark: SparkSession, format_: str) -> None:
    """Parquet is always there; the others when the user brings them."""
    if format_ == "parquet":
        return
    wanted = _CLASSES.get(format_)
    if wanted is None:
        raise ConfigError(
            f"{format_} is no format", where="--state-format", mend="parquet, delta or iceberg"
        )
    try:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.lang.Class.forName(
            wanted, False, jvm.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:  # py4j's own, and whatever it wraps
        mend = "add its packages to spark-submit, or leave the option out"
        raise ConfigError(f"Spark has no {format_}", where="--state-format", mend=mend) from error


def _decode(text: str) -> Known:
    try:
        return msgspec.json.decode(text, type=Known)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"state.json: {error}", where="--state", mend="name a new folder"
        ) from error
