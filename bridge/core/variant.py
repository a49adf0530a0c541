"""Scalars as COM and .NET's ActiveXMessageFormatter write them, by their VARENUM. MS-OAUT 2.2.7

- VT_I8 and VT_UI8 are JSON numbers with all their digits, also beyond 2^53: the type does not
  change with the value, and readers in Java, .NET and Python take 64 bits.
- VT_CY and VT_DECIMAL are strings ("12.34"): they are money, and a JSON number becomes a binary
  fraction in most readers.
- NaN and infinities are the strings "NaN", "Infinity" and "-Infinity".
- VT_DATE knows no time zone ("2024-05-06T07:08:09"); VT_FILETIME is UTC and ends with Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from struct import Struct as Layout
from typing import Final

from bridge.model.guid import Guid

Scalar = tuple[str | int | float | bool, str]  # the value and its text

_F32: Final = Layout("<f")
_F64: Final = Layout("<d")
_I64: Final = Layout("<q")
_U64: Final = Layout("<Q")
_DEC: Final = Layout("<HBBIQ")  # wReserved, scale, sign, Hi32, Lo64. MS-OAUT 2.2.26
_FLT_MAX: Final = 3.4028235e38

_OLE_EPOCH: Final = datetime(1899, 12, 30)
_TICKS_EPOCH: Final = datetime(1, 1, 1)
_FILETIME_EPOCH: Final = datetime(1601, 1, 1)
_MAX_TICKS: Final = 3_155_378_975_999_999_999  # DateTime.MaxValue
_DAY_MS: Final = 86_400_000


class VariantRefused(ValueError):
    """`reason` is a short, countable label."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def read(body: bytes, body_type: int) -> Scalar | None:
    """None if this type is not a scalar. Raises VariantRefused."""
    known = _SCALARS.get(body_type)
    if known is None:
        return None
    sizes, reader = known
    if len(body) not in sizes:
        raise VariantRefused("wrong-size")
    return reader(body)


def _integer(code: str) -> tuple[tuple[int, ...], Callable[[bytes], Scalar]]:
    layout = Layout("<" + code)

    def reader(body: bytes) -> Scalar:
        (value,) = layout.unpack(body)
        return value, str(value)

    return (layout.size,), reader


def _single(body: bytes) -> Scalar:
    """The shortest number that is this float: 5.1, not 5.099999904632568."""
    (value,) = _F32.unpack(body)
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short) <= _FLT_MAX and _F32.pack(short) == body:
            return _real(short)
    return _real(float(f"{value:.9g}"))


def _double(body: bytes) -> Scalar:
    return _real(_F64.unpack(body)[0])


def _real(value: float) -> Scalar:
    if math.isfinite(value):
        return value, repr(value)
    return _same("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")


def _same(text: str) -> Scalar:
    return text, text


def _boolean(body: bytes) -> Scalar:
    """COM writes a VARIANT_BOOL of two bytes, .NET one byte; true is -1 or 0xFF."""
    value = any(body)
    return value, "true" if value else "false"


def _currency(body: bytes) -> Scalar:
    """Ten-thousandths. As Decimal.FromOACurrency shows it: no zeros at the end."""
    return _same(_scaled(_I64.unpack(body)[0], 4).rstrip("0").removesuffix("."))


def _decimal(body: bytes) -> Scalar:
    _, scale, sign, high, low = _DEC.unpack(body)
    if scale > 28 or sign not in (0, 0x80):
        raise VariantRefused("wrong-decimal")
    number = high << 64 | low
    return _same(_scaled(-number if sign else number, scale))


def _scaled(number: int, scale: int) -> str:
    if not scale:
        return str(number)
    digits = str(abs(number)).rjust(scale + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _date(body: bytes) -> Scalar:
    """COM writes days since 1899-12-30 as a double, .NET's formatter DateTime.Ticks.

    No date that OLE knows has the bits of a number of ticks, nor the other way round.
    """
    (ticks,) = _I64.unpack(body)
    if 0 < ticks <= _MAX_TICKS:
        return _moment(_TICKS_EPOCH, ticks)
    (days,) = _F64.unpack(body)
    if not -657_435 < days < 2_958_466:  # years 100 to 9999
        raise VariantRefused("wrong-date")
    whole = int(days)  # the fraction is the time of day, before the epoch too
    return _moment(_OLE_EPOCH, (whole * _DAY_MS + round(abs(days - whole) * _DAY_MS)) * 10_000)


def _filetime(body: bytes) -> Scalar:
    """100 ns since 1601, UTC. MS-DTYP 2.3.3"""
    return _moment(_FILETIME_EPOCH, _U64.unpack(body)[0], "Z")


def _moment(epoch: datetime, ticks: int, zone: str = "") -> Scalar:
    """ISO 8601, with as many digits after the second as there are."""
    seconds, rest = divmod(ticks, 10_000_000)
    try:
        text = (epoch + timedelta(seconds=seconds)).isoformat()
    except OverflowError as error:
        raise VariantRefused("wrong-date") from error
    if rest:
        text += f".{rest:07d}".rstrip("0")
    return _same(text + zone)


def _clsid(body: bytes) -> Scalar:
    return _same(str(Guid(body)))


_SCALARS: Final[Mapping[int, tuple[tuple[int, ...], Callable[[bytes], Scalar]]]] = {
    2: _integer("h"),  # VT_I2
    3: _integer("i"),  # VT_I4
    4: ((4,), _single),  # VT_R4
    5: ((8,), _double),  # VT_R8
    6: ((8,), _currency),  # VT_CY
    7: ((8,), _date),  # VT_DATE
    11: ((1, 2), _boolean),  # VT_BOOL
    14: ((16,), _decimal),  # VT_DECIMAL
    16: _integer("b"),  # VT_I1
    17: _integer("B"),  # VT_UI1
    18: _integer("H"),  # VT_UI2
    19: _integer("I"),  # VT_UI4
    20: _integer("q"),  # VT_I8
    21: _integer("Q"),  # VT_UI8
    22: _integer("i"),  # VT_INT
    23: _integer("I"),  # VT_UINT
    64: ((8,), _filetime),  # VT_FILETIME
    72: ((16,), _clsid),  # VT_CLSID
}
