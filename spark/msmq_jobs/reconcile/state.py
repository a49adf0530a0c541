"""What was put together before, so that a run costs what is new.

A folder with what each run has written, by its number, and `state.json`, which says what counts:
it is replaced in one step after the tables are written, so a run that dies has done nothing.

`rows` has what all events so far say of a message (`verdicts.gathered`), in buckets of time; the
number of the run that wrote a bucket last counts for it. The small tables are written by every
run: `texts` (names of queues, sources, places), `streams` (how far each has come), `copies` (where
the records lie of messages that have several). Reading goes on at the positions of `state.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Any, Final
from uuid import uuid4

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.events import EVENT
from msmq_jobs.reconcile.files import Folder
from msmq_jobs.reconcile.tables import PARQUET, Tables
from msmq_jobs.reconcile.verdicts import latest, shape

ACCEPTED, LANDED, SENT = "accepted", "landed", "sent"
LEDGERS: Final = (ACCEPTED, LANDED, SENT)
VERSION: Final = 3
MANY: Final = 30  # runs whose buckets a reader has to put together
STATE: Final = "state.json"
NEW: Final = "new"  # events of this run; nothing counts that is in there
ROWS: Final = "rows"
SMALL: Final = {
    "texts": "kind string, key long, text string, number int",
    "streams": "domain long, sequence long, number long",
    "copies": "message_id string, queue string, at long, topic string, partition int, offset long",
}


class Bucket(msgspec.Struct, frozen=True):
    run: int  # that wrote it last
    rows: int
    latest: int  # the newest time in it, ms


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """`state.json`"""

    version: int = VERSION
    id: str = msgspec.field(default_factory=lambda: uuid4().hex)
    mapping: str = ""  # hash: other mappings read records in another way
    cluster: str = ""  # Kafka's own name for itself
    format: str = PARQUET
    next: int = 0  # number of the next run
    buckets: dict[str, Bucket] = {}
    small: int | None = None  # the run that wrote the small tables last
    ids: dict[str, str] = {}  # of topics: one that is made anew has another
    first: dict[str, dict[int, int]] = {}  # where topics began when they were first read
    positions: dict[str, dict[int, int]] = {}  # where to read on
    oldest: dict[str, dict[int, int]] = {}  # ms; what is older may have aged before it was read
    sources: dict[str, dict[str, Any]] = {}
    foreign: int = 0
    newest: int | None = None  # ms, in the audit and the topics
    newest_sent: int | None = None  # ms, in the sources
    renamed: int = 0  # how often a queue that was known got another spelling


class State:
    def __init__(
        self,
        spark: SparkSession,
        root: str,
        mapping: str,
        format_: str = PARQUET,
        cluster: str = "",
    ) -> None:
        self._spark, self._folder = spark, Folder(spark, root)
        self._found = found = self._folder.read(STATE)
        new = Known(mapping=mapping, format=format_, cluster=cluster)
        self.known = new if found is None else _decode(found)
        if self.known.mapping != mapping:
            mend = "name a new folder: records are read in another way now"
            raise ConfigError("was made with other mappings", where=f"--state {root}", mend=mend)
        if self.known.cluster != cluster:
            what = f"was made with the cluster {self.known.cluster}, this is {cluster}"
            raise ConfigError(what, where=f"--state {root}", mend="name a new folder")
        if self.known.format != format_:
            what = f"is kept as {self.known.format}"
            raise ConfigError(what, where=f"--state {root}", mend="ask for the same format")
        self._tables = Tables(spark, self._folder.root, format_, self.known.id)
        self._none = spark.createDataFrame([], shape(spark))
        self._staged: set[str] = set()
        self._clear()

    # -- events of this run -------------------------------------------------------------------

    def stage(self, ledger: str, events: DataFrame) -> None:
        """Read once, used several times; forgotten by `keep`."""
        events.write.mode("overwrite").parquet(self._new(ledger))
        self._staged.add(ledger)

    def staged(self, ledgers: Iterable[str] = LEDGERS) -> DataFrame:
        some = [name for name in ledgers if name in self._staged]
        if not some:
            return self._spark.createDataFrame([], EVENT)
        return self._spark.read.schema(EVENT).parquet(*map(self._new, some))

    @property
    def has_new(self) -> bool:
        return bool(self._staged)

    def _new(self, ledger: str) -> str:
        return f"{self._folder.root}/{NEW}/{ledger}"

    # -- what all runs have found -------------------------------------------------------------

    def rows(self, buckets: Collection[str] | None = None) -> DataFrame:
        """Of all buckets, or of these."""
        runs: dict[int, list[str]] = {}
        for name, bucket in sorted(self.known.buckets.items()):
            if buckets is None or name in buckets:
                runs.setdefault(bucket.run, []).append(name)
        frames = [
            self._tables.read(run, ROWS, self._none).where(F.col("bucket").isin(names))
            for run, names in runs.items()
        ]
        return reduce(DataFrame.union, frames) if frames else self._none

    def small(self, name: str) -> DataFrame:
        empty = self._spark.createDataFrame([], SMALL[name])
        if self.known.small is None:
            return empty
        return self._tables.read(self.known.small, name, empty)

    def crumbs(self) -> set[str]:
        """Buckets that had better be written together: each run costs its readers something."""
        sizes = Counter(bucket.run for bucket in self.known.buckets.values())
        if len(sizes) <= MANY:
            return set()
        return {name for name, bucket in self.known.buckets.items() if sizes[bucket.run] == 1}

    def write_rows(self, rows: DataFrame) -> DataFrame:
        """They do not count before `keep`."""
        self._tables.write(rows, self.known.next, ROWS, by="bucket")
        return self._tables.read(self.known.next, ROWS, self._none)

    def keep(
        self,
        changed: Known,
        written: DataFrame | None = None,
        instead_of: Collection[str] = (),
        small: Mapping[str, DataFrame] | None = None,
    ) -> None:
        """From now on these buckets count, and `changed` with the new positions."""
        buckets = {name: b for name, b in self.known.buckets.items() if name not in instead_of}
        run = self.known.next
        if written is not None:
            facts = written.groupBy("bucket").agg(
                F.count("*").alias("rows"), F.max(latest()).alias("latest")
            )
            for row in facts.collect():
                buckets[row["bucket"]] = Bucket(run, row["rows"], row["latest"] or 0)
        for name, frame in (small or {}).items():
            self._tables.write(frame, run, name)
        self.known = msgspec.structs.replace(
            changed,
            next=run + 1,
            buckets=buckets,
            small=run if small else self.known.small,
        )
        self._replace(json.dumps(msgspec.to_builtins(self.known, str_keys=True)))
        self._staged.clear()
        self._clear()

    def _replace(self, told: str) -> None:
        """Where nobody can be kept out, who was there meanwhile is noticed."""
        if self._folder.read(STATE) != self._found:
            what, mend = "another run has changed it meanwhile", "run one at a time"
            raise ConfigError(what, where=f"--state {self._folder.root}", mend=mend)
        self._folder.write(STATE, [told])
        self._found = told

    def _clear(self) -> None:
        """What no longer counts, or never did because its run died."""
        runs = {bucket.run for bucket in self.known.buckets.values()} | {self.known.small}
        for name in self._folder.names():
            if name == NEW or (name.isdecimal() and int(name) not in runs):
                self._folder.delete(name)


def _decode(text: str) -> Known:
    try:
        made = msgspec.json.decode(text, type=Known)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"state.json: {error}", where="--state", mend="name a new folder"
        ) from error
    if made.version != VERSION:
        what = f"state.json: has version {made.version}, this program keeps {VERSION}"
        raise ConfigError(what, where="--state", mend="name a new folder: all is read once more")
    return made
