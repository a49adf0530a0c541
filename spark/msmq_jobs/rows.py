"""Rows of the canonical schema from messages as data, and back; for every source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from bridge.core.message_data import MessageData, read_data
from bridge.model.errors import ConfigError
from msmq_jobs.schemas import EXACT, MESSAGE, U64

Values = tuple[Any, ...]

_COLUMNS: Final = tuple(MESSAGE.fieldNames())
_DECIMALS: Final = frozenset(f.name for f in MESSAGE.fields if f.dataType == U64)
_SHOWN: Final = 80
_SURROGATE: Final = b"\\ud"  # how JSON writes half a pair, and whole ones too


def row_of(data: MessageData, origin: str, exact: bytes | None = None) -> Values:
    """`exact` is the message's JSON, if its texts cannot be columns."""
    values: dict[str, Any] = {
        field.encode_name: getattr(data, field.name) for field in msgspec.structs.fields(data)
    }
    for name in _DECIMALS:
        if values[name] is not None:
            values[name] = Decimal(values[name])
    if exact is not None:
        values = {name: _readable(value) for name, value in values.items()}
    return (*(values[name] for name in _COLUMNS), origin, None, exact)


def fault_row(why: str, origin: str) -> Values:
    """In place of a message that cannot be read."""
    return (*(None for _ in _COLUMNS), origin, " ".join(why.split())[:400], None)


def data_of_row(row: Mapping[str, Any]) -> MessageData:
    """Raises ConfigError: what is wrong, and where."""
    if row[EXACT] is not None:
        return read_data(json.loads(bytes(row[EXACT])))
    return read_data({name: _plain(row[name]) for name in _COLUMNS if row[name] is not None})


def rows_of_lines(lines: Iterable[bytes], origin: str) -> Iterator[Values]:
    """Of an export in JSON lines: a row each, with the fault of those that are no messages."""
    for line in lines:
        if line.strip():
            yield _row_of_line(line, origin)


def _row_of_line(line: bytes, origin: str) -> Values:
    try:
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ConfigError("is no JSON object")
        data = read_data(values)
    except ConfigError as error:
        return fault_row(f"{_shown(line)}: {error}", origin)
    except (ValueError, RecursionError) as error:  # half a line, not UTF-8, or not JSON at all
        return fault_row(f"{_shown(line)}: is no JSON ({error})", origin)
    is_exact = _SURROGATE in line.lower() and not _is_text(data)
    return row_of(data, origin, line if is_exact else None)


def _is_text(data: MessageData) -> bool:
    """Whether all its texts can be UTF-8, which is what a column has."""
    try:
        msgspec.json.encode(data)
    except UnicodeEncodeError:
        return False
    return True


def _readable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_readable(key): _readable(item) for key, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value)
        case bytearray():
            return bytes(value)
    return value


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace")
    return f"{text}…" if len(line) > _SHOWN else text
