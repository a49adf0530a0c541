"""Messages that were read, through the mapping, as rows of ROUTED: the one step in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from bridge.core.message_data import MessageData
from bridge.model.errors import ConfigError
from msmq_jobs.backfill.prepare import UNREADABLE, Preparer, Route, Target, failure_of
from msmq_jobs.rows import data_of_row
from msmq_jobs.schemas import ROUTED


def routed(spark: SparkSession, chosen: DataFrame, target: Target) -> DataFrame:
    """`chosen` has the columns of READ and a reason."""
    rows = chosen.rdd.mapPartitions(partial(route_rows, target=target))
    return spark.createDataFrame(rows, ROUTED, verifySchema=False)


def route_rows(rows: Iterable[Row], target: Target) -> Iterator[tuple[Any, ...]]:
    preparer = Preparer(target)
    for row in rows:
        yield _route(preparer, row)


def _route(preparer: Preparer, row: Row) -> tuple[Any, ...]:
    if row["reason"] is not None:
        return _staying(row, row["reason"], row["fault"])
    try:
        data = data_of_row(row.asDict())
    except ConfigError as error:
        return _staying(row, UNREADABLE, str(error))
    return _going(row, data, preparer.route(data, row["origin"]))


def _staying(row: Row, reason: str, detail: str | None) -> tuple[Any, ...]:
    return (
        *(row["message_id"], row["queue"], None, None, None),
        *(row["tx_sequence_id"], row["tx_sequence_number"], row["sent_time"], row["lookup_id"]),
        *(None, row["class"], row["label"], row["origin"], row["queue"], reason, detail, None),
    )


def _going(row: Row, data: MessageData, route: Route) -> tuple[Any, ...]:
    id_ = data.message_id.lower()
    sequence = data.tx_sequence_id
    goes = route.prepared is not None
    return (
        *(id_, route.queue, route.topic or None, route.partition if goes else None),
        route.stream.encode("utf-8", "replace").decode() or None,
        None if sequence is None else Decimal(sequence),
        *(data.tx_sequence_number, data.sent_time, row["lookup_id"]),
        int(id_.rpartition("\\")[2]) if goes else None,
        *(failure_of(data), row["label"], row["origin"], data.queue),
        *(route.reason or None, route.detail or None),
        route.prepared.encode() if route.prepared is not None else None,
    )
