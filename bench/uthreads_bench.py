# SPDX-License-Identifier: MIT
"""Time the thread library beside its peers; behind `schedlab selfbench uthreads`.

uthreads.c does so many operations of one kind and says what CPU time one of them
took; the programs in peers/ do the same with goroutines, tokio's tasks, Boost's
fibers and the kernel's threads. All of them take their turns, round after round, so
that an hour in which the machine is slow is slow for all; the best round counts.

Nothing goes around the core or the policy. How often a policy is called for one
operation is counted with counting.bpf.c, which asks for every callback.

Read next: uthreads.c, then peers/.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schedlab import paths
from schedlab.errors import UnavailableError
from schedlab.hosts.choose import open_host
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy

HERE = Path(__file__).resolve().parent
ROUNDS = 9
SECONDS_MAX = 120
BUILD_SECONDS_MAX = 900
#: What is timed in rounds: the programs' word for it, on how many kernel threads, and operations per round.
KINDS = {
    "yield_2": ("yield_2", 1, 1_000_000),
    "yield_1000": ("yield_1000", 1, 1_000_000),
    "create_join": ("create_join", 1, 200_000),
    "ping_pong": ("ping_pong", 1, 200_000),
    "yield_2_on_2": ("yield_2", 2, 1_000_000),
    "create_join_on_2": ("create_join", 2, 200_000),
    "ping_pong_on_2": ("ping_pong", 2, 200_000),
    "fan_out": ("fan_out", 2, 100_000),
    "echo": ("echo", 1, 9_900),
    "echo_on_2": ("echo", 2, 9_900),
}
#: Of a connection; peers/echo_load.c makes as many connections as there are operations.
ECHO_ROUNDS = 20
#: All kinds are timed as the machine is, and those that end in less than 3 s at real-time priority, too.
REAL_TIME = ("chrt", "--fifo", "1")
#: The kernel's own threads are slower by so much that fewer operations tell enough.
FEWER = {"create_join": 50, "ping_pong": 20, "fan_out": 20, "yield_2": 5, "yield_1000": 5}
POLICIES = ("fifo", "rr")
SLICE_NS = 1_000_000
LONG_SLICE_NS = 10_000_000
COUNTED_OPS = 10_000
MILLION = 1_000_000


def measure(entry: Callable[..., dict], folder: Path, *, is_quick: bool = False) -> dict:
    """Measure the library and whatever peers are here, as `selfbench.measure`; quick: a tenth, three rounds.

    UnavailableError: the library has not been built, or there is no C compiler.
    """
    open_host("uthreads")
    bench = _Bench(entry, folder, is_quick)
    rows = [*bench.operations(), *bench.preemption(), *bench.timers(), *bench.memory()]
    return {"benchmarks": rows, "callbacks": bench.callbacks(), "skipped": bench.skipped}


@dataclass(frozen=True)
class Peer:
    """Who else can do the operations."""

    name: str  #: For the table.
    command: tuple[str, ...]  #: The program; what to do and how often is appended.
    kinds: tuple[str, ...] = tuple(KINDS)  #: What it can do.


def compile_bench(folder: Path) -> Path:
    """Compile uthreads.c against the library of this checkout, into a folder.

    UnavailableError: it cannot be compiled; the message has the compiler's.
    """
    library = paths.uthreads_runner().parent
    target = folder / "uthreads-bench"
    _compile(
        "cc",
        [
            HERE / "uthreads.c",
            f"-I{paths.resource_root() / 'hosts' / 'uthreads' / 'include'}",
            f"-L{library}",
            "-lschedlab-uthreads",
            f"-Wl,-rpath,{library}",
            "-lpthread",
        ],
        target,
    )
    return target


def compile_counting() -> Path:
    """Compile the policy that counts its callbacks."""
    return build_policy(load_policy(str(HERE / "counting.bpf.c"))).shared_object


def count_callbacks(program: Path, policy: Path, kind: str, ops: int) -> dict[str, float]:
    """How often a policy is called for one operation on one kernel thread, by name of the callback, to two digits.

    Never called: left out. The calls at start and end are spread over `ops` operations of a kind of `KINDS`.
    """
    done = _run([program, kind, policy, 1, ops])
    counts = re.findall(r"count (\w+) (\d+)", done.stdout + done.stderr)
    return {name: each for name, number in counts if (each := round(int(number) / ops, 2))}


def _compile(compiler: str, words: list, target: Path) -> None:
    """Compile with all warnings; UnavailableError with the last line where it fails."""
    path = shutil.which(os.environ.get("CC", compiler) if compiler == "cc" else compiler)
    if path is None:
        raise UnavailableError(f"there is no {compiler}")
    done = subprocess.run(
        [path, "-O2", "-g", "-Wall", "-Wextra", "-o", target, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if "error" in line] or ["it fails"]
        raise UnavailableError(told[0])


def _run(command: list) -> subprocess.CompletedProcess:
    """Run a program to its end, and see to it that it ends well."""
    return subprocess.run(
        list(map(str, command)), check=True, capture_output=True, text=True, timeout=SECONDS_MAX
    )


class _Bench:
    """All measurements, in one scratch folder."""

    def __init__(self, entry: Callable[..., dict], folder: Path, is_quick: bool):
        self.entry, self.folder = entry, folder
        self.rounds, self.scale = (3, 10) if is_quick else (ROUNDS, 1)
        self.program = compile_bench(folder)
        self.built = {name: build_policy(load_policy(name)).shared_object for name in POLICIES}
        self.skipped = [
            "Argobots and massivethreads are not measured: neither Debian nor PyPI, crates.io or npm has them"
        ]
        self.echo_load = folder / "echo-load"
        _compile("cc", [HERE / "peers" / "echo_load.c"], self.echo_load)

    def ask(self, kind: str, policy: str, n_cpus: int, ops: int, *knobs: str) -> dict:
        """Run our program once."""
        done = _run([self.program, kind, self.built[policy], n_cpus, ops, *knobs])
        return json.loads(done.stdout)

    # ---- operations, beside peers --------------------------------------------

    def peers(self) -> list[Peer]:
        """Build every peer that can be built here; note why others cannot."""
        found = []
        for build in (self._pthread, self._boost, self._go, self._tokio):
            try:
                found.append(build())
            except (UnavailableError, OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", None) or str(error)
                self.skipped.append(f"{build.__doc__.splitlines()[0]} {said.strip().splitlines()[-1]}")
        return found

    def _pthread(self) -> Peer:
        """pthreads cannot be measured here:"""
        _compile("cc", [HERE / "peers" / "pthreads.c", "-lpthread"], self.folder / "pthreads")
        return Peer("pthread", (str(self.folder / "pthreads"),), tuple(k for k in KINDS if "echo" not in k))

    def _boost(self) -> Peer:
        """Boost.Fiber (Debian: libboost-fiber-dev, libboost-context-dev) cannot be measured here:"""
        words = [HERE / "peers" / "boost.cpp", "-lboost_fiber", "-lboost_context"]
        _compile("c++", words, self.folder / "boost")
        return Peer(
            "Boost.Fiber",
            (str(self.folder / "boost"),),
            tuple(name for name, (word, n_cpus, _) in KINDS.items() if n_cpus == 1 and word != "echo"),
        )

    def _go(self) -> Peer:
        """Go cannot be measured here:"""
        if shutil.which("go") is None:
            raise UnavailableError("there is no go")
        # Without modules nothing is asked for elsewhere.
        environment = dict(os.environ, GO111MODULE="off", GOCACHE=str(paths.cache_folder("go")))
        subprocess.run(
            ["go", "build", "-o", str(self.folder / "go-peer"), "main.go"],
            check=True,
            cwd=HERE / "peers" / "go",
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
        return Peer("Go", (str(self.folder / "go-peer"),))

    def _tokio(self) -> Peer:
        """tokio cannot be measured here:"""
        if shutil.which("cargo") is None:
            raise UnavailableError("there is no cargo")
        folder = paths.cache_folder("peers") / "tokio"
        shutil.copytree(HERE / "peers" / "tokio", folder, dirs_exist_ok=True)
        subprocess.run(
            ["cargo", "build", "--release", "-q"],
            check=True,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
        return Peer("tokio", (str(folder / "target" / "release" / "peer"),))

    def operations(self) -> list[dict]:
        """CPU time of each kind of operation, of ours under each policy and of every peer."""
        peers = self.peers()
        priorities = {"": ()}
        try:
            _run([*REAL_TIME, "true"])
            priorities["_rt"] = REAL_TIME
        except (OSError, subprocess.SubprocessError):
            self.skipped.append("Real-time priority cannot be had here: chrt(1) of root")
        best: dict = defaultdict(lambda: float("inf"))
        for _ in range(self.rounds):
            for kind, who, suffix in itertools.product(KINDS, [*POLICIES, *peers], priorities):
                found = self.time_one(kind, who, priorities[suffix])
                if found is not None:
                    best[kind + suffix, who] = min(best[kind + suffix, who], found)
        rows = []
        for kind, policy, suffix in itertools.product(KINDS, POLICIES, priorities):
            unit = "ns of wall time" if kind == "fan_out" else "ns"
            times = [
                (peer.name, best[kind + suffix, peer]) for peer in peers if (kind + suffix, peer) in best
            ]
            for peer_name, peer_value in times or [(None, None)]:
                name, value = f"uthreads_{kind}_{policy}{suffix}", best[kind + suffix, policy]
                rows.append(self.entry(name, value, unit, "lower", peer=peer_name, peer_value=peer_value))
        return [*rows, *self.bare_switch(peers)]

    def time_one(self, kind: str, who: str | Peer, before: tuple[str, ...]) -> float | None:
        """One measurement of a policy's or a peer's; None where it cannot do that."""
        word, n_cpus, ops = KINDS[kind]
        ops //= self.scale
        if isinstance(who, str):
            command = [self.program, word, self.built[who], n_cpus, ops]
        elif kind in who.kinds:
            fewer = ops // (FEWER[word] if who.name == "pthread" else 1)
            command = [*who.command, word, max(fewer, 900), n_cpus]
        else:
            return None
        load = [self.echo_load, ops, ECHO_ROUNDS] if word == "echo" else []
        return json.loads(_run([*before, *load, *command]).stdout)["wall_ns" if kind == "fan_out" else "ns"]

    def bare_switch(self, peers: list[Peer]) -> list[dict]:
        """What a switch costs without any scheduler: nobody can be faster."""
        for peer in peers:
            if peer.name == "Boost.Fiber":
                found = [
                    json.loads(_run([*peer.command, "switch", 3_000_000]).stdout)["ns"]
                    for _ in range(self.rounds)
                ]
                return [self.entry("boost_context_switch", min(found), "ns", "lower")]
        return []

    # ---- what only we are asked for --------------------------------------------

    def preemption(self) -> list[dict]:
        """From one thread's last instruction to the next one's first; how long slices are.

        Beside what a timer's signal takes with a handler that does nothing.
        """
        bare = self.folder / "interrupt"
        _compile("cc", [HERE / "peers" / "interrupt.c"], bare)
        found, interrupts = [], []
        for _ in range(self.rounds):
            count = 1000 // self.scale
            found.append(self.ask("preemption", "rr", 1, count, f"slice_ns={SLICE_NS}"))
            interrupts.append(json.loads(_run([bare, SLICE_NS, count]).stdout))
        # What other processes take from the CPU is in the largest gaps of every round.
        slice_ns = min((each["slice_p50_ns"] for each in found), key=lambda ns: abs(ns - SLICE_NS))
        rows = [
            self.entry(
                f"uthreads_preemption_{quantile}", min(each[f"{quantile}_ns"] for each in found), "ns",
                "lower", peer="bare signal",
                peer_value=min(each[f"{quantile}_ns"] for each in interrupts),
            )
            for quantile in ("p50", "p99")
        ]  # fmt: skip
        return [
            *rows,
            self.entry("uthreads_slice_of_1_ms_error", abs(slice_ns - SLICE_NS) / SLICE_NS, "1", "lower"),
        ]

    def timers(self) -> list[dict]:
        """How much slower two threads compute when they are preempted every 10 ms."""
        ops, knob = 200_000_000 // self.scale, f"slice_ns={LONG_SLICE_NS}"
        with_timers, without = float("inf"), float("inf")
        for _ in range(self.rounds):
            with_timers = min(with_timers, self.ask("computing", "rr", 1, ops, knob)["ns"])
            without = min(without, self.ask("computing_undisturbed", "rr", 1, ops, knob)["ns"])
        return [self.entry("uthreads_timers_of_10_ms", with_timers / without - 1, "of a CPU", "lower")]

    def memory(self) -> list[dict]:
        """Memory of a million threads that sleep, all at once."""
        nr = MILLION // self.scale
        found = self.ask("sleepers", "fifo", 1, nr)
        return [self.entry(f"uthreads_{nr}_asleep", found["bytes"] * nr, "B", "lower")]

    def callbacks(self) -> dict[str, dict[str, float]]:
        """How often a policy that asks for everything is called for one operation."""
        policy = compile_counting()
        kinds = [kind for kind, (word, n_cpus, _) in KINDS.items() if n_cpus == 1 and word != "echo"]
        return {kind: count_callbacks(self.program, policy, kind, COUNTED_OPS) for kind in kinds}
