# SPDX-License-Identifier: MIT
"""Metrics: hand-computed schedules, a naive second implementation, and the dictionary."""

from __future__ import annotations

import math
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from python.record_files import timeline_of
from python.reference_scheduler import schedule, work_of
from schedlab.errors import NotFoundError
from schedlab.metrics import consistency, fairness
from schedlab.metrics.dictionary import DICTIONARY, compute_metrics, find_metric
from schedlab.metrics.fairness import deserved_ns, jain
from schedlab.metrics.tables import metrics_table, tasks_table
from schedlab.metrics.timeline import stable_order
from schedlab.records.file import Kind, Overhead, Stop

MS = 1_000_000
#: Silberschatz-like example: A, B, C, D arrive together.
FOUR = [(0, [("run", 5 * MS)]), (0, [("run", 3 * MS)]), (0, [("run", 1 * MS)]), (0, [("run", 4 * MS)])]


def metrics_of(tasks, *, n_cpus=1, weight=None, **options):
    events, end_ns = schedule(tasks, n_cpus=n_cpus, **options)
    return compute_metrics(timeline_of(events, n_cpus=n_cpus, end_ns=end_ns), weight=weight)


def test_unknown_metric_is_refused_with_the_nearest_name():
    with pytest.raises(NotFoundError, match="unknown metric 'turnaround_mena'.*turnaround_ns_mean"):
        find_metric("turnaround_mena")


def test_dictionary_is_complete():
    metrics = metrics_of(FOUR)
    run_level = {name for name, metric in DICTIONARY.items() if metric.level == "run"}
    assert set(metrics.run) == run_level
    task_level = {"task_" + name for name in metrics.tasks if name != "task"}
    assert task_level == {name for name, m in DICTIONARY.items() if m.level == "task"}
    cpu_level = {"cpu_" + name for name in metrics.cpus if name != "cpu"}
    assert cpu_level == {name for name, m in DICTIONARY.items() if m.level == "cpu"}
    for metric in DICTIONARY.values():
        assert metric.direction in ("lower", "higher", "none")
        assert metric.unit in ("ns", "1", "1/s", "J")
        assert ("ns" in metric.name.split("_")) == (metric.unit == "ns")


def test_round_robin_by_hand():
    # 2 ms each: A 0-2, B 2-4, C 4-5, D 5-7, A 7-9, B 9-10, D 10-12, A 12-13.
    metrics = metrics_of(FOUR, slice_ns=2 * MS)
    assert metrics.tasks["turnaround_ns"].tolist() == [13 * MS, 10 * MS, 5 * MS, 12 * MS]
    assert metrics.tasks["wait_ns"].tolist() == [8 * MS, 7 * MS, 4 * MS, 8 * MS]
    assert metrics.tasks["response_ns"].tolist() == [0, 2 * MS, 4 * MS, 5 * MS]
    assert metrics.tasks["wait_ns_max"].tolist() == [5 * MS, 5 * MS, 4 * MS, 5 * MS]
    assert metrics.tasks["switches_involuntary"].tolist() == [2, 1, 0, 1]
    run = metrics.run
    assert run["turnaround_ns_mean"] == 10 * MS
    assert run["wait_ns_mean"] == 6.75 * MS
    assert run["makespan_ns"] == 13 * MS
    assert run["starvation_ns"] == 5 * MS
    assert run["throughput_per_s"] == pytest.approx(4 / 0.013)
    assert run["cpu_utilisation"] == 1
    assert run["switches"] == 8
    assert run["switches_voluntary"] == 0
    assert run["response_ns_iqr"] == 4 * MS - 0
    assert run["wakeup_ns_p99"] is None
    assert run["slowdown_mean"] == pytest.approx((13 / 5 + 10 / 3 + 5 / 1 + 12 / 4) / 4)


def test_first_in_first_out_by_hand():
    metrics = metrics_of(FOUR)
    assert metrics.tasks["turnaround_ns"].tolist() == [5 * MS, 8 * MS, 9 * MS, 13 * MS]
    x = np.array([5, 8, 9, 13])
    assert metrics.run["fairness_turnaround_jain"] == pytest.approx(x.sum() ** 2 / (4 * (x**2).sum()))


def test_sleepers_by_hand():
    # 1 runs 0-2, sleeps 2-5, finds 2 running until 6, runs 6-7.
    tasks = [(0, [("run", 2), ("sleep", 3), ("run", 1)]), (0, [("run", 4)])]
    metrics = metrics_of(tasks)
    assert metrics.tasks["blocked_ns"].tolist() == [3, 0]
    assert metrics.tasks["wakeup_ns_max"].tolist() == [1, -1]
    assert metrics.tasks["wait_ns"].tolist() == [1, 2]
    assert metrics.tasks["switches_voluntary"].tolist() == [1, 0]
    assert metrics.run["wakeup_ns_max"] == 1
    assert metrics.run["wakeups"] == 1
    assert metrics.run["slowdown_max"] == pytest.approx(6 / 4)


def test_a_slice_that_goes_on_is_no_switch():
    metrics = metrics_of([(0, [("run", 10)])], slice_ns=2)
    assert metrics.run["switches"] == 1
    assert metrics.run["switches_involuntary"] == 0


def test_the_makespan_ends_with_the_last_task():
    """From 3 to 9; the run goes on until 20, where no task is left."""
    events = [(3, 1, 0, Kind.ARRIVE, 0, 0), (4, 1, 0, Kind.RUN, 0, 0), (9, 1, 0, Kind.STOP, Stop.EXITED, 5)]
    run = compute_metrics(timeline_of(events, end_ns=20)).run
    assert (run["makespan_ns"], run["elapsed_ns"]) == (6, 20)
    assert run["throughput_per_s"] == pytest.approx(1e9 / 6)
    open_end = compute_metrics(timeline_of([*events, (10, 2, 0, Kind.ARRIVE, 0, 0)], end_ns=20)).run
    assert open_end["makespan_ns"] == 17


def test_a_yield_is_a_voluntary_switch_only_where_another_task_runs_next():
    """1 yields at 4 and goes on at once, yields at 8 for 2, and is preempted at 12 for nobody."""
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (4, 1, 0, Kind.STOP, Stop.YIELDED, 4),
        (4, 1, 0, Kind.RUN, 0, 0),
        (8, 1, 0, Kind.STOP, Stop.YIELDED, 4),
        (8, 2, 0, Kind.RUN, 0, 0),
        (10, 2, 0, Kind.STOP, Stop.EXITED, 2),
        (10, 1, 0, Kind.RUN, 0, 0),
        (12, 1, 0, Kind.STOP, Stop.PREEMPTED, 2),
        (12, 1, 0, Kind.RUN, 0, 0),
        (15, 1, 0, Kind.STOP, Stop.EXITED, 3),
    ]
    metrics = compute_metrics(timeline_of(events))
    assert metrics.run["switches"] == 3
    assert (metrics.run["switches_voluntary"], metrics.run["switches_involuntary"]) == (1, 0)
    assert metrics.tasks["switches_voluntary"].tolist() == [1, 0]
    assert metrics.tasks["switches_involuntary"].tolist() == [0, 0]


def test_the_interquartile_range_is_of_the_quarters():
    """Responses of 0 to 9 ms: the ranks 3 and 8 of 10, so 7 - 2."""
    run = metrics_of([(0, [("run", MS)])] * 10).run
    assert run["response_ns_iqr"] == 5 * MS
    assert [run[f"response_ns_{s}"] for s in ("mean", "p50", "p95", "p99", "max")] == [
        4.5 * MS,
        4 * MS,
        9 * MS,
        9 * MS,
        9 * MS,
    ]


def test_a_wake_that_completes_an_arrival_is_no_wakeup():
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.WAKE, 0, 0),
        (4, 1, 0, Kind.RUN, 0, 0),
        (6, 1, 0, Kind.STOP, Stop.EXITED, 2),
    ]
    metrics = compute_metrics(timeline_of(events))
    assert metrics.run["wakeups"] == 0
    assert metrics.run["response_ns_max"] == 4
    assert metrics.tasks["wait_ns"].tolist() == [4]


def test_overhead_is_neither_busy_nor_idle():
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (1, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 1),
        (1, 1, 0, Kind.RUN, 0, 0),
        (6, 0, 0, Kind.OVERHEAD, Overhead.TICK, 2),
        (8, 1, 0, Kind.STOP, Stop.EXITED, 5),
    ]
    run = compute_metrics(timeline_of(events, end_ns=20)).run
    assert (run["busy_ns"], run["overhead_ns"], run["idle_ns"]) == (5, 3, 12)
    assert run["overhead_share"] == pytest.approx(3 / 20)
    assert run["cpu_utilisation"] == pytest.approx(5 / 20)


def test_what_others_took_is_no_time_in_the_scheduler():
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (1, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 1),
        (1, 1, 0, Kind.RUN, 0, 0),
        (9, 0, 0, Kind.OVERHEAD, Overhead.STOLEN, 6),
        (9, 1, 0, Kind.STOP, Stop.EXITED, 2),
    ]
    metrics = compute_metrics(timeline_of(events, end_ns=20))
    run = metrics.run
    assert (run["busy_ns"], run["overhead_ns"], run["taken_ns"], run["idle_ns"]) == (2, 1, 6, 11)
    assert run["overhead_share"] == pytest.approx(1 / 20)
    assert metrics.cpus["taken_ns"].tolist() == [6]


def test_the_horizon_leaves_turnaround_open():
    metrics = metrics_of([(0, [("run", 10)]), (0, [("run", 10)])], horizon_ns=15)
    assert metrics.run["tasks_ended"] == 1
    assert metrics.tasks["end_ns"].tolist() == [10, -1]
    assert metrics.run["turnaround_ns_max"] == 10
    assert tasks_table(metrics)["end_ns"].to_list() == [10, None]


def test_a_task_that_never_runs_starves():
    events = [(3, 7, 0, Kind.ARRIVE, 0, 0)]
    metrics = compute_metrics(timeline_of(events, end_ns=103))
    assert metrics.run["starvation_ns"] == 100
    assert metrics.run["response_ns_mean"] is None
    assert math.isnan(metrics.tasks["share"][0]) or metrics.tasks["share"][0] == 0


def test_nothing_at_all():
    run = compute_metrics(timeline_of([], end_ns=5)).run
    assert run["tasks"] == 0
    assert run["idle_ns"] == 5
    assert run["fairness_jain"] is None


# ---- share deserved ---------------------------------------------------------


def test_alternating_equals_deserve_and_get_half():
    metrics = metrics_of([(0, [("run", 1000)]), (0, [("run", 1000)])], slice_ns=1)
    assert metrics.tasks["share"] == pytest.approx([1, 1], rel=0.01)
    assert metrics.run["fairness_jain"] == pytest.approx(1, abs=1e-4)


def test_queueing_is_unfair_by_hand():
    # 1 has the CPU for 10 and deserved 5; 2 then has it for 10 and deserved 5 + 10.
    metrics = metrics_of([(0, [("run", 10)]), (0, [("run", 10)])])
    assert metrics.tasks["deserved_ns"] == pytest.approx([5, 15])
    x = np.array([10 / 5, 10 / 15])
    assert metrics.run["fairness_jain"] == pytest.approx(x.sum() ** 2 / (2 * (x**2).sum()))


@pytest.mark.parametrize(
    ("weight", "n_cpus", "expected"),
    [
        ([100, 300], 1, [25, 75]),
        # The heavy one can use one CPU only; the light ones share the other.
        ([1000, 10, 10], 2, [100, 50, 50]),
        # First the heaviest is capped, then the next, which changes the rest.
        ([1000, 500, 10, 10], 3, [100, 100, 50, 50]),
        ([100, 200], 4, [100, 100]),
        ([400, 200, 200, 100, 100], 2, [80, 40, 40, 20, 20]),
    ],
)
def test_deserved_by_weight(weight, n_cpus, expected, monkeypatch):
    """Weights are grouped where there are more different ones than this."""
    monkeypatch.setattr(fairness, "CLASSES_MAX", len(set(weight)))
    events = [(0, pid, 0, Kind.ARRIVE, 0, 0) for pid in range(1, len(weight) + 1)]
    timeline = timeline_of(events, n_cpus=n_cpus, end_ns=100)
    assert deserved_ns(timeline, weight=weight) == pytest.approx(expected)


def naive_deserved(events, weight, n_cpus, end_ns):
    """Share out each stretch between two events by raising a common level."""
    wanting, deserved, last = set(), dict.fromkeys(range(1, len(weight) + 1), 0.0), 0
    for t_ns, task, _, kind, flags, _ in [*events, (end_ns, 0, 0, 0, 0, 0)]:
        rates, free = {}, float(n_cpus)
        pool = sorted(wanting, key=lambda pid: -weight[pid - 1])
        for position, pid in enumerate(pool):
            rest = sum(weight[other - 1] for other in pool[position:])
            rates[pid] = min(1.0, free * weight[pid - 1] / rest)
            free -= rates[pid]
        for pid, rate in rates.items():
            deserved[pid] += rate * (t_ns - last)
        last = t_ns
        if kind in (Kind.ARRIVE, Kind.WAKE):
            wanting.add(task)
        elif kind == Kind.STOP and flags in (Stop.BLOCKED, Stop.EXITED):
            wanting.remove(task)
    return [deserved[pid] for pid in sorted(deserved)]


def task_sets(max_tasks=6):
    run = st.tuples(st.just("run"), st.integers(1, 30))
    sleep = st.tuples(st.just("sleep"), st.integers(1, 30))
    phases = st.lists(st.tuples(run, sleep), max_size=3).map(lambda p: [x for two in p for x in two])
    task = st.tuples(st.integers(0, 40), st.tuples(phases, run).map(lambda p: [*p[0], p[1]]))
    return st.lists(task, min_size=1, max_size=max_tasks)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), tasks=task_sets(), n_cpus=st.integers(1, 3))
def test_deserved_agrees_with_the_naive_way(data, tasks, n_cpus):
    weight = data.draw(st.lists(st.integers(1, 10000), min_size=len(tasks), max_size=len(tasks)))
    events, end_ns = schedule(tasks, n_cpus=n_cpus, slice_ns=7)
    timeline = timeline_of(events, n_cpus=n_cpus, end_ns=end_ns)
    expected = naive_deserved(events, weight, n_cpus, end_ns)
    assert deserved_ns(timeline, weight=weight) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_very_many_weights_are_merged_closely():
    n = 2000
    weight = np.arange(1, n + 1)
    events = [(0, pid, 0, Kind.ARRIVE, 0, 0) for pid in range(1, n + 1)]
    timeline = timeline_of(events, n_cpus=2, end_ns=10**9)
    result = deserved_ns(timeline, weight=weight)
    assert result == pytest.approx(2 * 10**9 * weight / weight.sum(), rel=0.05)


def test_jain_of_nothing():
    assert jain(np.zeros(0)) is None


# ---- a naive second implementation ------------------------------------------


def naive_metrics(events, end_ns):
    """Walk the events once, keeping what each task is doing."""
    state, since, facts = {}, {}, {}
    latencies = []
    for t_ns, task, _, kind, flags, arg in events:
        if kind == Kind.ARRIVE:
            facts[task] = {
                "arrival": t_ns,
                "wait": 0,
                "longest": 0,
                "run": 0,
                "blocked": 0,
                "first": None,
                "end": None,
            }
        fact = facts[task]
        if kind == Kind.RUN:
            waited = t_ns - since[task]
            fact["wait"] += waited
            fact["longest"] = max(fact["longest"], waited)
            if state[task] == "woken":
                latencies.append(waited)
            if fact["first"] is None:
                fact["first"] = t_ns
            state[task] = "running"
        elif kind == Kind.WAKE:
            fact["blocked"] += t_ns - since[task]
            state[task] = "woken"
        elif kind == Kind.STOP:
            fact["run"] += arg
            state[task] = {Stop.BLOCKED: "blocked", Stop.EXITED: "ended"}.get(flags, "waiting")
            if flags == Stop.EXITED:
                fact["end"] = t_ns
        elif kind == Kind.ARRIVE:
            state[task] = "waiting"
        if kind != Kind.MIGRATE:
            since[task] = t_ns
    return facts, latencies


@settings(max_examples=80, deadline=None)
@given(tasks=task_sets(), n_cpus=st.integers(1, 3), slice_ns=st.integers(1, 40))
def test_tasks_agree_with_the_naive_way(tasks, n_cpus, slice_ns):
    events, end_ns = schedule(tasks, n_cpus=n_cpus, slice_ns=slice_ns)
    metrics = compute_metrics(timeline_of(events, n_cpus=n_cpus, end_ns=end_ns))
    facts, latencies = naive_metrics(events, end_ns)
    columns = metrics.tasks
    for row, task in enumerate(columns["task"].tolist()):
        fact = facts[task]
        assert columns["arrival_ns"][row] == fact["arrival"]
        assert columns["wait_ns"][row] == fact["wait"]
        assert columns["wait_ns_max"][row] == fact["longest"]
        assert columns["run_ns"][row] == fact["run"] == work_of(tasks)[task - 1]
        assert columns["blocked_ns"][row] == fact["blocked"]
        assert columns["first_run_ns"][row] == fact["first"]
        assert columns["turnaround_ns"][row] == fact["end"] - fact["arrival"]
    run = metrics.run
    assert run["wakeups"] == len(latencies)
    if latencies:
        latencies.sort()
        assert run["wakeup_ns_max"] == latencies[-1]
        assert run["wakeup_ns_mean"] == pytest.approx(sum(latencies) / len(latencies))
        assert run["wakeup_ns_p95"] == latencies[math.ceil(0.95 * len(latencies)) - 1]
    assert run["busy_ns"] + run["idle_ns"] + run["overhead_ns"] + run["taken_ns"] == n_cpus * end_ns
    assert run["migrations"] == sum(event[3] == Kind.MIGRATE for event in events)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_stable_order_is_numpys(keys):
    keys = np.array(keys, np.uint32)
    assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_tables_say_what_the_metrics_say():
    metrics = metrics_of(FOUR, slice_ns=2 * MS)
    tasks = tasks_table(metrics, names=["A", "B", "C", "D"], classes=[0, 1, 2, 3])
    assert tasks["name"].to_list() == ["A", "B", "C", "D"]
    assert tasks["turnaround_ns"].to_list() == [13 * MS, 10 * MS, 5 * MS, 12 * MS]
    table = metrics_table(metrics)
    row = table.filter(table["metric"] == "turnaround_ns_mean").row(0, named=True)
    assert (row["value"], row["unit"], row["cpu"]) == (10 * MS, "ns", None)
    assert table.filter(table["metric"] == "cpu_busy_ns")["value"].to_list() == [13 * MS]


def test_synthetic_benchmark_records_are_lawful(root):
    spec = spec_from_file_location("synthetic", root / "bench" / "synthetic.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    round_robin_records = module.round_robin_records
    with pytest.raises(ValueError, match="n_tasks=4"):
        round_robin_records(100, n_cpus=4, n_tasks=4)
    events = round_robin_records(5000, n_cpus=4, n_tasks=40).tolist()
    timeline = timeline_of(events, n_cpus=4)
    expected = consistency.Expectations(horizon_ns=1, work_conserving=True)
    assert consistency.check(timeline, expected) == "ok"
