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
import shlex
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
from ..metrics.dictionary import HEADLINES
from ..model import RunSpec
from ..policy.build import build_policy
from ..policy.find import Policy, list_policies, load_policy
from ..program.file import Program
from ..records.file import hash_file
from ..runs.case import options_of_run
from ..units import format_duration
from .data import Section
from .playground import Archive, about_page, add_policy, add_program, document

#: A page is sent by mail.
BYTES_MAX = 8 << 20
#: What one run may take in the sandbox, and how many bytes of records page/simulate.js keeps.
SECONDS_MAX = 60.0
RECORDS_BYTES_MAX = 1 << 28


def playground_of(sections: Sequence[Section]) -> dict[str, Any]:
    """Make the page of a folder's runs: `packed`; `address`, what it shows first; `digest` of its script.

    UsageError: a run is none of the simulator's, or cannot be done again.
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
        made = _add_runs(archive, section) | {"options": [word for each in options for word in each]}
        # Once for all numbers of CPUs, of which the page has a field.
        known = next((each for each in workloads if each["name"] == section.workload), None)
        if known is None:
            workloads.append(made)
        elif known | {"cpus": 0} != made | {"cpus": 0}:
            raise UsageError(f"--interactive: {section.workload} ran on two machines; report them one by one")
    seeds = sorted({seed for section in sections for seed in section.seeds})
    entries = [add_policy(archive, name, policy) for name, policy in policies.values()]
    about = about_page(archive, policies=entries, workloads=workloads, seeds=seeds)
    about |= {"files": archive.index, "reported": _reported(sections)}
    text, digest = document(about, archive.packed())
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
        words[side] = _called(run)
        words |= {f"{side}.{knob}": str(value) for knob, value in run["knobs"].items()}
    return urlencode(words)


def _reported(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """What runs of all seeds are held against in the page: their record hashes and metrics."""
    return [
        {
            "workload": section.workload, "policy": _called(runs[0]), "cpus": section.cpus,
            "knobs": runs[0]["knobs"],
            "runs": {
                run["seed"]: {"hash": run["record_hash"], "metrics": {m: run["metrics"].get(m) for m in HEADLINES}}
                for run in runs
            },
        }
        for section in sections
        for runs in section.good.values()
    ]  # fmt: skip


def _called(run: dict[str, Any]) -> str:
    """Name of a run's policy without its knobs and place."""
    return RunSpec.from_json(run).policy.partition(":")[0].rpartition("/")[2].removesuffix(".bpf.c")


def _machine(run: dict[str, Any]) -> str:
    """Words of a command for the machine of a run."""
    words = [*(f"--cost {cost}" for cost in run["costs"]), *(f"--io {each}" for each in run["io"])]
    words += [f"--{name} {run[name]}" for name in ("topology", "capacity") if run.get(name)]
    words += [f"--{name} {span}" for name in ("above", "offline") for span in run.get(name) or ()]
    return "".join(f" {word}" for word in [*words, f"--tick {format_duration(run['tick_ns'])}"])


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
        "name": section.workload, "given": shlex.quote(section.workload), "title": first.get("title") or section.workload,
        "question": first.get("question") or "", "tasks": max(program.n_tasks for program in programs.values()),
        "cpus": section.cpus, "cpus_min": n_cpus_min, "tick_ns": first["tick_ns"], "machine": _machine(first),
    }  # fmt: skip


def _try_again(section: Section, run: dict[str, Any], policy: Policy) -> tuple[tuple[str, str], ...]:
    """Do a run again as the page will, and hold its records against those of the folder. Return: its options."""
    try:
        built = build_policy(policy, run["knobs"], engine="wasm")
    except SchedlabError as error:
        raise UsageError(f"--interactive: {run['policy']}: {error}") from error
    if run.get("events") or run.get("interleave"):
        raise UsageError(
            f"--interactive: {section.workload} has events or an interleaving, which a page does not"
        )
    if built.launch:
        raise UsageError(f"--interactive: {policy.name} has a launch file, for which a page has no place")
    session = WasmHost().session(timeout_seconds=SECONDS_MAX)
    with tempfile.TemporaryDirectory() as scratch, contextlib.closing(session):
        # Whether its tasks were there before is the one thing that the folder does not say.
        for are_roots_woken in (False, True):
            job = Job(
                label=f"{section.workload}, {run['policy']}", policy=built, program=_program_of(section, run),
                records=Path(scratch, "records.slr"), n_cpus=run["cpus"], seed=run["seed"], tick_ns=run["tick_ns"],
                options=options_of_run(run, are_roots_woken=are_roots_woken),
            )  # fmt: skip
            outcome = session.run(job)
            n_bytes = job.records.stat().st_size if job.records.is_file() else 0
            if outcome.error_kind == "timeout" or n_bytes > RECORDS_BYTES_MAX:
                raise UsageError(
                    f"--interactive: {job.label}, seed {job.seed}: too long for a browser, after {SECONDS_MAX:g} s or "
                    f"{n_bytes:,} bytes of records ({RECORDS_BYTES_MAX:,} are kept); name another --workload, or run a shorter one"
                )
            if outcome.error is not None:
                raise UsageError(f"--interactive: {job.label} fails in the sandbox: {outcome.error}")
            if hash_file(job.records) == run["record_hash"]:
                return job.options
    raise UsageError(
        f"--interactive: {job.label}, seed {run['seed']}: this version of schedlab gives other records than "
        "the folder has; do the runs again"
    )
