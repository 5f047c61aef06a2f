/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on Linux.
 *
 * Called by the tasks of a run, each for itself. Locks and pipes are in
 * ../tasks/sync.c, files in files.c, children in task.c.
 *
 * Read next: player/player.c, which calls these.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <scx/types.h>
#include <scx/attrs.h>

#include "play.h"

#define NS_PER_MS 1000000ULL
#define CALIBRATE_NS (5 * NS_PER_MS)
#define CALIBRATIONS 5
/* Shorter than what a step is exact to. */
#define NOTHING_NS 500
#define STEP_NS 10000
/* A tick takes 4 to 40 us on a virtual machine; the shortest slice is 700. */
#define AWAY_NS 50000

/* The best of a few tries: disturbances only ever make a loop slower. */
void verbs_calibrate(void)
{
	u64 rounds = 100000;

	for (int i = 0; i < CALIBRATIONS; i++) {
		u64 from_ns = cpu_time_ns();
		u64 used_ns;

		sl_work(SL_WORK_SPIN, rounds);
		used_ns = cpu_time_ns() - from_ns;
		if (used_ns && rounds * NS_PER_MS / used_ns > run.rounds_per_ms)
			run.rounds_per_ms = rounds * NS_PER_MS / used_ns;
		rounds = run.rounds_per_ms * CALIBRATE_NS / NS_PER_MS;
	}
	if (!run.rounds_per_ms)
		run.rounds_per_ms = 1;
}

/* Time 0 is the start of the run, as it is in the simulator. */
static u64 now_ns(struct sl_player *p)
{
	(void)p;
	return monotonic_ns() - run.shared->start_ns;
}

/*
 * Steps of work of known length, with a look at the machine's clock after each. That
 * is no system call. The task's own CPU clock would be: Linux does its accounts then
 * and ends a slice that is used, which it does at ticks otherwise, so that each look
 * would change the schedule that is to be observed.
 *
 * A step that took longer by more than AWAY_NS had its CPU taken away, by another task
 * or by the hypervisor, and counts as long as the last one; what took it less counts as
 * Linux would: interrupts are the task's own time. If one step after the other is too
 * long it is the CPU that has become slower: what is usual doubles until it fits.
 */
static int use_cpu(struct sl_player *p, u64 ns)
{
	u64 usual_ns = STEP_NS;
	u64 at_ns = monotonic_ns();
	u64 had_ns = 0;

	*(u64 *)p->host += ns;
	while (had_ns + NOTHING_NS < ns) {
		u64 left_ns = ns - had_ns;
		u64 step_ns = left_ns < STEP_NS ? left_ns : STEP_NS;
		u64 before_ns = at_ns;
		u64 due_ns;

		sl_work(SL_WORK_SPIN, step_ns * run.rounds_per_ms / NS_PER_MS);
		at_ns = monotonic_ns();
		due_ns = usual_ns * step_ns / STEP_NS;
		if (at_ns - before_ns > due_ns + AWAY_NS) {
			had_ns += due_ns;
			usual_ns *= 2;
			continue;
		}
		had_ns += at_ns - before_ns;
		if (step_ns == STEP_NS)
			usual_ns = at_ns - before_ns;
	}
	return 0;
}

/* The one look at its own clock, when nothing can be disturbed any more. */
void verbs_settle(struct sl_player *p, u64 before_ns)
{
	u64 asked_ns = *(u64 *)p->host;

	for (;;) {
		u64 had_ns = cpu_time_ns() - before_ns;

		if (had_ns + NOTHING_NS >= asked_ns)
			return;
		use_cpu(p, asked_ns - had_ns);
	}
}

static int sleep_until(struct sl_player *p, u64 at_ns)
{
	(void)p;
	return tasks_sleep(run.shared->start_ns + at_ns);
}

struct sync_object *sync_object(struct sl_player *p, u32 object)
{
	(void)p;
	return &run.shared->objects[object];
}

static int spawn(struct sl_player *p, u32 task)
{
	(void)p;
	return task_spawn(task);
}

static int wait_children(struct sl_player *p, u64 children)
{
	return task_wait(p->task, children, p->nr_awaited);
}

/* Of a task's attributes Linux's own classes know the weight alone; a policy, all. */
static int set(struct sl_player *p, u32 key, u64 value)
{
	(void)p;
	if (key != TASK_ATTR_WEIGHT)
		return attrs_change(run.attrs_fd, gettid(), key, value);
	if (!run.options.has_weights)
		return 0;
	return setpriority(PRIO_PROCESS, 0, nice_of_weight(value)) ? -errno : 0;
}

const struct sl_player_ops verbs = {
	.now_ns = now_ns,
	.run = use_cpu,
	.work = tasks_work,
	.sleep_until = sleep_until,
	.read = files_read,
	.write = files_write,
	.yield = tasks_yield,
	.lock = sync_lock,
	.unlock = sync_unlock,
	.send = sync_send,
	.recv = sync_recv,
	.barrier = sync_barrier,
	.await = sync_await,
	.signal = sync_signal,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
};
