# SPDX-License-Identifier: MIT
"""What every policy made of golden_runs.toml, kept as digests of its events.

A line of golden_runs.txt is a run: the policy, the CPUs, its knobs, the digest. The
known answers say what is right; a digest says only that nothing has changed, but of
paths that no schedule on paper reaches.

Called by tools/bless. Read next: test_golden_runs.py.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path

from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.spec import parse_workload

HERE = Path(__file__).resolve().parent
LISTED = HERE / "golden_runs.txt"
WORKLOAD = HERE / "golden_runs.toml"
#: More options of the simulator, by the number of CPUs.
OPTIONS = {
    4: ("--topology", "smt=2,llc=2", "--cost", "switch_ns=1500,migrate_ns=4000,ipi_ns=900,wakeup_ns=700")
}


def listed() -> list[str]:
    """The lines of golden_runs.txt."""
    return LISTED.read_text().splitlines()


def run(line: str, simulator: Path) -> str:
    """Do a run of `listed` again: its line with the digest of what happened now."""
    name, cpus, *knobs = (word for word in line.split() if not word.startswith("sha256:"))
    n_cpus = int(cpus.removeprefix("cpus="))
    text = WORKLOAD.read_text()
    if n_cpus == 1:
        text = re.sub(r"^affinity = .*$", "", text, flags=re.M)
    workload = parse_workload(text, name=WORKLOAD.name)
    built = build_policy(load_policy(name))
    with tempfile.TemporaryDirectory() as folder:
        program, records = Path(folder) / "program", Path(folder) / "records"
        program.write_bytes(compile_workload(workload, seed=1).data)
        done = subprocess.run(
            [simulator, "--policy", built.shared_object, "--program", program, "--records", records,
             "--cpus", str(n_cpus), "--seed", "1", "--tick-ns", str(workload.tick_ns),
             *OPTIONS.get(n_cpus, ()), *(word for knob in knobs for word in ("--set", knob))],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        if json.loads(done.stdout)["status"] != "ok":
            raise AssertionError(f"{line}: {done.stdout}")
        digest = hashlib.sha256(read_records(records).events.tobytes()).hexdigest()[:16]
    return " ".join([name, cpus, *knobs, f"sha256:{digest}"])


def bless(simulator: Path) -> list[str]:
    """Rewrite golden_runs.txt with what happens now; returns the lines that changed."""
    before = listed()
    after = [run(line, simulator) for line in before]
    LISTED.write_text("\n".join(after) + "\n")
    return [line for line in after if line not in before]
