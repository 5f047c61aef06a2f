# SPDX-License-Identifier: MIT
"""`schedlab bench`: a command under several of Linux's scheduling policies.

Must stay true: options stand before `--`, the command after it, untouched.
Read next: measure/bench.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from ..model import CPUS_MAX

if TYPE_CHECKING:
    from ..measure.bench import BenchPlan


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(context_settings={"allow_interspersed_args": False})(bench)


def bench(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to measure, and its arguments.")
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
    warmups: Annotated[int, typer.Option(min=0, max=1000, help="Rounds before those, thrown away.")] = 1,
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
) -> None:
    """Measure a command under Linux's own scheduling policies."""
    from ..measure.bench import measure

    if style not in ("table", "lkml"):
        raise UsageError(f"--style {style}: there is no such style; there are table and lkml")
    plan = _plan(command, policy, runs, warmups, background, cpus, timeout, seed, recorded)
    progress = None if as_json or not sys.stderr.isatty() else _show_progress
    result = measure(plan, folder=out, on_sample=progress)
    if as_json:
        print(json.dumps(result.as_json(), allow_nan=False))
    else:
        from ..show.bench import show_bench

        show_bench(result, is_plain=style == "lkml")
    if result.failures:
        raise typer.Exit(EXIT_CHECK_FAILED)


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
