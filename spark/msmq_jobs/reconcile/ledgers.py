"""What the three ledgers say, as events: DataFrames in, DataFrames out. Rules in `rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from bridge.core.chunks import CLAIM_SHA256, COUNT, ID, INDEX, SHA256
from bridge.core.mapping_rules import Mappings
from bridge.model.message import DEFAULT_PRIORITY
from msmq_jobs.backfill.prepare import MARK
from msmq_jobs.reconcile.events import (
    BODY,
    CLASS,
    CORRELATION,
    CRC,
    LABEL,
    REST,
    TX,
    WHICH,
    event,
    hash_of,
    moment,
    rest_of,
    sequence_of,
    sha_of,
    tx_of,
)
from msmq_jobs.reconcile.rules import PROPERTIES, Kind

_ENTRY: Final = (
    "array<struct<id:string,verdict:string,at:bigint,dest:string,class:int,queue:string,"
    "topic:string,partition:int,reason:string,label:string,correlation:string,"
    "tx_sequence_id:decimal(20,0),tx_sequence_number:bigint,crc32:bigint>>"
)
_MARK: Final = "run string, id string, queue string"
# What an entry of the audit says of a message. The others say nothing new: a resend, a reader that
# took it, a session that was told to come back, a message for another host.
_OUTCOMES: Final = {
    "accepted": Kind.ACCEPTED,
    "backfilled": Kind.BACKFILLED,
    "expired": Kind.EXPIRED,
    "rejected": Kind.REJECTED,
    "out_of_order": Kind.AHEAD,
}
_TOLD: Final = (
    *("msmq.id", "msmq.queue", "msmq.source", "msmq.dest", "msmq.transport", "msmq.label"),
    *("msmq.correlation", "msmq.class", "msmq.tx.seqid", "msmq.tx.seq", "msmq.arrived"),
    *PROPERTIES,
)
_MS: Final = 1000
# A property at its default has no header. Data-model.md 4
_DEFAULTS: Final = {"msmq.priority": str(DEFAULT_PRIORITY)}


class HeaderNames(msgspec.Struct, frozen=True):
    """What the mappings call the headers of records."""

    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, mappings: Mappings) -> HeaderNames:
        every = [settings.headers for settings in mappings.every()]
        return cls(
            {
                name: tuple(sorted({r.name_of(name) for r in every if r.includes(name)})) or (name,)
                for name in _TOLD
            }
        )


PLAIN: Final = HeaderNames({name: (name,) for name in _TOLD})


# -- accepted ---------------------------------------------------------------------------------


def accepted(records: DataFrame) -> DataFrame:
    """Of records of the audit topic. A record that is none of ours says nothing."""
    entries = F.from_json(F.col("value").cast("string"), _ENTRY)
    each = records.select(F.explode(entries).alias("e")).select("e.*")
    kinds = F.create_map(*(F.lit(x) for pair in _OUTCOMES.items() for x in (pair[0], int(pair[1]))))
    known = each.where(F.col("verdict").isin(*_OUTCOMES) & F.col("id").isNotNull())
    name = F.coalesce(_given("queue"), F.col("dest"))
    became = F.col("verdict").isin("accepted", "backfilled")
    in_stream = F.when(F.col("tx_sequence_number") > 0, F.col("tx_sequence_id"))
    return event(
        known,
        {
            "message_id": F.lower("id"),
            "queue": F.lower(name),
            "name": name,
            "kind": kinds[F.col("verdict")],
            "at": moment(F.col("at")),
            "end": F.when(~became, F.coalesce("class", F.lit(0))),
            CRC: F.when(became, F.col("crc32")),
            LABEL: F.when(became, hash_of(F.coalesce("label", F.lit("")))),
            CORRELATION: F.when(became, F.xxhash64(F.coalesce("correlation", F.lit("")))),
            TX: F.when(became, tx_of(in_stream, F.col("tx_sequence_number"))),
            "topic": _given("topic"),
            "partition": F.col("partition"),
            "sequence": sequence_of(in_stream),
            "number": F.when(in_stream.isNotNull(), F.col("tx_sequence_number")),
            "run": F.when(F.col("verdict") == "backfilled", F.col("reason")),
        },
    )


def _given(name: str) -> Column:
    return F.when(F.col(name) != "", F.col(name))


# -- landed -----------------------------------------------------------------------------------


def landed(
    records: DataFrame,
    names: HeaderNames = PLAIN,
    homes: Mapping[str, str] | None = None,
    is_envelope: Column | None = None,
) -> DataFrame:
    """Of committed records with their headers; `homes` has the queue of a topic whose records do
    not tell it. Chunks are for `joined`; a record without an id is nobody's message."""
    whole = _told(records, names, homes).where(~F.array_contains(F.map_keys("_h"), ID))
    return _landed(whole, is_envelope, F.lit(int(Kind.LANDED)))


def joined(
    records: DataFrame,
    names: HeaderNames = PLAIN,
    homes: Mapping[str, str] | None = None,
    is_envelope: Column | None = None,
) -> DataFrame:
    """The messages that `oversize: chunk` cut up: one copy when all parts are there."""
    parts = _told(records, names, homes).where(F.array_contains(F.map_keys("_h"), ID))
    place = ("topic", "partition", "_chunk")
    told = parts.select(
        "*",
        _text(ID).alias("_chunk"),
        _text(INDEX).try_cast("int").alias("_index"),
        _text(COUNT).try_cast("int").alias("_count"),
        _text(SHA256).alias("_sha"),
    )
    turn = Window.partitionBy(*place, "_index").orderBy("offset")
    in_turn = told.withColumn("_copy", F.row_number().over(turn))
    value = F.array_join(
        F.transform(
            F.array_sort(F.collect_list(F.struct("_index", F.hex("value").alias("v")))),
            lambda part: part["v"],
        ),
        "",
    )
    first = [
        F.min_by(c, "_index").alias(c)
        for c in (*_columns(), "_h", "_sha", "timestamp", "offset", "_count")
    ]
    copies = in_turn.groupBy(*place, "_copy").agg(
        F.unhex(value).alias("value"), F.count("*").alias("_parts"), *first
    )
    named = copies.where(F.col("msmq_id").isNotNull() & _queue().isNotNull())
    is_whole = (F.col("_parts") == F.col("_count")) & (F.sha2("value", 256) == F.col("_sha"))
    kind = F.when(is_whole, int(Kind.LANDED)).otherwise(int(Kind.PARTIAL))
    return _landed(named, is_envelope, kind)


def foreign(records: DataFrame, names: HeaderNames = PLAIN) -> DataFrame:
    """Records that are no messages of ours: they have no id, and are no chunk of one that has."""
    told = records.select(F.map_from_entries("headers").alias("_h"))
    id_ = F.coalesce(*_any("msmq.id", names), _mark()["id"], _text(ID))
    return told.where(id_.isNull())


def _body(is_envelope: Column | None) -> Column:
    """What an envelope has of it. No value is an empty one. The condition is about `queue`."""
    value = F.coalesce(F.col("value"), F.lit(b""))
    if is_envelope is None:
        return value
    text = F.get_json_object(value.cast("string"), "$.body")
    inner = F.try_to_binary(text, F.lit("base64"))
    return F.when(is_envelope, F.coalesce(inner, value)).otherwise(value)


def _columns() -> list[str]:
    return [name.replace(".", "_") for name in _TOLD] + ["_run", "_name", "queue"]


def _queue() -> Column:
    return F.col("_name")


def _told(records: DataFrame, names: HeaderNames, homes: Mapping[str, str] | None) -> DataFrame:
    """With a column for each header that counts. A name twice: the last one, as for consumers
    that ask for one (spark.sql.mapKeyDedupPolicy)."""
    opened = records.where(F.col("headers").isNotNull()).withColumn(
        "_h", F.map_from_entries("headers")
    )
    mark = _mark()
    home: list[Column] = []
    if homes:
        pairs = [F.lit(x) for pair in sorted(homes.items()) for x in pair]
        home = [F.create_map(*pairs)[F.col("topic")]]
    extra = {"msmq.id": [mark["id"]], "msmq.queue": [mark["queue"], *home]}
    read = opened.select(
        *("topic", "partition", "offset", "timestamp", "value", "_h"),
        mark["run"].alias("_run"),
        *(
            F.coalesce(*_any(name, names), *extra.get(name, [])).alias(name.replace(".", "_"))
            for name in _TOLD
        ),
    )
    read = read.withColumn("_name", F.col("msmq_queue")).withColumn("queue", F.lower("_name"))
    # Only the first chunk has the headers of its message.
    has_id = F.col("msmq_id").isNotNull() & F.col("_name").isNotNull()
    return read.where(has_id | F.array_contains(F.map_keys("_h"), ID))


def _landed(told: DataFrame, is_envelope: Column | None, kind: Column) -> DataFrame:
    value, is_plain = _body(is_envelope), F.lit(True) if is_envelope is None else ~is_envelope
    text = {name: F.col(name.replace(".", "_")) for name in _TOLD}
    properties = [F.coalesce(text[p], F.lit(_DEFAULTS.get(p, ""))) for p in PROPERTIES]
    rest, which = rest_of(properties)
    claim = _text(CLAIM_SHA256)
    stamp = F.unix_millis("timestamp")
    arrived = F.when(F.col("_run").isNull(), moment(text["msmq.arrived"].try_cast("long")))
    sequence_id = text["msmq.tx.seqid"]
    id_ = F.lower(text["msmq.id"])
    # Numbers go on from sequence to sequence of a stream, but not over HTTP. Where a mapping leaves
    # out what a stream is told by, order is judged within a sequence.
    is_long = (text["msmq.transport"] == "binary") & text["msmq.dest"].isNotNull()
    short = F.when(~F.coalesce(is_long, F.lit(False)), sequence_id)
    is_whole = kind == int(Kind.LANDED)
    hashes = {
        # A claim's hash is that of the value, which is more than the body in an envelope.
        BODY: F.when(claim.isNotNull(), F.when(is_plain, F.xxhash64(claim))).otherwise(
            sha_of(value)
        ),
        CRC: F.when(claim.isNull(), F.crc32(value)),
        LABEL: hash_of(F.coalesce(text["msmq.label"], F.lit(""))),
        CORRELATION: F.xxhash64(F.coalesce(text["msmq.correlation"], F.lit(""))),
        TX: tx_of(sequence_id, text["msmq.tx.seq"]),
        CLASS: F.coalesce(text["msmq.class"].try_cast("long"), F.lit(0)),
        REST: rest,
        WHICH: which,
    }
    return event(
        told,
        {
            "message_id": id_,
            "queue": F.lower(_queue()),
            "name": _queue(),
            "kind": kind,
            "at": F.coalesce(arrived, stamp),
            "sent": moment(text["msmq.sent"].try_cast("decimal(20,0)") * _MS),
            # Half a message is compared with nothing: it may yet come whole.
            **{name: F.when(is_whole, made) for name, made in hashes.items()},
            "topic": F.col("topic"),
            "partition": F.col("partition"),
            "offset": F.col("offset"),
            "domain": F.when(
                sequence_id.isNotNull() & is_whole,
                F.xxhash64(
                    *("topic", "partition", F.substring_index(id_, "\\", 1), text["msmq.dest"]),
                    *(_queue(), short, "_run"),
                ),
            ),
            "sequence": sequence_of(sequence_id),
            "number": text["msmq.tx.seq"].try_cast("long"),
            "run": F.col("_run"),
        },
    )


def _mark() -> Column:
    return F.from_json(_text(MARK), _MARK)


_BINARY: Final = ("msmq.correlation", "msmq.extension")


def _any(name: str, names: HeaderNames) -> list[Column]:
    """Its text, whatever the mapping calls it; of bytes, their digits."""
    found = [F.col("_h")[known] for known in names.names[name]]
    return [F.lower(F.hex(f)) if name in _BINARY else f.cast("string") for f in found]


def _text(name: str) -> Column:
    return F.col("_h")[name].cast("string")
