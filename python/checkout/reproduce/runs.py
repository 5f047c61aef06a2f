# SPDX-License-Identifier: MIT
"""Do the runs of an experiment, each once: what is there already is not done again.

        OUT/SET/POLICY/...              what `schedlab run --out` leaves
        OUT/SET/POLICY/WORKLOAD/run.json  of a program of the teaching kernel, all runs of a
                               /console   machine, and what that printed; in real time each
                                          run has a machine, and a folder run-SEED, of its own

A run is there if its `run.json` says that it was made from the same: workload and
policy by their hashes, host and compiler by theirs, seed, CPUs, costs. So a command
that was interrupted goes on, `--full` uses what `--quick` left, and a changed policy
or kernel makes its runs anew.

Must stay true: a run that differs in any of these is never taken for another.
Read next: samples.py, which reads the folders.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.errors import SchedlabError, UnavailableError
from schedlab.files import write_json, write_text
from schedlab.hosts.choose import open_host
from schedlab.hosts.linux.rt_throttling import no_rt_throttling
from schedlab.policy.find import find_policy
from schedlab.runs.case import Case, RunContext, blank_run, environment_of, folder_name, folder_of
from schedlab.runs.plan import host_of
from schedlab.runs.run import Plan, run_plan

from .samples import Done
from .spec import Runs, Size

if TYPE_CHECKING:
    from schedlab.hosts.kernel.build import KernelImage

#: What a run says of itself that another one of the same may say otherwise.
_MAY_DIFFER = {"schema", "status", "error", "error_kind", "record_hash", "consistency", "physics", "metrics", "directory",
               "started_ns", "host_answer", "timeout_seconds", "command_line", "log"}  # fmt: skip
#: How busy the machine was: of the environment, and of what Linux's own classes run on.
_LOAD = {"load_average", "load_1min"}
_INTERRUPTED = "interrupted; the same command goes on from here"
_MARK = b"PAR1"
_LINE = re.compile(r"^(\w+) ((?:[\w-]+=\S+ ?)+)$")


class Interrupted(SchedlabError):
    """Ctrl-C; what is finished is kept."""

    exit_code = 130


def do_runs(
    runs: Runs,
    size: Size,
    out: Path,
    *,
    needed: Collection[tuple[str, str]] | None = None,
    on_start: Callable[[int], None] | None = None,
    on_result: Callable[[dict[str, Any]], None] | None = None,
) -> Done:
    """Do a set of runs."""
    done = Done(runs)
    started = time.monotonic()

    def count(run: dict[str, Any]) -> None:
        done.n_new += 1
        if on_result:
            on_result(run)

    try:
        with nullcontext() if runs.rt_throttling else no_rt_throttling():
            (_run_programs if runs.program else _run_workloads)(done, size, out, needed, on_start, count)
    except UnavailableError as error:
        done.found.clear()
        done.problem = f"{runs.host} cannot be used here: {error}"
    done.seconds = time.monotonic() - started
    return done


# ---- workloads --------------------------------------------------------------


def workload_of(text: str, runs: Runs, size: Size) -> str:
    """Put the scaled numbers into a workload's name."""
    numbers = {name: max(1, round(value * size.scale)) for name, value in runs.scaled.items()}
    return re.sub(r"\{(\w+)\}", lambda match: str(numbers.get(match[1], match[0])), text)


def plan_of(runs: Runs, size: Size, out: Path, label: str) -> Plan:
    """Write down the runs under one policy as `schedlab run` would."""
    policy, *knobs = runs.policies[label].split()
    name = Path(policy).name.removesuffix(".bpf.c")
    return Plan(
        workloads=[workload_of(text, runs, size) for text in runs.workloads.values()],
        policies=[policy],
        out=out / runs.name / folder_name(label),
        machine=runs.machine,
        execution=runs.execution,
        n_seeds=size.seeds,
        settings=[f"{name}.{knob}" for knob in knobs],
    )


def _run_workloads(
    done: Done,
    size: Size,
    out: Path,
    needed: Collection[tuple[str, str]] | None,
    on_start: Callable[[int], None] | None,
    on_result: Callable[[dict[str, Any]], None],
) -> None:
    """Workloads of a set under all of its policies."""
    chosen: dict[str, Runs] = {}
    for label in done.runs.policies:
        wanted = {
            name: text
            for name, text in done.runs.workloads.items()
            if needed is None or (name, label) in needed
        }
        if wanted:
            chosen[label] = replace(done.runs, workloads=wanted)
    found: dict[str, dict[str, Any]] = {}
    if not _is_repeatable(done.runs):
        # This machine is faster and slower by turns: each seed has all policies next to each other.
        for seed in range(1, size.seeds + 1):
            turn = seed % len(chosen) if chosen else 0
            for label in [*chosen][turn:] + [*chosen][:turn]:
                plan = replace(plan_of(chosen[label], size, out, label), first_seed=seed, n_seeds=1)
                found |= {run["directory"]: run for run in _do_plan(plan, known_run, on_start, on_result)}
    for label, runs in chosen.items():
        plan = plan_of(runs, size, out, label)
        known = (lambda context, case: found.get(str(folder_of(context.plan, case)))) if found else known_run
        mine = _do_plan(plan, known, on_start, on_result)
        # Names of workloads may come shorter than they went in; their order stays.
        names = dict.fromkeys(run["workload"] for run in mine)
        for short, name in zip(runs.workloads, names, strict=True):
            done.found[short, label] = [run for run in mine if run["workload"] == name]


def _do_plan(
    plan: Plan,
    known: Callable[[RunContext, Case], dict[str, Any] | None],
    on_start: Callable[[int], None] | None,
    on_result: Callable[[dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """Runs of a plan, those that are known among them."""
    result = run_plan(plan, on_start=on_start, on_result=on_result, known=known)
    if result.is_interrupted:
        raise Interrupted(_INTERRUPTED)
    return result.runs


def _is_repeatable(runs: Runs) -> bool:
    """Whether its host gives the same run at any time."""
    return host_of(runs.execution).is_deterministic


def known_run(context: RunContext, case: Case) -> dict[str, Any] | None:
    """Find a run that an earlier call has done."""
    folder = folder_of(context.plan, case)
    built = context.built[case.policy_name]
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if isinstance(built, SchedlabError) or not isinstance(run, dict) or run.get("status") != "ok":
        return None
    wanted = blank_run(context, case) | {
        "program_hash": context.programs.get(case.workload, case.seed)[0].program_hash,
        "policy_hash": built.policy_hash,
        "knobs": built.values,
    }
    # What a run has beyond that, such as its `usage` or a guest's `uname`, came of it.
    same = {name: value for name, value in run.items() if name in wanted}
    environment = run.get("environment")
    if isinstance(environment, dict):
        same["environment"] = {
            name: value for name, value in environment.items() if name in wanted["environment"]
        }
    if _identity(wanted) != _identity(same) or not _is_whole(folder / "tasks.parquet"):
        return None
    return {name: value for name, value in run.items() if name != "host_answer"} | {"directory": str(folder)}


def _is_whole(table: Path) -> bool:
    """Whether a Parquet file is there, and was not cut off: it begins and ends with its mark."""
    try:
        with open(table, "rb") as file:
            head = file.read(len(_MARK))
            file.seek(-len(_MARK), os.SEEK_END)
            return head == file.read() == _MARK
    except OSError:
        return False


def _identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """All that says what a run is of; how busy the machine was does not."""
    same = {name: value for name, value in run.items() if name not in _MAY_DIFFER}
    return _without_load(json.loads(json.dumps(same)))


def _without_load(node: Any) -> Any:
    """The same tree without what says how busy the machine was, wherever a host notes it."""
    if not isinstance(node, dict):
        return node
    return {name: _without_load(value) for name, value in node.items() if name not in _LOAD}


# ---- programs of the teaching kernel ----------------------------------------


@dataclass(frozen=True)
class _Boot:
    """A machine that is booted once, and what its program does there."""

    #: `workload`, `label`: As the experiment calls them; the latter is the policy.
    workload: str
    label: str
    first: int  #: Seed of its first run, from 1.
    n_runs: int  #: How often the program does its work.
    folder: Path  #: Where its run folder goes.


def _boots(runs: Runs, size: Size, out: Path, needed: Collection[tuple[str, str]] | None) -> Iterator[_Boot]:
    """Machines of a set, in their order.

    Where instructions are counted one machine does all runs of a policy, as the report's did.
    In real time this machine may be faster for some seconds, or for as long as one emulator
    lives: so each run has a machine of its own, and next to it stands that of the other policy.
    """
    wanted: dict[str, list[str]] = {}
    for workload in runs.workloads:
        for label in runs.policies:
            if needed is None or (workload, label) in needed:
                wanted.setdefault(workload, []).append(label)

    def folder(workload: str, label: str) -> Path:
        return out / runs.name / folder_name(label) / folder_name(workload)

    if not runs.execution.is_parallel:
        yield from (
            _Boot(workload, label, 1, size.seeds, folder(workload, label))
            for workload, labels in wanted.items()
            for label in labels
        )
        return
    for seed in range(1, size.seeds + 1):
        for workload, labels in wanted.items():
            for label in labels if seed % 2 else reversed(labels):
                yield _Boot(workload, label, seed, 1, folder(workload, label) / f"run-{seed}")


def _run_programs(
    done: Done,
    size: Size,
    out: Path,
    needed: Collection[tuple[str, str]] | None,
    on_start: Callable[[int], None] | None,
    on_result: Callable[[dict[str, Any]], None],
) -> None:
    """A program of the kernel, in machines that it has to itself."""
    from schedlab.hosts.kernel.host import image_for

    runs = done.runs
    environment = environment_of(open_host(runs.host))
    images = {policy: image_for(find_policy(policy.split()[0])) for policy in {*runs.policies.values()}}
    found: dict[_Boot, list[dict[str, Any]] | None] = {}
    todo: dict[_Boot, tuple[KernelImage, str, dict[str, Any]]] = {}
    for boot in _boots(runs, size, out, needed):
        policy = runs.policies[boot.label]
        command = runs.program.replace("{runs}", str(boot.n_runs)).replace(
            "{workload}", runs.workloads[boot.workload]
        )
        # A policy of one's own is a part of its kernel, so another text of it is another run.
        identity = {"program": command, "policy": policy, "cpus": runs.machine.cpus or 1, "tick_ns": runs.machine.tick_ns, "parallel": runs.execution.is_parallel,
                    **({"arguments": list(runs.arguments)} if runs.arguments else {}),
                    "environment": environment | {"kernel_hash": images[policy].hash}}  # fmt: skip
        found[boot] = _known_samples(boot.folder, identity)
        if found[boot] is None:
            todo[boot] = (images[policy], command, identity)
    if on_start:
        on_start(sum(boot.n_runs for boot in todo))
    # A machine that counts instructions keeps one CPU of this one busy; one in real time wants all.
    machines = _Machines()
    with ThreadPoolExecutor(1 if runs.execution.is_parallel else os.cpu_count() or 1) as pool:
        booted = {boot: pool.submit(_boot, runs, boot, *rest, machines) for boot, rest in todo.items()}
        try:
            for boot, each in booted.items():
                # Once Polars is there, Ctrl-C ends only waits that have a timeout.
                found[boot] = each.result(timeout=threading.TIMEOUT_MAX / 2)
                for run in found[boot] or ():
                    on_result(run)
        except KeyboardInterrupt as error:
            pool.shutdown(wait=False, cancel_futures=True)
            machines.end()
            raise Interrupted(_INTERRUPTED) from error
    for boot, samples in found.items():
        done.found.setdefault((boot.workload, boot.label), []).extend(samples or ())


class _Machines:
    """Machines under way, all of which end at once, also those about to be started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[str]] = []
        self._is_over = False

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """Start one; what it prints can be read."""
        with self._lock:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            self._started.append(process)
            if self._is_over:
                process.kill()
            return process

    def end(self) -> None:
        """End all of them. From any thread."""
        with self._lock:
            self._is_over = True
            for process in self._started:
                process.kill()


def _known_samples(folder: Path, identity: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """What an earlier boot of the same printed."""
    try:
        content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        if content["identity"] == json.loads(json.dumps(identity)):
            return [run | {"directory": str(folder)} for run in content["runs"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _boot(
    runs: Runs,
    boot: _Boot,
    image: KernelImage,
    command: str,
    identity: Mapping[str, Any],
    machines: _Machines,
) -> list[dict[str, Any]]:
    """Boot a machine, one of `machines`, and read what the program says."""
    from schedlab.hosts.kernel.boot import Machine, machine_command

    policy, *knobs = runs.policies[boot.label].split()
    arguments = {"policy": Path(policy).name.removesuffix(".bpf.c")} | dict(
        words.split("=", 1) for words in runs.arguments
    )
    if knobs:
        arguments["set"] = ",".join(_numbers(policy, knobs))
    if runs.machine.tick_ns is not None:
        arguments["tick_ns"] = str(runs.machine.tick_ns)
    machine = Machine(
        image,
        n_cpus=runs.machine.cpus or 1,
        is_counted=not runs.execution.is_parallel,
        arguments=arguments | {"run": f"/{command}"},
    )
    shutil.rmtree(boot.folder, ignore_errors=True)
    boot.folder.mkdir(parents=True)
    seconds = runs.execution.timeout_seconds
    process = machines.start(machine_command(machine))
    try:
        console, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return [_sample(boot, {}, f"stopped: no result after {seconds:g} s")]
    write_text(boot.folder / "console", console)
    samples = [_sample(boot, words) for words in read_samples(console)]
    if process.returncode or not samples:
        last = console.strip().rpartition("\n")[2]
        return [_sample(boot, {}, f"{command} ended with {process.returncode}: {last}")]
    write_json(boot.folder / "run.json", {"identity": identity, "runs": samples})
    return samples


def _numbers(policy: str, knobs: list[str]) -> list[str]:
    """Settings as the kernel's boot arguments take them: plain numbers."""
    from schedlab.policy.find import load_policy, parse_settings

    loaded = load_policy(policy)
    variants = parse_settings([f"{loaded.name}.{knob}" for knob in knobs], {loaded.name: loaded})
    return [f"{knob}={value}" for variant in variants.values() for knob, value in variant.values.items()]


def read_samples(console: str) -> list[dict[str, str]]:
    """Read lines of `WORD name=VALUE ...`, as programs print them with `--raw`.

    >>> read_samples("hello\\ntiming name=cpu run=0 ticks=5\\n")
    [{'name': 'cpu', 'run': '0', 'ticks': '5'}]
    """
    found = []
    for line in console.replace("\r", "").splitlines():
        if match := _LINE.match(line.strip()):
            words = dict(word.split("=", 1) for word in match[2].split())
            if {"name", "run"} <= words.keys():
                found.append(words)
    return found


def _sample(boot: _Boot, words: Mapping[str, str], error: str = "") -> dict[str, Any]:
    """One printed line as a run; its times are numbers."""
    numbers = {name: int(text) for name, text in words.items() if text.lstrip("-").isdecimal()}
    if "ns" in numbers:  # as a run of a workload has it
        numbers["makespan_ns"] = numbers["ns"]
    return {
        "workload": boot.workload, "policy": boot.label, "seed": numbers.pop("run", 0) + boot.first,
        "status": "failed" if error else "ok", "error": error or None,
        "directory": str(boot.folder), "metrics": numbers,
    }  # fmt: skip
