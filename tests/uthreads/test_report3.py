# SPDX-License-Identifier: MIT
"""Report 3's workload, over and over: no run hangs or crashes, every product is right.

Of the published packages that we ran on it, 23 % of the runs failed. A run here is
its 128 threads by size and credits, with a share of the work, so that it is short;
policy, number of kernel threads and all that the workload leaves open vary from
run to run. `./lab soak uthreads` does a thousand.
"""

from __future__ import annotations

import os
import random
import re
import shutil

import pytest

from schedlab import paths
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.policy.build import build_policy
from schedlab.policy.find import list_policies, load_policy
from schedlab.program.compiler import compile_workload
from schedlab.runs.judge import Judge
from schedlab.workload.spec import parse_workload

NR_RUNS = int(os.environ.get("SCHEDLAB_UTHREADS_RUNS", 20))
NR_TASKS = 129
#: Threads are preempted several times each, although they are short.
TICK_NS = 100_000
SLICE_NS = 200_000
SECONDS_MAX = 120
#: So many runs that failed tell enough.
FAILURES_MAX = 10
#: Parts that the work is divided by: one run in four is a longer one.
SHARES = (8, 64, 32, 64)
CPUS = (1, 2, 4)
CHOICES = {
    "order": ("report", "crossed"),
    "loads": ("equal", "unequal"),
    "yields": ("never", "64", "8"),
    "growth": (1, 8),
}


def variant(run: int) -> tuple[dict, int, int]:
    """Params, share and number of CPUs of a run, drawn from its number."""
    draw = random.Random(run)
    params = {name: draw.choice(values) for name, values in CHOICES.items()}
    return params, draw.choice(SHARES), draw.choice(CPUS)


def smaller(text: str, share: int) -> str:
    """The workload with a share of the multiply-adds in each product."""
    return re.sub(r"count = ([\d_]+)", lambda found: f"count = {int(found[1]) // share}", text)


@pytest.fixture(scope="module")
def host(tmp_path_factory, build):
    """The host, with a runner of its own, which no rebuild replaces while it runs."""
    own = tmp_path_factory.mktemp("runner") / "schedlab-uthreads"
    shutil.copy2(build / "hosts" / "uthreads" / "schedlab-uthreads", own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "uthreads_runner", lambda: own)
        yield open_host("uthreads")


@pytest.fixture(scope="module")
def policies():
    """Every policy, with slices that are short enough where it has a knob for them."""
    built = []
    for name in list_policies():
        policy = load_policy(name)
        built.append(build_policy(policy, {"slice_ns": SLICE_NS} if "slice_ns" in policy.knobs else {}))
    assert len(built) >= 15
    return built


def problem(host, session, built, run: int, folder) -> str | None:
    """Do a run; what was wrong with it, or None."""
    params, share, n_cpus = variant(run)
    text = (paths.resource_root() / "workloads" / "report-3" / "matrix.toml").read_text()
    program = compile_workload(parse_workload(smaller(text, share), params=params), seed=run)
    path, records = folder / "program.slprog", folder / "records.slr"
    path.write_bytes(program.data)
    job = Job(
        label=str(run), policy=built, program=path, records=records, n_cpus=n_cpus, seed=run, tick_ns=TICK_NS
    )
    outcome = session.run(job)
    where = f"run {run}, {built.policy.name} on {n_cpus} CPUs, {params}, share {share}"
    if outcome.error is not None:
        return f"{where}: {outcome.error_kind}: {outcome.error}"
    if outcome.answer["nr_exited"] != NR_TASKS or outcome.answer["nr_products"] < NR_TASKS - 1:
        return f"{where}: {outcome.answer}"
    # This machine's other processes keep CPUs from noticing work for any time.
    judge = Judge(
        latency_ns=host.latency_ns(job),
        work_conserving=False,
        tables_folder=None,
        tolerance_ns=host.tolerance_ns(job),
        has_exact_work=host.has_exact_work,
        calibration=host.calibration(job),
    )
    verdict = judge.verdict(program, records, outcome)
    return None if verdict["consistency"] == "ok" else f"{where}: {verdict['error']}"


@pytest.mark.full
def test_no_run_fails(host, policies, tmp_path):
    failures = []
    session = host.session(timeout_seconds=SECONDS_MAX)
    try:
        for run in range(NR_RUNS):
            found = problem(host, session, policies[run % len(policies)], run, tmp_path)
            if found:
                failures.append(found)
            if len(failures) == FAILURES_MAX:
                break
    finally:
        session.close()
    assert not failures, f"{len(failures)} of {run + 1} runs failed:\n" + "\n".join(failures)
