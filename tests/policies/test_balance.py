# SPDX-License-Identifier: MIT
"""What the user halves of scx_rusty and scx_wd40 do every 100 ms and every 2 s (policies/launch/balance.h), worked out by hand.

The policy here has the names of their structures; a task's duty cycle is given, where theirs is a running average.
"""

from __future__ import annotations

import pytest

import schedlab

POLICY = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
enum consts {
	MAX_CPUS = 512, MAX_DOMS = 64, MAX_DOM_ACTIVE_TPTRS = 1024,
	LB_DEFAULT_WEIGHT = 100, LB_MAX_WEIGHT = 10000, LB_LOAD_BUCKETS = 100, LB_WEIGHT_PER_BUCKET = 100,
};
struct ravg_data { u64 val; };
typedef struct task_ctx {
	u64 dom_mask, preferred_dom_mask;
	u32 target_dom, weight;
	struct ravg_data dcyc_rd;
} *task_ptr;
struct dom_active_tasks { u64 gen, read_idx, write_idx; task_ptr tasks[MAX_DOM_ACTIVE_TPTRS]; };
typedef struct dom_ctx {
	struct { u64 dcycle; struct ravg_data rd; } buckets[LB_LOAD_BUCKETS];
	struct dom_active_tasks active_tasks;
} *dom_ptr;
struct dom_ctx doms[MAX_DOMS];
u32 dom_numa_id_map[MAX_DOMS], nr_doms, nr_nodes, load_half_life, targets[8], nr_tasks;
static u64 ravg_read(struct ravg_data *rd, u64 now, u64 half_life) { return rd->val; }
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	u32 i;

	bpf_for(i, 0, nr_tasks)
		bpf_printk("%u", targets[i]);
	return 0;
}
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(own_ops, .enqueue = (void *)own_enqueue, .init = (void *)own_init, .name = "own");
"""
LAUNCH = """
#define LAUNCH_GEN gen
#define LAUNCH_DOM(id) (&doms[id])
#include "balance.h"

/* Of each task the domain, the duty cycle in thousandths, weight, domains where it may be, and which it prefers. */
static struct {{ u32 dom, duty, weight, allowed, preferred; }} given[] = {{ {tasks} }};
static struct task_ctx tasks[8];

static int launch(void)
{{
	nr_doms = {n_doms};
	nr_nodes = {n_nodes};
	launch_is_full = {is_full};
	for (u32 i = 0; i < nr_doms; i++)
		dom_numa_id_map[i] = i * nr_nodes / nr_doms;
	for (u32 i = 0; i < ARRAY_SIZE(given); i++) {{
		struct dom_ctx *d = &doms[given[i].dom];
		u64 duty = ((u64)given[i].duty << 20) / 1000;

		tasks[i] = (struct task_ctx){{ given[i].allowed, given[i].preferred, given[i].dom, given[i].weight, {{ duty }} }};
		d->buckets[(given[i].weight - 1) / 100].rd.val += duty;
		d->active_tasks.tasks[d->active_tasks.write_idx++ % MAX_DOM_ACTIVE_TPTRS] = &tasks[i];
	}}
	for (u32 i = 0; i < LAUNCH_ROUNDS_PER_BALANCE; i++) {{
		launch_balance();
		if (i < LAUNCH_ROUNDS_PER_BALANCE - 1 && doms[0].active_tasks.gen)
			return -EINVAL;
	}}
	for (u32 i = 0; i < ARRAY_SIZE(given); i++)
		targets[nr_tasks++] = tasks[i].target_dom;
	return 0;
}}
SL_USER_THREAD(LAUNCH_PERIOD_NS, LAUNCH_ROUND_NS)
{{
	u64 mask = launch_not_busy();

	bpf_printk("mask %llu slice %llu", mask, launch_slice_ns());
}}
"""
HOGS = """
[workload]
title = "Tasks that compute, each on its CPU"
question = "Which domains are busy?"
jitter = "0ms"
horizon = "250ms"
"""
HOG = '[[task]]\nname = "hog{cpu}"\naffinity = [{cpu}]\nphases = [{{run = "1s"}}]\n'


@pytest.fixture
def printed(tmp_path, simulator, root):
    """Function that runs the policy with tasks as its user half has them, while others compute; what it prints."""

    def run(tasks, *, n_doms=2, n_nodes=1, is_full=False, cpus=2, llc=1, hogs=0):
        source = tmp_path / "scx_own.bpf.c"
        source.write_text(POLICY)
        (tmp_path / "balance.h").write_text((root / "policies" / "launch" / "balance.h").read_text())
        rows = ", ".join("{{ {}, {}, {}, {}, {} }}".format(*task) for task in tasks)
        source.with_name("scx_own.launch.c").write_text(
            LAUNCH.format(tasks=rows, n_doms=n_doms, n_nodes=n_nodes, is_full=int(is_full))
        )
        (tmp_path / "hogs.toml").write_text(HOGS + "".join(HOG.format(cpu=cpu) for cpu in range(hogs or 1)))
        out = tmp_path / "out"
        result = schedlab.run(
            str(tmp_path / "hogs.toml"), str(source), cpus=cpus, topology=f"llc={llc}", out=out
        )
        (run,) = result.runs.to_dicts()
        assert (run["error"], run["consistency"]) == (None, "ok")
        lines = (out / "hogs/scx_own/seed-1/policy.log").read_text().splitlines()
        return [line.split(" ", 1)[1] for line in lines]

    return run


def domains_after(printed, tasks, **machine):
    return [int(line) for line in printed(tasks, **machine)[: len(tasks)]]


@pytest.mark.parametrize(
    ("tasks", "after"),
    [
        # Loads 3 and 0: half of the difference from the average is 0.75, and a task of 1.0 leaves less than one of 0.5.
        ([(0, 1000, 100, 3, 0)] * 2 + [(0, 500, 100, 3, 0)] * 2, [1, 0, 0, 0]),
        # Within 5 % of the average nothing is moved.
        ([(0, 1000, 100, 3, 0), (1, 950, 100, 3, 0)], [0, 1]),
        # Those of 1.0 may be in their domain only; of the others one is not half of what is too much, so both go.
        ([(0, 1000, 100, 1, 0)] * 2 + [(0, 500, 100, 3, 0)] * 2, [0, 0, 1, 1]),
        # The nearest load is 0.375, but the other one prefers that domain.
        ([(0, 375, 100, 3, 1), (0, 500, 100, 3, 2)], [0, 1]),
        # A task is moved where that makes it no worse, and one of 1.2 beside one of 0.2 would leave 1.4 of 1.0.
        ([(0, 1000, 100, 3, 0)], [1]),
        ([(0, 1200, 100, 3, 0), (1, 200, 100, 3, 0)], [0, 1]),
    ],
)
def test_tasks_go_where_there_is_less_load(printed, tasks, after):
    assert domains_after(printed, tasks) == after


def test_nodes_are_balanced_before_their_domains(printed):
    """Four tasks of 1.0 in the first of four domains: the last of them goes to the other node, the first to the other domain."""
    tasks = [(0, 1000, 100, 15, 0)] * 4
    assert domains_after(printed, tasks, n_doms=4, n_nodes=2, cpus=4) == [1, 0, 0, 2]


def test_weights_count_where_no_cpu_is_idle(printed):
    """A task cannot use more than a CPU: on two, one of weight 10000 counts as three of weight 51, the middle of the lowest."""
    tasks = [(0, 1000, 10000, 3, 0)] + [(1, 1000, 1, 3, 0)] * 3
    assert domains_after(printed, tasks, is_full=True) == [0, 1, 1, 1]
    # With equal weights it is one against three.
    assert domains_after(printed, tasks) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("hogs", "line"),
    [(0, "mask 3 slice 20000000"), (2, "mask 2 slice 20000000"), (4, "mask 0 slice 1000000")],
)
def test_domains_that_are_busy(printed, hogs, line):
    """Two CPUs of a cache that compute all the time, of four; with all four, slices are short."""
    assert printed([(0, 1000, 100, 3, 0)], cpus=4, llc=2, hogs=hogs)[1:] == [line] * 2
