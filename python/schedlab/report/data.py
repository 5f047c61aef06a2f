# SPDX-License-Identifier: MIT
"""What a report says, gathered from the run folders, before anything is drawn.

A report has one section per question: workload, host and number of CPUs. The
numbers of its tables are those of `runs.json`; distributions and shares come
from the tables and records beside it.

Must stay true: nothing is computed here that metrics/dictionary.py defines; a run whose
files are missing is named in the notes, not skipped in silence.
Read next: plots/charts.py, pieces.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SchedlabError, UsageError
from ..metrics.dictionary import DICTIONARY, HEADLINES
from ..metrics.timeline import Timeline
from ..records.file import Kind, read_records
from ..runs.compare import compare_runs
from ..runs.folders import read_run_folder, task_names
from ..runs.run import folder_name
from ..stats.inference import Interval, mean_intervals
from ..stats.sentences import label, show_number
from .by_task import read_recorded
from .failed import failed_charts, first_failed
from .over_time import PAGE_SLICES_MAX, SLICES_MAX, chart_of, fairness_so_far, weights_of

#: Points of a distribution curve; more would not be seen.
CURVE_POINTS = 160
#: Records read for distributions, over all runs of a section; and events of a run
#: up to which fairness is followed in fine steps.
RECORDS_MAX = 20_000_000
FAIRNESS_STEPS, FAIRNESS_EVENTS_MAX = 48, 300_000


@dataclass
class Section:
    """The runs that answer one question."""

    #: `workload`, `host`: What ran, and where.
    workload: str
    host: str
    cpus: int  #: Number of CPUs.
    runs: list[dict[str, Any]]  #: As `schedlab run --json` lists them, failed ones included.
    comparisons: list[dict[str, Any]]  #: Of each policy with the baseline; see `runs.compare.compare_runs`.
    base: Path  #: The folder that was asked for.
    notes: list[str] = field(default_factory=list)  #: What could not be shown, and why.

    @property
    def policies(self) -> list[str]:
        """Names in the order of the runs."""
        return list(dict.fromkeys(run["policy"] for run in self.runs))

    @cached_property
    def good(self) -> dict[str, list[dict[str, Any]]]:
        """Good runs by policy; a policy without any is left out."""
        found: dict[str, list[dict[str, Any]]] = {}
        for run in self.runs:
            if run["status"] == "ok":
                found.setdefault(run["policy"], []).append(dict(run))
        return found

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Failed runs."""
        return [run for run in self.runs if run["status"] != "ok"]

    @property
    def seeds(self) -> list[int]:
        """Seeds of all runs, ascending."""
        return sorted({run["seed"] for run in self.runs})

    @cached_property
    def shown_seed(self) -> int | None:
        """The first seed with which most policies have a good run: the one drawn in time."""
        counts = {seed: 0 for seed in self.seeds}
        for runs in self.good.values():
            for run in runs:
                counts[run["seed"]] += 1
        best = max(counts, key=lambda seed: (counts[seed], -seed), default=None)
        return best if best is not None and counts[best] else None

    @cached_property
    def metrics(self) -> list[str]:
        """Key metrics that some run has, in the order of the table."""
        has = {
            name
            for runs in self.good.values()
            for run in runs
            for name, value in run["metrics"].items()
            if value is not None
        }
        moved = any(run["metrics"].get("migrations") for r in self.good.values() for run in r)
        return [name for name in HEADLINES if name in has and (name != "migrations" or moved)]

    @cached_property
    def intervals(self) -> dict[str, dict[str, Interval]]:
        """Mean with interval: policy, then run-level metric."""
        found: dict[str, dict[str, Interval]] = {}
        names = [name for name, m in DICTIONARY.items() if m.level == "run"]
        for policy, runs in self.good.items():
            # Metrics that all runs have share one call, which draws once for all.
            rows: dict[int, dict[str, list[float]]] = {}
            for name in names:
                values = [v for run in runs if (v := run["metrics"].get(name)) is not None]
                if values:
                    rows.setdefault(len(values), {})[name] = values
            found[policy] = {}
            for group in rows.values():
                made = mean_intervals(list(group.values()), minimum=0)
                found[policy] |= dict(zip(group, made, strict=True))
        return found

    @cached_property
    def recorded(self) -> dict[str, Any] | None:
        """What was recorded, where these are replays; see `by_task.read_recorded`."""
        inside = Path(folder_name(self.workload))
        return next((run for place in self._places() if (run := read_recorded(place / inside))), None)

    def _places(self) -> list[Path]:
        """Where the folder of the whole set may be, when a part of it was asked for."""
        return [self.base, *list(self.base.resolve().parents)[:4]]

    def folder(self, run: dict[str, Any]) -> Path | None:
        """Folder of a run, also when the whole has been moved; None if it is gone."""
        inside = Path(folder_name(run["workload"])) / folder_name(run["policy"])
        inside = inside / f"seed-{run['seed']}"
        for place in [*(p / inside for p in self._places()), Path(run.get("directory") or ".")]:
            if (place / "run.json").is_file():
                return place
        return None

    def at_shown_seed(self) -> dict[str, dict[str, Any]]:
        """The run of each policy with the seed that is drawn in time."""
        return {
            policy: run
            for policy, runs in self.good.items()
            for run in runs
            if run["seed"] == self.shown_seed
        }


def read_sections(folder: Path, *, baseline: str | None = None) -> list[Section]:
    """Read all runs of a folder."""
    runs = read_run_folder(folder)
    policies = list(dict.fromkeys(run["policy"] for run in runs))
    if baseline is not None and baseline not in policies:
        raise UsageError(f"--baseline {baseline}: not in {folder}, which has {', '.join(policies)}")
    known = None if baseline else _stored_comparisons(folder)
    groups: dict[tuple[str, str, int], list[Any]] = {}
    for run in runs:
        groups.setdefault((run["workload"], run["host"], run["cpus"]), []).append(dict(run))
    base = folder if folder.is_dir() else folder.parent
    return [
        Section(
            *key,
            runs=group,
            base=base,
            comparisons=compare_runs(group, baseline=baseline)
            if known is None
            else [c for c in known if (c["workload"], c["host"], c["cpus"]) == key],
        )
        for key, group in groups.items()
    ]


def _stored_comparisons(folder: Path) -> list[dict[str, Any]] | None:
    """Comparisons of `runs.json`; None where there are none that can be used."""
    path = folder / "runs.json" if folder.is_dir() else folder
    if path.name != "runs.json" or not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8")).get("comparisons")
    # An older version's lack what the sentences need; they are computed again.
    if not isinstance(found, list) or any("n_explored" not in c for c in found):
        return None
    return found


def sample_rows(section: Section, metric: str) -> list[dict[str, Any]]:
    """One row per good run that has the metric: `policy`, `seed`, `value`."""
    return [
        {"policy": policy, "seed": run["seed"], "value": run["metrics"][metric]}
        for policy, runs in section.good.items()
        for run in runs
        if run["metrics"].get(metric) is not None
    ]


def heat_rows(section: Section) -> list[dict[str, Any]]:
    """One row per policy and key metric with a direction; see `plots.charts.heatmap`."""
    rows = []
    for name in section.metrics:
        direction = DICTIONARY[name].direction
        means = {p: found[name].estimate for p, found in section.intervals.items() if name in found}
        if direction == "none" or not means:
            continue
        best = (min if direction == "lower" else max)(means.values())
        for policy, mean in means.items():
            above, below = (mean, best) if direction == "lower" else (best, mean)
            worse = 1.0 if above == below else above / below if below > 0 else 1e9
            rows.append({"policy": policy, "metric": label(name), "worse": min(worse, 1e9),
                         "text": show_number(name, mean)})  # fmt: skip
    return rows


def curve(values: np.ndarray) -> list[tuple[float, float]]:
    """Points of an empirical distribution function."""
    ordered = np.sort(values)
    n = len(ordered)
    if n == 0:
        return []
    ranks = np.unique(np.linspace(0, n - 1, min(n, CURVE_POINTS)).round().astype(np.int64))
    # Equal values count as one step: the part at most v includes all of them.
    part = np.searchsorted(ordered, ordered[ranks], side="right") / n
    points = dict(zip(ordered[ranks].tolist(), part.tolist(), strict=True))
    return list(points.items())


def response_rows(section: Section) -> list[dict[str, Any]]:
    """Distribution of response over all tasks and seeds; see `plots.charts.distribution`."""
    return _curves(section, lambda folder: _column(folder, "response_ns"))


def wakeup_rows(section: Section) -> list[dict[str, Any]]:
    """Distribution of wake-up latency over all wake-ups and seeds."""
    if not any((run["metrics"].get("wakeups") or 0) for r in section.good.values() for run in r):
        return []
    budget = [RECORDS_MAX]

    def latencies(folder: Path) -> np.ndarray:
        if budget[0] <= 0:
            note = "The wake-up curves leave out later seeds: there are too many records."
            if note not in section.notes:
                section.notes.append(note)
            return np.zeros(0, np.int64)
        records = read_records(folder / "records.slr")
        budget[0] -= len(records.events)
        timeline = Timeline(records)
        tasks = timeline.by_task
        woken = (tasks.kind == Kind.WAKE) & ~timeline.arrived_awake & tasks.has_next
        woken[:-1] &= tasks.kind[1:] == Kind.RUN
        return timeline.duration_ns[woken]

    return _curves(section, latencies)


def _column(folder: Path, name: str) -> np.ndarray:
    """A column of a run's table of tasks, without what did not come to pass."""
    import polars as pl

    return pl.read_parquet(folder / "tasks.parquet", columns=[name])[name].drop_nulls().to_numpy()


def _curves(section: Section, values_of: Callable[[Path], np.ndarray]) -> list[dict[str, Any]]:
    """Curves of all policies, from what a function reads from a run's folder."""
    rows = []
    for policy, runs in section.good.items():
        found = []
        for run in runs:
            folder = section.folder(run)
            try:
                if folder is not None:
                    found.append(values_of(folder))
            except (OSError, SchedlabError) as error:
                section.notes.append(f"{policy}, seed {run['seed']}: {error}")
        points = curve(np.concatenate(found)) if found else []
        rows += [{"policy": policy, "value": value, "part": part} for value, part in points]
    return rows


def share_rows(section: Section) -> list[dict[str, Any]]:
    """CPU time deserved and received by tasks of a name."""
    import polars as pl

    rows = []
    for policy, runs in section.good.items():
        tables = []
        for run in runs:
            folder = section.folder(run)
            if folder is None or not (folder / "tasks.parquet").is_file():
                continue
            table = pl.read_parquet(folder / "tasks.parquet", columns=["name", "deserved_ns", "run_ns"])
            total = max(1, int(table["run_ns"].sum()))
            tables.append(table.with_columns(pl.col("deserved_ns", "run_ns") / total))
        if not tables:
            continue
        grouped = pl.concat(tables).group_by("name", maintain_order=True).mean()
        rows += [
            {"policy": policy, "task": str(name), "deserved": deserved, "received": received}
            for name, deserved, received in grouped.iter_rows()
        ]
    return rows


def time_charts(section: Section) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the shown seed's runs did in time; and, of each policy, the first that failed."""
    chosen = section.at_shown_seed()
    n_max = min(SLICES_MAX, PAGE_SLICES_MAX // max(1, len(chosen)))
    rows, charts = [], []
    for policy, run in chosen.items():
        folder = section.folder(run)
        try:
            if folder is None:
                raise FileNotFoundError("its folder is gone; run again to see it in time")
            timeline = Timeline(read_records(folder / "records.slr"))
            charts.append(
                {"policy": policy, "seed": run["seed"]} | chart_of(timeline, task_names(folder), n_max=n_max)
            )
            is_long = len(timeline.records.events) > FAIRNESS_EVENTS_MAX
            points = fairness_so_far(
                timeline,
                weight=weights_of(folder, run),
                n_steps=FAIRNESS_STEPS // 4 if is_long else FAIRNESS_STEPS,
            )
        except (OSError, SchedlabError) as error:
            section.notes.append(f"{policy}, seed {run['seed']}: {error}")
            continue
        rows += [{"policy": policy, "t_ns": t_ns, "fairness": index} for t_ns, index in points]
    failed = [(section.folder(run), run) for run in first_failed(section.failed)]
    return rows, [*charts, *failed_charts(failed)]
