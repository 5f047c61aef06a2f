/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The user half of scx_rustland, with the defaults of its options: tasks wait in the order of their
 * deadlines, which are virtual time plus what they ran since they slept, and one of them goes back in a round.
 */
#include "rustland.h"

#define LAUNCH_SLICE_NS 20000000ULL
#define LAUNCH_SLICE_MIN_NS 1000000ULL
/* As many as the policy's ring buffer has room for, and those that were taken from it. */
#define LAUNCH_WAITING_MAX (1 << 20)

static struct launch_task {
	struct queued_task_ctx task;
	u64 deadline, at_ns;
	u32 next; /* number from 1; 0: none */
} launch_tasks[LAUNCH_WAITING_MAX];
static u32 launch_first, launch_free, launch_nr_used;
static u64 launch_vtime, launch_nr;

static u64 launch_deadline(struct queued_task_ctx *task)
{
	u64 min = launch_vtime > LAUNCH_SLICE_NS ? launch_vtime - LAUNCH_SLICE_NS : 0;
	u64 ran_ns = task->stop_ts > task->start_ts ? task->stop_ts - task->start_ts : 0;
	u64 since_sleep_ns = task->exec_runtime;

	/* A new task has none. */
	if (!task->vtime)
		task->vtime = launch_vtime;
	else if (task->vtime < min)
		task->vtime = min;
	ran_ns = ran_ns * 100 / task->weight;
	task->vtime += ran_ns;
	launch_vtime += ran_ns;
	if (since_sleep_ns > 100 * LAUNCH_SLICE_NS)
		since_sleep_ns = 100 * LAUNCH_SLICE_NS;
	return task->vtime + since_sleep_ns;
}

static bool launch_is_before(const struct launch_task *a, const struct launch_task *b)
{
	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->task.pid < b->task.pid;
}

static void launch_insert(u32 nr)
{
	struct launch_task *t = &launch_tasks[nr - 1];
	u32 *link = &launch_first;

	while (*link && launch_is_before(&launch_tasks[*link - 1], t))
		link = &launch_tasks[*link - 1].next;
	t->next = *link;
	*link = nr;
	launch_nr++;
}

static u32 launch_number(void)
{
	u32 nr = launch_free;

	if (!nr)
		return launch_nr_used < LAUNCH_WAITING_MAX ? ++launch_nr_used : 0;
	launch_free = launch_tasks[nr - 1].next;
	return nr;
}

static void launch_take_all(void)
{
	struct queued_task_ctx task;
	u32 nr;

	while (launch_take(&task) && (nr = launch_number())) {
		launch_tasks[nr - 1] = (struct launch_task){
			.task = task,
			.deadline = launch_deadline(&task),
			.at_ns = bpf_ktime_get_ns(),
		};
		launch_insert(nr);
	}
}

SL_USER_HALF(LAUNCH_ROUND_NS)
{
	u32 nr;

	launch_take_all();
	nr = launch_first;
	if (nr) {
		struct launch_task *t = &launch_tasks[nr - 1];
		u32 next = t->next;

		if (launch_give(&t->task, LAUNCH_SLICE_MIN_NS * t->task.weight / 100, t->deadline)) {
			launch_first = next;
			t->next = launch_free;
			launch_free = nr;
			launch_nr--;
		}
	}
	nr_scheduled = launch_nr;
}

static int launch(void)
{
	return launch_rustland(LAUNCH_SLICE_MIN_NS);
}
