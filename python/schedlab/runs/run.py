# SPDX-License-Identifier: MIT
"""Run workloads under policies, seed by seed, and leave a folder per run.

        DIR/runs.json                               what `--json` prints
        DIR/WORKLOAD/programs/seed-N-HASH.slprog    the program that all policies got
        DIR/WORKLOAD/POLICY/seed-N/run.json         spec, hashes, environment, verdict
                                  /records.slr      the raw records: canonical
                                  /records.parquet, tasks.parquet, metrics.parquet

In virtual time there is a worker per CPU (workers.py); on a host in real time one
run at a time has the machine, in an order drawn from the first seed, so that a slow
hour does not hit one policy. A plan replicates over seeds, never over runs: on a
deterministic host the same seed gives the same run, bit by bit. A run's `run.json` is
written last, so a folder that has one is whole, whatever interrupted the rest.

With an executor, the runs are done by its workers, which share no folder with us
(remote.py), and what they leave is put into the same folders.

Must stay true: no run's failure keeps another from being done; numbers appear
only beside `consistency: "ok"`.
Read next: plan.py, what is asked for; case.py, one run; compare.py for what follows.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import PolicyError, SpecError, SpecFault, UsageError
from ..files import make_folder, write_text
from ..hosts.choose import WITH_CHANGES, WITH_GROUPS, build_for, engine_of
from ..model import Execution
from ..policy.build import BuiltPolicy, need_compiler
from ..policy.find import Policy, Variant, find_policy, load_policy, parse_settings, policy_name
from ..policy.loader import is_loader, loader_as_policy
from ..workload.events import ELSEWHERE
from ..workload.model import Workload
from ..workload.phases import walk
from .case import Case, Programs, RunContext, environment_of, folder_name, folder_of
from .compare import compare_runs
from .plan import Plan, host_of, make_plan, wrong_seed
from .remote import collect, send
from .workers import Finished, do_runs, n_workers_of

__all__ = [
    "Plan",
    "Prepared",
    "RunSet",
    "finish",
    "folder_name",
    "make_plan",
    "prepare",
    "run_plan",
    "write_list",
]


@dataclass
class RunSet:
    """What came of a plan."""

    #: One per run, in the order of the plan; as `--json` prints them.
    runs: list[Any] = field(default_factory=list)
    #: Of each policy with the baseline; see `compare.compare_runs`.
    comparisons: list[Any] = field(default_factory=list)
    out: Path = Path()  #: Where the run folders are.
    is_interrupted: bool = False  #: Whether Ctrl-C kept some runs from being done.

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
class Prepared:
    """A plan that was found good, and all that its runs need."""

    context: RunContext  #: What all runs share.
    cases: list[Any]  #: list of Case: the runs, in the order of the plan.

    def for_seed(self, seed: int, out: Path) -> Prepared:
        """A plan of one seed for another seed, in another folder, which is made."""
        if problem := wrong_seed(seed):
            raise UsageError(problem)
        make_folder(out)
        return Prepared(
            self.context.moved(out, first_seed=seed), [replace(case, seed=seed) for case in self.cases]
        )


def run_plan(
    plan: Plan,
    *,
    executor: Executor | None = None,
    on_start: Callable[[int], None] | None = None,
    on_result: Callable[[dict[str, Any]], None] | None = None,
    known: Callable[[RunContext, Case], dict[str, Any] | None] | None = None,
    on_tasks: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
) -> RunSet:
    """Do every run of a plan. Ctrl-C ends the runs under way and returns what is finished."""
    if executor is not None and plan.execution.kernel is not None:
        raise UsageError(
            f"--kernel {plan.execution.kernel} stays on this machine, and --executor's workers boot another: leave one out"
        )
    if executor is not None and any(map(is_loader, plan.policies)):
        raise UsageError(
            "a program that loads a scheduler (--loader) stays on this machine: leave out --executor"
        )
    prepared = prepare(plan)
    found = {case.position: known(prepared.context, case) for case in prepared.cases} if known else {}
    todo = [case for case in prepared.cases if not found.get(case.position)]
    if on_start:
        on_start(len(todo))
    if executor is None:
        runs, is_interrupted = _run_cases(prepared.context, todo, on_result, on_tasks)
    else:
        runs, is_interrupted = collect(send(prepared.context, todo, executor), on_result)
    if len(todo) < len(prepared.cases):
        order = {str(folder_of(prepared.context.plan, case)): case.position for case in prepared.cases}
        runs = sorted(runs + [run for run in found.values() if run], key=lambda run: order[run["directory"]])
    return finish(prepared, runs, is_interrupted=is_interrupted)


def prepare(plan: Plan) -> Prepared:
    """Check a plan, load what it names and compile its policies."""
    if problems := plan.problems():
        raise UsageError("\n".join(problems))
    workloads = _load_workloads(plan)
    classes = _parse_classes(plan)
    loaders = _find_loaders(plan)
    given = classes | loaders
    ours = [name for name in plan.policies if name not in given]
    policies, broken = _load_policies(ours, is_inside=engine_of(plan.execution) == "wasm")
    if ours and plan.execution.host == "linux":
        from ..hosts.linux.ext_class import refuse_policies

        refuse_policies(ours[0])
    variants = parse_settings(
        plan.settings, {name: policy for name, policy in policies.items() if policy is not None}
    )
    host = host_of(plan.execution)
    need_compiler((variant.policy for variant in variants.values()), engine_of(plan.execution))
    built = {each.policy.name: each for each in given.values()} | _build_all(variants, plan.execution)
    # A damaged policy fails in its place, between the others; so does a class of Linux, or a program.
    labels, built_as_they_are = iter(policies), {each.policy.name for each in given.values()}
    names = [
        name
        for label in [given[each].policy.name if each in given else next(labels) for each in plan.policies]
        for name in (
            [label]
            if label in broken or label in built_as_they_are
            else [name for name, v in variants.items() if v.policy is policies[label]]
        )
    ]
    if plan.baseline is not None and plan.baseline not in names:
        raise UsageError(
            f"--baseline {plan.baseline}: not among the policies of this run; name one of {', '.join(names)}"
        )
    cases = _cases(plan, workloads, names)
    make_folder(plan.out)
    context = RunContext(
        plan=plan,
        host=host,
        built=broken | built,
        programs=Programs(plan.out if plan.is_kept else None),
        environment=environment_of(host),
    )
    return Prepared(context, cases)


def finish(prepared: Prepared, runs: list[dict[str, Any]], *, is_interrupted: bool = False) -> RunSet:
    """Compare the runs of a plan, and write the list of them where they are kept."""
    result = RunSet(runs=runs, out=prepared.context.plan.out, is_interrupted=is_interrupted)
    result.comparisons = compare_runs(runs, baseline=prepared.context.plan.baseline)
    if prepared.context.plan.is_kept:
        write_list(result)
    return result


# ---- before anything runs ---------------------------------------------------


def _lacking(workload: Workload, execution: Execution) -> list[str]:
    """What a workload needs that a host does not have."""
    host = execution.host
    changes = any(phase.verb == "change" for task in workload.tasks for phase, _ in walk(task.phases))
    needs = [
        ("has groups", workload.groups, WITH_GROUPS),
        ("changes tasks from outside", changes, WITH_CHANGES),
    ]
    return [
        f"workload '{workload.name}' {what}, which --host {host} lacks; hosts that have them: {', '.join(having)}"
        for what, is_needed, having in needs
        if is_needed and host not in having
    ] + [
        f"workload '{workload.name}' has {what}, which only --host sim has, and not in its sandbox"
        for what in _of_check(workload, execution.host)
        if engine_of(execution) == "wasm" or host != "sim"
    ]


def _of_check(workload: Workload, host: str) -> list[str]:
    """What of it only the simulator of `schedlab check` can do; other hosts have some events, too."""
    kinds = dict.fromkeys(
        event.kind for event in workload.events if event.kind not in ELSEWHERE.get(host, ())
    )
    found = [f"events of kind {', '.join(kinds)}"] if kinds else []
    return [*found, "an interleaving"] if workload.interleaving else found


def _load_workloads(plan: Plan) -> list[Any]:
    """Load every workload; all faults of all files are reported together."""
    from ..workload.find import load_scaled

    workloads: dict[str, Workload] = {}
    problems: list[str] = []
    faults: list[SpecFault] = []
    for name in plan.workloads:
        try:
            if isinstance(name, Workload):
                if plan.execution.scale != 1:
                    raise UsageError(
                        f"--scale {plan.execution.scale:g}: {name.name} is not made from a file, whose params "
                        "say what scales; leave --scale out"
                    )
                workload = name
            else:
                workload = load_scaled(name, plan.execution.scale)
        except SpecError as error:
            faults += error.faults
        except UsageError as error:
            problems.append(str(error))
        else:
            workload = _named_apart(workload, workloads)
            if workload.name in workloads:
                problems.append(f"workload '{workload.name}' is given twice")
            workloads[workload.name] = workload
            problems += _lacking(workload, plan.execution)
            if plan.machine.cpus is not None and plan.machine.cpus < workload.cpus_min:
                problems.append(
                    f"workload '{workload.name}' needs at least {workload.cpus_min} CPUs "
                    f"(got --cpus {plan.machine.cpus})"
                )
    if faults and not problems:
        raise SpecError(faults)
    if faults or problems:
        raise UsageError("\n".join([*map(str, faults), *problems]))
    return list(workloads.values())


def _named_apart(workload: Workload, others: dict[str, Any]) -> Workload:
    """Give a workload its folder's name too, where another file has taken its own."""
    other = others.get(workload.name)
    if other is None or workload.path is None or other.path is None:
        return workload
    path = Path(workload.path).resolve()
    if path == Path(other.path).resolve():
        return workload
    return replace(workload, name=f"{path.parent.name}/{workload.name}")


def _load_policies(
    names: list[str], *, is_inside: bool
) -> tuple[dict[str, Policy | None], dict[str, PolicyError]]:
    """Read every policy's header; a policy that is there but damaged fails its own runs only."""
    policies: dict[str, Policy | None] = {}
    broken: dict[str, PolicyError] = {}
    paths: dict[str, Path] = {}
    problems = []
    for name in names:
        policy, damage = None, None
        try:
            path = find_policy(name).resolve()
            policy = load_policy(name, is_inside=is_inside)
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


def _parse_classes(plan: Plan) -> dict[str, BuiltPolicy]:
    """Linux's own classes, which only Linux has."""
    from ..hosts.linux.host import refuse_class
    from ..policy.linux_class import class_as_policy, is_class, parse_workload_class

    classes = [name for name in plan.policies if is_class(name)]
    if classes and plan.execution.host != "linux":
        raise UsageError(
            f"{classes[0]} is a class of Linux itself; use --host linux, or a policy such as fifo, rr or cfs"
        )
    parsed = {name: parse_workload_class(name) for name in classes}
    for each in parsed.values():
        refuse_class(each)
    made = {name: class_as_policy(each) for name, each in parsed.items()}
    if len(made) < len(classes):
        raise UsageError("--policy: a class is given twice; name each once")
    if plan.settings and len(classes) == len(plan.policies):
        raise UsageError(
            f"--set {plan.settings[0]}: a class of Linux has no knobs; write SCHED_FIFO:20 for another priority"
        )
    return made


def _find_loaders(plan: Plan) -> dict[str, BuiltPolicy]:
    """Programs that load their schedulers themselves, by the words that name them."""
    found = {name: loader_as_policy(name) for name in plan.policies if is_loader(name)}
    names = [each.policy.name for each in found.values()]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two programs are called '{twice[0]}'; rename one of them")
    if sum(map(is_loader, plan.policies)) > len(found):
        raise UsageError("--loader: a program is given twice; name each once")
    return found


def _build_all(variants: dict[str, Variant], execution: Execution) -> dict[str, BuiltPolicy | PolicyError]:
    """Compile all policies, several at once; a failure takes the policy's place."""

    def build(variant: Variant) -> BuiltPolicy | PolicyError:
        try:
            return build_for(execution, variant.policy, variant.values)
        except PolicyError as error:
            return error

    # Variants share what is compiled: the first of each compiles it.
    first = {id(variant.policy): variant for variant in variants.values()}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(build, first.values()))
        return dict(zip(variants, pool.map(build, variants.values()), strict=True))


def _cases(plan: Plan, workloads: list[Any], policies: list[str]) -> list[Case]:
    """Every workload under every policy with every seed."""
    cases: list[Case] = []
    for workload in workloads:
        n_cpus = plan.machine.cpus or max(workload.cpus, workload.cpus_min, 1)
        for policy in policies:
            for seed in range(plan.first_seed, plan.first_seed + plan.n_seeds):
                cases.append(
                    Case(
                        position=len(cases),
                        workload=workload,
                        policy_name=policy,
                        seed=seed,
                        n_cpus=n_cpus,
                        tick_ns=workload.tick_ns if plan.machine.tick_ns is None else plan.machine.tick_ns,
                    )
                )
    return cases


# ---- the runs ---------------------------------------------------------------


def _run_cases(
    context: RunContext,
    cases: list[Case],
    on_result: Callable[[dict[str, Any]], None] | None,
    on_tasks: Callable[[dict[str, Any], dict[str, Any]], None] | None,
) -> tuple[list[dict[str, Any]], bool]:
    """Do the cases with the workers of this machine; (runs, interrupted)."""
    results: dict[int, dict[str, Any]] = {}

    def keep(found: Finished) -> None:
        results[found.key] = found.run
        if on_tasks and found.tasks:
            on_tasks(found.run, found.tasks)
        if on_result:
            on_result(found.run)

    late = do_runs(
        ((case.position, context, case) for case in in_order(context, cases)),
        keep,
        n_runs=len(cases),
        n_workers=n_workers_of(context.host),
    )
    results |= {found.key: found.run for found in late or ()}
    return [results[position] for position in sorted(results)], late is not None


def in_order(context: RunContext, cases: list[Case]) -> list[Case]:
    """Put the runs of a plan in the order in which they are done."""
    if context.host.is_deterministic:
        return cases
    seed = context.plan.first_seed
    # Drawn from a seed, the same everywhere.
    return sorted(cases, key=lambda case: hashlib.sha256(f"{seed} {case.position}".encode()).digest())


def write_list(result: RunSet) -> None:
    """Write `runs.json`, or leave none: each run's own file says the same."""
    path = result.out / "runs.json"
    try:
        write_text(path, result.as_json() + "\n")
    except OSError as error:
        # One of an earlier call would pass for this one's.
        with contextlib.suppress(OSError):
            path.unlink()
        # Failed runs, which the same full disk is likely behind, say it themselves.
        if result.is_good:
            raise UsageError(f"{path}: cannot be written: {error.strerror}; choose another --out") from error
