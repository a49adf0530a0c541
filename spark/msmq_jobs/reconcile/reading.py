"""Sources, audit and topics become events of the state.

Sources are read first, then the end of the audit is taken, then that of the topics: what an earlier
ledger has, a later one had before, so nothing is called missing that was only late.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.kafka.topics import cluster_of
from msmq_jobs import mapped
from msmq_jobs.backfill import io
from msmq_jobs.backfill.prepare import Target
from msmq_jobs.place import Place, identity_of, look_again, look_around
from msmq_jobs.reconcile import ledgers, queues
from msmq_jobs.reconcile.cluster import Extent, look
from msmq_jobs.reconcile.files import Folder
from msmq_jobs.reconcile.ledgers import HeaderNames
from msmq_jobs.reconcile.merging import NEVER, PLACE, settle
from msmq_jobs.reconcile.sent import sent
from msmq_jobs.reconcile.state import ACCEPTED, LANDED, SENT, Known, State
from msmq_jobs.session import require_connector
from msmq_jobs.sources.exports import SourceFailed
from msmq_jobs.sources.kafka import read_range
from msmq_jobs.sources.locator import Export, parse_source

WORK: Final = ".work"  # in --out, while it runs
SETTINGS: Final = {
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # a header twice is no failure
    # A small table in front of the large one helps where groups are few; ours are the messages.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asked for."""

    config: Path | None = None
    sources: tuple[str, ...] = ()
    out: str
    queues: tuple[str, ...] = ()  # path names with * and ?
    since_ms: int | None = None
    until_ms: int | None = None
    in_flight_s: int = 300
    plan: str = ""
    state: str = ""  # a folder; without one all is read anew
    state_format: str = "parquet"
    allowed: Mapping[str, str] = {}
    password_file: str = ""


class Watcher(Protocol):
    """Who wants to see how far it is."""

    def stage(self, text: str) -> None: ...


@contextmanager
def folders(spark: SparkSession, order: Order) -> Iterator[None]:
    """Those of a run are there, and its own as long as it runs."""
    taken: set[str] = set()
    with ExitStack() as stack:
        for option, root in (("--out", order.out), ("--state", order.state)):
            if root and os.path.realpath(root) not in taken:
                folder = Folder(spark, root)
                folder.make(option)
                stack.enter_context(folder.alone(option))
                taken.add(os.path.realpath(root))
        yield


class Reading:
    """One appliance, one order: what the ledgers have, and where to read on."""

    def __init__(self, spark: SparkSession, order: Order, watcher: Watcher) -> None:
        require_connector(spark)
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        self._spark, self._order, self._watcher = spark, order, watcher
        self.place: Place = look_around(order.config)
        self._out = Folder(spark, order.out)
        self._mapping = _hash(self.place.mappings)
        root = order.state or f"{self._out.root}/{WORK}/state"
        self._out.delete(WORK)
        cluster = cluster_of(self.place.settings)
        self.state = State(spark, root, self._mapping, order.state_format, cluster)
        self.changed: Known = self.state.known  # by what was read since
        self.names = HeaderNames.of(self.place.mappings)
        self.homes = mapped.lone_topics(self.place.mappings)

    @property
    def audit(self) -> str:
        return self.place.own.audit

    # -- reading ------------------------------------------------------------------------------

    def read_sources(self) -> None:
        if not self._order.sources:
            return
        self._watcher.stage("reading the sources")
        folder = io.RunFolder(f"{self._out.root}/{WORK}", "now")
        parsed = [parse_source(text) for text in self._order.sources]
        kept, refused = io.keep_sources(self._spark, parsed, folder, self._order.password_file)
        if refused:  # what cannot be read cannot be compared
            raise SourceFailed("; ".join(line.why for line in refused))
        read = io.read_kept(self._spark, folder, kept)
        whole = read.where(F.col("fault").isNull())
        target = Target(
            run="",
            mappings=self.place.mappings,
            limits=self.place.limits,
            reserved=f"{self.place.own.prefix}.",
            local=identity_of(self.place),
        )
        placed = queues.homes(self._spark, whole, target)
        told = self._sources(read, placed)
        self.state.stage(SENT, sent(queues.decoded(self._spark, placed, self.place.mappings)))
        known = self.changed
        self.changed = replace(known, sources={**known.sources, **told})

    def _sources(self, read: DataFrame, placed: DataFrame) -> dict[str, dict[str, Any]]:
        """What each source held, by its name: exactly this was compared."""
        hashed = F.xxhash64("message_id", "queue", F.sha2("body", 256))
        about = placed.groupBy("origin").agg(
            F.count("*").alias("messages"),
            F.sum(F.col("home").isNull().cast("int")).alias("strange"),
            F.min("lookup_id").alias("first"),
            F.max("lookup_id").alias("last"),
            F.bit_xor(hashed).alias("hash"),
        )
        faults = read.where(F.col("fault").isNotNull()).groupBy("origin").count()
        bad = {row["origin"]: row["count"] for row in faults.collect()}
        found = {row["origin"]: row for row in about.collect()}
        return {
            name: {
                "source": name,
                "messages": found[name]["messages"] if name in found else 0,
                "unreadable": bad.get(name, 0),
                "detail": _detail(name, found.get(name), bad.get(name, 0)),
            }
            for name in sorted(found.keys() | bad.keys() | self._empty())
        }

    def _empty(self) -> set[str]:
        """Sources that are told of even if they hold nothing; what they held before counts."""
        parsed = map(parse_source, self._order.sources)
        named = {s.text for s in parsed if not isinstance(s, Export) or s.is_file}
        return named - self.changed.sources.keys()

    def topics(self) -> list[str]:
        """Those that have messages; a journal's copies are no second ones."""
        mappings = self.place.mappings
        named = {m.topic_name for m in mappings.queues} - {""}
        journals = set(mappings.topics()) - named
        if any(m.is_dynamic for m in mappings.queues) or mappings.defaults.unknown != "reject":
            new = self.state.staged([ACCEPTED]).select("topic")
            before = self.state.small("texts").where(F.col("kind") == PLACE).select("text")
            told = new.union(before).distinct().collect()
            named |= {row["topic"] for row in told if row["topic"]} - journals
        return sorted(t for t in named if t in self.place.limits and not self._is_own(t))

    def read_new(self) -> None:
        """What the audit and the topics have got since the last time. Where they end is asked at
        one moment: reading the audit may take longer than anything is in flight."""
        self._watcher.stage("reading the audit")
        self.look_again()
        audit = self.extent([self.audit])
        every = self.extent(t for t in self.place.limits if not self._is_own(t))
        accepted = self.range(audit)
        self.take(accepted=accepted, first=audit.first, positions=audit.ends, ids=audit.ids)
        self._watcher.stage("reading the topics")
        topics = every.of(self.topics())
        landed = self.range(topics)
        self.take(landed=landed, first=topics.first, positions=topics.ends, ids=topics.ids)

    def look_again(self) -> None:
        """At the topics that there are: some are made while we read."""
        self.place = look_again(self.place)

    def extent(self, topics: Iterable[str]) -> Extent:
        limits = self.place.limits
        return look(self.place.settings, {t: limits[t].partitions for t in topics})

    def _is_own(self, topic: str) -> bool:
        return topic.startswith(f"{self.place.own.prefix}.")

    def range(self, extent: Extent) -> DataFrame | None:
        starts = extent.ranges(self.state.known.positions, self.state.known.ids)
        some = {
            topic: ends
            for topic, ends in extent.ends.items()
            if any(ends[n] > starts[topic][n] for n in ends)
        }
        if not some:
            return None
        begin = {topic: starts[topic] for topic in some}
        return read_range(self._spark, self.place.settings, some, begin)

    def take(
        self,
        accepted: DataFrame | None = None,
        landed: DataFrame | None = None,
        first: Mapping[str, Mapping[int, int]] | None = None,
        positions: Mapping[str, Mapping[int, int]] | None = None,
        ids: Mapping[str, str] | None = None,
    ) -> None:
        """Records become events of this run. `first` is where topics begin now."""
        known = self.changed
        strangers, ends, oldest = known.foreign, dict(known.positions), known.oldest
        for topic, places in (first or {}).items():
            oldest = {**oldest, topic: {**oldest.get(topic, {}), **_lost(places, ends.get(topic))}}
        if accepted is not None:
            self.state.stage(ACCEPTED, ledgers.accepted(accepted))
            oldest = {**oldest, self.audit: _oldest(oldest.get(self.audit, {}), accepted)}
        if landed is not None:
            self.state.stage(LANDED, self._landed(landed))
            strangers += ledgers.foreign(landed, self.names).count()
        for topic, places in (positions or {}).items():
            ends[topic] = {**ends.get(topic, {}), **places}
        began = {topic: dict(places) for topic, places in (first or {}).items()}
        self.changed = replace(
            known,
            ids={**(ids or {}), **known.ids},
            first={**began, **known.first},
            positions=ends,
            oldest=oldest,
            foreign=strangers,
        )

    def settle(self) -> None:
        """What was read counts from now on, and is not read again."""
        self._watcher.stage("putting together")
        settle(self._spark, self.state, self.place.mappings, self.changed)
        self.changed = self.state.known

    def _landed(self, records: DataFrame) -> DataFrame:
        mappings = self.place.mappings
        envelope = queues.is_envelope(mappings)
        whole = ledgers.landed(records, self.names, self.homes, envelope)
        if any(settings.oversize == "chunk" for settings in mappings.every()):
            return whole.union(ledgers.joined(records, self.names, self.homes, envelope))
        return whole


def _lost(first: Mapping[int, int], positions: Mapping[int, int] | None) -> dict[int, int]:
    """Partitions that have forgotten something before it was read."""
    return {n: NEVER for n, at in first.items() if at > (positions or {}).get(n, 0)}


def _oldest(known: Mapping[int, int], entries: DataFrame) -> dict[int, int]:
    """Of the audit's partitions, where they have lost something: the time of the first record that
    was read. Entries are older than their record, so what is older still may have been lost."""
    made = dict(known)
    if NEVER in made.values():
        least = entries.groupBy("partition").agg(F.min(F.unix_millis("timestamp")))
        for partition, at in least.collect():
            if made.get(partition) == NEVER:
                made[partition] = at
    return made


def audit_from(oldest: Mapping[int, int]) -> int | None:
    """From when on the audit has everything, by its partitions that have lost something. Nobody can
    tell where an entry that is gone was; so the latest decides, and what is older than that is
    never called unexpected for want of one."""
    return max(oldest.values(), default=None)


def _detail(name: str, about: Any, faults: int) -> str:
    said = []
    if about is not None:
        said.append(f"hash {about['hash'] & (1 << 64) - 1:016x}")
        if not isinstance(parse_source(name), Export) and about["first"] is not None:
            said.append(f"lookup ids {about['first']} to {about['last']}")
        if about["strange"]:
            said.append(f"{about['strange']} for queues that no mapping has")
    if faults:
        said.append(f"{faults} cannot be read")
    return ", ".join(said)


def _hash(mappings: Any) -> str:
    return sha256(msgspec.json.encode(mappings, order="sorted", enc_hook=str)).hexdigest()[:16]
