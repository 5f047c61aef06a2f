# SPDX-License-Identifier: MIT
"""Reproduce a report: audit its figures, do its runs, decide its claims, write its page.

        OUT/report-N/SET/POLICY/...     the runs (runs.py)
                    /SET/set.json       the set as a whole (finished.py)
                    /claims.json        what `--json` prints
                    /report-N.html      the page

Must stay true: everything on the page and in the JSON is computed from the
published tables and the runs beside it, each time anew.
Read next: spec.py for what is asked, claims.py for the verdicts; reproduction.py, the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schedlab.errors import UsageError
from schedlab.files import make_folder, write_json, write_text

from .audit import AUDIT_FILE, audit_report
from .claims import decide_all, published_value
from .finished import load_finished, save_finished
from .formula import HERE, Measure
from .page import page_text
from .published import Table, read_table
from .reproduction import Reproduction, Wanted
from .runs import do_runs
from .samples import Done, Samples
from .spec import CLAIMS_FILE, Experiment, Runs, fill, read_experiment, read_experiment_file
from .summary import Summary, read_summary


def reproduce_report(
    folder: Path,
    wanted: Wanted,
    *,
    on_set: Callable[[Runs], None] | None = None,
    on_start: Callable[[int], None] | None = None,
    on_result: Callable[[dict[str, Any]], None] | None = None,
    on_done: Callable[[Done], None] | None = None,
) -> Reproduction:
    """Reproduce a report."""
    # What is wrong with a file, or with the folder, is said before hours go into runs.
    experiment, audit = read_experiment(folder), audit_report(folder)
    tables = published_tables(folder)
    check_published(experiment, tables)
    summary = read_summary(folder, experiment.runs, tables)
    hosts = {runs.host for runs in experiment.runs.values()}
    if wanted.hosts and not (hosts | {*experiment.runs}) & set(wanted.hosts):
        raise UsageError(
            f"--host {','.join(wanted.hosts)}: report {experiment.report} runs on "
            f"{', '.join(sorted(hosts))}; its sets of runs are {', '.join(experiment.runs)}"
        )
    out = wanted.out / f"report-{experiment.report}"
    make_folder(out, out=wanted.out)
    needed = needed_pairs(experiment, summary)
    sizes, done, left_out, earlier = wanted.sizes(experiment), {}, {}, {}
    for name, runs in experiment.runs.items():
        if name not in sizes:
            if found := load_finished(runs, out):
                done[name], sizes[name], earlier[name] = found
                continue
            is_other = wanted.hosts and runs.host not in wanted.hosts
            left_out[name] = "not among the hosts that were asked for" if is_other else "part of --full"
            continue
        if on_set:
            on_set(runs)
        done[name] = do_runs(
            runs, sizes[name], out, needed=needed[name], on_start=on_start, on_result=on_result
        )
        save_finished(done[name], sizes[name], out, today=datetime.now(UTC).date())
        if on_done:
            on_done(done[name])
    samples = Samples(done)
    made = Reproduction(
        experiment=experiment,
        audit=audit,
        tables=tables,
        samples=samples,
        sizes=sizes,
        left_out=left_out,
        decisions=decide_all(experiment.claims, tables, samples),
        wanted=wanted,
        folder=out,
        earlier=earlier,
    )
    _write(made)
    return made


def check_published(experiment: Experiment, tables: Mapping[str, Table]) -> None:
    """See that each claim's published figure is one."""
    claims = read_experiment_file(experiment.folder / CLAIMS_FILE)
    for number, claim in enumerate(experiment.claims, 1):
        try:
            published_value(claim, tables)
        except (ValueError, ArithmeticError) as error:
            at = ("claim", number - 1, "published")
            claims.fault(at, f"[[claim]] {number} ({claim.name})", f"published: {error}")
    claims.check()


def needed_pairs(experiment: Experiment, summary: Summary | None = None) -> dict[str, set[tuple[str, str]]]:
    """Find which workloads are asked for under which policies."""
    needed: dict[str, set[tuple[str, str]]] = {name: set() for name in experiment.runs}

    def add(measure: Measure | None, on: Sequence[str]) -> None:
        for name, (workload, policy, *_) in measure.cells if measure else ():
            for each in on if name == HERE else (name,):
                needed[each].add((workload, policy))

    for claim in experiment.claims:
        add(claim.ours, claim.on)
        add(claim.resolution if isinstance(claim.resolution, Measure) else None, claim.on)
    for measure, on in summary.measures if summary else ():
        add(measure, on)
    for redrawn in experiment.redrawn:
        for row in redrawn.rows:
            for column in redrawn.columns:
                add(Measure(fill(redrawn.ours, row, column), sets=tuple(experiment.runs)), redrawn.on)
    return needed


def published_tables(folder: Path) -> dict[str, Table]:
    """Read a report's own tables."""
    spec = read_experiment_file(folder / AUDIT_FILE).values
    tables = [read_table(folder / "published", entry) for entry in spec.get("table", [])]
    return {table.name: table for table in tables}


def claims_json(made: Sequence[Reproduction]) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {"claims": [entry for each in made for entry in each.as_json()]}


def _write(made: Reproduction) -> None:
    """Page and JSON."""
    try:
        write_json(made.folder / "claims.json", claims_json([made]))
        write_text(made.page, page_text(made))
    except OSError as error:
        raise UsageError(f"--out {made.wanted.out}: cannot be written: {error.strerror}") from error
