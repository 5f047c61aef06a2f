# SPDX-License-Identifier: MIT
"""`schedlab record` and `schedlab replay`: what Linux did, and what others would do.

Must stay true: options stand before `--`, the command after it, untouched.
Read next: measure/recording.py, measure/replay.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from .answer import print_json
from .bench import parse_cpus
from .options import (
    CpusOption,
    JsonOption,
    OutOption,
    SettingsOption,
    TimeoutOption,
    length_ns,
    split_names,
    with_options,
)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(context_settings={"allow_interspersed_args": False})(record)
    app.command()(with_options(replay))


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="What to run and record, with its whole tree."),
    ] = None,
    pid: Annotated[
        int | None, typer.Option(min=1, help="Record this process, its threads, and what it forks.")
    ] = None,
    comm: Annotated[
        str,
        typer.Option(metavar="NAME", help="Record tasks of this name (/proc/PID/comm), and what they fork."),
    ] = "",
    cgroup: Annotated[
        str, typer.Option(metavar="/X", help="Record a cgroup and those below it, and what they fork.")
    ] = "",
    system: Annotated[
        str, typer.Option(metavar="TIME", help="Record all tasks of this machine for so long.")
    ] = "",
    is_all: Annotated[bool, typer.Option("--all", hidden=True)] = False,
    for_time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, with --pid, --comm or --cgroup.")
    ] = "10s",
    policy: Annotated[
        str,
        typer.Option("--policy", "-p", help="The command's scheduling policy, as for bench: SCHED_FIFO:10."),
    ] = "SCHED_OTHER",
    cpus: CpusOption = "",
    timeout: TimeoutOption = "60s",
    yields: Annotated[
        bool, typer.Option("--yields", help="Tell sched_yield from preemption; slows every system call down.")
    ] = False,
    causes: Annotated[
        bool,
        typer.Option(
            "--causes",
            help="Record reads, writes, polls and futexes, too, so that a replay keeps what waits for what.",
        ),
    ] = False,
    buffer_kib: Annotated[
        int,
        typer.Option("--buffer", min=16, max=1 << 20, metavar="KIB", help="Memory for events, of each CPU."),
    ] = 8192,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record what Linux's scheduler does with a command, some processes, or all."""
    from ..measure.recording import record_command, record_others
    from ..policy.linux_class import parse_class
    from ..runs.folders import fresh_folder

    _need_one({"-- COMMAND": command, "--pid": pid, "--comm": comm, "--cgroup": cgroup,
               "--system": system, "--all": is_all})  # fmt: skip
    folder = out or fresh_folder()
    options: dict[str, Any] = {"buffer_kib": buffer_kib, "has_yields": yields, "has_causes": causes}
    if command:
        run = record_command(
            command,
            folder,
            linux_class=parse_class(policy),
            cpus=parse_cpus(cpus),
            timeout_ns=length_ns("--timeout", timeout),
            # What it prints goes past our own answer.
            output=None if as_json else Path("/dev/stderr"),
            **options,
        )
    else:
        for_ns = length_ns("--system", system) if system else length_ns("--for", for_time)
        run = record_others(
            folder, pid=pid, comm=comm or None, cgroup=cgroup or None, for_ns=for_ns, **options
        )
    tell(run, as_json=as_json)


def _need_one(given: dict[str, object]) -> None:
    """Refuse none, and several, of the words that say what is recorded."""
    chosen = [word for word, value in given.items() if value]
    if len(chosen) != 1:
        raise UsageError(
            "record what? give one of -- COMMAND, --pid, --comm, --cgroup and --system TIME"
            + (f" (got {' and '.join(chosen)})" if chosen else "")
        )


def tell(run: dict[str, Any], *, as_json: bool) -> None:
    """Say what came of a recording, and leave with its exit code."""
    if as_json:
        print_json(run)
    else:
        from ..show.record import show_recording

        show_recording(run)
    if run["status"] != "ok":
        print(f"error: {run['error']}", file=sys.stderr)
        raise typer.Exit(EXIT_CHECK_FAILED)


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a recording, or of any run.")],
    policy: Annotated[
        list[str], typer.Option("--policy", "-p", help="Names or C files, with commas between.")
    ],
    seeds: Annotated[int, typer.Option(help="How many seeds, for policies that draw numbers.")] = 1,
    settings: SettingsOption = [],  # noqa: B006, Typer copies it
    out: OutOption = None,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Run what was recorded again, under other policies."""
    from ..measure.fidelity import with_slice
    from ..measure.replay import keep_recorded, load_recorded, read_run
    from ..paths import command_line
    from ..runs.folders import fresh_folder
    from ..runs.run import make_plan, run_plan

    names = split_names(policy)
    workload = load_recorded(run)
    plan = make_plan(
        [workload],
        names,
        out or fresh_folder(),
        n_seeds=seeds,
        settings=with_slice(settings, names, read_run(run / "run.json")),
        command_line=command_line(),
        **options,
    )
    result = run_plan(plan)
    keep_recorded(run, plan.out, workload)
    if as_json:
        print(result.as_json())
    else:
        from ..show.record import show_recorded, show_replayed
        from ..show.tables import show_runs

        show_recorded(run)
        show_replayed(result.runs)
        show_runs(result)
    if not result.is_good:
        raise typer.Exit(EXIT_CHECK_FAILED)
