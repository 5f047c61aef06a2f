# SPDX-License-Identifier: MIT
"""A verdict follows from numbers: other figures or other policies give another one."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from checkout.reproduce import runs as reproduce_runs
from checkout.reproduce.claims import DIRECTION, FAILS, HOLDS, UNTESTED, decide_all, measure_on
from checkout.reproduce.finished import load_finished
from checkout.reproduce.formula import Cell, Measure, MissingError
from checkout.reproduce.reproduction import Wanted
from checkout.reproduce.runs import _identity, _Machines, do_runs, read_samples, workload_of
from checkout.reproduce.samples import Done, Samples
from checkout.reproduce.spec import Claim, Runs, Size, read_experiment
from checkout.reproduce.steps import needed_pairs, published_tables, reproduce_report
from checkout.reproduce.summary import read_summary
from conftest import missing
from schedlab.cli.app import app
from schedlab.errors import SpecError, UsageError
from schedlab.hosts.kernel import boot as kernel_boot
from schedlab.hosts.kernel.build import KernelImage
from schedlab.model import Execution, Machine

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
WRITTEN = sorted(path.parent for path in EXPERIMENTS.glob("*/experiment.toml"))


def claim(**more):
    return Claim("c", "text", "where", "measure", None, ("s",), **more)


# ---- the files of all reports ------------------------------------------------


@pytest.mark.parametrize("folder", WRITTEN, ids=lambda folder: folder.name)
def test_every_written_report_is_whole(folder):
    """Its expressions are readable, its formulas give numbers, its workloads and policies exist."""
    from checkout.reproduce.claims import published_value
    from checkout.reproduce.spec import fill
    from schedlab.policy.find import find_policy
    from schedlab.policy.linux_class import is_class
    from schedlab.workload.find import load_workload

    experiment = read_experiment(folder)
    assert len(experiment.claims) >= 8
    tables = published_tables(folder)
    for each in experiment.claims:
        value = published_value(each, tables)
        assert value is None or value.low <= value.high
        for name, (workload, policy, *_) in each.ours.cells if each.ours else ():
            for on in each.on if name == "run" else (name,):
                runs = experiment.runs[on]
                assert policy in runs.policies, f"{each.name}: {policy} is no policy of {on}"
                assert workload in runs.workloads, f"{each.name}: {workload} is not in {on}"
    for redrawn in experiment.redrawn:
        for row in redrawn.rows:
            for column in redrawn.columns:
                Measure(fill(redrawn.ours, row, column), sets=tuple(experiment.runs))
    for runs in experiment.runs.values():
        for size in (runs.quick, runs.full):
            for text in () if runs.program else runs.workloads.values():
                load_workload(workload_of(text, runs, size))
        for policy in runs.policies.values():
            assert is_class(policy.split()[0]) or find_policy(policy.split()[0])


def test_mistakes_are_reported_with_their_place_and_the_right_word(tmp_path):
    folder = tmp_path / "report-5"
    shutil.copytree(EXPERIMENTS / "report-5", folder)
    file = folder / "claims.toml"
    text = file.read_text()
    for wrong, found in (
        ('on = ["sim-forks"', r"on: there is no set of runs 'simm-forks' \(did you mean 'sim-forks'"),
        ("null = 1", r"unknown key 'nul'"),
        ("run[", r"there is no set of runs 'rum' \(did you mean 'run'"),
    ):
        assert wrong in text
        other = {"on": 'on = ["simm-forks"', "nu": "nul = 1", "ru": "rum["}[wrong[:2]]
        file.write_text(text.replace(wrong, other, 1))
        with pytest.raises(SpecError, match=found) as error:
            read_experiment(folder)
        assert "claims.toml" in str(error.value)
        assert "[[claim]]" in str(error.value)
    file.write_text("claim = 3\n")
    (folder / "experiment.toml").write_text('experiment = "x"\nruns = [1]\n[table]\n')
    with pytest.raises(SpecError) as error:
        read_experiment(folder)
    for section in ("[[claim]]", "[experiment]", "[[runs]]", "[[table]]"):
        assert f"must be written as {section}" in str(error.value)
    file.write_bytes(b"# caf\xe9\n")
    with pytest.raises(SpecError, match=r"claims.toml.*not UTF-8 text: byte 5"):
        read_experiment(folder)
    file.write_text('[[claim]]\nid = "x"\nverdict = "holds"\n')
    with pytest.raises(SpecError, match=r"claims.toml:3: \[\[claim\]\] 1 \(x\): unknown key 'verdict'"):
        read_experiment(folder)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 + 1", "has no cell"),
        ("run['a', 'b']", "must have the keys"),
        ("run['a', 'b', c]", "must have the keys"),
        ("here['a', 'b', 'c']", "there is no set of runs 'here'"),
        ("mode(run['a', 'b', 'c'])", "there is no function 'mode'"),
        ("__import__('os')", "there is no function"),
        ("run['a', 'b', 'c'].x", "means nothing here"),
        ("run['a', 'b', 'c'", "is no expression"),
    ],
)
def test_expressions_are_nothing_but_arithmetic(text, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        Measure(text, sets=["sim-1"])


def test_an_expression_pairs_its_cells_by_seed():
    cells = {
        "a": Cell({1: 10.0, 2: 20.0, 3: 30.0}, {1: "a1", 2: "a2", 3: "a3"}),
        "b": Cell({2: 5.0, 3: 10.0, 4: 1.0}, {2: "b2", 3: "b3", 4: "b4"}),
    }
    measure = Measure("run['w', 'a', 'm'] / max(run['w', 'b', 'm'], 6) - 1", sets=[])
    sample = measure.sample(lambda name, keys: cells[keys[1]])
    assert sample.seeds == (2, 3)
    assert sample.values == pytest.approx((20 / 6 - 1, 2))
    assert sample.runs == (("a2", "b2"), ("a3", "b3"))
    assert set(sample.folders) == {"a2", "a3", "b2", "b3"}
    assert sample.n_left_out == 2
    with pytest.raises(MissingError, match="divides by 0"):
        Measure("1 / (run['w', 'a', 'm'] - run['w', 'a', 'm'])", sets=[]).sample(lambda n, k: cells[k[1]])


@pytest.mark.parametrize(("function", "is_fair"), [("lowest_mean", True), ("min", False)])
def test_the_best_of_several_is_the_same_for_all_seeds(function, is_fair):
    """Three equal policies: hardly ever is one called slower than the better of the others."""
    rng = np.random.default_rng(1)
    measure = Measure(f"run['w', 'a', 'm'] / {function}(run['w', 'b', 'm'], run['w', 'c', 'm'])", sets=["s"])
    samples = Samples({"s": Done(Runs("s", "simulator", {}, Size(), Size()))})
    wrong = 0
    for _ in range(30):
        drawn = rng.normal(1, 0.05, (3, 40))
        samples.look_up = lambda name, keys, drawn=drawn: Cell(
            dict(enumerate(drawn["abc".index(keys[1])])), dict.fromkeys(range(40), "")
        )
        (decided,) = decide_all([replace(claim(null=1.0, says="below"), ours=measure)], {}, samples)
        wrong += "the other way round" in decided.reason
    assert (wrong <= 2) == is_fair, wrong


# ---- the runs ----------------------------------------------------------------

#: A report in miniature: on one CPU the shortest job first has the lowest turnaround.
MINIATURE = """
[experiment]
title = "Miniature"
source = "nobody"
question = "Which is shorter?"
setup = "As <b>written</b>."
done = "As done."

[[runs]]
name = "one"
title = "simulator"
host = "sim"
cpus = 1
workloads = {cpu = "report-5/cpu:forks=40,rounds=2000000"}
policies = {RR = "rr", MLFQ = "mlfq", Mine = "mlfq rotate=yes"} # the last is in no claim
quick = {seeds = 3}
full = {seeds = 6}

[[runs]]
name = "two"
title = "Linux"
host = "linux"
workloads = {cpu = "report-4/pi:compute={compute}us"}
policies = {RR = "SCHED_RR:1", MLFQ = "SCHED_OTHER"}
scaled = {compute = 40}
quick = {skip = true}
full = {seeds = 2}

[[table]]
where = "Table 1"
title = "Turnaround"
rows = ["RR", "MLFQ"]
columns = ["cpu"]
published = 'turnaround["{row}", "{column}"]'
ours = 'run["{column}", "{row}", "mean turnaround_ns", "!parent"] / 1e6'
on = ["one"]

[[box]]
where = "Figure 1"
title = "Response"
rows = ["RR", "MLFQ"]
ours = 'run["cpu", "{row}", "response_ns", "loop"]'
on = ["one"]
"""
CLAIMS = """
[[claim]]
id = "less"
text = "MLFQ & less"
where = "Table 1"
measure = "turnaround, MLFQ over RR"
published = 'turnaround["MLFQ", "cpu"] / turnaround["RR", "cpu"]'
ours = 'run["cpu", "MLFQ", "mean turnaround_ns", "!parent"] / run["cpu", "RR", "mean turnaround_ns", "!parent"]'
null = 1
on = ["one", "two"]

[[claim]]
id = "lacking"
text = "It ages."
where = "section 5"
lacks = "no commit of its code contains it"
"""


@pytest.fixture
def miniature(tmp_path):
    folder = tmp_path / "report-9"
    (folder / "published").mkdir(parents=True)
    (folder / "experiment.toml").write_text(MINIATURE)
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "audit.toml").write_text('[[table]]\nname = "turnaround"\nkeys = ["scheduler"]\n')
    (folder / "published" / "turnaround.csv").write_text("scheduler,cpu\nRR,20.0\nMLFQ,10.0\n")
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("claims", 'id = "less"', 'id = "less than"', "id = 'less than' must be a word"),
        ("claims", "null = 1", "null = inf", "[[claim]] 1 (less): null = inf must be a number"),
        ("claims", "null = 1", "null = 1\nwithin = -1", "within = -1 must be a number, 0 or more"),
        ("claims", "null = 1", "null = 1\nminimum = nan", "minimum = nan must be a number, 0 or more"),
        ("claims", "null = 1", "null = 1\nresolution = -1", "resolution: must be a number, 0 or more, or an expression"),
        ("claims", "null = 1", "null = 1\nresolution = '1e7 / run[1]'", "resolution: 'run[1]' must have the keys"),
        ("claims", "null = 1", "null = 1\nresolution = 'run[\"io\", \"RR\", \"x\"]'", "resolution: 'one' has no workload 'io'"),
        ("claims", "null = 1", 'null = 1\nalso = [{where = "section 7"}]', "also: must be a list of tables with where, text"),
        ("claims", 'on = ["one", "two"]', "on = []", "on names no set of runs"),
        ("claims", '["cpu", "MLFQ", "mean', '["cpu", "MLQF", "mean', "'one' has no policy 'MLQF' (did you mean 'MLFQ'"),
        ("claims", '["cpu", "MLFQ", "mean', '["cpus", "MLFQ", "mean', "'two' has no workload 'cpus' (did you mean 'cpu'"),
        ("claims", 'turnaround["MLFQ", "cpu"]', 'turnaround["MLFQ", "io"]', "[[claim]] 1 (less): published: 'turnaround['MLFQ', 'io']' is in no row"),
        ("claims", 'turnaround["MLFQ", "cpu"]', 'turnover["MLFQ", "cpu"]', "there is no table 'turnover'"),
        ("claims", 'turnaround["MLFQ", "cpu"] /', "twice", "is no formula"),
        ("experiment", '{RR = "rr", MLFQ = "mlfq"', '{RR = "rr", MLFQ = ""', "policies must name at least one"),
        ("experiment", "{compute = 40}", '{compute = "many"}', "scaled.compute: must be a number above 0 (got 'many')"),
        ("experiment", "{seeds = 6}", "{seeds = 0}", "seeds must be at least 1"),
        ("audit", 'keys = ["scheduler"]', 'keys = ["name"]', "table 1: 'name' is missing"),
        ("audit", "[[table]]", "[table]", "table: must be written as [[table]]"),
        ("published/turnaround", "MLFQ,10.0", "RR,10.0", "two rows are called RR"),
        ("published/turnaround", "MLFQ,10.0", "MLFQ,ten", "published: 'ten' is no number"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_before_anything_runs(miniature, tmp_path, file, old, new, problem):
    path = miniature / f"{file}.{'csv' if '/' in file else 'toml'}"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(SpecError) as error:
        reproduce_report(miniature, Wanted(out=tmp_path / "out"))
    assert problem in str(error.value)
    # The line of the key, or of the table that lacks it.
    n_before = text[: text.index(old)].count("\n") + 1
    lines = [int(found) for found in re.findall(r"\.toml:(\d+): ", str(error.value))]
    assert "/" in file or (lines and all(-1 <= n_before - line <= 12 for line in lines)), error.value
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_is_found_before_anything_runs(miniature, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--out .*file: cannot be made: "):
        reproduce_report(miniature, Wanted(out=tmp_path / "file"))


@pytest.mark.full
def test_a_reproduction_from_runs_to_page_and_back(miniature, tmp_path, simulator):
    wanted = Wanted(out=tmp_path / "out")
    made = reproduce_report(miniature, wanted)
    first, lacking = made.as_json()
    assert first["verdict"] in (HOLDS, DIRECTION)
    assert first["published"] == pytest.approx(0.5, rel=0.01)
    assert first["interval"][0] <= first["ours"] <= first["interval"][1] < 1
    assert len(first["runs"]) == 6
    for directory in first["runs"]:
        assert json.loads((Path(directory) / "run.json").read_text())["consistency"] == "ok"
    assert (lacking["verdict"], lacking["reason"]) == (UNTESTED, "no commit of its code contains it")
    assert made.left_out == {"two": "part of --full"}
    assert json.loads((made.folder / "claims.json").read_text())["claims"] == made.as_json()

    page = made.page.read_text()
    texts = ("As &lt;b&gt;written&lt;/b&gt;.", "MLFQ &amp; less", "no commit of its code", first["reason"])
    assert all(text in page for text in texts)
    links = set(re.findall(r'href="([^"#]+run\.json)"', page))
    assert links
    assert all((made.folder / link).is_file() for link in links)
    places = [page.index(f'id="{part}"') for part in ("answer", "summary", "tables", "claim", "setup")]
    assert places == sorted(places)

    # A second call does nothing anew; --full adds its seeds to those that are there.
    runs = made.experiment.runs["one"]
    needed = needed_pairs(made.experiment)["one"]
    assert needed == {("cpu", "RR"), ("cpu", "MLFQ")}, "nobody asks for the third"
    again = do_runs(runs, runs.quick, made.folder, needed=needed)
    assert again.n_new == 0
    decisions = decide_all(made.experiment.claims, made.tables, Samples({"one": again}))
    assert [each.as_json(9) for each in decisions] == made.as_json()
    assert do_runs(runs, runs.full, made.folder, needed=needed).n_new == 6
    # What Linux adds to a run, and how busy a machine was, make it no other run; another compiler does.
    file = Path(first["runs"][0]) / "run.json"
    text = file.read_text()
    run = json.loads(text)
    run["environment"]["uname"] = "a guest's, known when it has booted"
    file.write_text(json.dumps(run | {"usage": {"user_ns": 1}, "no_records": "too many"}))
    assert do_runs(runs, runs.quick, made.folder, needed=needed).n_new == 0
    run["environment"]["compiler"] = "another"
    file.write_text(json.dumps(run))
    assert do_runs(runs, runs.quick, made.folder, needed=needed).n_new == 1
    busy, quiet = ({"environment": {"linux": {"kernel": "6.18", "load_1min": load}}} for load in (56.0, 0.5))
    assert _identity(busy) == _identity(quiet) == {"environment": {"linux": {"kernel": "6.18"}}}
    # Another policy under the same name is another run.
    changed = replace(runs, policies={"RR": "rr slice_ns=20ms"})
    assert do_runs(changed, Size(seeds=2), made.folder).n_new == 2

    def verdict():
        experiment = read_experiment(miniature)
        runs = experiment.runs["one"]
        samples = Samples({"one": do_runs(runs, runs.quick, tmp_path / "other")})
        return decide_all(experiment.claims, published_tables(miniature), samples)[0].verdict

    # Swap the figures, or the policies, and the verdict is another one.
    table = miniature / "published" / "turnaround.csv"
    assert verdict() == first["verdict"]
    table.write_text("scheduler,cpu\nRR,10.0\nMLFQ,20.0\n")
    assert verdict() == FAILS
    swapped = MINIATURE.replace('RR = "rr", MLFQ = "mlfq"', 'RR = "mlfq", MLFQ = "rr"')
    (miniature / "experiment.toml").write_text(swapped)
    assert verdict() in (HOLDS, DIRECTION)


@pytest.mark.full
def test_a_second_call_with_another_host_adds_to_the_page(miniature, tmp_path, simulator):
    file = miniature / "experiment.toml"
    two = MINIATURE.replace('host = "linux"', 'host = "sim"').replace(
        "report-4/pi:terms={terms}", "report-5/cpu:forks=4,rounds={terms}"
    )
    file.write_text(two.replace('RR = "SCHED_RR:1", MLFQ = "SCHED_OTHER"', 'RR = "rr", MLFQ = "mlfq"'))
    out = tmp_path / "out"
    first = reproduce_report(miniature, Wanted(out=out, hosts=("one",)))
    assert set(first.samples.done) == {"one"}
    second = reproduce_report(miniature, Wanted(out=out, hosts=("two",)))
    assert list(second.samples.done) == ["one", "two"]
    assert second.earlier.keys() == {"one"}
    assert second.sizes["one"].seeds == 3
    assert not second.left_out
    kept = {each.on: each for each in second.decisions}
    assert kept["one"].as_json(9) == first.decisions[0].as_json(9), "it is decided as before"
    assert kept["two"].ours
    # What is on disk is not taken for a set that has become another one.
    file.write_text(
        file.read_text().replace(
            '{RR = "rr", MLFQ = "mlfq", Mine', '{RR = "rr slice_ns=20ms", MLFQ = "mlfq", Mine'
        )
    )
    third = reproduce_report(miniature, Wanted(out=out, hosts=("two",)))
    assert (list(third.samples.done), third.earlier) == (["two"], {})
    assert third.left_out == {"one": "not among the hosts that were asked for"}
    content = json.loads((out / "report-9" / "two" / "set.json").read_text())
    workload, policy, _ = content["found"][0]
    for damaged in ([], content | {"found": [[workload, policy, 1]]}, content | {"found": [[workload, policy, [1]]]},
                    content | {"found": [[workload, policy, [{}]]]}, content | {"found": 1}, content | {"size": 1}):  # fmt: skip
        (out / "report-9" / "two" / "set.json").write_text(json.dumps(damaged))
        assert load_finished(second.experiment.runs["two"], out / "report-9") is None, (
            "a damaged file is no set"
        )
    assert not reproduce_report(miniature, Wanted(out=out, hosts=("one",))).earlier


def test_a_damaged_run_directory_is_done_again_or_has_a_remedy(miniature, tmp_path, simulator):
    experiment = read_experiment(miniature)
    runs = experiment.runs["one"]
    needed = needed_pairs(experiment)["one"]
    done = do_runs(runs, runs.quick, tmp_path, needed=needed)
    folder = Path(done.found["cpu", "RR"][1]["directory"])
    good = (folder / "run.json").read_text()
    # What the policy printed came of the run, and says nothing of what was run.
    (folder / "run.json").write_text(json.dumps(json.loads(good) | {"log": ["printed"]}))
    assert do_runs(runs, runs.quick, tmp_path, needed=needed).n_new == 0
    for name, content in (("run.json", "[]"), ("run.json", good[:100]), ("run.json", '{"status": "ok"}'),
                          ("tasks.parquet", "PAR1, cut off")):  # fmt: skip
        (folder / name).write_text(content)
        assert do_runs(runs, runs.quick, tmp_path, needed=needed).n_new == 1, (name, content)
    table = (folder / "tasks.parquet").read_bytes()
    (folder / "tasks.parquet").write_bytes(table[:4] + bytes(len(table) - 8) + table[-4:])
    again = do_runs(runs, runs.quick, tmp_path, needed=needed)
    assert again.n_new == 0
    with pytest.raises(UsageError, match="tasks.parquet: damaged .*remove its folder"):
        decide_all(experiment.claims, published_tables(miniature), Samples({"one": again}))


def test_policies_take_turns_where_time_is_real(miniature, tmp_path, monkeypatch, simulator):
    """Each in a block of its own would be compared with what the machine did in between."""
    asked, do = [], reproduce_runs.run_plan

    def watched(plan, **more):
        asked.append((plan.policies[0], plan.first_seed, plan.n_seeds))
        result = do(plan, **more)
        result.runs = [
            run | ({"status": "failed", "error": "lost"} if run["seed"] == 2 else {}) for run in result.runs
        ]
        return result

    monkeypatch.setattr(reproduce_runs, "run_plan", watched)
    monkeypatch.setattr(reproduce_runs, "_is_repeatable", lambda runs: False)
    runs = replace(read_experiment(miniature).runs["one"], policies={"RR": "rr", "MLFQ": "mlfq"})
    done = do_runs(runs, Size(seeds=2), tmp_path)
    assert asked == [("mlfq", 1, 1), ("rr", 1, 1), ("rr", 2, 1), ("mlfq", 2, 1), ("rr", 1, 2), ("mlfq", 1, 2)]
    assert done.n_new == 4, "what failed is not done until it succeeds"
    for label in ("RR", "MLFQ"):
        assert [(run["seed"], run["status"]) for run in done.found["cpu", label]] == [
            (1, "ok"),
            (2, "failed"),
        ]
        (listed,) = tmp_path.glob(f"one/{label}/runs.json")
        assert [run["seed"] for run in json.loads(listed.read_text())["runs"]] == [1, 2], "the list is whole"


def test_what_a_failed_run_leaves_is_a_reason_and_no_number():
    runs = Runs("one", "simulator", {"RR": "rr"}, Size(), Size())
    failed = {"status": "failed", "error": "runnable task stall", "seed": 1, "directory": "", "metrics": {}}
    samples = Samples({"s": Done(runs, {("cpu", "RR"): [failed]})})
    ours = Measure('run["cpu", "RR", "makespan_ns"]', sets=["s"])
    decided = decide_all([replace(claim(published="5"), ours=ours)], {}, samples)
    assert [(each.verdict, each.reason) for each in decided] == [
        (UNTESTED, "cpu under RR failed: runnable task stall")
    ]
    samples.done["s"].problem = "linux cannot be used here: no root"
    decided = decide_all([replace(claim(published="5"), ours=ours)], {}, samples)
    assert decided[0].reason == "linux cannot be used here: no root"


def test_programs_of_the_kernel_print_samples():
    console = "OpenSBI\r\ntiming test=1 name=cpu way=text run=0 ticks=100 ns=5\r\npanic: no\nx y=1 z\n"
    assert read_samples(console) == [
        {"test": "1", "name": "cpu", "way": "text", "run": "0", "ticks": "100", "ns": "5"}
    ]


def kernel_runs(policies, program="timings -n {runs} {workload}", **fields):
    """A set of runs of the teaching kernel, of one workload."""
    fields = {"workloads": {"forks": "5"}} | fields
    execution = Execution(host="kernel", is_parallel=fields.pop("parallel", False))
    return Runs("k", "kernel", policies, Size(), Size(), execution=execution, program=program, **fields)


@pytest.mark.full
def test_a_program_of_the_kernel_is_run_under_each_policy_once(tmp_path):
    if reason := kernel_boot.unavailable():
        missing("the teaching kernel", reason)
    runs = kernel_runs(
        {"RR": "rr", "mine": "priority min_slice_ns=20ms"},
        machine=Machine(cpus=1),
        workloads={"forks": "-a text 5"},
        program="timings --raw -n {runs} -d 2000 {workload}",
    )
    done = do_runs(runs, Size(seeds=2), tmp_path)
    assert done.n_new == 4
    assert not done.problem
    ours = Measure('run["forks", "mine", "makespan_ns"] / run["forks", "RR", "ns"]', sets=["k"])
    sample = measure_on(ours, "k", Samples({"k": done}))
    assert sample.seeds == (1, 2)
    assert 0.5 < sample.values[0] < 2
    assert all((Path(directory) / "run.json").is_file() for directory in sample.folders)
    assert do_runs(runs, Size(seeds=2), tmp_path).n_new == 0
    other = replace(runs, policies=runs.policies | {"RR": "fifo"})
    assert do_runs(other, Size(seeds=2), tmp_path).n_new == 2
    # A program that is not there is a reason, not a number.
    assert do_runs(runs, Size(seeds=2), tmp_path, needed=set()).n_runs == 0
    broken = do_runs(replace(runs, program="timing -n {runs}", policies={"RR": "rr"}), Size(), tmp_path)
    with pytest.raises(MissingError, match="timing -n 1 ended with"):
        measure_on(Measure('run["forks", "RR", "ns"]', sets=["k"]), "k", Samples({"k": broken}))


@pytest.mark.parametrize("is_parallel", [False, True])
def test_machines_in_real_time_do_not_share_the_cpus(is_parallel, tmp_path, monkeypatch):
    """Those that count instructions may run at once; times of two in real time would be each other's."""
    if reason := kernel_boot.unavailable():
        missing("the teaching kernel", reason)
    both, under_way, most = threading.Barrier(2, timeout=60), [], []

    def boot(runs, boot, image, command, identity, machines):
        under_way.append(boot.label)
        most.append(len(under_way))
        if not is_parallel:
            both.wait()
        under_way.remove(boot.label)
        return [{"workload": boot.workload, "policy": boot.label, "seed": boot.first, "status": "ok", "error": None,
                 "directory": str(boot.folder), "metrics": {"ns": 1}}]  # fmt: skip

    monkeypatch.setattr(reproduce_runs, "_boot", boot)
    monkeypatch.setattr(reproduce_runs.os, "cpu_count", lambda: 2)
    runs = kernel_runs({"RR": "rr", "FIFO": "fifo"}, program="timings -n {runs}", parallel=is_parallel)
    assert do_runs(runs, Size(), tmp_path).n_new == 2
    assert max(most) == (1 if is_parallel else 2)


@pytest.mark.full
def test_runs_in_real_time_have_a_machine_each_and_policies_take_turns(tmp_path, monkeypatch):
    """A second in which this machine is slow, or an emulator that is, would be one policy's alone."""
    if reason := kernel_boot.unavailable():
        missing("the teaching kernel", reason)
    booted = []

    def boot(runs, boot, image, command, identity, machines):
        booted.append((boot.label, boot.first, boot.n_runs, command, str(boot.folder.relative_to(tmp_path))))
        return [{"workload": boot.workload, "policy": boot.label, "seed": boot.first, "status": "ok", "error": None,
                 "directory": str(boot.folder), "metrics": {"ns": boot.first}}]  # fmt: skip

    monkeypatch.setattr(reproduce_runs, "_boot", boot)
    runs = kernel_runs({"RR": "rr", "FIFO": "fifo"}, parallel=True)
    done = do_runs(runs, Size(seeds=2), tmp_path)
    assert booted == [
        ("RR", 1, 1, "timings -n 1 5", "k/RR/forks/run-1"),
        ("FIFO", 1, 1, "timings -n 1 5", "k/FIFO/forks/run-1"),
        ("FIFO", 2, 1, "timings -n 1 5", "k/FIFO/forks/run-2"),
        ("RR", 2, 1, "timings -n 1 5", "k/RR/forks/run-2"),
    ]
    assert [run["seed"] for run in done.found["forks", "RR"]] == [1, 2]
    booted.clear()
    do_runs(replace(runs, execution=Execution(host="kernel")), Size(seeds=2), tmp_path)
    assert [entry[1:] for entry in booted] == [
        (1, 2, "timings -n 2 5", f"k/{name}/forks") for name in ("RR", "FIFO")
    ]


def test_boot_arguments_of_a_set_reach_the_kernel(tmp_path):
    """Such as report 1's late_ack; a set without them boots as before."""
    started = []

    def start(command):
        started.append(command[command.index("-append") + 1].split())
        return SimpleNamespace(communicate=lambda timeout: ("w name=x run=0 ns=1\n", ""), returncode=0)

    boot = reproduce_runs._Boot("forks", "RR", 1, 1, tmp_path / "boot")
    for arguments in ((), ("late_ack=1",)):
        runs = kernel_runs({"RR": "rr"}, program="timings", arguments=arguments)
        image = SimpleNamespace(kernel=tmp_path / "kernel", filesystem=tmp_path / "fs")
        reproduce_runs._boot(runs, boot, image, "timings", {}, SimpleNamespace(start=start))
    assert ["late_ack=1" in words for words in started] == [False, True]


def test_a_policy_of_ones_own_is_another_run_when_its_text_is(tmp_path, monkeypatch):
    """Its kernel has it linked in, and so another hash; here without linking one."""
    if reason := kernel_boot.unavailable():
        missing("the teaching kernel", reason)
    policy = tmp_path / "mine.bpf.c"
    monkeypatch.setattr(
        "schedlab.hosts.kernel.host.image_for",
        lambda path: KernelImage(path, path, hashlib.sha256(path.read_bytes()).hexdigest()),
    )

    def boot(runs, boot, image, command, identity, machines):
        boot.folder.mkdir(parents=True, exist_ok=True)
        (boot.folder / "run.json").write_text(json.dumps({"identity": identity, "runs": [{"seed": 1}]}))
        return [{"seed": 1}]

    monkeypatch.setattr(reproduce_runs, "_boot", boot)
    runs = kernel_runs({"mine": str(policy)})
    policy.write_text("/* the first */")
    assert [do_runs(runs, Size(), tmp_path / "out").n_new for _ in range(2)] == [1, 0]
    policy.write_text("/* the second */")
    assert do_runs(runs, Size(), tmp_path / "out").n_new == 1


def test_machines_end_together_also_those_about_to_be_started():
    machines = _Machines()
    first = machines.start(["sleep", "1000"])
    machines.end()
    second = machines.start(["sleep", "1000"])
    for each in (first, second):
        each.communicate(timeout=30)
        assert each.returncode == -signal.SIGKILL


def test_work_of_linux_is_scaled():
    runs = Runs("l", "Linux", {}, Size(), Size(), execution=Execution(host="linux"), scaled={"compute": 3880})
    assert (
        workload_of("report-4/pi:compute={compute}ms", runs, Size(scale=0.25)) == "report-4/pi:compute=970ms"
    )


def test_hosts_that_have_no_part_in_it_are_refused(miniature, tmp_path):
    with pytest.raises(
        UsageError, match=r"--host guest: report 9 runs on linux, sim; its sets of runs are one, two"
    ):
        reproduce_report(miniature, Wanted(out=tmp_path, hosts=("guest",)))


def test_a_host_that_is_asked_for_is_run_also_where_quick_skips_it(miniature, tmp_path):
    experiment = read_experiment(miniature)
    assert list(Wanted(out=tmp_path).sizes(experiment)) == ["one"]
    assert list(Wanted(out=tmp_path, is_quick=False).sizes(experiment)) == ["one", "two"]
    assert list(Wanted(out=tmp_path, hosts=("linux",), scale=0.5).sizes(experiment)) == ["two"]
    # Where a part of a host is quick, the rest waits for --full.
    file = miniature / "experiment.toml"
    file.write_text(file.read_text().replace('host = "linux"', 'host = "sim"'))
    experiment = read_experiment(miniature)
    assert list(Wanted(out=tmp_path, hosts=("sim",)).sizes(experiment)) == ["one"]
    # A set can be asked for by name.
    assert list(Wanted(out=tmp_path, hosts=("two",)).sizes(experiment)) == ["two"]
    assert list(Wanted(out=tmp_path, hosts=("one",), is_quick=False).sizes(experiment)) == ["one"]


def test_several_reports_in_one_command_say_where_it_is_and_the_total(
    miniature, tmp_path, simulator, monkeypatch
):
    """And what is done is written down although a later report fails."""
    from typer.testing import CliRunner

    from checkout.reproduce import command

    second = tmp_path / "report-8"
    shutil.copytree(miniature, second)
    monkeypatch.setattr(command, "_folders", lambda numbers: [miniature, second])
    page = tmp_path / "page.md"
    words = ["reproduce", "--host", "sim", "--out", str(tmp_path / "out"), "--write", str(page)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for line in ("report-9 (1 of 2)", "report-8 (2 of 2)", "2 reports: 12 runs, 12 of them now, in "):
        assert line in result.stderr
    assert "<!-- report 8 -->" in page.read_text() and "<!-- report 9 -->" in page.read_text()
    page.unlink()
    (second / "claims.toml").write_text("claim = 3")
    assert CliRunner().invoke(app, words).exit_code
    assert "<!-- report 9 -->" in page.read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["7"], "there is no report 7"),
        (["5", "--host", "simm"], "did you mean 'sim'"),
        (["5", "--host", "sim,kernel-7"], "--host kernel-7: there is no such host or set of runs"),
        (["2", "--host", "kernel-1"], "there is no such host or set of runs"),
        (["5", "--scale", "0"], "--scale must be above 0"),
        (["5", "--scale", "-1"], "--scale must be above 0"),
        (["5", "--scale", "nan"], "--scale must be above 0 and at most 1000 (got nan)"),
        (["5", "--host", ","], "--host ',': name a host or a set of runs"),
        (["5", "--write", "/nowhere/page.md"], "--write /nowhere/page.md: no file can be there"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(words, problem):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["reproduce", *words])
    assert isinstance(result.exception, UsageError)
    assert problem in str(result.exception)


@pytest.mark.parametrize(("text", "problem"), [
    ("answer = [1]", r"answer: a sentence must be a text or \{text = \.\.\., when = \[\.\.\.\]\} \(got 1\)"),
    ("answer = [{text = 1}]", "answer.text: must be a text \\(got 1\\)"),
    ("answer = [{text = 'x', when = 1}]", "answer.when: must be a list \\(got 1\\)"),
    ("answer = [{text = 'x', when = [1]}]", "answer.when: 1 must be written as 'NUMBER above 1.5'"),
    ("answer = [{test = 'x'}]", "key 'text' is missing"),
    ("[picture]\ntitle = 'a'\nunit = 'b'\non = []\nbars = [1]", "picture.bars: must be a table \\(got 1\\)"),
    ("[picture]\ntitle = 'a'\nunit = 'b'\non = []\nbars = [{label = 'x', ours = 1}]", "picture.bars.ours: must be an expression in quotes \\(got 1\\)"),
])  # fmt: skip
def test_a_damaged_summary_is_refused_with_its_place(tmp_path, text, problem):
    (tmp_path / "summary.toml").write_text(text)
    with pytest.raises(SpecError, match=problem):
        read_summary(tmp_path, {}, {})
