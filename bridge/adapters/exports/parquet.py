"""Messages as Parquet, with the columns of `bridge.core.message_columns`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.core.message_columns import COLUMNS, Column, Kind, data_in_row, row_of
from bridge.core.message_data import MessageData
from bridge.model.errors import ConfigError

_TYPES: Final = {
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.U16: pa.uint16(),
    Kind.U32: pa.uint32(),
    Kind.U64: pa.uint64(),
    Kind.TEXTS: pa.map_(pa.string(), pa.string()),
}
_ROWS: Final = 1024  # of one group, unless they are large
_BYTES: Final = 64 << 20


def _field(column: Column) -> pa.Field:
    return pa.field(column.name, _TYPES[column.kind], nullable=not column.is_required)


SCHEMA: Final = pa.schema([_field(column) for column in COLUMNS])


def write_parquet(path: Path, messages: Iterable[MessageData]) -> int:
    """How many they were. One group of rows is in memory at a time."""
    count = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for group in _groups(messages):
            writer.write_table(pa.Table.from_pylist([row_of(data) for data in group], SCHEMA))
            count += len(group)
    return count


def read_parquet(path: Path) -> Iterator[MessageData]:
    """ConfigError if it is no export."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield from (data_in_row(row) for row in batch.to_pylist(maps_as_pydicts="strict"))
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"{error}", where=str(path)) from error


def _groups(messages: Iterable[MessageData]) -> Iterator[list[MessageData]]:
    rest = iter(messages)
    group: list[MessageData] = []
    size = 0
    for data in rest:
        group.append(data)
        size += len(data.body)
        if len(group) >= _ROWS or size >= _BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
