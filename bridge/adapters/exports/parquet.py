r"""Messages as Parquet, with the columns of `bridge.core.message_columns`.

Parquet's texts are UTF-8, which has no half surrogate pairs, and MSMQ's may have them. Such a
character becomes U+FFFD, and `headers` has the exact text too, as JSON, under `exact.<column>`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.core.message_columns import COLUMNS, Column, Kind
from bridge.core.message_data import MessageData, read_data
from bridge.model.errors import ConfigError

_TYPES: Final = {
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.U16: pa.uint16(),
    Kind.U32: pa.uint32(),
    Kind.U64: pa.uint64(),
    Kind.TEXTS: pa.map_(pa.string(), pa.string()),
}
_EXACT: Final = "exact."
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
            writer.write_table(pa.Table.from_pylist([_row(data) for data in group], SCHEMA))
            count += len(group)
    return count


def read_parquet(path: Path) -> Iterator[MessageData]:
    """ConfigError if it is no export."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield from (_data(row) for row in batch.to_pylist(maps_as_pydicts="strict"))
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


def _row(data: MessageData) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(data, field) for name, field in _FIELDS.items()}
    inexact = {name: v for name, v in row.items() if isinstance(v, str) and not _is_whole(v)}
    headers = dict(data.headers)
    inexact |= {f"headers.{name}": text for name, text in headers.items() if not _is_whole(text)}
    if inexact:
        row |= {name: _replaced(v) for name, v in row.items() if isinstance(v, str)}
        headers = {name: _replaced(text) for name, text in headers.items()}
        headers |= {f"{_EXACT}{name}": json.dumps(text) for name, text in inexact.items()}
    return row | {"headers": headers}


def _data(row: dict[str, Any]) -> MessageData:
    headers: dict[str, str] = row.get("headers") or {}
    for name in [name for name in headers if name.startswith(_EXACT)]:
        text = json.loads(headers.pop(name))
        column, _, header = name.removeprefix(_EXACT).partition("headers.")
        if header:
            headers[header] = text
        else:
            row[column] = text
    return read_data(row)


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _replaced(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_FIELDS: Final = {
    column.name: "message_class" if column.name == "class" else column.name for column in COLUMNS
}
