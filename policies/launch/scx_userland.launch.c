/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The user half of scx_userland, with the defaults of its options: tasks wait in the order of their
 * weighted CPU time, of equals the last first, and eight at a time are dispatched.
 */
#include <scx/launch.h>

#define LAUNCH_PIDS (1 << 20)
#define LAUNCH_BATCH 8
/* A round makes some twenty system calls. */
#define LAUNCH_ROUND_NS 10000

static struct launch_task {
	u64 ran_ns, vtime;
	s32 next; /* pid; 0: none */
	bool is_queued;
} launch_tasks[LAUNCH_PIDS];
static s32 launch_first;
static u64 launch_min_vtime, launch_nr;

static void launch_enqueue(const struct scx_userland_enqueued_task *e)
{
	struct launch_task *t = &launch_tasks[e->pid];
	s32 *link = &launch_first;

	t->vtime += (e->sum_exec_runtime - t->ran_ns) * 100 / e->weight;
	t->ran_ns = e->sum_exec_runtime;
	if (t->vtime < launch_min_vtime)
		t->vtime = launch_min_vtime;
	/* It is there twice where its weight was changed meanwhile. */
	if (t->is_queued)
		return;
	while (*link && launch_tasks[*link].vtime < t->vtime)
		link = &launch_tasks[*link].next;
	t->next = *link;
	t->is_queued = true;
	*link = e->pid;
	launch_nr++;
}

static void launch_dispatch(void)
{
	s32 pid = launch_first;

	launch_min_vtime = launch_tasks[pid].vtime;
	if (bpf_map_push_elem(&dispatched, &pid, 0))
		return;
	launch_first = launch_tasks[pid].next;
	launch_tasks[pid].is_queued = false;
	launch_nr--;
}

SL_USER_HALF(LAUNCH_ROUND_NS)
{
	struct scx_userland_enqueued_task e;

	while (!bpf_map_pop_elem(&enqueued, &e))
		launch_enqueue(&e);
	nr_queued = 0;
	for (u32 i = 0; i < LAUNCH_BATCH && launch_first; i++)
		launch_dispatch();
	nr_scheduled = launch_nr;
}

/* It prints statistics, and with that ends an idle CPU's sleep. */
SL_USER_THREAD(1000000000, 50000) { }

static int launch(void)
{
	SL_SET(num_possible_cpus, scx_bpf_nr_cpu_ids());
	SL_SET(usersched_pid, sl_scx_user_half_pid());
	return 0;
}
