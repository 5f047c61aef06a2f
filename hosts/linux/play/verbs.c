/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on Linux.
 *
 * Called by the tasks of a run, each for itself. Locks and pipes are in
 * ../tasks/sync.c, files in files.c, children in task.c.
 *
 * Read next: player/player.c, who calls these.
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
/* Shorter than what a look at the clock costs on a virtual machine. */
#define NOTHING_NS 500

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
 * A loop of known length, then a look at the task's own clock: three quarters of
 * what is left each time, so that a CPU that has become slower is not overrun,
 * and a second costs about ten looks. A look is a system call, and would be
 * counted as system time.
 */
static int use_cpu(struct sl_player *p, u64 ns)
{
	u64 until_ns = cpu_time_ns() + ns;
	u64 left_ns = ns;

	(void)p;
	for (;;) {
		u64 now = cpu_time_ns();

		if (now + NOTHING_NS >= until_ns)
			return 0;
		left_ns = until_ns - now;
		if (left_ns > 4 * NOTHING_NS)
			left_ns -= left_ns / 4;
		/* A step is at most a second, so this does not overflow. */
		if (left_ns > NS_PER_S)
			left_ns = NS_PER_S;
		sl_work(SL_WORK_SPIN, left_ns * run.rounds_per_ms / NS_PER_MS);
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
