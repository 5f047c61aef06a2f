# SPDX-License-Identifier: MIT
"""Distributions as a workload file writes them, without drawing from them yet.

A value that may vary is written as a string, ``"exp(20ms)"``, or as a table,
``{dist = "normal", mean = "5ms", sd = "1ms", max = "9ms"}``. Both mean the same
and may carry `min` and `max`: a number outside is drawn again.

Must stay true: no NumPy here; the command line reads workloads without it.
Read next: program/draws.py, which turns raw integers into values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import UnitError, did_you_mean
from ..units import TIME_MAX_NS, parse_quantity

#: Parameters of each distribution, in the order of the string form. `value`
#: stands for the thing drawn (a time, a size, a count), `shape` for a bare number.
PARAMETERS: dict[str, tuple[tuple[str, str], ...]] = {
    "constant": (("value", "value"),),
    "uniform": (("low", "value"), ("high", "value")),
    "exp": (("mean", "value"),),
    "normal": (("mean", "value"), ("sd", "value")),
    "lognormal": (("median", "value"), ("sigma", "shape")),
    "pareto": (("scale", "value"), ("alpha", "shape")),
    "choice": (),
}
BOUNDS = ("min", "max")
CHOICES_MAX = 4096

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True)
class Distribution:
    """Something to draw whole numbers from."""

    kind: str  #: A key of `PARAMETERS`.
    values: tuple[int, ...]  #: Parameters in ns, bytes or counts; the elements of a `choice`.
    shape: Fraction = Fraction(0)  #: Sigma of `lognormal`, alpha of `pareto`; 0 for the others.
    #: `low`, `high`: Bounds, both included; what falls outside is drawn again.
    low: int = 0
    high: int = TIME_MAX_NS

    @property
    def constant(self) -> int | None:
        """The only value that can come out, or None where there are several."""
        if self.kind == "constant":
            return self.values[0]
        if len(set(self.values)) == 1 and self.kind in ("uniform", "choice"):
            return self.values[0]
        return None

    def __str__(self) -> str:
        """Return the distribution in the string form, bare numbers in base units."""
        inside = [str(value) for value in self.values]
        if self.kind in ("lognormal", "pareto"):
            inside.append(str(float(self.shape)))
        return f"{self.kind}({', '.join(inside)})"


def looks_like_distribution(value: object) -> bool:
    """Tell a distribution from a plain value, before reading either."""
    if isinstance(value, dict):
        return "dist" in value
    return isinstance(value, str) and _CALL.fullmatch(value) is not None


def parse_distribution(value: object, *, read: Callable[[object], int], minimum: int = 0) -> Distribution:
    """Read a distribution in either form.

    >>> from schedlab.units import parse_duration
    >>> parse_distribution("exp(20ms)", read=parse_duration).values
    (20000000,)
    """
    kind, given = _table_form(value) if isinstance(value, dict) else _string_form(value)
    if kind == "choice":
        elements = given.pop("values", [])
        if not isinstance(elements, list) or not 1 <= len(elements) <= CHOICES_MAX:
            raise UnitError(f"choice needs 1 to {CHOICES_MAX} values to choose from")
        values, shape = tuple(read(element) for element in elements), Fraction(0)
    else:
        values, shape = _parameters(kind, given, read)
    low = read(given.pop("min")) if "min" in given else minimum
    high = read(given.pop("max")) if "max" in given else TIME_MAX_NS
    for name in given:
        known = [*(name for name, _ in PARAMETERS[kind]), *BOUNDS]
        raise UnitError(f"{kind} has no parameter {name!r}{did_you_mean(name, known)}")
    distribution = Distribution(kind, values, shape, max(low, minimum), high)
    _check(distribution)
    return distribution


def _parameters(
    kind: str, given: dict[str, object], read: Callable[[object], int]
) -> tuple[tuple[int, ...], Fraction]:
    """Take the parameters of `kind` out of `given`."""
    values: list[int] = []
    shape = Fraction(0)
    for name, role in PARAMETERS[kind]:
        if name not in given:
            order = ", ".join(name for name, _ in PARAMETERS[kind])
            raise UnitError(f"{kind} needs {name!r}: write {kind}({order})")
        text = given.pop(name)
        if role == "value":
            values.append(read(text))
            continue
        quantity = parse_quantity(text)
        if quantity.dimension != "number" or not 0 < quantity.value <= 1000:
            raise UnitError(f"{name} of {kind} must be a number above 0, up to 1000 (got {text})")
        shape = quantity.value
    return tuple(values), shape


def _check(distribution: Distribution) -> None:
    """Refuse parameters that contradict each other."""
    kind, values = distribution.kind, distribution.values
    low, high = distribution.low, distribution.high
    if low > high:
        raise UnitError(f"{kind}: min ({low}) is above max ({high})")
    if kind == "uniform" and values[0] > values[1]:
        raise UnitError(f"uniform: low ({values[0]}) is above high ({values[1]})")
    if kind in ("exp", "lognormal", "pareto") and values[0] == 0:
        name = PARAMETERS[kind][0][0]
        raise UnitError(f"{kind}: {name} must be above 0")
    if kind in ("constant", "uniform", "choice"):
        span = min(values), max(values)
        if span[0] < low or span[1] > high:
            raise UnitError(f"{kind}: values from {span[0]} to {span[1]} leave the range {low} to {high}")
    elif kind == "pareto" and values[0] > high:
        raise UnitError(f"pareto: scale ({values[0]}) is above max ({high})")
    elif kind == "normal" and not low <= values[0] <= high:
        raise UnitError(f"normal: mean ({values[0]}) is outside the range {low} to {high}")


def _known_kind(kind: object) -> str:
    if not isinstance(kind, str) or kind not in PARAMETERS:
        raise UnitError(f"unknown distribution {kind!r}{did_you_mean(str(kind), PARAMETERS)}")
    return kind


def _table_form(table: dict[str, Any]) -> tuple[str, dict[str, object]]:
    given = dict(table)
    return _known_kind(given.pop("dist", None)), given


def _string_form(text: object) -> tuple[str, dict[str, object]]:
    match = _CALL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UnitError(f"{text!r} is not a distribution, such as 'exp(20ms)'")
    kind = _known_kind(match[1])
    names = [name for name, _ in PARAMETERS[kind]]
    given: dict[str, object] = {}
    elements: list[object] = []
    for position, part in enumerate(match[2].split(",") if match[2].strip() else []):
        name, equals, value = part.partition("=")
        if not equals:
            if kind == "choice":
                elements.append(part.strip())
                continue
            if position >= len(names):
                raise UnitError(f"{kind} takes {len(names)} values: {kind}({', '.join(names)})")
            name, value = names[position], part
        if name.strip() in given:
            raise UnitError(f"{kind}: {name.strip()!r} is given twice")
        given[name.strip()] = value.strip()
    if kind == "choice":
        given["values"] = elements
    return kind, given
