/* SPDX-License-Identifier: MIT */
/*
 * task.c - one task of the program, from its making to its end.
 *
 *	NEW --make--> READY --time 0, arrival--> RUNNING --exit, error--> ENDED
 *	  \--spawn, by its parent------------------^
 *
 * A process or a thread makes itself: name, nice value, CPUs and files, before
 * it says that it is ready. It writes down its own times and figures; where it is
 * killed, the runner finds what is left of them.
 *
 * Read next: usage.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "play.h"

#define THREAD_STACK_BYTES (256 << 10)
#define CPUS_MAX 1024

/* The CPUs of the whole run: the n-th of them is the program's CPU n. */
static cpu_set_t *run_cpus(void)
{
	static cpu_set_t cpus;
	static bool is_known;

	if (!is_known)
		is_known = !sched_getaffinity(0, sizeof(cpus), &cpus);
	return &cpus;
}

static int set_cpus(const struct sl_program_task *task)
{
	const u64 *mask = sl_program_values(run.program) + task->affinity;
	cpu_set_t cpus;
	u32 number = 0;

	if (task->affinity == SL_PROGRAM_NONE)
		return 0;
	CPU_ZERO(&cpus);
	for (u32 cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET(cpu, run_cpus()))
			continue;
		if (number / 64 < task->affinity_words && mask[number / 64] >> number % 64 & 1)
			CPU_SET(cpu, &cpus);
		number++;
	}
	return sched_setaffinity(0, sizeof(cpus), &cpus) ? -errno : 0;
}

int task_nice(u32 i, int of_class)
{
	const struct sl_program_task *task = &sl_program_tasks(run.program)[i];

	if (task->nice)
		return task->nice;
	return task->weight == 100 ? of_class : nice_of_weight(task->weight);
}

static int set_nice(u32 i)
{
	int before = getpriority(PRIO_PROCESS, 0);
	int nice = task_nice(i, before);

	if (!run.options.has_weights || nice == before)
		return 0;
	return setpriority(PRIO_PROCESS, 0, nice) ? -errno : 0;
}

static void note_ready(void)
{
	__atomic_add_fetch(&run.shared->nr_ready, 1, __ATOMIC_RELEASE);
	futex_wake(&run.shared->nr_ready, 1);
}

static void sleep_to_arrival(u64 arrival_ns)
{
	u64 at_ns = run.shared->start_ns + arrival_ns;
	struct timespec at = { .tv_sec = (time_t)(at_ns / 1000000000),
			       .tv_nsec = (long)(at_ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Until time 0 is set, then until the task's own time. */
static void await_arrival(struct task *me, u64 arrival_ns)
{
	struct shared *s = run.shared;

	me->before = usage_of_self(run.options.are_threads);
	__atomic_store_n(&me->state, TASK_READY, __ATOMIC_RELEASE);
	note_ready();
	while (!__atomic_load_n(&s->may_go, __ATOMIC_ACQUIRE))
		futex_wait(&s->may_go, 0, ~0ULL);
	__atomic_add_fetch(&s->nr_armed, 1, __ATOMIC_RELEASE);
	futex_wake(&s->nr_armed, 1);
	sleep_to_arrival(arrival_ns);
	me->arrival_ns = arrival_ns;
}

static void note_end(u32 i, int failed, u32 op)
{
	struct shared *s = run.shared;
	struct task *me = &s->tasks[i];
	u32 parent = sl_program_tasks(run.program)[i].parent;

	me->end_ns = monotonic_ns() - s->start_ns;
	me->used = usage_since(usage_of_self(run.options.are_threads), me->before);
	me->failed = failed;
	me->op = op;
	__atomic_store_n(&me->state, TASK_ENDED, __ATOMIC_RELEASE);
	if (parent != SL_PROGRAM_NONE && run.options.are_threads) {
		u32 *ended = &s->tasks[parent].children_ended;

		__atomic_add_fetch(ended, 1, __ATOMIC_RELEASE);
		futex_wake(ended, 1);
	}
	/* A task that fails ends the run: others may wait for it without end. */
	if (failed)
		__atomic_store_n(&s->lost_task, i + 1, __ATOMIC_RELEASE);
	if (!__atomic_sub_fetch(&s->nr_alive, 1, __ATOMIC_ACQ_REL) || failed)
		futex_wake(&s->nr_alive, 1);
}

/* What it needs before its first verb. Return: 0 or -errno, with the step. */
static int prepare(u32 i, struct task *me)
{
	int failed;

	me->step = STEP_CPUS;
	failed = set_cpus(&sl_program_tasks(run.program)[i]);
	if (failed)
		return failed;
	me->step = STEP_NICE;
	failed = set_nice(i);
	if (failed)
		return failed;
	me->step = STEP_ATTRIBUTES;
	failed = attrs_write(run.attrs_fd, me->tid, &sl_program_tasks(run.program)[i]);
	if (failed)
		return failed;
	me->step = STEP_FILES;
	failed = files_open_own(i);
	if (!failed)
		me->step = STEP_PLAY;
	return failed;
}

/* What a task is, whether it is a process or a thread. */
static void be_task(u32 i, bool is_spawned)
{
	const struct sl_program_task *task = &sl_program_tasks(run.program)[i];
	struct task *me = &run.shared->tasks[i];
	u64 asked_ns = 0;
	struct sl_player player = {
		.program = run.program,
		.task = i,
		.ops = &verbs,
		.host = &asked_ns,
	};
	int failed;

	if (is_spawned)
		me->first_run_ns = monotonic_ns() - run.shared->start_ns;
	me->tid = gettid();
	prctl(PR_SET_NAME, sl_program_string(run.program, task->name));
	/* A nanosecond, so that a sleep ends when it should. */
	prctl(PR_SET_TIMERSLACK, 1);
	failed = prepare(i, me);
	if (!is_spawned) {
		await_arrival(me, task->arrival_ns);
		me->first_run_ns = monotonic_ns() - run.shared->start_ns;
	}
	__atomic_store_n(&me->state, TASK_RUNNING, __ATOMIC_RELEASE);
	player.arrival_ns = me->arrival_ns;
	if (!failed)
		failed = sl_player_run(&player);
	if (!failed)
		verbs_settle(&player, me->before.run_ns);
	note_end(i, failed, sl_player_pc(&player));
}

/* ---- processes ---------------------------------------------------------------- */

static int fork_task(u32 i, bool is_spawned)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid)
		return 0;
	/*
	 * A child of the runner dies with it; a grandchild has a parent that may
	 * end before it, and is found by the keeper (../launch/keeper.c).
	 */
	if (!is_spawned)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	be_task(i, is_spawned);
	_exit(0);
}

void task_reaped(s32 pid, int status)
{
	struct shared *s = run.shared;

	if (WIFEXITED(status))
		return;
	for (u32 i = 0; i < run.nr_tasks; i++) {
		if (s->tasks[i].tid != pid || s->tasks[i].state == TASK_ENDED)
			continue;
		/* It was killed: the run is over. */
		s->tasks[i].signal = WTERMSIG(status);
		s->tasks[i].end_ns = monotonic_ns() - s->start_ns;
		__atomic_store_n(&s->tasks[i].state, TASK_ENDED, __ATOMIC_RELEASE);
		__atomic_store_n(&s->lost_task, i + 1, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&s->nr_alive, 1, __ATOMIC_ACQ_REL);
		futex_wake(&s->nr_alive, 1);
	}
}

static int wait_processes(u64 children)
{
	while (children) {
		int status;
		pid_t pid = wait4(-1, &status, 0, NULL);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return -errno;
		task_reaped(pid, status);
		children--;
	}
	return 0;
}

/* ---- threads ------------------------------------------------------------------- */

static void *be_thread(void *arg)
{
	u32 number = (u32)(uintptr_t)arg;

	be_task(number >> 1, number & 1);
	return NULL;
}

static int start_thread(u32 i, bool is_spawned)
{
	pthread_attr_t attr;
	pthread_t thread;
	int failed;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	failed = pthread_create(&thread, &attr, be_thread, (void *)(uintptr_t)(i << 1 | is_spawned));
	pthread_attr_destroy(&attr);
	return -failed;
}

static int wait_threads(u32 parent, u64 nr_awaited)
{
	u32 *ended = &run.shared->tasks[parent].children_ended;

	for (;;) {
		u32 seen = __atomic_load_n(ended, __ATOMIC_ACQUIRE);

		if (seen >= nr_awaited)
			return 0;
		futex_wait(ended, seen, ~0ULL);
	}
}

/* ---- for both ------------------------------------------------------------------- */

int task_make(u32 i)
{
	/* Before the first task changes its own. */
	run_cpus();
	return run.options.are_threads ? start_thread(i, false) : fork_task(i, false);
}

int task_spawn(u32 i)
{
	struct shared *s = run.shared;
	int failed;

	s->tasks[i].arrival_ns = monotonic_ns() - s->start_ns;
	__atomic_add_fetch(&s->nr_alive, 1, __ATOMIC_ACQ_REL);
	failed = run.options.are_threads ? start_thread(i, true) : fork_task(i, true);
	if (failed)
		__atomic_sub_fetch(&s->nr_alive, 1, __ATOMIC_ACQ_REL);
	return failed;
}

int task_wait(u32 parent, u64 children, u64 nr_awaited)
{
	return run.options.are_threads ? wait_threads(parent, nr_awaited) :
					 wait_processes(children);
}
