# SPDX-License-Identifier: MIT
"""The same inputs give the same bytes: twice, from any compiler, at any level, on any processor.

Simulator and policy are both rebuilt by each compiler. A run under the
sanitizers must say nothing. Sizes are small: what differs between compilers
differs on the first use.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from conftest import _run, missing
from schedlab.policy.find import list_policies
from schedlab.program.compiler import compile_workload
from schedlab.workload.find import load_workload
from schedlab.workload.spec import parse_workload

ROOT = Path(__file__).resolve().parent.parent.parent
POLICIES = list_policies()
BUILDS = [("gcc", "0"), ("gcc", "2"), ("clang-19", "0"), ("clang-19", "2")]
SIMULATOR = "hosts/sim/schedlab-sim"
#: What is run: program, CPUs, more options. Seed 3 moves the start times.
MACHINES = {
    "mixed-1": ("mixed", 1, ()),
    "mixed-3": ("mixed", 3, ("--topology", "smt=2,llc=2")),
    "costs": ("mixed", 2, ("--cost", "switch_ns=1700,migrate_ns=900,tick_ns=300,ipi_ns=700")),
    "io": ("report-5/io", 2, ("--io", "latency_ns=70001,depth=2")),
    "verbs": ("verbs", 2, ()),
}
VERBS = """
[workload]
title = "Every verb once"
question = "Do all of them do the same everywhere?"
tick = "1ms"

[[lock]]
name = "l"
[[pipe]]
name = "p"
capacity = 100
[[barrier]]
name = "b"

[[task]]
name = "parent"
phases = [
    {spawn = ["child", "child"]}, {work = {kernel = "pi", count = 1000}},
    {loop = 5, do = [{lock = "l"}, {run = "exp(700us)"}, {unlock = "l"}, {sleep = "exp(900us)"}]},
    {send = {pipe = "p", bytes = 600}}, {wait = true}, "yield",
    {set = {tickets = 3}}, {read = "12KiB"}, {write = {bytes = "9KiB", chunk = "2KiB", sync = true}},
    {period = "5ms"}, {run = "1ms"},
]

[[task]]
name = "child"
arrival = "spawned"
count = 2
phases = [
    {barrier = "b"}, {loop = 4, do = [{lock = "l"}, {run = "uniform(1us, 2ms)"}, {unlock = "l"}]},
    {recv = {pipe = "p", bytes = 300}}, {run = "1ms"},
]
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, Path]:
    """Compiled workloads by the name used in MACHINES."""
    folder = tmp_path_factory.mktemp("programs")
    made = {}
    for workload in {entry[0] for entry in MACHINES.values()}:
        read = parse_workload(VERBS) if workload == "verbs" else load_workload(workload)
        made[workload] = folder / workload.replace("/", "-")
        made[workload].write_bytes(compile_workload(read, seed=3).data)
    return made


def compile_native(compiler: str, level: str, source: Path, target: Path) -> Path:
    """Compile a policy as every host does, but with this compiler and level."""
    subprocess.run(
        [compiler, "-std=gnu11", f"-O{level}", "-g", "-fPIC", "-shared",
         "-fno-semantic-interposition", f"-I{ROOT / 'include'}", "-o", target, source],
        check=True,
    )  # fmt: skip
    return target


def run(
    simulator: Sequence[str | Path], policy: Path, program: Path, machine: str, records: Path
) -> tuple[str, str]:
    """Hash of the record file, and the answer, of one run."""
    _, cpus, options = MACHINES[machine]
    done = subprocess.run(
        [*simulator, "--policy", policy, "--program", program, "--records", records,
         "--cpus", str(cpus), "--seed", "5", "--tick-ns", "1000000", *options],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "ok", done.stdout
    return hashlib.sha256(records.read_bytes()).hexdigest(), done.stdout


def run_all(simulator: Path, policies: dict[str, Path], programs, folder: Path) -> dict:
    """Every policy on every machine: (policy, machine) -> hash and answer."""
    return {
        (name, machine): run([simulator], policy, programs[MACHINES[machine][0]], machine, folder / "r")
        for name, policy in policies.items()
        for machine in MACHINES
    }


@pytest.fixture(scope="module")
def reference(simulator, programs, tmp_path_factory, need):
    """The runs of the ordinary build, with policies by its usual compiler."""
    folder = tmp_path_factory.mktemp("reference")
    policies = {
        name: compile_native(need("cc"), "2", ROOT / "policies" / f"{name}.bpf.c", folder / f"{name}.so")
        for name in POLICIES
    }
    return policies, run_all(simulator, policies, programs, folder)


def test_same_inputs_twice(reference, simulator, programs, tmp_path):
    policies, first = reference
    assert run_all(simulator, policies, programs, tmp_path) == first


def test_another_seed_is_another_run(reference, simulator, programs, tmp_path):
    """Otherwise equality above would say nothing about the lottery's draws."""
    policies, first = reference
    records = tmp_path / "r"
    subprocess.run(
        [simulator, "--policy", policies["lottery"], "--program", programs["mixed"], "--records",
         records, "--cpus", "1", "--seed", "6", "--tick-ns", "1000000"],
        check=True, capture_output=True,
    )  # fmt: skip
    other = hashlib.sha256(records.read_bytes()).hexdigest()
    assert other != first["lottery", "mixed-1"][0]


@pytest.mark.full
@pytest.mark.parametrize(("compiler", "level"), BUILDS, ids=lambda value: value)
def test_compilers_and_levels_agree(reference, programs, build_variant, need, tmp_path, compiler, level):
    # One of them builds all, for the warnings of another compiler than the usual one; the level changes none.
    target = "all" if (compiler, level) == ("clang-19", "0") else SIMULATOR
    built = build_variant(compiler, level, target=target) / SIMULATOR
    policies = {
        name: compile_native(
            need(compiler), level, ROOT / "policies" / f"{name}.bpf.c", tmp_path / f"{name}.so"
        )
        for name in POLICIES
    }
    assert run_all(built, policies, programs, tmp_path) == reference[1]


@pytest.mark.full
@pytest.mark.parametrize("machine", ["aarch64", pytest.param("riscv64", marks=pytest.mark.nightly)])
def test_another_processor_agrees(reference, programs, need, tmp_path, machine):
    """Compiled for it, simulator and policies give the same bytes under QEMU's user mode."""
    libraries = Path(f"/usr/{machine}-linux-gnu")
    if not libraries.is_dir():
        missing(f"the C library for {machine}", "./lab setup, as root or with sudo")
    compiler = [need("clang-19"), f"--target={machine}-linux-gnu", "-fuse-ld=lld", "-std=gnu11", "-O1"]
    compiler += [f"-I{ROOT / name}" for name in ("hosts/sim", "include", "hosts/common", "player")]
    sources = [
        ROOT / "core" / "build.c",
        *(ROOT / "player" / f"{name}.c" for name in ("objects", "player", "program")),
        *(path for path in (ROOT / "hosts/sim").glob("*.c") if "wasm" not in path.name),
        *(path for path in (ROOT / "hosts/common").glob("*.c") if path.name != "supervise.c"),
    ]
    exports = ROOT / "hosts/sim/exports.list"
    built = tmp_path / "sim"
    _run(*compiler, *sources, f"-Wl,--dynamic-list={exports}", "-ldl", "-o", built)
    emulated = [need(f"qemu-{machine}"), "-L", libraries, built]
    for name in ("lottery", "mlfq", "eevdf"):
        policy = tmp_path / f"{name}.so"
        _run(
            *compiler, "-fPIC", "-shared", "-fno-semantic-interposition", "-o", policy,
            ROOT / "policies" / f"{name}.bpf.c",
        )  # fmt: skip
        for place in MACHINES:
            found = run(emulated, policy, programs[MACHINES[place][0]], place, tmp_path / "r")
            assert found == reference[1][name, place], f"{name} on {place}"


@pytest.mark.full
def test_sanitizers_find_nothing(reference, programs, build_variant, need, tmp_path):
    """AddressSanitizer and UndefinedBehaviorSanitizer, in the simulator and the policies."""
    options = ("-Db_sanitize=address,undefined", "-Db_lundef=false")
    built = build_variant("gcc", "1", *options, target=SIMULATOR) / SIMULATOR
    for name in POLICIES:
        policy = tmp_path / f"{name}.so"
        subprocess.run(
            ["gcc", "-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-fno-semantic-interposition",
             "-fsanitize=address,undefined", f"-I{ROOT / 'include'}", "-o", policy,
             ROOT / "policies" / f"{name}.bpf.c"],
            check=True,
        )  # fmt: skip
        for machine in MACHINES:
            _, cpus, more = MACHINES[machine]
            done = subprocess.run(
                [built, "--policy", policy, "--program", programs[MACHINES[machine][0]],
                 "--records", tmp_path / "r", "--cpus", str(cpus), "--seed", "5",
                 "--tick-ns", "1000000", *more],
                capture_output=True, text=True, check=False, timeout=120,
                # A worker ends without giving its memory back: that is no leak.
                env={"ASAN_OPTIONS": "detect_leaks=0:handle_segv=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, ""), f"{name} on {machine}"
            assert done.stdout == reference[1][name, machine][1]
