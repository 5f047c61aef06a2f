# SPDX-License-Identifier: MIT
"""Compile and run published sched_ext schedulers as they are; `.venv/bin/python bench/upstream.py`.

    upstream.py FOLDER [--schedulers NAME...] [--workloads W...] [--cpus N...] [--write]
    upstream.py FOLDER --speed [--schedulers NAME...]

FOLDER is a checkout of `sched-ext/scx`; nothing of it is copied. Each scheduler is compiled,
given what `policies/launch` has for it, and run in the simulator on each workload and number of
CPUs, with seed 1. A cell says how many of the workloads ended with consistency ok; the last column
says why not all. With `--write` the table in docs/upstream.md is replaced. With `--speed` each runs 200 tasks that
run and sleep 1 ms in turn, on 16 CPUs, without records: switches per second of CPU time, the maximum of five runs.

Read next: docs/upstream.md; python/schedlab/policy/launch_file.py.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
from pathlib import Path

import schedlab
from documents import write_between
from schedlab.errors import SchedlabError
from schedlab.paths import simulator
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.launch_file import for_machine
from schedlab.policy.published import main_file
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

PAGE = Path(__file__).resolve().parent.parent / "docs" / "upstream.md"
IN_C = ("central", "flatcg", "nest", "pair", "prev", "qmap", "sdt", "simple", "userland")
WITH_RUST = (
    *("beerland", "bpfland", "chaos", "cosmos", "flash", "lavd", "layered", "mitosis", "p2dq"),
    *("rlfifo", "rustland", "rusty", "tickless", "wd40"),
)
WORKLOADS = (
    *("mixed", "poisson", "classics/convoy", "classics/heavy-tail", "classics/interactive-batch"),
    *("classics/inversion-lock", "classics/messages", "classics/requests"),
)
CPUS = (1, 4, 16)
TIMEOUT = "60s"
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
#: Where the table of the page begins and ends.


def source_of(folder: Path, name: str) -> Path | None:
    """The main file of a scheduler, by its name without `scx_`; None where it has none of its own."""
    in_c = folder / "scheds" / "c" / f"scx_{name}.bpf.c"
    return in_c if in_c.is_file() else main_file(folder / "scheds" / "rust" / f"scx_{name}")


def first_error(text: str) -> str:
    """The first thing that a compiler's or a run's message complains of, in one line, without its place.

    >>> first_error("a.c: does not compile:\na.c:3:1: error: 'x' undeclared (first use)\n")
    "'x' undeclared"
    """
    found = re.search(r":(?:\d+:)* (?:fatal )?error: (.*)", text)
    line = found[1] if found else text.strip().splitlines()[0]
    line = re.sub(r" \((?:first use|not in a function).*|; did you mean.*| \[-W.*", "", line)
    return line.translate(str.maketrans("‘’|", "''/")).rsplit("/src/bpf/", maxsplit=1)[-1]


def try_scheduler(source: Path, workloads: list[str], cpus: list[int]) -> list[str]:
    """Compile and run one: whether it compiles, runs that were ok by number of CPUs, the first reason why not."""
    try:
        build_policy(load_policy(str(source)))
    except SchedlabError as error:
        return ["no", *("" for _ in cpus), first_error(str(error))]
    cells, reasons = ["yes"], []
    for number in cpus:
        with tempfile.TemporaryDirectory(prefix="schedlab-upstream-") as out:
            runs = schedlab.run(workloads, str(source), cpus=number, out=out, timeout=TIMEOUT).runs.to_dicts()
        failed = [
            f"{run['workload']}: {run['error'] or 'consistency ' + run['consistency']}"
            for run in runs
            if run["error"] or run["consistency"] != "ok"
        ]
        cells.append(f"{len(runs) - len(failed)} of {len(runs)}")
        reasons += [f"{number} CPUs, {reason}" for reason in failed]
    return [*cells, first_error(reasons[0])[:160] if reasons else ""]


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


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schedulers", nargs="+", default=[*IN_C, *WITH_RUST])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--cpus", nargs="+", type=int, default=list(CPUS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
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
    for name in asked.schedulers:
        source = source_of(asked.folder, name)
        cells = (
            try_scheduler(source, asked.workloads, asked.cpus)
            if source
            else [
                "no",
                *("" for _ in asked.cpus),
                "its BPF half is made by a crate that is not in its folder",
            ]
        )
        rows.append([f"`scx_{name}`", *cells])
        print(*rows[-1], sep=" | ", flush=True)
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if asked.write:
        write_between("schedulers table", table.rstrip("\n"), PAGE)


if __name__ == "__main__":
    main()
