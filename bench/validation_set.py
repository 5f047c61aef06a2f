# SPDX-License-Identifier: MIT
"""How far are predictions for real programs off? `.venv/bin/python bench/validation_set.py`.

    validation_set.py [--programs A,B] [--state FOLDER] [--again] [--write]

Runs real programs on one CPU under SCHED_OTHER, SCHED_FIFO and SCHED_BATCH. From each recording with `--causes` it
predicts each class, with the defaults of `schedlab replay`, and holds that against other, plain runs. Beside each
error stand two others: that of "nothing changes", and that of repeating the real run, below which no prediction can
be much. With `--write` the table in docs/record.md is replaced, and the intervals that `schedlab whatif` has.

What is done is kept in FOLDER (default: .cache/validation), so that a run that was interrupted continues; remove it to
begin anew. `--again` predicts anew from the recordings that are there, which shows what a change of the model does. A program that is not installed is skipped by name. All are there after

    apt-get install --no-install-recommends apache2-utils ffmpeg golang-go gzip make mosquitto mosquitto-clients \
        nginx-light postgresql redis rt-tests sqlite3 stress-ng xz-utils

Every program is bounded and stays on this machine. Needs root; uses a real-time class on one CPU for about a second a run.
Read next: replay_validation.py; python/schedlab/measure/replay.py; docs/record.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from documents import write_between
from replay_validation import DOCUMENT, METRICS, PROGRAMS, ROOT, TIMEOUT_NS, error_of, keep_others_small
from schedlab.errors import SchedlabError
from schedlab.hosts.linux.launch import Launcher
from schedlab.hosts.linux.machine import describe_machine
from schedlab.measure.fidelity import GOOD, ROUGH, TOO_FAR, grade_metric, recorded_under
from schedlab.measure.forecast import CONFIDENCE, FORECAST_FILE, around, middle, scale_of
from schedlab.measure.recording import record_command
from schedlab.measure.replay import load_recorded
from schedlab.metrics.disturbance import DISTURBED_MAX
from schedlab.policy.linux_class import parse_class
from schedlab.records.file import Kind, Overhead, Stop, read_records
from schedlab.runs.run import make_plan, run_plan

CLASSES = ("SCHED_OTHER", "SCHED_FIFO:10", "SCHED_BATCH")
#: Of each program and class: runs with causes, from which is predicted, and plain ones.
SOURCES, PLAIN = 2, 3
#: Runs that lost events or were disturbed by the disk are repeated.
TRIES = 5
#: Where cgroups may be, of version 1 and 2.
GROUP_ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
#: Policies are ranked where the real runs differ by more.
RANKED_MIN = 0.10
GRADES_OF_REPLAYS = (GOOD, ROUGH, TOO_FAR)
#: Fewer errors of a grade make no interval.
SHARES_MIN = 20
#: What the same recorder would measure of a replay under the recorded class, which is what grades it.
AS_RECORDED = "as recorded"
#: Those that `whatif` and `tune` are confirmed with, see confirmations.py.
SERVERS = ("nginx", "PostgreSQL")


@dataclass(frozen=True)
class Program:
    """A real program: what it needs, what is done once in an empty folder that it has, and what is recorded there."""

    needs: tuple[str, ...]
    command: str
    setup: str = "true"


POSTGRES = "/usr/lib/postgresql/15/bin"
AS_POSTGRES = "setpriv --reuid=postgres --regid=postgres --clear-groups"
PROGRAM_SET = {
    "TCP server": Program((), PROGRAMS["TCP server"].replace("bench/", f"{ROOT}/bench/")),
    "process pool": Program((), f"{sys.executable} {ROOT}/bench/programs/process_pool.py"),
    "seq, gzip, xz": Program(("gzip", "xz"), PROGRAMS["seq, gzip, xz"]),
    "Redis": Program(("redis-server", "redis-benchmark"), PROGRAMS["Redis"]),
    "SQLite": Program((), PROGRAMS["SQLite"].replace("bench/", f"{ROOT}/bench/")),
    "make -j4": Program(("make", "cc"), f"cd {ROOT}; {PROGRAMS['make -j4']}"),
    "nginx, ab": Program(
        ("nginx", "ab"),
        "nginx -p $PWD -c nginx.conf 2>> log & until ab -q -n 1 http://127.0.0.1:7392/ >> log 2>&1; do sleep 0.02; done; "
        "ab -q -n 4000 -c 10 http://127.0.0.1:7392/page > speed; kill $!; wait",
        "head -c 8000 /dev/zero > page; chmod 755 . ; echo 'daemon off; worker_processes 2; pid pid; error_log log; "
        "events {} http { access_log log; server { listen 127.0.0.1:7392; root .; } }' | sed s,root.[.],root\\ $PWD, > nginx.conf",
    ),
    "PostgreSQL, pgbench": Program(
        (f"{POSTGRES}/postgres", "pgbench"),
        f"{AS_POSTGRES} {POSTGRES}/postgres -D data -p 7393 -k $PWD -c fsync=off 2>> data/log & "
        f"until {AS_POSTGRES} psql -h $PWD -p 7393 -c 'select 1' postgres > /dev/null 2>&1; do sleep 0.05; done; "
        f"{AS_POSTGRES} pgbench -n -h $PWD -p 7393 -c 5 -t 80 postgres > /dev/null 2>&1; kill -INT $!; wait",
        f"chown postgres . && {AS_POSTGRES} {POSTGRES}/initdb -N -D data > /dev/null && "
        f"{{ {AS_POSTGRES} {POSTGRES}/postgres -D data -p 7393 -k $PWD -c fsync=off 2>> data/log & "
        f"until {AS_POSTGRES} pgbench -q -i -h $PWD -p 7393 postgres > /dev/null 2>&1; do sleep 0.1; done; kill -INT $!; wait; }}",
    ),
    "message queue": Program(
        ("mosquitto", "mosquitto_sub", "mosquitto_pub"),
        "mosquitto -p 7394 > log 2>&1 & server=$!; until mosquitto_pub -p 7394 -t x -m x 2>> log; do sleep 0.02; done; "
        'for i in 1 2 3; do mosquitto_sub -p 7394 -q 1 -t t -C 600 > got$i & subs="$subs $!"; done; sleep 0.3; '
        "seq 600 | mosquitto_pub -p 7394 -q 1 -t t -l; wait $subs; kill $server; wait",
    ),
    "ffmpeg": Program(
        ("ffmpeg",),
        "ffmpeg -loglevel error -threads 4 -f lavfi -i testsrc=duration=6:size=320x240 -c:v mpeg4 -threads 4 -f null -",
    ),
    "stress-ng": Program(
        ("stress-ng",),
        "stress-ng -q --cpu 2 --cpu-ops 300 --pipe 1 --pipe-ops 20000 --mutex 1 --mutex-ops 10000 --timeout 20s",
    ),
    "hackbench": Program(("hackbench",), "hackbench -g 2 -f 5 -l 600 > /dev/null"),
    "Go HTTP server": Program(
        ("go",), "./server", f"GOCACHE=$PWD/cache go build -o server {ROOT}/bench/programs/http_server.go"
    ),
    "sort, two threads": Program(
        ("sort",),
        "sort --parallel=2 -S 4M numbers | uniq -c | tail -1 > last",
        "seq 1 500000 | rev > numbers",
    ),
    "sha256sum by xargs -P4": Program(
        ("xargs", "sha256sum"),
        "ls part* | xargs -P4 -n1 sha256sum > sums",
        "head -c 60000000 /dev/zero | split -b 1500000 - part",
    ),
}


# ---- the runs ---------------------------------------------------------------------------------


def own_group() -> Path | None:
    """A cgroup for what is recorded, that counts as much as may be; None: this machine has none for CPUs.

    In one, as a service of systemd is, sessions are no groups of their own (autogroup), which no replay knows of:
    PostgreSQL makes a session for each connection.
    """
    for root in GROUP_ROOTS:
        group = root / "schedlab-validation"
        with contextlib.suppress(OSError):
            group.mkdir(exist_ok=True)
            for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
                if (group / name).is_file():
                    (group / name).write_text(most)
                    return group
            group.rmdir()
    return None


@contextlib.contextmanager
def launched_in(group: Path | None) -> Iterator[None]:
    """What is launched meanwhile is in a group; to get there takes 10 to 20 ms, which are no part of the run.

    The launcher begins in it, since as a real-time task it could not be moved there.
    """
    begin = Launcher.__init__

    def begin_there(launcher: Launcher) -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            begin(launcher)
        finally:
            (group.parent / "cgroup.procs").write_text(str(os.getpid()))

    if group is not None:
        Launcher.__init__ = begin_there
    try:
        yield
    finally:
        Launcher.__init__ = begin


def preemptions(folder: Path, n_involuntary: int) -> int:
    """Switches away from a runnable task to another of the program, as Linux counts them: a yield is one."""
    events = read_records(folder / "records.slr").events
    kind = events["kind"]
    is_stolen = (kind == Kind.OVERHEAD) & (events["flags"] == Overhead.STOLEN)
    # All on one CPU: which task has it next, or that it was one of another program.
    changes = events[(kind == Kind.RUN) | (kind == Kind.STOP) | is_stolen]
    before, after = changes[:-1], changes[1:]
    is_stop, is_run = before["kind"] == Kind.STOP, after["kind"] == Kind.RUN
    for_others = is_stop & (before["flags"] == Stop.PREEMPTED) & ~is_run
    yields = is_stop & (before["flags"] == Stop.YIELDED) & is_run & (before["task"] != after["task"])
    return n_involuntary - int(np.count_nonzero(for_others)) + int(np.count_nonzero(yields))


def record(program: Program, place: Path, linux_class: str, out: Path, *, has_causes: bool) -> dict[str, Any]:
    """Record a program once; again where the kernel left something out."""
    wanted = parse_class(linux_class)
    group = None if wanted.is_realtime else own_group()
    for tries_left in reversed(range(TRIES)):
        with launched_in(group):
            run = record_command(
                ["sh", "-c", f"cd {place}; {program.command}"],
                out,
                linux_class=wanted,
                cpus=(max(os.sched_getaffinity(0)),),
                timeout_ns=TIMEOUT_NS,
                has_causes=has_causes,
            )
        if run["status"] != "ok" or run["command"]["exit_code"]:
            continue
        disturbance = run["recording"]["disturbance"]
        if disturbance["share"] <= DISTURBED_MAX or not tries_left:
            metrics = run["metrics"]
            metrics["switches_involuntary"] = preemptions(out, metrics["switches_involuntary"])
            metrics["makespan_ns"] -= disturbance["lost_ns"]
            return run
    raise SchedlabError(run["error"] or f"it ended with {run['command']['exit_code']}")


def predict(folder: Path, linux_class: str, out: Path, *, has_causes: bool = False) -> dict[str, Any]:
    """Metrics of a replay of a recording under a class, or why there are none: as if recorded so."""
    before = json.loads((folder / "run.json").read_text())
    under = recorded_under(before | {"policy": linux_class})
    plan = make_plan(
        [load_recorded(folder, is_recorded=True, has_causes=has_causes)],
        [under.policy],
        out,
        cpus=1,
        settings=under.settings,
        keep_parquet=False,
    )
    (run,) = run_plan(plan).runs
    if run["status"] != "ok":
        return {"error": run["error"]}
    n_preempted = preemptions(Path(run["directory"]), run["metrics"]["switches_involuntary"])
    return run["metrics"] | {"switches_involuntary": n_preempted}


def measure(name: str, place: Path, linux_class: str, folder: Path, *, is_source: bool) -> dict[str, Any]:
    """One run of a program; its recording stays."""
    shutil.rmtree(folder, ignore_errors=True)
    run = record(PROGRAM_SET[name], place, linux_class, folder, has_causes=is_source)
    (folder / "records.parquet").unlink()
    return {"class": linux_class, "is_source": is_source, "metrics": run["metrics"],
            "load": os.getloadavg()[0], "disturbed": run["recording"]["disturbance"]["share"]}  # fmt: skip


def predict_all(folder: Path, own: str) -> dict[str, Any]:
    """What is predicted from a recording for each class, and `AS_RECORDED` for its own; kept beside it."""
    file = folder.with_suffix(".predicted.json")
    if not file.is_file():
        with tempfile.TemporaryDirectory(prefix="schedlab-validation-") as scratch:
            made = {each: predict(folder, each, Path(scratch) / each) for each in CLASSES}
            made[AS_RECORDED] = predict(folder, own, Path(scratch) / AS_RECORDED, has_causes=True)
            write_whole(file, made)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def write_whole(file: Path, content: Any) -> None:
    """Write a file of JSON that is there or not, whatever ends this process."""
    file.with_suffix(".part").write_text(json.dumps(content))
    file.with_suffix(".part").replace(file)


def folder_of(name: str, state: Path) -> Path:
    """Where the runs of a program are kept."""
    return state / re.sub(r"[^A-Za-z0-9]+", "-", name)


def run_program(name: str, state: Path) -> list[dict[str, Any]]:
    """All runs of a program that are not done yet, by turns of the classes; those done are read."""
    program = PROGRAM_SET[name]
    missing = [word for word in program.needs if not shutil.which(word)]
    if missing:
        raise SchedlabError(f"{', '.join(missing)} not installed")
    kept = folder_of(name, state)
    kept.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="schedlab-program-") as place:
        is_set_up = False
        for number in range(SOURCES + PLAIN):
            for linux_class in CLASSES:
                folder = kept / f"{linux_class.partition(':')[0]}-{number}"
                file = kept / f"{folder.name}.json"
                if not file.is_file():
                    if not is_set_up:
                        subprocess.run(["sh", "-ec", program.setup], cwd=place, check=True)
                        # The first run reads from the disk.
                        measure(name, Path(place), linux_class, folder, is_source=False)
                        is_set_up = True
                    done = measure(name, Path(place), linux_class, folder, is_source=number < SOURCES)
                    write_whole(file, done)
                run = json.loads(file.read_text())
                found.append(
                    run | ({"predicted": predict_all(folder, linux_class)} if run["is_source"] else {})
                )
    return found


# ---- the table --------------------------------------------------------------------------------


def plain(runs: list[dict[str, Any]], linux_class: str) -> list[dict[str, Any]]:
    """Metrics of the real runs of a class that nothing was predicted from."""
    return [run["metrics"] for run in runs if run["class"] == linux_class and not run["is_source"]]


def errors(pairs: Iterator[tuple[dict, dict]], metric: str) -> list[float]:
    """Size of the error of each pair of a prediction and a real run."""
    found = [error_of(metric, predicted.get(metric), real.get(metric)) for predicted, real in pairs]
    return [abs(error) for error in found if error is not None]


def cell(runs: list[dict[str, Any]], metric: str, source: str, target: str) -> dict[str, float] | None:
    """Median errors of one program, recorded under a class, for another: by the replay, without one, of a repetition."""
    real = plain(runs, target)
    predicted = [run["predicted"][target] for run in runs if run["class"] == source and run["is_source"]]
    found = {
        "replay": errors(((p, r) for p in predicted for r in real), metric),
        "unchanged": errors(((p, r) for p in plain(runs, source) for r in real if p is not r), metric),
        "repeated": errors(permutations(real, 2), metric),
    }
    if not all(found.values()):
        return None
    return {name: median(values) for name, values in found.items()} | {"spread": max(found["repeated"])}


def ranked(runs: list[dict[str, Any]], metric: str) -> list[tuple[bool, bool]]:
    """Of pairs of classes whose real runs differ: whether each recording predicts their order, and whether that repeats.

    It does where all real runs of one class are below all of the other: else a second measurement may say the opposite.
    """
    found = []
    for one, other in combinations(CLASSES, 2):
        values = [
            [m[metric] for m in plain(runs, each) if m.get(metric) is not None] for each in (one, other)
        ]
        if not all(values):
            continue
        first, second = map(median, values)
        if (
            abs(error_of(metric, first, second)) <= RANKED_MIN
            or abs(error_of(metric, second, first)) <= RANKED_MIN
        ):
            continue
        for run in runs:
            said = (
                [run["predicted"][each].get(metric) for each in (one, other)] if run["is_source"] else [None]
            )
            if None not in said:
                does_repeat = max(values[0]) < min(values[1]) or max(values[1]) < min(values[0])
                found.append(((said[0] < said[1]) == (first < second), does_repeat))
    return found


def is_within(one: dict[str, float]) -> bool:
    """Whether the replay is no further off than one real run may be from another."""
    return one["replay"] <= one["spread"]


def show_order(order: list[tuple[bool, bool]]) -> list[str]:
    """How many are right of all pairs, and of those that repeat."""
    groups = ([right for right, _ in order], [right for right, does_repeat in order if does_repeat])
    return [f"{sum(each)} of {len(each)} ({sum(each) / len(each):.1%})" if each else "-" for each in groups]


def show(values: list[float]) -> str:
    """Median and worst."""
    return f"{median(values):.0%}, {max(values):.0%}" if values else "-"


def cells(
    done: dict[str, list], metric: str, chosen: Callable[[str, str], bool]
) -> dict[str, dict[str, float]]:
    """Errors of all programs and pairs of classes that are chosen."""
    found = {}
    for name, runs in done.items():
        for source in CLASSES:
            for target in CLASSES:
                one = cell(runs, metric, source, target) if chosen(source, target) else None
                if one:
                    found[f"{name}, {source} for {target}"] = one
    return found


# ---- intervals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """A prediction for another class, held against the real runs."""

    program: str
    metric: str
    grade: str  #: Of the replay under the recorded class.
    predicted: float
    real: tuple[float, ...]

    def shares(self) -> list[float]:
        """By how much the real runs differ from it."""
        return [(value - self.predicted) / scale_of(self.metric, self.predicted) for value in self.real]


def held(done: dict[str, list]) -> list[Held]:
    """All predictions for another class than the recorded one."""
    found = []
    for name, runs in done.items():
        for run in (each for each in runs if each["is_source"]):
            own = run["predicted"][AS_RECORDED]
            for target in CLASSES:
                predicted = run["predicted"][target]
                for metric in METRICS:
                    values = [run["metrics"].get(metric), own.get(metric), predicted.get(metric)]
                    real = tuple(m[metric] for m in plain(runs, target) if m.get(metric) is not None)
                    if target != run["class"] and None not in values and real:
                        grade = grade_metric(metric, values[0], values[1])
                        found.append(Held(name, metric, grade, values[2], real))
    return found


def ends_of(all_held: list[Held]) -> dict[str, dict[str, tuple[float, float]]]:
    """What forecast.json has: by metric and grade, between which shares real runs were."""
    shares: dict[tuple[str, str], list[float]] = {}
    for each in all_held:
        shares.setdefault((each.metric, each.grade), []).extend(each.shares())
    found: dict[str, dict[str, tuple[float, float]]] = {metric: {} for metric in METRICS}
    for (metric, grade), values in shares.items():
        if len(values) >= SHARES_MIN:
            found[metric][grade] = middle(values)
    return found


def interval_table(done: dict[str, list]) -> list[str]:
    """The intervals, and how often real runs are inside where the other programs made them."""
    all_held = held(done)
    ends = ends_of(all_held)
    lines = [
        f"| metric | {' | '.join(GRADES_OF_REPLAYS)} | inside | inside, of nginx and PostgreSQL |",
        "|---|" + "---|" * (2 + len(GRADES_OF_REPLAYS)),
    ]
    insides: dict[str, list[tuple[str, bool]]] = {metric: [] for metric in METRICS}
    for name in done:
        others = ends_of([each for each in all_held if each.program != name])
        for each in all_held:
            if each.program == name and each.grade in others[each.metric]:
                low, high = around(each.metric, each.predicted, others[each.metric][each.grade])
                insides[each.metric].append((name, low <= median(each.real) <= high))
    for metric, heading in METRICS.items():
        shown = [
            f"{ends[metric][grade][0]:+.0%} .. {ends[metric][grade][1]:+.0%} ({sum(e.metric == metric and e.grade == grade for e in all_held)})"
            if grade in ends[metric] else "-" for grade in GRADES_OF_REPLAYS
        ]  # fmt: skip
        of_all = [is_inside for _, is_inside in insides[metric]]
        of_servers = [is_inside for name, is_inside in insides[metric] if name.startswith(SERVERS)]
        counts = [f"{sum(each)} of {len(each)}" if each else "-" for each in (of_all, of_servers)]
        lines.append(f"| {heading} | {' | '.join(shown)} | {' | '.join(counts)} |")
    return lines


def write_forecast(done: dict[str, list]) -> None:
    """Keep the intervals with the package."""
    ends = {metric: dict(sorted(each.items())) for metric, each in ends_of(held(done)).items()}
    made = {
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
        "programs": len(done),
        "confidence": CONFIDENCE,
        "ends": ends,
    }
    text = json.dumps(
        json.loads(json.dumps(made), parse_float=lambda value: round(float(value), 3)), indent=1
    )
    FORECAST_FILE.write_text(text + "\n")


def table(done: dict[str, list], skipped: dict[str, str]) -> str:
    """The section of the document."""
    machine, loads = describe_machine(), [run["load"] for runs in done.values() for run in runs]
    failed = [f"{name}: {said['error']}" for name, runs in done.items() for run in runs
              for said in run.get("predicted", {}).values() if "error" in said]  # fmt: skip
    lines = [
        f"Made on {datetime.now(UTC):%Y-%m-%d} by `.venv/bin/python bench/validation_set.py --write`: Linux "
        f"{machine['kernel']}, {machine['cpu']}, one of {machine['cpus']} CPUs; others worked on the machine meanwhile, load "
        f"{min(loads):.1f} to {max(loads):.1f}, median {median(loads):.1f}; {len(done)} programs, {SOURCES} recordings with "
        f"`--causes` and {PLAIN} plain runs of each class. Size of the error, median and worst of all programs and pairs of classes.",
        "",
        "| metric | for | replay | nothing changes | real run repeated | within a repetition's spread | order of classes right | where it repeats |",
        "|---|---|---|---|---|---|---|---|",
    ]
    orders: list[tuple[bool, bool]] = []
    for metric, heading in METRICS.items():
        for label, chosen in (("another class", str.__ne__), ("the recorded class", str.__eq__)):
            found = [*cells(done, metric, chosen).values()]
            parts = [show([one[word] for one in found]) for word in ("replay", "unchanged", "repeated")]
            parts.append(f"{sum(map(is_within, found))} of {len(found)}" if found else "-")
            order = [
                each for runs in done.values() for each in ranked(runs, metric) if label == "another class"
            ]
            orders += order
            parts += show_order(order) if order else ["", ""]
            lines.append(f"| {heading} | {label} | {' | '.join(parts)} |")
    lines += [f"| all | another class |  |  |  |  | {' | '.join(show_order(orders))} |"]
    lines += ["", f"| program | {' | '.join(METRICS.values())} |", "|---|" + "---|" * len(METRICS)]
    for name, runs in done.items():
        row = []
        for metric in METRICS:
            found = [*cells({name: runs}, metric, str.__ne__).values()]
            medians = (
                f"{median([one[w] for one in found]):.0%}" for w in ("replay", "unchanged", "repeated")
            )
            row.append(
                f"{' / '.join(medians)}, {sum(map(is_within, found))} of {len(found)}" if found else "-"
            )
        lines.append(f"| {name} | {' | '.join(row)} |")
    lines += ["", "By program, for another class, medians: replay / nothing changes / real run repeated; and of how many pairs of classes the "
              "median error of the replay is within a repetition's spread, the largest error of one of the real runs for another.", ""]  # fmt: skip
    for metric, heading in METRICS.items():
        found = cells(done, metric, str.__ne__)
        if found:
            worst = max(found, key=lambda name: found[name]["replay"])
            lines.append(f"- Worst {heading}: {worst}, {found[worst]['replay']:.0%}.")
    lines += ["", f"Intervals of a prediction for another class, {CONFIDENCE:.0%}, by the grade of its replay (predictions); whether the median "
              "of the real runs is inside where the other programs alone make the intervals:", "", *interval_table(done), ""]  # fmt: skip
    lines += [f"- Left out: {name} ({why})." for name, why in skipped.items()]
    lines += [f"- No prediction: {text}" for text in dict.fromkeys(failed)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold predictions for real programs against real runs.")
    parser.add_argument("--programs", default="", help="how names begin, with commas between; default: all")
    parser.add_argument(
        "--state", type=Path, default=ROOT / ".cache" / "validation", help="where runs are kept"
    )
    parser.add_argument(
        "--again", action="store_true", help="predict anew from the recordings that are there"
    )
    parser.add_argument("--write", action="store_true", help="replace the table in docs/record.md")
    options = parser.parse_args()
    for file in options.state.glob("*/*.predicted.json") if options.again else ():
        file.unlink()
    wanted = [
        name for name in PROGRAM_SET if name.lower().startswith(tuple(options.programs.lower().split(",")))
    ]
    if not wanted:
        parser.error(f"--programs {options.programs}: there are {'; '.join(PROGRAM_SET)}")
    keep_others_small()
    done: dict[str, list] = {}
    skipped: dict[str, str] = {}
    for name in wanted:
        try:
            done[name] = run_program(name, options.state)
        except (SchedlabError, subprocess.CalledProcessError) as error:
            skipped[name] = str(error)
        print(f"{name}: {skipped.get(name, 'done')}", file=sys.stderr, flush=True)
    if not done:
        return 1
    text = table(done, skipped)
    print(text)
    if options.write:
        write_between("validation table", text, DOCUMENT)
        write_forecast(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
