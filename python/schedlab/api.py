# SPDX-License-Identifier: MIT
"""schedlab for programs and notebooks: runs and sweeps as tables.

`schedlab.run` does what `schedlab run` does and returns Polars tables, which
pandas, DuckDB and whatever else reads Arrow streams (`__arrow_c_stream__`) take
as they are. `schedlab.sweep` does many such runs, one for each combination of
settings, CPUs and seed. Both hand their runs to any executor of the shape that
`concurrent.futures` defines.

Must stay true: the columns of a table do not depend on what happened in a run,
but for one column per knob; a cell of a sweep that fails is listed, and takes no
other with it.
Read next: runs/cells.py, which has the runs done; api_tables.py, which makes the tables.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .api_tables import (
    cells_table,
    comparisons_table,
    computed_tasks,
    runs_table,
    tasks_table,
    warnings_table,
)
from .errors import PolicyError, UsageError, did_you_mean
from .hosts.choose import why_no_option
from .model import OPTIONS, Execution, Machine, read_options
from .runs.cells import Cell, Done, compare_within, do_cell, do_cells
from .runs.plan import default_seeds

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import polars as pl

#: More cells than this are a slip of the pen rather than a plan.
CELLS_MAX = 1_000_000
_LABEL_LENGTH_MAX = 100


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What came of `run`, as tables.

    Attributes
    ----------
    runs : polars.DataFrame
        One row per run: `workload`, `policy`, `host`, `cpus`, `seed`, `status`
        (`"ok"` or `"failed"`), `error`, `error_kind`, `consistency` (and `physics`, its old name), three hashes,
        `tick_ns`, `directory`, one column `POLICY.KNOB` per knob in the knob's
        unit, and one per metric; `schedlab metrics` explains these, and their
        names end in their units.
    tasks : polars.DataFrame
        One row per task of each good run; times in nanoseconds.
    comparisons : polars.DataFrame
        One row per metric and policy besides the baseline (`policy_a`), paired by seed,
        `difference` = b - a, with interval, effect sizes and verdict; docs/statistics.md says
        what they mean. A pair that was refused has one row, with `error`.
    warnings : polars.DataFrame
        What to know before the numbers are believed, such as too few seeds: `workload`, `policy`, `kind`,
        `metrics`, `text`, `hint`.
    directory : pathlib.Path or None
        Where the run folders are; None if nothing was kept.
    """

    runs: pl.DataFrame
    tasks: pl.DataFrame
    comparisons: pl.DataFrame
    warnings: pl.DataFrame
    directory: Path | None = None

    @property
    def errors(self) -> list[str]:
        """What went wrong, a line for each failed run and each refused comparison."""
        failed = self.runs.filter(self.runs["status"] != "ok")
        texts = [
            f"{run['workload']}, {run['policy']}, seed {run['seed']}: {run['error']}"
            for run in failed.iter_rows(named=True)
        ]
        refused = self.comparisons.filter(self.comparisons["error"].is_not_null())
        return texts + [
            f"{pair['workload']}, {pair['policy_a']} and {pair['policy_b']}: {pair['error']}"
            for pair in refused.iter_rows(named=True)
        ]

    @property
    def is_good(self) -> bool:
        """Whether every run is good and no comparison was refused."""
        return not self.errors

    def __repr__(self) -> str:
        """Say how much there is, and how it went; tables show themselves."""
        state = "good" if self.is_good else f"{len(self.errors)} failed"
        kept = f", kept in {self.directory}" if self.directory else ""
        return f"<{type(self).__name__}: {self.runs.height} runs, {state}{kept}>"


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """What came of `sweep`: the tables of all cells together.

    Attributes
    ----------
    runs, tasks, comparisons, warnings : polars.DataFrame
        As in `Result`, with `settings`, the combination as text; `runs` and
        `tasks` also have `cell`, the number of the cell they come from.
        Comparisons are made within one combination, over all its seeds.
    directory : pathlib.Path or None
        Holds a folder per combination, as `run` makes it; None if nothing was kept.
    cells : polars.DataFrame
        One row per cell, in order, whatever order they were done in: `cell`
        (from 0), `seed`, `cpus`, one column of text per swept setting,
        `settings`, `status`, `error`, `error_kind`, `seconds` on the wall clock,
        `n_runs`, `directory`.
    """

    cells: pl.DataFrame = field(kw_only=True)

    @property
    def failures(self) -> pl.DataFrame:
        """Rows of `cells` that failed."""
        return self.cells.filter(self.cells["status"] != "ok")

    @property
    def errors(self) -> list[str]:
        """What went wrong, a line for each failed cell and each refused comparison."""
        lost = self.failures.filter(self.failures["n_runs"] == 0)
        texts = [
            f"cell {cell['cell']} ({cell['settings'] or 'defaults'}, seed {cell['seed']}): {cell['error']}"
            for cell in lost.iter_rows(named=True)
        ]
        return texts + super().errors


def run(
    workloads: Any,
    policies: Any,
    *,
    seeds: int | Iterable[int] | None = None,
    set: Mapping[str, object] | None = None,
    baseline: str | None = None,
    cpus: int | None = None,
    tick: str | None = None,
    costs: Mapping[str, object] | None = None,
    io: Mapping[str, object] | None = None,
    topology: str | Mapping[str, int] = "",
    capacity: str | Mapping[str, int] = "",
    above: Iterable[str] = (),
    offline: Iterable[str] = (),
    host: str = "sim",
    parallel: bool = False,
    sandbox: bool = False,
    threads: bool = False,
    kernel: str | Path | None = None,
    scale: float = 1.0,
    timeout: str | float = "300s",
    out: str | Path | None = None,
    executor: Executor | str | None = None,
) -> Result:
    """Run workloads under policies and compare the results.

    Parameters
    ----------
    workloads, policies : str, pathlib.Path, or iterable of them
        Names or files; the policy `"all"` stands for all that schedlab has, and on the host `guest`
        `"loader:./scx_x -v"` for a scheduler's own program.
    seeds : int or iterable of int, optional
        How many seeds, from 1 on; or the seeds themselves, which must follow on
        one another, such as `range(5, 10)`. Seed 0 means no jitter. Default: 20 where
        the simulator compares policies, else 1.
    set : mapping of str to (str, int or bool), optional
        Knobs by `POLICY.KNOB`, such as `{"rr.slice_ns": "2ms"}`; a number is in
        the knob's own unit. Several values with commas between them make variants
        of the policy, `rr:slice_ns=1ms` and so on, which are compared.
    baseline : str, optional
        The policy that all others are compared with; default: the first.
    cpus : int, optional
        Number of CPUs; default: what each workload is meant for.
    tick : str, optional
        Time between ticks, such as `"1ms"`; default: what the workload says.
    costs : mapping of str to (str or int), optional
        What the simulated machine charges, such as `{"switch_ns": "2us"}`; a
        number is in nanoseconds.
    io : mapping of str to (str or int), optional
        The simulated machine's device, such as `{"latency_ns": "50us", "depth": 4}`.
    topology : str or mapping of str to int, default ""
        CPUs per core, cache and NUMA node, such as `"smt=2,llc=8"`.
    capacity : str or mapping of str to int, default ""
        What CPUs do of the 1024 that the others do, such as `"4-7=512"`; a policy then also sets clocks.
    above : iterable of str, optional
        When real-time tasks have a CPU: `"0:20ms:5ms"` is CPU 0, from 20 ms on, for 5 ms.
    offline : iterable of str, optional
        When a CPU other than the first is offline, in the same form.
    host : str, default "sim"
        Where to run. An option that it does not have is refused.
    parallel : bool, default False
        In a machine that is emulated: a thread for each CPU, and real time.
    sandbox : bool, default False
        Run the simulator as WebAssembly, for policies that one does not trust.
    threads : bool, default False
        On Linux: tasks are threads of one process.
    kernel : str or pathlib.Path, optional
        Of the guest: the kernel to boot; default: Debian's.
    scale : float, default 1
        How much of the work to do, of workloads whose params say what scales.
    timeout : str or float, default "300s"
        Longest time on the wall clock for one run; a number is in seconds.
    out : str or pathlib.Path, optional
        Folder in which to keep the run folders, for `schedlab report` and
        `schedlab trace`; default: only the tables are kept.
    executor : concurrent.futures.Executor or str, optional
        Who does the runs, as for `sweep`; default: all CPUs of this machine.

    Returns
    -------
    Result
        `runs`, `tasks`, `comparisons`, `warnings`, `directory`. A run that
        failed is in `runs`, with its reason; `is_good` says whether all is well.

    Raises
    ------
    UsageError, NotFoundError, SpecError
        If an argument, a name or a workload is wrong; nothing has run then.
    UnavailableError
        If the host, a C compiler or the executor's machines cannot be used.
    KeyboardInterrupt
        After Ctrl-C; what is finished is in `out`.

    Notes
    -----
    A good run says nothing about chance: compare policies over ten seeds or more,
    and read `warnings`.

    Examples
    --------
    >>> import schedlab
    >>> result = schedlab.run("textbook/rr", ["rr", "fifo"], seeds=1, set={"rr.slice_ns": "2ms"})
    >>> result.is_good
    True
    >>> result.runs.select("policy", "makespan_ns", "switches").rows()
    [('rr', 13000000.0, 8.0), ('fifo', 13000000.0, 4.0)]
    """
    machine, execution = _options(locals())
    names = _names(policies, what="policies")
    settings = tuple((name, _text(value)) for name, value in (set or {}).items())
    if seeds is None:
        seeds = default_seeds(execution.host, names, [text for _, text in settings], 1)
    first_seed, n_seeds = _consecutive(_seed_list(seeds))
    cell = Cell(
        number=0,
        workloads=_names(workloads, what="workloads"),
        policies=names,
        seeds=(first_seed, n_seeds),
        settings=settings,
        cpus=cpus,
        out=None if out is None else os.fspath(out),
        machine=machine,
        execution=execution,
        baseline=baseline,
    )
    done = do_cell(cell, executor)
    return Result(
        runs=runs_table(done.runs),
        tasks=tasks_table(_tables([done])[0]),
        comparisons=comparisons_table(done.comparisons),
        warnings=warnings_table(done.comparisons),
        directory=None if out is None else Path(out),
    )


def sweep(
    workloads: Any,
    policies: Any,
    *,
    seeds: int | Iterable[int] = 1,
    set: Mapping[str, object] | None = None,
    baseline: str | None = None,
    cpus: int | Iterable[int] | None = None,
    tick: str | None = None,
    costs: Mapping[str, object] | None = None,
    io: Mapping[str, object] | None = None,
    topology: str | Mapping[str, int] = "",
    capacity: str | Mapping[str, int] = "",
    above: Iterable[str] = (),
    offline: Iterable[str] = (),
    host: str = "sim",
    parallel: bool = False,
    sandbox: bool = False,
    threads: bool = False,
    kernel: str | Path | None = None,
    scale: float = 1.0,
    timeout: str | float = "300s",
    out: str | Path | None = None,
    executor: Executor | str | None = None,
) -> Sweep:
    """Run every combination of settings, CPUs and seeds.

    A cell is one combination with one seed; all workloads and policies are run in
    it, so that policies are compared on the same work.

    Parameters
    ----------
    workloads, policies : str, pathlib.Path, or iterable of them
        As for `run`.
    seeds : int or iterable of int, default 1
        How many seeds, from 1 on; or the seeds themselves.
    set : mapping of str to (str, int, bool, or iterable of them), optional
        Knobs by `POLICY.KNOB`; an iterable is swept, one value is for all cells.
    cpus : int or iterable of int, optional
        Numbers of CPUs to try; default: what each workload is meant for.
    baseline, tick, costs, io, topology, capacity, above, offline, host, parallel, sandbox, threads, kernel, scale, timeout : as for `run`
        For all cells.
    out : str or pathlib.Path, optional
        Folder with a folder per combination, in which its seeds are. Default: only the
        tables are kept.
    executor : concurrent.futures.Executor or str, optional
        Anything with its `submit`, which is not shut down; or `"dask://HOST:PORT"`,
        a Dask scheduler; default: one cell after the other, here. Each run is a
        call of its own. Workers need this version of schedlab and a C compiler, but
        no folder of this machine: workloads, policies and records travel. A
        `ProcessPoolExecutor` must not fork: give it
        `mp_context=multiprocessing.get_context("spawn")`.

    Returns
    -------
    Sweep
        The tables of `run`, and `cells`. A cell of which a run failed, or its
        worker died, is in `failures` with its reason; the others are whole.

    Raises
    ------
    UsageError, NotFoundError, SpecError
        If a name or a workload is wrong for every cell; nothing has run then. A
        value that one cell refuses is that cell's failure.
    UnavailableError
        If the executor is an address, and its machines cannot be used.
    KeyboardInterrupt
        After Ctrl-C; runs that have not begun are cancelled.

    Notes
    -----
    A swept setting belongs to one policy. The others run again in each
    combination, since the comparisons of that combination need them.

    Examples
    --------
    >>> import schedlab
    >>> swept = schedlab.sweep("textbook/rr", "rr", set={"rr.slice_ns": ["1ms", "2ms", "0s"]})
    >>> swept.runs.select("settings", "rr.slice_ns", "switches").rows()
    [('rr.slice_ns=1ms', 1000000, 13.0), ('rr.slice_ns=2ms', 2000000, 8.0)]
    >>> swept.failures["error"].to_list()
    ['--set rr.slice_ns=0s: 0s is out of range: slice_ns goes from 1ns to 10s']
    """
    machine, execution = _options(locals() | {"cpus": None})
    template = Cell(
        number=0,
        workloads=tuple(map(_absolute, _names(workloads, what="workloads"))),
        policies=tuple(map(_absolute, _names(policies, what="policies"))),
        seeds=(0, 1),
        machine=machine,
        execution=execution,
        baseline=baseline,
    )
    values = {name: _value_list(value) for name, value in (set or {}).items()}
    _check_names(template, values)
    folder = None if out is None else Path(out).absolute()
    cells = _cells(template, values, _cpus_list(cpus), _seed_list(seeds), folder)
    done = do_cells(cells, executor)
    comparisons = compare_within(done)
    settings = {cell.number: cell.label for cell in cells}
    return Sweep(
        runs=runs_table(
            [run for each in done for run in each.runs],
            [each.cell.number for each in done for _ in each.runs],
            settings,
        ),
        tasks=tasks_table(*_tables(done), settings),
        comparisons=comparisons_table(comparisons, is_swept=True),
        warnings=warnings_table(comparisons, is_swept=True),
        directory=folder,
        cells=cells_table(done, list(values)),
    )


# ---- arguments --------------------------------------------------------------


def _names(value: Any, *, what: str) -> tuple[str, ...]:
    """One name or file, or several, as texts."""
    several = [value] if isinstance(value, str | os.PathLike) else value
    try:
        names = [os.fspath(each) for each in several]
    except TypeError as error:
        raise UsageError(f"{what} must be a name, a path, or several of them (got {value!r})") from error
    if what == "policies":
        from .policy.find import list_policies

        names = [name for each in names for name in (list_policies() if each == "all" else [each])]
    if not names:
        raise UsageError(f"{what} is empty; `schedlab {what}` lists what there is")
    return tuple(names)


def _absolute(name: str) -> str:
    """A file's full path, for a worker that is in another folder; a name as it is."""
    path, colon, params = name.partition(":")
    is_file = path.endswith((".c", ".toml", ".csv", ".json"))
    return os.path.abspath(path) + colon + params if is_file else name


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Seeds in their order, each once."""
    if isinstance(seeds, int) and _is_whole(seeds):
        if seeds < 1:
            raise UsageError(f"seeds must be at least 1, or a list of seeds (got {seeds})")
        return list(range(1, seeds + 1))
    found = [] if isinstance(seeds, str) or not isinstance(seeds, Iterable) else list(seeds)
    found = [int(seed) if hasattr(seed, "__index__") else seed for seed in found]
    if not found or not all(_is_whole(seed) and seed >= 0 for seed in found):
        raise UsageError(f"seeds must be a number of seeds, or whole numbers from 0 (got {seeds!r})")
    if len({*found}) < len(found):
        raise UsageError(f"seeds: one is given twice (got {seeds!r})")
    return found


def _consecutive(seeds: list[int]) -> tuple[int, int]:
    """First seed and number of seeds that follow on one another."""
    first = min(seeds)
    if sorted(seeds) != list(range(first, first + len(seeds))):
        raise UsageError(
            f"seeds must follow on one another, such as range(5, 10) (got {seeds}); schedlab.sweep takes any"
        )
    return first, len(seeds)


def _cpus_list(cpus: int | Iterable[int] | None) -> list[int | None]:
    """Numbers of CPUs; None: what each workload is meant for."""
    found: list[int | None] = [cpus] if cpus is None or isinstance(cpus, int) else list(cpus)
    if not found:
        raise UsageError("cpus is empty; give a number, several, or None")
    return found


def _text(value: object) -> str:
    """A knob's value as `--set` takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _value_list(value: object) -> list[str]:
    """Values of a setting: one, or those to sweep."""
    several = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    return [_text(each) for each in several]


def _options(arguments: Mapping[str, Any]) -> tuple[Machine, Execution]:
    """The options among a function's arguments; None stands for the default."""
    words = [option.word for option in OPTIONS.values()]
    machine, execution, problems = read_options(
        {word: arguments[word] for word in words if arguments[word] is not None}
    )
    if problems := problems + why_no_option(machine, execution):
        raise UsageError("\n".join(problems))
    return machine, execution


def _check_names(template: Cell, values: Mapping[str, list[str]]) -> None:
    """Refuse what no cell could run, before there are thousands of them."""
    from .policy.find import load_policy
    from .workload.find import load_workload

    for name in template.workloads:
        load_workload(name)
    knobs: dict[str, Any] = {}
    for name in template.policies:
        try:
            policy = load_policy(name)
        except PolicyError:
            return  # a damaged policy fails its own runs, and has no knobs to look at
        knobs |= {f"{policy.name}.{knob}": None for knob in policy.knobs}
    for name, several in values.items():
        if name not in knobs:
            raise UsageError(f"set: no policy of this sweep has a knob {name!r}{did_you_mean(name, knobs)}")
        if not several:
            raise UsageError(f"set: {name!r} has no values; give one, or several to sweep")


def _cells(
    template: Cell,
    values: Mapping[str, list[str]],
    cpus: list[int | None],
    seeds: list[int],
    folder: Path | None,
) -> list[Cell]:
    """Every combination with every seed, the last setting changing fastest."""
    from .runs.run import folder_name

    swept = [name for name, several in values.items() if len(several) > 1]
    cells: list[Cell] = []
    for n_cpus in cpus:
        for combination in itertools.product(*values.values()):
            settings = tuple(zip(values, combination, strict=True))
            changing = tuple(pair for pair in settings if pair[0] in swept)
            for seed in seeds:
                cell = replace(
                    template,
                    number=len(cells),
                    cpus=n_cpus,
                    settings=settings,
                    swept=changing,
                    seeds=(seed, 1),
                )
                if folder is not None:
                    label = folder_name(cell.label.replace("/", "_"))[:_LABEL_LENGTH_MAX]
                    # Seeds of one combination share a folder, as those of `run` do.
                    name = "-".join(part for part in (f"{cell.number // len(seeds):05}", label) if part)
                    cell = replace(cell, out=str(folder / name))
                cells.append(cell)
                if len(cells) > CELLS_MAX:
                    raise UsageError(f"the sweep has more than {CELLS_MAX} cells; sweep less at once")
    return cells


def _tables(done: list[Done]) -> tuple[list[Any], list[Any]]:
    """The tasks of cells, as `tasks_table` takes them: tables, and which cells they are of."""
    computed = [
        (each.cell.number, run, columns)
        for each in done
        if isinstance(each.tasks, list)
        for run, columns in each.tasks
    ]
    if not computed:
        return [None if isinstance(each.tasks, list) else each.tasks for each in done], [
            each.cell.number for each in done
        ]
    table = computed_tasks([run for _, run, _ in computed], [columns for _, _, columns in computed])
    return [table], [[number for number, _, columns in computed for _ in columns["task"]]]
