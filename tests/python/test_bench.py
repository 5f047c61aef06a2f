# SPDX-License-Identifier: MIT
"""`schedlab bench`: names of classes, order of runs, what is kept, what is said."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.cli.bench import parse_cpus
from schedlab.errors import SchedlabError, UnavailableError, UsageError
from schedlab.hosts.linux import machine as linux_machine
from schedlab.hosts.linux.launch import Command, Launcher
from schedlab.measure import bench
from schedlab.measure.bench import BenchPlan, measure, parse_policies
from schedlab.measure.own_figures import describe_figure, read_figures
from schedlab.policy.linux_class import parse_class
from schedlab.show.bench import plain_text

ROOT = Path(__file__).resolve().parent.parent.parent
OTHER, BATCH = parse_policies(["SCHED_OTHER", "SCHED_BATCH"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SCHED_FIF:3", "did you mean 'SCHED_FIFO'"),
        ("SCHED_FIFO", "needs a priority, such as SCHED_FIFO:10"),
        (
            "SCHED_OTHER+pi=SCHED_FIFO:10",
            r"only a workload has tasks by name; leave out '\+pi=SCHED_FIFO:10'",
        ),
        ("SCHED_FIFO:", "needs a priority, such as SCHED_FIFO:10"),
        ("SCHED_FIFO:99", "1 to 98"),
        ("SCHED_RR:0", "1 to 98"),
        ("SCHED_RR:x", "'x' is no priority"),
        ("SCHED_OTHER:20", "-20 to 19"),
        ("SCHED_OTHER:low", "'low' is no nice value"),
        ("SCHED_IDLE:1", "has no parameter"),
        ("SCHED_DEADLINE:5ms", "runtime/deadline/period"),
        ("SCHED_DEADLINE:5ms/4ms/10ms", "runtime <= deadline"),
        ("SCHED_DEADLINE:5/10ms/10ms", "^SCHED_DEADLINE:5/10ms/10ms: '5' has no unit"),
        ("SCHED_EXT", "name the policy itself"),
        ("SCHED_OTHER:1s", "slices from 0.1 to 100 ms"),
        ("SCHED_OTHER:0/5", "'5' has no unit"),
        ("mlfq", "no such class .*loaded first, with schedlab load"),
    ],
)
def test_a_wrong_class_is_refused_with_its_remedy(text, problem):
    with pytest.raises(UsageError, match=problem):
        parse_class(text)


def test_classes_have_linux_numbers():
    assert [parse_class(text).number for text in ("SCHED_NORMAL", "sched_batch", "SCHED_IDLE")] == [0, 3, 5]
    assert parse_class("SCHED_OTHER:-5").settings["nice"] == -5
    sliced = parse_class("SCHED_BATCH:-5/2.5ms")
    assert (sliced.nice, sliced.settings["runtime_ns"], sliced.is_realtime) == (-5, 2_500_000, False)
    assert parse_class("SCHED_OTHER:3ms").slice_ns == 3_000_000
    deadline = parse_class("SCHED_DEADLINE:5ms/10ms/20ms")
    assert (deadline.runtime_ns, deadline.deadline_ns, deadline.period_ns) == (
        5_000_000,
        10_000_000,
        20_000_000,
    )
    assert deadline.is_realtime
    assert not OTHER.is_realtime


def test_policies_that_cannot_be_measured_are_refused():
    with pytest.raises(UsageError, match="given twice"):
        parse_policies(["SCHED_OTHER", "SCHED_OTHER"])
    with pytest.raises(UsageError, match="empty"):
        parse_policies([])
    with pytest.raises(UnavailableError, match="mlfq"):
        parse_policies(["mlfq"])


@pytest.mark.parametrize("text", ["x", "3-1", "1024", "-1", "1-"])
def test_a_wrong_list_of_cpus_is_refused(text):
    with pytest.raises(UsageError, match="--cpus"):
        parse_cpus(text)


def test_a_machine_may_have_as_many_cpus_as_the_simulator():
    assert parse_cpus("0,63-65,1023") == (0, 63, 64, 65, 1023)


def test_every_round_runs_every_class_once_in_a_drawn_order():
    plan = BenchPlan(("true",), (OTHER, BATCH, parse_class("SCHED_IDLE")), n_rounds=40, n_warmups=2)
    order = bench._order(plan)
    assert [index for index, _ in order] == [i for i in range(-2, 40) for _ in range(3)]
    rounds = [tuple(each.name for _, each in order[i : i + 3]) for i in range(0, len(order), 3)]
    assert all(sorted(each) == sorted(c.name for c in plan.classes) for each in rounds)
    assert len(set(rounds)) == 6, "every order comes up"
    assert order == bench._order(plan), "the seed decides"


def burn(ms: int) -> tuple[str, ...]:
    code = "import sys,time\nwhile time.process_time()*1000 < int(sys.argv[1]): pass"
    return (sys.executable, "-S", "-c", code, str(ms))


def test_samples_are_those_of_the_commands(build):
    plan = BenchPlan(burn(20), (OTHER, BATCH), n_rounds=3, n_warmups=1)
    taken = []
    result = measure(plan, on_run=lambda policy, is_new: taken.append((policy, is_new)))
    assert len(result.samples) == 6 and len(taken) == plan.n_runs == 8
    assert [sample["order"] for sample in result.samples] == list(range(6)), "without the warm-ups"
    assert sorted({*taken}) == [("SCHED_BATCH", True), ("SCHED_OTHER", True)]
    for sample in result.samples:
        used_ns = sample["user_ns"] + sample["system_ns"]
        # A little CPU time lies outside what the command itself could see.
        assert 19_000_000 < used_ns < sample["wall_ns"] + 5_000_000
        assert sample["cpu_percent"] == pytest.approx(100 * used_ns / sample["wall_ns"])
        assert sample["exit_code"] == 0
    assert set(result.summaries) == {"SCHED_OTHER", "SCHED_BATCH"}
    (comparison,) = result.comparisons
    assert set(comparison["figures"]) == set(bench.FIGURES)
    json.dumps(result.as_json(), allow_nan=False)
    text = plain_text(result)
    assert all(len(line) <= 78 for line in text.splitlines() if not line.startswith("Command:"))
    for sample in result.samples:
        assert f"{sample['wall_ns'] / 1e6:.2f}" in text, "every sample is shown"


def made(values: dict[str, list[float]], figure="wall_ns") -> bench.BenchResult:
    """A result with known samples of one figure; the others are constant."""
    classes = parse_policies(list(values))
    plan = BenchPlan(("work",), classes, n_rounds=len(next(iter(values.values()))))
    result = bench.BenchResult(plan, {"cpu": "a CPU", "cpus": 2, "kernel": "6.12"})
    for policy, numbers in values.items():
        for i, number in enumerate(numbers):
            constant = dict.fromkeys(bench.FIGURES, 1000.0)
            fixed = {
                "policy": policy,
                "round": i,
                "order": i,
                "exit_code": 0,
                "signal": 0,
                "has_timed_out": False,
            }
            result.samples.append(fixed | constant | {figure: number})
    bench._summarise(result, 0.95)
    return result


def test_a_known_difference_is_found_and_its_direction_named():
    base = [1e8, 1.01e8, 0.99e8, 1.02e8, 0.98e8, 1e8, 1.005e8, 0.995e8]
    result = made({"SCHED_OTHER": base, "SCHED_FIFO:1": [v * 0.8 for v in base], "SCHED_BATCH": base[::-1]})
    better, same = (each["figures"]["wall_ns"] for each in result.comparisons)
    assert better["verdict"] == "b is better"
    assert better["ratio"] == pytest.approx(0.8)
    assert better["cliffs_delta"] == -1
    assert same["verdict"] == "undecided"
    others = [
        each["figures"][name]["verdict"]
        for each in result.comparisons
        for name in bench.FIGURES
        if name != "wall_ns"
    ]
    assert set(others) == {"no difference"}
    line = next(line for line in plain_text(result).splitlines() if line.startswith("* SCHED_FIFO:1"))
    assert line.startswith("* SCHED_FIFO:1: wall 100 ms -> 80 ms (-20 %), better than SCHED_OTHER")


def test_no_interval_of_two_runs_is_negative():
    (summary,) = made({"SCHED_OTHER": [1e8, 3e8]}).summaries.values()
    assert summary["wall_ns"]["low"] == 0 and summary["wall_ns"]["high"] > 3e8


def test_two_modes_an_outlier_and_a_drift_are_warned_of():
    modes = [100.0 + i % 2 * 50 + i * 0.37 for i in range(20)]
    assert "bimodal" in {warning["kind"] for warning in made({"SCHED_OTHER": modes}).warnings}
    outlier = [100.0 + i % 7 for i in range(20)] + [900.0]
    assert "outliers" in {warning["kind"] for warning in made({"SCHED_OTHER": outlier}).warnings}
    drift = [100.0 + i + (i * 7919 % 5) for i in range(30)]
    assert "drift" in {warning["kind"] for warning in made({"SCHED_OTHER": drift}).warnings}
    assert not made({"SCHED_OTHER": [100.0] * 20}).warnings


HACKBENCH = (
    "Running in process mode with 1 groups (== 40 tasks)\nEach sender will pass 20 messages\nTime: 0.109\n"
)
STRESS_NG = """stress-ng: info:  [25979] dispatching hogs: 1 cpu
stress-ng: metrc: [25979] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [25979]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [25979] cpu                 263      1.01      0.18      0.00       260.89        1478.52
stress-ng: metrc: [25979] vm-rw               10      2.00      0.18      0.50       5.00        14.70
"""
SCHBENCH = """Wakeup Latencies percentiles (usec) runtime 5 (s) (100 total samples)
\t  50.0th: 3          (10 samples)
\t  50.0th: 4          (40 samples)
\t* 99.0th: 12         (9 samples)
\t  99.9th: 31         (1 samples)
\t  min=1, max=40
Request Latencies percentiles (usec) runtime 5 (s) (90 total samples)
\t* 99.0th: 4200       (9 samples)
RPS percentiles (requests) runtime 5 (s) (6 total samples)
\t* 50.0th: 777        (3 samples)
average rps: 765.40
"""
RT_APP_LOG = """# Policy : SCHED_OTHER priority : 0
#idx     perf      run   period           start             end          rel_st      slack c_duration   c_period     wu_lat
   0   100000     1882     7966     28517740120     28517748086            6973       3097       1000       5000       2983
   0   100000     1878    11917     28517748095     28517760012           14947       -129       1000       5000       9909
"""


@pytest.mark.parametrize(
    ("argv", "text", "figures"),
    [
        (["hackbench"], HACKBENCH, {"hackbench_ns": 109e6}),
        (["/usr/bin/stress-ng", "--cpu", "1"], STRESS_NG, {"stress_ng_cpu_per_s": 260.89, "stress_ng_vm_rw_per_s": 5.0}),
        (["schbench"], SCHBENCH, {"schbench_wakeup_p50_ns": 4e3, "schbench_wakeup_p99_ns": 12e3,
                                  "schbench_wakeup_p99_9_ns": 31e3, "schbench_request_p99_ns": 4.2e6,
                                  "schbench_requests_per_s": 765.4}),
        (["make", "-j4"], HACKBENCH, {}),
        (["hackbench"], "Time: soon", {}),
        (["schbench"], "no such option", {}),
        (["stress-ng"], "stress-ng: metrc: [1] cpu 263 cut", {}),
    ],
)  # fmt: skip
def test_what_benchmarks_say_about_themselves_is_read(argv, text, figures):
    found = read_figures(argv, text, since=0)
    assert found == pytest.approx(figures)
    for name in found:
        unit, direction = describe_figure(name)
        assert (unit, direction) == (("1/s", 1) if name.endswith("_per_s") else ("ns", -1))


def test_the_logs_of_rt_app_are_read(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(f'{{"global": {{"logdir": "{tmp_path}", "duration": 1,}}, "tasks": {{}}}}')
    (tmp_path / "rt-app-t0-0.log").write_text(RT_APP_LOG)
    argv = ["rt-app", str(file)]
    assert read_figures(argv, "", since=0) == {
        "rt_app_wakeup_p99_ns": 9_909_000,
        "rt_app_wakeup_mean_ns": 6_446_000,
        "rt_app_slack_min_ns": -129_000,
    }
    assert describe_figure("rt_app_slack_min_ns") == ("ns", 1)
    assert read_figures(argv, "", since=time.time() + 60) == {}, "those of an earlier run are not its"
    assert read_figures(["rt-app", "/no/such.json"], "", since=0) == {}
    file.write_text("[")
    assert read_figures(argv, "", since=0) == {}


def test_a_benchmarks_own_figure_is_compared_like_ours(build, tmp_path):
    fake = tmp_path / "hackbench"
    fake.write_text("#!/bin/sh\necho Time: 0.25\n")
    fake.chmod(0o755)
    result = measure(
        BenchPlan((str(fake),), (OTHER, BATCH), n_rounds=2, n_warmups=0), folder=tmp_path / "out"
    )
    assert [sample["hackbench_ns"] for sample in result.samples] == [250e6] * 4
    assert result.summaries["SCHED_BATCH"]["hackbench_ns"]["mean"] == 250e6
    assert result.comparisons[0]["figures"]["hackbench_ns"]["verdict"] == "no difference"
    assert "hackbench_ns, as the command says:" in plain_text(result)
    # Those that were kept have it, too.
    again = measure(BenchPlan((str(fake),), (OTHER, BATCH), n_rounds=2, n_warmups=0), folder=tmp_path / "out")
    assert again.figures == result.figures


def test_further_runs_are_recorded_where_that_is_allowed(build, tmp_path):
    log = tmp_path / "log"
    plan = BenchPlan(
        ("sh", "-c", f"echo x >> {log}; sleep 0.01"), (OTHER, BATCH), n_rounds=2, n_warmups=0, n_recorded=1
    )
    result = measure(plan)
    text = plain_text(result)
    if result.why_not_recorded:
        assert "migrations are not known" in text
        assert log.read_text().count("x") == 4
        return
    assert log.read_text().count("x") == 6, "beside the samples"
    for policy in ("SCHED_OTHER", "SCHED_BATCH"):
        (run,) = result.recorded[policy]
        assert run["problem"] is None
        assert run["tasks"] == 2
        assert run["wakeups"] >= 1, "sleep wakes up"
        assert 0 < run["wakeup_ns_p50"] <= run["wakeup_ns_p99"] <= run["wakeup_ns_max"]
        assert f"{policy}, recorded: wake-up latency" in text.replace("\n  ", " ")


def test_failed_runs_are_told_and_end_with_1(build):
    plan = BenchPlan(("sh", "-c", "exit 3"), (OTHER,), n_rounds=2, n_warmups=0)
    result = measure(plan)
    assert [each["exit_code"] for each in result.failures] == [3, 3]
    assert any("exit code 3" in each["text"] for each in result.warnings)
    slow = measure(BenchPlan(("sleep", "9"), (OTHER,), n_rounds=1, n_warmups=0, timeout_ns=50_000_000))
    assert slow.failures[0]["has_timed_out"]


def test_what_a_command_writes_to_stderr_is_kept_whole_and_shown_where_it_failed(build, tmp_path):
    script = "seq 5000 >&2; echo no such table >&2; [ $(ls DIR/stderr | grep -c -e ^round) -gt 1 ] && exit 3; exit 0"
    plan = BenchPlan(
        ("sh", "-c", script.replace("DIR", str(tmp_path / "out"))), (OTHER,), n_rounds=2, n_warmups=1
    )
    result = measure(plan, folder=tmp_path / "out")
    assert [sample["stderr"] for sample in result.samples] == [
        [],
        ["4997", "4998", "4999", "5000", "no such table"],
    ]
    files = sorted(path.name for path in (tmp_path / "out" / "stderr").iterdir())
    assert files == ["round-0-SCHED_OTHER.txt", "round-1-SCHED_OTHER.txt", "warm-up-0-SCHED_OTHER.txt"]
    for file in files:
        lines = (tmp_path / "out" / "stderr" / file).read_text().splitlines()
        assert lines == [*map(str, range(1, 5001)), "no such table"]
    assert "\n  | 5000\n  | no such table" in plain_text(result)
    quiet = measure(
        BenchPlan(("sh", "-c", "exit 3"), (OTHER,), n_rounds=1, n_warmups=0), folder=tmp_path / "quiet"
    )
    assert quiet.samples[0]["stderr"] == []
    assert not (tmp_path / "quiet" / "stderr").exists()
    failed = schedlab(
        "bench", "--policy", "SCHED_OTHER", "--runs", "1", "--warmups", "0", "--", "ls", "/no/such/folder"
    )
    assert failed.returncode == 1
    assert "/no/such/folder" in failed.stdout.split("failed runs")[1]


def test_what_others_had_of_the_cpus_is_told_for_all_runs(build, monkeypatch):
    """CPU time of processes that are not ours, as the machine counts it; ours is taken off."""

    def count(step_ns):
        readings = itertools.count(0, step_ns)
        return lambda: dict.fromkeys((plan_cpus[0], 4000), next(readings))

    argv, plan_cpus = ("sleep", "0.01"), tuple(sorted(os.sched_getaffinity(0)))[:1]
    plan = BenchPlan(argv, (OTHER, BATCH), n_rounds=2, n_warmups=0, cpus=plan_cpus)
    monkeypatch.setattr(bench, "busy_by_cpu", count(60_000_000_000))
    monkeypatch.setattr(bench, "steal_since", lambda before: {plan_cpus[0]: 1_000_000, 4000: 7})
    result = measure(plan)
    for policy in ("SCHED_OTHER", "SCHED_BATCH"):
        mine = [sample for sample in result.samples if sample["policy"] == policy]
        own_ns = sum(sample["user_ns"] + sample["system_ns"] for sample in mine)
        assert result.disturbance[policy] == {
            "others_ns": 120_000_000_000 - own_ns,
            "steal_ns": 2_000_000,
            "share": 1.0,
            "available_ns": sum(sample["tree_ns"] for sample in mine),
        }
        (warning,) = [
            each for each in result.warnings if each["kind"] == "disturbed" and each["policy"] == policy
        ]
        assert "other processes had 1" in warning["text"] and "a hypervisor 2.0 ms" in warning["text"]
    monkeypatch.setattr(bench, "busy_by_cpu", count(0))
    monkeypatch.setattr(bench, "steal_since", lambda before: {})
    quiet = measure(plan)
    assert not [each for each in quiet.warnings if each["kind"] == "disturbed"]
    assert "SCHED_BATCH, 2 runs: other processes had 0.0 ms of the" in plain_text(quiet).replace("\n  ", " ")


def test_the_machine_counts_what_a_process_had():
    before = linux_machine.busy_by_cpu()
    used_s = time.process_time()
    while time.process_time() - used_s < 0.5:
        pass
    assert sum(linux_machine.time_since(before, linux_machine.busy_by_cpu()).values()) >= 300_000_000


def test_background_commands_are_shown_and_missed_when_they_end(build):
    """A load that has failed at once is none, and nobody was told."""
    argv, cpus = ("sh", "-c", "sleep 0.05"), tuple(sorted(os.sched_getaffinity(0)))[:1]
    plan = BenchPlan(
        argv,
        (OTHER,),
        n_rounds=2,
        n_warmups=0,
        background=(("sleep", "17"), ("sh", "-c", "exit 3")),
        cpus=cpus,
    )
    result = measure(plan)
    assert [sample["background_ended"] for sample in result.samples] == [1, 1]
    (warning,) = [each for each in result.warnings if each["kind"] == "background"]
    assert "in 2 of 2 runs a command of --background had ended" in warning["text"]
    text = plain_text(result)
    assert text.startswith(
        f"Command: sh -c 'sleep 0.05'\n         background: sleep 17\n         background: sh -c 'exit 3'\n         on CPU {cpus[0]}\n"
    )
    quiet = measure(replace(plan, background=(("sleep", "17"),)))
    assert not [each for each in quiet.warnings if each["kind"] == "background"]


def test_what_is_measured_is_not_warmed_up_for_again(build, tmp_path):
    log = tmp_path / "log"
    plan = BenchPlan(("sh", "-c", f"echo x >> {log}"), (OTHER,), n_rounds=2, n_warmups=3)
    taken = []
    for _ in range(2):
        assert (
            len(measure(plan, folder=tmp_path / "out", on_run=lambda _, is_new: taken.append(is_new)).samples)
            == 2
        )
    assert log.read_text().count("x") == 5
    assert taken == 5 * [True] + 5 * [False]


def test_an_interrupted_measurement_goes_on(build, tmp_path):
    log = tmp_path / "log"
    plan = BenchPlan(("sh", "-c", f"echo x >> {log}"), (OTHER, BATCH), n_rounds=4, n_warmups=0)

    class StopError(Exception):
        pass

    taken = []

    def stop(policy, is_new):
        taken.append(is_new)
        if len(taken) == 5:
            raise StopError

    with pytest.raises(StopError):
        measure(plan, folder=tmp_path / "out", on_run=stop)
    samples = tmp_path / "out" / bench.SAMPLES_FILE
    # As if it had been killed in the middle of a line.
    samples.write_text(samples.read_text() + '{"policy": "SCHED_OT')
    kept = samples.read_text().splitlines()[:5]
    taken.clear()
    result = measure(plan, folder=tmp_path / "out", on_run=lambda policy, is_new: taken.append(is_new))
    assert len(result.samples) == 8 and taken == 5 * [False] + 3 * [True]
    assert [json.dumps(each) for each in result.samples[:5]] == kept
    assert log.read_text().count("x") == 8, "no run is done twice"
    assert measure(plan, folder=tmp_path / "out").samples == result.samples
    assert log.read_text().count("x") == 8, "no sample was lost behind the cut line"
    with pytest.raises(UsageError, match="another measurement"):
        measure(BenchPlan(("true",), (OTHER,)), folder=tmp_path / "out")


def test_a_folder_that_cannot_be_is_wrong_use(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--out .*file/out: Not a directory; name another folder"):
        measure(BenchPlan(("true",), (OTHER,)), folder=tmp_path / "file" / "out")


def test_a_full_disk_loses_no_sample(build, tmp_path):
    folder = tmp_path / "out"
    samples = folder / bench.SAMPLES_FILE

    def fill_the_disk(policy, is_new):
        samples.rename(tmp_path / "kept")
        samples.symlink_to("/dev/full")

    plan = BenchPlan(("true",), (OTHER,), n_rounds=2, n_warmups=0)
    with pytest.raises(SchedlabError, match="No space left"):
        measure(plan, folder=folder, on_run=fill_the_disk)
    samples.unlink()
    (tmp_path / "kept").rename(samples)
    assert [each["round"] for each in measure(plan, folder=folder).samples] == [0, 1]


def test_what_cannot_be_started_says_why(build, tmp_path):
    with Launcher() as launcher:
        for argv, problem in (
            (("/no/such",), "/no/such: cannot be started"),
            ((str(tmp_path),), "Permission denied"),
        ):
            with pytest.raises(UsageError, match=problem):
                launcher.run([Command(argv, OTHER)], timeout_ns=10**10)
        with pytest.raises(UsageError, match="this process may use"):
            launcher.run([Command(("true",), OTHER, cpus=(63,))], timeout_ns=10**10)
        assert launcher.run([Command(("true",), OTHER)], timeout_ns=10**10)["commands"][0]["exit_code"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_without_privileges_it_says_which_is_missing(build, tmp_path):
    program = build / "hosts" / "linux" / "schedlab-launch"
    raw = b"".join(word + b"\0" for word in (b"command", b"policy=1", b"priority=5", b"argc=1", b"true"))
    # From a folder that nobody else may enter the program cannot be started.
    copy = tmp_path / "launch"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run(
        [copy], input=b"run %d\n" % len(raw) + raw, capture_output=True, user=65534, check=True
    )
    answer = json.loads(done.stdout)
    assert not answer["is_realtime"]
    report = answer["commands"][0]
    assert (report["failure"], report["error"]) == ("scheduler", 1)
    from schedlab.hosts.linux import launch

    with pytest.raises(
        UnavailableError, match="CAP_SYS_NICE: start schedlab as root, or raise RLIMIT_RTPRIO"
    ):
        launch._raise_failure(Command(("true",), parse_class("SCHED_FIFO:5")), report)
    with pytest.raises(UnavailableError, match="CAP_SYS_NICE: start schedlab as root; "):
        launch._raise_failure(Command(("true",), parse_class("SCHED_DEADLINE:1ms/2ms/2ms")), report)


def test_the_machine_is_read_and_warned_of():
    machine = linux_machine.describe_machine()
    assert machine["cpus"] == os.cpu_count()
    quiet = machine | {"is_virtual": False, "governors": ["performance"], "has_turbo": False, "load_1min": 0.0,
                       "is_autogroup": False, "kernel": "5.10.0", "fair_server_ns": None, "has_rt_groups": None,
                       "rt_runtime_us": -1, "rt_period_us": 1_000_000}  # fmt: skip
    fifo = parse_policies(["SCHED_FIFO:1"])
    assert linux_machine.warn_of_machine(quiet, list(fifo)) == []

    def kinds(**changed):
        return {each["kind"] for each in linux_machine.warn_of_machine(quiet | changed, list(fifo))}

    assert kinds(is_virtual=True) == {"virtual machine"}
    assert kinds(governors=["schedutil"]) == {"governor"}
    assert kinds(has_turbo=True) == {"turbo"}
    assert kinds(load_1min=99.0) == {"load"}
    assert kinds(rt_runtime_us=950_000) == {"throttling"}
    assert kinds(kernel="6.12.9", rt_runtime_us=950_000) == {"fair server"}
    assert kinds(kernel="6.12.9", rt_runtime_us=950_000, fair_server_ns=0) == set()
    assert kinds(kernel="6.12.9", rt_runtime_us=950_000, has_rt_groups=True) == {"fair server", "throttling"}
    nice = [parse_class("SCHED_OTHER:5")]
    assert {each["kind"] for each in linux_machine.warn_of_machine(quiet | {"is_autogroup": True}, nice)} == {
        "autogroup"
    }


def schedlab(*words):
    return subprocess.run(
        [sys.executable, "-m", "schedlab", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )


@pytest.mark.full
def test_the_command_line(build):
    done = schedlab(
        "bench",
        "--policy",
        "SCHED_OTHER",
        "--runs",
        "2",
        "--warmups",
        "0",
        "--json",
        "--",
        "sh",
        "-c",
        "exit 0",
        "--runs",
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["plan"]["command"] == ["sh", "-c", "exit 0", "--runs"], "what follows -- is the command's"
    assert len(answer["samples"]) == 2
    shown = schedlab(
        "bench", "--policy", "SCHED_OTHER,SCHED_BATCH", "--runs", "2", "--warmups", "0", "--", "true"
    )
    assert shown.returncode == 0, shown.stderr
    assert "SCHED_BATCH" in shown.stdout
    assert "interval" in shown.stdout
    failed = schedlab("bench", "--policy", "SCHED_OTHER", "--runs", "1", "--warmups", "0", "--", "false")
    assert failed.returncode == 1
    for words, code, problem in (
        (("--policy", "SCHED_OTHER", "--style", "html", "--", "true"), 2, "there are table and lkml"),
        (("--policy", "SCHED_OTHER", "--background", "'", "--", "true"), 2, "--background"),
        (("--policy", "SCHED_OTHER", "--timeout", "0", "--", "true"), 2, "longer than 0"),
        (("--policy", "mlfq", "--", "true"), 3, "mlfq"),
    ):
        done = schedlab("bench", *words)
        assert done.returncode == code, done.stderr
        assert problem in done.stderr
