# SPDX-License-Identifier: MIT
"""CPUs that interleave within callbacks: what is found, repeated, made small and shown."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from schedlab.check.races import columns, fewer_switches, strategy
from schedlab.check.save import MARK
from schedlab.check.search import do_batch
from schedlab.check.shrink import shrink
from schedlab.check.trial import Laboratory
from schedlab.check.world import MS, Group, Phase, World, draw_world, interleaved, to_toml
from schedlab.errors import SchedlabError

from .test_check import BUGS, check, task_of

pytestmark = pytest.mark.full
TORN = BUGS / "torn_counter.bpf.c"
#: Tasks whose slices end at one tick on both CPUs.
WORLD = World(
    n_cpus=2, topology="", tick_ns=MS, horizon_ns=300 * MS,
    groups=(Group("hog", (Phase("run", 100 * MS),), count=4), Group("sleeper", (Phase("run", MS), Phase("sleep", MS)))),
)  # fmt: skip


def variant(folder, update: str, declaration: str = "u64 nr_enqueued;"):
    """The policy with another update of its variable."""
    for name in ("bug.h", "bug_ops.h"):
        shutil.copy(BUGS / name, folder / name)
    text = TORN.read_text().replace("nr_enqueued++;", update).replace("u64 nr_enqueued;", declaration)
    (folder / "variant.bpf.c").write_text(text)
    return folder / "variant.bpf.c"


def tries(laboratory: Laboratory, nr: int = 60) -> list:
    """What seeds of both kinds find, with up to 50 switches."""
    return [laboratory.try_world(replace(WORLD, interleaving=f"{seed}:50")) for seed in range(nr)]


def test_an_interleaving_is_repeated_by_its_seed_and_by_its_switches(simulator):
    with task_of(TORN).laboratory() as laboratory:
        failed = [(seed, trial) for seed, trial in enumerate(tries(laboratory)) if trial.finding]
        assert {seed % 2 for seed, _ in failed} == {0, 1}, "one of the two strategies finds nothing"
        for seed, trial in failed[:6]:
            assert ">" in trial.interleaving
            for again in (f"{seed}:50", trial.interleaving):
                assert laboratory.try_world(replace(WORLD, interleaving=again)) == trial
        assert laboratory.try_world(replace(WORLD, interleaving="1:0")).finding is None


def test_a_variable_is_told_from_thousands_of_others(tmp_path, simulator):
    """The last write of each is known, however many the other CPU writes between a read and a write."""
    path = variant(
        tmp_path,
        "nr_enqueued++;\n\tfor (int i = 0; i < 8192; i++)\n\t\t((volatile u64 *)others)[i] = 1;",
        "u64 nr_enqueued, others[8192];",
    )
    with task_of(path).laboratory() as laboratory:
        worlds = [replace(WORLD, horizon_ns=50 * MS, interleaving=f"{seed}:pct2") for seed in range(40)]
        found = [trial.finding.text for trial in laboratory.try_worlds(worlds) if trial.finding]
    assert any(text.startswith("an update of nr_enqueued is lost") for text in found)


def test_pct_finds_a_race_from_the_depth_that_it_needs(simulator):
    # Between read and write the other CPU comes, and before it ends, this one's turn is over: two orders.
    with task_of(TORN).laboratory() as laboratory:
        failed = {
            depth: [trial for seed in range(200)
                    if (trial := laboratory.try_world(replace(WORLD, interleaving=f"{seed}:pct{depth}"))).finding]
            for depth in (1, 2, 3)
        }  # fmt: skip
        assert not failed[1] and failed[2] and failed[3], {depth: len(each) for depth, each in failed.items()}
        for trial in failed[2][:3]:
            assert laboratory.try_world(replace(WORLD, interleaving=trial.interleaving)) == trial


def test_a_strategy_is_said():
    assert [strategy(each) for each in ("7:pct2", "4:20", "5:20", "0.1.2>1", "", "2@0-5:")] == [
        "PCT, depth 2", "POS, at most 20", "rare switches, at most 20", "", "", "every schedule of a window",
    ]  # fmt: skip


def test_a_search_says_in_how_many_worlds_cpus_interleaved(tmp_path, simulator):
    def covered(*words) -> dict:
        return json.loads(check(BUGS / "none.bpf.c", *words, "--worlds", 100, "--json", cwd=tmp_path).stdout)

    plain, races = covered(), covered("--races")
    assert (plain["interleaved"], races["interleaved"]) == (0, races["worlds"])
    assert 1 in plain["cpus"] and min(races["cpus"]) == 2 and "hog" in races["roles"]
    how = {"settings": {}, "topology": "", "seed": 1, "interleaving": "1:50"}
    (tmp_path / "one.toml").write_text(f"{MARK}{json.dumps(how)}\n{to_toml(WORLD)}")
    alone = covered("--replay", tmp_path / "one.toml")
    assert (alone["worlds"], alone["interleaved"], alone["cpus"]) == (1, 1, [2])
    text = " ".join(check(BUGS / "none.bpf.c", "--races", "--worlds", 100, cwd=tmp_path).stdout.split())
    assert f"CPUs interleaved in {races['worlds']};" in text


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize(
    ("update", "is_race"),
    [
        ("__sync_fetch_and_add(&nr_enqueued, 1);", False),
        ("if (!nr_enqueued) nr_enqueued = 1; else nr_enqueued = 0;", False),
        ("nr_enqueued = p->pid;", False),
        ("nr_enqueued += 2;", True),
        ("u64 was = READ_ONCE(nr_enqueued); bpf_get_smp_processor_id(); WRITE_ONCE(nr_enqueued, was + 1);", True),
    ],
)  # fmt: skip
def test_an_update_is_lost_only_where_one_is(
    update, is_race, compiler, tmp_path, simulator, need, monkeypatch
):
    monkeypatch.setenv("CC", need(compiler))
    with task_of(variant(tmp_path, update)).laboratory() as laboratory:
        texts = {trial.finding.text for trial in tries(laboratory) if trial.finding}
    assert bool(texts) == is_race, texts
    assert all(
        re.match(r"an update of nr_enqueued is lost: .* at variant\.bpf\.c:15", text) for text in texts
    )


def test_a_spin_lock_keeps_an_update_whole(tmp_path, simulator):
    """And a CPU that waits for one lets its holder continue."""
    declaration = (
        "struct value { struct bpf_spin_lock lock; u64 nr; };\n"
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32);\n"
        "\t __type(value, struct value); } counter SEC(\".maps\");"
    )  # fmt: skip
    update = (
        "u32 zero = 0; struct value *v = bpf_map_lookup_elem(&counter, &zero);\n\tif (!v) return;\n"
        "\tbpf_spin_lock(&v->lock); v->nr++; bpf_spin_unlock(&v->lock);"
    )
    texts = {}
    for name, used in (("locked", update), ("bare", re.sub(r"bpf_spin_\w+\(.*?\);", "", update))):
        (tmp_path / name).mkdir()
        with task_of(variant(tmp_path / name, used, declaration)).laboratory() as laboratory:
            texts[name] = {trial.finding.text for trial in tries(laboratory) if trial.finding}
    assert not texts["locked"] and texts["bare"]
    assert all("an update of a map's value is lost" in text for text in texts["bare"])


@pytest.mark.parametrize("name", ["rr", "mlfq", "cfs", "o1", "eevdf", "lottery"])
def test_locks_and_records_of_the_core_stand_interleavings(name, simulator):
    """No assertion fails, no lock is waited for indefinitely, and no record is such as cannot be."""
    task = task_of(name, races=True)
    with task.laboratory() as laboratory:
        for number in range(25):
            rng = random.Random(number)
            world = interleaved(rng, draw_world(rng, task.built.policy, task.built.values))
            finding = laboratory.try_world(world).finding
            assert finding is None or finding.broken == "race", (world, finding)


def test_an_idle_cpu_is_held_against_a_policy_only_where_it_is_asked_for(simulator):
    """Linux leaves open that a CPU goes idle while another one queues a task."""
    task = task_of("rr")
    assert "work" in task.held and "work" not in replace(task, races=True).held
    assert "work" in replace(task, races=True, are_chosen=True).held


@pytest.mark.parametrize("wrong", ["0.1.2>", "1:pct0", "1:pct9", "1:pct2x"])
def test_what_is_no_interleaving_is_refused(wrong, simulator):
    with (
        task_of(TORN).laboratory() as laboratory,
        pytest.raises(SchedlabError, match="none of SEED:MAX, SEED:pct"),
    ):
        laboratory.try_world(replace(WORLD, interleaving=wrong))


def test_the_fast_simulator_has_no_interleavings(simulator, tmp_path):
    done = subprocess.run(
        [simulator, "--policy", "p", "--program", "p", "--interleave", "1:1"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "unknown option '--interleave'" in done.stderr


def test_switches_are_left_out_by_halves_then_one_by_one():
    lists = [each for each in fewer_switches("a>1,b>0,c>1,d>0") if ">" in each]
    assert lists == [
        "c>1,d>0", "a>1,b>0", "b>0,c>1,d>0", "a>1,c>1,d>0", "a>1,b>0,d>0", "a>1,b>0,c>1",
    ]  # fmt: skip
    assert {each.partition(":")[2] for each in fewer_switches("a>1,b>0") if ">" not in each} == {"1"}
    assert not [*fewer_switches("7:50"), *fewer_switches("a>1"), *fewer_switches("")]


def test_command_finds_shows_and_repeats_a_lost_update(tmp_path, simulator):
    done = check(TORN, "--races", "--worlds", 100, "--budget", "600s", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    line = f"{TORN.read_text().splitlines().index(chr(9) + 'nr_enqueued++;') + 1}: nr_enqueued++;"
    assert re.search("First found with (PCT, depth|POS, at most|rare switches, at most) [0-9]", done.stdout)
    left, right = [text for text in done.stdout.splitlines() if line in text][:2]
    assert left.index(line) < 10 < 40 < right.index(line)
    (file,) = tmp_path.glob("out/check/torn_counter/race-1.toml")
    again = check(TORN, "--replay", file, "--json", cwd=tmp_path)
    answer = json.loads(again.stdout)
    assert again.returncode == 1 and [each["property"] for each in answer["found"]] == ["race"]
    assert answer["found"][0]["interleaving"].count(">") <= 10
    said = subprocess.run([sys.executable, "-m", *answer["found"][0]["run_command"].split()], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert said.returncode == 1 and "an update of nr_enqueued is lost: CPU" in " ".join(said.stdout.split())
    assert f"torn_counter.bpf.c:{line.partition(':')[0]}" in "".join(said.stdout.split())
    fixed = check(variant(tmp_path, "__sync_fetch_and_add(&nr_enqueued, 1);"), "--replay", file, cwd=tmp_path)
    assert fixed.returncode == 0, fixed.stdout


def test_columns_are_shown_only_of_a_lost_update(tmp_path):
    assert columns("runnable task stall: a[1] failed to run", TORN) == ""


# ---- deadlocks ---------------------------------------------------------------------

LOCKS = "private(A) struct bpf_res_spin_lock a;\nprivate(B) struct bpf_res_spin_lock b;\n"
#: Functions, so that each pair of locks has lines of its own.
BOTH = """static void both(struct bpf_res_spin_lock *x, struct bpf_res_spin_lock *y)
{
	if (!bpf_res_spin_lock(x)) {
		if (!bpf_res_spin_lock(y))
			bpf_res_spin_unlock(y);
		bpf_res_spin_unlock(x);
	}
}
"""


def deadlocks(folder, declaration: str, update: str, nr: int = 60) -> set[str]:
    """The texts of what is found; each is found again by its list of switches."""
    with task_of(variant(folder, update, declaration)).laboratory() as laboratory:
        found = [trial for trial in tries(laboratory, nr) if trial.finding]
        for trial in found[:3]:
            assert laboratory.try_world(replace(WORLD, interleaving=trial.interleaving)) == trial
            assert (
                laboratory.try_alone(replace(WORLD, interleaving=trial.interleaving)).finding == trial.finding
            )
    assert {trial.finding.broken for trial in found} <= {"deadlock"}
    return {trial.finding.text for trial in found}


def test_a_circle_of_two_locks_is_a_deadlock_and_one_order_is_none(tmp_path, simulator):
    for name, second, is_deadlock in (("orders", "both(&b, &a)", True), ("order", "both(&a, &b)", False)):
        (tmp_path / name).mkdir()
        update = f"if (p->pid % 2) both(&a, &b); else {second};"
        texts = deadlocks(tmp_path / name, LOCKS + BOTH, update)
        assert bool(texts) == is_deadlock, texts
        for text in texts:
            assert (
                text.startswith("a deadlock: CPU ") and text.count(" took ") == text.count(" waits for ") == 2
            )
            assert {"took a", "took b", "waits for a", "waits for b"} <= {
                *re.findall(r"took \w|waits for \w", text)
            }


def test_a_circle_of_three_locks_is_a_deadlock(tmp_path, simulator):
    third = "private(C) struct bpf_res_spin_lock c;\n"
    update = "s32 i = bpf_get_smp_processor_id() % 3; if (i == 0) both(&a, &b); else if (i == 1) both(&b, &c); else both(&c, &a);"
    with task_of(variant(tmp_path, update, LOCKS + third + BOTH)).laboratory() as laboratory:
        world = replace(WORLD, n_cpus=3, groups=(Group("hog", (Phase("run", 100 * MS),), count=7),))
        trials = [
            laboratory.try_world(replace(world, interleaving=f"{2 * seed + 1}:2000")) for seed in range(200)
        ]
    texts = [trial.finding.text for trial in trials if trial.finding]
    assert texts and all(text.count(" took ") == text.count(" waits for ") == 3 for text in texts), texts
    assert columns(texts[0], tmp_path / "variant.bpf.c").count("waits for") == 3


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ("if (!bpf_res_spin_lock(&a)) { bpf_res_spin_lock(&a); bpf_res_spin_unlock(&a); }", "waits for a"),
        ("if (bpf_res_spin_lock(&a)) nr++;", "and its callback is over"),
    ],
)
def test_a_lock_taken_twice_or_kept_is_a_deadlock(update, message, tmp_path, simulator):
    texts = deadlocks(tmp_path, LOCKS + "u64 nr;", update, nr=6)
    assert texts and all(message in text and "took a at variant.bpf.c:1" in text for text in texts), texts


def test_command_shows_who_holds_what_and_where(tmp_path, simulator):
    path = BUGS / "two_lock_orders.bpf.c"
    lines = path.read_text().splitlines()
    done = check(path, "--races", "--worlds", 100, "--budget", "600s", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    for at in ("bpf_res_spin_lock(&queued_lock)", "bpf_res_spin_lock(&taken_lock)"):
        numbers = [number for number, line in enumerate(lines, 1) if at in line]
        shown = [int(found[1]) for found in re.finditer(rf"(\d+): if \(!{re.escape(at)}", done.stdout)]
        assert sorted(shown) == numbers and len(numbers) == 2


# ---- a wake-up that is lost ----------------------------------------------------------

LATE_FLAG = BUGS.parent / "late_idle_flag.bpf.c"
#: Tasks that start children, which are queued for the CPU that goes idle at that instant.
FORKERS = World(
    n_cpus=2, topology="", tick_ns=4 * MS, horizon_ns=1000 * MS, seed=1,
    groups=(
        Group(
            "forker", (Phase("run", MS // 2), Phase("sleep", 5 * MS)), rounds=100, count=2, affinity=(1,),
            child_ns=4 * MS,
        ),
    ),
)  # fmt: skip


def test_a_wake_up_is_lost_in_an_interleaving_only(tmp_path, simulator):
    """A CPU looks into its queue, another one queues a task, and the first says too late that it is idle."""
    worlds = [replace(FORKERS, interleaving=f"{seed}:50") for seed in range(200)]
    with task_of(LATE_FLAG, races=True).laboratory() as laboratory:
        trials = [trial for trial in laboratory.try_worlds(worlds) if trial.finding]
        assert {trial.finding.broken for trial in trials} == {"stall"}
        assert all("from which no CPU has taken it" in trial.finding.text for trial in trials)
        world = replace(FORKERS, interleaving=trials[0].interleaving)
        small = shrink(laboratory, world, trials[0].finding, slice_ns=20 * MS).world
        assert small.interleaving.count(">") == 1, "one switch at the right point is enough"
        assert small.n_tasks <= 2
        assert laboratory.try_world(FORKERS).finding is None
    for number in range(3):
        assert not do_batch(task_of(LATE_FLAG), number).failed, "it is right where nothing interleaves"


def test_a_kick_that_does_not_ask_the_flag_is_not_lost(tmp_path, simulator):
    text = LATE_FLAG.read_text().replace('"bugs/', f'"{BUGS}/')
    fixed = tmp_path / "fixed.bpf.c"
    fixed.write_text(re.sub(r"if \(is_first && .*\)\n", "if (cpu >= 0)\n", text))
    assert fixed.read_text() != text
    worlds = [replace(FORKERS, interleaving=f"{seed}:50") for seed in range(200)]
    with task_of(fixed, races=True).laboratory() as laboratory:
        assert not [trial for trial in laboratory.try_worlds(worlds) if trial.finding]
