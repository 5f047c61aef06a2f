# SPDX-License-Identifier: MIT
"""`schedlab whatif`: which policy, on how many CPUs, for a recording or a workload.

`schedlab recommend` is the same command; `schedlab tune` asks which knobs.

Read next: measure/whatif.py, measure/tune.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED
from .answer import print_json
from .options import JsonOption, OutOption, SettingsOption, split_names, with_options

SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE|RUN|WORKLOAD", help="A trace to import, the folder of a run, or a workload."
    ),
]
ConfirmOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=100,
        metavar="RUNS",
        help="Run the recorded command so often under the best class of Linux.",
    ),
]
MetricsOption = typer.Option(metavar="METRIC", help="Such as wakeup_p99, throughput; several give a front.")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command = with_options(whatif)
    app.command()(command)
    app.command("recommend")(command)
    app.command()(with_options(tune))


def whatif(
    subject: SubjectArgument,
    policy: Annotated[
        list[str],
        typer.Option("--policy", "-p", help="Names or C files, with commas between; default: all there are."),
    ] = [],  # noqa: B006
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric", "-m", help="What to rank by, then what to show; default: wakeup_p99 and others."
        ),
    ] = [],  # noqa: B006
    cpus: Annotated[str, typer.Option(metavar="4,8", help="Other numbers of CPUs to try.")] = "",
    load: Annotated[
        str, typer.Option(metavar="2,4", help="Times the load: all of it again, beside itself.")
    ] = "",
    weight: Annotated[
        str,
        typer.Option(
            metavar="GROUP=2", help="Times the weight of the tasks of a group; several with commas."
        ),
    ] = "",
    settings: SettingsOption = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Variations of the work; the first is as it was recorded.")] = 10,
    confirm: ConfirmOption = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Rank policies and machines on a recording, once its replay is held against it.

    The ranking is the simulator's. With another --host the first three are run there, too.
    """
    from ..measure.whatif import METRICS, open_subject, what_if
    from ..paths import command_line
    from ..report.write import write_report
    from ..runs.folders import fresh_folder
    from ..show.progress import Progress

    folder = out or fresh_folder()
    asked = open_subject(subject, folder)
    given: dict[str, Any] = {
        "cpus": cpus,
        "load": load,
        "weight": weight,
        "settings": settings,
        "n_seeds": seeds,
        "n_confirm": confirm,
    }
    with Progress() as progress:
        found, result = what_if(
            asked,
            [name for name in split_names(policy) if name != "all"],
            folder,
            metrics=split_names(metric) or METRICS,
            command_line=command_line(),
            on_start=progress.expect,
            on_result=progress.advance,
            **given,
            **options,
        )
    page = write_report(folder, folder / "report.html").path
    if as_json:
        print_json(found | {"page": str(page)})
    else:
        from ..show.whatif import show_what_if

        show_what_if(found)
        print(f"Page: {page}; open it in any browser.")
    if result.is_interrupted or not found["ranking"]:
        raise typer.Exit(EXIT_CHECK_FAILED)


def tune(
    subject: SubjectArgument,
    policy: Annotated[str, typer.Option("--policy", "-p", help="Whose knobs to search; a name or a C file.")],
    minimise: Annotated[list[str], MetricsOption] = [],  # noqa: B006
    maximise: Annotated[list[str], MetricsOption] = [],  # noqa: B006
    subject_to: Annotated[
        list[str],
        typer.Option(
            "--subject-to", metavar="CONDITION", help="'throughput > -2%', against the default knobs."
        ),
    ] = [],  # noqa: B006
    trials: Annotated[int, typer.Option(min=1, max=100_000, help="Settings to try.")] = 64,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds of each setting.")] = 5,
    held_out: Annotated[
        int, typer.Option(min=2, max=1000, help="Seeds for the answer, which the search has not seen.")
    ] = 10,
    knob: Annotated[
        list[str],
        typer.Option(
            "--knob", metavar="KNOB[=LOW..HIGH]", help="Search these only, such as slice_ns=1ms..20ms."
        ),
    ] = [],  # noqa: B006
    settings: SettingsOption = [],  # noqa: B006
    seed: Annotated[int, typer.Option(min=0, help="Of the search.")] = 1,
    confirm: ConfirmOption = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder; the same command goes on there. Default: out/<time>.")
    ] = None,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Search the knobs of a policy, and test the best with seeds that the search has not seen."""
    from ..measure import tune as search
    from ..measure.whatif import open_subject
    from ..paths import command_line
    from ..report.write import write_report
    from ..runs.folders import fresh_folder
    from ..show.progress import Progress

    search.need_optuna()
    counts = {"trials": trials, "seeds": seeds, "held_out": held_out, "seed": seed}
    question = search.read_question(split_names(minimise), split_names(maximise), subject_to, **counts)
    folder = out or fresh_folder()
    given: dict[str, Any] = {"settings": settings, "knobs": split_names(knob), "n_confirm": confirm}
    with Progress() as progress:
        found, _ = search.tune(
            open_subject(subject, folder),
            policy,
            folder,
            question,
            command_line=command_line(),
            on_start=progress.expect,
            on_result=progress.advance,
            **given,
            **options,
        )
    page = write_report(folder, folder / "report.html").path if found["front"] else None
    if as_json:
        print_json(found | {"page": page and str(page)})
    else:
        from ..show.tune import show_tuned

        show_tuned(found)
        if page:
            print(f"Page of the held-out runs: {page}; open it in any browser.")
