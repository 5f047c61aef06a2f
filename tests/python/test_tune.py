# SPDX-License-Identifier: MIT
"""Tune: what a search finds is held against the default with seeds that it has not seen."""

from __future__ import annotations

import importlib.util
import json

import pytest
from typer.testing import CliRunner

from schedlab.cli.app import app
from schedlab.errors import UnavailableError, UsageError
from schedlab.measure import tune as search
from schedlab.measure.knob_ranges import ranges_of
from schedlab.measure.tune import front_of, read_question, violation
from schedlab.measure.whatif import open_subject
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.runs.gate import parse_condition
from schedlab.runs.run import make_plan, run_plan

SHOP = """
[workload]
tick = "1ms"
[[task]]
name = "server"
count = 2
phases = [{loop = 20, do = [{sleep = "exp(20ms)"}, {run = "1ms"}]}]
[[task]]
name = "batch"
count = 2
phases = [{run = "150ms"}]
"""


@pytest.fixture
def shop(simulator, tmp_path):
    """A server beside batch jobs: it wakes up into their slices, so that short ones are better for it."""
    file = tmp_path / "shop.toml"
    file.write_text(SHOP)
    return str(file)


def tuned(
    subject, policy, out, minimise=("wakeup_p99",), maximise=(), subject_to=(), knobs=(), settings=(), **more
):
    question = read_question(
        minimise, maximise, subject_to, **{"trials": 12, "seeds": 3, "held_out": 6} | more
    )
    return search.tune(open_subject(subject, out), policy, out, question, knobs=knobs, settings=settings)[0]


def trials_of(out) -> list:
    """What each trial was, and what came of it."""
    import optuna

    file = optuna.storages.journal.JournalFileBackend(str(out / search.STUDY_FILE))
    study = optuna.load_study(study_name="tune", storage=optuna.storages.JournalStorage(file))
    return [
        (t.user_attrs["values"], t.values) for t in study.trials if t.state.is_finished() and t.user_attrs
    ]


# ---- what is found ------------------------------------------------------------------


def test_a_better_setting_is_found_and_held_against_the_default(shop, tmp_path):
    found = tuned(shop, "rr", tmp_path / "out")
    assert found["is_better"], found["advice"]
    best = found["front"][0]
    slice_ns = best["values"]["slice_ns"]
    assert slice_ns < 5_000_000 and f"--set slice_ns={best['shown']['slice_ns']}" in found["load"]
    # The held-out figures are those of `schedlab run` with those seeds.
    settings = [f"rr.slice_ns=10ms,{slice_ns}ns"]
    runs = run_plan(
        make_plan([shop], ["rr"], tmp_path / "again", first_seed=4, n_seeds=6, settings=settings)
    ).runs
    means = [sum(run["metrics"]["wakeup_ns_p99"] for run in side) / 6 for side in (runs[:6], runs[6:])]
    entry = best["held_out"]["wakeup_ns_p99"]
    assert [entry["mean_a"], entry["mean_b"]] == pytest.approx(means)
    assert entry["better"] == "b" and entry["n"] == 6 and best["training"]["wakeup_ns_p99"]["n"] == 3
    assert found["importance"]["wakeup_ns_p99"].keys() <= {knob["knob"] for knob in found["knobs"]}


def test_of_a_recording_of_linux_the_default_slice_is_that_of_its_machine(shop, tmp_path):
    run_plan(make_plan([shop], ["eevdf"], tmp_path / "w"))
    folder = tmp_path / "w" / "shop" / "eevdf" / "seed-1"
    run = json.loads((folder / "run.json").read_text())
    changed = {"host": "linux", "policy": "SCHED_OTHER", "recording": {"slice_ns": 1_400_000}}
    (folder / "run.json").write_text(json.dumps(run | changed))
    few = {"trials": 2, "seeds": 1, "held_out": 2}
    found = tuned(str(folder), "eevdf", tmp_path / "a", knobs=["slice_ns=1ms..5ms"], **few)
    assert [knob["default"] for knob in found["knobs"]] == ["1400us"] and found["class"].startswith(
        "SCHED_OTHER:"
    )
    given = tuned(
        str(folder), "eevdf", tmp_path / "b", knobs=["preempt"], settings=["eevdf.slice_ns=5ms"], **few
    )
    assert [knob["knob"] for knob in given["knobs"]] == ["preempt"] and given["class"] in (
        "SCHED_OTHER:5000us", "SCHED_BATCH:5000us", None)  # fmt: skip


def test_a_knob_without_effect_is_no_better_than_the_default(shop, tmp_path):
    found = tuned(shop, "rt_rr", tmp_path / "out", knobs=["default_level"])
    assert not found["is_better"] and found["load"] is None
    assert found["advice"].startswith("no better than the default")


def test_luck_on_the_training_seeds_is_told(shop, tmp_path, monkeypatch):
    """The search sees a gain; the held-out seeds, for which nothing changes, do not."""
    means_of, seen = search.means_of, []

    def lucky(runs, names):
        found = means_of(runs, names)
        if found and {run["seed"] for run in runs} <= {1, 2, 3}:
            seen.append(len(seen))
            found = {name: value / (1 + len(seen)) for name, value in found.items()}
        return found

    monkeypatch.setattr(search, "means_of", lucky)
    found = tuned(shop, "rt_rr", tmp_path / "out", knobs=["default_level"])
    assert found["front"][0]["values"] != {"default_level": 5}
    assert not found["is_better"] and "do not tell" in found["advice"]


def test_the_same_search_gives_the_same_trials_also_when_it_is_gone_on_with(shop, tmp_path):
    whole = tuned(shop, "mlfq", tmp_path / "a", trials=20)
    tuned(shop, "mlfq", tmp_path / "b", trials=8)
    rest = tuned(shop, "mlfq", tmp_path / "b", trials=20)
    assert trials_of(tmp_path / "a") == trials_of(tmp_path / "b")
    assert len(trials_of(tmp_path / "a")) == 20
    assert whole == rest
    with pytest.raises(UsageError, match="study.journal answers another question"):
        tuned(shop, "mlfq", tmp_path / "b", trials=20, minimise=["response_mean"])


def test_an_interrupted_batch_is_tried_again(shop, tmp_path, monkeypatch):
    whole = tuned(shop, "rr", tmp_path / "a", trials=16)
    run = search.Trials.run

    def interrupted(self, settings, seeds, **more):
        if len(self.known) > 8 * 3:
            raise KeyboardInterrupt
        return run(self, settings, seeds, **more)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(search.Trials, "run", interrupted)
        tuned(shop, "rr", tmp_path / "b", trials=16)
    assert tuned(shop, "rr", tmp_path / "b", trials=16) == whole
    assert trials_of(tmp_path / "a") == trials_of(tmp_path / "b")


def test_conditions_hold_or_nothing_is_found(shop, tmp_path):
    found = tuned(shop, "rr", tmp_path / "a", subject_to=["switches < +10%"])
    assert 0 < found["feasible"] < found["trials"]
    for each in found["front"]:
        assert each["training"]["switches"]["ratio"] < 1.1
    none = tuned(shop, "rr", tmp_path / "b", subject_to=["makespan < -90%"])
    assert none["front"] == [] and none["advice"] == "no setting of 12 meets makespan < -90%"


def test_several_objectives_give_a_front(shop, tmp_path):
    found = tuned(shop, "rr", tmp_path / "out", minimise=["wakeup_p99", "switches"])
    points = [tuple(each["training"][n] for n in ("wakeup_ns_p99", "switches")) for each in found["front"]]
    means = [(a["mean_b"], b["mean_b"]) for a, b in points]
    assert len(means) > 1 and means == sorted(means)
    assert [b for _, b in means] == sorted((b for _, b in means), reverse=True), "one is paid with the other"


# ---- its parts ------------------------------------------------------------------------


@pytest.mark.parametrize("text, default, value, is_broken", [
    ("throughput > -2%", 100, 99, False), ("throughput > -2%", 100, 98, True), ("throughput >= -2%", 100, 98, False),
    ("makespan < +1ms", 5e6, 5.9e6, False), ("makespan < +1ms", 5e6, 6.1e6, True), ("fairness_jain > 0.9", 1, 0.8, True),
])  # fmt: skip
def test_conditions_are_of_means_against_the_default(text, default, value, is_broken):
    assert (violation(parse_condition(text), default, value) > 0) == is_broken


def test_ranges_are_around_the_default_or_as_asked():
    built = build_policy(load_policy("mlfq"), {})
    found = {each.knob.name: each for each in ranges_of(built, {}, [])}
    assert found["quantum_ns"].text == "100us .. 1s" and found["rotate"].text == "no .. yes"
    assert found["allotment"].names == ("visit", "cumulative")
    only = ranges_of(built, {}, ["quantum_ns=1ms..20ms"])
    assert [(each.low, each.high) for each in only] == [(1_000_000, 20_000_000)]
    assert "quantum_ns" not in {each.knob.name for each in ranges_of(built, {"quantum_ns": 1}, [])}
    for knob, problem in (
        ("quantum_n=1ms..2ms", "has no such knob .did you mean 'quantum_ns'"),
        ("quantum_ns=2ms", "should read quantum_ns=1ms..20ms"),
        ("quantum_ns=3ms..2ms", "the smaller value stands first"),
        ("quantum_ns=3..9ms", "has no unit"),
    ):
        with pytest.raises(UsageError, match=problem):
            ranges_of(built, {}, [knob])
    with pytest.raises(UsageError, match="nothing to tune"):
        ranges_of(build_policy(load_policy("fifo"), {}), {}, [])


def test_wrong_questions_are_refused():
    with pytest.raises(
        UsageError, match="--minimise throughput_per_s: higher is better; give it to --maximise"
    ):
        read_question(["throughput"], [], [])
    with pytest.raises(UsageError, match="Give --minimise or --maximise a metric"):
        read_question([], [], [])
    with pytest.raises(UsageError, match="--subject-to 'throughput': should read"):
        read_question(["makespan"], [], ["throughput"])
    assert front_of([(1.0,), (1.0,)]) == [0]


def test_without_optuna_it_says_how_to_get_it(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "optuna" else find_spec(name)
    )
    with pytest.raises(UnavailableError, match=r"pip install 'schedlab\[tune\]'"):
        search.need_optuna()


def test_in_a_terminal_of_80_columns(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["tune", shop, "-p", "rr", "--minimise", "wakeup_p99,switches", "--trials", "8", "--seeds", "2"]
    words += ["--held-out", "3", "--subject-to", "throughput > -5%", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    long = [line for line in done.stdout.splitlines() if len(line) > 80]
    assert [line for line in long if "report.html" not in line and "schedlab load" not in line] == []
    assert "training" in done.stdout and "held out" in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    assert json.loads((tmp_path / "out" / "tune.json").read_text())["policy"] == "rr"
