# SPDX-License-Identifier: MIT
"""What `schedlab run` is asked to do.

Read next: run.py, which does it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..hosts.choose import VIRTUAL, engine_of, open_host, why_no_option
from ..hosts.host import Host
from ..model import OPTIONS, SEED_MAX, Execution, Machine, read_options
from ..workload.model import Workload

SEEDS_MAX = 100_000
#: Seeds where policies are compared in virtual time: enough to decide what the eye sees;
#: docs/statistics.md has how much that is.
SEEDS_COMPARED = 20
#: What begins the name of a policy that is a program (policy/loader.py).
LOADER = "loader:"
_WORDS = {option.word for option in OPTIONS.values()}


@dataclass(frozen=True)
class Plan:
    """What `schedlab run` was asked to do."""

    workloads: Sequence[str | Workload]  #: Names or paths; or what is made already, such as a recorded run.
    policies: Sequence[str]  #: Names or paths.
    out: Path  #: Where the run folders go.
    #: `machine`, `execution`: The options of all runs.
    machine: Machine = field(default_factory=Machine)
    execution: Execution = field(default_factory=Execution)
    n_seeds: int = 1  #: How many seeds.
    first_seed: int = 1  #: The first of them; seed 0 means no jitter.
    settings: Sequence[str] = ()  #: `POLICY.KNOB=VALUE`; several values make variants of the policy.
    keep_parquet: bool = True  #: Whether to write the tables that are derived from the records.
    #: Whether the run folders outlive their runs; otherwise only what is computed from them is wanted.
    is_kept: bool = True
    baseline: str | None = None  #: The policy that all others are compared with; default: the first.
    command_line: str = ""  #: What the user has typed, as a shell takes it; empty: no command was.

    def problems(self) -> list[str]:
        """What is wrong with it, before names are looked up."""
        found = []
        if not self.workloads:
            found.append("no workload given; `schedlab workloads` lists them")
        if not self.policies:
            found.append("no policy given; name one with --policy, `schedlab policies` lists them")
        if not 1 <= self.n_seeds <= SEEDS_MAX:
            found.append(f"--seeds must be 1 to {SEEDS_MAX} (got {self.n_seeds})")
        if problem := wrong_seed(self.first_seed):
            found.append(problem)
        found += [
            f"--loader {name.removeprefix(LOADER)}: a program that loads a scheduler needs a kernel to itself, which "
            f"--host {self.execution.host} has not; hosts that have it: guest"
            for name in self.policies
            if name.startswith(LOADER) and self.execution.host != "guest"
        ]
        return found + why_no_option(self.machine, self.execution)


def make_plan(workloads: Sequence[str | Workload], policies: Sequence[str], out: Path, **given: Any) -> Plan:
    """Make a plan of what a user has written."""
    words = {name: given.pop(name) for name in list(given) if name in _WORDS or name not in _FIELDS}
    machine, execution, problems = read_options(words)
    if given.get("n_seeds", 1) is None:
        given["n_seeds"] = default_seeds(
            execution.host, policies, given.get("settings", ()), given.get("first_seed", 1)
        )
    plan = Plan(workloads, policies, out, machine, execution, **given)
    if problems := problems + plan.problems():
        raise UsageError("\n".join(problems))
    return plan


_FIELDS = {each.name for each in dataclasses.fields(Plan)} - {"machine", "execution"}


def default_seeds(host: str, policies: Sequence[str], settings: Sequence[str], first_seed: int) -> int:
    """How many seeds a plan has that does not say: one where nothing is compared, drawn, or cheap."""
    is_compared = len(policies) > 1 or any("," in setting for setting in settings)
    return SEEDS_COMPARED if is_compared and host in VIRTUAL and first_seed else 1


def wrong_seed(seed: int) -> str | None:
    """Why no run has this seed."""
    return None if 0 <= seed <= SEED_MAX else f"--seed must be 0 to 2**63 - 1 (got {seed})"


def host_of(execution: Execution) -> Host:
    """The host of a run, as its options want it: here, and the same on a worker."""
    host: Any = open_host("wasm" if engine_of(execution) == "wasm" else execution.host)
    mine = [each.name for each in dataclasses.fields(host)] if dataclasses.is_dataclass(host) else []
    return dataclasses.replace(host, **{name: getattr(execution, name) for name in mine}) if mine else host
