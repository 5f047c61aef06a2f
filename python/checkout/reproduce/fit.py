# SPDX-License-Identifier: MIT
"""How near each set of runs comes to the numbers that a report published.

A report that does not give all sizes of its work leaves several machines and workloads that
it may have used. One of them decides its claims, the primary set, which `experiment.toml` names
before anything is run; the others say how much the results depend on it. The distance of a set
is the median over the cells of the report's tables of |ln(ours / published)|, in absolute
numbers and not in the ratios that the claims are about, so that a set cannot be chosen for
the results that it gives. As a factor: half of the cells are nearer than that.

Invariant: all sets of a fit are measured on the same cells.
Read next: spec.py, `primary`; claims.py, which decides on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median

from .claims import measure_on
from .formula import Measure, MissingError
from .published import Formula, Table
from .samples import Samples
from .spec import Experiment, Redrawn, fill


@dataclass(frozen=True)
class Fit:
    """Distance of a set of runs from the published numbers."""

    on: str  #: The set of runs.
    factor: float  #: exp of the median |ln(ours / published)|: 1 is equal, 2 is twice or half. No unit.
    n_cells: int  #: Cells that it is the median of.
    by_table: Mapping[str, float]  #: The same over the cells of each table alone, by the table's title.


def fit(experiment: Experiment, tables: Mapping[str, Table], samples: Samples) -> list[Fit]:
    """Measure how near each candidate comes to the published tables.

    A cell counts if it is above 0 in the report and in the mean over the seeds of every
    candidate. The deviation of seeds is small beside these distances and does not enter.
    """
    names = [
        name for name in experiment.candidates if name in samples.done and not samples.done[name].problem
    ]
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for redrawn in experiment.redrawn:
        if redrawn.kind == "table" and redrawn.published and {*names} <= {*redrawn.on}:
            for row in redrawn.rows:
                for column in redrawn.columns:
                    cells[redrawn.title, row, column] = _distances(
                        experiment, redrawn, row, column, tables, samples, names
                    )
    common = {place: found for place, found in cells.items() if len(found) == len(names)}
    if not names or not common:
        return []
    titles = dict.fromkeys(title for title, _, _ in common)
    return sorted(
        (
            Fit(
                name,
                math.exp(median(found[name] for found in common.values())),
                len(common),
                {
                    title: math.exp(
                        median(found[name] for place, found in common.items() if place[0] == title)
                    )
                    for title in titles
                },
            )
            for name in names
        ),
        key=lambda each: each.factor,
    )


def _distances(
    experiment: Experiment,
    redrawn: Redrawn,
    row: str,
    column: str,
    tables: Mapping[str, Table],
    samples: Samples,
    names: list[str],
) -> dict[str, float]:
    """|ln(ours / published)| of a cell, by set; without those that have no number above 0."""
    try:
        published = Formula(fill(redrawn.published, row, column)).value(tables).middle
    except ValueError:  # the report does not print this cell
        return {}
    measure = Measure(fill(redrawn.ours, row, column), sets=tuple(experiment.runs))
    found = {}
    for name in names:
        try:
            ours = fmean(measure_on(measure, name, samples).values)
        except MissingError:
            continue
        if ours > 0 and published > 0:
            found[name] = abs(math.log(ours / published))
    return found
