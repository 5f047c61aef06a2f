# SPDX-License-Identifier: MIT
"""A broken law: when it was first seen, and the sentence that says so.

Read next: consistency.py and course.py, which find them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Violation:
    """A broken law: when it was first seen, and the sentence that says so."""

    t_ns: int
    text: str


def at(t_ns: int) -> str:
    """Time as it is written in every message."""
    return f"at {int(t_ns)} ns"


def first_of(t_ns: np.ndarray, bad: np.ndarray, describe: Callable[[int], str]) -> Violation | None:
    """Violation at the earliest time among the bad positions, or None."""
    positions = np.flatnonzero(bad)
    if len(positions) == 0:
        return None
    position = int(positions[t_ns[positions].argmin()])
    return Violation(int(t_ns[position]), describe(position))


def earliest(found: list[Violation | None]) -> Violation | None:
    """The first in time of those that were found, or None."""
    return min(filter(None, found), key=lambda violation: violation.t_ns, default=None)
