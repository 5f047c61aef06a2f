# SPDX-License-Identifier: MIT
"""Run a workload in the simulator, without the checks and files of `schedlab run`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.program.file import Program
from schedlab.records.file import Records, read_records
from schedlab.workload.model import Workload
from schedlab.workload.spec import parse_workload

SECONDS_MAX = 120


class Simulated(NamedTuple):
    """One run: what the simulator answered, what it recorded of which program, and what the policy printed."""

    answer: dict[str, Any]
    records: Records
    program: Program
    said: list[str]


def simulated(
    simulator: Path,
    folder: Path,
    workload: str | Workload,
    policy: str | Path,
    *options: object,
    cpus: int = 1,
    seed: int = 0,
    knobs: Mapping[str, Any] | None = None,
) -> Simulated:
    """Run a workload, by default of TOML, under a policy, by its name or its file."""
    if isinstance(workload, str):
        workload = parse_workload(workload)
    program = compile_workload(workload, seed=seed)
    built = build_policy(load_policy(str(policy)), knobs)
    # Of its own: records are read from their file when they are asked for.
    of_run = Path(tempfile.mkdtemp(dir=folder))
    program.save(of_run / "program")
    words = [
        simulator, "--policy", built.shared_object, "--program", of_run / "program", "--records", of_run / "records",
        "--cpus", cpus, "--seed", seed, "--tick-ns", workload.tick_ns, *options,
    ]  # fmt: skip
    settings = {**built.values, **(knobs or {})}
    words += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert done.returncode == 0, done.stderr
    said = [line.partition(" ")[2] for line in done.stderr.splitlines()]
    return Simulated(json.loads(done.stdout), read_records(of_run / "records"), program, said)
