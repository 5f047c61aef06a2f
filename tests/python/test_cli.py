# SPDX-License-Identifier: MIT
"""The command line: exit codes, one JSON object, and real runs in the simulator."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import first_are_quick
from schedlab.policy.find import list_policies
from schedlab.records.file import hash_file, read_records

RUN_KEYS = [
    "workload", "policy", "host", "cpus", "seed", "status", "error", "program_hash",
    "policy_hash", "record_hash", "consistency", "physics", "environment", "metrics",
]  # fmt: skip

BAD_POLICIES = {
    "crashes": "*(volatile int *)(p->pid * 0UL) = 0;",
    "spins": 'for (;;) __asm__ volatile("");',
    "loses": "return;",
    "strays": "scx_bpf_dsq_insert(p, 0x63, 1, flags); return;",
}
BAD_POLICY = """\
#include <scx/common.bpf.h>

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 flags)
{
	%s
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, flags);
}

SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .timeout_ms = 2000, .name = "x");
char _license[] SEC("license") = "GPL";
"""


@pytest.fixture(scope="module")
def environment(root):
    return os.environ | {"PYTHONPATH": str(root / "python"), "COLUMNS": "", "NO_COLOR": "1"}


@pytest.fixture
def schedlab(environment, tmp_path):
    """Function that runs the command in an empty folder; (exit code, stdout, stderr)."""

    def call(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "schedlab", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return call


def test_help_needs_nothing_heavy(environment):
    code = (
        "import sys; sys.argv = ['schedlab', '--help']\n"
        "from schedlab.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'polars', 'schedlab.runs.run') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "selfbench" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    first_are_quick(
        2,
        [
            (["runn"], 2, "runn"),
            (["run"], 2, "WORKLOAD"),
            (["run", "mixed"], 2, "--policy"),
            (["run", "mixd", "-p", "rr"], 2, "did you mean 'mixed'"),
            (["run", "mixed", "-p", "rrr"], 2, "did you mean 'rr'"),
            (["run", "mixed", "-p", "rr", "--set", "rr.slice_ns=1mm"], 2, "unknown unit 'mm'"),
            (["run", "mixed", "-p", "rr", "--tick", "soon"], 2, "--tick: "),
            (["run", "mixed", "-p", "rr", "--timeout", "5"], 2, "--timeout: '5' has no unit"),
            (["run", "mixed", "-p", "rr", "--cost", "switch_ns=soon"], 2, "--cost switch_ns=soon"),
            (["run", "mixed", "-p", "rr", "--io", "dept=4"], 2, "did you mean 'depth'"),
            (["run", "mixed", "-p", "credit", "--set", "credit.balance=pul"], 2, "did you mean 'pull'"),
            (["run", "mixed", "-p", "rr", "--executor", "dask"], 2, "should read dask://HOST:PORT"),
            (["run", "mixed", "-p", "rr", "--cpus", "many"], 2, "--cpus"),
            (["run", "mixed", "-p", "rr", "--host", "lunix"], 2, "did you mean 'linux'"),
            (["run", "mixed", "-p", "SCHED_OTHER"], 2, "use --host linux"),
            (["run", "mixed", "-p", "SCHED_OTHR", "--host", "linux"], 2, "did you mean 'SCHED_OTHER'"),
            (["run", "mixed", "-p", "SCHED_OTHER,SCHED_OTHER", "--host", "linux"], 2, "given twice"),
            (["run", "mixed", "-p", "SCHED_DEADLINE:5ms/10ms/10ms", "--host", "linux"], 2, "schedlab bench"),
            (["run", "mixed", "-p", "rr", "--scale", "0.1"], 2, "mark one with 'scales = true'"),
            (["run", "report-2/cpu", "-p", "rr", "--scale", "0"], 2, "--scale must be above 0"),
            (
                ["run", "mixed", "-p", "rr", "--threads"],
                2,
                "--threads: means nothing on --host sim; hosts that have it: linux",
            ),
            (["policies", "rrr"], 2, "did you mean 'rr'"),
            (["metrics", "makespann"], 2, "did you mean 'makespan_ns'"),
            (["compare", "here", "there"], 2, "here: no such folder"),
            (["compare", "a", "b", "--fail-if", "makespann > +5%"], 2, "did you mean 'makespan_ns'"),
            (["compare", "a", "b", "--fail-if", "makespan > 5%"], 2, "a change needs its sign"),
            (["compare", "a"], 2, "AFTER"),
            (["selfbench", "sim2"], 2, "did you mean 'sim'"),
        ],
    ),
)
def test_wrong_use_exits_with_its_code_and_prints_no_result(schedlab, simulator, arguments, code, message):
    plain = [word for word in arguments if word != "--json"]
    status, output, errors = schedlab(*plain)
    assert (status, output) == (code, "")
    assert message in errors
    assert "Traceback" not in errors
    # A script finds the same words where it would find the result.
    status, output, again = schedlab(*plain, "--json")
    assert (status, again) == (code, errors)
    assert output.count("\n") == 1
    (error,) = json.loads(output).values()
    assert (set(error), error["exit_code"]) == ({"kind", "message", "exit_code"}, code)
    assert error["message"] in errors


def test_faults_of_a_workload_are_listed_one_by_one(schedlab, tmp_path):
    (tmp_path / "bad.toml").write_text(
        '[workload]\ntitle = "x"\nquestion = "y"\n'
        '[[task]]\nname = "t"\nphases = [{slep = "1ms"}, {run = "1mm"}]\n'
    )
    status, output, errors = schedlab("run", "bad.toml", "-p", "rr", "--json")
    error = json.loads(output)["error"]
    assert (status, error["kind"], len(error["faults"])) == (2, "SpecError", 2)
    for fault in error["faults"]:
        assert (fault["file"], fault["line"]) == ("bad.toml", 6)
        assert fault["message"] in errors


def test_ctrl_c_while_the_command_is_still_being_imported(environment, tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    paths = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", "policies"],
        capture_output=True,
        text=True,
        env=environment | {"PYTHONPATH": paths},
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_lists_are_json(schedlab, simulator):
    status, output, _ = schedlab("policies", "--json")
    entries = {entry["name"]: entry for entry in json.loads(output)["policies"]}
    assert status == 0
    assert sorted(entries) == list_policies()
    (knob,) = [k for k in entries["rr"]["knobs"] if k["name"] == "slice_ns"]
    assert knob["minimum"] <= knob["default"] <= knob["maximum"]
    status, output, _ = schedlab("workloads", "--json")
    assert "mixed" in [entry["name"] for entry in json.loads(output)["workloads"]]
    status, output, _ = schedlab("metrics", "--json")
    assert {"name", "unit", "formula", "direction", "level", "reference"} == set(
        json.loads(output)["metrics"][0]
    )
    status, output, _ = schedlab("doctor", "--json")
    checks = {check["name"]: check["status"] for check in json.loads(output)["checks"]}
    assert (status, checks["host sim"]) == (0, "ok")


@pytest.mark.parametrize(
    "command", first_are_quick(1, [["policies"], ["workloads"], ["metrics"], ["doctor"]])
)
def test_lists_are_readable(schedlab, simulator, command):
    status, output, errors = schedlab(command)
    assert (status, errors) == (0, "")
    assert len(output.splitlines()) > 3


@pytest.mark.full
def test_one_broken_policy_does_not_hide_the_others(schedlab, simulator, root, environment, tmp_path):
    elsewhere = tmp_path / "root"
    (elsewhere / "policies").mkdir(parents=True)
    for name in ("include", "core", "build", "workloads"):
        (elsewhere / name).symlink_to(root / name)
    for name in ("rr", "fifo"):
        (elsewhere / "policies" / f"{name}.bpf.c").symlink_to(root / "policies" / f"{name}.bpf.c")
    (elsewhere / "policies" / "broken.bpf.c").write_text(BAD_POLICY % "retrun;")
    (elsewhere / "policies" / "damaged.bpf.c").write_text("/* @knob x */\n")
    (elsewhere / "policies" / "empty.bpf.c").write_text("")
    environment["SCHEDLAB_ROOT"] = str(elsewhere)
    try:
        status, output, errors = schedlab("policies", "--json")
        table = schedlab("policies")
    finally:
        del environment["SCHEDLAB_ROOT"]
    assert (status, errors) == (1, "")
    entries = {entry["name"]: entry for entry in json.loads(output)["policies"]}
    assert list(entries) == ["broken", "damaged", "empty", "fifo", "rr"]
    assert "broken.bpf.c:5:" in entries["broken"]["error"]
    assert "'@knob x' should read" in entries["damaged"]["error"]
    assert "defines no policy" in entries["empty"]["error"]
    assert entries["rr"]["error"] is None
    assert [knob["name"] for knob in entries["rr"]["knobs"]] == ["slice_ns"]
    assert table[0] == 1
    assert "slice_ns" in table[1]
    assert "broken.bpf.c:5:" in table[1]


def test_round_robin_by_hand_in_the_simulator(schedlab, simulator, tmp_path):
    status, output, _ = schedlab(
        "run",
        "textbook/rr",
        "--policy",
        "rr,fifo",
        "--set",
        "rr.slice_ns=2ms",
        "--seed",
        0,
        "--out",
        "runs",
        "--json",
    )
    assert status == 0
    assert output.count("\n") == 1
    result = json.loads(output)
    assert list(result) == ["runs", "comparisons"]
    by_policy = {run["policy"]: run for run in result["runs"]}
    assert by_policy["rr"]["metrics"]["turnaround_ns_mean"] == 10_000_000
    assert by_policy["rr"]["metrics"]["wait_ns_mean"] == 6_750_000
    assert by_policy["fifo"]["metrics"]["turnaround_ns_mean"] == 8_750_000
    for run in result["runs"]:
        assert set(RUN_KEYS) <= set(run)
        assert (run["status"], run["consistency"], run["host"], run["cpus"]) == ("ok", "ok", "sim", 1)
        folder = tmp_path / run["directory"]
        assert hash_file(folder / "records.slr") == run["record_hash"]
        assert len(read_records(folder / "records.slr").events) > 0
    (comparison,) = result["comparisons"]
    assert comparison["metrics"]["turnaround_ns_mean"]["difference"] == -1_250_000
    assert result == json.loads((tmp_path / "runs" / "runs.json").read_text())


@pytest.mark.full
def test_equal_input_gives_equal_records_and_seeds_differ(schedlab, simulator):
    def hashes(out):
        arguments = ("run", "mixed", "-p", "rr,lottery", "--seeds", 3, "--out", out, "--json")
        runs = json.loads(schedlab(*arguments)[1])["runs"]
        return [(run["program_hash"], run["policy_hash"], run["record_hash"]) for run in runs]

    first = hashes("one")
    assert first == hashes("two")
    assert len({record for _, _, record in first}) == 6
    assert [program for program, _, _ in first[:3]] == [program for program, _, _ in first[3:]]
    assert len({program for program, _, _ in first}) == 3


@pytest.mark.full
def test_bad_policies_harm_no_other_run(schedlab, simulator, tmp_path):
    for name, line in BAD_POLICIES.items():
        (tmp_path / f"{name}.bpf.c").write_text(BAD_POLICY % line)
    (tmp_path / "typo.bpf.c").write_text(BAD_POLICY % "retrun;")
    bad = [*BAD_POLICIES, "typo"]
    policies = ",".join(["rr", *(f"./{name}.bpf.c" for name in bad), "fifo"])
    status, output, errors = schedlab("run", "mixed", "-p", policies, "--seeds", 1, "--json")
    assert status == 1
    assert "Traceback" not in errors
    runs = {run["policy"]: run for run in json.loads(output)["runs"]}
    assert list(runs) == ["rr", *bad, "fifo"]
    assert [name for name, run in runs.items() if run["status"] == "ok"] == ["rr", "fifo"]
    for name in bad:
        assert (runs[name]["metrics"], runs[name]["consistency"]) == ({}, None)
        assert runs[name]["error"]
    assert "invalid memory" in runs["crashes"]["error"]
    assert "did not return" in runs["spins"]["error"]
    assert "stall" in runs["loses"]["error"]
    assert "non-existent DSQ 0x63" in runs["strays"]["error"]
    assert "typo.bpf.c:5:" in runs["typo"]["error"]
    status, output, _ = schedlab("run", "mixed", "-p", policies, "--seeds", 1)
    assert status == 1
    assert "Consistency: ok in 2 of 7 runs" in output.splitlines()[0]


@pytest.mark.full
def test_costs_and_topology_reach_the_simulator(schedlab, simulator):
    arguments = ("run", "mixed", "-p", "rr", "--cpus", 4, "--json")
    plain = json.loads(schedlab(*arguments)[1])["runs"][0]
    costly = ["--cost", "switch_ns=50us", "--cost", "ipi_ns=5us", "--cost", "tick_ns=10us"]
    status, output, _ = schedlab(*arguments, *costly, "--topology", "smt=2")
    run = json.loads(output)["runs"][0]
    assert (status, run["consistency"]) == (0, "ok")
    assert plain["metrics"]["overhead_ns"] == 0
    assert run["metrics"]["overhead_ns"] > 50_000 * 100


@pytest.mark.full
def test_the_device_reaches_the_simulator(schedlab, simulator, tmp_path):
    (tmp_path / "disk.toml").write_text(
        '[workload]\ntitle = "x"\nquestion = "y"\njitter = "0ms"\n[[task]]\nname = "t"\ncount = 4\n'
        'phases = [{read = {bytes = "1KiB", chunk = "1KiB", sync = true}}]\n'
    )
    device = ["--io", "latency_ns=1ms", "--io", "ns_per_kib=500us", "--io", "call_ns=0"]
    makespans = {}
    for depth in (1, 4):
        status, output, _ = schedlab(
            "run", "disk.toml", "-p", "rr", *device, "--io", f"depth={depth}", "--json"
        )
        (run,) = json.loads(output)["runs"]
        assert (status, run["consistency"]) == (0, "ok")
        assert run["io"] == ["latency_ns=1000000", "ns_per_kib=500000", "call_ns=0", f"depth={depth}"]
        makespans[depth] = run["metrics"]["makespan_ns"]
    # Four requests of 1.5 ms: one after the other, or all at once.
    assert makespans == {1: 6_000_000, 4: 1_500_000}


@pytest.mark.full
def test_values_with_commas_between_are_variants(schedlab, simulator, tmp_path):
    status, output, _ = schedlab(
        "run",
        "textbook/rr",
        "-p",
        "rr,fifo",
        "--set",
        "rr.slice_ns=1ms,2ms",
        "--seed",
        0,
        "--out",
        "runs",
        "--json",
    )
    result = json.loads(output)
    assert status == 0
    switches = {run["policy"]: run["metrics"]["switches"] for run in result["runs"]}
    assert switches == {"rr:slice_ns=1ms": 13, "rr:slice_ns=2ms": 8, "fifo": 4}
    assert [run["knobs"] for run in result["runs"]] == [{"slice_ns": 10**6}, {"slice_ns": 2 * 10**6}, {}]
    assert len({run["policy_hash"] for run in result["runs"]}) == 3
    pairs = [(entry["policy_a"], entry["policy_b"]) for entry in result["comparisons"]]
    assert pairs == [("rr:slice_ns=1ms", "rr:slice_ns=2ms"), ("rr:slice_ns=1ms", "fifo")]
    assert (tmp_path / "runs" / "textbook" / "rr" / "rr:slice_ns=1ms" / "seed-0" / "run.json").is_file()
    assert schedlab("report", "runs")[0] == 0


@pytest.mark.full
def test_names_of_values_are_shown_and_taken(schedlab, simulator):
    status, output, _ = schedlab("policies", "credit")
    assert (status, "balance = pull  none, pull, longest, push" in output) == (0, True)
    _, output, _ = schedlab("policies", "credit", "--json")
    (balance,) = [k for k in json.loads(output)["policies"][0]["knobs"] if k["name"] == "balance"]
    assert (balance["names"], balance["default_text"]) == (
        {"none": 0, "pull": 1, "longest": 2, "push": 3},
        "pull",
    )
    arguments = ("run", "mixed", "-p", "credit", "--json", "--set")
    named = json.loads(schedlab(*arguments, "credit.balance=push")[1])["runs"][0]
    numbered = json.loads(schedlab(*arguments, "credit.balance=3")[1])["runs"][0]
    assert named["policy_hash"] == numbered["policy_hash"]
    assert named["knobs"]["balance"] == 3


@pytest.mark.full
def test_ctrl_c_leaves_finished_runs_readable(environment, simulator, tmp_path):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "schedlab", "run", "report-5/mixed", "-p", "rr,mlfq",
         "--seeds", "5000", "--out", str(out), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(out.glob("*/*/*/*/run.json"))) < 5:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    runs = json.loads(output)["runs"]
    assert 5 <= len(runs) < 10_000
    # What is finished can be compared, also with a part of itself.
    from schedlab.runs.gate import compare_folders

    result = compare_folders(out, out / "report-5" / "mixed" / "rr")
    assert not result["is_failed"]
    assert {c["policy_b"] for c in result["comparisons"]} == {"rr"}
    for run in runs:
        assert run["status"] == "ok"
        read_records(Path(run["directory"]) / "records.slr")


@pytest.mark.parametrize("command", ["record --system 1s", "bench -p SCHED_OTHER -- true", "reproduce 5"])
def test_ctrl_c_is_said_and_a_program_gets_one_document(monkeypatch, capsys, command):
    """Typer would swallow it."""
    from schedlab.cli.app import main
    from schedlab.runs import folders

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    for name in (
        "schedlab.measure.recording.record_others",
        "schedlab.measure.bench.measure",
        "checkout.reproduce.steps.reproduce_report",
    ):
        monkeypatch.setattr(name, interrupt)
    monkeypatch.setattr(folders, "fresh_folder", lambda: Path("unused"))
    words = command.split()
    monkeypatch.setattr(sys, "argv", ["schedlab", words[0], "--json", *words[1:]])
    with pytest.raises(SystemExit) as left:
        main()
    shown = capsys.readouterr()
    assert (left.value.code, shown.err) == (130, "interrupted\n")
    assert json.loads(shown.out)["error"]["kind"] == "Interrupted"


@pytest.fixture(scope="module")
def three_sets(environment, simulator, tmp_path_factory):
    """Folders: rr as it is, rr with twice the slice, and rr on other work."""
    folder = tmp_path_factory.mktemp("sets")
    (folder / "mixed.toml").write_text(
        '[workload]\ntitle = "x"\nquestion = "y"\n'
        '[[task]]\nname = "t"\ncount = 3\nphases = [{run = "50ms"}]\n'
    )
    for name, arguments in (
        ("was", ["mixed"]),
        ("now", ["mixed", "--set", "rr.slice_ns=20ms"]),
        ("other", [str(folder / "mixed.toml"), "--seed", "1"]),
    ):
        subprocess.run(
            [sys.executable, "-m", "schedlab", "run", *arguments, "-p", "rr", "--seeds", "8",
             "--out", str(folder / name), "--json"],
            env=environment, check=True, capture_output=True,
        )  # fmt: skip
    return folder


@pytest.mark.full
def test_compare_fails_a_build_on_what_got_worse(schedlab, three_sets):
    gate = ["--fail-if", "response_mean > +5%"]
    was, now = three_sets / "was", three_sets / "now"
    status, output, errors = schedlab("compare", was, now, *gate, "--json")
    assert (status, errors, output.count("\n")) == (1, "", 1)
    result = json.loads(output)
    assert result["is_failed"]
    (entry,) = result["comparisons"]
    assert entry["seeds"] == list(range(1, 9))
    assert entry["metrics"]["response_ns_mean"]["better"] == "a"
    assert result["gates"][0]["low"] > 0.05
    status, output, _ = schedlab("compare", was, now, *gate)
    assert status == 1
    assert "FAILS: response_mean > +5% on mixed" in output
    assert "Paired by 8 seeds; BCa bootstrap intervals" in output
    # The other way round it got better, and a set against itself did nothing.
    assert schedlab("compare", now, was, *gate)[0] == 0
    status, output, _ = schedlab("compare", was, was, *gate)
    assert (status, "to the last digit with every seed" in output) == (0, True)
    assert "passes: " in output


@pytest.mark.full
def test_compare_refuses_other_work_by_its_hashes(schedlab, three_sets):
    hashes = [
        json.loads((three_sets / name / "runs.json").read_text())["runs"][0]["program_hash"][:12]
        for name in ("was", "other")
    ]
    status, output, errors = schedlab("compare", three_sets / "was", three_sets / "other", "--json")
    assert (status, json.loads(output)["error"]["kind"]) == (2, "UsageError")
    assert hashes[0] != hashes[1]
    assert f"({hashes[0]} and {hashes[1]})" in errors


@pytest.mark.full
def test_a_run_says_what_its_numbers_say(schedlab, simulator):
    status, output, _ = schedlab("run", "mixed", "-p", "rr,mlfq", "--seeds", "8")
    assert status == 0
    assert "Mean response is lower under mlfq" in output
    assert output.index("Consistency: ok") < output.index("what the numbers say")
    assert "Holm over" in output
    status, output, _ = schedlab("run", "mixed", "-p", "rr,mlfq,fifo", "--seeds", "8")
    assert re.search(r"Mean response: \S+ ms under rr; better under mlfq .*; worse under fifo", output)
    status, output, _ = schedlab("run", "mixed", "-p", "rr,mlfq", "--seeds", 1)
    assert "One seed: differences are not tested" in output


@pytest.mark.full
def test_run_takes_20_seeds_where_it_compares_and_the_baseline_that_is_asked_for(schedlab, simulator):
    many = ("run", "report-1/short", "-p", "rr,fifo", "--baseline", "fifo", "--json")
    result = json.loads(schedlab(*many)[1])
    assert [run["seed"] for run in result["runs"]] == [*range(1, 21)] * 2
    assert [(c["policy_a"], c["policy_b"]) for c in result["comparisons"]] == [("fifo", "rr")]
    for alone in (("-p", "rr"), ("-p", "rr,fifo", "--seed", 0)):
        runs = json.loads(schedlab("run", "report-1/short", *alone, "--json")[1])["runs"]
        assert len({run["seed"] for run in runs}) == 1
    status, _, errors = schedlab("run", "mixed", "-p", "rr,fifo", "--baseline", "cfs")
    assert status == 2
    assert errors == "error: --baseline cfs: not among the policies of this run; name one of rr, fifo\n"


def test_a_run_cut_short_says_whose_tasks_are_missing(schedlab, simulator, tmp_path):
    """Before any verdict: fifo's response is that of the tasks it got to, which are few."""
    (tmp_path / "cut.toml").write_text("""
[workload]
title = "Jobs behind a long one, cut off"
question = "Who looks good?"
horizon = "300ms"

[[task]]
name = "long"
phases = [{run = "250ms"}]

[[task]]
name = "job"
count = 4
arrival = "10ms"
phases = [{run = "30ms"}]
""")
    code, output, error = schedlab("run", "cut.toml", "--policy", "fifo,rr", "--seeds", "2", "--out", "cut")
    assert code == 0, error
    assert output.index("survivors: fifo, ") < output.index("what the numbers say")
    assert "longer horizon" in output
    assert output.count("BUT NOT OF THE SAME TASKS") >= 2


@pytest.mark.full
def test_the_demo_shows_the_verdict_before_the_tables(schedlab, simulator, tmp_path):
    status, output, errors = schedlab("demo", "--seeds", 1)
    assert (status, errors) == (0, "")
    assert output.startswith("Consistency: ok in ")
    assert "mixed on sim, 1 CPU" in output
    for workload in ("report-1/starvation", "report-5/io"):
        assert workload in output
    assert "under every policy; a busy CPU cannot do fixed work faster" in output
    assert (tmp_path / "out" / "demo" / "runs.json").is_file()
    # Outside the checkout it names the `lab` that may be started from here.
    for command in ("new mine", "report out/demo"):
        assert f"/lab {command}" in output


@pytest.mark.full
def test_output_that_cannot_be_written_is_an_error_not_a_traceback(root):
    """A full disk behind standard output, and a terminal that knows only ASCII."""
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "schedlab", "policies"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=dict(os.environ, PYTHONPATH=str(root / "python")),
        )
    assert "Traceback" not in answer.stderr
    assert answer.returncode != 0
    answer = subprocess.run(
        [sys.executable, "-m", "schedlab", "run", "mixed", "--policy", "nøt-there"],
        capture_output=True,
        check=False,
        env=dict(os.environ, PYTHONPATH=str(root / "python"), PYTHONIOENCODING="ascii", LC_ALL="C"),
    )
    assert b"Traceback" not in answer.stderr
    assert answer.returncode == 2
