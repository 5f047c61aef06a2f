# SPDX-License-Identifier: MIT
"""How far a replay may be trusted: what was recorded, beside a replay under what it was recorded under.

That replay is charged with what its recorder cost, as what was recorded is; predictions are not. A replay that cannot reproduce what happened has nothing to say about what would have happened. Each metric gets a
grade by its error, and the replay as a whole that of the first metric asked for, by which alternatives are ranked.
The ranking rests on varied replays too, so that the larger of the two errors counts.

Invariant: the times of a disturbed recording are graded by no comparison, since a replay has the machine for itself; where
clocks of the recorded CPUs differ, each recorded time is held to be wrong by as much.
Read next: replay.py, which says what a replay cannot know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..metrics.dictionary import DICTIONARY
from ..policy.find import load_policy, show_value
from ..policy.linux_class import is_class
from ..program import layout
from ..report.by_task import disturbed_text, is_disturbed
from ..stats.sentences import show_change, show_time

GOOD, ROUGH, TOO_FAR = "good", "rough", "not to be trusted"
#: Largest error of each grade, as a share of what was recorded.
GRADES = ((0.10, GOOD), (0.30, ROUGH))
#: Counts that differ by no more are equal: a switch at the beginning, one at the end.
COUNT_SLACK = 2
#: Shown of every recording, after the metrics asked for.
_ALWAYS = ("makespan_ns", "turnaround_ns_mean", "response_ns_mean", "wait_ns_mean", "wakeup_ns_p50", "wakeup_ns_p99",
           "switches_involuntary", "switches_voluntary", "migrations")  # fmt: skip
#: Groups of tasks in the table, those that waited longest; a group that waited less than this share is left out.
GROUPS_MAX, GROUP_SHARE_MIN = 8, 0.01
#: The policy that stands for each of Linux's classes.
_OF_CLASS = {"SCHED_OTHER": "eevdf", "SCHED_BATCH": "eevdf", "SCHED_IDLE": "eevdf", "SCHED_FIFO": "rt_fifo",
             "SCHED_RR": "rt_rr"}  # fmt: skip
#: Tasks of these classes preempt, when they wake up or start, only who has used a slice (wakeup_preempt_fair()).
_PREEMPT_NEVER = ("SCHED_BATCH", "SCHED_IDLE")
#: Over which the machine's load is a mean.
_LOAD_OVER_NS = 60_000_000_000
#: Linux's slice of its fair class on one CPU; it grows with 1 + log2 of the CPUs, of which up to 8 count.
_FAIR_SLICE_NS, _FAIR_CPUS_MAX = 700_000, 8


@dataclass(frozen=True)
class Under:
    """What a recording was made under, in words of this project."""

    policy: str  #: The policy that stands for it.
    settings: tuple[str, ...] = ()  #: Its knobs, as `--set` takes them.
    options: dict[str, Any] = field(default_factory=dict)  #: The machine's, by their words.
    note: str = ""  #: What it does not stand for, or empty.


def recorded_under(run: Mapping[str, Any], folder: Path | None = None) -> Under:
    """Find the policy and the knobs that stand for what a run was made under."""
    given = str(run.get("policy") or "Linux")
    if run.get("host") == "linux" and (given == "Linux" or is_class(given)):
        name = given.partition(":")[0]
        policy = _OF_CLASS.get(name, "eevdf")
        note = "" if name in _OF_CLASS else _mixed(run) if name == "Linux" else f"no policy stands for {name}"
        never = ("eevdf.preempt=batch",) if name in _PREEMPT_NEVER else ()
        return Under(policy, (*fair_knobs(run), *never) if policy == "eevdf" else (), note=note)
    policy = given.partition(":")[0]
    files = (run.get("source") or {}).get("files") or []
    own = folder / files[0] if folder is not None and files else None
    if own is not None and own.is_file():
        policy = str(own)
    known = load_policy(policy).knobs
    values = {
        name: show_value(known[name], value)
        for name, value in (run.get("knobs") or {}).items()
        if name in known
    }
    settings = tuple(f"{given.partition(':')[0]}.{name}={value}" for name, value in values.items())
    machine = {word: run[word] for word in ("costs", "io", "topology") if run.get(word)}
    return Under(policy, settings, machine)


def fair_knobs(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The slice of the recorded machine's fair class, as it was read there or by Linux's rule; and its ticks."""
    slice_ns = (run.get("recording") or {}).get("slice_ns")
    if not slice_ns:
        cpus = int((run.get("environment") or {}).get("cpus") or run.get("cpus") or 1)
        slice_ns = _FAIR_SLICE_NS * min(cpus, _FAIR_CPUS_MAX).bit_length()
    return (
        f"eevdf.slice_ns={slice_ns // 1000}us",
        *(("eevdf.tick=group",) if _are_others_queued(run) else ()),
    )


def _are_others_queued(run: Mapping[str, Any]) -> bool:
    """Whether other programs had more runnable tasks than there are CPUs.

    Linux puts sessions and services into groups, so that ticks then have it choose among the groups, and in each anew.
    """
    environment, metrics = run.get("environment") or {}, run.get("metrics") or {}
    cpus, elapsed_ns = int(environment.get("cpus") or 0), metrics.get("elapsed_ns") or 0
    if not cpus or not elapsed_ns:
        return False
    waited_ns = (metrics.get("wait_ns_mean") or 0) * metrics.get("tasks", 0)
    own = (metrics.get("busy_ns", 0) + waited_ns) / max(elapsed_ns, _LOAD_OVER_NS)
    return bool((environment.get("load_1min") or 0) - own > cpus)


def with_slice(settings: Sequence[str], policies: Sequence[str], run: Mapping[str, Any]) -> list[str]:
    """Settings of a replay, with the slice and the ticks of the recorded machine where they have none."""
    is_wanted = run.get("host") == "linux" and "eevdf" in policies
    given = {text.partition("=")[0].strip() for text in settings}
    return [
        *settings,
        *(text for text in fair_knobs(run) if is_wanted and text.partition("=")[0] not in given),
    ]


def _mixed(run: Mapping[str, Any]) -> str:
    """Say it where tasks of several classes were recorded, which no policy here has at once."""
    tasks = run.get("tasks") or []
    nr = sum(task.get("priority", layout.PRIORITY_FAIR) < layout.PRIORITY_FAIR for task in tasks)
    return (
        f"{nr} of {len(tasks)} recorded tasks were real-time ones, which eevdf takes as ordinary"
        if nr
        else ""
    )


def grade_of(recorded: float, replayed: float, *, is_count: bool, unsure: float = 0.0) -> str:
    """Grade one value, of which the recorded one may be wrong by so much.

    >>> grade_of(100, 109, is_count=False), grade_of(100, 75, is_count=False), grade_of(3, 5, is_count=True)
    ('good', 'rough', 'good')
    """
    error = abs(replayed - recorded) + unsure
    if error <= COUNT_SLACK * is_count:
        return GOOD
    return next((grade for limit, grade in GRADES if recorded and error <= limit * recorded), TOO_FAR)


def grade_metric(name: str, recorded: float, replayed: float, *, unsure: float = 0.0) -> str:
    """Grade one metric."""
    is_count = DICTIONARY[name].unit == "1" and float(recorded).is_integer()
    return grade_of(recorded, replayed, is_count=is_count, unsure=unsure)


def fidelity_of(
    run: dict[str, Any],
    folder: Path | None,
    under: Under,
    measured: tuple[Mapping[str, Any], Mapping[str, tuple[int, int, int]]],
    predicted: Sequence[Mapping[str, Any]],
    asked: Sequence[str],
    group_of: Callable[[str], str],
) -> dict[str, Any]:
    """Hold a replay against the recording: metrics, and what groups of tasks waited.

    `measured` is the replay with what its recorder would add, and what groups waited in it. `predicted` are those without, the
    first of the same lengths: by as much as the others differ from it, the first with varied lengths would.
    """
    (replayed, waits), (exact, *varied) = measured, predicted
    found: dict[str, Any] = {
        "recorded_under": run.get("policy"), "replayed_under": replayed["policy"], "knobs": list(under.settings),
        "note": "; ".join(filter(None, [under.note, _clocks_text(run)])), "disturbed": disturbed_text(run), "rows": [], "groups": [], "grade": TOO_FAR, "reason": "",
    }  # fmt: skip
    if is_disturbed(run):
        found["reason"] = "other programs had the CPUs for too long while it was recorded"
        return found
    metrics = run.get("metrics") or {}
    differ_ns = _clocks_differ_ns(run)
    for name in dict.fromkeys((*asked, *_ALWAYS)):
        before, after = metrics.get(name), replayed["metrics"].get(name)
        if before is not None and after is not None:
            own = exact["metrics"].get(name)
            shifts = [
                run["metrics"][name] - own
                for run in varied
                if own is not None and run["metrics"].get(name) is not None
            ]
            mean = after + sum(shifts) / len(shifts) if shifts else after
            worst = max(after, mean, key=lambda value: abs(value - before))
            # A task's waiting is a sum over its wake-ups.
            n_sums = (
                metrics.get("wakeups", 0) / max(1, len(run.get("tasks") or ()))
                if name.startswith("wait_")
                else 1
            )
            unsure = differ_ns * max(1, n_sums) * (DICTIONARY[name].unit == "ns")
            found["rows"].append({
                "metric": name, "recorded": before, "replayed": after, "varied": mean,
                "ratio": worst / before if before else None, "grade": grade_metric(name, before, worst, unsure=unsure),
            })  # fmt: skip
    grades = {row["metric"]: row for row in found["rows"]}
    first = next((grades[name] for name in asked if name in grades), None)
    if first is None:
        found["reason"] = f"the recording has no {' and no '.join(asked)}"
    else:
        found["grade"], found["metric"] = first["grade"], first["metric"]
        off = "" if first["ratio"] is None else f"off by {show_change(first['ratio'])}"
        apart = f"clocks are {show_time(differ_ns)} apart" if differ_ns else ""
        found["reason"] = ", and ".join(filter(None, [off, apart]))
    found["groups"] = _groups(folder, waits, group_of, differ_ns)
    return found


def _clocks_differ_ns(run: Mapping[str, Any]) -> int:
    return int((run.get("recording") or {}).get("clocks_differ_ns") or 0)


def _clocks_text(run: Mapping[str, Any]) -> str:
    """What clocks that differ cost; empty where they agree."""
    differ_ns = _clocks_differ_ns(run)
    text = (
        f"the clocks of its CPUs differ by {show_time(differ_ns)} or more, and errors count as so much larger"
    )
    return text if differ_ns else ""


def _groups(
    folder: Path | None,
    waits: Mapping[str, tuple[int, int, int]],
    group_of: Callable[[str], str],
    differ_ns: int,
) -> list[dict[str, Any]]:
    """How long the tasks of each group waited, then and now."""
    import polars as pl

    path = folder / "tasks.parquet" if folder is not None else None
    if path is None or not path.is_file():
        return []
    recorded: dict[str, list[int]] = {}
    unsure: dict[str, int] = {}
    for name, wait_ns, wakeups in pl.read_parquet(path, columns=["name", "wait_ns", "wakeups"]).iter_rows():
        group = group_of(str(name))
        recorded.setdefault(group, []).append(wait_ns)
        unsure[group] = unsure.get(group, 0) + differ_ns * wakeups
    total = sum(map(sum, recorded.values()))
    found = []
    for name, values in sorted(recorded.items(), key=lambda item: -sum(item[1]))[:GROUPS_MAX]:
        after = waits.get(name, (0, 0, 0))[1]
        before = sum(values)
        if before >= GROUP_SHARE_MIN * total and before:
            row = {
                "group": name,
                "tasks": len(values),
                "recorded": before,
                "replayed": after,
                "ratio": after / before,
            }
            found.append(row | {"grade": grade_of(before, after, is_count=False, unsure=unsure[name])})
    return found
