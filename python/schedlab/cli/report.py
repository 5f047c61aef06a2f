# SPDX-License-Identifier: MIT
"""`schedlab report`: a folder of runs as one page, and its charts as files.

Must stay true: Altair and vl-convert are imported by the command, not by the
command line, so that `--help` answers at once.
Read next: report/write.py.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..units import counted
from .answer import print_json
from .options import JsonOption

if TYPE_CHECKING:
    from ..runs.run import RunSet


def show_page(result: RunSet, *, workload: str) -> None:
    """Write the page of a set of runs beside them, and say where it is."""
    from ..paths import own_command
    from ..report.write import write_report

    made = write_report(result.out, result.out / "report.html", workload=workload)
    print(
        f"Page about {workload}: {made.path}; open it in any browser.\n"
        f"All workloads on one page: {own_command()} report {shlex.quote(str(result.out))}"
    )


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Runs, as `schedlab run --out DIR` leaves them.")
    ],
    out: Annotated[Path | None, typer.Option(help="HTML file to write; default: DIR/report.html.")] = None,
    workload: Annotated[str | None, typer.Option(help="Only this workload; default: all.")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="What all others are compared with; default: as they were run."),
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for the charts as SVG and PDF.")] = None,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive", help="Put the simulator into the page, so that knobs can be turned there."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write runs as one HTML page, which can be read offline."""
    from ..report.write import write_report

    target = out or (folder if folder.is_dir() else folder.parent) / "report.html"
    if target.is_dir():
        raise UsageError(f"--out {target} is a folder; name a file, such as {target / 'report.html'}")
    made = write_report(
        folder, target, figures=figures, workload=workload, baseline=baseline, is_interactive=interactive
    )
    if as_json:
        print_json({"path": str(made.path), "bytes": made.n_bytes, "runs": made.n_runs,
                    "figures": [str(path) for path in made.figures]})  # fmt: skip
        return
    print(f"wrote {made.path}, {made.n_bytes:,} bytes, {counted(made.n_runs, 'run')}; open it in any browser")
    if made.figures:
        print(f"wrote {len(made.figures)} figures to {figures}")
