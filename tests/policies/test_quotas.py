# SPDX-License-Identifier: MIT
"""Policies with `groups` keep the quotas of cgroups; parts are computed by hand."""

from __future__ import annotations

import polars as pl
import pytest
from typer.testing import CliRunner

import schedlab
from schedlab.cli.app import app
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import find_policy, load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.spec import parse_workload

MODES = [(policy, groups) for policy in ("cfs", "eevdf") for groups in ("flat", "tree")] + [
    ("credit", "flat")
]
HEAD = """
[workload]
title = "Quotas"
horizon = "2s"
tick = "1ms"
jitter = "0ms"
"""


def group(name: str, quota: str = "", parent: str = "", period: str = "", weight: int = 100) -> str:
    lines = [f'[[group]]\nname = "{name}"\nweight = {weight}']
    lines += [
        f'{key} = "{value}"'
        for key, value in (("quota", quota), ("period", period), ("parent", parent))
        if value
    ]
    return "\n".join(lines) + "\n"


def task(name: str, of: str = "", count: int = 1, phases: str = '{run = "10s"}', more: str = "") -> str:
    within = f'group = "{of}"\n' if of else ""
    return f'[[task]]\nname = "{name}"\n{within}count = {count}\nphases = [{phases}]\n{more}\n'


def quota_event(group: str, at: str, quota: str) -> str:
    return f'[[event]]\nkind = "quota"\ngroup = "{group}"\nat = "{at}"\nquota = "{quota}"\n'


def result_of(text: str, policy: str, groups: str, tmp_path, cpus: int = 1):
    path = tmp_path / "w.toml"
    path.write_text(HEAD + text)
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": groups}, cpus=cpus)
    assert result.runs["consistency"].to_list() == ["ok"]
    return result


def run_ms(text: str, policy: str, groups: str, tmp_path, cpus: int = 1) -> dict[str, float]:
    """CPU time of two seconds, in ms, by the first letter of the tasks' names."""
    tasks = result_of(text, policy, groups, tmp_path, cpus).tasks
    by_name = tasks.group_by(pl.col("name").str.slice(0, 1)).agg(pl.col("run_ns").sum())
    return {name: run_ns / 1e6 for name, run_ns in by_name.iter_rows()}


pytestmark = pytest.mark.usefixtures("simulator")
in_each_mode = pytest.mark.parametrize(("policy", "groups"), MODES)


@in_each_mode
@pytest.mark.parametrize("count", [1, 3])
def test_a_group_has_its_quota_though_the_cpu_is_idle(policy, groups, count, tmp_path):
    """20 ms of each of the 20 periods of 100 ms."""
    assert run_ms(group("a", "20ms") + task("x", "a", count), policy, groups, tmp_path) == {"x": 400}


@in_each_mode
def test_others_have_what_is_left(policy, groups, tmp_path):
    found = run_ms(
        group("a", "20ms", weight=1000) + task("x", "a", 2) + task("y", count=2), policy, groups, tmp_path
    )
    assert found == {"x": pytest.approx(400, abs=2), "y": pytest.approx(1600, abs=2)}


@in_each_mode
@pytest.mark.parametrize(
    ("count", "quota", "period", "cpus"),
    [(3, "1.75ms", "7ms", 1), (3, "5ms", "20ms", 1), (5, "5ms", "20ms", 1), (5, "10ms", "20ms", 2)],
)
def test_equal_tasks_have_equal_parts_of_a_quota(policy, groups, count, quota, period, cpus, tmp_path):
    """They are set aside one after the other, and put back so; a tick of 4 ms is longer than what there is."""
    text = group("a", quota, period=period) + task("x", "a", count)
    expected_ms = 10_000 * float(quota[:-2]) / float(period[:-2]) / count
    assert (
        of_ten_seconds(text, policy, groups, tmp_path, cpus) == [pytest.approx(expected_ms, abs=25)] * count
    )


@in_each_mode
def test_equal_tasks_have_equal_parts_beside_another(policy, groups, tmp_path):
    """The one that ran is set aside last, when the other has run for a slice. Under credit that has as many credits."""
    text = group("a", "5ms", period="20ms") + task("x", "a", 3) + task("y")
    *ran_ms, _ = of_ten_seconds(text, policy, groups, tmp_path)
    assert max(ran_ms) - min(ran_ms) <= 25
    assert sum(ran_ms) == pytest.approx(2500, rel=0.25 if policy == "credit" else 0.01)


@pytest.mark.parametrize(("policy", "groups"), MODES[:-1])
def test_groups_share_a_parents_quota_by_weight(policy, groups, tmp_path):
    """Under credit all have more credits than the quota lets them use, and take turns."""
    text = group("o", "50ms") + group("a", parent="o", weight=10) + group("b", parent="o", weight=1000)
    text += task("x", "a", 3) + task("y", "b")
    *few_ms, most_ms = of_ten_seconds(text, policy, groups, tmp_path)
    assert most_ms == pytest.approx(4950, abs=50)
    assert sum(few_ms) == pytest.approx(49.5, abs=25)


def of_ten_seconds(text: str, policy: str, groups: str, tmp_path, cpus: int = 1) -> list[float]:
    """CPU time of each task, in ms, with ticks of 4 ms."""
    path = tmp_path / "w.toml"
    path.write_text(HEAD.replace("1ms", "4ms").replace("2s", "10s") + text)
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": groups}, cpus=cpus)
    return (result.tasks["run_ns"] / 1e6).to_list()


@in_each_mode
def test_a_quota_that_is_not_needed_changes_nothing(policy, groups, tmp_path):
    """Both groups have half of the CPU by weight: less than 60 ms of 100."""
    text = group("a", "60ms") + group("b") + task("x", "a", 2) + task("y", "b", 2)
    within = 30 if policy == "credit" else 5
    assert run_ms(text, policy, groups, tmp_path)["x"] == pytest.approx(1000, abs=within)


@in_each_mode
def test_a_quota_is_of_all_cpus_in_sum(policy, groups, tmp_path):
    """100 ms of each 100 ms are one CPU; a task ends its slice at a tick, and both may be late by one."""
    found = run_ms(group("a", "100ms") + task("x", "a", 2), policy, groups, tmp_path, cpus=2)
    assert found == {"x": pytest.approx(2000, abs=2)}


@in_each_mode
def test_two_cpus_of_four_have_another_group(policy, groups, tmp_path):
    text = group("a", "80ms") + task("x", "a", 4) + task("y", count=2)
    found = run_ms(text, policy, groups, tmp_path, cpus=4)
    assert found["x"] == pytest.approx(1600, abs=4)
    # Each is worth more than a CPU; in one queue, and under credit, they wait for a tick, or a slice, now and then.
    assert found["y"] >= {"credit": 3500, "cfs": 3950}.get(policy, 3992)


@in_each_mode
@pytest.mark.parametrize(("outer", "inner", "expected"), [("30ms", "50ms", 600), ("50ms", "30ms", 600)])
def test_of_nested_quotas_the_tightest_counts(policy, groups, outer, inner, expected, tmp_path):
    text = group("a", outer) + group("b", inner, parent="a") + task("x", "b", 2)
    assert run_ms(text, policy, groups, tmp_path) == {"x": expected}


@in_each_mode
def test_groups_share_the_quota_of_the_one_that_they_are_in(policy, groups, tmp_path):
    """Of 40 ms in each 100 ms 10 are b's and the rest is c's, beside a task that has the other 60."""
    text = (
        group("a", "40ms", weight=10000) + group("b", "10ms", parent="a") + group("c", parent="a")
        + task("x", "b") + task("y", "c") + task("z")
    )  # fmt: skip
    found = run_ms(text, policy, groups, tmp_path)
    within = 40 if policy == "credit" else 5
    assert found == {
        "x": pytest.approx(200, abs=within),
        "y": pytest.approx(600, abs=within),
        "z": pytest.approx(1200, abs=within),
    }


@in_each_mode
def test_a_throttled_group_leaves_its_part_to_those_beside_it(policy, groups, tmp_path):
    """b and c are half of the CPU; of it b has 5 ms of each 100, and c, not the root's task, has the rest."""
    text = (
        group("a") + group("b", "5ms", parent="a") + group("c", parent="a") + group("d")
        + task("x", "b", 3) + task("y", "c") + task("z", "d")
    )  # fmt: skip
    found = run_ms(text, policy, groups, tmp_path)
    within = 100 if policy == "credit" else 15
    assert found == {
        "x": pytest.approx(100, abs=2),
        "y": pytest.approx(900, abs=within),
        "z": pytest.approx(1000, abs=within),
    }


@in_each_mode
def test_what_is_used_beyond_a_budget_is_owed(policy, groups, tmp_path):
    """With ticks of 10 ms a quota of 4 ms of 20 is exceeded by 6, and then waited for: 20 % all the same."""
    path = tmp_path / "w.toml"
    path.write_text(
        HEAD.replace('tick = "1ms"', 'tick = "10ms"') + group("a", "4ms", period="20ms") + task("x", "a")
    )
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": groups})
    assert result.tasks["run_ns"].sum() == pytest.approx(400_000_000, abs=10_000_000)


@in_each_mode
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # Of the 50 ms until 1.05 s it has had 20; the new quota is there at once, and its periods begin.
        ("20ms", "40ms", 10 * 20 + 20 + 9 * 40 + 40),
        ("40ms", "20ms", 10 * 40 + 40 + 9 * 20 + 20),
        ("20ms", "200ms", 10 * 20 + 20 + 950),
        ("", "20ms", 1050 + 9 * 20 + 20),
    ],
    ids=["more", "less", "no limit", "first"],
)
def test_a_quota_that_changes(policy, groups, before, after, expected, tmp_path):
    text = group("a", before) + task("x", "a", 2) + quota_event("a", "1050ms", after)
    assert run_ms(text, policy, groups, tmp_path) == {"x": pytest.approx(expected, abs=1)}


@in_each_mode
def test_a_throttled_task_that_moves_runs_at_once(policy, groups, tmp_path):
    """`m` uses up the budget, moves itself, and runs on; `x` waits for the next period."""
    text = (
        group("a", "20ms") + group("b")
        + task("m", "a", phases='{run = "19ms"}, {join = "b"}, {run = "200ms"}')
        + task("x", "a", phases='{sleep = "19ms"}, {run = "21ms"}')
    )  # fmt: skip
    tasks = {row["name"]: row for row in result_of(text, policy, groups, tmp_path).tasks.to_dicts()}
    assert tasks["m"]["run_ns"] == 219_000_000
    assert tasks["x"]["run_ns"] == 21_000_000


@in_each_mode
def test_tasks_that_sleep_in_a_throttled_group_wake_up_into_the_next_period(policy, groups, tmp_path):
    """The hog uses up 20 ms; a sleeper of it that wakes up at 50 ms runs at 100 ms, and one outside at once."""
    once = '{sleep = "50ms"}, {run = "1ms"}'
    late = 'arrival = "1ms"'
    text = (
        group("a", "20ms") + task("s", "a", phases=once) + task("t", phases=once) + task("h", "a", more=late)
    )
    tasks = {row["name"]: row for row in result_of(text, policy, groups, tmp_path).tasks.to_dicts()}
    assert tasks["t"]["wait_ns_max"] == 0
    # Of credit's slices of 30 ms the hog's first one uses up the next budget, too.
    assert 50_000_000 <= tasks["s"]["wait_ns_max"] <= (150_000_000 if policy == "credit" else 53_000_000)
    assert tasks["s"]["run_ns"] == 1_000_000


@in_each_mode
def test_what_happens_to_a_task_that_is_set_aside_does_not_lose_it(policy, groups, tmp_path):
    """It gets other CPUs and another weight while its group is throttled, and ends all the same."""
    text = (
        group("a", "10ms") + task("x", "a", 3, '{run = "40ms"}')
        + task("c", phases='{sleep = "30ms"}, {change = {task = "x", affinity = [1]}}, {sleep = "200ms"}, {change = {task = "x", nice = 5}}')
    )  # fmt: skip
    tasks = result_of(text, policy, groups, tmp_path, cpus=2).tasks
    assert tasks.filter(pl.col("name").str.starts_with("x"))["run_ns"].to_list() == [40_000_000] * 3


@in_each_mode
def test_a_burst_keeps_what_was_left(policy, groups, tmp_path):
    """It sleeps for 5 periods: then it has its quota and the burst, and after that its quota. No workload has a burst."""
    include = "#include <scx/common.bpf.h>\n"
    source = find_policy(policy).read_text()
    assert source.count(include) == 1
    mine = tmp_path / f"{policy}.bpf.c"
    mine.write_text(source.replace(include, include + "#define bw_burst_us bw_burst_us + 15000\n"))
    path = tmp_path / "w.toml"
    path.write_text(HEAD + group("a", "20ms") + task("x", "a", phases='{sleep = "550ms"}, {run = "10s"}'))
    result = schedlab.run(str(path), str(mine), set={f"{policy}.groups": groups})
    assert result.tasks["run_ns"].to_list() == [(35 + 14 * 20) * 1_000_000]


@pytest.mark.parametrize(("policy", "groups"), MODES)
def test_check_finds_no_lost_task(policy, groups, tmp_path):
    """More tasks than CPUs, that sleep, in nested groups, one of which gets another quota now and then."""
    text = group("a", "30ms", period="50ms") + group("b", "5ms", "a", "20ms") + group("c", parent="a")
    text += task("x", "b", 4, '{loop = 20, do = [{run = "3ms"}, {sleep = "2ms"}]}')
    text += task("y", "c", 2, '{run = "100ms"}') + task(
        "z", count=2, phases='{loop = 20, do = [{run = "2ms"}, {sleep = "5ms"}]}'
    )
    text += "".join(
        quota_event("b", f"{at}ms", quota) for at, quota in ((33, "1ms"), (71, "20ms"), (200, "5ms"))
    )
    path = tmp_path / "w.toml"
    path.write_text(HEAD.replace("2s", "20s") + text)
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": groups}, cpus=3)
    assert result.runs["consistency"].to_list() == ["ok"]
    assert result.tasks["run_ns"].sum() == 4 * 60_000_000 + 2 * 100_000_000 + 2 * 40_000_000


@pytest.mark.parametrize(("policy", "groups"), MODES)
def test_user_threads_have_no_more_than_their_quota(policy, groups, tmp_path, build):
    """Whatever others take of the CPU: of as many budgets as begin in that time, and a tick."""
    text = HEAD.replace("2s", "1s") + group("a", "20ms") + task("x", "a", 2)
    program = compile_workload(parse_workload(text, name="w.toml"), seed=0)
    (tmp_path / "program").write_bytes(program.data)
    built = build_policy(load_policy(policy), {"groups": {"flat": 1, "tree": 2}[groups]})
    job = Job(
        label=policy, policy=built, program=tmp_path / "program", records=tmp_path / "records", n_cpus=1, seed=0, tick_ns=1_000_000
    )  # fmt: skip
    outcome = open_host("uthreads").session(timeout_seconds=60).run(job)
    assert outcome.error is None
    records = read_records(job.records)
    busy_ns = compute_metrics(Timeline(records)).run["busy_ns"]
    n_budgets = records.end_ns // 100_000_000 + 2
    assert 0 < busy_ns <= 20_000_000 * n_budgets < records.end_ns


def test_a_policy_without_quotas_says_so(tmp_path):
    def shown(*words: str) -> str:
        done = CliRunner().invoke(
            app, ["run", str(path), *words], env={"COLUMNS": "80"}, catch_exceptions=False
        )
        assert done.exit_code == 0
        return " ".join(done.output.split())

    path = tmp_path / "w.toml"
    path.write_text(HEAD + group("a") + task("x", "a") + quota_event("a", "1s", "20ms"))
    out = ("--out", str(tmp_path / "out"))
    text = shown("--policy", "fifo,cfs", *out)
    assert (
        "under fifo the quotas of this workload's groups have no effect: it has no ops.cgroup_set_bandwidth"
        in text
    )
    assert (
        "under cfs with groups=none the quotas of this workload's groups have no effect; --set cfs.groups=flat keeps them"
        in text
    )
    assert "no effect" not in shown("--policy", "cfs", "--set", "cfs.groups=flat", *out)
    path.write_text(HEAD + group("a") + task("x", "a"))
    assert "no effect" not in shown("--policy", "fifo", *out)
