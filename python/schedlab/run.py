# SPDX-License-Identifier: MIT
"""Run workloads under policies, seed by seed, and leave a directory per run.

	DIR/runs.json                               what `--json` prints
	DIR/WORKLOAD/programs/seed-N-HASH.slprog    the program that all policies got
	DIR/WORKLOAD/POLICY/seed-N/run.json         spec, hashes, environment, verdict
	                          /records.slr      the raw records: canonical
	                          /records.parquet, tasks.parquet, metrics.parquet

Each worker thread has one session with the host. In virtual time there is a
worker per CPU; on a host in real time one run at a time has the machine, in an
order drawn from the first seed, so that a slow hour does not hit one policy. A
plan replicates over seeds, never over runs: on a deterministic host the same seed
gives the same run, bit by bit. A run's `run.json` is written
last, so a directory that has one is whole, whatever interrupted the rest.

Must stay true: no run's failure keeps another from being done; numbers appear
only beside `physics: "ok"`.
Read next: hosts/sim.py for how a run is done, compare.py for what follows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import queue
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import CallableModule
from .calibration import DEFAULT_CALIBRATION
from .compare import compare_runs
from .errors import PolicyError, SchedlabError, SpecError, UnavailableError, UsageError
from .hosts import Host, Job, open_host
from .judge import Judge
from .policy import Policy, find_policy, load_policy, parse_settings, policy_name
from .policy_build import BuiltPolicy, build_policy, find_compiler
from .spec import TICK_NS_MAX, TICK_NS_MIN

CPUS_MAX = 1024
SEEDS_MAX = 100_000
#: What the simulator takes, hosts/sim/options.c: it would refuse each run by itself.
COST_NS_MAX = 1_000_000_000
#: What the simulator can be told to charge for, in nanoseconds each.
COSTS = ("switch_ns", "migrate_ns", "migrate_llc_ns", "migrate_node_ns", "wakeup_ns", "tick_ns",
         "ipi_ns")

# `schedlab.run(...)` is api.run; this module bears the name, so it answers the call.
sys.modules[__name__].__class__ = CallableModule


@dataclass(frozen=True)
class Plan:
    """What `schedlab run` was asked to do.

    Attributes
    ----------
    workloads : sequence of str
        Names or paths.
    policies : sequence of str
        Names or paths.
    out : pathlib.Path
        Where the run directories go.
    host : str, default "sim"
        One of `hosts.HOST_NAMES`.
    cpus : int, optional
        Number of CPUs; default: what each workload is meant for.
    nr_seeds : int, default 1
        How many seeds.
    first_seed : int, default 1
        The first of them; seed 0 means no jitter.
    settings : sequence of str
        `POLICY.KNOB=VALUE`.
    tick_ns : int, optional
        Time between ticks; default: what each workload says.
    costs : sequence of str
        `NAME=NS` of the simulator's cost model, such as `"switch_ns=2000"`.
    topology : str, default ""
        CPUs per core, cache and NUMA node of the simulated machine, such as
        `"smt=2,llc=8"`.
    timeout_seconds : float, default 300
        Longest time on the wall clock for one run.
    keep_parquet : bool, default True
        Whether to write the tables that are derived from the records.
    """

    workloads: Sequence[str]
    policies: Sequence[str]
    out: Path
    host: str = "sim"
    cpus: int | None = None
    nr_seeds: int = 1
    first_seed: int = 1
    settings: Sequence[str] = ()
    tick_ns: int | None = None
    costs: Sequence[str] = ()
    topology: str = ""
    timeout_seconds: float = 300.0
    keep_parquet: bool = True


@dataclass
class RunSet:
    """What came of a plan.

    Attributes
    ----------
    runs : list of dict
        One per run, in the order of the plan; as `--json` prints them.
    comparisons : list of dict
        Of every two policies; see `compare.compare_runs`.
    out : pathlib.Path
        Where the run directories are.
    is_interrupted : bool
        Whether Ctrl-C kept some runs from being done.
    """

    runs: list = field(default_factory=list)
    comparisons: list = field(default_factory=list)
    out: Path = Path()
    is_interrupted: bool = False

    @property
    def is_good(self) -> bool:
        """Whether every run is good and no comparison was refused."""
        return (
            not self.is_interrupted
            and all(run["status"] == "ok" for run in self.runs)
            and not any(comparison["error"] for comparison in self.comparisons)
        )

    def as_json(self) -> str:
        """The one object that `--json` prints, without end of line."""
        return json.dumps({"runs": self.runs, "comparisons": self.comparisons}, allow_nan=False)


@dataclass(frozen=True)
class _Case:
    """One run to be done, before it is known whether it can be."""

    position: int
    workload: object
    policy_name: str
    seed: int
    nr_cpus: int
    tick_ns: int


@dataclass(frozen=True)
class _Ready:
    """All that the workers share."""

    plan: Plan
    host: Host
    policies: dict  # name -> Policy
    built: dict  # name -> BuiltPolicy, or the PolicyError that kept it from being built
    programs: _Programs
    environment: dict


def run_plan(plan: Plan, *, on_result: Callable[[dict], None] | None = None) -> RunSet:
    """Do every run of a plan.

    Parameters
    ----------
    plan : Plan
        What to run.
    on_result : callable, optional
        Called with each run's dict when it is done, in the caller's thread.

    Returns
    -------
    RunSet
        Every run, failed ones included; those that Ctrl-C left undone are not
        in it.

    Raises
    ------
    UsageError, NotFoundError, SpecError
        Before anything is run, if the plan itself is wrong.
    UnavailableError
        If the host cannot be used here or there is no C compiler.

    Notes
    -----
    Ctrl-C ends the runs under way and returns what is finished.
    """
    _check_plan(plan)
    workloads = _load_workloads(plan)
    policies, broken = _load_policies(plan)
    values = parse_settings(plan.settings, {n: p for n, p in policies.items() if n not in broken})
    host = open_host(plan.host)
    if set(policies) - set(broken):
        find_compiler()
    cases = _cases(plan, workloads, list(policies))
    _make_folder(plan.out)
    ready = _Ready(
        plan=plan,
        host=host,
        policies=policies,
        built=broken | _build_all(policies, broken, values),
        programs=_Programs(plan.out),
        environment=_environment(host),
    )
    runs, is_interrupted = _run_cases(ready, cases, on_result)
    result = RunSet(runs=runs, out=plan.out, is_interrupted=is_interrupted)
    result.comparisons = compare_runs(runs)
    _write_list(result)
    return result


# ---- before anything runs ---------------------------------------------------


def _check_plan(plan: Plan) -> None:
    """Refuse numbers that make no sense, all at once."""
    problems = []
    if not plan.workloads:
        problems.append("no workload given; `schedlab workloads` lists them")
    if not plan.policies:
        problems.append("no policy given; `schedlab policies` lists them")
    if plan.cpus is not None and not 1 <= plan.cpus <= CPUS_MAX:
        problems.append(f"--cpus must be 1 to {CPUS_MAX} (got {plan.cpus})")
    if not 1 <= plan.nr_seeds <= SEEDS_MAX:
        problems.append(f"--seeds must be 1 to {SEEDS_MAX} (got {plan.nr_seeds})")
    if not 0 <= plan.first_seed < 1 << 63:
        problems.append(f"--seed must be 0 to 2**63 - 1 (got {plan.first_seed})")
    if not plan.timeout_seconds > 0:
        problems.append(f"--timeout must be above 0 (got {plan.timeout_seconds:g} s)")
    if plan.tick_ns is not None and not TICK_NS_MIN <= plan.tick_ns <= TICK_NS_MAX:
        problems.append(f"--tick must be 1us to 10s (got {plan.tick_ns} ns)")
    problems += _check_costs(plan.costs)
    problems += _check_topology(plan.topology)
    if problems:
        raise UsageError("\n".join(problems))


def _check_costs(costs: Sequence[str]) -> list[str]:
    """Faults of the cost model."""
    problems = []
    for cost in costs:
        name, _, value = cost.partition("=")
        if name not in COSTS or not (value.isascii() and value.isdecimal()):
            problems.append(
                f"--cost {cost}: should read NAME=TIME, such as switch_ns=2us; "
                f"NAME is one of {', '.join(COSTS)}"
            )
        elif int(value) > COST_NS_MAX:
            problems.append(f"--cost {cost}: must be at most 1s")
    return problems


def _check_topology(topology: str) -> list[str]:
    """Faults of `smt=N,llc=N,node=N`."""
    if not topology:
        return []
    if not re.fullmatch(r"(smt|llc|node)=[0-9]{1,9}(,(smt|llc|node)=[0-9]{1,9})*", topology):
        return [f"--topology {topology}: should read smt=2,llc=8,node=16, CPUs in each"]
    sizes = {name: int(size) for name, size in (part.split("=") for part in topology.split(","))}
    problems = [
        f"--topology {topology}: {name} must be 1 to {CPUS_MAX} (got {size})"
        for name, size in sizes.items()
        if not 1 <= size <= CPUS_MAX
    ]
    given = [name for name in ("smt", "llc", "node") if name in sizes]
    for inner, outer in zip(given, given[1:], strict=False):
        if not problems and sizes[outer] % sizes[inner]:
            problems.append(
                f"--topology {topology}: {outer}={sizes[outer]} is no multiple of "
                f"{inner}={sizes[inner]}; each holds whole ones of the one before"
            )
    return problems


def _load_workloads(plan: Plan) -> list:
    """Load every workload; all faults of all files are reported together."""
    from .spec import load_workload

    workloads, problems, faults = {}, [], []
    for name in plan.workloads:
        try:
            workload = load_workload(name)
        except SpecError as error:
            faults += error.faults
        except UsageError as error:
            problems.append(str(error))
        else:
            workload = _named_apart(workload, workloads)
            if workload.name in workloads:
                problems.append(f"workload '{workload.name}' is given twice")
            workloads[workload.name] = workload
            if plan.cpus is not None and plan.cpus < workload.cpus_min:
                problems.append(
                    f"workload '{workload.name}' needs at least {workload.cpus_min} CPUs "
                    f"(got --cpus {plan.cpus})"
                )
    if faults and not problems:
        raise SpecError(faults)
    if faults or problems:
        raise UsageError("\n".join([*map(str, faults), *problems]))
    return list(workloads.values())


def _named_apart(workload, others: dict):
    """Give a workload its folder's name too, where another file has taken its own."""
    other = others.get(workload.name)
    if other is None or workload.path is None or other.path is None:
        return workload
    path = Path(workload.path).resolve()
    if path == Path(other.path).resolve():
        return workload
    return replace(workload, name=f"{path.parent.name}/{workload.name}")


def _load_policies(plan: Plan) -> tuple[dict[str, Policy], dict[str, PolicyError]]:
    """Read every policy's header; a policy that is there but damaged fails its own runs only."""
    policies: dict[str, Policy] = {}
    broken: dict[str, PolicyError] = {}
    paths: dict[str, Path] = {}
    problems = []
    for name in plan.policies:
        policy, damage = None, None
        try:
            path = find_policy(name).resolve()
            policy = load_policy(name)
        except PolicyError as error:
            damage = error
        except UsageError as error:
            problems.append(str(error))
            continue
        label = policy_name(path)
        if label in paths and path not in paths.values():
            # As sixty students' files may be: each in its own folder, all of one name.
            label = f"{path.parent.name}/{label}"
        if path in paths.values():
            problems.append(f"policy '{name}' is given twice")
        elif label in paths:
            problems.append(f"two policies are called '{label}'; rename one of the files")
        paths[label], policies[label] = path, policy
        if damage:
            broken[label] = damage
    if problems:
        raise UsageError("\n".join(problems))
    return policies, broken


def _build_all(policies, broken, values) -> dict[str, BuiltPolicy | PolicyError]:
    """Compile all policies, several at once; a failure takes the policy's place."""

    def build(name: str):
        try:
            return build_policy(policies[name], values[name])
        except PolicyError as error:
            return error

    names = [name for name in policies if name not in broken]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(names, pool.map(build, names), strict=True))


def _cases(plan: Plan, workloads: list, policies: list[str]) -> list[_Case]:
    """Every workload under every policy with every seed."""
    cases = []
    for workload in workloads:
        nr_cpus = plan.cpus or max(workload.cpus, workload.cpus_min, 1)
        for policy in policies:
            for seed in range(plan.first_seed, plan.first_seed + plan.nr_seeds):
                cases.append(
                    _Case(
                        position=len(cases),
                        workload=workload,
                        policy_name=policy,
                        seed=seed,
                        nr_cpus=nr_cpus,
                        tick_ns=plan.tick_ns if plan.tick_ns is not None else workload.tick_ns,
                    )
                )
    return cases


def _make_folder(path: Path) -> None:
    """Make a folder, or say why not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {path}: cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UsageError(f"--out {path}: may not be written")


def _environment(host: Host) -> dict:
    """What a reader must know to repeat the runs."""
    from . import __version__

    return {
        "schedlab": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "compiler": find_compiler()[1] if _has_compiler() else None,
        **host.environment(),
    }


def _has_compiler() -> bool:
    try:
        find_compiler()
    except UnavailableError:
        return False
    return True


class _Programs:
    """Programs by workload and seed, compiled once and shared by all policies."""

    def __init__(self, out: Path):
        self._out = out
        self._lock = threading.Lock()
        self._made: dict[tuple[str, int], tuple] = {}

    def get(self, workload, seed: int) -> tuple:
        """Return the program and its file."""
        from .program import compile_workload

        with self._lock:
            key = (workload.name, seed)
            if key not in self._made:
                program = compile_workload(workload, seed=seed)
                # The hash keeps programs apart that two calls write to one folder.
                file_name = f"seed-{seed}-{program.program_hash[:12]}.slprog"
                path = self._out / folder_name(workload.name) / "programs" / file_name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(program.data)
                self._made[key] = (program, path.resolve())
            return self._made[key]


def folder_name(name: str) -> str:
    """Turn a workload's or policy's name into a relative path that stays below its parent.

    Parameters
    ----------
    name : str
        Such as `"report-1/mixed"`.

    Returns
    -------
    str
        The name, with everything replaced that a path cannot safely hold.

    Examples
    --------
    >>> folder_name("report-1/mixed"), folder_name("../x")
    ('report-1/mixed', '_/x')
    """
    parts = [re.sub(r"[^\w.,:=+-]", "_", part) for part in name.split("/")]
    return "/".join("_" if part in ("", ".", "..") else part for part in parts)


# ---- the runs ---------------------------------------------------------------


def _run_cases(ready: _Ready, cases: list[_Case], on_result) -> tuple[list[dict], bool]:
    """Do the cases with one worker per CPU of this machine; (runs, interrupted)."""
    todo: queue.SimpleQueue = queue.SimpleQueue()
    done: queue.SimpleQueue = queue.SimpleQueue()
    nr_workers = max(1, min(os.cpu_count() or 1, len(cases)))
    if not ready.host.is_deterministic:
        nr_workers = 1
        cases = sorted(cases, key=lambda case: _shuffle_key(ready.plan.first_seed, case.position))
    for case in cases:
        todo.put(case)
    stop = threading.Event()
    sessions = []

    def work(session) -> None:
        try:
            while not stop.is_set():
                case = todo.get_nowait()
                run = _run_case(ready, case, session, stop)
                if run is not None:
                    done.put((case.position, run))
        except queue.Empty:
            pass
        except BaseException as error:  # carried to the caller's thread
            done.put((None, error))
        finally:
            session.close()
            done.put((None, None))

    workers = []
    for _ in range(nr_workers):
        sessions.append(ready.host.session(timeout_seconds=ready.plan.timeout_seconds))
        workers.append(threading.Thread(target=work, args=(sessions[-1],), daemon=True))
    results: dict[int, dict] = {}
    is_interrupted = False
    try:
        for worker in workers:
            worker.start()
        nr_working = len(workers)
        while nr_working:
            position, value = done.get()
            if isinstance(value, BaseException):
                raise value
            if value is None:
                nr_working -= 1
                continue
            results[position] = value
            if on_result:
                on_result(value)
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        stop.set()
        for session in sessions:
            session.interrupt()
        for worker in workers:
            if worker.ident is not None:
                worker.join(10)
    with contextlib.suppress(queue.Empty):
        while True:
            position, value = done.get_nowait()
            if position is not None:
                results[position] = value
    return [results[position] for position in sorted(results)], is_interrupted


def _shuffle_key(seed: int, position: int) -> bytes:
    """Sort key that puts cases in an order drawn from a seed, the same everywhere."""
    return hashlib.sha256(f"{seed} {position}".encode()).digest()


def _run_case(ready: _Ready, case: _Case, session, stop: threading.Event) -> dict | None:
    """Do one run, judge it, and write its directory; None if `stop` cut it short."""
    plan = ready.plan
    directory = (
        plan.out
        / folder_name(case.workload.name)
        / folder_name(case.policy_name)
        / f"seed-{case.seed}"
    )
    run = _blank_run(ready, case, directory)
    try:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        is_lost = _fill_run(run, ready, case, session)
        if is_lost and stop.is_set():
            # We ended its host ourselves: no policy is to blame, and nothing is kept.
            shutil.rmtree(directory, ignore_errors=True)
            return None
        run["status"] = "ok" if run["error"] is None else "failed"
        _write_text(directory / "run.json", json.dumps(run, indent=1, allow_nan=False) + "\n")
    except OSError as error:
        # A disk that is full fails this run; another may be smaller.
        where = error.filename or directory
        run |= {"status": "failed", "physics": None, "metrics": {}, "error_kind": "host",
                "error": f"{where}: cannot be written: {error.strerror or error}"}  # fmt: skip
    return {name: value for name, value in run.items() if name != "host_answer"}


def _blank_run(ready: _Ready, case: _Case, directory: Path) -> dict:
    """What is known of a run before it is done."""
    plan = ready.plan
    return {
        "workload": case.workload.name,
        "title": case.workload.title,
        "question": case.workload.question,
        "policy": case.policy_name,
        "host": ready.host.name,
        "cpus": case.nr_cpus,
        "seed": case.seed,
        "status": "failed",
        "error": None,
        "error_kind": None,
        "program_hash": "",
        "policy_hash": None,
        "record_hash": None,
        "physics": None,
        "environment": ready.environment,
        # For doubts about drift; in virtual time no run is before another.
        "started_ns": None if ready.host.is_deterministic else time.time_ns(),
        "tick_ns": case.tick_ns,
        "costs": list(plan.costs),
        "topology": plan.topology,
        "knobs": {},
        "directory": str(directory),
        "metrics": {},
    }


def _fill_run(run: dict, ready: _Ready, case: _Case, session) -> bool:
    """Do a run and judge it; return whether its host was lost."""
    plan, directory = ready.plan, Path(run["directory"])
    program, program_path = ready.programs.get(case.workload, case.seed)
    run["program_hash"] = program.program_hash
    built = ready.built[case.policy_name]
    is_lost = False
    if isinstance(built, SchedlabError):
        run["error"], run["error_kind"] = str(built), "compile"
    else:
        run["policy_hash"], run["knobs"] = built.policy_hash, built.values
        job = Job(
            label=f"{case.workload.name}, {case.policy_name}, seed {case.seed}",
            policy=built,
            program=program_path,
            records=(directory / "records.slr").resolve(),
            nr_cpus=case.nr_cpus,
            seed=case.seed,
            tick_ns=case.tick_ns,
            options=_options(plan),
        )
        outcome = session.run(job)
        is_lost = outcome.error_kind == "host"
        run["host_answer"] = outcome.answer
        judge = Judge(
            latency_ns=ready.host.latency_ns(job),
            work_conserving=bool(built.policy.work_conserving),
            tables_folder=directory if plan.keep_parquet else None,
        )
        run |= judge.verdict(program, job.records, outcome)
    return is_lost


def _options(plan: Plan) -> tuple:
    """Further options of the simulator, the calibration included."""
    work = [
        ("--work", f"{name}={getattr(DEFAULT_CALIBRATION, name)}")
        for name in ("pi_ps", "matmul_ps", "spin_ps")
    ]
    topology = [("--topology", plan.topology)] if plan.topology else []
    return (*(("--cost", cost) for cost in plan.costs), *topology, *work)


def _write_list(result: RunSet) -> None:
    """Write `runs.json`, or leave none: each run's own file says the same."""
    path = result.out / "runs.json"
    try:
        _write_text(path, result.as_json() + "\n")
    except OSError as error:
        # One of an earlier call would pass for this one's.
        with contextlib.suppress(OSError):
            path.unlink()
        # Failed runs, which the same full disk is likely behind, say it themselves.
        if result.is_good:
            raise UsageError(f"{path}: cannot be written: {error.strerror}; choose another --out"
                             ) from error


def _write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    scratch = path.with_name(path.name + ".part")
    try:
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
