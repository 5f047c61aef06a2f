# SPDX-License-Identifier: MIT
"""How long it takes to grade a class: 100 submissions x 10 workloads x 20 seeds, one in ten hostile.

    .venv/bin/python bench/grade.py [--submissions 100]

Issue of the project: under five minutes on two CPUs. The submissions are the examples' with
another constant each, so that none is found compiled; the hostile ones are those of
tests/sandbox/hostile.py, in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "sandbox")]

from hostile import ATTACKS, HEAD  # noqa: E402

from schedlab.grade.assignment import read_assignment  # noqa: E402
from schedlab.grade.grade import grade, read_submissions  # noqa: E402

WORKLOADS = {
    "office": "office.toml", "flood": "flood.toml", "gamer": "gamer.toml", "textbook": "textbook.toml",
    "mixed": "mixed", "convoy": "classics/convoy", "starvation": "classics/starvation:rounds=60",
    "inversion": "classics/inversion-lock", "interactive": "classics/interactive-batch", "tickets": "report-5/tickets",
}  # fmt: skip
TESTS = """
[[test]]
name = "runs"
points = 20
runs = true

[[test]]
name = "no long wait"
points = 40
wait_max = "2s"
each = true

[[test]]
name = "quick"
points = 40
workloads = ["office", "mixed", "interactive"]
metric = "wakeup_mean"
better_than = "rr"
by = "20%"
"""


def make_class(folder: Path, n_submissions: int) -> list[Path]:
    """Write the assignment and the submissions."""
    text = '[assignment]\ntitle = "Bench"\nquestion = "?"\nseeds = 20\n'
    for name, source in WORKLOADS.items():
        is_file = source.endswith(".toml")
        if is_file:
            (folder / source).write_bytes((ROOT / "examples/mlfq" / source).read_bytes())
        text += f'\n[[workload]]\nname = "{name}"\nsource = "{source}"\n'
    (folder / "assignment.toml").write_text(text + TESTS)
    good = sorted((ROOT / "examples/mlfq/solutions").glob("*.bpf.c"))
    bad = [attack.whole or HEAD % (attack.before, attack.within) for attack in ATTACKS.values()]
    files = []
    for number in range(n_submissions):
        path = folder / f"student{number:03}.bpf.c"
        own = f"\nstatic const int own_number = {number};\n"
        is_hostile = number % 10 == 9
        path.write_text(
            (bad[number // 10 * 4 % len(bad)] if is_hostile else good[number % len(good)].read_text()) + own
        )
        files.append(path)
    return files


def main() -> None:
    """Grade it, and say how long that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--submissions", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="schedlab-bench-grade-") as name:
        folder = Path(name)
        files = make_class(folder, given.submissions)
        assignment = read_assignment(folder / "assignment.toml")
        began = time.monotonic()
        reports = grade(
            assignment, read_submissions(files), b"the secret of the bench", folder / "out"
        ).reports
        seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    n_runs = sum(len(report.facts) for report in reports)
    n_bad = sum(report.points == 0 for report in reports)
    print(
        f"{len(reports)} submissions, {n_runs} runs, {n_bad} of 0 points: {seconds:.0f} s on the wall clock, "
        f"{used.ru_utime + used.ru_stime:.0f} s of CPU time, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
