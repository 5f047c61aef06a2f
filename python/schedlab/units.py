# SPDX-License-Identifier: MIT
"""Read and write values that carry their unit: "5ms", "64KiB", "3ticks".

In a workload file the unit stands in the value, so that no key needs a suffix
and no reader has to guess. Numbers are exact fractions until the end; a value
that is not a whole number of nanoseconds or bytes is refused, not rounded.

Read next: workload/params.py, which calculates with these values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from .errors import UnitError, did_you_mean

U32_MAX = 2**32 - 1
#: Times stay below 2**62 ns (146 years), as player/program.h demands: sums fit a u64.
TIME_MAX_NS = 2**62 - 1

#: Nanoseconds in one unit.
TIME_UNITS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
#: Bytes in one unit.
SIZE_UNITS = {
    "B": 1,
    "kB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
TICK_UNITS = ("tick", "ticks")

_NUMBER = re.compile(r"(?P<number>[+-]?\d[\d_]*(\.\d[\d_]*)?([eE][+-]?\d{1,3})?)\s*(?P<unit>[^\W\d]*)")


@dataclass(frozen=True)
class Quantity:
    """A number with its dimension."""

    value: Fraction  #: In nanoseconds, bytes, or as it stands.
    dimension: str  #: ``"time"``, ``"size"`` or ``"number"``.

    def text(self) -> str:
        """Write the quantity so that `parse_quantity` reads it again.

        A time or size is rounded to a whole nanosecond or byte; a number keeps 18 significant digits.
        Halves go to the even neighbour.
        """
        if self.dimension == "time":
            return f"{round(self.value)}ns"
        if self.dimension == "size":
            return f"{round(self.value)}B"
        if self.value.denominator == 1:
            return str(self.value.numerator)
        return format(_decimal(self.value), "f")


def _decimal(value: Fraction) -> Decimal:
    """Nearest decimal of 18 significant digits, the same in every version."""
    from decimal import ROUND_HALF_EVEN, Context

    context = Context(prec=18, rounding=ROUND_HALF_EVEN)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def parse_quantity(text: object, *, tick_ns: int | None = None) -> Quantity:
    """Read a number with or without a unit.

    Text such as ``"5ms"``, ``"1.5 s"``, ``"64KiB"``, ``"3ticks"``, or a number; the value is exact. "ticks"
    need `tick_ns`, the length of one in ns. UnitError: it is not a number, or the unit is unknown.

    >>> parse_quantity("1.5ms").value
    Fraction(1500000, 1)
    """
    if isinstance(text, bool) or not isinstance(text, str | int | Decimal):
        raise UnitError(f"{text!r} is not a number with a unit, such as '5ms'")
    if isinstance(text, Decimal) and not text.is_finite():
        raise UnitError(f"{text} is not a finite number")
    if not isinstance(text, str):
        return Quantity(Fraction(text), "number")
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"{text!r} is not a number with a unit, such as '5ms' or '64KiB'")
    number = Fraction(match["number"].replace("_", ""))
    unit = match["unit"].replace("µ", "u").replace("μ", "u")
    if not unit:
        return Quantity(number, "number")
    if unit in TIME_UNITS:
        return Quantity(number * TIME_UNITS[unit], "time")
    if unit in SIZE_UNITS:
        return Quantity(number * SIZE_UNITS[unit], "size")
    if unit in TICK_UNITS:
        if tick_ns is None:
            raise UnitError(f"{text!r}: ticks have no length here; use ms")
        return Quantity(number * tick_ns, "time")
    known = [*TIME_UNITS, *SIZE_UNITS, *TICK_UNITS]
    raise UnitError(f"{text!r}: unknown unit {unit!r}{did_you_mean(unit, known)}")


def parse_duration(text: object, *, tick_ns: int | None = None, place: str = "") -> int:
    """Read a length of time.

    A number and one of ns, us, ms, s, min, h, tick, ticks; a bare 0 is the only number that needs no unit.
    Returns ns, from 0 to `TIME_MAX_NS`; else, or where it is no whole number of them, it is a UnitError,
    which begins with `place`, such as `"--tick"`. "ticks" need `tick_ns`, the length of one in ns.

    >>> parse_duration("2.5ms"), parse_duration("3ticks", tick_ns=10_000_000)
    (2500000, 30000000)
    """
    if place:
        try:
            return parse_duration(text, tick_ns=tick_ns)
        except UnitError as error:
            raise UnitError(f"{place}: {error}") from None
    quantity = parse_quantity(text, tick_ns=tick_ns)
    if quantity.dimension == "number" and quantity.value != 0:
        raise UnitError(f"{_shown(text)} has no unit; write '{text}ms' or '{text}us', say")
    if quantity.dimension == "size":
        raise UnitError(f"{_shown(text)} is a size; a time is needed, such as '5ms'")
    return _whole(text, quantity.value, TIME_MAX_NS, "nanoseconds")


def parse_size(text: object) -> int:
    """Read a number of bytes.

    A number and one of B, kB, MB, GB (powers of ten), KiB, MiB, GiB (powers of two); a bare whole number
    means bytes. From 0 to `TIME_MAX_NS`; else, or where it is no whole number of bytes, it is a UnitError.

    >>> parse_size("64KiB")
    65536
    """
    quantity = parse_quantity(text)
    if quantity.dimension == "time":
        raise UnitError(f"{_shown(text)} is a time; a size is needed, such as '64KiB'")
    return _whole(text, quantity.value, TIME_MAX_NS, "bytes")


def parse_count(text: object, *, minimum: int = 0, maximum: int = TIME_MAX_NS) -> int:
    """Read a whole number without a unit.

    Digits may be grouped with underscores: ``"20_000_000"``. Both ends of the range are included; what is
    outside, or no whole number without a unit, is a UnitError.
    """
    quantity = parse_quantity(text)
    if quantity.dimension != "number" or quantity.value.denominator != 1:
        raise UnitError(f"{_shown(text)} is not a whole number without a unit")
    value = int(quantity.value)
    if not minimum <= value <= maximum:
        raise UnitError(f"must be from {minimum} to {maximum} (got {value})")
    return value


def _shown(text: object) -> str:
    return repr(text) if isinstance(text, str) else str(text)


def _whole(text: object, value: Fraction, maximum: int, what: str) -> int:
    """Check the range, and that nothing is left after the point."""
    if value < 0:
        raise UnitError(f"{_shown(text)} is negative; it must be 0 or more")
    if value.denominator != 1:
        raise UnitError(f"{_shown(text)} is not a whole number of {what}")
    if value > maximum:
        raise UnitError(f"{_shown(text)} is more than {maximum} {what}")
    return int(value)


def format_duration(time_ns: int) -> str:
    """Write a length of time with the largest unit that keeps it exact.

    At most three digits follow the point.

    >>> format_duration(1_500_000), format_duration(1_000_000_007)
    ('1.5ms', '1000000.007us')
    """
    for unit in ("s", "ms", "us"):
        scale = TIME_UNITS[unit]
        if time_ns >= scale and time_ns * 1000 % scale == 0:
            return f"{_trimmed(time_ns, scale)}{unit}"
    return f"{time_ns}ns"


def format_size(size_bytes: int) -> str:
    """Write a number of bytes with the largest binary unit that keeps it whole.

    >>> format_size(65536), format_size(1_024_001)
    ('64KiB', '1024001B')
    """
    for unit in ("GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % SIZE_UNITS[unit] == 0:
            return f"{size_bytes // SIZE_UNITS[unit]}{unit}"
    return f"{size_bytes}B"


def _trimmed(value: int, scale: int) -> str:
    whole, rest = divmod(value, scale)
    if not rest:
        return str(whole)
    return f"{whole}.{rest * 1000 // scale:03d}".rstrip("0")


def counted(count: int, word: str) -> str:
    """Write a count with its noun.

    >>> counted(1, "seed"), counted(1200, "run")
    ('1 seed', '1,200 runs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
