# SPDX-License-Identifier: MIT
"""`schedlab gantt`, `schedlab trace` and `schedlab explain`: pictures, exports and causes of one run.

Must stay true: nothing but the run folder is needed, wherever it was made.
Read next: plots/gantt.py, plots/trace.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import NotFoundError, RecordError, UsageError, did_you_mean
from ..files import write_asked
from ..units import parse_duration
from .answer import print_json
from .options import JsonOption

if TYPE_CHECKING:
    from ..check.calls import Call
    from ..metrics.cause import Stretch
    from ..records.file import Records

#: Of a stretch: how long its beginning and its end are for which callbacks are asked, and how many are shown.
CALLS_NS, CALLS_FIRST, CALLS_LAST = 100_000_000, 16, 8
RunArgument = Annotated[Path, typer.Argument(help="Folder of one run, as `schedlab run` leaves it.")]
FromOption = Annotated[str, typer.Option("--from", help="Start of the window, such as 20ms.")]
ToOption = Annotated[str | None, typer.Option("--to", help="Its end; default: the end of the run.")]


def open_run(folder: Path) -> Any:
    """Records and task names of a run folder."""
    from ..records.file import read_records
    from ..runs.folders import find_records

    return read_records(find_records(folder)), _task_names(folder)


def _task_names(folder: Path) -> dict[int, str]:
    """Names by pid: of the table of a good run, else of the program; empty where neither is there."""
    from ..runs.folders import program_of_run, task_names

    if (folder / "tasks.parquet").is_file():
        return task_names(folder)
    program = program_of_run(folder)
    return program.names if program else {}


def gantt(
    run: RunArgument,
    begin: FromOption = "0ms",
    end: ToOption = None,
    svg: Annotated[Path | None, typer.Option(help="Write an SVG file instead.")] = None,
    width: Annotated[
        int | None, typer.Option(min=40, max=100_000, help="Columns, or pixels of the SVG.")
    ] = None,
    tasks: Annotated[int, typer.Option(min=1, help="Rows in the terminal.")] = 40,
    shows_calls: Annotated[
        bool, typer.Option("--calls", help="With --svg: callbacks, and insertions and kicks as arrows.")
    ] = False,
) -> None:
    """Show which task had the CPU when, one row per task."""
    import shutil

    from ..plots.gantt import draw_svg, draw_text

    records, names = open_run(run)
    window: dict[str, Any] = {
        "begin_ns": parse_duration(begin, place="--from"),
        "end_ns": None if end is None else parse_duration(end, place="--to"),
    }
    if shows_calls and svg is None:
        raise UsageError(
            "--calls: give a file with --svg; `schedlab explain RUN --calls` lists them in the terminal"
        )
    if svg is None:
        columns = width if width is not None else max(40, shutil.get_terminal_size((100, 24)).columns)
        print(draw_text(records, names=names, width=columns, n_tasks_max=tasks, **window))
        print(f"{'█'} ran, {'▌'} ran for a part, · waited for a CPU")
        return
    marks = None
    if shows_calls:
        from ..check.calls import calls_of, marks_of

        until_ns = records.end_ns if window["end_ns"] is None else window["end_ns"]
        marks = marks_of(calls_of(run, window["begin_ns"], until_ns))
    write_asked(
        "--svg",
        svg,
        draw_svg(records, names=names, title=str(run), width_px=width or 1000, marks=marks, **window),
    )
    print(f"wrote {svg}")


def trace(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="File to write; default: beside the records.")] = None,
    form: Annotated[str, typer.Option("--format", help="perfetto, ftrace or csv.")] = "perfetto",
) -> None:
    """Export a run for the Perfetto viewer, for ftrace's tools, or as CSV."""
    from ..plots.trace import FORMATS, write_trace

    suffix = {"perfetto": "pftrace", "ftrace": "ftrace.txt", "csv": "csv"}
    records, names = open_run(run)
    target = out or run / f"trace.{suffix.get(form, form)}"
    if target.is_dir():
        raise UsageError(f"--out {target} is a folder; name a file")
    n_bytes = write_trace(records, target, names=names, form=form)
    print(f"wrote {target}, {n_bytes:,} bytes")
    if form == FORMATS[0]:
        print("open it at ui.perfetto.dev, or with any copy of that viewer")


def explain(
    run: RunArgument,
    task: Annotated[
        str | None, typer.Option(help="Its number or name; default: the one with the longest wait for a CPU.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="A time, such as 20ms; default: in the task's longest wait.")
    ] = None,
    shows_calls: Annotated[
        bool, typer.Option("--calls", help="Also what the policy was called for, and what it did.")
    ] = False,
    asks_what_if: Annotated[
        bool, typer.Option("--what-if", help="Also how long it would have waited with other knobs, or CPUs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say why a task waited at a time: who had the CPUs, in what order, and what was idle."""
    from rich.markup import escape

    from ..check.otherwise import what_if
    from ..metrics.cause import longest_wait, stretch_at
    from ..metrics.consistency import Expectations, check
    from ..metrics.timeline import Timeline
    from ..runs.folders import program_of_run, records_until_failure
    from ..show.tables import say
    from ..stats.explain import as_lines
    from ..stats.explain import explain as explain_stretch

    records, names = records_until_failure(run), _task_names(run)
    timeline = Timeline(records)
    if (verdict := check(timeline, Expectations(is_cut=True))) != "ok":
        raise RecordError(f"{run}: these records contradict themselves, and explain nothing: {verdict}")
    pid = None if task is None else _pid_of(task, names, timeline.by_task.keys.tolist())
    if at is None:
        stretch = longest_wait(timeline, pid)
        if stretch is None:
            raise NotFoundError(
                f"{run}: {'no task' if task is None else task} waited for a CPU; give a time, --at"
            )
    elif pid is None:
        raise UsageError("--at says when, but not of which task: add --task")
    else:
        at_ns = parse_duration(at, place="--at")
        stretch = stretch_at(timeline, pid, at_ns)
        if stretch is None:
            raise NotFoundError(f"--at {at}: then task {task} had not arrived, or had ended")
    program = program_of_run(run)
    affinity = dict(enumerate(program.affinity, 1)) if program else {}
    found = explain_stretch(timeline, stretch, affinity.get)
    calls = _calls_around(run, stretch.begin_ns, stretch.end_ns) if shows_calls else None
    if as_json:
        from ..check.calls import as_json as calls_as_json

        more: dict[str, Any] = {} if calls is None else {"calls": calls_as_json(calls)}
        if asks_what_if:
            more["what_if"] = [each.as_json() for each in what_if(run, stretch.task)]
        print_json(found.as_json() | more)
        return
    for line in as_lines(found, names):
        if line.startswith("    ") or not line:
            print(line)
        else:
            say(escape(line))
    print()
    print(_chart_of(stretch, records, names))
    if asks_what_if:
        print()
        for each in what_if(run, stretch.task):
            say(escape(each.sentence))
    if calls is not None:
        _show_calls(calls, stretch)


def _chart_of(stretch: Stretch, records: Records, names: dict[int, str]) -> str:
    """Who ran in a stretch, and a little before and after it."""
    import shutil

    from ..plots.gantt import draw_text

    margin_ns = (stretch.end_ns - stretch.begin_ns) // 20 + 1
    width = max(40, min(100, shutil.get_terminal_size((80, 24)).columns))
    return draw_text(
        records, names=names, width=width, n_tasks_max=20,
        begin_ns=max(0, stretch.begin_ns - margin_ns), end_ns=stretch.end_ns + margin_ns,
    )  # fmt: skip


def _show_calls(calls: list[Call], stretch: Stretch) -> None:
    """Print callbacks of a stretch."""
    from ..check.calls import shown

    print()
    if stretch.end_ns - stretch.begin_ns > 2 * CALLS_NS:
        print("Of the first and the last 100 ms:")
    for line in shown(calls, CALLS_FIRST, CALLS_LAST):
        print(line)


def _calls_around(run: Path, begin_ns: int, end_ns: int) -> list[Call]:
    """Callbacks of a stretch: those of its first and of its last 100 ms."""
    from ..check.calls import calls_of

    if end_ns - begin_ns <= 2 * CALLS_NS:
        return calls_of(run, begin_ns, end_ns)
    return [*calls_of(run, begin_ns, begin_ns + CALLS_NS), *calls_of(run, end_ns - CALLS_NS, end_ns)]


def _pid_of(task: str, names: dict[int, str], pids: list[int]) -> int:
    """Number of the task that a person means."""
    if task.isdecimal():
        return int(task)
    named = [pid for pid in pids if names.get(pid) == task]
    if len(named) == 1:
        return named[0]
    if named:
        raise UsageError(
            f"--task {task}: {len(named)} tasks have that name: {', '.join(map(str, named[:8]))}"
        )
    known = sorted({name for pid, name in names.items() if pid in set(pids)})
    raise NotFoundError(f"--task {task}: no such task{did_you_mean(task, known)}")
