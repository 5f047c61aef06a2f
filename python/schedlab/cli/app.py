# SPDX-License-Identifier: MIT
"""The command `schedlab`.

Each command reads its arguments, calls one function of the package and shows
what it returns. Modules that take long to import (NumPy, Polars, Rich's tables)
are imported by the command that needs them, so that `--help` answers at once.

Must stay true: with `--json`, standard output carries one JSON object and
nothing else, `{"error": ...}` where there is no result. Exit codes: 0 good, 1 ran but a check failed, 2 usage or spec,
3 backend unavailable.
Read next: runs/run.py, behind `schedlab run`; show/tables.py, which draws the tables.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..errors import (
    EXIT_CHECK_FAILED,
    EXIT_GOOD,
    EXIT_INTERRUPTED,
    EXIT_UNAVAILABLE,
    SchedlabError,
    SpecError,
    UsageError,
)
from ..paths import command_line, in_checkout
from ..runs.folders import fresh_folder
from . import bench, check, formats, guest, record, whatif
from .answer import print_json
from .grade import grade
from .group import Group
from .load import load
from .new import new
from .options import (
    JsonOption,
    OutOption,
    SettingsOption,
    complete_policy,
    complete_workload,
    split_names,
    with_options,
)
from .pictures import explain, gantt, trace
from .playground import playground
from .quiz import quiz
from .report import report, show_page
from .top import top
from .verify import verify

if TYPE_CHECKING:
    from ..runs.run import RunSet

#: What Typer raises about the words of a command line; it has no public name for it.
WordsError: Any = typer.BadParameter.__base__


app = typer.Typer(
    name="schedlab",
    cls=Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from .. import __version__

        print(f"schedlab {__version__}")
        raise typer.Exit()


@app.callback()
def schedlab(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Write a CPU scheduler once, as a Linux sched_ext policy in C; run, measure and compare it."""


WorkloadsArgument = Annotated[
    list[str],
    typer.Argument(metavar="WORKLOAD", help="Names or TOML files.", autocompletion=complete_workload),
]
PoliciesOption = Annotated[
    list[str],
    typer.Option(
        "--policy", "-p", help="Names or C files, with commas between; 'all'.", autocompletion=complete_policy
    ),
]
LoaderOption = Annotated[
    list[str],
    typer.Option(
        "--loader",
        metavar="COMMAND",
        help="guest: a scheduler's own program, such as './scx_lavd --performance'; beside or instead of policies.",
    ),
]
BaselineOption = Annotated[
    str | None, typer.Option(metavar="POLICY", help="What all others are compared with; default: the first.")
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        metavar="dask://HOST:PORT",
        help="A Dask scheduler whose workers do the runs; dask://local starts one here.",
    ),
]


def main() -> None:
    """Run the command line and leave with its exit code."""
    # A terminal that cannot show a character gets a mark instead of a traceback.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(app(standalone_mode=False) or EXIT_GOOD)
    except WordsError as error:
        error.show()
        _leave_with_error("UsageError", error.format_message(), error.exit_code)
    except SchedlabError as error:
        print(f"error: {error}", file=sys.stderr)
        more = {"faults": [asdict(fault) for fault in error.faults]} if isinstance(error, SpecError) else {}
        _leave_with_error(type(error).__name__, str(error), error.exit_code, **more)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        _leave_with_error("Interrupted", "interrupted", EXIT_INTERRUPTED)
    except UnicodeEncodeError as error:
        # A command's own words may be any bytes; what becomes a path of ours, a name in JSON, may not.
        words = [word for word in sys.argv if word.encode(errors="replace").decode() != word]
        message = f"{' '.join(words) or error.object!r}: a name that is not UTF-8; choose another"
        print(f"error: {message}", file=sys.stderr)
        _leave_with_error("UsageError", message, UsageError.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, which is its right.
        sys.stderr.close()
        sys.exit(EXIT_GOOD)
    except OSError as error:
        # What failed in the work itself is a SchedlabError: this is our own output.
        print(f"error: cannot write the output: {error}", file=sys.stderr)
        sys.exit(EXIT_CHECK_FAILED)


def _leave_with_error(kind: str, message: str, exit_code: int, **more: object) -> NoReturn:
    """Leave; with `--json` standard output gets the error, since it got nothing else."""
    if "--json" in sys.argv[1:]:
        print_json({"error": {"kind": kind, "message": message, "exit_code": exit_code, **more}})
    sys.exit(exit_code)


@app.command()
@with_options
def run(
    workloads: WorkloadsArgument,
    policy: PoliciesOption = [],  # noqa: B006, Typer copies it
    loader: LoaderOption = [],  # noqa: B006, Typer copies it
    seeds: Annotated[
        int | None,
        typer.Option(help="How many seeds; default: 20 where the simulator compares policies, else 1."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed; 0: no jitter.")] = 1,
    baseline: BaselineOption = None,
    settings: SettingsOption = [],  # noqa: B006, Typer copies it
    out: OutOption = None,
    executor: ExecutorOption = None,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Run workloads under policies and compare the results."""
    from ..policy.find import list_policies
    from ..runs.remote import open_executor
    from ..runs.run import make_plan, run_plan

    policies = [
        name for given in split_names(policy) for name in (list_policies() if given == "all" else [given])
    ] + [f"loader:{command}" for command in loader]
    plan = make_plan(
        workloads,
        policies,
        out or fresh_folder(),
        n_seeds=seeds,
        first_seed=seed,
        baseline=baseline,
        settings=settings,
        command_line=command_line(),
        **options,
    )
    with open_executor(executor, host=plan.execution.host) as workers:
        if as_json:
            result = run_plan(plan, executor=workers)
        else:
            from ..show.progress import Progress

            with Progress() as progress:
                result = run_plan(
                    plan, executor=workers, on_start=progress.expect, on_result=progress.advance
                )
    _print_runs(result, as_json=as_json)
    _leave_with(result)


def _print_runs(result: RunSet, *, as_json: bool) -> None:
    """A set of runs, for a program or for a person."""
    if as_json:
        print(result.as_json())
        return
    from ..show.tables import show_runs

    show_runs(result)


def _leave_with(result: RunSet) -> None:
    """Exit code of a set of runs."""
    if result.is_interrupted:
        print(f"interrupted; {len(result.runs)} finished runs are in {result.out}", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED)
    if not result.is_good:
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def policies(
    name: Annotated[
        str | None,
        typer.Argument(help="One policy in full; a name or a C file.", autocompletion=complete_policy),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the policies with their knobs."""
    from ..policy.find import list_policies
    from .listing import describe_policy

    entries = [describe_policy(each) for each in ([name] if name else list_policies())]
    if as_json:
        print_json({"policies": entries})
    else:
        from ..show.tables import show_policies

        show_policies(entries)
    if any(entry["error"] for entry in entries):
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def workloads(
    name: Annotated[
        str | None,
        typer.Argument(help="One workload in full; a name or a file.", autocompletion=complete_workload),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the workloads, or show one with its params and tasks."""
    from ..workload.find import workload_names
    from .listing import describe_workload

    entries = [describe_workload(each) for each in ([name] if name else workload_names())]
    if as_json:
        print_json({"workloads": entries})
    elif name:
        from ..show.tables import show_workload

        show_workload(entries[0])
    else:
        from ..show.tables import show_workloads

        show_workloads(entries)


@app.command()
def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric in full.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain every metric: unit, formula, direction, source."""
    from ..metrics.dictionary import DICTIONARY, find_metric

    entries = [asdict(m) for m in ([find_metric(name)] if name else DICTIONARY.values())]
    if as_json:
        print_json({"metrics": entries})
    else:
        from ..show.tables import show_metrics

        show_metrics(entries)


@app.command()
def schema() -> None:
    """Print the JSON Schema of `run.json` and of what `run --json` prints."""
    from ..model import json_schema

    print(json.dumps(json_schema(), indent=1))


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="Folder of runs: what was.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Folder of runs: what is now.")],
    fail_if: Annotated[
        list[str],
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit 1 where it holds: 'wakeup_p99 > +5%', 'makespan > +2ms', 'fairness_jain < 0.9'.",
        ),
    ] = [],  # noqa: B006, Typer copies it
    confidence: Annotated[float, typer.Option(help="Of verdicts and of all conditions.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the runs of two folders, seed by seed; fail a build on a condition."""
    from ..runs.gate import compare_folders

    result = compare_folders(before, after, conditions=fail_if, confidence=confidence, seed=seed)
    if junit is not None:
        from ..files import write_asked
        from ..runs.junit import comparison_as_junit

        write_asked("--junit", junit, comparison_as_junit(result))
    if as_json:
        print_json(result)
    else:
        from ..show.tables import show_comparison

        show_comparison(result)
    if result["is_failed"]:
        raise typer.Exit(EXIT_CHECK_FAILED)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Say what works on this machine, and how to get the rest to work."""
    from .doctor import examine

    findings = examine()
    if as_json:
        print_json({"checks": findings})
    else:
        from ..show.tables import show_findings

        show_findings(findings)
    if any(finding["needed"] and finding["status"] != "ok" for finding in findings):
        raise typer.Exit(EXIT_UNAVAILABLE)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("out/demo"),
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Compare the reports' schedulers on the reports' workloads."""
    from ..runs.run import run_plan
    from .demo import demo_plan

    plan = demo_plan(out=out, n_seeds=seeds)
    if as_json:
        result = run_plan(plan)
        print(result.as_json())
    else:
        from ..show.progress import Progress
        from ..show.tables import show_demo

        with Progress() as progress:
            result = run_plan(plan, on_start=progress.expect, on_result=progress.advance)
        show_demo(result)
        if result.runs:
            show_page(result, workload=result.runs[0]["workload"])
    _leave_with(result)


for command in (grade, load, verify, new, gantt, trace, explain, playground, quiz, report, top):
    app.command()(command)
for module in (bench, check, formats, guest, record, whatif):
    module.register(app)
if in_checkout() and importlib.util.find_spec("checkout"):
    importlib.import_module("checkout.commands").register(app)

if __name__ == "__main__":
    main()
