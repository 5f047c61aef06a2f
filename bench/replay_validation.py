# SPDX-License-Identifier: MIT
"""Is a replay right about what it has not seen? `.venv/bin/python bench/replay_validation.py`.

    replay_validation.py [--repeats N] [--workloads A,B | --programs] [--write]

Records each workload on one CPU under SCHED_OTHER, replays the recording in the
simulator under policies that are SCHED_FIFO, SCHED_RR and SCHED_OTHER, and holds
what it predicts against real runs under those classes. Beside each error stands
that of predicting that nothing changes, so that a reader sees what a replay adds.
Where the class that is predicted was recorded, too, that is what another real run
differs by: no prediction can be much better. So SCHED_OTHER is predicted from
recordings under SCHED_FIFO as well. With `--write` the table in docs/record.md is
replaced. With `--programs` it is real programs instead, recorded with and without
`--causes`, which has a table of its own.

A replay does not know what other programs take, so they are kept small: what is
recorded is a session of its own, with the best nice value that a session can have.

Needs root; uses real-time classes on one CPU for about half a second a run.
Read next: fair_decisions.py; python/schedlab/measure/replay.py; docs/record.md.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from documents import write_between
from fair_decisions import SLICE_NS, decisions, sentence
from schedlab.hosts.linux.launch import Launcher
from schedlab.hosts.linux.machine import describe_machine
from schedlab.measure.recording import record_command
from schedlab.measure.replay import load_recorded
from schedlab.policy.linux_class import parse_class
from schedlab.runs.run import make_plan, run_plan
from schedlab.workload.spec import parse_workload

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "record.md"
TIMEOUT_NS = 30 * 10**9
FIFO, RR, OTHER = "SCHED_FIFO:10", "SCHED_RR:10", "SCHED_OTHER"
#: Recorded with the system calls by which tasks wait for each other.
CAUSES = "SCHED_OTHER, --causes"
#: What was recorded, what is predicted, and the policy that is it in the simulator.
PREDICTIONS = ((OTHER, FIFO, "rt_fifo"), (OTHER, RR, "rt_rr"), (FIFO, OTHER, "eevdf"), (FIFO, OTHER, "cfs"),
               (OTHER, OTHER, "eevdf"), (OTHER, OTHER, "cfs"))  # fmt: skip
#: Runs of each class: one that is recorded, or held against; of SCHED_OTHER both.
CLASSES = (OTHER, FIFO, RR, OTHER)
#: The same of programs; the last is what another real run differs by.
PROGRAM_PREDICTIONS = ((OTHER, FIFO, "rt_fifo"), (CAUSES, FIFO, "rt_fifo"))
PROGRAM_CLASSES = (OTHER, CAUSES, FIFO)
METRICS = {"makespan_ns": "makespan", "turnaround_ns_mean": "mean turnaround", "response_ns_mean": "mean response",
           "switches_involuntary": "preemptions", "wakeup_ns_p99": "wake-up p99"}  # fmt: skip
#: Below these a relative error says nothing: two ticks, and a few switches.
FLOORS = {"switches_involuntary": 10.0}
FLOOR_NS = 8e6
#: About what a switch costs here; schedlab selfbench linux.
COSTS = ("switch_ns=2us",)

WORKLOADS = {
    "hogs": """
[[task]]
name = "hog"
count = 4
phases = [{run = "choice(60ms, 120ms, 150ms, 210ms)"}]
""",
    "late jobs": """
[[task]]
name = "long"
phases = [{run = "300ms"}]
[[task]]
name = "job"
count = 6
arrival = {gap = "45ms"}
phases = [{run = "uniform(5ms, 60ms)"}]
""",
    "interactive": """
[[task]]
name = "hog"
count = 2
phases = [{run = "250ms"}]
[[task]]
name = "editor"
count = 2
phases = [{loop = 15, do = [{sleep = "exp(15ms, max=60ms)"}, {run = "exp(2ms, max=8ms)"}]}]
""",
    "messages": """
[[pipe]]
name = "there"
[[pipe]]
name = "back"
[[task]]
name = "client"
phases = [{loop = 40, do = [{run = "1ms"}, {send = "there"}, {recv = "back"}, {sleep = "3ms"}]}]
[[task]]
name = "server"
phases = [{loop = 40, do = [{recv = "there"}, {run = "2ms"}, {send = "back"}]}]
[[task]]
name = "hog"
phases = [{run = "200ms"}]
""",
    "fork and join": """
[[task]]
name = "parent"
phases = [{loop = 5, do = [{spawn = "child"}, {run = "5ms"}]}, "wait", {run = "10ms"}]
[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "uniform(20ms, 60ms)"}, {sleep = "10ms"}, {run = "20ms"}]
""",
}
HEAD = '[workload]\ntitle = "x"\nquestion = "x"\njitter = "0ms"\n'
#: A program of many processes that knows nothing of us.
COMMANDS = {"shell": "for i in 1 2 3 4; do (seq 40000 | sort -r | sort -n | tail -1) & done; wait"}
#: Programs of kinds that the model was not made with; each on one CPU for less than a second of CPU time.
PROGRAMS = {
    "TCP server": f"{sys.executable} bench/programs/tcp_server.py",
    "seq, gzip, xz": "seq 400000 | gzip | xz -1 > /dev/null",
    "Redis": "cd $(mktemp -d) && { redis-server --port 7391 --save '' --loglevel warning > log & "
    "until redis-cli -p 7391 ping > ping 2>&1; do sleep 0.02; done; "
    "redis-benchmark -p 7391 -n 4000 -c 20 -t set,get -q > speed; redis-cli -p 7391 shutdown nosave; wait; rm -r $PWD; }",
    "SQLite": f"{sys.executable} bench/programs/sqlite.py",
    "make -j4": "d=$(mktemp -d); for i in 1 2 3 4 5 6 7 8; do cp player/program.c $d/f$i.c; done; "
    "printf 'all: %s\n%%.o: %%.c\n\tcc -O1 -c -Iinclude -Iplayer -o $@ $<\n' \"$(echo $d/f[1-8].c | sed s/[.]c/.o/g)\" > $d/makefile; "
    "make -s -j4 -f $d/makefile; rm -r $d",
}


@dataclass
class Prediction:
    """One workload, recorded under one class and predicted for one.

    Attributes
    ----------
    workload, recorded, name, policy : str
        What was played, under which class, which one is predicted, by which policy.
    errors, unchanged : dict of str to list of float
        By metric: relative error of the replay, and of "nothing changes"; one of each
        for every recording and every other real run.
    """

    workload: str
    recorded: str
    name: str
    policy: str
    errors: dict = field(default_factory=dict)
    unchanged: dict = field(default_factory=dict)


def keep_others_small() -> bool:
    """Have the session of each launcher count 86 times as much as another's; in it all stays as it is."""
    switch = Path("/proc/sys/kernel/sched_autogroup_enabled")
    if not switch.is_file() or switch.read_text().strip() != "1":
        return False
    begin = Launcher.__init__

    def begin_apart(launcher: Launcher) -> None:
        begin(launcher)
        Path(f"/proc/{launcher.pid}/autogroup").write_text("-20")

    Launcher.__init__ = begin_apart
    return True


def record(name: str, linux_class: str, folder: Path) -> tuple[Path, dict]:
    """Run a workload under a class and record it; again where the kernel left something out."""
    for _ in range(6):
        run = _record_once(name, linux_class, folder)
        if run["status"] == "ok" and not run.get("no_records"):
            return Path(run["directory"]), run["metrics"]
    raise SystemExit(f"{name} under {linux_class}: {run['error'] or run.get('no_records')}")


def _record_once(name: str, linux_class: str, folder: Path) -> dict:
    if name in COMMANDS or name in PROGRAMS:
        run = record_command(
            ["sh", "-c", (COMMANDS | PROGRAMS)[name]],
            folder,
            linux_class=parse_class(OTHER if linux_class == CAUSES else linux_class),
            cpus=(min(os.sched_getaffinity(0)),),
            timeout_ns=TIMEOUT_NS,
            has_causes=linux_class == CAUSES,
        )
        if run["command"] and run["command"]["exit_code"]:
            raise SystemExit(f"{name}: ended with {run['command']['exit_code']}")
        return run
    workload = parse_workload(HEAD + WORKLOADS[name], name=f"{name.replace(' ', '-')}.toml")
    plan = make_plan([workload], [linux_class], folder, host="linux", cpus=1, keep_parquet=False)
    return run_plan(plan).runs[0]


def slice_of_linux() -> int | None:
    """The slice of this machine's Linux in ns, where it tells (/proc/PID/sched, since 6.12)."""
    try:
        found = re.search(r"^se\.slice\s*:\s*(\d+)$", Path("/proc/self/sched").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) if found else None


def knobs_of_linux() -> list[str]:
    """`eevdf` with the slices of this machine's Linux."""
    slice_ns = slice_of_linux()
    return [f"eevdf.slice_ns={slice_ns}ns"] if slice_ns else []


def error_of(metric: str, predicted: float | None, real: float | None) -> float | None:
    """Relative error; None where there is nothing to compare."""
    if predicted is None or real is None:
        return None
    floor = FLOORS.get(metric, FLOOR_NS)
    return (predicted - real) / max(abs(real), floor)


def predict(folder: Path, policies: list[str], out: Path) -> dict[str, dict]:
    """Metrics of the replays of a recording, by policy."""
    plan = make_plan(
        [load_recorded(folder)],
        policies,
        out,
        cpus=1,
        costs=COSTS,
        keep_parquet=False,
        settings=knobs_of_linux() if "eevdf" in policies else [],
    )
    result = run_plan(plan)
    for run in result.runs:
        if run["status"] != "ok":
            raise SystemExit(f"{folder}: {run['policy']}: {run['error']}")
    return {run["policy"]: run["metrics"] for run in result.runs}


def validate(name: str, repeats: int, folder: Path, decided: Counter) -> list[Prediction]:
    """Predict and compare one workload; adds up what the real SCHED_OTHER decided."""
    classes, predictions = (
        (PROGRAM_CLASSES, PROGRAM_PREDICTIONS) if name in PROGRAMS else (CLASSES, PREDICTIONS)
    )
    runs: dict[str, list] = {each: [] for each in classes}
    for number, each in enumerate(classes * repeats):
        runs[each].append(record(name, each, folder / f"{name.replace(' ', '-')}-{number}"))
    for run, _ in runs[OTHER] if name not in PROGRAMS else []:
        decided += decisions(run, slice_ns=slice_of_linux() or SLICE_NS)
    found = [Prediction(name, *prediction) for prediction in predictions]
    for recorded in dict.fromkeys(one.recorded for one in found):
        mine = [one for one in found if one.recorded == recorded]
        for run, before in runs[recorded]:
            replayed = predict(run, [one.policy for one in mine], run.parent / f"{run.name}-replays")
            for one in mine:
                # What is predicted has not been seen.
                for real in (metrics for other, metrics in runs[one.name] if other != run):
                    _compare(one, replayed[one.policy], before, real)
    return found


def _compare(prediction: Prediction, replayed: dict, before: dict, real: dict) -> None:
    """Note how far a replay and the recorded run are from a real one."""
    for metric in METRICS:
        error = error_of(metric, replayed[metric], real[metric])
        unchanged = error_of(metric, before[metric], real[metric])
        if error is not None and unchanged is not None:
            prediction.errors.setdefault(metric, []).append(error)
            prediction.unchanged.setdefault(metric, []).append(unchanged)


def cell(prediction: Prediction, metric: str) -> str:
    """The two errors as a table shows them: the replay's, then that of no change."""
    errors = prediction.errors.get(metric)
    if not errors:
        return "-"
    return f"{median(errors):+.0%} ({median(prediction.unchanged[metric]):+.0%})"


def table(found: list[Prediction], decided: Counter, repeats: int, *, are_others_small: bool) -> str:
    """The section of the document."""
    machine = describe_machine()
    others = "each session of which counts an 86th of ours; " if are_others_small else ""
    option = "" if decided else " --programs"
    lines = [
        f"Made on {datetime.now(UTC):%Y-%m-%d} by `.venv/bin/python bench/replay_validation.py{option} --write`: Linux "
        f"{machine['kernel']}, {machine['cpu']}, one of {machine['cpus']} CPUs, load {machine['load_1min']:.1f} by other "
        f"programs, {others}medians over {(CLASSES if decided else PROGRAM_CLASSES).count(OTHER) * repeats} runs under "
        f"SCHED_OTHER and {repeats} of each other kind, each recording against each other run, replayed with "
        f"`{' '.join(knobs_of_linux()) or 'no knobs'}`. "
        "First the error of the replay, in brackets that of predicting that nothing changes.",
        "",
        "| workload | recorded | predicted | by | " + " | ".join(METRICS.values()) + " |",
        "|---|---|---|---|" + "---|" * len(METRICS),
    ]
    for each in found:
        cells = " | ".join(cell(each, metric) for metric in METRICS)
        lines.append(f"| {each.workload} | {each.recorded} | {each.name} | `{each.policy}` | {cells} |")
    lines += ["", *summary(found)]
    if decided:
        lines.append(f"- Decisions of the real SCHED_OTHER (`bench/fair_decisions.py`): {sentence(decided)}.")
    return "\n".join(lines)


def summary(found: list[Prediction]) -> list[str]:
    """The median of the sizes of all errors, per prediction."""
    lines = []
    for recorded, name, policy in dict.fromkeys((each.recorded, each.name, each.policy) for each in found):
        mine = [each for each in found if (each.recorded, each.name, each.policy) == (recorded, name, policy)]
        parts = []
        for metric, heading in METRICS.items():
            errors = [abs(e) for each in mine for e in each.errors.get(metric, [])]
            before = [abs(e) for each in mine for e in each.unchanged.get(metric, [])]
            if errors:
                parts.append(f"{heading} {median(errors):.0%} ({median(before):.0%})")
        lines.append(f"- {name} from {recorded} by `{policy}`, median size of the error: {', '.join(parts)}.")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold replays against real runs under other classes.")
    parser.add_argument("--repeats", type=int, default=3, help="recordings of each workload")
    parser.add_argument("--workloads", default="", help="with commas between; default: all")
    parser.add_argument("--programs", action="store_true", help="real programs, with and without --causes")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/record.md")
    options = parser.parse_args()
    names = [
        name
        for name in (PROGRAMS if options.programs else (*WORKLOADS, *COMMANDS))
        if not options.workloads or name in options.workloads.split(",")
    ]
    are_small = keep_others_small()
    found: list[Prediction] = []
    decided: Counter = Counter()
    with tempfile.TemporaryDirectory(prefix="schedlab-replay-") as folder:
        for name in names:
            found += validate(name, options.repeats, Path(folder), decided)
            print(f"{name}: done", file=sys.stderr, flush=True)
    text = table(found, decided, options.repeats, are_others_small=are_small)
    print(text)
    if options.write:
        write_between("programs table" if options.programs else "replay table", text, DOCUMENT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
