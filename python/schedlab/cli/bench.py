# SPDX-License-Identifier: MIT
"""`schedlab bench`: a command under several of Linux's scheduling policies.

Must stay true: options stand before `--`, the command after it, untouched.
Read next: measure/bench.py.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from ..model import CPUS_MAX
from .answer import print_json
from .bench_options import BenchCommand, with_series_options
from .options import CpusOption, JsonOption, TimeoutOption, length_ns, split_names

if TYPE_CHECKING:
    from ..measure.bench import BenchPlan, BenchResult
    from ..measure.bench_series import Series
    from ..show.progress import Progress


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    decorate = app.command(cls=BenchCommand, context_settings={"allow_interspersed_args": False})
    decorate(with_series_options(bench))


def bench(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND...", help="What to measure, and its arguments; see --shell."),
    ],
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            help="With commas between: SCHED_OTHER[:NICE], SCHED_BATCH, SCHED_IDLE, "
            "SCHED_FIFO:PRIORITY, SCHED_RR:PRIORITY, SCHED_DEADLINE:RUNTIME/DEADLINE/PERIOD.",
        ),
    ],
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Samples of each policy.")] = 10,
    warmups: Annotated[
        int, typer.Option("--warmup", "--warmups", min=0, max=1000, help="Rounds before those, thrown away.")
    ] = 1,
    background: Annotated[
        list[str],
        typer.Option(
            metavar="COMMAND", help="Runs at the same time, as the shell would split it; may be given again."
        ),
    ] = [],  # noqa: B006, Typer copies it
    cpus: CpusOption = "",
    timeout: TimeoutOption = "60s",
    seed: Annotated[int, typer.Option(help="Of the order of the runs.")] = 1,
    recorded: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="Further runs of each policy in which the scheduler is "
            "recorded: wake-up latency, migrations.",
        ),
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the samples; started again, the same command goes on there."),
    ] = None,
    style: Annotated[str, typer.Option(help="table, or lkml for plain text to mail.")] = "table",
    as_json: JsonOption = False,
    *,
    series: dict[str, Any],
) -> None:
    """Measure commands under Linux's own scheduling policies."""
    if style not in ("table", "lkml"):
        raise UsageError(f"--style {style}: there is no such style; there are table and lkml")
    plan = _plan(command, policy, runs, warmups, background, cpus, timeout, seed, recorded)
    measured = _measure_all(plan, series, out, style, as_json=as_json)
    if as_json:
        found = [result.as_json() for _, result in measured]
        print_json(found[0] if len(found) == 1 else {"commands": found})
    if any(result.failures for _, result in measured) and not series["ignore_failure"]:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _measure_all(
    plan: BenchPlan, options: dict[str, Any], out: Path | None, style: str, *, as_json: bool
) -> list[tuple[Series, BenchResult]]:
    """Measure each command with each value of its parameters, one after another, and show it."""
    from ..measure.bench import measure
    from ..measure.bench_series import export, make_series, read_parameters, run_shell
    from ..show.bench import show_bench, show_commands
    from ..show.progress import Progress

    lists, scans, steps = (options[f"parameter_{kind}"] for kind in ("list", "scan", "step"))
    commands = make_series(plan.argv, options["shell"], read_parameters(lists, scans, steps))
    file = options["input"]
    if file is not None and not os.access(file, os.R_OK):
        raise UsageError(f"--input {file}: cannot be read")
    measured: list[tuple[Series, BenchResult]] = []
    with Progress(is_silent=options["show_output"]) as progress:
        progress.expect(plan.n_runs * len(commands))
        for number, each in enumerate(commands, 1):
            mine = replace(
                plan,
                argv=each.argv,
                prepare=each.fill(options["prepare"]),
                input=file and file.resolve(),
                is_shown=options["show_output"],
            )
            folder = out / str(number) if out and len(commands) > 1 else out
            run_shell("--setup", each.fill(options["setup"]))
            try:
                result = measure(mine, folder=folder, on_run=partial(_advance, progress, each.text))
            except KeyboardInterrupt:
                if out:
                    print(f"what was measured is in {out}; the same command goes on there", file=sys.stderr)
                raise
            finally:
                run_shell("--cleanup", each.fill(options["cleanup"]))
            measured.append((each, result))
            if not as_json:
                with progress.hidden():
                    show_bench(result, is_plain=style == "lkml")
    export(measured, {form: options[f"export_{form}"] for form in ("json", "csv", "markdown")})
    if len(measured) > 1 and not as_json:
        show_commands(measured)
    return measured


def _plan(
    command: list[str],
    policy: list[str],
    runs: int,
    warmups: int,
    background: list[str],
    cpus: str,
    timeout: str,
    seed: int,
    recorded: int,
) -> BenchPlan:
    """Check the words of a command line."""
    import shlex

    from ..measure.bench import BenchPlan, parse_policies

    try:
        others = tuple(tuple(shlex.split(words)) for words in background)
    except ValueError as error:
        raise UsageError(f"--background: {error}; quote it as for a shell") from error
    if () in others:
        raise UsageError("--background '': name a command")
    return BenchPlan(
        tuple(command),
        parse_policies(split_names(policy)),
        runs,
        warmups,
        others,
        parse_cpus(cpus),
        length_ns("--timeout", timeout),
        seed,
        recorded,
    )


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read a list of CPUs.

    >>> parse_cpus("0,2-3")
    (0, 2, 3)
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise UsageError(f"--cpus {text}: '{part}' is no CPU; write numbers such as 0,2-3") from None
        if not 0 <= low <= high < CPUS_MAX:
            raise UsageError(
                f"--cpus {text}: '{part}' must be between 0 and {CPUS_MAX - 1}, the smaller first"
            )
        found |= set(range(low, high + 1))
    return tuple(sorted(found))


def _advance(progress: Progress, text: str, policy: str, is_new: bool) -> None:
    progress.advance({"workload": text, "policy": policy}, is_new=is_new)
