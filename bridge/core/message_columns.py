r"""The columns of an export: a message as data (design 3.6), with a type for each name.

Written down once, for Parquet files and for Spark, without either of them. Spark reads unsigned
numbers of Parquet into the next larger signed type, and 64 bits of them into a decimal.

Their texts are UTF-8, which has no half surrogate pairs, and MSMQ's may have them. Such a
character becomes U+FFFD, and `headers` has the exact text too, as JSON, under `exact.<column>`.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final, NamedTuple

from bridge.core.message_data import MessageData, read_data


class Kind(Enum):
    """The value is Spark's name of it."""

    TEXT = "STRING"
    BYTES = "BINARY"
    U16 = "INT"
    U32 = "BIGINT"
    U64 = "DECIMAL(20,0)"
    TEXTS = "MAP<STRING,STRING>"


class Column(NamedTuple):
    name: str
    kind: Kind
    is_required: bool = False  # never null


COLUMNS: Final = (
    Column("message_id", Kind.TEXT, True),
    Column("queue", Kind.TEXT, True),
    Column("source", Kind.TEXT),
    Column("label", Kind.TEXT, True),
    Column("body", Kind.BYTES, True),
    Column("body_type", Kind.U32, True),
    Column("class", Kind.U16, True),
    Column("priority", Kind.U16, True),
    Column("delivery", Kind.U16, True),
    Column("sent_time", Kind.TEXT),
    Column("arrived_time", Kind.TEXT),
    Column("correlation_id", Kind.BYTES),
    Column("response_queue", Kind.TEXT),
    Column("admin_queue", Kind.TEXT),
    Column("extension", Kind.BYTES),
    Column("app_specific", Kind.U32, True),
    Column("lookup_id", Kind.U64),
    Column("tx_sequence_id", Kind.U64),
    Column("tx_sequence_number", Kind.U32),
    Column("transport", Kind.TEXT, True),
    Column("headers", Kind.TEXTS, True),
)


def spark_schema() -> str:
    """As DDL, which `spark.read.schema(...)` takes."""
    return ", ".join(
        f"`{column.name}` {column.kind.value}{' NOT NULL' if column.is_required else ''}"
        for column in COLUMNS
    )


_EXACT: Final = "exact."
_FIELDS: Final = {
    column.name: "message_class" if column.name == "class" else column.name for column in COLUMNS
}


def row_of(data: MessageData) -> dict[str, Any]:
    """The value of every column."""
    row: dict[str, Any] = {name: getattr(data, field) for name, field in _FIELDS.items()}
    inexact = {name: v for name, v in row.items() if isinstance(v, str) and not _is_whole(v)}
    headers = dict(data.headers)
    inexact |= {f"headers.{name}": text for name, text in headers.items() if not _is_whole(text)}
    if inexact:
        row |= {name: _replaced(v) for name, v in row.items() if isinstance(v, str)}
        headers = {name: _replaced(text) for name, text in headers.items()}
        headers |= {f"{_EXACT}{name}": json.dumps(text) for name, text in inexact.items()}
    return row | {"headers": headers}


def data_in_row(row: dict[str, Any]) -> MessageData:
    """`row_of`, back again. ConfigError: what is wrong, and where."""
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
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _replaced(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
