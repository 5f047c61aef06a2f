# SPDX-License-Identifier: MIT
"""Compile and run published sched_ext schedulers as they are; `.venv/bin/python bench/upstream.py`.

    upstream.py FOLDER [--schedulers NAME...] [--workloads W...] [--recordings RUN...] [--cpus N...] [--topology T | --write]
    upstream.py FOLDER --speed [--schedulers NAME...]
    upstream.py FOLDER --check [--budget 30s] [--on-linux] [--schedulers NAME...] [--write]
    upstream.py FOLDER --choose [--schedulers NAME...] [--out RUNS] [--write]

FOLDER is a checkout of `sched-ext/scx`, or one of crates that cargo has unpacked, as `scx_lavd-1.1.4`; nothing of it is
copied. Each scheduler is compiled,
given what `policies/launch` has for it, and run in the simulator on each workload and number of
CPUs, with seed 1; a recording (`schedlab record --out RUN`) is replayed. A cell says how many of the workloads ended with consistency ok, or that the scheduler's own user half
does not take such a machine; the last column says why not all. With `--write` the table in docs/upstream.md is replaced. With `--speed` each runs 200 tasks that
run and sleep 1 ms in turn, on 16 CPUs, without records: switches per second of CPU time, the maximum of five runs.
With `--check` each is searched for errors and stalls (`schedlab check`): the first found, how small it is, and what Linux
makes of it. With `--choose` each runs the workloads of `workloads/server` beside `eevdf`, which is Linux's default, on eight CPUs
with two caches; the table says what a user notices, means over ten seeds.

Read next: docs/upstream.md; python/schedlab/policy/launch_file.py.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.stats

import schedlab
from documents import write_between
from schedlab.errors import SchedlabError
from schedlab.paths import simulator
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.launch_file import for_machine
from schedlab.policy.published import main_file
from schedlab.program.compiler import compile_workload
from schedlab.units import counted
from schedlab.workload.find import load_workload
from schedlab.workload.spec import parse_workload

PAGE = Path(__file__).resolve().parent.parent / "docs" / "upstream.md"
IN_C = ("central", "flatcg", "nest", "pair", "prev", "qmap", "sdt", "simple", "userland")
WITH_RUST = (
    *("beerland", "bpfland", "chaos", "cosmos", "flash", "lavd", "layered", "mitosis", "p2dq"),
    *("rlfifo", "rustland", "rusty", "tickless", "wd40"),
)
#: Of the package rt-app; see docs/workloads.md.
RT_APP = Path("/usr/share/doc/rt-app/examples")
WORKLOADS = (
    *("mixed", "poisson", "classics/convoy", "classics/heavy-tail", "classics/interactive-batch"),
    *("classics/inversion-lock", "classics/messages", "classics/requests"),
    *(str(RT_APP / f"{name}.json") for name in ("browser-short", "mp3-short", "video-short")),
)
CPUS = (1, 4, 16)
TIMEOUT = "60s"
CHECK = (sys.executable, "-m", "schedlab", "check", "--json", "--property", "stall,error")
#: What a launch file's `SL_REFUSE()` says, before the place.
REFUSES = "its user half refuses this machine: "
SPEED = """
[workload]
title = "Tasks that run and sleep"
question = "How many switches does a second of CPU time simulate?"
tick = "4ms"
jitter = "0ms"
horizon = "20s"

[[task]]
name = "t"
count = 200
phases = [{loop = 100000, do = [{run = "1ms"}, {sleep = "1ms"}]}]
"""
SPEED_CPUS, SPEED_RUNS = 16, 5
#: Workload, what is measured, the class of its tasks, the column of `Result.tasks`, how it is summed up.
CHOICE = (
    ("server/storm", "storm: a worker's wake-up, mean (ms)", "worker", "wakeup_ns_mean", np.mean),
    ("server/storm", "worst (ms)", "worker", "wakeup_ns_max", np.max),
    ("server/storm", "the probe's, worst (ms)", "probe", "wakeup_ns_max", np.max),
    ("server/build", "build: makespan (ms)", "", "end_ns", np.max),
    ("server/build", "the editor's wake-up, worst (ms)", "editor", "wakeup_ns_max", np.max),
    (
        "server/web",
        "web: a request, p99 (ms)",
        "request",
        "turnaround_ns",
        lambda values: np.quantile(values, 0.99),
    ),
    ("server/web", "the backup's CPUs", "backup", "run_ns", lambda values: sum(values) / WEB_NS),
)
CHOICE_BASELINE, CHOICE_SEEDS = "eevdf", 10
WEB_NS = load_workload("server/web").horizon_ns
CHOICE_MACHINE = {"cpus": 8, "topology": "llc=4", "tick": "4ms"}
#: Of this machine, as `schedlab record` measures them; a migration is a few cache misses.
CHOICE_COSTS = {"switch_ns": "1us", "wakeup_ns": "1us", "migrate_ns": "5us"}


def source_of(folder: Path, name: str) -> Path | None:
    """The main file of a scheduler, by its name without `scx_`; None where it has none of its own."""
    in_c = folder / "scheds" / "c" / f"scx_{name}.bpf.c"
    return in_c if in_c.is_file() else main_file(folder / "scheds" / "rust" / f"scx_{name}")


def sources_of(folder: Path, names: list[str]) -> dict[str, Path | None]:
    """The main files of schedulers by what the table calls them: those of a checkout, or all crates that have one."""
    if (folder / "scheds").is_dir():
        return {f"`scx_{name}`": source_of(folder, name) for name in names}
    crates = {crate: main_file(crate) for crate in sorted(folder.glob("scx_*-*")) if main_file(crate)}
    return {f"`{crate.name.replace('-', '` ', 1)}": source for crate, source in crates.items()}


def first_error(text: str) -> str:
    r"""The first thing that a compiler's or a run's message complains of, in one line, without its place.

    >>> first_error("a.c: does not compile:\na.c:3:1: error: 'x' undeclared (first use)\n")
    "'x' undeclared"
    """
    found = re.search(r":(?:\d+:)* (?:fatal )?error: (.*)", text)
    line = found[1] if found else text.strip().splitlines()[0]
    line = re.sub(r" \((?:first use|not in a function).*|; did you mean.*| \[-W.*", "", line)
    return line.translate(str.maketrans("‘’|", "''/")).rsplit("/src/bpf/", maxsplit=1)[-1]


def replay(recording: Path, source: Path, cpus: int, out: str) -> dict[str, Any]:
    """A recording under one, on so many CPUs: as a row of `Result.runs`."""
    words = ["replay", str(recording), "--policy", str(source), "--cpus", str(cpus)]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "schedlab",
            *words,
            "--timeout",
            TIMEOUT,
            "--out",
            f"{out}/replayed",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        return {"workload": recording.name, "error": first_error(done.stderr)}
    run = json.loads(done.stdout)["runs"][0]
    return {"workload": run["workload"], "error": run["error"], "consistency": run["consistency"]}


def try_scheduler(
    source: Path, workloads: list[str], cpus: list[int], topology: str = "", recordings: Sequence[Path] = ()
) -> list[str]:
    """Compile and run one: whether it compiles, runs that were ok by number of CPUs, the first reason why not."""
    try:
        build_policy(load_policy(str(source)))
    except SchedlabError as error:
        return ["no", *("" for _ in cpus), first_error(str(error))]
    cells, reasons = ["yes"], []
    for number in cpus:
        with tempfile.TemporaryDirectory(prefix="schedlab-upstream-") as out:
            result = schedlab.run(
                workloads, str(source), cpus=number, topology=topology, out=out, timeout=TIMEOUT
            )
            runs = result.runs.to_dicts()
            runs += [replay(recording, source, number, out) for recording in recordings]
        refusals = [run["error"].partition(REFUSES)[2] for run in runs if REFUSES in (run["error"] or "")]
        if len(refusals) == len(runs):
            cells.append("refused by the scheduler")
            reasons.append(f"{number} CPUs: {refusals[0].partition(': ')[2]}")
            continue
        failed = [
            f"{run['workload']}: {run['error'] or 'consistency ' + run['consistency']}"
            for run in runs
            if run["error"] or run["consistency"] != "ok"
        ]
        cells.append(f"{len(runs) - len(failed)} of {len(runs)}")
        reasons += [f"{number} CPUs, {reason}" for reason in failed]
    return [*cells, first_error(reasons[0])[:160] if reasons else ""]


def check_row(source: Path, budget: str, out: Path, *, on_linux: bool) -> list[str]:
    """Search for what breaks one: the property, after how long, in which smallest world, and Linux's verdict."""
    words = [
        *CHECK,
        str(source),
        "--budget",
        budget,
        "--out",
        str(out),
        *(["--on-linux"] if on_linux else []),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout:
        return ["", "", "", first_error(done.stderr)[:160]]
    answer = json.loads(done.stdout)
    if not answer["found"]:
        return ["nothing", f"{answer['worlds']:,} worlds", "", ""]
    found = answer["found"][0]
    where = f"{counted(found['tasks'], 'task')}, {counted(found['cpus'], 'CPU')}"
    text = (found["on_linux"] or "").partition("\n")[0].replace("|", "/")
    return [found["property"], f"{answer['seconds']:.0f} s", where, text[:160]]


def switches_per_second(source: Path) -> float:
    """How fast the simulator is under one: switches per second of CPU time, the maximum of `SPEED_RUNS` runs."""
    built = build_policy(load_policy(str(source)))
    values = for_machine(built.launch, SPEED_CPUS)
    sets = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    program = compile_workload(parse_workload(SPEED, name="speed.toml"), seed=1)
    rates = []
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(program.data))
        file.flush()
        for _ in range(SPEED_RUNS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = subprocess.run(
                [
                    *(simulator(), "--policy", built.shared_object, "--program", file.name, *sets),
                    *("--cpus", str(SPEED_CPUS), "--tick-ns", "4000000"),
                ],
                capture_output=True,
                check=True,
            )
            answer = json.loads(done.stdout)
            if answer["error"]:
                raise SchedlabError(answer["error"])
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            rates.append(answer["nr_switches"] / used)
    return max(rates)


def choose(policy: str, out: Path) -> tuple[list[np.ndarray | None], list[str]]:
    """What a user notices under one: for each of `CHOICE` a value by seed, or None; why a workload did not end well."""
    result = schedlab.run(
        sorted({row[0] for row in CHOICE}),
        policy,
        seeds=CHOICE_SEEDS,
        costs=CHOICE_COSTS,
        timeout=TIMEOUT,
        out=out,
        **CHOICE_MACHINE,
    )
    failed = result.runs.filter(pl.col("status") != "ok").unique(
        "workload", keep="first", maintain_order=True
    )
    found: list[np.ndarray | None] = []
    for workload, _, class_name, column, sum_up in CHOICE:
        tasks = result.tasks.filter(
            pl.col("workload") == workload, pl.col("name").str.starts_with(class_name)
        )
        # A request without an answer has taken at least until now.
        tasks = tasks.with_columns(pl.col("turnaround_ns").fill_null(WEB_NS - pl.col("arrival_ns")))
        seeds = tasks.drop_nulls(column).sort("seed").group_by("seed", maintain_order=True)
        values = np.array([float(sum_up(rows[column].to_numpy())) for _, rows in seeds])
        found.append(None if workload in failed["workload"] else values)
    return found, [
        f"{run['workload']}: {first_error(run['error'])[:160]}" for run in failed.iter_rows(named=True)
    ]


def choice_cell(values: np.ndarray | None, baseline: np.ndarray, column: str) -> str:
    """A mean over seeds, with a mark where pairs of seeds tell it from the baseline's in 95 of 100 cases.

    >>> choice_cell(np.array([2e9, 2.2e9, 2.1e9]), np.array([1e9, 1.2e9, 1.1e9]), "wakeup_ns_max")
    '2,100 ▲'
    """
    if values is None:
        return "-"
    mean, difference = values.mean() / (1 if column == "run_ns" else 1e6), values - baseline
    low, high = scipy.stats.t.interval(
        0.95, len(values) - 1, difference.mean(), scipy.stats.sem(difference) or 1e-9
    )
    mark = " ▲" if low > 0 else " ▼" if high < 0 else ""
    return f"{float(f'{mean:.3g}'):,g}{mark}"


def choice_table(folder: Path, names: list[str], out: Path) -> str:
    """The table for those who have to choose, and below it why a scheduler has no row."""
    sources = {f"scx_{name}": source for name in names if (source := source_of(folder, name))}
    policies = {CHOICE_BASELINE: CHOICE_BASELINE} | {name: str(source) for name, source in sources.items()}
    chosen = {name: choose(policy, out / name) for name, policy in policies.items()}
    baseline, reasons = chosen[CHOICE_BASELINE]
    if reasons:
        raise SchedlabError(reasons[0])
    rows = [["scheduler", *(row[1] for row in CHOICE)], ["---"] * (len(CHOICE) + 1)]
    notes = []
    for name, (found, reasons) in chosen.items():
        notes += [f"- `{name}`, {reason}" for reason in reasons]
        cells = zip(found, baseline, (row[3] for row in CHOICE), strict=True)
        rows.append([f"`{name}`", *(choice_cell(*cell) for cell in cells)])
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", *notes])


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schedulers", nargs="+", default=[*IN_C, *WITH_RUST])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--recordings", nargs="+", type=Path, default=[])
    parser.add_argument("--cpus", nargs="+", type=int, default=list(CPUS))
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--topology", default="")
    shown.add_argument("--write", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--on-linux", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/upstream"))
    asked = parser.parse_args()
    if asked.choose:
        table = choice_table(asked.folder, asked.schedulers, asked.out)
        print(table)
        if asked.write:
            write_between("choice table", table, PAGE)
        return
    sources = sources_of(asked.folder, asked.schedulers)
    if asked.check:
        rows = [["scheduler", "found", "after", "smallest", "on Linux 7.2"], ["---"] * 5]
        for name, source in sources.items():
            if source and try_scheduler(source, ["mixed"], [4])[1] == "1 of 1":
                row = check_row(
                    source, asked.budget, asked.out / re.sub(r"\W+", "-", name), on_linux=asked.on_linux
                )
                rows.append([name, *row])
                print(*rows[-1], sep=" | ", flush=True)
        if asked.write:
            write_between("findings table", "\n".join(f"| {' | '.join(row)} |" for row in rows), PAGE)
        return
    if asked.speed:
        for name in asked.schedulers:
            source = source_of(asked.folder, name)
            if source:
                print(
                    f"scx_{name}: {switches_per_second(source) / 1e6:.2f} M switches per CPU-second",
                    flush=True,
                )
        return
    head = ["scheduler", "compiles", *(f"{number} CPUs" for number in asked.cpus), "why not"]
    rows = [head, ["---"] * len(head)]
    for name, source in sources.items():
        cells = (
            try_scheduler(source, asked.workloads, asked.cpus, asked.topology, asked.recordings)
            if source
            else [
                "no",
                *("" for _ in asked.cpus),
                "its BPF half is made by a crate that is not in its folder",
            ]
        )
        rows.append([name, *cells])
        print(*rows[-1], sep=" | ", flush=True)
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if asked.write:
        mark = "schedulers table" if (asked.folder / "scheds").is_dir() else "versions table"
        write_between(mark, table.rstrip("\n"), PAGE)


if __name__ == "__main__":
    main()
