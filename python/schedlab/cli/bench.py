# SPDX-License-Identifier: MIT
"""`schedlab bench`: a command under several of Linux's scheduling policies.

Must stay true: options stand before `--`, the command after it, untouched.
Read next: measure/bench.py.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from ..model import CPUS_MAX
from .bench_options import with_series_options

if TYPE_CHECKING:
    from ..measure.bench import BenchPlan, BenchResult
    from ..measure.bench_series import Series


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(context_settings={"allow_interspersed_args": False})(with_series_options(bench))


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
    cpus: Annotated[
        str, typer.Option(metavar="0,2-3", help="CPUs that the commands may use; default: all.")
    ] = "",
    timeout: Annotated[
        str, typer.Option(help="Longest time of one run; then its whole tree is ended.")
    ] = "60s",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
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
        print(json.dumps(found[0] if len(found) == 1 else {"commands": found}, allow_nan=False))
    if any(result.failures for _, result in measured) and not series["ignore_failure"]:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _measure_all(
    plan: BenchPlan, options: dict[str, Any], out: Path | None, style: str, *, as_json: bool
) -> list[tuple[Series, BenchResult]]:
    """Measure each command with each value of its parameters, one after another, and show it."""
    from ..measure.bench import measure
    from ..measure.bench_series import export, make_series, run_shell, scan
    from ..show.bench import show_bench, show_commands

    parameters: list[tuple[str, list[str]]] = []
    if options["parameter_list"]:
        name, values = options["parameter_list"]
        parameters.append((name, values.split(",")))
    if options["parameter_scan"]:
        name, low, high = options["parameter_scan"]
        parameters.append(scan(name, low, high, options["parameter_step"]))
    commands = make_series(plan.argv, options["shell"], parameters)
    file = options["input"]
    if file is not None and not os.access(file, os.R_OK):
        raise UsageError(f"--input {file}: cannot be read")
    progress = None if as_json or options["show_output"] or not sys.stderr.isatty() else _show_progress
    measured: list[tuple[Series, BenchResult]] = []
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
            result = measure(mine, folder=folder, on_sample=progress)
        finally:
            run_shell("--cleanup", each.fill(options["cleanup"]))
        measured.append((each, result))
        if not as_json:
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
    from ..units import parse_duration

    names = [name.strip() for given in policy for name in given.split(",") if name.strip()]
    try:
        others = tuple(tuple(shlex.split(words)) for words in background)
    except ValueError as error:
        raise UsageError(f"--background: {error}; quote it as for a shell") from error
    if () in others:
        raise UsageError("--background '': name a command")
    timeout_ns = parse_duration(timeout, place="--timeout")
    if timeout_ns <= 0:
        raise UsageError(f"--timeout {timeout}: it must be longer than 0")
    return BenchPlan(
        tuple(command),
        parse_policies(names),
        runs,
        warmups,
        others,
        parse_cpus(cpus),
        timeout_ns,
        seed,
        recorded,
    )


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read a list of CPUs.

    Examples
    --------
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


def _show_progress(sample: dict[str, Any], total: int) -> None:
    """One line that is written over, and taken away after the last sample."""
    done = sample["round"] + 1
    sys.stderr.write(f"\r\033[Kround {done}, {sample['policy']}: {sample['wall_ns'] / 1e6:,.1f} ms")
    if sample["order"] + 1 == total:
        sys.stderr.write("\r\033[K")
    sys.stderr.flush()
