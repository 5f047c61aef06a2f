# SPDX-License-Identifier: MIT
"""`schedlab reproduce`: which of a report's conclusions hold?

Read next: steps.py; experiments/README.md.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from schedlab.cli.answer import print_json
from schedlab.cli.options import JsonOption
from schedlab.errors import EXIT_CHECK_FAILED, UnavailableError, UsageError, did_you_mean

from .audit_command import REPORTS, report_folder, wanted_reports


def reproduce(
    reports: Annotated[
        list[int] | None,
        typer.Argument(metavar="[REPORT]...", help="1 to 5; default: all that are written down."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Only there: sim, kernel, uthreads, linux, guest, or one set of runs, such as kernel-1; with commas between."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A few seeds, or as many runs as the report.")
    ] = True,
    scale: Annotated[
        float | None, typer.Option(help="Size of Linux's work, 1 being the report's own.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for runs and pages; what is there is not done again.")
    ] = Path("out/reproduce"),
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Put the verdicts into this Markdown page, too: docs/replication.md."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the experiments of the five reports again, and decide their claims."""
    from schedlab.plots.installed import why_no_charts

    if lacking := why_no_charts():
        raise UnavailableError(f"reproduce: {lacking}")
    from .replication import write_replication
    from .reproduction import Wanted
    from .show import Watch, show_reproduction
    from .steps import claims_json, reproduce_report

    folders = _folders(wanted_reports(reports))
    wanted = Wanted(out=out, hosts=_hosts(host or [], folders), is_quick=quick, scale=_checked(scale))
    if write is not None and (write.is_dir() or not write.parent.is_dir()):
        raise UsageError(f"--write {write}: no file can be there; name one in a folder that exists")
    made = []
    with Watch(is_silent=as_json) as watch:
        for number, folder in enumerate(folders, 1):
            watch.report(folder.name, number, len(folders))
            made.append(
                reproduce_report(
                    folder,
                    wanted,
                    on_set=watch.begin,
                    on_start=watch.expect,
                    on_result=watch.advance,
                    on_done=watch.end,
                )
            )
            # After each report: what is done is written, whatever comes of the next one.
            if write is not None:
                write_replication(made[-1:], write, today=datetime.now(UTC).date())
        watch.total()
    if as_json:
        print_json(claims_json(made))
    else:
        for each in made:
            show_reproduction(each)
    if any(each.failed for each in made):
        raise typer.Exit(EXIT_CHECK_FAILED)


def _folders(numbers: list[int]) -> list[Path]:
    """Folders of the reports that were asked for; of all that have an experiment."""
    from .spec import EXPERIMENT_FILE

    written = [number for number in REPORTS if (report_folder(number) / EXPERIMENT_FILE).is_file()]
    for number in numbers:
        if number not in written:
            raise UsageError(
                f"report {number} has no {EXPERIMENT_FILE} yet; there are {', '.join(map(str, written))}"
            )
    return [report_folder(number) for number in dict.fromkeys(numbers or written)]


def _hosts(given: list[str], folders: list[Path]) -> tuple[str, ...]:
    """Names of hosts or of sets of runs, given apart or with commas."""
    from schedlab.hosts.choose import HOST_NAMES

    from .spec import read_experiment

    names = [part.strip() for value in given for part in value.split(",") if part.strip()]
    if given and not names:
        raise UsageError(f"--host '{given[0]}': name a host or a set of runs; left out, all are used")
    if {*names} <= {*HOST_NAMES}:
        return tuple(names)
    known = [*HOST_NAMES, *dict.fromkeys(name for folder in folders for name in read_experiment(folder).runs)]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--host {name}: there is no such host or set of runs{did_you_mean(name, known)}"
            )
    return tuple(names)


def _checked(scale: float | None) -> float | None:
    """A scale above 0."""
    if scale is not None and not 0 < scale <= 1000:
        raise UsageError(f"--scale must be above 0 and at most 1000 (got {scale:g})")
    return scale
