# SPDX-License-Identifier: MIT
"""The cells of a sweep: each one combination of settings, CPUs and seed, and what came of it.

Cells that differ in their seed alone are prepared together, and the runs of all cells
share this machine's workers, or an executor.

Must stay true: a cell that fails is an answer, and takes no other with it.
Read next: run.py, which prepares; workers.py and remote.py, which do the runs.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SchedlabError
from ..model import Execution, Machine

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True)
class Cell:
    """All that one call of `run_plan` needs, as plain data that can be pickled."""

    number: int
    workloads: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, int]  # the first, and how many
    settings: tuple[tuple[str, str], ...] = ()
    swept: tuple[tuple[str, str], ...] = ()
    cpus: int | None = None
    out: str | None = None
    machine: Machine = field(default_factory=Machine)
    execution: Execution = field(default_factory=Execution)
    baseline: str | None = None

    @property
    def label(self) -> str:
        """The combination of settings as text; empty if nothing is swept."""
        return " ".join(f"{name}={value}" for name, value in self.swept)


@dataclass(frozen=True)
class Done:
    """What a cell gives back; it can be pickled."""

    cell: Cell
    runs: list[dict[str, Any]]
    tasks: Any  # polars.DataFrame or None, or (run, columns) of each good run
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    error_kind: str | None = None
    seconds: float | None = None


def _plan(cell: Cell, out: str | Path, *, is_kept: bool = False) -> Any:
    """What `run_plan` is asked to do for a cell; `is_kept`: even where it names no folder."""
    from .run import Plan

    return Plan(
        workloads=cell.workloads,
        policies=cell.policies,
        out=Path(cell.out or out),
        machine=replace(cell.machine, cpus=cell.cpus),
        execution=cell.execution,
        baseline=cell.baseline,
        first_seed=cell.seeds[0],
        n_seeds=cell.seeds[1],
        settings=[f"{name}={value}" for name, value in cell.settings],
        is_kept=is_kept or cell.out is not None,
    )


def do_cell(cell: Cell, executor: Executor | str | None = None) -> Done:
    """Run a cell alone."""
    from .remote import open_executor
    from .run import run_plan

    started = time.monotonic()
    tasks: dict[str, dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-") as scratch,
        open_executor(executor, host=cell.execution.host) as workers,
    ):
        # Files that an executor sends back are read from their folders.
        plan = _plan(cell, scratch, is_kept=workers is not None)
        result = run_plan(
            plan, executor=workers, on_tasks=lambda run, columns: tasks.update({run["directory"]: columns})
        )
        if result.is_interrupted:
            raise KeyboardInterrupt
        done = _computed(cell, result.runs, tasks) if workers is None else _read(cell, result.runs)
    return replace(done, comparisons=result.comparisons, seconds=time.monotonic() - started)


def _computed(cell: Cell, runs: list[dict[str, Any]], tasks: Mapping[str, dict[str, Any]]) -> Done:
    """The answer of runs that were done here; `tasks` by folder."""
    found = [(run, tasks[run["directory"]]) for run in runs if run["directory"] in tasks]
    if cell.out is None:
        for run in runs:
            run["directory"] = None
    return Done(cell, runs, found)


def _read(cell: Cell, runs: list[dict[str, Any]]) -> Done:
    """Read the tables that runs left; where nothing is kept, their folders are forgotten."""
    import polars as pl

    tables = []
    for run in runs:
        file = Path(run["directory"]) / "tasks.parquet"
        if file.is_file():
            keys = [pl.lit(run[name]).alias(name) for name in ("workload", "policy", "host")]
            keys += [pl.lit(run[name], pl.Int64).alias(name) for name in ("cpus", "seed")]
            table = pl.read_parquet(file)
            tables.append(table.select(*keys, *table.columns))
    if cell.out is None:
        for run in runs:
            run["directory"] = None
    return Done(cell, runs, pl.concat(tables, how="vertical_relaxed") if tables else None)


def _failed(cell: Cell, error: SchedlabError) -> Done:
    """The answer of a cell that could not begin."""
    return Done(cell, [], None, error=str(error), error_kind=type(error).__name__)


class _Lists:
    """The list of a folder's runs: written when all cells whose runs go there are done."""

    def __init__(self, cells: list[Cell]):
        self._n_left = Counter(cell.out for cell in cells)
        self._found: dict[str, dict[int, tuple[Any, list[dict[str, Any]]]]] = defaultdict(dict)

    def add(self, cell: Cell, prepared: Any = None, runs: Sequence[dict[str, Any]] = ()) -> None:
        """A cell is done; `prepared` is None where it could not begin."""
        if cell.out is None:
            return
        self._n_left[cell.out] -= 1
        if prepared is not None:
            self._found[cell.out][cell.number] = prepared, list(runs)
        if not self._n_left[cell.out]:
            self._write(cell.out)

    def write_rest(self) -> None:
        """After Ctrl-C: what is there."""
        for out in list(self._found):
            self._write(out, is_interrupted=True)

    def _write(self, out: str, *, is_interrupted: bool = False) -> None:
        from .run import finish

        found = self._found.pop(out, {})
        if found:
            in_order = [found[number] for number in sorted(found)]
            # As `run` lists them: by workload, policy, and seed.
            runs = [
                run for same in itertools.zip_longest(*(runs for _, runs in in_order)) for run in same if run
            ]
            finish(in_order[0][0], runs, is_interrupted=is_interrupted)


def do_cells(cells: list[Cell], executor: Executor | str | None) -> list[Done]:
    """Run all cells of a sweep."""
    from .remote import open_executor

    if executor is None:
        return _do_here(cells)
    with open_executor(executor, host=cells[0].execution.host) as workers:
        return _do_far(cells, workers)


def _do_here(cells: list[Cell]) -> list[Done]:
    """Do all cells with the CPUs of this machine, several at a time."""
    from .run import in_order
    from .workers import do_runs, n_workers_of

    done: dict[int, Done] = {}
    under_way: dict[int, tuple[Any, ...]] = {}
    lists = _Lists(cells)

    def work() -> Iterator[tuple[Any, ...]]:
        for cell, prepared in _prepare_all(cells, scratch):
            if isinstance(prepared, SchedlabError):
                done[cell.number] = _failed(cell, prepared)
                lists.add(cell)
                continue
            under_way[cell.number] = cell, prepared, {}
            for case in in_order(prepared.context, prepared.cases):
                yield (cell.number, case.position), prepared.context, case

    def keep(found: Any) -> None:
        number, position = found.key
        cell, prepared, results = under_way[number]
        results[position] = found
        if len(results) < len(prepared.cases):
            return
        del under_way[number]
        in_place = [results[position] for position in sorted(results)]
        runs = [each.run for each in in_place]
        try:
            lists.add(cell, prepared, runs)
        except SchedlabError as error:
            done[number] = _failed(cell, error)
            return
        tasks = {each.run["directory"]: each.tasks for each in in_place if each.tasks}
        done[number] = replace(_computed(cell, runs, tasks), seconds=sum(each.seconds for each in in_place))

    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        runs = work()
        for first in itertools.islice(runs, 1):
            n_runs = len(cells) * len(under_way[first[0][0]][1].cases)
            late = do_runs(
                itertools.chain([first], runs), keep, n_runs=n_runs, n_workers=n_workers_of(first[1].host)
            )
            if late is not None:
                lists.write_rest()
                raise KeyboardInterrupt
    return [done[cell.number] for cell in cells]


def _prepare_all(cells: list[Cell], scratch: str) -> Iterator[tuple[Cell, Any]]:
    """Prepare one cell after the other; those that differ in their seed alone, together."""
    from .run import prepare

    for _, group in itertools.groupby(
        cells, key=lambda cell: replace(cell, number=0, seeds=(0, 1), out=None)
    ):
        first = None
        for cell in group:
            try:
                if first is None:
                    prepared = first = prepare(_plan(cell, scratch))
                else:
                    prepared = first.for_seed(cell.seeds[0], Path(cell.out or scratch))
            except SchedlabError as error:
                yield cell, error
                continue
            yield cell, prepared


def _do_far(cells: list[Cell], executor: Executor) -> list[Done]:
    """Send all runs of all cells, then wait for them."""
    from .remote import cancel, collect, send
    from .run import prepare

    lists = _Lists(cells)
    sent: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        try:
            for cell in cells:
                wanted = ("tasks.parquet",) if cell.out is None else None
                try:
                    prepared = prepare(_plan(cell, Path(scratch, str(cell.number)), is_kept=True))
                    sent.append((prepared, send(prepared.context, prepared.cases, executor, wanted=wanted)))
                except SchedlabError as error:
                    sent.append(error)
            done = []
            for cell, each in zip(cells, sent, strict=True):
                if isinstance(each, SchedlabError):
                    done.append(_failed(cell, each))
                    lists.add(cell)
                    continue
                runs, is_interrupted = collect(each[1])
                if is_interrupted:
                    lists.write_rest()
                    raise KeyboardInterrupt
                lists.add(cell, each[0], runs)
                done.append(replace(_read(cell, runs), seconds=sum(each[1].seconds)))
            return done
        except BaseException:
            for each in sent:
                if not isinstance(each, SchedlabError):
                    cancel(each[1])
            raise


def compare_within(done: list[Done]) -> list[dict[str, Any]]:
    """Compare policies within each combination of settings, over all its seeds."""
    from .compare import compare_runs

    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for each in done:
        groups.setdefault((each.cell.label, each.cell.baseline), []).extend(each.runs)
    return [
        {"settings": label} | entry
        for (label, baseline), runs in groups.items()
        for entry in compare_runs(runs, baseline=baseline)
    ]
