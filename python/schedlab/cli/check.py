# SPDX-License-Identifier: MIT
"""`schedlab check`: find the workload and the machine that break a policy; `schedlab debug`: look into a run.

Exit status: 0, no counter-example within the budget; 1, one was found, or the policy does not compile; 2, there was no
time for a world; 130, interrupted before one was found.
Read next: check/search.py.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, EXIT_INTERRUPTED, UnavailableError, UsageError, did_you_mean
from ..files import write_asked
from ..units import counted, parse_duration
from .answer import print_json, show_state
from .options import JsonOption

if TYPE_CHECKING:
    from ..check.save import Saved
    from ..check.search import Known, Report, Task
    from ..check.trial import NeverWorse
    from ..check.world import World
    from ..policy.build import BuiltPolicy


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(check)
    app.command()(debug)


METRIC, BY = "wakeup_p99", "20%"
INTERLEAVE_HELP = "With --races: run every schedule of at most N preemptions in a window of each world."
PROPERTY_HELP = "Of error, stall, lost, invariant, ignored-error, vtime, work, shares, priority, latency, inversion, deadlock, race, exit, renamed, scaled, more-cpus, consistency, worse; default: all, but for those of two runs."


def check(
    policy: Annotated[str, typer.Argument(help="A name, or a C file.")],
    budget: Annotated[str, typer.Option(help="How long to search, such as 60s.")] = "60s",
    worlds: Annotated[
        int | None, typer.Option(min=1, help="Also stop after so many worlds; rounded up to hundreds.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Keep to its tasks, and draw only machine, seed and knobs.")
    ] = None,
    properties: Annotated[
        str | None, typer.Option("--property", metavar="NAME,...", help=PROPERTY_HELP)
    ] = None,
    never_worse_than: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Also find where this policy does better, in --metric."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help=f"For --never-worse-than; default: {METRIC}.", show_default=False)
    ] = None,
    by: Annotated[
        str | None, typer.Option(help=f"How much worse is allowed; default: {BY}.", show_default=False)
    ] = None,
    races: Annotated[
        bool, typer.Option("--races", help="Let CPUs interleave within callbacks, and find lost updates.")
    ] = False,
    interleave: Annotated[str | None, typer.Option(metavar="all:N[@FROM-TO]", help=INTERLEAVE_HELP)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 1,
    is_all: Annotated[
        bool, typer.Option("--all", help="Use the whole budget; default: stop at the first failure.")
    ] = False,
    on_linux: Annotated[
        bool,
        typer.Option("--on-linux", help="Also run each failure in a real kernel, in QEMU; takes minutes."),
    ] = False,
    replay: Annotated[
        list[Path], typer.Option(help="Only this file that a check has written; may be given again.")
    ] = [],  # noqa: B006, Typer copies it
    corpus: Annotated[Path | None, typer.Option(help="Folder of such files, which are tried first.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for failures; default: out/check/POLICY.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a workload and a machine that break a policy, and show the smallest."""
    from ..check.on_linux import try_on_linux
    from ..check.save import found_in, read_world, save_all
    from ..check.search import search
    from ..hosts.choose import unavailable_reason

    again = [(read_world(path), found_in(path), path) for path in (*replay, *_worlds_in(corpus))]
    broken = {str(how["property"]) for _, how, _ in again}
    never_worse = _never_worse(never_worse_than, metric, by)
    task = _bounded(_task(policy, properties, never_worse, seed, workload, races, broken), interleave)
    built = task.built
    if on_linux and (reason := unavailable_reason("guest")):
        raise UnavailableError(f"--on-linux: {reason}")
    folder = out or Path("out/check") / built.policy.name
    known = [_known(*each, built) for each in again]
    if not (races or task.are_chosen or any(each.world.interleaving for each in known)):
        task = replace(task, properties=task.properties - {"race", "deadlock", "exit"})
    seconds = parse_duration(budget, place="--budget") / 1e9
    with _written_to(folder, junit) if not replay else contextlib.nullcontext():
        report = search(
            task, budget_seconds=0 if replay and not task.bound else seconds, n_worlds_max=worlds, finds_all=is_all,
            corpus=known, only_corpus=bool(replay), on_progress=partial(_show_progress, None if as_json else seconds),
        )  # fmt: skip
    _must_have_tried(report, built.policy.name)
    linux = try_on_linux if on_linux else None
    saved = save_all(report.found, built, folder, workload or "", linux)
    _answer(report, task, saved, junit, as_json=as_json)


def _answer(report: Report, task: Task, saved: list[Saved], junit: Path | None, *, as_json: bool) -> None:
    """Say what was found, and leave with its exit code."""
    from ..show.check import as_junit, show_report

    if as_json:
        print_json(_as_json(report, task, saved))
    else:
        show_report(report, task, saved)
    if junit is not None:
        write_asked("--junit", junit, as_junit(report, task))
    if report.found:
        raise typer.Exit(EXIT_CHECK_FAILED)
    if report.is_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _must_have_tried(report: Report, name: str) -> None:
    """UsageError: nothing was tried, so nothing can be said."""
    if not (report.n_worlds or report.is_interrupted):
        raise UsageError(
            f"no world has ended under {name} in {report.seconds:.0f} s, as where a callback does not return: "
            "give more with --budget"
        )


def _worlds_in(corpus: Path | None) -> list[Path]:
    """Files of a folder; UsageError where it has none."""
    paths = sorted(corpus.glob("*.toml")) if corpus else []
    if corpus and not paths:
        what = "has no .toml files" if corpus.is_dir() else "is no folder"
        raise UsageError(f"--corpus {corpus}: it {what}")
    return paths


@contextlib.contextmanager
def _written_to(folder: Path, junit: Path | None) -> Iterator[None]:
    """UsageError before a search, which takes long, where what it finds could not be written; it leaves no empty folder."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"{folder}: what is found could not be written there: {error.strerror}; name another folder with --out"
        ) from error
    try:
        if junit is not None and (junit.is_dir() or not junit.absolute().parent.is_dir()):
            what = "it is a folder" if junit.is_dir() else f"{junit.parent} is no folder"
            raise UsageError(f"--junit {junit}: {what}")
        yield
    finally:
        is_needed = junit is not None and junit.absolute().parent in [each.absolute() for each in made]
        with contextlib.suppress(OSError):  # what is not empty stays
            for each in [] if is_needed else made:
                each.rmdir()


def _known(world: World, how: dict[str, Any], path: Path, built: BuiltPolicy) -> Known:
    """A world that is tried again, with what it was found by: what was asked for then, as two runs always are."""
    from ..check.relations import RELATIONS
    from ..check.save import check_settings
    from ..check.search import Known

    broken = str(how["property"])
    is_asked = how.get("is_asked") or broken in RELATIONS or (broken == "inversion" and built.policy.priority)
    never_worse = None
    if compared := how.get("worse"):
        try:
            than, metric, share = str(compared["than"]), str(compared["metric"]), float(compared["share"])
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{path}: 'worse' in its first lines needs 'than', 'metric' and 'share'"
            ) from error
        never_worse = _compared(than, metric, share)
    return Known(check_settings(world, built), frozenset({broken} if is_asked else ()), never_worse)


def _task(
    policy: str,
    properties: str | None,
    never_worse: NeverWorse | None,
    seed: int,
    workload: str | None,
    races: bool,
    broken: set[str],
) -> Task:
    """What the options say of the policy and of what is held against it; `broken`: by worlds that are tried again."""
    from ..check.relations import RELATIONS
    from ..check.search import Task
    from ..policy.build import build_policy
    from ..policy.find import ENTITLEMENTS, load_policy
    from ..policy.invariants import invariants_of, is_defined_by_macro

    chosen = _properties(properties)
    loaded = load_policy(policy)
    for name, key in (
        ("shares", "shares"),
        ("priority", "priority"),
        ("inversion", "priority"),
        ("latency", "latency"),
    ):
        if properties is not None and name in chosen and getattr(loaded, key) is None:
            example = ENTITLEMENTS[key][2]
            raise UsageError(f"--property {name}: {policy} declares none; such as, in its header: {example}")
    if "vtime" in (chosen if properties is not None else broken):
        if is_defined_by_macro(loaded):
            loaded = replace(loaded, virtual_time=True)  # asked for, whatever the header says
        elif properties is not None:
            raise UsageError(
                f"--property vtime: {policy} defines its operations without SCX_OPS_DEFINE, so it is not tested"
            )
    if properties is not None and "invariant" in chosen and not invariants_of(loaded):
        raise UsageError(
            f"--property invariant: {policy} declares none; such as, in its header: @invariant n_queued >= 0"
        )
    if properties is not None and workload is not None and (two := sorted(chosen & {*RELATIONS})):
        raise UsageError(
            f"--property {two[0]}: not of a given workload: only worlds that are drawn have another run"
        )
    if properties is not None and "worse" in chosen and never_worse is None:
        raise UsageError("--property worse: say than which policy, with --never-worse-than")
    return Task(
        built=build_policy(loaded),
        properties=chosen - (frozenset() if never_worse else {"worse"}),
        seed=seed,
        never_worse=never_worse,
        are_chosen=properties is not None,
        given=None if workload is None else _given(workload),
        races=races,
    )


def _bounded(task: Task, interleave: str | None) -> Task:
    """With the schedules that `--interleave` names."""
    from ..check.schedules import parse_bound

    if interleave is None:
        return task
    if not task.races or task.never_worse:
        raise UsageError("--interleave: give it with --races, and without --never-worse-than")
    return replace(task, bound=parse_bound(interleave))


def _properties(given: str | None) -> frozenset[str]:
    """The properties that `--property` names; default: all."""
    from ..check.trial import PROPERTIES

    chosen = [*PROPERTIES] if given is None else [word.strip() for word in given.split(",")]
    for word in chosen:
        if word not in PROPERTIES:
            hint = did_you_mean(word, PROPERTIES)
            raise UsageError(f"--property {word}: unknown{hint}; known are {', '.join(PROPERTIES)}")
    return frozenset(chosen)


def _never_worse(policy: str | None, metric: str | None, by: str | None) -> NeverWorse | None:
    """The comparison that `--never-worse-than` asks for."""
    if policy is None:
        if metric is not None or by is not None:
            raise UsageError(f"--{'by' if metric is None else 'metric'}: give it with --never-worse-than")
        return None
    by = by or BY
    try:
        share = float(by.removesuffix("%")) / (100 if by.endswith("%") else 1)
    except ValueError as error:
        raise UsageError(f"--by {by}: give a share, such as 20%") from error
    if not 0 <= share < 1000:
        raise UsageError(f"--by {by}: give a share of 0 % or more")
    return _compared(policy, metric or METRIC, share)


def _compared(policy: str, metric: str, share: float) -> NeverWorse:
    """A comparison; UsageError where nothing is better or worse in that metric."""
    from ..check.trial import NeverWorse
    from ..metrics.dictionary import find_metric
    from ..policy.build import build_policy
    from ..policy.find import load_policy

    found = find_metric(metric)
    if found.level != "run" or found.direction == "none":
        raise UsageError(f"--metric {metric}: it is not one of a run of which less or more is better")
    # A millisecond is a tick: below it no wait is too long for anybody.
    floor = 1e6 if found.unit == "ns" else 0.0
    return NeverWorse(build_policy(load_policy(policy)), metric, share, floor)


def _given(name: str) -> World:
    """The world of a workload that is given."""
    from ..check.world import World
    from ..workload.find import load_workload

    workload = load_workload(name)
    return World(n_cpus=workload.cpus, topology="", tick_ns=workload.tick_ns, groups=(), horizon_ns=0,
                 given=workload, n_cpus_min=max(1, workload.cpus_min),
                 events=workload.events, interleaving=workload.interleaving)  # fmt: skip


def _show_progress(seconds: float | None, report: Report) -> None:
    """What is shown while a search of so many seconds goes on."""
    if seconds is not None:
        so_far = [f"{counted(len(report.found), 'failure')}"] if report.found else []
        so_far.append(f"longest wait {report.longest_wait_ns / 1e6:.0f} ms")
        rate = report.n_worlds / max(report.seconds, 0.001)
        show_state(
            f"{report.n_worlds:,} worlds, {rate:,.0f}/s, {', '.join(so_far)} ({report.seconds:.0f} of {seconds:.0f} s)"
        )


def _as_json(report: Report, task: Task, saved: list[Saved]) -> dict[str, Any]:
    """A report for programs."""
    from ..show.check import unfilled

    return {
        "policy": task.built.policy.name,
        "properties": sorted(task.held),
        "worlds": report.n_worlds,
        "repeated": report.n_repeated,
        "interleaved": report.n_interleaved,
        "windows": [
            {
                "interleave": str(each.bound),
                "schedules": each.n_known,
                "is_counted": each.is_counted,
                "run": each.n_run,
                "is_complete": each.is_complete,
            }
            for each in report.covered
        ],
        "lines": report.coverage and asdict(report.coverage),
        "cpus": sorted(report.cpus),
        "roles": sorted(report.roles),
        "events": sorted(report.events),
        "seconds": report.seconds,
        "longest_wait_ns": report.longest_wait_ns,
        "is_interrupted": report.is_interrupted,
        "defect": report.defect or None,
        "unfilled": unfilled(task.built.policy),
        "found": [
            {
                "property": each.smallest.finding.broken,
                "text": each.smallest.finding.text,
                "times_seen": each.n_seen,
                "cpus": each.smallest.world.n_cpus,
                "tasks": each.smallest.world.n_tasks,
                "size_first": each.first.size,
                "size": each.smallest.world.size,
                "trials": each.smallest.n_trials,
                "workload": str(files.world),
                "interleaving": each.smallest.world.interleaving or None,
                "events": [event.sentence for event in each.smallest.world.events],
                "strategy_first": each.strategy or None,
                "decided": each.decided and asdict(each.decided),
                "directory": files.run and str(files.run),
                "run_command": files.run_command,
                "replay_command": files.replay_command,
                "on_linux": files.on_linux or None,
            }
            for each, files in zip(report.found, saved, strict=True)
        ],
    }


def debug(
    run: Annotated[Path, typer.Argument(help="Folder of one run of the simulator.")],
    at: Annotated[
        str | None,
        typer.Option(help="A simulated time, such as 20ms; default: where the run failed, or its beginning."),
    ] = None,
    commands: Annotated[
        list[str],
        typer.Option("--do", metavar="COMMAND", help="Do this in gdb, and end; may be given again."),
    ] = [],  # noqa: B006, Typer copies it
) -> None:
    """Open gdb on the policy of a run, at a simulated time.

    In gdb: callback [NAME] (on to the policy's next callback), reverse-callback (back to the one before), at TIME,
    machine (CPUs, queues and tasks), and all that gdb has.
    """
    import os

    from ..check.debug import gdb_words

    words = gdb_words(run, None if at is None else parse_duration(at, place="--at"), commands)
    sys.stdout.flush()
    os.execv(words[0], words)
