# SPDX-License-Identifier: MIT
"""The core on a fake host: its locks on four threads, its parts on one.

The seed is new every day, and printed; SCHEDLAB_SEED=N repeats a run. With
SCHEDLAB_CORE_ROUNDS=N the random operations go on for N rounds of 60 ms per
policy instead of a few; the nightly suite takes 100. Which thread is faster is
not up to the seed: a failure may need several tries to come again.
"""

from __future__ import annotations

import datetime
import os

import pytest

from core.core_programs import build_program, run_program

POLICIES = ("none", "fifo", "vtime", "percpu", "pids", "late", "walk", "direct", "last", "preempt", "faulty")
#: What a policy is there to exercise: a run that never did tested nothing.
MUST_COUNT = {
    "fifo": ("enqueue", "dequeue", "dispatch", "direct"),
    "vtime": ("custody", "dequeue"),
    "percpu": ("direct", "custody", "reenqueued"),
    "pids": ("custody", "dequeue", "reused"),
    "late": ("custody", "dequeue", "reused", "stale"),
    "walk": ("moved", "timer", "reused"),
    "direct": ("direct", "enqueue"),
    "last": ("last",),
    "preempt": ("kick", "direct"),
    "faulty": ("failures",),
}
SEED = int(os.environ.get("SCHEDLAB_SEED", datetime.date.today().toordinal()))
ROUNDS = int(os.environ.get("SCHEDLAB_CORE_ROUNDS", 4))
ROUNDS_NIGHTLY = 100


@pytest.fixture(scope="session")
def program(root, need, tmp_path_factory):
    """Function that gives a test program, built once per kind."""
    folder = tmp_path_factory.mktemp("core")
    built = {}

    def make(name, sources, kind):
        if (name, kind) not in built:
            built[name, kind] = build_program(
                root, folder, name, sources, kind=kind, compiler=need("clang-19")
            )
        return built[name, kind]

    return make


@pytest.mark.parametrize("policy", POLICIES)
#: Without a sanitizer ten times as much happens in the same time.
@pytest.mark.full
@pytest.mark.parametrize("kind", ["thread", "address", "plain"])
def test_random_operations(program, kind, policy):
    # Both kinds of topology: an odd seed has siblings and caches.
    seed = SEED * 2 + (kind == "thread") + POLICIES.index(policy)
    play(program, kind, policy, "--seed", seed, "--rounds", ROUNDS)


@pytest.mark.nightly
@pytest.mark.parametrize("cpus", [2, 4, 8])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["thread", "address", "plain"])
def test_random_operations_for_long(program, kind, policy, cpus):
    play(
        program,
        kind,
        policy,
        "--seed",
        SEED + cpus // 4,
        "--rounds",
        ROUNDS_NIGHTLY,
        "--cpus",
        cpus,
        "--tasks",
        10 * cpus,
    )


def test_the_seed_that_found_a_freed_first_task(program):
    """ThreadSanitizer on a busy machine; race_first_of_a_queue_is_freed is the same, every time."""
    play(program, "thread", "vtime", "--seed", 1479888, "--rounds", 4)


RANDOM_SOURCES = ["random_ops.c", "random_check.c", "random_policies.c", "random_held.c"]


def play(program, kind, policy, *words):
    """Run random operations, and see that they did what they are there for."""
    binary = program("random_ops", RANDOM_SOURCES, kind)
    print(f"SCHEDLAB_SEED={SEED}")
    said = run_program(binary, policy, *words, "--round-ms", 60)
    words = said.splitlines()[-1].split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert counts["steps"] > 1000 and counts["spawned"] > 20
    # A policy that counts idle CPUs can begin only when it may count them.
    live = () if policy in ("none", "preempt") else ("switched",)
    for name in (*MUST_COUNT.get(policy, ()), *live):
        assert counts[name] > 0, f"nothing counted under {name}: {said}"


UNIT_SOURCES = [
    "unit.c", "unit_cgroup.c", "unit_credit.c", "unit_dsq.c", "unit_dump.c", "unit_idle.c", "unit_idlers.c", "unit_maps.c", "unit_misuse.c",
    "unit_policy.c", "unit_races.c", "unit_refused.c", "unit_text.c", "unit_timers.c",
]  # fmt: skip
UNITS = (
    "race_change_before_the_switch", "race_destroyed_queue", "race_failure_while_a_policy_comes",
    "race_first_of_a_queue_is_freed",
    "race_going_idle_before_a_task_is_queued", "race_queueing_before_a_cpu_is_idle",
    "race_policy_comes_while_one_wakes", "race_reused_memory",
    "race_stale_turn", "race_wake_after_the_clock",
    "affinity_waits_for_migration", "a_task_keeps_its_cpus_where_there_is_no_memory_for_others", "equal_affinities_are_one_mask",
    "a_bound_task_gets_its_cpus_when_it_is_free",
    "a_cgroup_has_a_weight_and_a_bandwidth", "a_cgroup_has_the_cpus_of_those_above_it", "a_task_has_the_cpus_of_its_cgroup", "a_task_is_moved_wherever_it_is", "a_tree_keeps_its_nodes_in_order",
    "cgroups_are_found_and_removed", "cgroups_come_and_go_with_the_policy",
    "the_cgroup_of_another_task_is_not_told",
    "a_change_kicks_no_cpu", "a_cpu_that_loses_its_task_takes_another", "a_move_does_not_unbind_a_task",
    "a_disallowed_task_is_an_error", "a_policy_may_leave", "a_policy_that_leaves_writes_nothing_down",
    "dump_of_a_policy_has_a_length", "what_is_not_supported_is_refused_by_name", "a_running_task_whose_slice_is_set_is_the_hosts_business",
    "a_task_that_never_starts_is_cancelled", "a_turn_that_began_late_ends_at_its_tick", "attributes", "cpumasks", "dsq_builtin_stays",
    "credit_gives_out_what_it_was_late_for", "dsq_create_destroy",
    "dsq_fifo", "dsq_many", "dsq_no_vtime_among_fifo", "dsq_tree_is_shallow", "dsq_vtime", "dump",
    "a_wait_begins_where_the_last_turn_ended", "dump_keeps_the_tasks_that_it_found", "dump_waits_for_nobody",
    "enable_failures_leave_nothing", "enable_under_tasks", "format_like_the_c_library",
    "format_odd_input", "idle_choice", "idle_choice_of_a_sync_wakeup", "a_cpu_misses_no_task_that_becomes_runnable_on_it", "idle_stale_core_mask", "map_arrays",
    "map_contents_do_not_outlive_the_policy", "map_hash", "map_impossible_ones",
    "locks_that_wait_for_each_other", "map_no_memory", "map_of_the_same_name", "map_task_storage", "map_too_many",
    "map_values_hold_timers_and_locks",
    "misuse_is_reported_and_survived",
    "setup_of_used_memory", "stale_dispatches_are_ignored",
    "pinned_timers_run_where_they_were_started", "timers_have_an_end", "timers_in_order", "watchdog",
)  # fmt: skip


@pytest.mark.parametrize("name", UNITS)
def test_unit(program, name):
    binary = program("unit", UNIT_SOURCES, "address")
    for seed in range(SEED, SEED + 4):
        run_program(binary, name, seed)


def test_units_are_all_run(program):
    binary = program("unit", UNIT_SOURCES, "address")
    assert run_program(binary, "list").split() != []
    assert sorted(run_program(binary, "list").split()) == sorted(UNITS)
