# SPDX-License-Identifier: MIT
"""What if: the replay is held against the recording before anything is ranked or advised."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from linux import event_files as ev
from schedlab.cli.app import app
from schedlab.errors import NotFoundError, UsageError
from schedlab.measure import whatif
from schedlab.measure.confirm import class_of, recorded_command
from schedlab.measure.fidelity import TOO_FAR, grade_of, recorded_under, with_slice
from schedlab.measure.forecast import around, forecast
from schedlab.measure.whatif import (
    _advise,
    _hold_there,
    _split,
    grades_of,
    open_subject,
    read_changes,
    read_cpus,
    read_metrics,
    waits_of,
    what_if,
)
from schedlab.model import Execution
from schedlab.plots.gantt import BLOCKED, RAN, WAITED, Slices
from schedlab.program import layout
from schedlab.program.compiler import compile_workload, read_program
from schedlab.program.vary import joined
from schedlab.records.file import Call
from schedlab.report.over_time import longest_waits, waited_ns, window_of
from schedlab.report.what_if import confirmed_sentence, fidelity_sentence, forecast_rows, measured_sentence
from schedlab.runs.plan import Plan
from schedlab.runs.run import RunSet, make_plan, run_plan
from schedlab.workload.find import load_workload

TRACE = Path(__file__).resolve().parent / "traces" / "trace-cmd.txt"
MS = 1_000_000


@pytest.fixture(scope="module")
def recording(simulator, tmp_path_factory):
    """A run of `mixed` under `rr`, which stands for a recording: its replay is known to be exact."""
    out = tmp_path_factory.mktemp("recorded")
    run_plan(make_plan(["mixed"], ["rr"], out, settings=["rr.slice_ns=20ms"]))
    return out / "mixed" / "rr" / "seed-1"


@pytest.fixture
def copy(recording, tmp_path):
    """The recording, of which a test may change what it says."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in recording.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    program = next((recording.parents[1] / "programs").iterdir())
    (folder / "programs").mkdir()
    (folder / "programs" / program.name).write_bytes(program.read_bytes())
    return folder


def change(folder: Path, **metrics: float) -> None:
    run = json.loads((folder / "run.json").read_text())
    run["metrics"] |= metrics
    (folder / "run.json").write_text(json.dumps(run))


def ask(folder: Path, policies, out: Path, **more):
    return what_if(open_subject(str(folder), out), policies, out, **{"n_seeds": 3} | more)[0]


# ---- the program varies with the seed --------------------------------------------


def test_lengths_vary_within_their_share_and_seed_1_is_as_recorded(recording, tmp_path):
    workload = open_subject(str(recording), tmp_path).workload
    first, again, other, third = (compile_workload(workload, seed=seed) for seed in (1, 2, 2, 3))
    assert first.data == workload.program
    assert again.data == other.data != third.data, "a seed gives the same program each time"
    verbs = [layout.VERB_NUMBER[name] for name in ("run", "sleep")]
    is_length = np.isin(first.ops["verb"], verbs) & (first.ops["b"] < 1 << 59)
    is_long = is_length & (first.ops["b"] > 1000)
    ratio = again.ops["b"][is_long] / first.ops["b"][is_long]
    assert 0.969 < ratio.min() < 0.98 and 1.02 < ratio.max() < 1.031
    assert (again.ops["b"][~is_length] == first.ops["b"][~is_length]).all(), "all else is left alone"
    assert compile_workload(replace(workload, vary_share=0.0), seed=2).data == workload.program


#: Everything of a program that names another part of it.
EVERYTHING = """
[workload]
title = "Everything"
[[group]]
name = "all"
[[group]]
name = "web"
parent = "all"
weight = 300
[[group]]
name = "batch"
[[lock]]
name = "m"
[[pipe]]
name = "p"
capacity = 64
[[condition]]
name = "c"
[[task]]
name = "parent"
count = 2
group = "web"
affinity = [0]
phases = [{lock = "m"}, {await = {condition = "c", lock = "m"}}, {unlock = "m"}, {spawn = "child"}, {join = "batch"}, {recv = "p"}, "wait"]
[[task]]
name = "child"
count = 2
arrival = "spawned"
phases = [{loop = 3, do = [{run = "exp(1ms)"}]}, {send = "p"}]
[[task]]
name = "bell"
arrival = "1ms"
phases = [{sleep = "100ms"}, {signal = {condition = "c", all = true}}]
"""


@pytest.mark.parametrize("name", ["mixed", "classics/requests", "everything.toml"])
def test_programs_are_joined_with_objects_and_children_of_their_own(simulator, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("everything.toml").write_text(EVERYTHING)
    one = compile_workload(load_workload(name), seed=3)
    assert joined([one]).data == one.data
    two = joined([one, one])
    n, rows = one.n_tasks, two.task_rows
    assert two.work_ns().tolist() == 2 * one.work_ns().tolist() and [*two.names.values()] == 2 * [
        *one.names.values()
    ]
    assert len(two.objects) == 2 * len(one.objects)
    has_parent = rows["parent"][n:] != layout.NONE
    assert (rows["parent"][n:][has_parent] >= n).all()
    verbs = [layout.VERB_NUMBER[verb] for verb in ("send", "recv", "lock", "await", "join")]
    on_objects = np.isin(one.ops["verb"], verbs)
    copied = two.ops["a"][len(one.ops) :]
    assert (copied[on_objects] == one.ops["a"][on_objects] + len(one.objects)).all()
    whole = replace(load_workload(name), copies=2, name="twice", cpus=4)
    runs = run_plan(make_plan([whole], ["fifo"], tmp_path / "out")).runs
    assert [run["status"] for run in runs] == ["ok"], "each copy finds its own locks, pipes and children"


def test_a_copy_of_a_recording_is_no_echo_of_it(recording, tmp_path):
    workload = open_subject(str(recording), tmp_path).workload
    twice = compile_workload(replace(workload, copies=2), seed=1)
    n = len(twice.ops) // 2
    first, second = twice.ops["b"][:n], twice.ops["b"][n:]
    assert (first == read_program(workload.program).ops["b"]).all()
    assert (first != second).any() and twice.n_tasks == 2 * compile_workload(workload, seed=1).n_tasks


def test_a_recording_that_was_cut_off_is_given_time_for_more_load(simulator, tmp_path):
    """Its tasks had not ended; those of a workload file that never ends do as much more as they have time for."""
    subject = open_subject(str(TRACE), tmp_path)
    times = [
        compile_workload(replace(subject.workload, copies=n), seed=1).header["horizon_ns"] for n in (1, 3)
    ]
    assert times[0] > 0 and times[1] == 3 * times[0]
    found, _ = what_if(subject, ["rr"], tmp_path / "out", metrics=["wakeup_p99"], load="2", n_seeds=1)
    assert ("eevdf", "at 2 times the load") in {(row["policy"], row["change"]) for row in found["ranking"]}
    assert any(
        re.search("as many times its time: makespan says only that", text) for text in found["warnings"]
    )
    (tmp_path / "w.toml").write_text(EVERYTHING.replace("[[group]]", 'horizon = "1s"\n[[group]]', 1))
    endless = replace(load_workload(str(tmp_path / "w.toml")), copies=3)
    assert compile_workload(endless, seed=1).header["horizon_ns"] == 10**9


def test_a_weight_is_the_nearest_that_a_nice_value_gives_and_a_cgroup_has_any(tmp_path):
    (tmp_path / "w.toml").write_text(EVERYTHING)
    changes = read_changes(load_workload(str(tmp_path / "w.toml")), "", "", "child=2,web=2").values()
    plain, child, web = (compile_workload(workload, seed=1) for _, workload in changes)
    rows = child.task_rows
    weights = {*zip(child.names.values(), rows["nice"].tolist(), rows["weight"].tolist(), strict=True)}
    assert weights == {("parent", 0, 100), ("child", -3, 194), ("bell", 0, 100)}
    assert plain.data != web.data and (web.task_rows["weight"] == plain.task_rows["weight"]).all()
    assert sorted(web.values[web.values != plain.values]) == [600]
    assert [words for words, _ in changes] == [
        "",
        *(f"with 2 times the weight of {n}" for n in ("child", "web")),
    ]


# ---- fidelity --------------------------------------------------------------------


@pytest.mark.parametrize("recorded, replayed, is_count, grade", [
    (100, 110, False, "good"), (100, 90, False, "good"), (100, 111, False, "rough"), (100, 130, False, "rough"),
    (100, 131, False, TOO_FAR), (100, 0, False, TOO_FAR), (0, 5, False, TOO_FAR), (0, 0, False, "good"),
    (0, 2, True, "good"), (0, 3, True, TOO_FAR),
])  # fmt: skip
def test_grades(recorded, replayed, is_count, grade):
    assert grade_of(recorded, replayed, is_count=is_count) == grade


@pytest.mark.parametrize("given, policy, settings", [
    ("SCHED_OTHER", "eevdf", ("eevdf.slice_ns=2100us",)),
    ("SCHED_BATCH", "eevdf", ("eevdf.slice_ns=2100us", "eevdf.preempt=batch")),
    ("SCHED_FIFO:10", "rt_fifo", ()), ("SCHED_RR:10", "rt_rr", ()), ("Linux", "eevdf", ("eevdf.slice_ns=2100us",)),
])  # fmt: skip
def test_a_class_of_linux_is_replayed_under_the_policy_that_stands_for_it(given, policy, settings):
    under = recorded_under({"host": "linux", "policy": given, "environment": {"cpus": 4}})
    assert (under.policy, under.settings, under.note) == (policy, settings, "")


def test_a_replay_has_the_recorded_slice_unless_another_is_set():
    run = {"host": "linux", "recording": {"slice_ns": 1_400_000}}
    assert with_slice([], ["rr", "eevdf"], run) == ["eevdf.slice_ns=1400us"]
    assert with_slice(["eevdf.slice_ns=1ms"], ["eevdf"], run) == ["eevdf.slice_ns=1ms"]
    assert with_slice([], ["rr"], run) == with_slice([], ["eevdf"], run | {"host": "sim"}) == []


@pytest.mark.parametrize(
    "load, busy_s, is_group", [(2.1, 0, True), (1.9, 0, False), (5.0, 30, True), (3.9, 120, False)]
)
def test_ticks_are_those_of_a_group_beside_others(load, busy_s, is_group):
    """On two CPUs more than two tasks of other programs are runnable: load of which 120 s in a minute are two."""
    metrics = {"elapsed_ns": 60 * 10**9, "busy_ns": busy_s * 10**9, "wait_ns_mean": 0.0, "tasks": 1}
    run = {"host": "linux", "environment": {"cpus": 2, "load_1min": load}, "metrics": metrics}
    assert (with_slice([], ["eevdf"], run)[1:] == ["eevdf.tick=group"]) == is_group
    assert with_slice(["eevdf.tick=slice"], ["eevdf"], run)[::-1] == [
        "eevdf.slice_ns=1400us",
        "eevdf.tick=slice",
    ]


def test_what_no_policy_stands_for_is_said():
    run = {"host": "linux", "policy": "SCHED_DEADLINE:1ms/2ms/2ms", "cpus": 1}
    assert recorded_under(run).note == "no policy stands for SCHED_DEADLINE"
    run = {"host": "linux", "policy": "Linux", "cpus": 1, "tasks": [{"priority": 120}, {"priority": 89}]}
    assert recorded_under(run).note.startswith("1 of 2 recorded tasks were real-time")


def test_a_replay_under_its_own_policy_is_exact_and_its_knobs_are_kept(recording, tmp_path):
    found = ask(recording, ["fifo"], tmp_path)
    fidelity = found["fidelity"]
    assert "rr.slice_ns=20ms" in fidelity["knobs"]
    assert [row["metric"] for row in fidelity["rows"]][:2] == ["wakeup_ns_p99", "turnaround_ns_mean"]
    assert all(row["recorded"] == row["replayed"] for row in fidelity["rows"])
    assert {row["grade"] for row in fidelity["groups"]} == {"good"}
    assert fidelity["grade"] == "good" and found["baseline"] == "rr"


def test_where_the_replay_is_not_what_was_recorded_nothing_is_advised(copy, tmp_path):
    """The same question, the same ranking; but the recording says something else."""
    good = ask(copy, ["rr", "mlfq"], tmp_path / "a", metrics=["response_mean"])
    assert good["load"] == "sudo schedlab load mlfq" and good["winner"] == "mlfq", good["advice"]
    recorded = next(
        row["recorded"] for row in good["fidelity"]["rows"] if row["metric"] == "response_ns_mean"
    )
    change(copy, response_ns_mean=recorded * 2)
    bad = ask(copy, ["rr", "mlfq"], tmp_path / "b", metrics=["response_mean"])
    assert [row["policy"] for row in bad["ranking"]] == [row["policy"] for row in good["ranking"]]
    assert bad["fidelity"]["grade"] == TOO_FAR and bad["load"] is None
    assert "not to be trusted" in bad["advice"] and "off by -5" in bad["advice"]


def test_a_disturbed_recording_is_held_against_nothing(copy, tmp_path):
    run = json.loads((copy / "run.json").read_text())
    run["recording"] = {"disturbance": {"others_ns": 9 * MS, "lost_ns": 5 * MS, "steal_ns": 0, "share": 0.4}}
    (copy / "run.json").write_text(json.dumps(run))
    found = ask(copy, ["mlfq"], tmp_path, metrics=["response_mean"])
    assert found["fidelity"]["rows"] == [] and found["fidelity"]["grade"] == TOO_FAR
    assert found["load"] is None and "other programs" in found["advice"]


def test_clocks_that_differ_cost_the_grade_of_what_they_blur(copy, tmp_path):
    """The replay is exact; what is as long as the clocks are apart may be anything, what is much longer is not."""
    run = json.loads((copy / "run.json").read_text())
    response_ns = run["metrics"]["response_ns_mean"]
    run["recording"] = {"clocks_differ_ns": int(response_ns * 0.4)}
    (copy / "run.json").write_text(json.dumps(run))
    found = ask(copy, ["mlfq"], tmp_path, metrics=["response_mean"])
    grades = {row["metric"]: row["grade"] for row in found["fidelity"]["rows"]}
    assert grades["response_ns_mean"] == TOO_FAR and grades["switches_involuntary"] == "good"
    assert grades["makespan_ns"] == (
        "good" if response_ns * 0.4 <= 0.1 * run["metrics"]["makespan_ns"] else "rough"
    )
    assert found["load"] is None and re.search(
        "not to be trusted: off by .*, and clocks are", found["advice"]
    )
    assert "the clocks of its CPUs differ by" in fidelity_sentence(found)
    groups = {group["group"]: group["grade"] for group in found["fidelity"]["groups"]}
    assert TOO_FAR in groups.values() or "rough" in groups.values()


def test_a_replay_is_held_against_what_recording_it_would_have_measured(tmp_path):
    """Of each burst of 10 us, 3 us are what its recorder and 2 us what its system call's recording took."""
    events = [ev.event(ev.COST, 0, 0, ns, flags=which) for which, ns in enumerate((2000, 0, 3000, 0, 500, 0))]
    for t_ns in range(20_000, 1_520_000, 15_000):
        events += [ev.event(ev.WAKING, t_ns, 10), ev.event(ev.SWITCH, t_ns, 0, 10),
                   ev.event(ev.CALL, t_ns + 5000, 10, 3, flags=Call.READ), ev.event(ev.RETURN, t_ns + 7500, 10, 0, 1, flags=Call.READ),
                   ev.event(ev.SWITCH, t_ns + 10_000, 10, 0, ev.BLOCKED)]  # fmt: skip
    events[-1:] = [ev.event(ev.EXIT, t_ns + 10_000, 10), ev.event(ev.SWITCH, t_ns + 10_000, 10, 0, ev.DEAD)]
    file = ev.write(tmp_path / "x.slev", [*events, ev.event(ev.END, t_ns + 10_001)], is_all=True)
    subject = open_subject(str(file), tmp_path)
    found, _ = what_if(subject, ["eevdf"], tmp_path, metrics=["turnaround_ns_mean"], n_seeds=2)
    (row,) = [each for each in found["fidelity"]["rows"] if each["metric"] == "turnaround_ns_mean"]
    assert row["recorded"] == pytest.approx(row["replayed"], rel=0.005) and row["grade"] == "good"
    assert row["varied"] == pytest.approx(row["replayed"], rel=0.02)
    # Without a recorder it is faster, and that is what is predicted.
    (best,) = found["ranking"]
    assert best["metrics"]["turnaround_ns_mean"]["mean_b"] < 0.7 * row["recorded"]
    assert grades_of(subject, ["turnaround_ns_mean"], {}) == {"turnaround_ns_mean": "good"}


# ---- the ranking ------------------------------------------------------------------


def test_the_ranking_is_that_of_the_runs(recording, tmp_path):
    """Means and order are those of `schedlab run` on the same programs; the baseline is one of the rows."""
    found = ask(recording, ["fifo", "mlfq", "cfs"], tmp_path, metrics=["response_mean", "makespan"])
    runs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert len(runs) == 4 * 3
    means = {
        name: np.mean([run["metrics"]["response_ns_mean"] for run in runs if run["policy"] == name])
        for name in ("rr", "fifo", "mlfq", "cfs")
    }
    order = [row["policy"] for row in found["ranking"]]
    assert order == sorted(means, key=means.get)
    for row in found["ranking"]:
        entry = row["metrics"]["response_ns_mean"]
        assert entry["mean_b"] == pytest.approx(means[row["policy"]])
        assert entry["ratio"] == pytest.approx(means[row["policy"]] / means["rr"])
        assert row["is_baseline"] == (row["policy"] == "rr")
    assert list((tmp_path / "mixed-replayed").glob("*/seed-*")), (
        "the first seed's runs are there to be looked at"
    )
    assert not list((tmp_path / "mixed-replayed").glob("*/seed-2"))


def test_fewer_cpus_are_alternatives_too(simulator, tmp_path):
    found = ask("classics/requests", ["fifo", "rr"], tmp_path, cpus="1", metrics=["turnaround_mean"])
    own = load_workload("classics/requests").cpus
    assert own > 1 and found["cpus"] == own
    rows = {(row["policy"], row["cpus"]): row["metrics"]["turnaround_ns_mean"] for row in found["ranking"]}
    assert set(rows) == {(policy, cpus) for policy in ("fifo", "rr") for cpus in (own, 1)}
    assert rows["fifo", 1]["ratio"] > 1 and rows["fifo", own]["ratio"] == 1
    assert found["winner"] in ("fifo", "rr") and found["ranking"][0]["cpus"] == own


def test_more_load_and_another_weight_are_alternatives_too(recording, tmp_path):
    """Twice the work takes about twice as long; a heavier group waits less under a policy with weights."""
    found = ask(recording, ["eevdf"], tmp_path, load="2", weight="hog-small=8", metrics=["makespan"])
    rows = {(row["policy"], row["change"]): row for row in found["ranking"]}
    load, weight = "at 2 times the load", "with 8 times the weight of hog-small"
    assert set(rows) == {(policy, change) for policy in ("rr", "eevdf") for change in ("", load, weight)}
    assert 1.7 < rows["rr", load]["metrics"]["makespan_ns"]["ratio"] < 2.2
    waited = {
        change: {group["group"]: group["mean_b"] for group in rows["eevdf", change]["groups"]}
        for change in ("", weight)
    }
    assert waited[weight]["hog-small"] < waited[""]["hog-small"]
    assert found["winner"] in ("rr", "eevdf"), "what is advised is for the work as it is"


def test_the_best_is_run_again_with_seeds_that_have_not_chosen_it(recording, tmp_path):
    found = ask(recording, ["mlfq", "fifo"], tmp_path, metrics=["response_mean"])
    confirmed = found["confirmed"]
    assert (confirmed["policy"], confirmed["first_seed"], confirmed["seeds"]) == ("mlfq", 4, 10)
    workload = open_subject(str(recording), tmp_path).workload
    settings = ["rr.slice_ns=20ms"]
    runs = run_plan(
        make_plan([workload], ["rr", "mlfq"], tmp_path / "again", n_seeds=10, first_seed=4, settings=settings)
    ).runs
    for key, policy in (("mean_a", "rr"), ("mean_b", "mlfq")):
        mean = np.mean([run["metrics"]["response_ns_mean"] for run in runs if run["policy"] == policy])
        assert confirmed["metrics"]["response_ns_mean"][key] == pytest.approx(mean)
    assert confirmed_sentence(found).startswith("10 fresh seeds (4 to 13) say response_ns_mean -")
    assert found["load"] == "sudo schedlab load mlfq"


def test_the_longest_waits_are_found_once_and_summed_in_their_window():
    whole = [
        (1, 0, 10, WAITED),
        (1, 10, 20, RAN),
        (2, 0, 11, WAITED),
        (2, 40, 44, WAITED),
        (3, 60, 61, BLOCKED),
    ]
    pid, begin, end, state = np.array(whole).T
    slices = Slices(pid, begin, end, state, np.zeros(5, int), np.zeros(5, int), 61)
    assert longest_waits(slices, n_max=3) == [(2, 0, 11), (2, 40, 44)], (
        "one beside a longer one is seen with it"
    )
    assert longest_waits(slices, n_max=1) == [(2, 0, 11)]
    assert window_of(40, 44) == (38, 46) and window_of(0, 10) == (0, 15)
    assert [waited_ns(slices, *window) for window in ((0, 15), (5, 42), (20, 40))] == [21, 13, 0]


@pytest.mark.parametrize("confirmed, advice", [
    ({"metrics": {"makespan_ns": {"better": None}}}, "keep rr: x had the best makespan_ns by luck"),
    (None, "keep rr: x has the best makespan_ns, but fails with seeds that did not choose it"),
])  # fmt: skip
def test_a_winner_by_luck_is_not_advised(confirmed, advice):
    row = {
        "policy": "x",
        "change": "",
        "is_baseline": False,
        "metrics": {"makespan_ns": {"ratio": 0.5, "better": "b"}},
    }
    found = {"metrics": ["makespan_ns"], "baseline": "rr", "fidelity": None, "ranking": [row], "load": None}
    _advise(found, None, lambda: confirmed)
    assert found["advice"].startswith(advice) and found["load"] is None


def test_who_pays_is_who_waits_longer(recording, tmp_path):
    found = ask(recording, ["mlfq"], tmp_path, metrics=["response_mean"])
    row = next(row for row in found["ranking"] if row["policy"] == "mlfq")
    change_of = {group["group"]: group["ratio"] for group in row["groups"]}
    assert change_of["hog-large"] > 1 > change_of["job"], "mlfq puts tasks that run long behind the others"


def test_a_policy_that_fails_is_left_out_by_name(recording, tmp_path):
    bad = tmp_path / "bad.bpf.c"
    bad.write_text("/* SPDX-License-Identifier: MIT */\n/*\n * bad.bpf.c - does not compile.\n */\nint x(;\n")
    found = ask(recording, [str(bad), "fifo"], tmp_path / "out", metrics=["response_mean"])
    assert [each["policy"] for each in found["failed"]] == ["bad"]
    assert {row["policy"] for row in found["ranking"]} == {"rr", "fifo"}


def test_waits_are_summed_by_group():
    columns = {
        "name": ["web-1", "web-2", "db"],
        "wait_ns": np.array([5, 7, 1]),
        "wait_ns_max": np.array([3, 6, 1]),
    }
    assert waits_of(columns) == {"web": (2, 12, 6), "db": (1, 1, 1)}


# ---- bad input --------------------------------------------------------------------


def test_what_linux_would_measure_is_said_with_an_interval_and_measured(copy, tmp_path):
    """The recording pretends to be Linux's; its best class is measured, once inside and once outside."""
    run = json.loads((copy / "run.json").read_text())
    command = {"argv": ["true"], "cpus": [0], "folder": "/"}
    run |= {"host": "linux", "policy": "SCHED_RR:10", "command": command, "knobs": {}}
    (copy / "run.json").write_text(json.dumps(run))
    asked = open_subject(str(copy), tmp_path)
    said = []

    def measure(linux_class):
        said.append(linux_class)
        return {"makespan_ns": run["metrics"]["makespan_ns"] * len(said) ** 3}

    found, _ = what_if(
        asked, ["rt_fifo"], tmp_path / "out", metrics=["makespan"], n_seeds=2, n_confirm=1, measure=measure
    )
    best = found["ranking"][0]
    made = best["forecast"]["makespan_ns"]
    assert made["low"] < made["predicted"] < made["high"]
    assert said == [best["class"]]
    assert found["measured"]["metrics"]["makespan_ns"]["is_inside"]
    assert "1 real run under SCHED_" in measured_sentence(found)
    assert "inside" in measured_sentence(found)
    assert best["class"] in forecast_rows(found)[0][0]
    again, _ = what_if(
        asked, ["rt_fifo"], tmp_path / "out", metrics=["makespan"], n_seeds=2, n_confirm=1, measure=measure
    )
    assert not again["measured"]["metrics"]["makespan_ns"]["is_inside"]
    run["recording"] = {"disturbance": {"share": 0.5, "others_ns": 5, "lost_ns": 5, "steal_ns": 0}}
    (copy / "run.json").write_text(json.dumps(run))
    asked = open_subject(str(copy), tmp_path)
    found, _ = what_if(
        asked, ["rt_fifo"], tmp_path / "out", metrics=["makespan"], n_seeds=2, n_confirm=1, measure=measure
    )
    assert found["measured"] is None
    assert "nothing was run to confirm" in found["warnings"][-1]
    assert len(said) == 2


@pytest.mark.parametrize(
    ("policy", "knobs", "linux_class"),
    [
        ("rt_fifo", {}, "SCHED_FIFO:10"),
        (
            "eevdf:slice_ns=5ms",
            {"slice_ns": 5_000_000, "preempt": 1, "slice_source": 0},
            "SCHED_OTHER:5000us",
        ),
        ("eevdf", {"slice_ns": 1_400_000, "preempt": 3, "slice_source": 0}, "SCHED_BATCH:1400us"),
        ("eevdf", {"slice_ns": 1_400_000, "preempt": 2, "slice_source": 0}, None),
        ("rt_rr", {"slice_ns": 1}, None),
        ("mlfq", {}, None),
    ],
)
def test_a_policy_is_a_class_of_linux_or_none(policy, knobs, linux_class):
    assert class_of(policy, knobs) == linux_class


def test_only_a_recorded_command_can_be_run_again(recording):
    with pytest.raises(UsageError, match="no command that can be run again"):
        recorded_command(json.loads((recording / "run.json").read_text()))


def test_intervals_of_forecasts_are_of_what_was_validated():
    assert forecast("makespan_ns", "good", 1e9)["low"] < 1e9 < forecast("makespan_ns", "good", 1e9)["high"]
    assert forecast("switches_voluntary", "good", 10) is None
    assert around("wakeup_ns_p99", 0.0, (-0.5, 0.5)) == (0.0, 5e5), "a share of a millisecond at least"


@pytest.mark.parametrize("better, advice", [
    ("b", "x: try it"),
    (None, "keep rr: the simulator has makespan_ns better under x, and the host guest shows no better one"),
])  # fmt: skip
def test_what_a_host_does_not_show_is_not_advised(better, advice, monkeypatch, tmp_path):
    """The three that are to be confirmed are the first without a change, beside the baseline."""
    names = ["x", "rr", "y", "z", "w"]
    ranking = [
        {"policy": name, "change": change, "is_baseline": name == "rr" and not change}
        for change in ("on 2 CPUs", "")
        for name in names
    ]
    found = {
        "metrics": ["makespan_ns"], "baseline": "rr", "subject": "s", "winner": "x", "ranking": ranking, "seeds": 1,
        "load": "load x", "advice": "x: try it", "warnings": [],
    }  # fmt: skip
    run = {"workload": "s", "status": "ok", "seed": 1, "cpus": 1, "tick_ns": 4_000_000}
    asked = []

    def run_plan(plan, **_):
        asked.extend(plan)
        return RunSet([run | {"policy": name} for name in plan], [], tmp_path)

    def rank(there, alternatives):
        entry = {"better": better}
        there["ranking"] = [
            {"policy": each.policy, "metrics": {"makespan_ns": entry}} for each in alternatives
        ]

    monkeypatch.setattr(whatif, "run_plan", run_plan)
    monkeypatch.setattr(whatif, "_rank", rank)
    monkeypatch.setattr(whatif, "_again", lambda plan, chosen, **_: chosen)
    _hold_there(
        found, Plan(["s"], names, tmp_path, execution=Execution(host="guest")), None, None, tick_ns=10**7
    )
    assert asked == ["rr", "x", "y", "z"]
    assert found["advice"] == advice and bool(found["load"]) == (better == "b")
    assert found["warnings"] == [
        "the ranking is of a machine with a tick of 10ms, and the host guest has 4ms: --tick 4ms ranks as there"
    ]


def test_options_are_those_of_the_simulator_or_of_the_host(simulator, tmp_path):
    """The simulator ranks, so what only it has may be given beside a host, and what only the host has, too."""
    words = {"host": "uthreads", "costs": {"switch_ns": 2000}, "tick": "4ms"}
    mine, theirs = _split(words)
    assert mine == words | {"host": "sim"} and theirs == {"host": "uthreads", "tick": "4ms"}
    assert _split({"host": "sim", "tick": "4ms"})[1] == {}
    with pytest.raises(
        UsageError, match="--kernel .*: means nothing on --host uthreads; hosts that have it: guest"
    ):
        what_if(open_subject("mixed", tmp_path), ["rr"], tmp_path, host="uthreads", kernel=str(tmp_path))


@pytest.mark.full
def test_another_host_runs_the_first_of_the_ranking(simulator, tmp_path):
    words = ["textbook/rr", "--seeds", "2", "-m", "makespan", "-p", "fifo,rr", "--host", "kernel", "--json"]
    done = CliRunner().invoke(app, ["recommend", *words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    there = json.loads(done.stdout)["on_host"]
    assert there["host"] == "kernel" and {row["policy"] for row in there["ranking"]} == {"fifo", "rr"}
    assert not there["failed"] and "<h3>On the host that was asked" in (tmp_path / "report.html").read_text()


def test_wrong_words_are_refused_with_the_remedy(recording, tmp_path):
    with pytest.raises(NotFoundError, match="unknown metric 'wakeup_p98' .did you mean 'wakeup_ns_p99'"):
        read_metrics(["wakeup_p98"])
    with pytest.raises(UsageError, match="--metric switches_voluntary: no ranking by it"):
        read_metrics(["switches_voluntary"])
    for text in ("0", "x", "2000", "-1"):
        with pytest.raises(
            UsageError, match=f"--cpus {text}: '{text}' must be a number of CPUs from 1 to 1024"
        ):
            read_cpus(text, load_workload("mixed"))
    for words, message in (
        (("1", ""), "--load 1: '1' must be how many times the load, from 2 to 64"),
        (("", "hog-smal=2"), "no group of tasks is named 'hog-smal' .did you mean 'hog-small'"),
        (("", "hog-small=x"), "must be GROUP=TIMES, such as hog-small=2"),
        (("", "hog-small=nan"), "must be GROUP=TIMES"),
    ):
        with pytest.raises(UsageError, match=message):
            read_changes(load_workload("mixed"), "", *words)
    with pytest.raises(
        NotFoundError, match="mixde: no folder of a run, no trace, no workload: unknown workload"
    ):
        open_subject("mixde", tmp_path)
    with pytest.raises(NotFoundError, match="it has no records.slr"):
        open_subject(str(tmp_path), tmp_path)


# ---- what a person sees --------------------------------------------------------------


@pytest.mark.full
def test_a_trace_of_another_tool_in_a_terminal_of_80_columns(simulator, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = [
        str(TRACE),
        "--policy",
        "rr,mlfq",
        "--metric",
        "wakeup_p99,turnaround_mean,makespan",
        "--seeds",
        "3",
    ]
    done = CliRunner().invoke(app, ["whatif", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    # A path and a command are to be copied, whatever their length.
    assert [
        line for line in lines if len(line) > 80 and "report.html" not in line and "schedlab load" not in line
    ] == []
    text = done.stdout
    assert text.startswith("Fidelity: Recorded under Linux, replayed under eevdf")
    assert text.index("Fidelity") < text.index("Ranking by wakeup_ns_p99") < text.index("Advice")
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("<strong>Fidelity.") < page.index("<h3>Ranking") < page.index("The numbers</h3>")
    assert "<h3>Who pays</h3>" in page


@pytest.mark.full
def test_recommend_is_the_same_over_all_policies(simulator, tmp_path):
    out = str(tmp_path / "out")
    done = CliRunner().invoke(
        app, ["recommend", "textbook/rr", "--seeds", "2", "-m", "makespan", "--json", "--out", out]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["baseline"] == "eevdf" and found["fidelity"] is None
    assert {"fifo", "rr", "mlfq", "cfs"} < {row["policy"] for row in found["ranking"]}
    assert re.search("^keep eevdf", found["advice"]) and found["load"] is None
