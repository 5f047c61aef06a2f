# SPDX-License-Identifier: MIT
"""`schedlab import` and `schedlab export`: workloads from and to other tools.

Must stay true: what a conversion loses is said on standard error, so that the
file may go through a pipe.
Read next: workload/rtapp.py, program/rtapp_export.py, workload/textbook.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import UsageError, did_you_mean
from ..files import make_folder, write_asked
from .options import JsonOption

FORMATS = ("rt-app", "csv", "ktstr")
IMPORTS = ("rt-app", "csv", "trace")

FormatArgument = Annotated[str, typer.Argument(metavar="FORMAT", help="rt-app, csv or ktstr.")]
OutOption = Annotated[
    Path | None, typer.Option(help="File to write, default: standard output; of ktstr: a crate's folder.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("import")(import_file)
    app.command("export")(export_workload)


def import_file(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FORMAT] FILE",
            help="rt-app's JSON, a textbook's csv; or a trace: text of trace-cmd report, ftrace or perf script, "
            "perf.data, trace.dat, Perfetto's, or what `record` left.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, default: standard output; of a trace: folder of the run."),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help="End of the run, such as 5s, for rt-app's JSON that has none.")
    ] = None,
    is_anonymous: Annotated[
        bool,
        typer.Option("--anonymise", help="Of a trace: names become hashes, processes are numbered anew."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn another tool's file into a workload in TOML, or its trace into a run."""
    if len(words) > 2:
        raise UsageError(f"import takes one file (got {' '.join(words)})")
    form = words[0] if len(words) == 2 else _form_of(Path(words[0]))
    _check_format(form, IMPORTS)
    if form == "trace":
        _import_trace(Path(words[-1]), out, is_anonymous=is_anonymous, as_json=as_json)
        return
    if is_anonymous:
        raise UsageError(f"--anonymise is of traces, and {words[-1]} is read as {form}")
    from ..workload.rtapp import rtapp_as_toml
    from ..workload.textbook import textbook_as_toml

    file = Path(words[-1])
    if form == "csv" and duration is not None:
        raise UsageError("--duration: a CSV table ends when its tasks do")
    converted = rtapp_as_toml(file, duration=duration) if form == "rt-app" else textbook_as_toml(file)
    _write(converted, out)


def _form_of(file: Path) -> str:
    """What a file is, by its name."""
    return {".json": "rt-app", ".csv": "csv"}.get(file.suffix, "trace")


def _import_trace(file: Path, out: Path | None, *, is_anonymous: bool, as_json: bool) -> None:
    from ..measure.recording import import_trace
    from ..runs.folders import fresh_folder
    from .record import tell

    tell(import_trace(file, out or fresh_folder(), is_anonymous=is_anonymous), as_json=as_json)


def export_workload(
    form: FormatArgument,
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A name or a file.")],
    out: OutOption = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn (rt-app); 0: no jitter.")] = 0,
    policy: Annotated[str, typer.Option(help="rt-app's: SCHED_OTHER, SCHED_FIFO, SCHED_RR.")] = "SCHED_OTHER",
    scheduler: Annotated[
        str | None, typer.Option(help="ktstr's: program that loads the policy, built by cargo, or its path.")
    ] = None,
) -> None:
    """Write a workload as a file that another tool runs, or as a test of ktstr."""
    from ..workload.find import load_workload

    _check_format(form)
    if form == "ktstr":
        from ..check.ktstr import export_ktstr

        if out is None or scheduler is None:
            raise UsageError("export ktstr needs --out FOLDER and --scheduler PROGRAM, such as scx_simple")
        for note in export_ktstr(workload, scheduler, out, seed=seed):
            print(f"note: {note}", file=sys.stderr)
        print(f"wrote {out}")
        return
    if scheduler is not None:
        raise UsageError(f"--scheduler is of ktstr, not of {form}")
    loaded = load_workload(workload)
    if loaded.happens:
        print(f"note: {loaded.happens}: left out", file=sys.stderr)
    if form == "csv":
        from ..workload.textbook import export_textbook

        _write(export_textbook(loaded), out)
        return
    from ..program.rtapp_export import export_rtapp

    _write(export_rtapp(loaded, seed=seed, policy=policy), out)


def _check_format(form: str, known: tuple[str, ...] = FORMATS) -> None:
    if form not in known:
        raise UsageError(f"unknown format {form!r}{did_you_mean(form, known)}")


def _write(converted: Any, out: Path | None) -> None:
    """Write the file, and the notes beside it."""
    for note in converted.notes:
        print(f"note: {note}", file=sys.stderr)
    if out is None:
        sys.stdout.write(converted.text)
        return
    make_folder(out.parent, out=out)
    write_asked("--out", out, converted.text)
    print(f"wrote {out}")
