# SPDX-License-Identifier: MIT
"""The five reports with numbers that nobody measured, so that pages cost no runs."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from checkout.reproduce.audit import audit_report
from checkout.reproduce.claims import decide_all
from checkout.reproduce.formula import Cell
from checkout.reproduce.reproduction import Reproduction, Wanted
from checkout.reproduce.samples import Done, Samples
from checkout.reproduce.spec import read_experiment
from checkout.reproduce.steps import published_tables

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SEEDS = (1, 2, 3)


class Pretended(Samples):
    """Answers every cell with numbers that its name gives, one of which is 0 now and then."""

    def __init__(self, done, folder: Path):
        super().__init__(done)
        self._folder = folder

    def look_up(self, name, keys):
        base = 1 + zlib.crc32("/".join((name, *keys)).encode()) % 1000
        directories = {seed: str(self._folder / name / keys[0] / keys[1] / f"seed-{seed}") for seed in SEEDS}
        return Cell({seed: base * (1 + seed / 50) for seed in SEEDS}, directories)

    def all_values(self, name, workload, policy, column, pattern):
        return np.linspace(1e6, 1e9, 50)


def pretend(number: int, out: Path) -> Reproduction:
    """A report as if all of its sets had been run."""
    folder = EXPERIMENTS / f"report-{number}"
    experiment = read_experiment(folder)
    tables = published_tables(folder)
    samples = Pretended(
        {name: Done(runs) for name, runs in experiment.runs.items()}, out / f"report-{number}"
    )
    return Reproduction(
        experiment=experiment,
        audit=audit_report(folder),
        tables=tables,
        samples=samples,
        sizes={name: runs.full for name, runs in experiment.runs.items()},
        left_out={},
        decisions=decide_all(experiment.claims, tables, samples),
        wanted=Wanted(out=out, is_quick=False),
        folder=out / f"report-{number}",
    )
