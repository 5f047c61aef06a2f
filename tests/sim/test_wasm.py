# SPDX-License-Identifier: MIT
"""The simulator as WebAssembly: the same bytes as natively, and nothing to reach the host with.

`./lab soak wasm` compares all policies, workloads and numbers of CPUs; here is a sample.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

import schedlab
from schedlab.policy.build import build_policy
from schedlab.policy.find import list_policies, load_policy
from schedlab.policy.wasm_build import compile_wasm, find_tools, simulator_module
from schedlab.policy.wasm_file import read_module
from schedlab.program.compiler import compile_workload
from schedlab.workload.find import list_workloads, load_workload
from sim.test_faults import FAULTS, HEAD, workload

pytest.importorskip("wasmtime")
from schedlab.hosts.wasm_run import Engine, Limits

WORKLOADS = [info.name for info in list_workloads()]
#: Each policy once; the soak takes them all.
SAMPLE = list(
    zip(
        list_policies(),
        itertools.cycle(["mixed", "report-5/io", "report-3/shares", "classics/requests"]),
        itertools.cycle([1, 2, 4, 64]),
        strict=False,
    )
)
#: Faults that need the C library, which a policy for the sandbox cannot name.
NATIVE_ONLY = {
    "abort", "endless wait", "crash after a damaged heap", "flood where the result belongs",
    "ends the process", "kills the process",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def tools(need):
    need("clang-19")
    need("wasm-ld-19")
    yield
    loaded.cache_clear()


def program(name: str, folder: Path, seed: int = 3) -> Path:
    path = folder / name.replace("/", "-")
    path.write_bytes(compile_workload(load_workload(name), seed=seed).data)
    return path


@lru_cache(maxsize=32)
def loaded(path: Path) -> Engine:
    return Engine(path)


def natively(simulator: Path, policy: Path, words: list[str]) -> dict:
    done = subprocess.run([simulator, "--policy", policy, *words], capture_output=True, check=False)
    return json.loads(done.stdout)


def both(simulator: Path, policy_name: str, path: Path, n_cpus: int, folder: Path, *more: str) -> list:
    """Answer and hash of the records, natively and as WebAssembly."""
    policy = load_policy(policy_name)
    made = []
    for engine in ("native", "wasm"):
        built = build_policy(policy, engine=engine)
        records = folder / f"{engine}.slr"
        words = [
            "--program",
            str(path),
            "--cpus",
            str(n_cpus),
            "--seed",
            "7",
            "--records",
            str(records),
            *more,
        ]
        for name, value in built.values.items():
            words += ["--set", f"{name}={value}"]
        if engine == "native":
            answer = natively(simulator, built.shared_object, words)
        else:
            answer = loaded(built.shared_object).run("\t".join(["--policy", policy_name, *words])).answer
            assert answer.pop("policy_cost")
        made.append((answer, hashlib.sha256(records.read_bytes()).hexdigest()))
    return made


def test_the_module_imports_four_functions_and_no_system():
    assert sorted(entry[:2] for entry in read_module(simulator_module()).imports) == [
        ("schedlab", name) for name in ("create", "error_text", "symbol", "write")
    ]


@pytest.mark.parametrize(("policy", "name", "n_cpus"), SAMPLE)
def test_records_are_those_of_the_native_simulator(policy, name, n_cpus, simulator, tmp_path):
    native, wasm = both(simulator, policy, program(name, tmp_path), n_cpus, tmp_path)
    assert native == wasm


def test_costs_topology_and_detail_are_the_same(simulator, tmp_path):
    more = [
        "--cost",
        "switch_ns=1700,migrate_ns=900,tick_ns=300,ipi_ns=700",
        "--topology",
        "smt=2,llc=4",
        "--detail",
    ]
    native, wasm = both(simulator, "cfs", program("mixed", tmp_path), 8, tmp_path, *more)
    assert native == wasm


@pytest.mark.parametrize(
    "words", [["--cpus", "0"], ["--set", "nonsense=1"], ["--set", "slice_ns=x"], ["--nonsense", "1"]]
)
def test_what_is_refused_is_refused_in_the_same_words(words, simulator, tmp_path):
    path = program("mixed", tmp_path)
    policy = load_policy("rr")
    arguments = ["--program", str(path), *words]
    wasm = Engine(compile_wasm(policy)).run("\t".join(["--policy", "rr", *arguments])).answer
    native = subprocess.run(
        [simulator, "--serve", "--policy", build_policy(policy).shared_object],
        input="\t".join(arguments) + "\n", capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    wasm.pop("policy_cost", None)
    assert json.loads(native) == wasm and wasm["error"]


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in NATIVE_ONLY])
def test_fault_of_a_policy_has_the_native_words(name, tmp_path):
    declarations, statements, more, kind, texts, is_named = FAULTS[name]
    source = tmp_path / "t.bpf.c"
    source.write_text(HEAD % (declarations, statements, more))
    engine = Engine(compile_wasm(load_policy(str(source))))
    bad, good = workload(tmp_path, "a", "x"), workload(tmp_path, "a", "b")

    def run(path: Path) -> dict:
        words = ["--policy", "t", "--program", str(path), "--cpus", "2"]
        return engine.run("\t".join(words), Limits(callback_fuel=10**7)).answer

    answer = run(bad)
    assert (answer["status"], answer["error_kind"]) == ("failed", kind)
    assert [text for text in texts if text not in answer["error"]] == []
    if is_named:
        assert answer["task"] == 2
    assert run(good)["status"] == "ok"
    # To the instruction: the counts are part of the answer.
    assert run(bad) == answer and answer["policy_cost"]


@pytest.mark.parametrize("name", sorted(NATIVE_ONLY))
def test_what_needs_the_c_library_does_not_compile(name, tmp_path):
    source = tmp_path / "t.bpf.c"
    source.write_text(HEAD % FAULTS[name][:3])
    with pytest.raises(Exception, match="is not there: Linux gives a policy"):
        compile_wasm(load_policy(str(source)))


def test_instructions_are_counted_exactly(tmp_path):
    """A loop of n rounds costs n times what one costs, and a callback has no more than its limit."""
    loop = "static volatile u64 nr, rounds = %d;"
    costs = []
    for rounds in (10, 20, 30):
        source = tmp_path / f"t{rounds}.bpf.c"
        source.write_text(HEAD % (loop % rounds, "for (u64 i = 0; i < rounds; i++) nr += i;", ""))
        engine = Engine(compile_wasm(load_policy(str(source))))
        words = f"--policy\tt\t--program\t{workload(tmp_path, 'a', 'b')}"
        cost = engine.run(words).answer["policy_cost"]["enqueue"]
        assert cost["sum"] == cost["max"] * cost["calls"]
        costs.append(cost["max"])
        limit = engine.run(words, Limits(callback_fuel=cost["max"])).answer
        less = engine.run(words, Limits(callback_fuel=cost["max"] - rounds)).answer
        assert (limit["status"], less["error_kind"]) == ("ok", "spin")
    assert costs[1] - costs[0] == costs[2] - costs[1] > 0


def test_callbacks_that_take_less_than_they_are_given(simulator, tmp_path):
    """As natively: last arguments are left out, and a loop's number may have 32 bits."""
    source = tmp_path / "short.bpf.c"
    source.write_text(
        HEAD
        % (
            "static u64 n;\nstatic int add(u32 i, u64 *sum) { *sum += i; return 0; }\n"
            "static s32 o(struct task_struct *p) { bpf_loop(10, add, &n, 0); return n % 2; }\n"
            "static void r(void) { n++; }",
            "",
            ".runnable = (void *)r, .select_cpu = (void *)o",
        )
    )
    native, wasm = both(simulator, str(source), program("mixed", tmp_path), 2, tmp_path)
    assert native == wasm and native[0]["status"] == "ok"


def test_a_run_has_so_many_instructions(tmp_path):
    words = f"--policy\trr\t--program\t{program('mixed', tmp_path)}"
    engine = Engine(compile_wasm(load_policy("rr")))
    used = sum(cost["sum"] for cost in engine.run(words).answer["policy_cost"].values())
    assert engine.run(words, Limits(run_fuel=used)).answer["status"] == "ok"
    answer = engine.run(words, Limits(run_fuel=used // 2)).answer
    assert (answer["error_kind"], "has used the" in answer["error"]) == ("spin", True)


def test_memory_ends_at_its_limit(tmp_path):
    words = f"--policy\trr\t--program\t{program('mixed', tmp_path)}\t--cpus\t1024"
    answer = Engine(compile_wasm(load_policy("rr"))).run(words, Limits(memory_bytes=70 << 20)).answer
    assert answer["status"] == "failed" and "memory" in answer["error"]


@pytest.mark.full
@pytest.mark.parametrize("policy", ["mlfq", "cfs"])  # the second fills a struct with zeros
def test_another_compiler_gives_the_same_records(simulator, policy, tmp_path, monkeypatch):
    """PyPI's ziglang compiles a policy where no other compiler is; a wheel brings the simulator."""
    pytest.importorskip("ziglang")
    path = program("mixed", tmp_path)
    native, _ = both(simulator, policy, path, 2, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    simulator_module()
    find_tools.cache_clear()
    try:
        assert find_tools().is_zig
        built = build_policy(load_policy(policy), engine="wasm")
        records = tmp_path / "zig.slr"
        words = [
            "--policy",
            policy,
            "--program",
            str(path),
            "--cpus",
            "2",
            "--seed",
            "7",
            "--records",
            str(records),
        ]
        for name, value in built.values.items():
            words += ["--set", f"{name}={value}"]
        Engine(built.shared_object).run("\t".join(words))
        assert hashlib.sha256(records.read_bytes()).hexdigest() == native[1]
    finally:
        find_tools.cache_clear()


@pytest.mark.nightly
def test_soak_all_policies_and_workloads(simulator, tmp_path):
    """Every policy, workload and number of CPUs, with SCHEDLAB_WASM_SEEDS seeds each."""
    n_compared = 0
    for name in WORKLOADS:
        for seed in range(1, 1 + int(os.environ.get("SCHEDLAB_WASM_SEEDS", "1"))):
            path = program(name, tmp_path, seed)
            for policy, n_cpus in itertools.product(list_policies(), (1, 2, 4, 64)):
                native, wasm = both(simulator, policy, path, n_cpus, tmp_path)
                assert native == wasm, (policy, name, n_cpus, seed)
                n_compared += 1
    print(f"{n_compared} runs are the same byte for byte")


def test_what_a_policy_costs_is_a_metric_where_it_is_counted():
    """Exact, and nothing else differs from the native run."""
    native, sandboxed = (
        schedlab.run("textbook/rr", "rr", seeds=1, sandbox=is_sandboxed).runs.row(0, named=True)
        for is_sandboxed in (False, True)
    )
    assert native["policy_cost"] is None and 10 < sandboxed["policy_cost"] < 1000
    again = schedlab.run("textbook/rr", "rr", seeds=1, sandbox=True).runs.row(0, named=True)
    assert again["policy_cost"] == sandboxed["policy_cost"]
    for name in ("turnaround_ns_mean", "switches", "fairness_jain", "record_hash"):
        assert native[name] == sandboxed[name]
