# SPDX-License-Identifier: MIT
"""Every schedule of a window: each once, none left out, and what is in it is found."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from schedlab.check.save import MARK
from schedlab.check.schedules import Bound, choose_window, every_schedule, parse_bound
from schedlab.check.world import MS, Group, Phase, World, to_toml

from .test_check import BUGS, check, task_of
from .test_races import FORKERS, LATE_FLAG, TORN, variant

pytestmark = pytest.mark.full
#: Tasks that wake up together, so that few points are many orders.
SMALL = World(
    n_cpus=2, topology="", tick_ns=MS, horizon_ns=6 * MS,
    groups=(Group("sleeper", (Phase("run", MS // 2), Phase("sleep", MS // 2)), count=2),),
)  # fmt: skip
#: Two tasks of four are preempted at 20 ms, when their slices are over.
SLICES = replace(SMALL, horizon_ns=30 * MS, groups=(Group("hog", (Phase("run", 100 * MS),), count=4),))
AT_END = (20 * MS, 20 * MS)
WHOLE = (0, 1000 * MS)
NONE = BUGS / "none.bpf.c"


def run_all(laboratory, world: World, n_preemptions: int, window=WHOLE, n_skipped=0):
    """What is covered, and the switches of each schedule with what it has shown."""
    steps = [*every_schedule(laboratory, world, Bound(n_preemptions, *window, n_skipped))]
    tried = [(each.interleaving.partition(":")[2], trial) for _, some in steps for each, trial in some]
    return steps[-1][0], tried


@pytest.mark.parametrize(("n_cpus", "n_preemptions"), [(2, 1), (2, 2), (3, 1)])
def test_each_schedule_is_run_once_and_none_is_left_out(n_cpus, n_preemptions, simulator):
    """What random draws with so many switches come to is among them."""
    world = replace(SMALL, n_cpus=n_cpus, groups=(replace(SMALL.groups[0], count=n_cpus),))
    if n_preemptions == 2:
        world = replace(world, horizon_ns=2 * MS)
    with task_of(NONE, races=True).laboratory() as laboratory:
        covered, tried = run_all(laboratory, world, n_preemptions)
        names = [name for name, _ in tried]
        drawn = set()
        for seed in range(300):
            outcome, _ = laboratory._run(
                replace(world, interleaving=f"{seed}:{n_preemptions}"), is_judged=False
            )
            drawn.add(outcome.answer["switches"] or "")
    assert covered.is_complete and len(names) == len({*names}) == covered.n_known == covered.n_run
    assert len(drawn) > 40 and drawn <= {*names}
    assert not [trial for _, trial in tried if trial.finding]


def test_there_are_as_many_as_follow_on_each(simulator):
    """The two of them are counted by another way: of the first, those that could follow."""
    with task_of(NONE, races=True).laboratory() as laboratory:
        (covered, tried), (fewer, _) = (run_all(laboratory, SMALL, n) for n in (1, 0))
        window = (2 * MS, 3 * MS)
        part, within = run_all(laboratory, SMALL, 1, window)
    root = dict(tried)[""].nexts.split(",")
    assert covered.n_known == 1 + len(root) and (fewer.n_known, fewer.is_complete) == (1, True)
    inside = [each for each in root if window[0] <= int(each.split("@")[1]) <= window[1]]
    assert 1 < part.n_known == 1 + len(inside) == len(within) < covered.n_known


def test_a_race_is_found_wherever_the_window_has_it(tmp_path, simulator):
    """One preemption is needed, as the way back is none; the sound policy is run in as many schedules, and passes them all."""
    sound = variant(tmp_path, "__sync_fetch_and_add(&nr_enqueued, 1);")
    shown = {}
    for path in (TORN, sound):
        with task_of(path, races=True).laboratory() as laboratory:
            none, _ = run_all(laboratory, SLICES, 0, AT_END)
            covered, tried = run_all(laboratory, SLICES, 2, AT_END)
            failed = [trial for _, trial in tried if trial.finding]
            for trial in failed[:3]:
                again = laboratory.try_world(replace(SLICES, interleaving=trial.interleaving))
                assert again.finding == trial.finding and trial.interleaving.count(">") <= 2
        assert [trial.finding.text for trial in failed if trial.finding.broken == "error"][:1] == []
        shown[path] = (none.is_complete, covered.is_complete, {trial.finding.broken for trial in failed})
    assert shown == {TORN: (True, False, {"race"}), sound: (True, True, set())}


def test_a_lost_wake_up_is_found_by_every_schedule_of_one_switch(simulator):
    with task_of(LATE_FLAG, races=True).laboratory() as laboratory:
        bound = Bound(1)
        found = []
        for seed in range(12):
            chosen = choose_window(laboratory, FORKERS, bound, random.Random(seed))
            _, tried = run_all(laboratory, FORKERS, 1, (chosen.from_ns, chosen.to_ns))
            found += [trial.finding.broken for _, trial in tried if trial.finding]
    assert {*found} == {"stall"}


def test_the_rest_is_run_after_an_end(simulator):
    with task_of(NONE, races=True).laboratory() as laboratory:
        window = (2 * MS, 2 * MS)
        covered, tried = run_all(laboratory, SMALL, 2, window)
        inner = sum(1 for name, _ in tried if name.count(">") < 2)
        n_before = inner + (covered.n_run - inner) // 2
        rest, tried_rest = run_all(laboratory, SMALL, 2, window, n_before)
    assert rest.is_complete and rest.n_known == covered.n_known
    assert tried_rest == tried[:inner] + tried[n_before:]


def test_a_bound_is_read_as_it_is_written():
    for text in ("all:0", "all:2", "all:2@4ms-5ms", "all:1@4.5ms-4.5ms+1200"):
        assert str(parse_bound(text)) == text
    assert parse_bound("all:2@4ms-5ms") == Bound(2, 4 * MS, 5 * MS)
    for wrong in ("all", "all:", "all:9", "all:-1", "2", "all:2@4ms", "all:2@5ms-4ms", "all:2@4-5", "7:pct2"):
        with pytest.raises(ValueError, match="--interleave"):
            parse_bound(wrong)


def test_command_says_how_many_there_are_and_how_many_were_run(tmp_path, simulator):
    how = {"settings": {}, "topology": "", "seed": 1}
    (tmp_path / "one.toml").write_text(f"{MARK}{json.dumps(how)}\n{to_toml(SLICES)}")
    one = ("--races", "--replay", tmp_path / "one.toml", "--interleave", "all:2@20ms-20ms")
    done = check(NONE, *one, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(check(NONE, *one, "--json", cwd=tmp_path).stdout)
    (window,) = answer["windows"]
    assert window["is_complete"] and window["is_counted"] and window["run"] == window["schedules"] > 10
    text = " ".join(done.stdout.split())
    assert f"{window['run']:,} schedules of at most 2 preemptions in 1 window, of which all were run" in text
    failed = check(TORN, *one, cwd=tmp_path)
    assert failed.returncode == 1 and "First found with every schedule of a window" in failed.stdout
    (file,) = tmp_path.glob("out/check/torn_counter/race-1.toml")
    assert check(TORN, "--replay", file, cwd=tmp_path).returncode == 1
    drawn = check(NONE, "--races", "--interleave", "all:1", "--worlds", 2, "--json", cwd=tmp_path)
    answer = json.loads(drawn.stdout)
    assert answer["worlds"] == 2 and all(each["is_complete"] for each in answer["windows"])
    assert check(NONE, "--interleave", "all:2", cwd=tmp_path).returncode == 2
    (tmp_path / "one.toml").write_text(f"{MARK}{json.dumps(how)}\n{to_toml(replace(SLICES, n_cpus=1))}")
    alone = check(NONE, *one[:3], "--interleave", "all:2", cwd=tmp_path).stdout
    assert "CPUs did not interleave" in " ".join(alone.split()) and "schedule" not in alone


def test_what_fails_in_a_given_workload_is_a_file_of_its_own(tmp_path, simulator):
    """It names the workload, which stays as it is, also where the search would write to its place."""
    (tmp_path / "mine.toml").write_text(to_toml(SLICES))
    words = ("--races", "--worlds", 100, "--budget", "600s", "--json")
    done = json.loads(check(TORN, "--workload", "mine.toml", *words, cwd=tmp_path).stdout)
    (found,) = done["found"]
    again = json.loads(check(TORN, "--replay", found["workload"], "--json", cwd=tmp_path).stdout)
    assert [each["property"] for each in again["found"]] == ["race"] and again["cpus"] == [found["cpus"]]
    assert (tmp_path / "mine.toml").read_text() == to_toml(SLICES)
    how = {"settings": {}, "topology": "", "seed": 1}
    path = tmp_path / "out/check/torn_counter/race-1.toml"
    path.write_text(text := f"{MARK}{json.dumps(how)}\n{to_toml(SLICES)}")
    one = ("--races", "--replay", path, "--interleave", "all:1@20ms-20ms", "--json")
    (found,) = json.loads(check(TORN, *one, cwd=tmp_path).stdout)["found"]
    assert path.read_text() == text and found["interleaving"].count(">") == 1
    assert check(TORN, "--replay", found["workload"], cwd=tmp_path).returncode == 1
