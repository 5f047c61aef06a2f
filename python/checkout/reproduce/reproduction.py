# SPDX-License-Identifier: MIT
"""A report, reproduced: what was asked for, and all that came of it.

Must stay true: everything on the page and in the JSON is computed from what is
held here, the published tables and the runs beside it.
Read next: steps.py, which makes one; page.py, text.py and replication.py, which read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .audit import Audit
from .claims import Decision
from .published import Table
from .samples import Samples
from .spec import Experiment, Size


@dataclass(frozen=True)
class Wanted:
    """How a report is to be reproduced."""

    out: Path  #: Folder for all reports.
    #: Only these, or single sets of runs by name; default: all that the experiment does not leave out.
    hosts: tuple[str, ...] = ()
    is_quick: bool = True  #: The quick size of each set, or the full one.
    scale: float | None = None  #: In place of each set's own.

    def sizes(self, experiment: Experiment) -> dict[str, Size]:
        """Decide how much of each set is run."""
        sizes = {name: runs.size(is_quick=self.is_quick) for name, runs in experiment.runs.items()}
        quick_hosts = {experiment.runs[name].host for name, size in sizes.items() if not size.skip}
        chosen = {}
        for name, size in sizes.items():
            host = experiment.runs[name].host
            is_meant = name in self.hosts or (
                host in self.hosts and (not size.skip or host not in quick_hosts)
            )
            if is_meant if self.hosts else not size.skip:
                chosen[name] = size if self.scale is None else replace(size, scale=self.scale)
        return chosen


@dataclass(frozen=True)
class Reproduction:
    """A report, reproduced."""

    experiment: Experiment  #: What was asked.
    audit: Audit  #: What of its figures follows from its own rows.
    tables: dict[str, Table]  #: Its tables.
    samples: Samples  #: What was run.
    sizes: dict[str, Size]  #: How much of each set was.
    left_out: dict[str, str]  #: Sets that were not, and why.
    decisions: list[Decision]  #: Every claim on every set.
    wanted: Wanted  #: How it was asked for.
    folder: Path  #: Of this report.
    #: Sets whose runs were on disk, and not asked for now: the day of each.
    earlier: dict[str, str] = field(default_factory=dict)

    @property
    def page(self) -> Path:
        """Where the page is."""
        return self.folder / f"report-{self.experiment.report}.html"

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Runs that failed."""
        return [
            run
            for done in self.samples.done.values()
            for runs in done.found.values()
            for run in runs
            if run["status"] != "ok"
        ]

    @property
    def chosen(self) -> list[Decision]:
        """One decision per claim: on the set that decides it, or on its first that was run.

        A claim without any run is left out; one that lacks something is in it.
        """
        found = []
        for claim in self.experiment.claims:
            mine = [each for each in self.decisions if each.claim is claim]
            if mine:
                found.append(
                    next((each for each in mine if each.on == self.experiment.decided_on(claim)), mine[0])
                )
        return found

    @property
    def others(self) -> list[Decision]:
        """Decisions on further sets: how sensitive a result is to what was assumed; no votes."""
        chosen = {(each.claim.name, each.on) for each in self.chosen}
        return [each for each in self.decisions if (each.claim.name, each.on) not in chosen]

    def as_json(self) -> list[dict[str, Any]]:
        """The claims of this report, as `--json` lists them."""
        return [decision.as_json(self.experiment.report) for decision in self.decisions]
