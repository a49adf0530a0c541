"""What sources hold, as events: journals, dead letters, exports. Rules in `rules`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from msmq_jobs.reconcile.events import (
    BODY,
    CLASS,
    CORRELATION,
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
from msmq_jobs.reconcile.rules import EXPIRED_CLASSES, NEGATIVE, Kind

_MS: Final = 1000


def sent(read: DataFrame) -> DataFrame:
    """Of rows of READ with `home`, the queue that the appliance has for them (`homes`)."""
    told = F.coalesce(F.col("headers")["msmq.outcome"].try_cast("int"), F.lit(0))
    class_ = F.coalesce("class", F.lit(0))
    failure = F.when(told.bitwiseAND(F.lit(NEGATIVE)) != 0, told).otherwise(class_)
    is_dead = failure.bitwiseAND(F.lit(NEGATIVE)) != 0
    is_late = failure.isin(*EXPIRED_CLASSES)
    in_stream = F.col("tx_sequence_id").isNotNull()
    is_express = (F.col("delivery") == 0) & ~in_stream
    kind = (
        F.lit(int(Kind.SENT))
        + F.when(is_dead, int(Kind.DEAD)).otherwise(0)
        + F.when(is_late, int(Kind.LATE)).otherwise(0)
        + F.when(is_express, int(Kind.EXPRESS)).otherwise(0)
    )
    seconds = F.unix_seconds(F.col("sent_time").try_cast("timestamp"))
    properties: list[Column] = [
        *(F.nullif(F.col("body_type"), F.lit(0)), F.nullif(F.col("app_specific"), F.lit(0))),
        *(F.lower(F.hex("extension")), F.col("priority")),
        *(F.nullif(F.col("delivery"), F.lit(0)), seconds),
        *(F.col("response_queue"), F.col("admin_queue")),
    ]
    texts = [F.coalesce(p.cast("string"), F.lit("")) for p in properties]
    rest, which = rest_of(texts)
    needed = ("body_type", "app_specific", "priority", "delivery")
    tells = F.greatest(*(F.col(name).isNull() for name in needed)) == F.lit(False)
    return event(
        read.where(F.col("home").isNotNull()),
        {
            "message_id": F.lower("message_id"),
            "queue": F.lower("home"),
            "name": F.col("home"),
            "kind": kind,
            "sent": moment(seconds * _MS),
            "end": F.when(is_dead, failure),
            BODY: sha_of(F.col("body")),
            LABEL: hash_of(F.col("label")),
            CORRELATION: F.when(
                tells, F.xxhash64(F.coalesce(F.lower(F.hex("correlation_id")), F.lit("")))
            ),
            TX: tx_of(F.col("tx_sequence_id"), F.col("tx_sequence_number")),
            CLASS: F.when(~is_dead, class_),
            REST: F.when(tells, rest),
            WHICH: F.when(tells, which),
            "sequence": sequence_of(F.col("tx_sequence_id")),
            "number": F.col("tx_sequence_number"),
            "origin": F.col("origin"),
        },
    )
