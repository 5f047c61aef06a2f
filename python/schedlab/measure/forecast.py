# SPDX-License-Identifier: MIT
"""What Linux would measure under another policy: an interval around what a replay predicts.

        grade of a metric (fidelity.py) -> how far predictions of that grade were off -> interval

`forecast.json` has by how much real runs of other programs differed from predictions, as shares of the prediction: the
middle CONFIDENCE of them, by metric and grade. `bench/validation_set.py --write` makes it, and says in docs/record.md how
often real runs of a program were inside where the other programs made the intervals.

Invariant: there is no interval where nothing was held against real runs: another number of CPUs, more load.
Read next: whatif.py, which shows them; confirm.py, which measures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..metrics.dictionary import DICTIONARY

FORECAST_FILE = Path(__file__).with_name("forecast.json")
CONFIDENCE = 0.90
#: A prediction below these is off by a share of them: a millisecond, ten switches.
_FLOOR_NS, _FLOOR_COUNT = 1e6, 10.0


def scale_of(metric: str, predicted: float) -> float:
    """What errors of a prediction are shares of."""
    return max(abs(predicted), _FLOOR_NS if DICTIONARY[metric].unit == "ns" else _FLOOR_COUNT)


def middle(shares: Sequence[float]) -> tuple[float, float]:
    """Ends between which one more of these lies with CONFIDENCE.

    >>> middle([n / 100 for n in range(100)])
    (0.04, 0.95)
    """
    ordered, tail = sorted(shares), (1 - CONFIDENCE) / 2
    low = max(math.floor(tail * (len(ordered) + 1)) - 1, 0)
    high = min(math.ceil((1 - tail) * (len(ordered) + 1)) - 1, len(ordered) - 1)
    return ordered[low], ordered[high]


def around(metric: str, predicted: float, ends: Sequence[float]) -> tuple[float, float]:
    """An interval around a prediction."""
    low, high = (max(predicted + end * scale_of(metric, predicted), 0.0) for end in ends)
    return low, high


@cache
def validated() -> dict[str, Any]:
    """What the validation set found; nothing where there is no file."""
    try:
        return dict(json.loads(FORECAST_FILE.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {"ends": {}}


def forecast(metric: str, grade: str, predicted: float) -> dict[str, float] | None:
    """What a real run would have of a metric; None: nothing is known about such predictions."""
    ends = validated()["ends"].get(metric, {}).get(grade)
    if ends is None:
        return None
    low, high = around(metric, predicted, ends)
    return {"predicted": predicted, "low": low, "high": high}
