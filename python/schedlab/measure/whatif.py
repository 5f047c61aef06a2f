# SPDX-License-Identifier: MIT
"""Rank policies on a recording or a workload, as it is and changed: other CPUs, more load, other weights.

        subject -> replay as recorded -> fidelity -> all alternatives, seed by seed -> ranking -> who pays -> best again
                                                                                                -> the first three on another host

An alternative is a policy with its knobs under a change, of which the first is none. The baseline is the policy that
stands for what the recording was made under, unchanged; every alternative is held against it, seed by seed. Seed 1 is the
recording as it is; others vary its lengths (program/vary.py). DIR/whatif.json holds what was found, and the page shows it.

Invariant: fidelity comes before the ranking; where it is not to be trusted, or nothing is better, nothing is advised; what
is advised was better with seeds that did not choose it, too.
Read next: fidelity.py; report/what_if.py and show/whatif.py, which draw it.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import NotFoundError, UsageError, did_you_mean
from ..files import write_json
from ..hosts.choose import HOST_NAMES, ON_ALL, VIRTUAL, engine_of, host_named, open_host
from ..metrics.dictionary import DICTIONARY, find_metric
from ..model import CPUS_MAX, OPTIONS
from ..policy.build import build_policy
from ..policy.find import list_policies, load_policy, show_value
from ..program.file import read_program
from ..report.by_task import is_disturbed
from ..runs.case import folder_name
from ..runs.compare import compare_runs, compare_values
from ..runs.plan import Plan
from ..runs.run import RunSet, make_plan, run_plan, write_list
from ..stats.decide import HEADLINE, decide, entry
from ..stats.inference import CONFIDENCE, compare_paired
from ..units import format_duration
from ..workload.find import load_workload
from ..workload.model import Workload
from .confirm import class_of, confirm, record_again, recorded_command
from .fidelity import TOO_FAR, Under, fair_knobs, fidelity_of, grade_metric, recorded_under
from .forecast import forecast
from .recording import import_trace
from .replay import keep_recorded, load_recorded, read_run

WHATIF_FILE = "whatif.json"
#: By how much of itself each recorded burst and sleep varies with seeds above 1.
VARY_SHARE = 0.03
SEEDS = 10
#: Most of a change that is tried.
LOAD_MAX, WEIGHT_MAX = 64, 100
#: An improvement of the mean by less than this is told apart by enough seeds, and matters to no user.
MATTERS_MIN = 0.02
#: What stands for the scheduler that a machine has anyway: the baseline where nothing was recorded.
LINUX_DEFAULT = "eevdf"
#: How many of the ranking another host runs, beside the baseline.
CONFIRMED_MAX = 3
METRICS = ("wakeup_ns_p99", "turnaround_ns_mean", "makespan_ns")
_WORKLOAD_FILES = (".toml", ".csv", ".json")

#: Of each run: group of tasks to how many they are, and what they waited in total and at most.
Waits = dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class Subject:
    """What is asked about."""

    workload: Workload  #: What runs; of a recording its replay.
    run: dict[str, Any] = field(default_factory=dict)  #: `run.json` of the recording; empty for a workload.
    folder: Path | None = None  #: The recording.


@dataclass(frozen=True)
class Alternative:
    """A policy under a change, and its good runs by seed."""

    policy: str
    change: str
    cpus: int
    runs: dict[int, dict[str, Any]]
    waits: dict[int, Waits]
    error: str | None = None


def open_subject(name: str, out: Path) -> Subject:
    """Find what a user names: the folder of a run, a trace, or a workload."""
    path = Path(name)
    if path.is_file() and path.suffix not in _WORKLOAD_FILES:
        path = out / "recording"
        run = import_trace(Path(name), path)
        if run["status"] != "ok":
            raise UsageError(f"{name}: cannot be replayed: {run['error']}")
    elif not path.is_dir():
        try:
            return Subject(load_workload(name))
        except NotFoundError as error:
            raise NotFoundError(f"{name}: no folder of a run, no trace, no workload: {error}") from error
    workload = replace(load_recorded(path), vary_share=VARY_SHARE)
    return Subject(workload, read_run(path / "run.json"), path)


def read_metrics(names: Iterable[str]) -> list[str]:
    """Look metrics up that alternatives can be ranked by, of whole runs."""
    found = [find_metric(name) for name in names]
    for metric in found:
        if metric.level != "run" or metric.direction == "none":
            raise UsageError(
                f"--metric {metric.name}: no ranking by it: {metric.formula}; neither way is better"
            )
    return list(dict.fromkeys(metric.name for metric in found))


def read_cpus(text: str, workload: Workload) -> list[int]:
    """Read the numbers of CPUs to try, besides the subject's own, which is the first."""
    own = max(workload.cpus, workload.cpus_min, 1)
    found = [own]
    for part in filter(None, (part.strip() for part in text.split(","))):
        number = int(part) if part.isascii() and part.isdecimal() else 0
        if not max(1, workload.cpus_min) <= number <= CPUS_MAX:
            raise UsageError(
                f"--cpus {text}: '{part}' must be a number of CPUs from {max(1, workload.cpus_min)} to {CPUS_MAX}"
            )
        found.append(number)
    return list(dict.fromkeys(found))


def read_changes(workload: Workload, cpus: str, load: str, weight: str) -> dict[str, tuple[str, Workload]]:
    """The work as it is and changed, by its name: what the change is, in words, and the work."""
    _, *others = read_cpus(cpus, workload)
    found = {workload.name: ("", workload)}

    def add(name: str, words: str, **changed: Any) -> None:
        changed["name"] = f"{workload.name}-{name}"  # another folder
        found[changed["name"]] = words, replace(workload, **changed)

    for n_cpus in others:
        add(f"on-{n_cpus}-cpus", f"on {n_cpus} CPU{'s' * (n_cpus > 1)}", cpus=n_cpus)
    for part in filter(None, map(str.strip, load.split(","))):
        copies = int(part) if part.isascii() and part.isdecimal() else 0
        if not 2 <= copies <= LOAD_MAX:
            raise UsageError(f"--load {load}: '{part}' must be how many times the load, from 2 to {LOAD_MAX}")
        add(f"load-{copies}", f"at {copies} times the load", copies=copies)
    names = [task.name for task in workload.tasks]
    names += read_program(workload.program).names.values() if workload.program else ()
    for part in filter(None, map(str.strip, weight.split(","))):
        group, _, text = part.partition("=")
        mine = {name for name in names if group in (name, group_of(name))}
        cgroups = [each.name for each in workload.groups]
        if not mine and group not in cgroups:
            near = did_you_mean(group, [*cgroups, *map(group_of, names)])
            raise UsageError(f"--weight {weight}: no group of tasks is named '{group}'{near}")
        try:
            factor = float(text)
        except ValueError:
            factor = 0.0
        if not 1 / WEIGHT_MAX <= factor <= WEIGHT_MAX:
            raise UsageError(
                f"--weight {weight}: '{part}' must be GROUP=TIMES, such as {group}=2, from 0.01 to {WEIGHT_MAX}"
            )
        words = f"with {factor:g} times the weight of {group}"
        heavier = [
            replace(each, weight=min(max(round(each.weight * factor), 1), 10_000))
            if each.name == group
            else each
            for each in workload.groups
        ]
        # A cgroup's weight is its own; tasks of a name have theirs.
        changed = {"groups": tuple(heavier)} if group in cgroups else {"weights": dict.fromkeys(mine, factor)}
        add(f"{folder_name(group)}-weight-{factor:g}", words, **changed)
    return found


def what_if(
    subject: Subject,
    policies: Sequence[str],
    out: Path,
    *,
    metrics: Sequence[str] = METRICS,
    cpus: str = "",
    load: str = "",
    weight: str = "",
    settings: Sequence[str] = (),
    n_seeds: int = SEEDS,
    n_confirm: int = 0,
    measure: Callable[[str], dict[str, Any]] | None = None,
    command_line: str = "",
    on_start: Callable[[int], None] | None = None,
    on_result: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> tuple[dict[str, Any], RunSet]:
    """Rank alternatives; returns what `whatif.json` has, and the runs.

    With `n_confirm` the best that is a class of Linux is measured as often: the recorded command anew, or what `measure`
    gives for a class. The ranking is the simulator's; with another `host` among the options the first three are run there, too.
    """
    if n_confirm and measure is None:
        recorded_command(subject.run)  # else it is refused before all the work
        measure = partial(record_again, subject.run, out=out / "confirm")
    asked = read_metrics(metrics)
    under = recorded_under(subject.run, subject.folder) if subject.run else None
    names = list(policies) or sorted(list_policies(), key=lambda name: name != LINUX_DEFAULT)
    if under is not None:
        names = [under.policy, *(name for name in names if not _is_same(name, under.policy))]
        # Linux's fair class has the recorded machine's slice, as baseline and as an alternative.
        fair = fair_knobs(subject.run) if "eevdf" in names and subject.run.get("host") == "linux" else ()
        settings = _with_defaults(settings, under.settings or fair)
        for word, values in under.options.items():
            options.setdefault(word, values)
    changes = read_changes(subject.workload, cpus, load, weight)
    workloads = [workload for _, workload in changes.values()]
    options, there = _split(options)
    given = {"n_seeds": n_seeds, "settings": settings, "command_line": command_line}
    host_plan = make_plan(workloads[:1], names, out, **given, **there) if there else None
    plan = make_plan(workloads, names, out, **given, **options)
    if host_plan:
        open_host(host_plan.execution.host)  # else it is refused after all the work
    runs, waits = _run_all(plan, on_start, on_result)
    if subject.folder is not None:
        keep_recorded(subject.folder, out, subject.workload)
    alternatives = _alternatives(
        runs.runs, waits, n_seeds, {name: words for name, (words, _) in changes.items()}
    )
    baseline = alternatives[0]
    found: dict[str, Any] = {
        "subject": subject.workload.name, "is_recording": subject.folder is not None, "cpus": baseline.cpus,
        "metrics": asked, "seeds": n_seeds, "vary_share": subject.workload.vary_share,
        "baseline": baseline.policy, "confidence": CONFIDENCE, "fidelity": None, "ranking": [],
        "failed": [{"policy": each.policy, "change": each.change, "error": each.error} for each in alternatives if each.error],
        "warnings": _warnings(runs.comparisons, asked) + _window_warnings(subject.workload, workloads), "winner": None, "confirmed": None, "load": None, "advice": "",
        "measured": None, "on_host": None,
    }  # fmt: skip
    if baseline.error:
        found["advice"] = f"none: under {baseline.policy}, which all others are held against, runs failed"
    else:
        if under is not None:
            measured = replay_as_recorded(subject, under, options)
            found["fidelity"] = fidelity_of(
                subject.run, subject.folder, under, measured, [*baseline.runs.values()], asked, group_of
            )
        _rank(found, [each for each in alternatives if not each.error])
        _forecast(found, subject, [each for each in alternatives if not each.error])
        _advise(found, plan, partial(_confirm, found, plan, on_start, on_result))
        _hold_there(found, host_plan, on_start, on_result, tick_ns=runs.runs[0]["tick_ns"])
        if n_confirm and measure:
            _measure(found, measure, n_confirm)
    write_json(out / WHATIF_FILE, found)
    return found, runs


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the simulator, which ranks, and of the host that is asked for; none where that is the simulator.

    What neither takes both have, so that it is refused.
    """
    name = options.get("host") or "sim"
    if name in VIRTUAL or name not in HOST_NAMES:
        return dict(options), {}
    of_sim, of_host = (ON_ALL | host_named(each).options for each in ("sim", name))
    field_of = {option.word: field for field, option in OPTIONS.items()}
    mine, theirs = (
        {word: value for word, value in options.items() if field_of.get(word) not in left_out}
        for left_out in (of_host - of_sim, of_sim - of_host)
    )
    return mine | {"host": "sim"}, theirs


def _is_same(name: str, other: str) -> bool:
    return name == other or Path(name).resolve() == Path(other).resolve()


def _with_defaults(settings: Sequence[str], defaults: Sequence[str]) -> list[str]:
    """Settings with the recording's own value of each knob first: the baseline is the first variant."""
    mine = dict(text.partition("=")[::2] for text in settings)
    for name, value in (text.partition("=")[::2] for text in defaults):
        values = [each.strip() for each in mine.get(name, "").split(",") if each.strip()]
        mine[name] = ",".join(dict.fromkeys([value, *values]))
    return [f"{name}={value}" for name, value in mine.items()]


# ---- the runs ----------------------------------------------------------------


def _run_all(
    plan: Plan, on_start: Callable[[int], None] | None, on_result: Callable[[dict[str, Any]], None] | None
) -> tuple[RunSet, dict[Any, Waits]]:
    """Do the runs of seed 1, which are kept to be looked at, and those of the others, of which numbers are kept."""
    waits: dict[Any, Waits] = {}

    def keep(run: dict[str, Any], columns: dict[str, Any]) -> None:
        waits[run["policy"], run["workload"], run["seed"]] = waits_of(columns)

    total = len(plan.policies) * len(plan.workloads) * plan.n_seeds
    if on_start:
        on_start(total)
    first = run_plan(replace(plan, n_seeds=1), on_result=on_result, on_tasks=keep)
    if plan.n_seeds == 1 or first.is_interrupted:
        return first, waits
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        others = replace(plan, first_seed=2, n_seeds=plan.n_seeds - 1, is_kept=False, out=Path(scratch))
        rest = run_plan(others, on_result=on_result, on_tasks=keep)
    for run in rest.runs:
        run["directory"] = str(plan.out)
    place = {key: i for i, key in enumerate(dict.fromkeys((r["workload"], r["policy"]) for r in first.runs))}
    runs = sorted(first.runs + rest.runs, key=lambda r: (place[r["workload"], r["policy"]], r["seed"]))
    result = RunSet(runs, compare_runs(runs), plan.out, rest.is_interrupted)
    write_list(result)
    return result, waits


def group_of(name: str) -> str:
    """Name of the group that a task belongs to: its own without numbers at the end.

    >>> group_of("worker-12"), group_of("kworker/u8:3"), group_of("cc1"), group_of("7")
    ('worker', 'kworker/u', 'cc', '7')
    """
    return re.sub(r"[-_:#./]*\d+(?:[-_:#./]+\d+)*[A-Z]?$", "", name) or name


def waits_of(columns: dict[str, Any]) -> Waits:
    """How long the tasks of each group waited for a CPU."""
    found: Waits = {}
    waited, longest = columns["wait_ns"].tolist(), columns["wait_ns_max"].tolist()
    for name, wait_ns, max_ns in zip(columns["name"], waited, longest, strict=True):
        group = group_of(str(name))
        nr, total_ns, most_ns = found.get(group, (0, 0, 0))
        found[group] = nr + 1, total_ns + wait_ns, max(most_ns, max_ns)
    return found


def _alternatives(
    runs: list[dict[str, Any]], waits: dict[Any, Waits], n_seeds: int, changes: Mapping[str, str]
) -> list[Alternative]:
    """Runs by policy and change, in the order of the plan: the baseline is the first."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["policy"], run["workload"]), []).append(run)
    found = []
    for (policy, workload), mine in groups.items():
        bad = [run for run in mine if run["status"] != "ok"]
        error = bad[0]["error"] if bad else None
        if bad and bad[0]["error_kind"] != "compile":
            error = f"{len(bad)} of {n_seeds} runs failed, with seed {bad[0]['seed']}: {error}"
        by_seed = {run["seed"]: run for run in mine if run["status"] == "ok"}
        theirs = {
            seed: waits[policy, workload, seed] for seed in by_seed if (policy, workload, seed) in waits
        }
        found.append(Alternative(policy, changes[workload], mine[0]["cpus"], by_seed, theirs, error))
    return found


def _again(plan: Plan, chosen: Sequence[str], **changed: Any) -> Plan:
    """The plan for the work as it is and some of the policies, by their names with knobs; nothing is kept."""
    bases = {name.partition(":")[0] for name in chosen}
    names = [name for name in plan.policies if load_policy(name).name in bases]
    settings = [text for text in plan.settings if text.partition(".")[0] in bases]
    return replace(
        plan, workloads=plan.workloads[:1], policies=names, settings=settings, is_kept=False, **changed
    )


def _confirm(
    found: dict[str, Any],
    plan: Plan,
    on_start: Callable[[int], None] | None,
    on_result: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any] | None:
    """Run the baseline and the best with seeds that have not chosen it; None where runs failed or lack a metric."""
    chosen = [found["baseline"], found["winner"]]
    seeds = max(found["seeds"], SEEDS)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        fresh = _again(plan, chosen, first_seed=plan.n_seeds + 1, n_seeds=seeds, out=Path(scratch))
        done = run_plan(fresh, on_start=on_start, on_result=on_result)
    if done.is_interrupted:
        raise KeyboardInterrupt
    sides = [[run for run in done.runs if run["policy"] == name and run["status"] == "ok"] for name in chosen]
    values = [[[run["metrics"].get(m) for run in side] for m in found["metrics"]] for side in sides]
    if any(len(side) < seeds for side in sides) or None in (
        v for side in values for row in side for v in row
    ):
        return None
    before, after = (np.array(side, float) for side in values)
    metrics = compare_values(before, after, found["metrics"], headlines=found["metrics"])
    decide(metrics.values(), confidence=CONFIDENCE)
    return {"policy": found["winner"], "first_seed": fresh.first_seed, "seeds": seeds, "metrics": metrics}


def _hold_there(
    found: dict[str, Any],
    plan: Plan | None,
    on_start: Callable[[int], None] | None,
    on_result: Callable[[dict[str, Any]], None] | None,
    *,
    tick_ns: int,
) -> None:
    """Run the baseline and the first of the ranking on another host, with the same seeds; what it does not show is not advised."""
    if plan is None or not found["ranking"]:
        return
    others = [row["policy"] for row in found["ranking"] if not row["change"] and not row["is_baseline"]]
    chosen = [found["baseline"], *others[:CONFIRMED_MAX]]
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        done = run_plan(_again(plan, chosen, out=Path(scratch)), on_start=on_start, on_result=on_result)
    if done.is_interrupted:
        raise KeyboardInterrupt
    runs = [run for run in done.runs if run["policy"] in chosen]
    alternatives = _alternatives(runs, {}, plan.n_seeds, {found["subject"]: ""})
    there: dict[str, Any] = {
        "host": plan.execution.host, "metrics": found["metrics"], "baseline": found["baseline"], "ranking": [],
        "failed": [{"policy": each.policy, "error": each.error} for each in alternatives if each.error],
    }  # fmt: skip
    if not alternatives[0].error:
        _rank(there, [each for each in alternatives if not each.error])
    found["on_host"] = there
    if other_ns := {run["tick_ns"] for run in runs} - {tick_ns}:
        tick, other = format_duration(tick_ns), format_duration(max(other_ns))
        found["warnings"].append(
            f"the ranking is of a machine with a tick of {tick}, and the host {there['host']} has {other}: "
            f"--tick {other} ranks as there"
        )
    if not found["load"]:
        return
    row = next((row for row in there["ranking"] if row["policy"] == found["winner"]), None)
    first = found["metrics"][0]
    entry = row["metrics"].get(first) if row else None
    if entry is None or entry["better"] != "b":
        why = "shows no better one" if entry else "cannot say"
        found["load"] = None
        found["advice"] = (
            f"keep {found['baseline']}: the simulator has {first} better under {found['winner']}, "
            f"and the host {there['host']} {why}"
        )


# ---- what they mean ------------------------------------------------------------


def _rank(found: dict[str, Any], alternatives: Sequence[Alternative]) -> None:
    """Order the alternatives by the first metric that all have; hold each against the baseline."""
    baseline = alternatives[0]
    has = {n: all(r["metrics"].get(n) is not None for a in alternatives for r in a.runs.values())
           for n in found["metrics"]}  # fmt: skip
    names = [name for name in found["metrics"] if has[name]]
    found["not_measured"] = [name for name in found["metrics"] if not has[name]]
    found["metrics"] = names
    if not names:
        return
    values = {
        id(a): np.array([[r["metrics"][n] for r in a.runs.values()] for n in names], float)
        for a in alternatives
    }
    sign = 1 if DICTIONARY[names[0]].direction == "lower" else -1
    order = sorted(alternatives, key=lambda a: (sign * values[id(a)][0].mean(), a is not baseline))
    best = values[id(order[0])]
    for each in order:
        mine = values[id(each)]
        to_best = compare_paired(best[:1], mine[:1], confidence=CONFIDENCE)[0].difference
        found["ranking"].append({
            "policy": each.policy, "change": each.change, "cpus": each.cpus, "is_baseline": each is baseline,
            # The interval of its difference to the first has 0 in it, or there is no interval.
            "is_tied": each is not order[0] and not (to_best.low > 0 or to_best.high < 0),
            "knobs": next(iter(each.runs.values()))["knobs"],
            "metrics": compare_values(values[id(baseline)], mine, names, headlines=names),
            "groups": _groups(baseline.waits, each.waits),
        })  # fmt: skip
    decide(
        (m for row in found["ranking"] if not row["is_baseline"] for m in row["metrics"].values()),
        confidence=CONFIDENCE,
    )


def replay_as_recorded(
    subject: Subject, under: Under, options: Mapping[str, Any]
) -> tuple[dict[str, Any], Waits]:
    """Replay a recording under what it was recorded under, as its recorder would measure it; and what groups waited."""
    assert subject.folder is not None, "it was recorded"
    waits: list[Waits] = []
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        plan = make_plan(
            [load_recorded(subject.folder, is_recorded=True, has_causes=True)],
            [under.policy],
            Path(scratch),
            settings=under.settings,
            **{**under.options, **options},
        )
        done = run_plan(
            replace(plan, is_kept=False), on_tasks=lambda _, columns: waits.append(waits_of(columns))
        )
    return done.runs[0], waits[0] if waits else {}


def grades_of(subject: Subject, names: Sequence[str], options: Mapping[str, Any]) -> dict[str, str]:
    """How faithful the replay of a recording is, by metric: replayed once, under what it was recorded under."""
    if is_disturbed(subject.run):
        return {}
    run, _ = replay_as_recorded(subject, recorded_under(subject.run, subject.folder), options)
    recorded, replayed = subject.run.get("metrics") or {}, run["metrics"]
    has = [name for name in names if recorded.get(name) is not None and replayed.get(name) is not None]
    return {name: grade_metric(name, recorded[name], replayed[name]) for name in has}


def _forecast(found: dict[str, Any], subject: Subject, alternatives: Sequence[Alternative]) -> None:
    """What Linux would measure under each policy, for the work as it is; and which of its classes that is."""
    grades = {row["metric"]: row["grade"] for row in (found["fidelity"] or {"rows": []})["rows"]}
    exact = {(each.policy, each.change): each.runs[1] for each in alternatives if 1 in each.runs}
    for row in found["ranking"]:
        run = exact.get((row["policy"], row["change"]))
        if subject.run.get("host") != "linux" or row["change"] or run is None:
            continue
        row["class"] = class_of(row["policy"], row["knobs"])
        row["forecast"] = {
            name: made
            for name in found["metrics"]
            if name in grades and (made := forecast(name, grades[name], run["metrics"][name])) is not None
        }


def _measure(found: dict[str, Any], measure: Callable[[str], dict[str, Any]], n_runs: int) -> None:
    """Run the best that is a class of Linux really."""
    best = next((row for row in found["ranking"] if row.get("class") and row["forecast"]), None)
    if best is None:
        found["warnings"].append(
            "nothing was run to confirm: no class of Linux has a prediction with an interval"
        )
        return
    measured = confirm(best["class"], best["forecast"], partial(measure, best["class"]), n_runs)
    found["measured"] = {"policy": best["policy"]} | measured


def _groups(before: dict[int, Waits], after: dict[int, Waits]) -> list[dict[str, Any]]:
    """How long each group of tasks waits for a CPU, against the baseline; what changes most first."""
    seeds = sorted(before.keys() & after.keys())
    names = sorted({name for seed in seeds for name in before[seed].keys() & after[seed].keys()})
    if not names:
        return []
    sides = [
        np.array([[side[s].get(n, (0, 0, 0))[1] for s in seeds] for n in names], float)
        for side in (before, after)
    ]
    found = []
    for name, each in zip(names, compare_paired(*sides, confidence=CONFIDENCE), strict=True):
        longest = [max(side[s].get(name, (0, 0, 0))[2] for s in seeds) for side in (before, after)]
        one = entry(each, family=HEADLINE, direction="lower")
        found.append(
            {"group": name, "tasks": after[seeds[0]].get(name, (0, 0, 0))[0]}
            | {key: one[key] for key in ("mean_a", "mean_b", "difference", "low", "high", "ratio")}
            | {"longest_a": longest[0], "longest_b": longest[1]}
        )
    return sorted(found, key=lambda group: -abs(group["difference"]))


def _warnings(comparisons: Sequence[dict[str, Any]], asked: Sequence[str]) -> list[str]:
    """Where a metric is not of the same tasks on both sides."""
    grave = (w for each in comparisons for w in each["warnings"] if w["kind"] == "survivors")
    return list(dict.fromkeys(f"{w['policy']}: {w['text']}" for w in grave if {*asked} & {*w["metrics"]}))


def _window_warnings(own: Workload, changed: Sequence[Workload]) -> list[str]:
    """Where tasks had not ended when the recording did, its time is what more load is given more of."""
    times = [str(each.copies) for each in changed if each.copies > 1]
    if not times or not own.program or not read_program(own.program).header["horizon_ns"]:
        return []
    text = "some tasks had not ended with the recording, so that more load is given as many times its time"
    return [f"at {' and '.join(times)} times the load: {text}: makespan says only that"]


def _advise(found: dict[str, Any], plan: Plan, confirm: Callable[[], dict[str, Any] | None]) -> None:
    """Name the best policy for the work as it is, if one is better, and how to load it; or why none is named."""
    if not found["ranking"]:
        found["advice"] = f"no ranking: no run has {', '.join(found['not_measured'])}; give another --metric"
        return
    first, base, fidelity = found["metrics"][0], found["baseline"], found["fidelity"]
    best = next(row for row in found["ranking"] if not row["change"])
    name = found["winner"] = best["policy"]
    if best["is_baseline"]:
        found["advice"] = f"keep {base}: no other policy has a better {first}"
    elif abs((best["metrics"][first]["ratio"] or 0) - 1) < MATTERS_MIN:
        found["advice"] = f"keep {base}: {name} has the best {first}, by less than {MATTERS_MIN:.0%}"
    elif best["metrics"][first]["better"] != "b":
        found["advice"] = (
            f"keep {base}: {name} has the best {first}, but these {found['seeds']} seeds do not tell the two apart"
        )
    elif fidelity and fidelity["grade"] == TOO_FAR:
        found["advice"] = (
            f"none: {name} ranks first, but the replay's {first} is not to be trusted: {fidelity['reason']}"
        )
    elif not (confirmed := confirm()):
        found["advice"] = (
            f"keep {base}: {name} has the best {first}, but fails with seeds that did not choose it"
        )
    else:
        found["confirmed"] = confirmed
        if confirmed["metrics"][first]["better"] != "b":
            found["advice"] = f"keep {base}: {name} had the best {first} by luck: fresh seeds do not show it"
            return
        given = next((n for n in plan.policies if load_policy(n).name == name.partition(":")[0]), name)
        found["load"] = load_command(given, best["knobs"], engine=engine_of(plan.execution))
        found["advice"] = f"{name}: try it, and measure {first} again"


def load_command(given: str, knobs: Mapping[str, Any], *, engine: str) -> str:
    """The command that loads a policy with its knobs into a machine's own kernel."""
    policy = load_policy(given)
    defaults = build_policy(policy, {}, engine=engine).values
    words = ["sudo", "schedlab", "load", given]
    for name, value in knobs.items():
        if name in policy.knobs and value != defaults[name]:
            words += ["--set", f"{name}={show_value(policy.knobs[name], value)}"]
    return shlex.join(words)
