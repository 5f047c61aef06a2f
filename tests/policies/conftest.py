# SPDX-License-Identifier: MIT
"""Run a workload under a policy in the simulator, and ask what happened.

The questions are answered from the record file alone, with a few lines of NumPy
and none of the metrics code, so that a mistake there cannot hide one here.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Records, read_records
from schedlab.workload.spec import parse_workload

MS = 1_000_000
SECONDS_MAX = 120


@dataclass(frozen=True)
class Turn:
    """One stay of a task on a CPU; times in nanoseconds."""

    name: str
    pid: int
    cpu: int
    start_ns: int
    end_ns: int
    why: int

    @property
    def ran_ms(self) -> float:
        """How long it was, in milliseconds."""
        return (self.end_ns - self.start_ns) / MS


class Played:
    """What happened in one run.

    Parameters
    ----------
    records : schedlab.records.file.Records
        Its records.
    names : list of str
        Name of each task, in order of pid.
    result : dict
        What the simulator printed.
    said : list of str
        What the policy printed, line by line, without the time.
    """

    def __init__(self, records: Records, names: list[str], result: dict, said: list[str]):
        self.records = records
        self.names = names
        self.result = result
        self.said = said
        self.end_ns = records.end_ns
        self.turns = list(self._turns())

    def _turns(self):
        running = {}
        for event in self.records.events:
            pid = int(event["task"])
            if event["kind"] == Kind.RUN:
                running[pid] = int(event["t_ns"])
            elif event["kind"] == Kind.STOP:
                yield Turn(
                    self.names[pid - 1],
                    pid,
                    int(event["cpu"]),
                    running.pop(pid),
                    int(event["t_ns"]),
                    int(event["flags"]),
                )

    def order(self) -> list[str]:
        """Names in the order in which they came to run, neighbours merged."""
        names = [turn.name for turn in self.turns]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    def finish_ms(self, name: str) -> float:
        """When the last task of this name stopped for the last time."""
        return max(turn.end_ns for turn in self.turns if turn.name == name) / MS

    def ran_ms(self, *, since_ms: float = 0, until_ms: float | None = None) -> dict[str, float]:
        """CPU time of each name within a window, in milliseconds."""
        since_ns = int(since_ms * MS)
        until_ns = self.end_ns if until_ms is None else int(until_ms * MS)
        ran = dict.fromkeys(self.names, 0.0)
        for turn in self.turns:
            ran[turn.name] += max(0, min(turn.end_ns, until_ns) - max(turn.start_ns, since_ns)) / MS
        return ran

    def shares(self, **window) -> dict[str, float]:
        """Part of all CPU time used that each name got, between 0 and 1."""
        ran = self.ran_ms(**window)
        total = sum(ran.values())
        return {name: value / total for name, value in ran.items()}

    def latencies_ms(self, name: str) -> np.ndarray:
        """From each wake-up of a name's tasks to the run that follows."""
        events = self.records.events
        woken, found = {}, []
        for event in events:
            pid = int(event["task"])
            if pid == 0 or self.names[pid - 1] != name:
                continue
            if event["kind"] == Kind.WAKE:
                woken[pid] = int(event["t_ns"])
            elif event["kind"] == Kind.RUN and pid in woken:
                found.append((int(event["t_ns"]) - woken.pop(pid)) / MS)
        return np.array(found)


@pytest.fixture
def play(simulator, tmp_path):
    """Function that runs TOML under a policy: `play(toml, "rr", cpus=2, slice_ns=5)`."""
    played = 0

    def run(toml: str, policy: str, *, cpus: int = 1, seed: int = 0, limit_s: int = 600, **knobs):
        nonlocal played
        played += 1
        workload = parse_workload(toml)
        program = compile_workload(workload, seed=seed)
        program_path = tmp_path / f"{played}.prog"
        program_path.write_bytes(program.data)
        records_path = tmp_path / f"{played}.rec"
        built = build_policy(load_policy(policy))
        unknown = set(knobs) - set(built.values)
        assert not unknown, f"{policy} has no knob {unknown}"
        command = [
            simulator,
            "--policy",
            built.shared_object,
            "--program",
            program_path,
            "--cpus",
            str(cpus),
            "--seed",
            str(seed),
            "--tick-ns",
            str(workload.tick_ns),
            "--records",
            records_path,
            "--limit-ns",
            str(limit_s * 1000 * MS),
        ]
        for name, value in knobs.items():
            command += ["--set", f"{name}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert result["status"] == "ok", result
        names = program.tasks["name"].tolist()
        said = [line.partition(" ")[2] for line in done.stderr.splitlines()]
        return Played(read_records(records_path), names, result, said)

    return run


@pytest.fixture(scope="session")
def policies_folder(root) -> Path:
    """Where the policies are."""
    return root / "policies"
