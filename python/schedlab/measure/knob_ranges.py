# SPDX-License-Identifier: MIT
"""Where a search looks for each knob of a policy: around its default, or where a user says.

Read next: tune.py, which searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError, did_you_mean
from ..policy.build import BuiltPolicy
from ..policy.find import Knob, parse_value, show_value

#: A knob is searched up to so many times its default, and down to as small a part; its declared range ends it before.
RANGE_FACTOR = 100
#: From how large a range on a knob is searched by its magnitude.
LOG_FROM = 20


@dataclass(frozen=True)
class Range:
    """Where a knob is searched, in its own unit; `names` of an enumeration instead."""

    knob: Knob
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For people."""
        if self.names:
            return ", ".join(self.names)
        return f"{show_value(self.knob, self.low)} .. {show_value(self.knob, self.high)}"

    def draw(self, trial: Any) -> int:
        """What a trial of Optuna has for it, to two digits."""
        if self.names:
            return self.knob.names[trial.suggest_categorical(self.knob.name, list(self.names))]
        is_log = self.low > 0 and self.high >= LOG_FROM * self.low
        value = trial.suggest_int(self.knob.name, self.low, self.high, log=is_log)
        return min(max(rounded(value), self.low), self.high)

    def holds(self, value: int) -> bool:
        """Whether a value is in it."""
        return (
            self.low <= value <= self.high
            if not self.names
            else value in map(self.knob.names.get, self.names)
        )

    def stored(self, value: int) -> int | str:
        """A value as Optuna knows it."""
        return next(name for name, its in self.knob.names.items() if its == value) if self.names else value


def rounded(value: int) -> int:
    """Two digits of a number: more are no setting that anybody would keep.

    >>> rounded(4_738_291), rounded(-96), rounded(7)
    (4700000, -96, 7)
    """
    return int(float(f"{value:.1e}"))


def ranges_of(built: BuiltPolicy, fixed: Mapping[str, Any], given: Sequence[str]) -> list[Range]:
    """Where each knob is searched: those that are set are left alone."""
    asked = {}
    for text in given:
        name, _, limits = text.partition("=")
        asked[name.strip()] = limits
    unknown = next((name for name in asked if name not in built.policy.knobs), None)
    if unknown is not None:
        raise UsageError(
            f"--knob {unknown}: {built.policy.name} has no such knob{did_you_mean(unknown, built.policy.knobs)}"
        )
    names = [name for name in built.policy.knobs if (name in asked if asked else name not in fixed)]
    found = [_range(built.policy.knobs[name], built.values[name], asked.get(name, "")) for name in names]
    if not found:
        raise UsageError(f"{built.policy.name}: there is nothing to tune: it has no knobs that are not set")
    return found


def _range(knob: Knob, default: int, limits: str) -> Range:
    """The range of one knob: as asked for, or around its default."""
    if knob.names:
        chosen = [part.strip() for part in limits.split(",") if part.strip()] or list(knob.names)
        for name in chosen:
            parse_value(knob, name)
        return Range(knob, 0, 0, tuple(chosen))
    if limits:
        first, dots, last = limits.partition("..")
        if not dots:
            raise UsageError(f"--knob {knob.name}={limits}: should read {knob.name}=1ms..20ms")
        found = Range(knob, parse_value(knob, first.strip()), parse_value(knob, last.strip()))
        if found.low >= found.high:
            raise UsageError(f"--knob {knob.name}={limits}: the smaller value stands first")
        return found
    low, high = knob.minimum, knob.maximum
    if default > 0:
        low, high = max(low, -(-default // RANGE_FACTOR)), min(high, default * RANGE_FACTOR)
    return Range(knob, low, high)
