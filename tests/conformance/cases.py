# SPDX-License-Identifier: MIT
"""Reads and runs conformance cases: a tiny policy, a task set, properties.

A case is `sNN_name.toml`. Its head says how to run it and what must be true;
from the line `[workload]` on it is an ordinary workload. The policy is
`sNN_name.bpf.c`, unless the head names another one. Keys of the head:

    rule        the rule of docs/semantics.md that it tests
    policy      stem of another case's policy
    cpus        default 1
    set         knobs of the policy
    options     more options of a host, such as ["--topology", "smt=2"]
    hosts       where the case can be run; default: everywhere
    error_kind  the run must fail with this kind; default: it must not fail
    error       text that the error must contain
    task        name of the task that the error must be about
    expect      properties: Python expressions over `Story`'s methods
    expect_sim  more of them, about exact times, for the simulator alone

Read next: test_conformance.py; one of the .toml files.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from schedlab.hosts.guest import policies as guest
from schedlab.hosts.host import Job
from schedlab.hosts.kernel import build as kernel_build
from schedlab.hosts.kernel import host as kernel
from schedlab.metrics.consistency import Expectations, check
from schedlab.metrics.timeline import Timeline
from schedlab.policy.bpf import compile_object
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Records, Stop, read_records, write_records
from schedlab.records.ftrace import trace_records
from schedlab.workload.spec import parse_workload

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
#: S15: so much of a slice that is used up may be left, where a signal has to end it.
TICK_LATE_NS = 50_000
HEAD_KEYS = frozenset(
    [
        "rule",
        "policy",
        "cpus",
        "set",
        "options",
        "hosts",
        "error_kind",
        "error",
        "task",
        "expect",
        "expect_sim",
    ]
)
#: No case takes longer than this many seconds of wall clock on any host.
RUN_SECONDS_MAX = 240


@dataclass(frozen=True)
class Case:
    """One conformance case."""

    name: str  #: Stem of its file.
    head: dict  #: The keys that the module's docstring lists.
    workload_text: str  #: The workload; lines keep their numbers in the file.

    @property
    def rule(self) -> str:
        """Such as ``"S7"``."""
        return self.head["rule"]

    @property
    def machine(self) -> tuple[int, str]:
        """Number of CPUs, and `--topology`."""
        words = self.head.get("options", [])
        return self.head.get("cpus", 1), dict(zip(words[::2], words[1::2], strict=True)).get("--topology", "")

    def properties(self, *, has_lines: bool) -> list[str]:
        """Properties, without those about what the policy printed if it cannot be seen."""
        about_lines = re.compile(r"\b(count|calls|said)\(")
        return [text for text in self.head.get("expect", ()) if has_lines or not about_lines.search(text)]

    def runs_on(self, host: str) -> bool:
        """Whether the case makes sense on a host and says something about it."""
        if host == "sim":
            return True
        if host in ("uthreads", "kernel"):
            return host in self.head.get("hosts", [host])
        # With several CPUs the guest's times are those of the emulator: a case that bears it names it.
        is_able = host in self.head.get("hosts", [host] if self.head.get("cpus", 1) == 1 else [])
        return is_able and bool(self.properties(has_lines=False) or "error_kind" in self.head)

    @property
    def policy_source(self) -> Path:
        """The policy to compile."""
        return HERE / f"{self.head.get('policy', self.name)}.bpf.c"


def load_case(path: Path) -> Case:
    """Read one `.toml` file of this folder; one that would make a test that cannot fail is a ValueError."""
    lines = path.read_text().splitlines()
    if "[workload]" not in lines:
        raise ValueError(f"{path.name}: there is no line [workload]")
    cut = lines.index("[workload]")
    head = tomllib.loads("\n".join(lines[:cut]))
    unknown = set(head) - HEAD_KEYS
    if unknown:
        raise ValueError(f"{path.name}: unknown keys {sorted(unknown)}; known: {sorted(HEAD_KEYS)}")
    if not head.get("expect") and "error_kind" not in head:
        raise ValueError(f"{path.name}: it expects nothing")
    if path.stem.endswith("_fails") != ("error_kind" in head):
        raise ValueError(f"{path.name}: ends in _fails if, and only if, error_kind is given")
    return Case(path.stem, head, "\n" * cut + "\n".join(lines[cut:]))


def all_cases() -> list[Case]:
    """Every case of this folder, by name."""
    return [load_case(path) for path in sorted(HERE.glob("s*.toml"))]


@dataclass(frozen=True)
class Run:
    """One stay of a task on a CPU: times in ns, `why` as in `Stop`, lower case.

    `ran_ns` is the CPU time that it was charged; on a machine that others use as
    well, that is less than its length.
    """

    task: str
    cpu: int
    start_ns: int
    end_ns: int
    why: str
    ran_ns: int


@dataclass
class Story:
    """What one run did, in the words that properties use."""

    names: list[str]  #: Name of the task with pid i + 1.
    records: Records  #: What happened.
    lines: list[str] | None  #: What the policy printed, without the time; None where it cannot be seen.
    answer: dict  #: What the host said.
    is_exact: bool = False  #: Whether its times are those of the simulator.
    tolerance_ns: int = 0  #: Error of the host's clock on one interval.
    all_runs: list[Run] = field(default_factory=list)

    def __post_init__(self):
        started = {}
        for event in self.records.events:
            pid = int(event["task"])
            if event["kind"] == Kind.RUN:
                started[pid] = event
            elif event["kind"] == Kind.STOP:
                run = started.pop(pid)
                why = Stop(int(event["flags"])).name.lower()
                times = int(run["t_ns"]), int(event["t_ns"])
                self.all_runs.append(
                    Run(self.names[pid - 1], int(run["cpu"]), *times, why, int(event["arg"]))
                )
        self.all_runs.sort(key=lambda run: (run.start_ns, run.cpu))

    def _times(self, name: str, *kinds: Kind) -> list[int]:
        return [
            int(event["t_ns"])
            for event in self.records.events
            if event["kind"] in kinds and event["task"] and self.names[event["task"] - 1] == name
        ]

    def runs(self, name: str) -> list[Run]:
        """Every stay of this task on a CPU, in order."""
        return [run for run in self.all_runs if run.task == name]

    def order(self) -> list[str]:
        """Names in the order in which they got a CPU; repeats left out."""
        names = [run.task for run in self.all_runs]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    def first_order(self) -> list[str]:
        """Names in the order of their first run."""
        return list(dict.fromkeys(run.task for run in self.all_runs))

    def first_run(self, name: str) -> int:
        """When it first got a CPU, in ns."""
        return self.runs(name)[0].start_ns

    def end(self, name: str) -> int:
        """When it ended, in ns; the run must have seen it end."""
        (last,) = [run for run in self.runs(name) if run.why == "exited"]
        return last.end_ns

    def stops(self, name: str, why: str) -> int:
        """How often it left a CPU for this reason."""
        assert why.upper() in Stop.__members__, why
        return sum(run.why == why for run in self.runs(name))

    def full_runs(self, name: str) -> list[int]:
        """Lengths in ns of the stays that ended by preemption."""
        return [run.ran_ns for run in self.runs(name) if run.why == "preempted"]

    def cpu_ns(self, name: str) -> int:
        """CPU time it got, in ns."""
        return sum(run.ran_ns for run in self.runs(name))

    def latencies(self, name: str) -> list[int]:
        """From each arrival and wake-up to the run that followed, in ns."""
        starts = [run.start_ns for run in self.runs(name)]
        return [
            min(start for start in starts if start >= t_ns) - t_ns
            for t_ns in self._times(name, Kind.ARRIVE, Kind.WAKE)
        ]

    def cpus_of(self, name: str) -> set[int]:
        """CPUs that it ran on."""
        return {run.cpu for run in self.runs(name)}

    def count(self, name: str) -> int:
        """The last value that the policy printed for this counter."""
        found = [line.split()[2] for line in self.lines if line.startswith(f"count {name} ")]
        assert found, f"the policy printed no counter {name!r}"
        return int(found[-1])

    def calls(self, name: str) -> list[str]:
        """Callbacks about this task, in order."""
        return [
            line.split()[1] for line in self.lines if line.startswith("call ") and line.split()[2] == name
        ]

    def said(self) -> list[str]:
        """Lines of the policy that are neither counters nor calls."""
        return [line for line in self.lines if not line.startswith(("count ", "call "))]

    def holds(self, expression: str) -> bool:
        """Evaluate a property."""
        words = {
            name: getattr(self, name)
            for name in dir(type(self))
            if not name.startswith("_") and callable(getattr(self, name))
        }
        words |= {
            "answer": self.answer, "tick_ns": self.records.tick_ns, "ms": 1_000_000,
            "late_ns": TICK_LATE_NS, "end_ns": self.records.end_ns, "all_runs": self.all_runs,
            "len": len, "sum": sum, "max": max, "min": min, "all": all, "any": any,
            "set": set, "sorted": sorted, "zip": zip, "abs": abs,
        }  # fmt: skip
        # One dictionary, so that names are seen inside comprehensions as well.
        return bool(eval(expression, {"__builtins__": {}, **words}))

    def show(self) -> str:
        """The runs and the policy's lines, for the message of a failure."""
        runs = [
            f"{run.start_ns / 1e6:10.3f} ms  cpu {run.cpu}  {run.task:12} {run.ran_ns / 1e6:.3f} ms, {run.why}"
            for run in self.all_runs[:60]
        ]
        return "\n".join([*runs, "", *(self.lines or [])[:60], "", json.dumps(self.answer)])


def run_in_simulator(case: Case, folder: Path, simulator: Path, policy: Path, seed: int = 0) -> Story:
    """Run a case in the simulator, or in another program with its options, such as `schedlab-uthreads`; its files go to a folder."""
    workload = parse_workload(case.workload_text, name=f"{case.name}.toml")
    program = compile_workload(workload, seed=0)
    (folder / "program").write_bytes(program.data)
    records = folder / f"records-{seed}.slr"
    knobs = [word for item in case.head.get("set", {}).items() for word in ("--set", f"{item[0]}={item[1]}")]
    done = subprocess.run(
        [simulator_of(simulator, workload), "--policy", policy, "--program", folder / "program", "--records", records,
         "--cpus", str(case.head.get("cpus", 1)), "--tick-ns", str(workload.tick_ns),
         "--seed", str(seed), *knobs, *case.head.get("options", ()), *events_of(workload)],
        capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=True,
    )  # fmt: skip
    names = [program.string(int(row["name"])) for row in program.task_rows]
    lines = [re.sub(r"^\d+\.\d{9} ", "", line) for line in done.stderr.splitlines()]
    is_exact = simulator.name == "schedlab-sim"
    return Story(names, read_records(records), lines, json.loads(done.stdout), is_exact)


def events_of(workload) -> list[str]:
    """Options for the events of a workload."""
    return ["--events", ",".join(map(str, workload.events))] if workload.events else []


def simulator_of(simulator: Path, workload) -> Path:
    """The simulator that has events, beside the fast one."""
    is_fast = simulator.name == "schedlab-sim"
    return simulator.parents[1] / "check" / "schedlab-sim-check" if is_fast and workload.events else simulator


def run_in_kernel(case: Case, folder: Path, image: kernel_build.KernelImage) -> Story:
    """Run a case in the teaching kernel, of an image with the policies of all cases."""
    workload = parse_workload(case.workload_text, name=f"{case.name}.toml")
    program = compile_workload(workload, seed=0)
    (folder / "program").write_bytes(program.data)
    words = case.head.get("options", [])
    policy = SimpleNamespace(
        policy=SimpleNamespace(path=case.policy_source), values=case.head.get("set", {}), launch={}
    )
    job = Job(
        label=case.name,
        policy=policy,
        program=folder / "program",
        records=folder / "records.slr",
        n_cpus=case.head.get("cpus", 1),
        seed=0,
        tick_ns=workload.tick_ns,
        options=tuple(zip(words[::2], words[1::2], strict=True)),
    )
    outcome = kernel.KernelSession(timeout_seconds=RUN_SECONDS_MAX, image=image).run(job)
    assert "nr_exited" in outcome.answer, outcome.error
    names = [program.string(int(row["name"])) for row in program.task_rows]
    answer = {
        "error": outcome.error,
        "error_kind": outcome.error_kind,
        "task": outcome.task,
        **outcome.answer,
    }
    return Story(
        names,
        read_records(job.records),
        outcome.answer["lines"],
        answer,
        tolerance_ns=kernel.KernelHost().tolerance_ns(job),
    )


def guest_task(case: Case) -> guest.GuestTask:
    """Compile a case for a real kernel."""
    workload = parse_workload(case.workload_text, name=f"{case.name}.toml")
    words = case.head.get("options", [])
    options = dict(zip(words[::2], words[1::2], strict=True))
    return guest.GuestTask(
        case.name,
        compile_object(case.policy_source).read_bytes(),
        knobs=case.head.get("set", {}),
        program=compile_workload(workload, seed=0).data,
        above=guest.spans_of(options.get("--above", "")),
        offline=guest.spans_of(options.get("--offline", "")),
        **{
            kind: tuple(
                (event.which, event.at_ns, event.time_ns) for event in workload.events if event.kind == kind
            )
            for kind in ("weight", "quota")
        },
    )


def story_of_guest(case: Case, said: guest.Answer, folder: Path) -> Story:
    """What a real kernel did with a case; what a policy prints stays there, so `lines` is None."""
    workload = parse_workload(case.workload_text, name=f"{case.name}.toml")
    program = compile_workload(workload, seed=0)
    assert said.is_loaded and not said.fatal, said.refusal or said.fatal
    events, end_ns = trace_records(said.trace)
    path = folder / "records.slr"
    write_records(path, events, n_cpus=case.head.get("cpus", 1), tick_ns=guest.TICK_NS, end_ns=end_ns)
    names = [program.string(int(row["name"])) for row in program.task_rows]
    failed = said.ended_by == "by the kernel"
    answer = {
        "error_kind": said.error_kind,
        "error": said.kernel_text if failed else None,
        "nr_exited": len(names) - said.n_left,
    }
    return Story(names, read_records(path), None, answer)


def verdict(case: Case, story: Story) -> list[str]:
    """What is wrong with a run, a sentence per broken expectation; an empty list if the host conforms."""
    head, answer = case.head, story.answer
    has_lines = story.lines is not None
    wrong = []
    if answer["error_kind"] != head.get("error_kind"):
        wrong.append(f"error_kind is {answer['error_kind']}: {answer['error']}")
    elif has_lines and head.get("error", "") not in (answer["error"] or ""):
        wrong.append(f"the error does not say {head['error']!r}: {answer['error']}")
    if "task" in head and has_lines:
        named = story.names[answer["task"] - 1] if answer["task"] else None
        if named != head["task"]:
            wrong.append(f"the error is about {named}, not {head['task']}")
    consistency = check(Timeline(story.records), Expectations(tolerance_ns=story.tolerance_ns))
    if consistency != "ok":
        wrong.append(f"consistency: {consistency}")
    # S30: whatever the policy did, every task ends.
    if answer["nr_exited"] != len(story.names):
        wrong.append(f"{answer['nr_exited']} of {len(story.names)} tasks ended")
    exact = head.get("expect_sim", []) if story.is_exact else []
    for expression in [*case.properties(has_lines=has_lines), *exact]:
        try:
            if not story.holds(expression):
                wrong.append(f"not true: {expression}")
        except Exception as error:
            wrong.append(f"{expression}: {type(error).__name__}: {error}")
    return wrong
