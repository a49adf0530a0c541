"""Messages that were read, through the mapping, as rows of ROUTED: the one step in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame

from bridge.core.message_data import MessageData
from bridge.model.errors import ConfigError
from msmq_jobs.arrow import Batches, arrow_schema, batches_of, map_batches, rows_in
from msmq_jobs.backfill.prepare import UNREADABLE, Preparer, Route, Target, failure_of
from msmq_jobs.rows import data_of_row
from msmq_jobs.schemas import ROUTED

_ARROW: Final = arrow_schema(ROUTED)
_Row = Mapping[str, Any]


def routed(chosen: DataFrame, target: Target) -> DataFrame:
    """`chosen` has the columns of READ and a reason."""
    return map_batches(chosen, partial(_route_batches, target=target), ROUTED)


def _route_batches(batches: Batches, target: Target) -> Batches:
    return batches_of(route_rows(rows_in(batches), target), _ARROW)


def route_rows(rows: Iterable[_Row], target: Target) -> Iterator[tuple[Any, ...]]:
    preparer = Preparer(target)
    for row in rows:
        yield _route(preparer, row)


def _route(preparer: Preparer, row: _Row) -> tuple[Any, ...]:
    if row["reason"] is not None:
        return _staying(row, row["reason"], row["fault"])
    try:
        data = data_of_row(row)
    except ConfigError as error:
        return _staying(row, UNREADABLE, str(error))
    return _going(row, data, preparer.route(data, row["origin"]))


def _staying(row: _Row, reason: str, detail: str | None) -> tuple[Any, ...]:
    return (
        *(row["message_id"], row["queue"], None, None, None),
        *(row["tx_sequence_id"], row["tx_sequence_number"], row["sent_time"], row["lookup_id"]),
        *(None, row["class"], row["label"], row["origin"], row["queue"], reason, detail, None),
    )


def _going(row: _Row, data: MessageData, route: Route) -> tuple[Any, ...]:
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
