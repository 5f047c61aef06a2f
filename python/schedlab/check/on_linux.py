# SPDX-License-Identifier: MIT
"""Run a failure in a real kernel: it is confirmed, not seen, or why it could not be tried.

        without interleaving   the world as it is, once
        with                   its preemptions -> instructions -> delays there -> tries, each with a seed
                                                                                  and a length

A CPU that `schedlab check` has stopped between two instructions is held there on Linux, for up to some ms: the
guest's CPUs take turns in the emulator, and the turn ends within the delay, so that another CPU comes in between.
Each try is the same whenever it is repeated, as all runs of the guest.

Invariant: what is said to be confirmed has failed there in the same property; a stall by Linux's watchdog, set to 5 s.
Read next: policy/delays.py; save.py, whose files these are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from .. import api
from ..errors import SchedlabError, UsageError
from ..hosts.choose import build_for
from ..hosts.guest.build import toolchain
from ..hosts.guest.host import REFUSED, GuestHost
from ..hosts.host import Job, Session
from ..model import Execution
from ..policy.build import BuiltPolicy
from ..policy.delays import LOCK_AT, PLACES_MAX, READ, SEEN, WRITE, Point, compile_with_delays
from ..policy.invariants import TESTED, for_linux
from ..policy.races import compile_for_races
from ..program.compiler import compile_workload
from ..program.file import Program
from ..records.file import read_records
from ..runs.judge import Judge
from ..units import format_duration
from ..workload.distributions import Distribution
from ..workload.events import IN_GUEST, read_events
from ..workload.model import Workload
from ..workload.phases import Phase, walk
from ..workload.spec import parse_workload
from .calls import AFTER, Call, calls_of, calls_of_job
from .encode import program_of
from .promises import promises_of
from .relations import RELATIONS
from .save import PROMISED, Saved, in_words, policy_word
from .trial import Finding, broken_by, seen_as
from .world import MS, World, to_toml

#: CPUs of the guest.
LINUX_CPUS_MAX = 4
RUN_SECONDS = 300.0
#: Of the longest delay of a try: loops, of some 7 ns in the guest each.
LOOPS = (300_000, 1_000_000, 2_000_000)
LOOP_NS = 7
#: Longer than any run.
ALL_NS = 1 << 58
TRIES = 12
#: A try is so long, and a task that waits for so long in it is a suspect of a stall.
TRY_NS = 1_500 * MS
SUSPECT_MS = 500
#: For how long one has to wait, by Linux's own watchdog, in a run that is so long: each second of tasks that compute
#: takes several to emulate.
STALL_MS, STALL_NS = 5_000, 12_000 * MS
#: Preemptions whose places are delayed: those of the smallest failures are one or two.
POINTS_MAX = 16
BETWEEN_MAX = 2
PLACES_SHOWN = 5
#: Callbacks of a CPU that schedules.
ON_CPU = (
    "select_cpu",
    "enqueue",
    "dispatch",
    "running",
    "stopping",
    "quiescent",
    "runnable",
    "update_idle",
    "tick",
)
#: Of a try in which tasks are repeated: a run is at most so long, and between two rounds is a sleep.
ROUND_NS = 1 * MS
PAUSES_NS = (1 * MS, 2 * MS, 3 * MS)
#: Tasks wait where they are more than CPUs.
COPIES = 3
#: Of these a run in the guest shows nothing.
ONLY_HERE = {
    "exit": "what a freed task still holds is no different on Linux, which keeps it for as long as there is a reference",
    "vtime": "each virtual time is looked at by the simulator alone",
    "ignored-error": "the call that fails is chosen by schedlab",
    "worse": "two runs are compared, and two on Linux differ by more than the policy",
    "consistency": "it is a defect of schedlab",
    **dict.fromkeys(RELATIONS, "two runs have to be alike, and two on Linux are not"),
}
KIND_LOST_UPDATE = 1
NOT_SEEN = "not seen on Linux"
#: Of these a chance that the workload gives once may be one that Linux takes otherwise: its tasks are repeated.
REPEATED = ("error", "work")
#: Of a lock that Linux does not wait for.
ERRORS = {35: "EDEADLK", 110: "ETIMEDOUT"}
_PLACE = re.compile(r"before ([^\s:]+):(\d+), (.+)")
_WRITTEN = re.compile(r"wrote \d+ at ([^\s:;]+):(\d+)$")


def try_on_linux(saved: Saved, world: World, finding: Finding, built: BuiltPolicy) -> Saved:
    """Say of a failure what a real kernel makes of it."""
    source = world.given.path if world.given else saved.world
    said = _why_not(source, world, finding, built)
    return replace(saved, on_linux=said or _tried(saved, source, world, finding, built))


def _tried(saved: Saved, source: Path | None, world: World, finding: Finding, built: BuiltPolicy) -> str:
    """What the tries have shown."""
    if not world.interleaving and finding.broken != "invariant":
        assert source is not None and saved.run is not None
        said = _as_it_is(source, saved.run, world, finding, built)
        if finding.broken not in REPEATED or world.machine_events or not said.startswith(NOT_SEEN):
            return said
    with TemporaryDirectory(prefix="schedlab-on-linux-") as scratch:
        try:
            return _Tries(saved, world, finding, built, Path(scratch)).verdict()
        except SchedlabError as error:
            return f"not tried on Linux: {error}"


def _why_not(source: Path | None, world: World, finding: Finding, built: BuiltPolicy) -> str:
    """Why a failure is not tried; empty: it is."""
    events = {event.kind for event in read_events(world.machine_events)}
    alone = events if world.interleaving or finding.broken == "invariant" else events - {*IN_GUEST}
    if why := ONLY_HERE.get(finding.broken):
        return f"not tried on Linux, {finding.broken} is only as schedlab: {why}"
    if finding.broken == "invariant" and not for_linux(built.policy)[0]:
        return "not tried on Linux, invariant is only as schedlab: threads of Linux's own keep it from being quiet"
    if alone:
        beside = " beside chosen interleavings" if world.interleaving else ""
        return f"not tried on Linux: events of kind {', '.join(sorted(alone))}{beside} are schedlab's"
    if world.given is not None and world.events != world.given.events:
        return "not tried on Linux: events beside a given workload are schedlab's"
    if source is None or world.topology or world.n_cpus > LINUX_CPUS_MAX:
        return f"not tried on Linux: the guest has up to {LINUX_CPUS_MAX} CPUs, all alike"
    return ""


def _as_it_is(source: Path, run: Path, world: World, finding: Finding, built: BuiltPolicy) -> str:
    """Run the workload of a failure, once."""
    result = api.run(
        source, policy_word(built), seeds=[world.seed], cpus=world.n_cpus, host="guest", timeout="1800s",
        set={f"{built.policy.name}.{key}": in_words(built, key, value) for key, value in world.settings},
        out=run.parents[2].with_name(f"{source.stem}-on-linux"),
    )  # fmt: skip
    row = result.runs.row(0, named=True)
    folder = Path(row["directory"])
    environment = json.loads((folder / "run.json").read_text())["environment"]
    kernel = environment.get("guest_kernel", "Linux")
    error = row["error"] or ""
    seen = broken_by(row["error_kind"], error)
    if error.startswith(REFUSED) or (seen is None and error):
        return f"not run on Linux ({kernel}): {error}"
    if seen is None:
        error = _broken_promise(
            finding, world, built, folder / "records.slr", Program(program_of(world)), GuestHost(), 0
        )
        seen = finding.broken if error else None
    if seen == (seen_as(finding.broken) if error else finding.broken):
        return f"confirmed on Linux ({kernel}): {error}"
    if seen is None:
        return f"{NOT_SEEN} ({kernel}): only as schedlab"
    return f"fails otherwise on Linux ({kernel}): {error}"


def _broken_promise(
    finding: Finding,
    world: World,
    built: BuiltPolicy,
    file: Path,
    program: Program,
    host: GuestHost,
    more_ns: int,
) -> str:
    """What the records of a run in the guest show of a promise; empty: nothing, or that it is none.

    A tick there is Linux's own, and a CPU may notice something as late as the host says, and `more_ns` later.
    """
    records = read_records(file)
    job = Job("", built, file, file, n_cpus=world.n_cpus, seed=world.seed, tick_ns=records.tick_ns)
    more_ns += host.latency_ns(job) + host.tolerance_ns(job)
    world = replace(world, tick_ns=max(world.tick_ns, records.tick_ns), events=())
    values = built.values | dict(world.settings)
    for promise in promises_of(built.policy, values, {finding.broken}, world):
        allowed = replace(promise, allowed_ns=promise.allowed_ns + more_ns)
        if text := allowed.broken(records, program):
            return text
    return ""


# ---- with delays -------------------------------------------------------------------


def points_of(calls: list[Call]) -> list[Point]:
    """Where the preemptions of a run have stopped CPUs, each place once; the first of them."""
    points: dict[Point, None] = {}
    for at, call in enumerate(calls):
        for deed in call.deeds:
            if deed.word != "switch":
                continue
            if found := _PLACE.search(deed.text):
                does = found[3] if found[3] in (READ, WRITE) else "call"
                points[Point(found[1], int(found[2]), does)] = None
            elif deed.text.endswith(AFTER):
                following = (each.name for each in calls[at + 1 :] if each.cpu == call.cpu)
                points[Point(callback=call.name, next_callback=next(following, ""))] = None
    # What is between two callbacks is Linux's own code, of which little is like schedlab's.
    inside = [point for point in points if point.file]
    between = [point for point in points if not point.file and point.callback in ON_CPU]
    return [*inside[:POINTS_MAX], *between[:BETWEEN_MAX]]


def repeated(workload: Workload) -> Workload:
    """The same tasks, which do what they do again and again, in short, with sleeps: each round is another chance."""
    tasks = []
    for number, task in enumerate(workload.tasks):
        if task.parent or any(phase.verb in ("spawn", "wait") for phase, _ in walk(task.phases)):
            tasks.append(task)  # children are counted
            continue
        pause = Phase("sleep", "", (), amount=Distribution("constant", (PAUSES_NS[number % len(PAUSES_NS)],)))
        loop = Phase("loop", "", (), body=(*_short(task.phases), pause))
        tasks.append(replace(task, phases=(loop,)))
    return replace(workload, tasks=tuple(tasks), copies=COPIES)


def _short(phases: Sequence[Phase]) -> Iterator[Phase]:
    """One round of each loop, and no run or sleep of more than `ROUND_NS`."""
    for phase in phases:
        if phase.verb == "loop":
            yield from _short(phase.body)
        elif phase.verb in ("run", "sleep") and phase.amount is not None:
            length = min(phase.amount.constant or ROUND_NS, ROUND_NS)
            yield replace(phase, amount=Distribution("constant", (length,)))
        else:
            yield phase


@dataclass(frozen=True)
class _Try:
    """One run in the guest."""

    number: int  #: From 1; 0: without delays.
    loops: int = 1  #: Of the longest delay.
    places: int = 0  #: A bit for each that is used.
    is_repeated: bool = False  #: Whether tasks are.

    @property
    def longest_ns(self) -> int:
        """About how long a delay may be."""
        return self.loops * LOOP_NS if self.places else 0


def tries_of(numbers: Sequence[int]) -> Iterator[_Try]:
    """Two without delays; then in turn with all of them and with one alone, as it is and with tasks that are repeated."""
    for is_repeated in (False, True):
        yield _Try(0, is_repeated=is_repeated)
    for number in range(TRIES if numbers else 0):
        alone = 1 << numbers[number // 2 % len(numbers)]
        places = alone if number % 2 else sum(1 << each for each in numbers)
        yield _Try(number + 1, LOOPS[number % len(LOOPS)], places, number >= len(LOOPS))


def grouped(places: Sequence[str]) -> list[str]:
    """Places with each file named once.

    >>> grouped(["before a.bpf.c:5", "at the end of ops.tick()", "before a.bpf.c:7"])
    ['before a.bpf.c:5,7', 'at the end of ops.tick()']
    """
    lines: dict[str, list[str]] = {}
    for place in places:
        head, colon, line = place.rpartition(":")
        lines.setdefault(head if colon else place, []).extend([line] if colon else [])
    return [f"{head}:{','.join(numbers)}" if numbers else head for head, numbers in lines.items()]


class _Tries:
    """Runs in the guest, until one fails as the finding does."""

    def __init__(self, saved: Saved, world: World, finding: Finding, built: BuiltPolicy, scratch: Path):
        self.finding, self.scratch = finding, scratch
        self.world, self.built = world, built
        #: As what it is seen there.
        self.broken = seen_as(finding.broken)
        self.waited = (
            ""  #: Of a stall that has not come: which task has waited while no CPU ran one, and how that was.
        )
        workload = world.given or parse_workload(to_toml(world), name="world.toml")
        self.workload = replace(workload, interleaving="", events=())
        values = built.values | dict(world.settings)
        written = _WRITTEN.search(finding.text) if finding.broken == "race" else None
        watched = [(written[1], int(written[2]))] if written else []
        self.tests = ""
        self.named: re.Pattern[str] | None = None
        if finding.broken == "invariant":
            self.tests, self.named = for_linux(built.policy)
        points = [Point(*place, WRITE) for place in watched]
        if world.interleaving:
            points += points_of(self._calls(saved, built, values))
        if not points and world.interleaving:
            raise UsageError("none of its preemptions is in the policy, or between two callbacks of a CPU")
        self.policy = build_for(Execution(host="guest"), built.policy, values)
        self.object = scratch / f"{built.policy.name}-delays.bpf.o"
        self.delays = compile_with_delays(
            built.policy.path, self.object, points, watched=watched,
            watches_locks=finding.broken == "deadlock", tests=self.tests, toolchain=toolchain,
        )  # fmt: skip
        self.host = GuestHost()
        self.kernel = self.host.environment()["guest_kernel"]

    def verdict(self) -> str:
        """What the tries have shown."""
        numbers = [at for at, where in enumerate(self.delays) if not where.startswith(LOCK_AT)][:PLACES_MAX]
        if not numbers and self.world.interleaving:
            raise UsageError("none of the instructions before which it was preempted is left in the object")
        session = self.host.session(timeout_seconds=RUN_SECONDS)
        otherwise = ""
        try:
            for each in tries_of(numbers):
                seen, text = self._run(session, each, TRY_NS, SUSPECT_MS)
                if seen == "stall" == self.broken:
                    seen, text = self._run(session, each, STALL_NS, STALL_MS)
                if text.startswith(REFUSED):
                    return f"not run on Linux ({self.kernel}): {text}"
                if seen == self.broken:
                    return f"confirmed on Linux ({self.kernel}) {self._how(each)}: {text}"
                otherwise = otherwise or (f"{self._how(each)}: {text}" if seen else "")
        finally:
            session.close()
        if otherwise:
            return f"fails otherwise on Linux ({self.kernel}) {otherwise}"
        if not numbers:
            return f"{NOT_SEEN} ({self.kernel}): only as schedlab"
        return f"{NOT_SEEN} ({self.kernel}) in {TRIES} tries with delays {self._places(-1)}: only as schedlab"

    def _calls(self, saved: Saved, built: BuiltPolicy, values: Mapping[str, int]) -> list[Call]:
        """The callbacks of the finding's run."""
        if saved.run is not None:
            return calls_of(saved.run, 0, ALL_NS)
        # Only check's own run ends where an invariant is broken.
        program = self.scratch / "found"
        program.write_bytes(program_of(self.world))
        job = Job(
            label="found", policy=compile_for_races(replace(built, values=dict(values))), program=program,
            records=self.scratch / "found.slr", n_cpus=self.world.n_cpus, seed=self.world.seed,
            tick_ns=self.world.tick_ns, options=(("--interleave", self.world.interleaving),),
        )  # fmt: skip
        return calls_of_job(job, 0, ALL_NS)

    def _places(self, places: int) -> str:
        """Where delays are."""
        used = [
            where
            for at, where in enumerate(self.delays)
            if places >> at & 1 and not where.startswith(LOCK_AT)
        ]
        more = [f"{len(used) - PLACES_SHOWN} more"] if len(used) > PLACES_SHOWN else []
        return ", ".join([*grouped(used[:PLACES_SHOWN]), *more])

    def _how(self, each: _Try) -> str:
        """How a try was made."""
        again = " and its tasks repeated" if each.is_repeated else ""
        if not each.places:
            return f"without delays{again}"
        return f"with delays of up to {format_duration(each.longest_ns)} {self._places(each.places)}{again}, in try {each.number}"

    def _run(self, session: Session, each: _Try, horizon_ns: int, watchdog_ms: int) -> tuple[str | None, str]:
        """The property that a try has broken, and what is said of it; no property and a text: it did not run."""
        workload = repeated(self.workload) if each.is_repeated else self.workload
        limit = (
            horizon_ns
            if each.is_repeated or not workload.horizon_ns
            else min(horizon_ns, workload.horizon_ns)
        )
        program = compile_workload(replace(workload, horizon_ns=limit), seed=self.world.seed)
        (self.scratch / "program").write_bytes(program.data)
        values = self.policy.values | {
            "sl_delay_places": each.places, "sl_delay_seed": each.number, "sl_delay_loops": each.loops,
            **({"ops.timeout_ms": watchdog_ms} if self.broken == "stall" else {}),
        }  # fmt: skip
        job = Job(
            label="on Linux", policy=replace(self.policy, shared_object=self.object, values=values),
            program=self.scratch / "program", records=self.scratch / "records.slr", n_cpus=self.world.n_cpus,
            seed=self.world.seed, tick_ns=self.world.tick_ns,
        )  # fmt: skip
        job.records.unlink(missing_ok=True)
        outcome = session.run(job)
        error, kind = outcome.error or "", outcome.error_kind
        if self.finding.broken == "work" and not error:
            judge = Judge(
                latency_ns=self.host.latency_ns(job) + 4 * each.longest_ns, work_conserving=True, tables_folder=None,
                tolerance_ns=self.host.tolerance_ns(job) + 4 * each.longest_ns, has_exact_work=False,
            )  # fmt: skip
            verdict = judge.verdict(program, job.records, outcome)
            error, kind = verdict["error"] or "", verdict["error_kind"]
        elif self.finding.broken in PROMISED and not error:
            more_ns = 4 * each.longest_ns
            text = _broken_promise(
                self.finding, self.world, self.built, job.records, program, self.host, more_ns
            )
            if text:
                return self.finding.broken, text
        if self.named is not None:
            error = self.named.sub(lambda found: f"ops.{TESTED[int(found[1])]}()", error)
        if kind == "timeout":
            return None, ""  # too long to emulate: undecided
        if shown := SEEN.search(error):
            return self._seen(shown)
        seen = broken_by(kind, error)
        return (None, error) if error.startswith(REFUSED) else (seen, error if seen else "")

    def _seen(self, shown: re.Match[str]) -> tuple[str, str]:
        """What the policy's own code has seen."""
        kind, place, before, found, written = map(int, shown.groups())
        where = self.delays[place] if place < len(self.delays) else "?"
        if kind == KIND_LOST_UPDATE:
            return (
                "race",
                f"an update is lost {where}: read {before}, another CPU wrote {found}, then wrote {written}",
            )
        return ("deadlock", f"bpf_res_spin_lock() failed with -{ERRORS.get(written, written)}: {where}")
