"""Rows of the canonical schema from messages as data, and back; for every source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from bridge.core.message_columns import COLUMNS, Kind, data_in_row, row_of
from bridge.core.message_data import MessageData, read_data, u64
from bridge.model.errors import ConfigError

Values = tuple[Any, ...]

_DECIMALS: Final = tuple(column.name for column in COLUMNS if column.kind is Kind.U64)
_SHOWN: Final = 80


def values_of(data: MessageData, origin: str) -> Values:
    """A row of READ."""
    row = row_of(data)
    for name in _DECIMALS:
        if (number := u64(name, row[name])) is not None:
            row[name] = Decimal(number)
    return (*(row[column.name] for column in COLUMNS), origin, None)


def fault_values(why: str, origin: str) -> Values:
    """In place of a message that cannot be read."""
    return (*(None for _ in COLUMNS), origin, " ".join(why.split())[:400])


def data_of_row(row: Mapping[str, Any]) -> MessageData:
    """Raises ConfigError: what is wrong, and where."""
    names = (column.name for column in COLUMNS)
    try:
        return data_in_row({name: _plain(row[name]) for name in names if row[name] is not None})
    except ValueError as error:  # an exact text that is none
        raise ConfigError(str(error), where="headers") from error


def rows_of_lines(lines: Iterable[bytes], origin: str) -> Iterator[Values]:
    """Of an export in JSON lines: a row each, with the fault of those that are no messages."""
    for line in lines:
        if line.strip():
            yield _row_of_line(line, origin)


def _row_of_line(line: bytes, origin: str) -> Values:
    try:
        values = json.loads(_text(line))
        if not isinstance(values, dict):
            raise ConfigError("is no JSON object")
        return values_of(read_data(values), origin)
    except ConfigError as error:
        return fault_values(f"{_shown(line)}: {error}", origin)
    except (ValueError, ArithmeticError, RecursionError) as error:  # half a line, or no JSON at all
        return fault_values(f"{_shown(line)}: is no JSON ({error})", origin)


def _text(line: bytes) -> str:
    """Half a surrogate pair is lawful in MSMQ's texts."""
    if b"\0" in line:
        raise ConfigError("is no UTF-8, perhaps UTF-16", mend="write the export as UTF-8")
    return line.decode("utf-8-sig", "surrogatepass")


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value)
        case bytearray():
            return bytes(value)
        case dict() | list():  # a map, of Spark or of Arrow
            return dict(value)
    return value


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace")
    return f"{text}…" if len(line) > _SHOWN else text
