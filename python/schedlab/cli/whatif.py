# SPDX-License-Identifier: MIT
"""`schedlab whatif`: which policy, on how many CPUs, for a recording or a workload.

`schedlab recommend` is the same command.

Read next: measure/whatif.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED
from .options import with_options


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command = with_options(whatif)
    app.command()(command)
    app.command("recommend")(command)


def whatif(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="TRACE|RUN|WORKLOAD", help="A trace to import, the directory of a run, or a workload."
        ),
    ],
    policy: Annotated[
        list[str],
        typer.Option("--policy", "-p", help="Names or C files, with commas between; default: all there are."),
    ] = [],  # noqa: B006, Typer copies it
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric", "-m", help="What to rank by, then what to show; default: wakeup_p99 and others."
        ),
    ] = [],  # noqa: B006
    cpus: Annotated[str, typer.Option(metavar="4,8", help="Other numbers of CPUs to try.")] = "",
    settings: Annotated[
        list[str], typer.Option("--set", metavar="POLICY.KNOB=VALUE", help="As for run.")
    ] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Variations of the work; the first is as it was recorded.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Folder for page and runs; default: out/<time>.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    **options: Any,
) -> None:
    """Rank policies and machines on a recording, once its replay is held against it."""
    from ..measure.whatif import METRICS, open_subject, what_if
    from ..paths import command_line
    from ..report.write import write_report
    from ..runs.folders import fresh_folder
    from ..show.tables import Progress

    def names(given: list[str]) -> list[str]:
        return [name.strip() for text in given for name in text.split(",") if name.strip()]

    folder = out or fresh_folder()
    asked = open_subject(subject, folder)
    given: dict[str, Any] = {"cpus": cpus, "settings": settings, "nr_seeds": seeds}
    with Progress() as progress:
        found, result = what_if(
            asked,
            [name for name in names(policy) if name != "all"],
            folder,
            metrics=names(metric) or METRICS,
            command_line=command_line(),
            on_start=progress.expect,
            on_result=progress.advance,
            **given,
            **options,
        )
    page = write_report(folder, folder / "report.html").path
    if as_json:
        print(json.dumps(found | {"page": str(page)}, allow_nan=False))
    else:
        from ..show.whatif import show_what_if

        show_what_if(found)
        print(f"Page: {page}; open it in any browser.")
    if result.is_interrupted or not found["ranking"]:
        raise typer.Exit(EXIT_CHECK_FAILED)
