# SPDX-License-Identifier: MIT
"""Measure a command under several scheduling classes of this machine's Linux.

Every round runs each class once, in an order drawn for that round, so that what
drifts (heat, caches, neighbours) meets all classes alike and the rounds are
pairs. Each sample is written down at once: an interrupted measurement goes on
where it stopped, and what is there can be read.

Must stay true: nothing of the machine is changed but what the commands
themselves do; every sample is kept, outliers included.
Read next: hosts/linux/launch.py, hosts/linux/machine.py; cli/bench.py, which shows it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SchedlabError, UnavailableError, UsageError
from ..hosts.linux.ext_class import parse_policy, under
from ..hosts.linux.launch import Command, Launcher
from ..hosts.linux.machine import (
    busy_by_cpu,
    describe_machine,
    steal_by_cpu,
    steal_since,
    time_since,
    warn_of_machine,
)
from ..metrics.disturbance import DISTURBED_MAX, counted_disturbance, describe_counted
from ..policy.linux_class import LinuxClass, is_class, parse_class
from ..stats.decide import EXPLORATORY, HEADLINE, decide, entry
from ..stats.inference import CONFIDENCE, compare_paired, mean_interval
from ..stats.warnings import examine
from .bench_record import BenchRecorder
from .bench_series import run_shell
from .bench_stderr import last_lines, stderr_file, stderr_files
from .own_figures import describe_figure, read_figures, tool_of, tool_of_figure

#: Figure, unit, and which way is better: -1 less, 0 neither.
FIGURES = {
    "wall_ns": ("ns", -1),
    "user_ns": ("ns", -1),
    "system_ns": ("ns", -1),
    "cpu_percent": ("%", 0),
    "switches_involuntary": ("1", -1),
    "switches_voluntary": ("1", -1),
    "run_delay_ns": ("ns", -1),
    "tree_ns": ("ns", -1),
    "major_faults": ("1", -1),
    "resident_kib_max": ("KiB", -1),
}
SAMPLES_FILE, PLAN_FILE = "samples.jsonl", "bench.json"


@dataclass(frozen=True)
class BenchPlan:
    """What is to be measured."""

    argv: tuple[str, ...]  #: The command.
    classes: tuple[LinuxClass, ...]  #: What it runs under; the first is what the others are compared with.
    n_rounds: int = 10  #: Samples of each class.
    n_warmups: int = 1  #: Rounds before those, which are thrown away.
    background: tuple[tuple[str, ...], ...] = ()  #: Commands that run at the same time, under the same class.
    cpus: tuple[int, ...] = ()  #: CPUs that all of them may use; empty: all.
    timeout_ns: int = 60_000_000_000  #: Longest time that one run may take, in nanoseconds.
    seed: int = 1  #: Of the order within rounds.
    n_recorded: int = 0  #: Runs of each class after the samples in which the scheduler is recorded.
    prepare: str = ""  #: What a shell does before each run, which is not measured; empty: nothing.
    input: Path | None = None  #: What the command's stdin reads; None: nothing.
    is_shown: bool = False  #: Whether what the command prints is shown.

    @property
    def n_runs(self) -> int:
        """All runs: warm-ups, samples, recorded."""
        return len(self.classes) * (self.n_warmups + self.n_rounds + self.n_recorded)

    def as_json(self) -> dict[str, Any]:
        """The plan as it is written beside its samples."""
        return {
            "command": list(self.argv), "policies": [each.name for each in self.classes],
            "rounds": self.n_rounds, "warmups": self.n_warmups,
            "background": [list(argv) for argv in self.background], "cpus": list(self.cpus),
            "timeout_ns": self.timeout_ns, "seed": self.seed, "recorded": self.n_recorded,
            **({"prepare": self.prepare} if self.prepare else {}),
            **({"input": str(self.input)} if self.input else {}),
        }  # fmt: skip


@dataclass
class BenchResult:
    """What was measured."""

    plan: BenchPlan  #: What was asked for.
    machine: dict[str, Any]  #: See `hosts.linux.machine.describe_machine`.
    #: In the order of the runs: `policy`, `round`, `order` (position after the warm-ups), `exit_code`,
    #: `signal`, `has_timed_out`, `background_ended` (how many background commands had ended by themselves
    #: before it), `stderr` (its last lines, where the run failed), `cpus_busy_ns`, `cpus_own_ns`,
    #: `cpus_steal_ns` and `cpus_available_ns` (all processes', our commands', a hypervisor's and the whole
    #: time of the CPUs during the run), the figures of `FIGURES`, and those that the command prints about
    #: itself (own_figures.py).
    samples: list[dict[str, Any]] = field(default_factory=list)
    #: By policy: each figure's `mean`, `low`, `high` and `n`.
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Each later policy with the first (`before`, `after`): by figure, what `stats.decide.entry` says; the
    #: wall time and the command's own figures are headline.
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    #: `kind`, `text`, `hint`, and `policy` and `figure` where it has one; of failed runs `stderr`, the last
    #: lines of the first of them that wrote some.
    warnings: list[dict[str, Any]] = field(default_factory=list)
    #: By policy: what the scheduler did in each run that was recorded, see bench_record.py.
    recorded: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    why_not_recorded: str | None = None  #: Why nothing was, though it was asked for.
    #: By policy: what others had of the CPUs during its samples, see
    #: `metrics.disturbance.counted_disturbance`.
    disturbance: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, tuple[str, int]]:
        """Unit and direction of each figure that all samples have."""
        own = [name for name in (self.samples[0] if self.samples else {}) if tool_of_figure(name)]
        return FIGURES | {name: describe_figure(name) for name in own if all(name in s for s in self.samples)}

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Samples whose command failed or was ended."""
        return [each for each in self.samples if _has_failed(each)]

    def as_json(self) -> dict[str, Any]:
        """Everything, each figure a number under its own name."""
        return {
            "plan": self.plan.as_json(), "machine": self.machine, "samples": self.samples,
            "summaries": self.summaries, "comparisons": self.comparisons, "warnings": self.warnings,
            "recorded": self.recorded, "why_not_recorded": self.why_not_recorded,
            "disturbance": self.disturbance,
        }  # fmt: skip


def parse_policies(names: Sequence[str]) -> tuple[LinuxClass, ...]:
    """Read what stands after `--policy`."""
    classes = []
    for name in names:
        classes.append(parse_class(name) if is_class(name) else parse_policy(name))
    for i, each in enumerate(classes):
        if each in classes[:i] or each.name in [other.name for other in classes[:i]]:
            raise UsageError(f"--policy {each.name} is given twice; name each once")
    if not classes:
        raise UsageError("--policy is empty; name at least one class, such as SCHED_OTHER")
    return tuple(classes)


def measure(
    plan: BenchPlan,
    *,
    folder: Path | None = None,
    on_run: Callable[[str, bool], None] | None = None,
    confidence: float = CONFIDENCE,
) -> BenchResult:
    """Run a plan, or what is left of it; `on_run` gets the policy of each run, and whether it was done now."""
    result = BenchResult(plan, describe_machine())
    result.warnings = warn_of_machine(result.machine, list(plan.classes))
    done = _open_folder(plan, folder)
    total = len(plan.classes) * plan.n_rounds
    tell = on_run or (lambda policy, is_new: None)
    with Launcher() as launcher, stderr_files(folder) as errors:
        if len(done) < total:
            _refuse_forks(plan, launcher)
        for number, (index, each) in enumerate(_order(plan), -len(plan.classes) * plan.n_warmups):
            if (index, each.name) in done or len(done) == total:  # or a warm-up for nothing
                result.samples += [done[index, each.name]] if index >= 0 else []
                tell(each.name, False)
                continue
            run = f"round-{index}" if index >= 0 else f"warm-up-{index + plan.n_warmups}"
            run_shell("--prepare", plan.prepare)
            with under(each), stderr_file(errors, run, each.name) as file:
                busy, steal = busy_by_cpu(), steal_by_cpu()
                report, own = _run_once(plan, each, launcher, file)
                cpus = _cpu_times(plan, report, time_since(busy, busy_by_cpu()), steal_since(steal))
                said = last_lines(file) if _has_failed(report) else []
            if index >= 0:
                sample = _sample(report, each, index, number) | {"stderr": said} | cpus | own
                result.samples.append(sample)
                _keep(folder, sample)
            tell(each.name, True)
        if plan.n_recorded:
            _record(result, launcher, errors, tell)
    _summarise(result, confidence)
    return result


def _order(plan: BenchPlan) -> list[tuple[int, LinuxClass]]:
    """Every run: its round (negative: a warm-up) and its class, in order."""
    draw = random.Random(plan.seed)
    runs = []
    for index in range(-plan.n_warmups, plan.n_rounds):
        classes = list(plan.classes)
        draw.shuffle(classes)
        runs += [(index, each) for each in classes]
    return runs


def _has_failed(report: dict[str, Any]) -> bool:
    """Whether a command failed or was ended; of a launcher's report, and of a sample."""
    return bool(report["exit_code"] or report["has_timed_out"])


def _commands(plan: BenchPlan, each: LinuxClass, errors: Path, output: Path | None = None) -> list[Command]:
    """The measured command, and those in the background."""
    if plan.is_shown and output is None:
        output, shown = Path("/dev/stderr"), None  # past our own answer
    else:
        shown = errors
    return [Command(plan.argv, each, plan.cpus, output, shown, plan.input)] + [
        Command(argv, each, plan.cpus) for argv in plan.background
    ]


def _run_once(
    plan: BenchPlan, each: LinuxClass, launcher: Launcher, errors: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One run: the launcher's report, and what the command says about itself."""
    if tool_of(plan.argv) is None:
        return _first(launcher.run(_commands(plan, each, errors), timeout_ns=plan.timeout_ns)), {}
    since = time.time()
    said = os.memfd_create("schedlab-said")
    try:
        output = Path(f"/proc/{os.getpid()}/fd/{said}")
        answer = launcher.run(_commands(plan, each, errors, output), timeout_ns=plan.timeout_ns)
        # Some tell their figures on stdout, some on stderr.
        text = "".join(file.read_text(encoding="utf-8", errors="replace") for file in (output, errors))
        if plan.is_shown:
            sys.stderr.write(text)
    finally:
        os.close(said)
    return _first(answer), read_figures(plan.argv, text, since=since)


def _first(answer: dict[str, Any]) -> dict[str, Any]:
    """Report of the measured command, and how many in the background had ended by themselves before."""
    first, *background = answer["commands"]
    return first | {
        "n_background_ended": sum(not each["was_ended"] for each in background),
        "background_cpu_ns": sum(sum(_cpu_ns(each)) for each in background),
    }


def _cpu_ns(report: dict[str, Any]) -> tuple[int, int]:
    """User and system time of a command's whole tree."""
    return tuple(
        1000 * sum(report[part][name] for part in ("own", "orphans")) for name in ("user_us", "system_us")
    )


def _cpu_times(
    plan: BenchPlan, report: dict[str, Any], busy: dict[int, int], steal: dict[int, int]
) -> dict[str, Any]:
    """What all had of the CPUs during a run, and what of that was ours.

    Counts of so short a time are those of a few ticks: only their sum over runs says something.
    """
    cpus = [cpu for cpu in plan.cpus or sorted(os.sched_getaffinity(0)) if cpu in busy]
    return {
        "cpus_busy_ns": sum(busy[cpu] for cpu in cpus),
        "cpus_steal_ns": sum(steal.get(cpu, 0) for cpu in cpus),
        "cpus_own_ns": sum(_cpu_ns(report)) + report["background_cpu_ns"],
        "cpus_available_ns": len(cpus) * (report["tree_end_ns"] - report["start_ns"]),
    }


def _record(result: BenchResult, launcher: Launcher, errors: Path, tell: Callable[[str, bool], None]) -> None:
    """After the samples, so that recording disturbs none of them."""
    plan = result.plan
    try:
        with BenchRecorder(launcher) as recorder:
            for each in plan.classes:
                runs = result.recorded[each.name] = []
                for i in range(plan.n_recorded):
                    run_shell("--prepare", plan.prepare)
                    with under(each), stderr_file(errors, f"recorded-{i}", each.name) as file:
                        runs.append(recorder.run(_commands(plan, each, file), timeout_ns=plan.timeout_ns))
                    tell(each.name, True)
    except UnavailableError as error:
        result.why_not_recorded = str(error)


def _refuse_forks(plan: BenchPlan, launcher: Launcher) -> None:
    """Under SCHED_DEADLINE a fork fails with EAGAIN, which measures nothing."""
    deadline = [each for each in plan.classes if each.is_deadline]
    if not deadline:
        return
    for argv in (plan.argv, *plan.background):
        trial = Command(argv, parse_class("SCHED_OTHER"), plan.cpus)
        answer = launcher.run([trial], timeout_ns=plan.timeout_ns, is_trial=True)
        if answer["commands"][0]["forks"]:
            raise UsageError(
                f"{' '.join(argv)}: it starts a child or a thread, which Linux refuses under "
                f"{deadline[0].name} (EAGAIN); leave that class out, or name the child itself"
            )


def _sample(report: dict[str, Any], each: LinuxClass, index: int, number: int) -> dict[str, Any]:
    """One run as the reports' authors wrote it down, and more."""
    parts = (report["own"], report["orphans"])
    wall_ns = report["end_ns"] - report["start_ns"]
    user_ns, system_ns = _cpu_ns(report)
    return {
        "policy": each.name,
        "round": index,
        "order": number,
        "exit_code": report["exit_code"],
        "signal": report["signal"],
        "has_timed_out": report["has_timed_out"],
        "background_ended": report["n_background_ended"],
        "wall_ns": wall_ns,
        "user_ns": user_ns,
        "system_ns": system_ns,
        "cpu_percent": 100 * (user_ns + system_ns) / max(wall_ns, 1),
        "switches_involuntary": sum(part["involuntary_switches"] for part in parts),
        "switches_voluntary": sum(part["voluntary_switches"] for part in parts),
        "run_delay_ns": report["run_delay_ns"],
        "tree_ns": report["tree_end_ns"] - report["start_ns"],
        "major_faults": sum(part["major_faults"] for part in parts),
        "resident_kib_max": max(part["resident_kib_max"] for part in parts),
    }


# ---- the folder ------------------------------------------------------------


def _open_folder(plan: BenchPlan, folder: Path | None) -> dict[tuple[int, str], dict[str, Any]]:
    """Samples that are there already, by round and class."""
    if folder is None:
        return {}
    wanted = json.dumps(plan.as_json())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        plan_file = folder / PLAN_FILE
        if not plan_file.exists():
            plan_file.write_text(wanted + "\n", encoding="utf-8")
        elif plan_file.read_text(encoding="utf-8").strip() != wanted:
            raise UsageError(
                f"--out {folder} holds another measurement; name another folder, or the "
                "same command and options to go on with it"
            )
        samples = folder / SAMPLES_FILE
        lines = samples.read_text(encoding="utf-8").splitlines() if samples.is_file() else []
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}; name another folder") from error
    found = {}
    for line in lines:
        try:
            sample = json.loads(line)
        except ValueError:
            continue  # The last line of one that was killed; that run is done again.
        found[sample["round"], sample["policy"]] = sample
    return found


def _keep(folder: Path | None, sample: dict[str, Any]) -> None:
    """Write a sample down before the next run begins."""
    if folder is None:
        return
    try:
        with open(folder / SAMPLES_FILE, "a+b") as file:
            line = json.dumps(sample).encode() + b"\n"
            if file.tell():
                file.seek(-1, os.SEEK_END)
                # Not behind what is left of a line that was cut short.
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
    except OSError as error:
        raise SchedlabError(
            f"{folder / SAMPLES_FILE}: {error.strerror}; what came before is kept: make room and start "
            "the same command again"
        ) from error


# ---- numbers ---------------------------------------------------------------


def _rows(result: BenchResult, policy: str, figures: Sequence[str]) -> np.ndarray:
    """Figures of one policy, shape (n_figures, n_rounds), by round."""
    mine = sorted((s for s in result.samples if s["policy"] == policy), key=lambda s: s["round"])
    return np.array([[float(sample[name]) for sample in mine] for name in figures])


def _summarise(result: BenchResult, confidence: float) -> None:
    """Fill in summaries, comparisons and warnings."""
    names = [each.name for each in result.plan.classes]
    figures = result.figures
    rows = {name: _rows(result, name, list(figures)) for name in names}
    for name in names:
        result.summaries[name] = {}
        for figure, values in zip(figures, rows[name], strict=True):
            interval = mean_interval(values, confidence=confidence, minimum=0)
            is_single = interval.method == "single"
            result.summaries[name][figure] = {
                "mean": interval.estimate,
                "low": None if is_single else interval.low,
                "high": None if is_single else interval.high,
                "n": interval.n,
            }
        _warn_of_samples(result, name)
        _warn_of_others(result, name)
    for name in names[1:]:
        paired = compare_paired(rows[names[0]], rows[name], confidence=confidence)
        decided = {
            figure: entry(
                each,
                family=EXPLORATORY if figure in FIGURES and figure != "wall_ns" else HEADLINE,
                direction={-1: "lower", 0: "none", 1: "higher"}[figures[figure][1]],
            )
            for figure, each in zip(figures, paired, strict=True)
        }
        result.comparisons.append({"before": names[0], "after": name, "figures": decided})
    decide((m for each in result.comparisons for m in each["figures"].values()), confidence=confidence)
    alone = [sample for sample in result.samples if sample.get("background_ended")]
    if alone:
        result.warnings.append(
            {
                "kind": "background",
                "text": f"in {len(alone)} of {len(result.samples)} runs a command of --background had ended before "
                "the measured one",
                "hint": "try it by itself; give one that goes on for longer",
            }
        )
    for sample in result.failures[:1]:
        said: list[str] = next((each["stderr"] for each in result.failures if each.get("stderr")), [])
        how = (
            "was ended by the timeout"
            if sample["has_timed_out"]
            else (
                f"ended by signal {sample['signal']}"
                if sample["signal"]
                else f"exit code {sample['exit_code']}"
            )
        )
        result.warnings.append({
            "kind": "failed runs", "policy": sample["policy"],
            "text": f"{len(result.failures)} of {len(result.samples)} runs failed, such as round "
                    f"{sample['round']} under {sample['policy']}: {how}",
            "hint": "their times are not those of the whole work: look why before you compare", "stderr": said,
        })  # fmt: skip


def _warn_of_others(result: BenchResult, policy: str) -> None:
    """What others had of the CPUs during all samples of a policy."""
    mine = [sample for sample in result.samples if sample["policy"] == policy and "cpus_busy_ns" in sample]
    found = counted_disturbance(
        **{
            f"{name}_ns": sum(sample[f"cpus_{name}_ns"] for sample in mine)
            for name in ("busy", "own", "steal", "available")
        }
    )
    if not found["available_ns"]:
        return
    result.disturbance[policy] = found
    if found["share"] > DISTURBED_MAX:
        result.warnings.append({"kind": "disturbed", "policy": policy, "text": describe_counted(found),
                                "hint": "end them, or measure again on an idle machine"})  # fmt: skip


def _warn_of_samples(result: BenchResult, policy: str) -> None:
    """Two peaks, outliers and drift in the times that conclusions rest on."""
    mine = [sample for sample in result.samples if sample["policy"] == policy]
    for figure in ("wall_ns", "switches_involuntary"):
        values = [sample[figure] for sample in mine]
        show = (lambda value: f"{value / 1e6:.4g} ms") if figure.endswith("_ns") else None
        for warning in examine(values, order=[sample["order"] for sample in mine], show=show):
            # Counts have few distinct values by nature.
            if figure == "switches_involuntary" and warning.kind in ("ties", "too-few"):
                continue
            found = warning.as_json() | {"policy": policy, "figure": figure}
            if warning.kind == "too-few":
                found["hint"] = "use --runs 10 or more; from 6 on intervals are bootstrapped"
            result.warnings.append(found)
