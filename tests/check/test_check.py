# SPDX-License-Identifier: MIT
"""`schedlab check` finds what is wrong with small policies, each with one bug of a published kind.

Numbers of worlds are fixed, not times: a batch draws the same worlds on every machine.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.check.search import Report, Task, do_batch, search, smallest_first
from schedlab.check.shrink import shrink, simpler_worlds
from schedlab.check.trial import PROPERTIES, Finding, broken_by
from schedlab.check.world import MS, Group, Phase, World, change_world, draw_world, slice_of, to_toml
from schedlab.cli.app import main
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

BUGS = Path(__file__).resolve().parent / "bugs"
FILES = sorted(BUGS.glob("*.bpf.c"))
#: Batches of 100 worlds within which each bug is found; most need one, and one takes a 50th of a second.
NR_BATCHES = 20
#: Each of its trials has a callback without end, which is stopped after a second.
SLOW = [BUGS / "draws_sleepers.bpf.c"]
#: Found, and not made small within a minute: the switches that matter are few among many.
LARGE = [BUGS / "cas_given_up.bpf.c", BUGS / "group_left_out.bpf.c"]
pytestmark = pytest.mark.full


def breaks(path: Path) -> str:
    """The property that a policy says it breaks."""
    return re.search(r"@breaks ([\w-]+)", path.read_text())[1]


def task_of(path: Path | str, **fields) -> Task:
    """A policy; one of the folder that breaks only so has CPUs that interleave."""
    built = build_policy(load_policy(str(path)))
    races = "@interleaved" in built.policy.path.read_text()
    return Task(built, frozenset(PROPERTIES) - {"worse"}, seed=1, **{"races": races} | fields)


def check(*words, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "schedlab", "check", *map(str, words)], cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory, build) -> tuple[Path, dict]:
    """What the command finds in one policy: its folder, and its answer."""
    folder = tmp_path_factory.mktemp("found")
    done = check(
        BUGS / "urgent_always_first.bpf.c", "--worlds", 300, "--budget", "600s", "--json", cwd=folder
    )
    assert done.returncode == 1, done.stderr
    return folder, json.loads(done.stdout)


# ---- worlds ------------------------------------------------------------------------


def test_worlds_and_all_simpler_ones_are_workloads(simulator):
    policy = load_policy("mlfq")
    values = build_policy(policy).values
    rng = random.Random(3)
    for number in range(150):
        world = draw_world(random.Random(number), policy, values)
        others = [change_world(rng, world, policy, values), *simpler_worlds(world, slice_of(policy, values))]
        for each in [world, *rng.sample(others, min(5, len(others)))]:
            workload = parse_workload(to_toml(each), name="world.toml")
            assert compile_workload(workload, seed=each.seed).task_rows["arrival_ns"].size >= each.n_tasks
            assert workload.cpus == each.n_cpus and workload.tick_ns == each.tick_ns


def test_worlds_are_the_same_with_each_seed_and_differ_between_seeds(simulator):
    policy = load_policy("rr")
    values = build_policy(policy).values
    worlds = [[draw_world(random.Random(seed), policy, values) for seed in range(20)] for _ in range(2)]
    assert worlds[0] == worlds[1]
    assert len(set(worlds[0])) == 20


def test_simpler_worlds_are_smaller_or_simpler_and_come_to_an_end(simulator):
    policy = load_policy("mlfq")
    values = build_policy(policy).values
    for number in range(30):
        world, steps = draw_world(random.Random(number), policy, values), 0
        while (simpler := next(simpler_worlds(world, slice_of(policy, values)), None)) is not None:
            world, steps = simpler, steps + 1
            assert steps < 300
        assert len(world.groups) == 1 and world.n_cpus == 1 and not world.settings


# ---- what is found -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.nightly] if path in SLOW else []) for path in FILES],
    ids=lambda path: path.name.removesuffix(".bpf.c"),
)
def test_a_bug_of_its_kind_is_found_and_made_small(path, simulator):
    wanted = breaks(path)
    task = task_of(path, also_held=frozenset({wanted}))
    failed = []
    for number in range(NR_BATCHES):
        batch = do_batch(task, number)
        assert batch.error is None
        failed += [each for each in batch.failed if each[1].broken == wanted]
        assert wanted != "nothing" or not batch.failed, batch.failed
        if failed:
            break
    if wanted == "nothing":
        assert batch.n_repeated == 2
        return
    assert failed, f"no {wanted} in {NR_BATCHES * 100} worlds"
    if path in LARGE:
        return
    world, finding = smallest_first(failed)[0]
    with task.laboratory() as laboratory:
        slice_ns = slice_of(task.built.policy, task.built.values)
        # What is small must not depend on how fast this machine is: a callback without end takes seconds to stop.
        small = shrink(laboratory, world, finding, slice_ns=slice_ns, seconds_max=300)
        assert small.finding.signature == finding.signature
        assert small.world.size <= min(40, world.size)
        assert small.world.n_tasks <= 8 and small.world.n_cpus <= 8
        again = laboratory.try_world(small.world)
        assert again.finding == small.finding


def test_the_page_has_a_row_for_each_of_them():
    """`bench/check_bugs.py --docs` writes the rows."""
    page = (BUGS.parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w-]+) \| (\d+) of ", page, re.MULTILINE)
    assert [(name, what) for name, what, _ in rows] == [
        (path.name.removesuffix(".bpf.c"), breaks(path)) for path in FILES
    ]
    assert all((nr == "0") == (what == "nothing") for _, what, nr in rows)


def test_declarations_decide_what_is_held_against_a_policy(simulator):
    task = task_of("fifo")
    every = {"error", "lost", "invariant", "ignored-error", "consistency", "race", "deadlock", "exit"}
    assert task.held == every | {"work", "priority"}
    assert "vtime" in task_of("cfs").held
    assert "stall" in replace(task, are_chosen=True).held
    assert "work" not in task_of("o1").held
    assert "shares" in task_of("eevdf").held
    assert task_of("rt_fifo").held & {"priority", "inversion"} == {"priority"}
    assert task_of("cfs").held & {"priority", "latency"} == {"latency"}


def test_a_task_is_lost_whose_mask_was_changed(tmp_path, simulator):
    """Which CPUs it may use is not known from its program; all were idle."""
    text = (BUGS.parent / "mask_remembered.bpf.c").read_text().replace('"bugs/', f'"{BUGS}/')
    path = tmp_path / "mask_remembered.bpf.c"
    path.write_text(
        text.replace("changed later, no", "changed later, no\n * @starvation-free no  so it is\n *", 1)
    )
    task = task_of(path)
    failed = {finding.broken for number in range(6) for _, finding in do_batch(task, number).failed}
    assert "stall" not in task.held and failed == {"lost"}


@pytest.mark.parametrize(("name", "broken"), [("cpu_zero_is_none", {"lost"}), ("newest_first", set())])
def test_who_waits_beside_an_idle_cpu_is_lost_and_does_not_starve(name, broken, tmp_path, simulator):
    text = (BUGS / f"{name}.bpf.c").read_text()
    for header in ("bug.h", "bug_ops.h"):
        text = text.replace(f'"{header}"', f'"{BUGS / header}"')
    path = tmp_path / f"{name}.bpf.c"
    path.write_text(
        text.replace(" * @breaks", " * @starvation-free no  that is what it is for\n * @breaks", 1)
    )
    task = task_of(path)
    assert "stall" not in task.held
    failed = [finding.broken for number in range(3) for _, finding in do_batch(task, number).failed]
    assert {*failed} == broken


def test_who_waits_in_a_busy_cpus_queue_is_not_lost_where_others_may_be_idle(simulator):
    """Pulling leaves two waiting, says the header of credit_report."""
    pairs = (Group("pair", (Phase("run", 30 * MS),)), Group("pair", (Phase("run", MS),), rounds=1))
    world = World(3, "", MS, pairs, settings=(("balance", 3),))
    with task_of("credit_report").laboratory() as laboratory:
        assert laboratory.try_world(world).longest_wait_ns > 500 * MS
        assert laboratory.try_world(world).finding is None


def test_an_assertion_of_schedlab_is_no_error_of_the_policy():
    text = "an assertion of schedlab fails at 5 ns, core/dsq.c:39: !t->dsq: a schedlab bug, or the policy ..."
    assert (broken_by("crash", text), broken_by("crash", "policy 'x' aborted in ops.tick()")) == (
        "consistency", "error",
    )  # fmt: skip


def test_help_names_every_property():
    command = [sys.executable, "-m", "schedlab", "check", "--help"]
    text = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"}
    )
    listed = re.search(r"--property.*?Of (.*?); default: all", " ".join(text.stdout.split()))
    assert listed[1].replace("- ", "-").split(", ") == list(PROPERTIES)  # a line may end within a word


def test_signatures_keep_the_kind_and_drop_names_and_numbers():
    one = Finding(
        "stall", "runnable task stall: a[1] failed to run for 44.998s, on DSQ 0x0, from which no CPU", 5
    )
    other = Finding(
        "stall", "runnable task stall: b-2[12] failed to run for 45.000s, on DSQ 0x7f, from which no CPU", 6
    )
    held = Finding("stall", "runnable task stall: a[1] failed to run for 44.998s, held by the policy", 5)
    assert one.signature == other.signature != held.signature
    places = [Finding("error", f"crashed, at mine.bpf.c:{line}", 5).signature for line in (12, 13)]
    assert places[0] != places[1]


def test_search_in_processes_finds_what_a_batch_finds(simulator):
    report = search(
        task_of(BUGS / "weight_is_rank.bpf.c"), budget_seconds=600, n_worlds_max=300, n_processes=2
    )
    assert [each.smallest.finding.broken for each in report.found] == ["stall"]
    assert report.n_worlds % 100 == 0 and report.n_repeated > 0


def test_the_smallest_failure_is_shrunk_and_one_without_a_list_of_switches_last():
    world = draw_world(random.Random(1), load_policy("rr"), {})
    worlds = [
        replace(world, interleaving="7:200"),
        replace(world, interleaving="0.1.2>1,0.1.3>1"),
        replace(world, interleaving="0.1.2>1"),
        replace(world, interleaving=""),
    ]
    finding = Finding("stall", "", MS)
    ordered = smallest_first([(each, finding) for each in worlds])
    assert [each.interleaving for each, _ in ordered] == ["", "0.1.2>1", "0.1.2>1,0.1.3>1", "7:200"]


def test_search_of_a_policy_without_a_bug_ends_after_its_worlds(simulator):
    report = search(task_of(BUGS / "none.bpf.c"), budget_seconds=600, n_worlds_max=150, n_processes=2)
    assert (report.n_worlds, report.found) == (200, [])
    assert report.longest_wait_ns > 0 and 1 in report.cpus


#: The repair of a bug: what stands in its place is sound, so that what was found is the bug.
MENDED = {
    "callers_cpu": ("bpf_get_smp_processor_id() /* in place of scx_bpf_task_cpu(p) */", "scx_bpf_task_cpu(p)"),
    "cas_given_up": ("\t__sync_val_compare_and_swap(since, from_ns, 0);", "\tif (__sync_val_compare_and_swap(since, from_ns, 0) != from_ns)\n\t\t__sync_lock_test_and_set(since, 0);"),
    "charge_underflows": (": 2 * SCX_SLICE_DFL", ": SCX_SLICE_DFL"),
    "charges_whole_slices": ("((ns) / 5000000 * 5000000)", "(ns)"),
    "counted_then_drawn": ("\t\t\treturn;\n\t\t}\n", "\t\t\treturn;\n\t\t}\n\tscx_bpf_dsq_move_to_local(SHARED, 0);\n"),
    "counter_not_back": ("COUNTED SCX_DEQ_CORE_SCHED_EXEC", "COUNTED SCX_DEQ_SCHED_CHANGE"),
    "counter_below_zero": ("\t__sync_fetch_and_add(&n_runnable, -1)", "\tif (!runnable)\n\t\t__sync_fetch_and_add(&n_runnable, -1)"),
    "idle_not_claimed": ("p->cpus_ptr)) {", "p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(cpu)) {"),
    "last_forgotten": (".flags = SCX_OPS_ENQ_LAST,", ""),
    "looks_twice": ("other = oldest_in(SHARED)", "other = oldest_in(OTHER)"),
    "kick_after_log": ("\t\treturn;\n", "\t\t;\n"),
    "knob_without_queue": ("is_sync = wake_flags & SCX_WAKE_SYNC;", "is_sync = has_sync_queue && (wake_flags & SCX_WAKE_SYNC);"),
    "mask_at_wakeup": ("if (enq_flags & SCX_ENQ_WAKEUP)", "if (1)"),
    "masked_queue_alone": ("p->nr_cpus_allowed > 1)", "p->nr_cpus_allowed < 1)"),
    "newest_first": (" | SCX_ENQ_HEAD", ""),
    "other_cpus_counter": ("&n_queued[cpu & 63], -1", "&n_queued[at], -1"),
    "other_queues_clock": ("CLOCK_OF(p) 1 ", "CLOCK_OF(p) QUEUE_OF(p) "),
    "passes_over_preempted": ("? SHARED : OTHER;\n\n", "? SHARED : SHARED;\n\n"),
    "pinned_in_others_queue": ("if (!bpf_cpumask", "if (p->migration_disabled || !bpf_cpumask"),
    "preempts_previous_cpu": ("#ifdef LOOKS_AT_ALL_CPUS", "#if 1"),
    "remembered_cgroup": ("NUMBERED + tc->first", "NUMBERED + tc->counted"),
    "slot_given_twice": ("READ_ONCE(nr_slots);\n\tWRITE_ONCE(nr_slots, tc->slot + 1)", "__sync_fetch_and_add(&nr_slots, 1)"),
    "slots_not_freed": ("N_SLOTS 16", "N_SLOTS 4096"),
    "stale_mask": ("bits[0] |=", "bits[0] ="),
    "swapped_then_old": ("\tscx_bpf_dsq_move_to_local(SHARED + old, 0);", "\tscx_bpf_dsq_move_to_local(SHARED + active, 0);"),
    "timer_cancelled": ("bpf_timer_cancel(&c->timer);", "bpf_timer_cancel(&c->timer);\n\tbpf_timer_set_callback(&c->timer, begin_turns);"),
    "wakes_for_next_round": ("? OTHER : SHARED", "? SHARED : SHARED"),
    "weight_in_hundreds": ("* (100 / p->scx.weight)", "* 100 / p->scx.weight"),
    "yield_resets_vtime": ("\tfrom->scx.dsq_vtime = vtime_now - 2 * SCX_SLICE_DFL;\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_nothing_is_found_once_the_bug_is_mended(name, tmp_path, simulator):
    bug, repair = MENDED[name]
    text = (BUGS / f"{name}.bpf.c").read_text()
    assert text.count(bug) == 1
    path = tmp_path / f"{name}.bpf.c"
    path.write_text(text.replace(bug, repair).replace('#include "bug', f'#include "{BUGS}/bug'))
    task = task_of(path)
    for number in range(3):
        batch = do_batch(task, number)
        assert (batch.error, batch.failed) == (None, [])


def with_invariant(folder: Path, expression: str) -> Path:
    """A sound policy that counts what is queued, and says so of it."""
    path = folder / "counting.bpf.c"
    text = (BUGS / "counter_below_zero.bpf.c").read_text().replace('#include "bug', f'#include "{BUGS}/bug')
    path.write_text(text.replace("n_runnable >= 0", expression))
    return path


def test_an_invariant_that_holds_is_no_finding_and_is_not_compiled_elsewhere(tmp_path, simulator):
    # Only while it is not changed: what is false from the first callback on is seen in the first world.
    path = with_invariant(tmp_path, "n_runnable < 1000 && (n_runnable > -1000000)")
    batch = do_batch(task_of(path), 0)
    assert (batch.error, batch.failed) == (None, [])
    plain = build_policy(load_policy(str(path)))
    assert b"invariant of line" not in plain.shared_object.read_bytes()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("n_runnabel >= 0", "counting.bpf.c:6:"),
        ("n_runnabel >= 0", "n_runnabel"),
        ("", "should read '@invariant EXPR', one C expression that is true after each callback"),
        ("f(1", "counting.bpf.c:6: '@invariant f(1' should read"),
        ("1) || (1", "should read '@invariant EXPR'"),
        ("1; return", "should read '@invariant EXPR'"),
    ],
)
def test_an_expression_that_is_none_is_refused_with_its_line(expression, message, tmp_path, simulator):
    done = check(with_invariant(tmp_path, expression), "--worlds", 100, cwd=tmp_path)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_a_broken_invariant_is_a_finding_with_callback_task_and_values(tmp_path, simulator):
    done = check(BUGS / "counter_below_zero.bpf.c", "--worlds", 100, "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["found"]
    assert found["property"] == "invariant"
    assert re.search(
        r"invariant of line 6 is false after ops.stopping\(\) for a\S*\[\d+\]: n_runnable >= 0 \(-\d+ >= 0\)",
        found["text"],
    )
    again = check(BUGS / "counter_below_zero.bpf.c", "--replay", found["workload"], cwd=tmp_path)
    assert again.returncode == 1 and "is false after" in " ".join(again.stdout.split())


# ---- the command ---------------------------------------------------------------------


def test_command_writes_a_workload_that_fails_in_run_and_replay(found):
    folder, answer = found
    assert "race" not in answer["properties"], "no CPUs have interleaved"
    (stall,) = answer["found"]
    assert stall["property"] == "stall" and stall["size"] < stall["size_first"]
    assert stall["tasks"] <= 4 and "on DSQ 0x1" in stall["text"]
    assert (folder / stall["directory"] / "records.slr").is_file()
    again = check(BUGS / "urgent_always_first.bpf.c", "--replay", stall["workload"], cwd=folder)
    assert again.returncode == 1 and "on DSQ 0x1" in " ".join(again.stdout.split())
    ran = subprocess.run(
        [sys.executable, "-m", *stall["run_command"].split()], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 1 and "failed to run" in " ".join(ran.stdout.split())
    sound = check(BUGS / "none.bpf.c", "--replay", stall["workload"], cwd=folder)
    assert sound.returncode == 0 and "No counter-example" in " ".join(sound.stdout.split())


NOTHING = "no world has ended under rr in 2 s, as where a callback does not return: give more with --budget"
ENDS = {
    "no time": (Report(seconds=2.0), 2, NOTHING),
    "no world": (Report(seconds=0.1, is_interrupted=True), 130, "Interrupted before a world was tried for rr."),
    "some": (Report(seconds=9.0, n_worlds=12, is_interrupted=True), 130, "Interrupted: what was found until then"),
    "all": (Report(seconds=9.0, n_worlds=12), 0, "No counter-example for rr in 12 worlds in 9 s"),
}  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_a_search_that_was_cut_short_has_not_passed(monkeypatch, capsys, tmp_path, end, as_json):
    report, status, said = ENDS[end]
    monkeypatch.setattr("schedlab.check.search.search", lambda *_, **__: report)
    junit = tmp_path / "junit.xml"
    words = ["schedlab", "check", "rr", "--junit", str(junit), *(["--json"] if as_json else [])]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    shown = capsys.readouterr()
    assert left.value.code == status
    assert status == 2 or ("<failure" in junit.read_text()) == (status == 130)
    if not as_json:
        assert said in " ".join((shown.out + shown.err).split())
    elif status == 2:
        assert json.loads(shown.out)["error"]["message"] == NOTHING
    else:
        assert json.loads(shown.out)["is_interrupted"] == report.is_interrupted


def test_command_writes_a_test_that_fails_until_the_policy_is_mended(found):
    folder, _ = found
    (test,) = folder.glob("out/check/*/test_*.py")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", test],
                          cwd=folder, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1 and "1 failed" in done.stdout
    test.write_text(test.read_text().replace("urgent_always_first.bpf.c'", "none.bpf.c'"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", test],
                          cwd=folder, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_command_shows_tasks_chart_and_what_to_type(tmp_path, simulator):
    done = check(BUGS / "forgotten_kick.bpf.c", "--worlds", 100, "--junit", "report.xml", cwd=tmp_path)
    assert done.returncode == 1
    for text in ("work: a CPU is idle", "[[task]]", "█", "schedlab run out/check/forgotten_kick/work-1.toml",
                 "forgotten_kick failed in 100 worlds"):  # fmt: skip
        assert text in " ".join(done.stdout.split())
    assert '<failure message="at ' in (tmp_path / "report.xml").read_text()


def test_command_keeps_to_a_given_workload(tmp_path, simulator):
    done = check(BUGS / "no_stealing.bpf.c", "--workload", "mixed", "--worlds", 100, cwd=tmp_path)
    assert done.returncode == 1 and "schedlab run mixed --policy" in " ".join(done.stdout.split())


def test_never_worse_than_finds_where_a_policy_loses(tmp_path, simulator):
    done = check("fifo", "--never-worse-than", "rr", "--property", "worse", "--worlds", 100, cwd=tmp_path)
    assert done.returncode == 1 and re.search(r"wakeup_p99 is \S+ ns,\s+under\s+rr\s+\S+\s+ns", done.stdout)
    same = check("rr", "--never-worse-than", "rr", "--property", "worse", "--worlds", 100, cwd=tmp_path)
    assert same.returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rr", "--property", "stal"], "--property stal: unknown (did you mean 'stall'?)"),
        (["nosuch"], "nosuch"),
        (["rr", "--never-worse-than", "fifo", "--metric", "tasks"], "--metric tasks"),
        (["rr", "--never-worse-than", "fifo", "--by", "much"], "--by much: give a share"),
        (["rr", "--budget", "60"], "--budget"),
        (["rr", "--metric", "wakeup_p99"], "--metric: give it with --never-worse-than"),
        (["rr", "--property", "worse"], "--property worse: say than which policy"),
        (["rr", "--corpus", "nosuch"], "--corpus nosuch: it is no folder"),
        (["rr", "--out", "plain.toml/out"], "plain.toml/out: what is found could not be written there"),
        (["rr", "--junit", "nosuch/x.xml"], "--junit nosuch/x.xml: nosuch is no folder"),
        (["rr", "--junit", "."], "--junit .: it is a folder"),
        (["rr", "--replay", "missing.toml"], "missing.toml: no such file"),
        (["rr", "--replay", "plain.toml"], "plain.toml: no line '# schedlab check:"),
        (["rr", "--replay", "other.toml"], "the world sets quantum_ns, which rr does not have"),
    ],
)
def test_wrong_words_are_refused_in_a_line(words, message, tmp_path, simulator):
    plain = '[workload]\ntitle = "t"\nquestion = "q"\n[[task]]\nname = "a"\nphases = [{run = "1ms"}]\n'
    (tmp_path / "plain.toml").write_text(plain)
    how = {"property": "stall", "topology": "", "seed": 1, "settings": {"quantum_ns": 1}}
    (tmp_path / "other.toml").write_text(f"# schedlab check: {json.dumps(how)}\n{plain}")
    done = check(*words, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
