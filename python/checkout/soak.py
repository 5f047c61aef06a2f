# SPDX-License-Identifier: MIT
"""`schedlab soak`: long runs of evidence: the tests of CI, for as long as a question deserves.

A soak runs some of the tests with larger numbers and adds one dated line to
`docs/soaks.md`, which is committed: commit, command, how long, what came of it.

Must stay true: a soak that failed is written down like one that did not.
Read next: tests/sim/test_properties.py, tests/core/test_core.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from schedlab import paths
from schedlab.errors import EXIT_CHECK_FAILED, NotFoundError, UnavailableError, did_you_mean
from schedlab.tools import ask

LOG = "docs/soaks.md"
HEAD = """# Soaks

Long runs of evidence, newest last. `./lab soak NAME` adds a line; commit it.

| date (UTC) | soak | commit | minutes | result | command |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Soak:
    """One kind of evidence."""

    about: str  #: What it shows, in one line.
    arguments: tuple[str, ...]  #: For pytest.
    variable: str  #: Environment variable that says how much.
    default: int  #: Its value unless told otherwise.


SOAKS = {
    "properties": Soak(
        about="random workloads on random machines under every policy: consistency, nothing lost, exact repeats",
        arguments=("tests/sim/test_properties.py",),
        variable="SCHEDLAB_EXAMPLES",
        default=5000,
    ),
    "core": Soak(
        about="random operations of the core on threads, against a model, with and without sanitizers",
        arguments=("tests/core", "--suite", "nightly"),
        variable="SCHEDLAB_CORE_ROUNDS",
        default=400,
    ),
    "check": Soak(
        about="worlds that schedlab check draws for each policy of schedlab, so many s each: none breaks what it declares",
        arguments=("tests/check/test_soak.py", "--suite", "nightly"),
        variable="SCHEDLAB_CHECK_SECONDS",
        default=3600,
    ),
    "power-cuts": Soak(
        about="the teaching kernel's disk after power cuts: each image mounts, checks clean, keeps its promises",
        arguments=("tests/kernel/test_power_cut.py",),
        variable="SCHEDLAB_POWER_CUTS",
        default=200,
    ),
    "files": Soak(
        about="the teaching kernel's file system against a model: full disks, threads, cuts, broken images",
        arguments=("tests/kernel/test_file_system.py",),
        variable="SCHEDLAB_FILES_ROUNDS",
        default=30,
    ),
    "kernel": Soak(
        about="the teaching kernel's checks and random calls on 4, 2 and 1 harts at once, policies switched live",
        # The first failure is what there is to look at; the rest of the hour would hide it.
        # The three machines run at once: harts that wait for a CPU meet in more ways.
        arguments=("tests/kernel/test_soak.py", "--suite", "nightly", "-x", "-n", "3"),
        variable="SCHEDLAB_KERNEL_MINUTES",
        default=60,
    ),
    "pythons": Soak(
        about="wheel and source archive, installed on so many Pythons (3.13, 3.14, 3.12, 3.11), by pipx and by uv",
        arguments=("tests/meta/test_pythons.py", "--suite", "nightly"),
        variable="SCHEDLAB_PYTHONS",
        default=4,
    ),
    "mutants": Soak(
        about="small wrong changes of metrics, statistics, core, simulator and policies: some test notices each",
        # Progress goes to stderr, past what the log keeps.
        arguments=("tests/mutants/test_mutants.py", "--suite", "nightly", "-s"),
        variable="SCHEDLAB_MUTANTS",
        default=40,
    ),
    "wasm": Soak(
        about="every policy and workload on 1, 2, 4 and 64 CPUs, so many seeds: WebAssembly and native agree to the byte",
        arguments=("tests/sim/test_wasm.py", "--suite", "nightly", "-k", "soak", "-s"),
        variable="SCHEDLAB_WASM_SEEDS",
        default=1,
    ),
    "uthreads": Soak(
        about="report 3's 128 threads on 1, 2 and 4 kernel threads, all policies: none hangs or crashes, products right",
        arguments=("tests/uthreads/test_report3.py",),
        variable="SCHEDLAB_UTHREADS_RUNS",
        default=1000,
    ),
    "uthreads-libraries": Soak(
        about="zlib, libpq and static variables of C++ on threads in slices of 1 ms, so many s each: results are right",
        arguments=("tests/uthreads/test_libraries.py",),
        variable="SCHEDLAB_UTHREADS_LIBRARY_SECONDS",
        default=600,
    ),
    "uthreads-shares": Soak(
        about="8 computing threads per CPU under credit, so many s of CPU time per CPU: shares and caps hold within 1 %, "
        "also where others take half",
        arguments=("tests/uthreads/test_shares.py", "--suite", "nightly"),
        variable="SCHEDLAB_UTHREADS_SECONDS",
        default=60,
    ),
    "uthreads-strace": Soak(
        about="preempted threads on 1, 2 and 4 kernel threads, so many runs each, under strace, which makes signals slow",
        arguments=("tests/uthreads/test_debuggers.py", "-k", "strace", "-n", "3"),
        variable="SCHEDLAB_UTHREADS_STRACE_RUNS",
        default=1000,
    ),
    "uthreads-stress": Soak(
        about="random calls of the thread library, so many switches, a hundredth of them under each sanitizer",
        arguments=("tests/uthreads/test_stress.py",),
        variable="SCHEDLAB_UTHREADS_SWITCHES",
        default=1_000_000_000,
    ),
}


def run_soak(name: str, *, amount: int | None = None) -> bool:
    """Run a soak and write down what came of it."""
    if name not in SOAKS:
        raise NotFoundError(
            f"unknown soak {name!r}{did_you_mean(name, SOAKS)}; there are: {', '.join(SOAKS)}"
        )
    root = paths.resource_root()
    if not (root / "tests").is_dir():
        raise UnavailableError("a soak needs a checkout of schedlab: its tests are not part of the wheel")
    soak = SOAKS[name]
    amount = soak.default if amount is None else amount
    environment = dict(os.environ, **{soak.variable: str(amount)})
    # Before it runs: an hour later there may be another one.
    commit = _commit(root)
    start_s = time.monotonic()
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout", "0", *soak.arguments],
        cwd=root,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    print(answer.stdout, end="")
    minutes = (time.monotonic() - start_s) / 60
    lines = answer.stdout.strip().splitlines() or ["no output"]
    result = lines[-1].strip("= ")
    write_down(root / LOG, name, f"{soak.variable}={amount}", commit=commit, minutes=minutes, result=result)
    return answer.returncode == 0


def _commit(root: Path) -> str:
    """The commit that is checked out, with a mark when files differ from it."""
    return ask(["git", "describe", "--always", "--dirty"], cwd=root).stdout.strip() or "unknown"


def write_down(log: Path, name: str, setting: str, *, commit: str, minutes: float, result: str) -> None:
    """Add a line to the log of soaks."""
    if not log.exists():
        log.write_text(HEAD)
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    row = f"| {date} | {name} | {commit} | {minutes:.1f} | {result} | `{setting} ./lab soak {name}` |\n"
    with open(log, "a") as file:
        file.write(row)


def soak(
    name: Annotated[str | None, typer.Argument(help="Which; without a name they are listed.")] = None,
    amount: Annotated[int | None, typer.Option(min=1, help="How many examples or rounds.")] = None,
) -> None:
    """Run long tests, and add a dated line to docs/soaks.md."""
    if name is None:
        for known, its in SOAKS.items():
            print(f"{known:<12} {its.about} ({its.variable}={its.default})")
        return
    if not run_soak(name, amount=amount):
        raise typer.Exit(EXIT_CHECK_FAILED)
