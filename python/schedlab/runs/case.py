# SPDX-License-Identifier: MIT
"""One run: one workload under one policy with one seed, judged and written down.

Must stay true: a run's `run.json` is written last, so that a folder that has
one is whole. Of a plan that keeps nothing, nothing is left of a run that is done.
Read next: hosts/sim.py for how a host does it, judge.py for what it is worth.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import paths
from ..calibration import DEFAULT_CALIBRATION
from ..errors import SchedlabError, UnavailableError
from ..files import write_bytes, write_files, write_json, write_text
from ..hosts.choose import VIRTUAL
from ..hosts.host import Host, Job
from ..hosts.kinds import cost_ns, device_of, exit_ns
from ..model import SCHEMA, Machine, RunSpec
from ..policy.build import BuiltPolicy, find_compiler
from ..policy.find import Policy, own_files
from ..policy.quotas import keeps_quotas, quotas_ignored
from ..policy.races import compile_for_races
from ..workload.events import IN_GUEST, are_cpus_steady, has_exact_work
from ..workload.model import Workload
from .judge import Judge
from .plan import Plan

if TYPE_CHECKING:
    from ..hosts.host import Session
    from ..program.file import Program

#: What a policy printed, in the folder of its run; and how much of its end is shown.
LOG_FILE = "policy.log"
LOG_LINES_SHOWN = 5


@dataclass(frozen=True)
class Case:
    """One run to be done, before it is known whether it can be."""

    position: int  #: In the plan, from 0.
    workload: Any  #: Workload: what runs.
    policy_name: str  #: Who decides, and with which knobs.
    #: `seed`, `n_cpus`: The seed, and the number of CPUs.
    seed: int
    n_cpus: int
    tick_ns: int  #: Time between ticks in nanoseconds.


@dataclass(frozen=True)
class RunContext:
    """All that the runs of a plan share."""

    plan: Plan  #: What was asked for.
    host: Host  #: Where they run.
    #: dict of str to (BuiltPolicy or PolicyError): by name of the policy: what runs, or what kept it from
    #: being built.
    built: dict[str, Any]
    programs: Programs  #: Compiled workloads.
    environment: dict[str, Any]  #: What a reader must know to repeat the runs.
    #: By file of the policy, from the first run on that has it: what is copied beside runs.
    sources: dict[Path, dict[str, bytes]] = field(default_factory=dict)

    def moved(self, out: Path, *, first_seed: int) -> RunContext:
        """The same for the runs of a plan that differs in its folder and seeds alone."""
        return replace(
            self,
            plan=replace(self.plan, out=out, first_seed=first_seed),
            programs=Programs(out if self.plan.is_kept else None),
        )


class Programs:
    """Programs by workload and seed, compiled once and shared by all policies.

    `out` is the folder of the runs; without one, each run gets a file of its own.
    """

    def __init__(self, out: Path | None = None):
        self._out = out
        self._lock = threading.Lock()
        self._made: dict[tuple[str, int], Program] = {}
        self._files: dict[tuple[str, int], Path] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker process compiles what it needs."""
        return Programs, (self._out,)

    def get(self, workload: Workload, seed: int, folder: Path | None = None) -> tuple[Any, ...]:
        """Return the program and its file; `folder` is the run's."""
        from ..program.compiler import compile_workload

        with self._lock:
            key = (workload.name, seed)
            if key not in self._made:
                self._made[key] = compile_workload(workload, seed=seed)
            program = self._made[key]
            path = self._files.get(key)
            if path is None:
                # The hash keeps programs apart that two calls write to one folder.
                file_name = f"seed-{seed}-{program.program_hash[:12]}.slprog"
                folder = self._out / folder_name(workload.name) / "programs" if self._out else folder
                assert folder is not None, "without a folder of all runs there is the run's own"
                folder.mkdir(parents=True, exist_ok=True)
                path = (folder / file_name).resolve()
                write_bytes(path, program.data)
                if self._out:
                    self._files[key] = path
            return program, path


def environment_of(host: Host) -> dict[str, Any]:
    """Collect what a reader must know to repeat the runs."""
    from .. import __version__

    try:
        compiler = find_compiler()[1]
    except UnavailableError:
        compiler = None
    return {
        "schedlab": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "compiler": compiler,
        **_compiler_of_wheel(),
        **host.environment(),
    }


def _compiler_of_wheel() -> dict[str, str]:
    """Compiler of the policies that came compiled."""
    try:
        text = (paths.compiled_folder() / "compiler.txt").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {"compiler_of_wheel": text.strip()}


def folder_name(name: str) -> str:
    """Turn a workload's or policy's name into a relative path that stays below its parent.

    >>> folder_name("report-1/mixed"), folder_name("../x")
    ('report-1/mixed', '_/x')
    """
    parts = [re.sub(r"[^\w.,:=+-]", "_", part) for part in name.split("/")]
    return "/".join("_" if part in ("", ".", "..") else part for part in parts)


def folder_of(plan: Plan, case: Case) -> Path:
    """Find the folder of a run."""
    names = (folder_name(case.workload.name), folder_name(case.policy_name), f"seed-{case.seed}")
    return plan.out.joinpath(*names)


def _work_folder(plan: Plan, case: Case) -> Path:
    """Where a run's files are while it is done: its folder, or what the worker's runs share."""
    if plan.is_kept:
        return folder_of(plan, case)
    return plan.out / f"worker-{os.getpid()}-{threading.get_ident()}"


def _empty(folder: Path) -> None:
    """Remove what a run has left in a folder that the next one uses."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink()


def run_case(
    context: RunContext,
    case: Case,
    session: Session | None,
    stop: threading.Event,
    on_tasks: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any] | None:
    """Do one run, judge it, and write its folder."""
    folder = _work_folder(context.plan, case)
    run = blank_run(context, case)
    try:
        is_lost = do_case(run, context, case, session, on_tasks)
        if is_lost and stop.is_set():
            # We ended its host ourselves: no policy is to blame, and nothing is kept.
            shutil.rmtree(folder, ignore_errors=True)
            return None
        if context.plan.is_kept:
            write_run(run)
    except OSError as error:
        mark_failed(run, error)
    finally:
        if not context.plan.is_kept:
            _empty(folder)
    return listed(run)


def listed(run: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a run what only its own file holds."""
    return {name: value for name, value in run.items() if name != "host_answer"}


def write_run(run: dict[str, Any]) -> None:
    """Write `run.json`, the last file of a run."""
    write_json(Path(run["directory"]) / "run.json", run)


def mark_failed(run: dict[str, Any], error: OSError) -> None:
    """Make a run a failed one: a disk that is full fails this run, another may be smaller."""
    where = error.filename or run["directory"]
    run |= {"status": "failed", "consistency": None, "physics": None, "metrics": {}, "error_kind": "host",
            "error": f"{where}: cannot be written: {error.strerror or error}"}  # fmt: skip


def _machine_of(plan: Plan, workload: Workload) -> Machine:
    """Find the plan's machine, with the workload's own costs where virtual time charges any."""
    if not workload.costs or plan.execution.host not in VIRTUAL:
        return plan.machine
    return replace(plan.machine, costs={**workload.costs, **plan.machine.costs})


def spec_of(plan: Plan, case: Case) -> RunSpec:
    """The run as a type; its knobs are known once its policy is built."""
    return RunSpec(
        workload=case.workload.name,
        policy=case.policy_name,
        seed=case.seed,
        machine=replace(_machine_of(plan, case.workload), cpus=case.n_cpus, tick_ns=case.tick_ns),
        execution=plan.execution,
    )


def blank_run(context: RunContext, case: Case) -> dict[str, Any]:
    """List what is known of a run before it is done."""
    plan = context.plan
    return {
        "schema": SCHEMA,
        **spec_of(plan, case).as_json(),
        **_happens(case.workload),
        "title": case.workload.title,
        "question": case.workload.question,
        "status": "failed",
        "error": None,
        "error_kind": None,
        "program_hash": "",
        "policy_hash": None,
        "record_hash": None,
        "consistency": None,
        "physics": None,
        "environment": context.environment,
        # For warnings about drift; in virtual time no run is before another.
        "started_ns": None if context.host.is_deterministic else time.time_ns(),
        "command_line": plan.command_line,
        "directory": str(folder_of(plan, case)),
        "metrics": {},
        "log": [],
    }


def do_case(
    run: dict[str, Any],
    context: RunContext,
    case: Case,
    session: Session | None,
    on_tasks: Callable[[dict[str, Any]], None] | None = None,
) -> bool:
    """Do a run in a new folder, and judge it."""
    plan, folder = context.plan, _work_folder(context.plan, case)
    if plan.is_kept:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=not plan.is_kept)
    program, program_path = context.programs.get(case.workload, case.seed, folder)
    run["program_hash"] = program.program_hash
    built = context.built[case.policy_name]
    if case.workload.interleaving and not isinstance(built, SchedlabError):
        built = _compiled_for_races(built)
    is_lost = False
    if isinstance(built, SchedlabError):
        run["error"], run["error_kind"] = str(built), "compile"
    else:
        run["policy_hash"], run["knobs"] = built.policy_hash, built.values
        if case.workload.has_quotas and keeps_quotas(built) is False:
            run["notes"] = [quotas_ignored(built)]
        if plan.is_kept:
            run["source"] = _copy_source(context, built.policy, folder)
        job = Job(
            label=f"{case.workload.name}, {case.policy_name}, seed {case.seed}",
            policy=built,
            program=program_path,
            records=(folder / "records.slr").resolve(),
            n_cpus=case.n_cpus,
            seed=case.seed,
            tick_ns=case.tick_ns,
            options=_options(plan, case.workload),
        )
        assert session is not None, "what was built has a host"
        outcome = session.run(job)
        is_lost = outcome.error_kind == "host"
        run["host_answer"] = outcome.answer
        if built.loader:
            run["loader"] = {"command": [*built.loader.argv], "ops": outcome.answer.get("ops", "")}
        if outcome.environment:
            run["environment"] = context.environment | outcome.environment
        if outcome.log:
            run["log"] = _last_lines(outcome.log)
            if plan.is_kept:
                write_text(folder / LOG_FILE, outcome.log.rstrip("\n") + "\n")
        if outcome.tick_ns is not None:
            run["tick_ns"] = outcome.tick_ns
        if outcome.usage is not None:
            run["usage"], run["no_records"] = outcome.usage, outcome.no_records
        judge = _judge(context, case, job, folder, on_tasks)
        run |= judge.verdict(program, job.records, outcome)
        run["physics"] = run["consistency"]  # deprecated
    run["status"] = "ok" if run["error"] is None else "failed"
    return is_lost


def _judge(
    context: RunContext, case: Case, job: Job, folder: Path, on_tasks: Callable[[dict[str, Any]], None] | None
) -> Judge:
    """How the run is to be judged."""
    plan = context.plan
    happens = case.workload.events
    return Judge(
        latency_ns=context.host.latency_ns(job),
        work_conserving=bool(job.policy.policy.work_conserving),
        tables_folder=folder if plan.keep_parquet and plan.is_kept else None,
        tolerance_ns=context.host.tolerance_ns(job),
        are_cpus_steady=are_cpus_steady(happens) and not plan.machine.offline,
        has_exact_work=context.host.has_exact_work
        and not plan.machine.charges_tasks
        and has_exact_work(happens),
        calibration=context.host.calibration(job),
        is_replay=bool(case.workload.program),
        keeps_quotas=case.workload.has_quotas and keeps_quotas(job.policy) is not False,
        quota_objects=frozenset(event.which for event in case.workload.events if event.kind == "quota"),
        # A course is followed in CPU time, which is no work where CPUs differ.
        device=device_of(job) if context.host.has_exact_work and not plan.machine.capacity else None,
        wakeup_ns=cost_ns(job, "wakeup_ns"),
        exit_ns=exit_ns(job, happens),
        on_tasks=on_tasks,
    )


def _compiled_for_races(built: BuiltPolicy) -> BuiltPolicy | SchedlabError:
    """The policy as its CPUs may interleave, or why it cannot be compiled so."""
    try:
        return compile_for_races(built)
    except SchedlabError as error:
        return error


def _last_lines(log: str) -> list[str]:
    """The end of what a policy printed, without what a terminal would obey."""
    lines = log.splitlines()[-LOG_LINES_SHOWN:]
    return [
        "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in line.expandtabs())
        for line in lines
    ]


def _copy_source(context: RunContext, policy: Policy, folder: Path) -> dict[str, Any] | None:
    """Copy a policy's files beside its run: who repeats it need not have kept them.

    The first is the policy itself; a scheduling class of Linux has none.
    """
    if not policy.path.name.endswith(".bpf.c"):
        return None
    files = context.sources.get(policy.path)
    if files is None:
        files = context.sources.setdefault(policy.path, own_files(policy.path)[1])
    write_files(files, folder)
    # What is copied of a crate does not say where the library is that it is compiled with.
    is_crate = any(Path(name).name == "build.rs" for name in files)
    of = {"path": str(policy.path)} if is_crate else {}
    return {"files": [*files], "hash": policy.content_hash} | of


def _options(plan: Plan, workload: Workload) -> tuple[Any, ...]:
    """Further options of the simulator, the calibration included."""
    machine = _machine_of(plan, workload).as_json() | {"are_threads": plan.execution.are_threads}
    is_virtual = plan.execution.host in VIRTUAL
    happens = _happens(workload)
    if plan.execution.host == "guest":
        for event in workload.events:
            name = IN_GUEST[event.kind]
            machine[name] = [*machine.get(name, []), f"{event.which}:{event.at_ns}:{event.time_ns}"]
        happens = {}
    return options_of_run(machine | happens, are_roots_woken=workload.are_roots_woken and is_virtual)


def _happens(workload: Workload) -> dict[str, str]:
    """What happens to the machine, and how its CPUs interleave, as hosts/check takes it."""
    found = {"events": ",".join(map(str, workload.events)), "interleave": workload.interleaving}
    return {name: text for name, text in found.items() if text}


def options_of_run(run: Mapping[str, Any], *, are_roots_woken: bool) -> tuple[tuple[str, str], ...]:
    """The same, of what `run.json` says; whether tasks were there before is known by the workload alone."""
    words = ("topology", "capacity", "events", "interleave")
    topology = [(f"--{name}", run[name]) for name in words if run.get(name)]
    device = [("--io", ",".join(run["io"]))] if run["io"] else []
    device += [("--threads", "yes")] if run["are_threads"] else []
    device += [
        (f"--{name}", ",".join(spans))
        for name in ("above", "offline", "weight", "quota")
        if (spans := run.get(name))
    ]
    work = work_options(are_roots_woken=are_roots_woken)
    return (*(("--cost", cost) for cost in run["costs"]), *device, *topology, *work)


def work_options(*, are_roots_woken: bool) -> tuple[tuple[str, str], ...]:
    """Options that a workload's own tasks need: what work costs, and whether tasks were there before."""
    work = tuple(
        ("--work", f"{name}={getattr(DEFAULT_CALIBRATION, name)}")
        for name in ("pi_ps", "matmul_ps", "spin_ps")
    )
    return (("--arrivals", "roots"), *work) if are_roots_woken else work
