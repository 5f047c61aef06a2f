# SPDX-License-Identifier: MIT
"""Run a workload under a policy in the simulator, and ask what happened.

The questions are answered from the record file alone, with a few lines of NumPy
and none of the metrics code, so that a mistake there cannot hide one here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from schedlab.records.file import Kind, Records
from sim.simulated import simulated

MS = 1_000_000


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
    """What happened in one run; `said` is what the policy printed, line by line, without the time."""

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

    def ran(self) -> list[tuple[str, float]]:
        """Name and length of each turn."""
        return [(turn.name, turn.ran_ms) for turn in self.turns]

    def starts_ms(self, name: str) -> list[float]:
        """When each turn of a name's tasks began."""
        return [turn.start_ns / MS for turn in self.turns if turn.name == name]

    def cpus(self) -> dict[int, set[int]]:
        """Where each task ran, by pid."""
        return {
            pid: {turn.cpu for turn in self.turns if turn.pid == pid} for pid in range(1, len(self.names) + 1)
        }

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

    def run(toml: str, policy: str, *, cpus: int = 1, seed: int = 0, limit_s: int = 600, **knobs):
        limit = ("--limit-ns", limit_s * 1000 * MS)
        found = simulated(simulator, tmp_path, toml, policy, *limit, cpus=cpus, seed=seed, knobs=knobs)
        assert found.answer["status"] == "ok", found.answer
        return Played(found.records, found.program.tasks["name"].tolist(), found.answer, found.said)

    return run


@pytest.fixture(scope="session")
def policies_folder(root) -> Path:
    """Where the policies are."""
    return root / "policies"
