/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on Linux.
 *
 * Called by the processes of a run, each for itself. What tasks share is in
 * ../tasks/sync.c; for `read` and `write` there is device.c.
 *
 * Read next: play.c, which makes the processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <scx/types.h>
#include <scx/attrs.h>

#include "guest.h"

static struct shared *shared_of(struct sl_player *p)
{
	return p->host;
}

struct sync_object *sync_object(struct sl_player *p, u32 object)
{
	return &shared_of(p)->objects[object];
}

/* Time 0 is the start of the run, as it is in the simulator. */
static u64 now_ns(struct sl_player *p)
{
	return monotonic_ns() - shared_of(p)->start_ns;
}

/*
 * A run is CPU time, the calls between it and the next one included: what they took
 * is taken off, but never more than this part of a run. It stops early by about what
 * one takes, so that a burst as long as a tick is over, call and all, before it.
 */
#define CALL_IN_RUN_PART 128
#define CALL_NS 12000	/* of 12,000 instructions, switching and tracing included */

/* Own CPU time when the last run was over, and what was taken off it for a call. */
static u64 ended_ns, prepaid_ns;

void verbs_begin(void)
{
	ended_ns = cpu_time_ns();
	prepaid_ns = 0;
}

static u64 at_most(u64 ns, u64 limit_ns)
{
	return ns < limit_ns ? ns : limit_ns;
}

static int run(struct sl_player *p, u64 ns)
{
	u64 now_ns = cpu_time_ns();
	u64 part_ns = ns / CALL_IN_RUN_PART;
	u64 calls_ns = now_ns - ended_ns;
	u64 early_ns = at_most(CALL_NS, part_ns);
	u64 until_ns = now_ns + ns - early_ns;

	(void)p;
	if (calls_ns > prepaid_ns)
		until_ns -= at_most(calls_ns - prepaid_ns, part_ns);
	else
		until_ns += prepaid_ns - calls_ns;
	prepaid_ns = early_ns;
	do
		ended_ns = cpu_time_ns();
	while (ended_ns < until_ns);
	return 0;
}

static int sleep_until(struct sl_player *p, u64 at_ns)
{
	return tasks_sleep(shared_of(p)->start_ns + at_ns);
}

/* The process is there already; see play.c for why. */
static int spawn(struct sl_player *p, u32 task)
{
	struct shared_task *tasks = shared_of(p)->tasks;
	u32 *started = &tasks[task].started;
	int failed = 0;

	if (tasks[task].group != tasks[p->task].group) {
		tasks[task].group = tasks[p->task].group;
		failed = groups_join(p->program, tasks[task].group, tasks[task].pid);
	}
	if (failed)
		return failed;
	__atomic_store_n(started, 1, __ATOMIC_RELEASE);
	futex_wake(started, 1);
	return 0;
}

static int wait_children(struct sl_player *p, u64 children)
{
	struct shared_task *me = &shared_of(p)->tasks[p->task];
	u32 seen;

	/* The player has counted @children into nr_awaited already. */
	(void)children;
	__atomic_store_n(&me->children_needed, (u32)p->nr_awaited, __ATOMIC_SEQ_CST);
	while ((seen = __atomic_load_n(&me->children_ended, __ATOMIC_SEQ_CST)) < p->nr_awaited)
		futex_wait(&me->children_ended, seen, ~0ULL);
	return 0;
}

/* A parent is woken by the last child that it waits for, not by each. */
void verbs_end(struct shared_task *parent)
{
	u32 ended = __atomic_add_fetch(&parent->children_ended, 1, __ATOMIC_SEQ_CST);

	if (ended == __atomic_load_n(&parent->children_needed, __ATOMIC_SEQ_CST))
		futex_wake(&parent->children_ended, 1);
}

static int join(struct sl_player *p, u32 object)
{
	shared_of(p)->tasks[p->task].group = object + 1;
	return groups_join(p->program, object + 1, getpid());
}

/* The lower 64 CPUs are all that a guest has. */
int bind_cpus(s32 pid, u64 mask)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (u32 cpu = 0; cpu < 64; cpu++)
		if (mask >> cpu & 1)
			CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set) ? -errno : 0;
}

/* A task that has ended has its process until the end of the run. */
static int change(struct sl_player *p, u32 task, u32 key, u64 value)
{
	s32 pid = task == SL_PROGRAM_NONE ? getpid() : shared_of(p)->tasks[task].pid;

	if (key == SL_CHANGE_AFFINITY)
		return bind_cpus(pid, sl_program_values(p->program)[value >> 32]);
	if (key == TASK_ATTR_WEIGHT)
		return setpriority(PRIO_PROCESS, pid, nice_of_weight(value)) ? -errno : 0;
	return attrs_change(shared_of(p)->attrs_fd, pid, key, value);
}

static int set(struct sl_player *p, u32 key, u64 value)
{
	return change(p, SL_PROGRAM_NONE, key, value);
}

const struct sl_player_ops verbs = {
	.now_ns = now_ns,
	.run = run,
	.work = tasks_work,
	.sleep_until = sleep_until,
	.read = device_transfer,
	.write = device_transfer,
	.yield = tasks_yield,
	.lock = handover_lock,
	.unlock = handover_unlock,
	.send = handover_send,
	.recv = handover_recv,
	.barrier = sync_barrier,
	.await = sync_await,
	.signal = sync_signal,
	.join = join,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
	.change = change,
};
