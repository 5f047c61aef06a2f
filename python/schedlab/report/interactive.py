# SPDX-License-Identifier: MIT
"""The playground inside a report: the runs of a folder, with knobs that a reader can turn.

        programs and sources of the folder -> a page as playground.py writes it -> inside the report

What the folder has is taken, not what is called so here today: a policy may have been changed
since. Before anything is written, one run of each policy is done again in the sandbox.

Invariant: with the knobs as they were run, the page gives the record hashes of the folder.
Read next: playground.py; page/frame.js, which opens it.
"""

from __future__ import annotations

import base64
import contextlib
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ..errors import SchedlabError, UnavailableError, UsageError
from ..hosts.choose import unavailable_reason
from ..hosts.host import Job
from ..hosts.wasm import WasmHost
from ..model import RunSpec
from ..policy.build import build_policy
from ..policy.find import Policy, list_policies, load_policy
from ..program.file import Program
from ..records.file import hash_file
from ..runs.case import options_of_run
from .data import Section
from .playground import Archive, about_page, add_policy, add_program, document

#: A page is sent by mail.
BYTES_MAX = 8 << 20


def playground_of(sections: Sequence[Section]) -> dict[str, Any]:
    """Make the page of a folder's runs.

    Parameters
    ----------
    sections : sequence of Section
        From `data.read_sections`.

    Returns
    -------
    dict
        `packed`, the page; `address`, what it shows first; `digest` of its script.

    Raises
    ------
    UnavailableError
        If there is no sandbox here.
    UsageError
        If a run is none of the simulator's, or cannot be done again.
    """
    if reason := unavailable_reason("wasm"):
        raise UnavailableError(f"--interactive: the page needs policies as WebAssembly, but {reason}")
    other = next((s for s in sections if s.host not in ("sim", "wasm")), None)
    if other is not None:
        raise UsageError(
            f"--interactive: {other.workload} ran on {other.host}; a page runs the simulator only"
        )
    archive = Archive()
    policies: dict[str, tuple[str, Policy]] = {}
    workloads: list[dict[str, Any]] = []
    for section in sections:
        for runs in section.good.values():
            name, policy = _policy_of(section, runs[0])
            if policies.setdefault(policy.name, (name, policy))[1].content_hash != policy.content_hash:
                raise UsageError(
                    f"--interactive: {policy.name} has two texts in these runs; name one --workload"
                )
            options = _try_again(section, runs[0], policy)
        workloads.append(
            _add_runs(archive, section) | {"options": [word for each in options for word in each]}
        )
    seeds = sorted({seed for section in sections for seed in section.seeds})
    entries = [add_policy(archive, name, policy) for name, policy in policies.values()]
    about = about_page(archive, policies=entries, workloads=workloads, seeds=seeds)
    text, digest = document(about | {"files": archive.index}, archive.packed())
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    if len(packed) > BYTES_MAX:
        raise UsageError(
            f"--interactive: these runs would add {len(packed):,} bytes to the page, more than {BYTES_MAX:,}; "
            "name one --workload, or take fewer seeds"
        )
    return {"packed": packed, "digest": digest, "address": _first(sections[0])}


def _first(section: Section) -> str:
    """Both sides as they were run: the first two policies, or one twice."""
    runs = [runs[0] for runs in section.good.values()]
    words = {"workload": section.workload, "cpus": str(section.cpus), "seed": str(section.shown_seed)}
    for side, run in zip("ab", [*runs, *runs][:2], strict=True):
        words[side] = (
            RunSpec.from_json(run).policy.partition(":")[0].rpartition("/")[2].removesuffix(".bpf.c")
        )
        words |= {f"{side}.{knob}": str(value) for knob, value in run["knobs"].items()}
    return urlencode(words)


def _policy_of(section: Section, run: dict[str, Any]) -> tuple[str, Policy]:
    """The policy as it ran, and what a command calls it."""
    folder = section.folder(run)
    source = run.get("source")
    if folder is None or not source or not (folder / source["files"][0]).is_file():
        raise UsageError(
            f"--interactive: the source of {run['policy']} is not in the folder of its run any more"
        )
    policy = load_policy(str(folder / source["files"][0]), is_inside=True)
    ours = policy.name in list_policies() and load_policy(policy.name).content_hash == policy.content_hash
    return policy.name if ours else f"./{policy.path.name}", policy


def _program_of(section: Section, run: dict[str, Any]) -> Path:
    """The file of what a run ran."""
    folder = section.folder(run)
    name = f"seed-{run['seed']}-{run['program_hash'][:12]}.slprog"
    path = folder.parent.parent / "programs" / name if folder else Path(name)
    if not path.is_file():
        raise UsageError(f"--interactive: {path} is not there any more; do the runs again")
    return path


def _add_runs(archive: Archive, section: Section) -> dict[str, Any]:
    """Programs of a section's seeds, and what the page says of the workload."""
    runs = {run["seed"]: run for good in section.good.values() for run in good}
    missing = set(section.seeds) - set(runs)
    if missing or not runs:
        raise UsageError(
            f"--interactive: no good run of {section.workload} with seed {min(missing, default=1)}"
        )
    programs = {seed: Program(_program_of(section, run).read_bytes()) for seed, run in runs.items()}
    for seed, program in programs.items():
        add_program(archive, f"{section.workload}/{seed}", program)
    first = next(iter(runs.values()))
    n_cpus_min = max(1, max(int(program.header["nr_cpus_min"]) for program in programs.values()))
    return {
        "name": section.workload, "given": section.workload, "title": first.get("title") or section.workload,
        "question": first.get("question") or "", "tasks": max(program.n_tasks for program in programs.values()),
        "cpus": section.cpus, "cpus_min": n_cpus_min, "tick_ns": first["tick_ns"],
    }  # fmt: skip


def _try_again(section: Section, run: dict[str, Any], policy: Policy) -> tuple[tuple[str, str], ...]:
    """Do a run again as the page will, and hold its records against those of the folder. Return: its options."""
    try:
        built = build_policy(policy, run["knobs"], engine="wasm")
    except SchedlabError as error:
        raise UsageError(f"--interactive: {run['policy']}: {error}") from error
    if built.launch:
        raise UsageError(f"--interactive: {policy.name} has a launch file, for which a page has no place")
    session = WasmHost().session(timeout_seconds=60.0)
    with tempfile.TemporaryDirectory() as scratch, contextlib.closing(session):
        # Whether its tasks were there before is the one thing that the folder does not say.
        for are_roots_woken in (False, True):
            job = Job(
                label=f"{section.workload}, {run['policy']}", policy=built, program=_program_of(section, run),
                records=Path(scratch, "records.slr"), n_cpus=run["cpus"], seed=run["seed"], tick_ns=run["tick_ns"],
                options=options_of_run(run, are_roots_woken=are_roots_woken),
            )  # fmt: skip
            outcome = session.run(job)
            if outcome.error is not None:
                raise UsageError(f"--interactive: {job.label} fails in the sandbox: {outcome.error}")
            if hash_file(job.records) == run["record_hash"]:
                return job.options
    raise UsageError(
        f"--interactive: {job.label}, seed {run['seed']}: this version of schedlab gives other records than "
        "the folder has; do the runs again"
    )
