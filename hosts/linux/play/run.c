/* SPDX-License-Identifier: MIT */
/*
 * run.c - the tasks of a program are made, start together, and end.
 *
 *	open program -> make tasks -> rise above them -> time 0
 *	-> look now and then until all have ended, one is lost, or the horizon
 *	-> kill what is left -> reap -> tell
 *
 * The runner sleeps while the tasks run. It wakes when the last one ends, and
 * twice a second, to write down which have ended and to see whether one was killed.
 *
 * Read next: task.c, result.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "play.h"
#include "program_file.h"

#define MS 1000000ULL
#define LOOK_NS (500 * MS)
/*
 * From the moment that all are ready to time 0: for each to fall asleep again.
 * A player that is not above other programs may have to wait for them.
 */
#define START_NS (5 * MS)
#define START_NS_BELOW (100 * MS)
#define START_NS_PER_TASK (MS / 5)
#define TOP_PRIORITY 99

/* As Linux defines it; the C library of Debian 12 does not. */
struct scheduling {
	u32 size;
	u32 policy;
	u64 flags;
	s32 nice;
	u32 priority;
	u64 of_deadlines[3];
};

struct run run;
/* What the launcher gave, for the tasks to have. */
static struct scheduling class;
static bool is_above;

void run_fail(const char *kind, s32 task, const char *fmt, ...)
{
	va_list args;

	if (run.error_kind)
		return;
	run.error_kind = kind;
	run.fault_task = task;
	va_start(args, fmt);
	vsnprintf(run.error, sizeof(run.error), fmt, args);
	va_end(args);
}

/* ---- before time 0 ------------------------------------------------------------- */

static int open_program(const char *path)
{
	char why[sizeof(run.error)];

	run.program = sl_program_file_map(path, why, sizeof(why));
	if (!run.program) {
		run_fail("usage", 0, "%s", why);
		return -1;
	}
	if (sl_program_has_groups(run.program)) {
		run_fail("usage", 0, "program %s has groups, which this host lacks", path);
		return -1;
	}
	run.nr_tasks = sl_program_header(run.program)->nr_tasks;
	return 0;
}

static int make_shared(void)
{
	const struct sl_program_header *h = sl_program_header(run.program);
	u64 bytes = sizeof(struct shared) + sizeof(struct task) * h->nr_tasks +
		    sizeof(struct sync_object) * h->nr_objects;
	struct shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (s == MAP_FAILED) {
		run_fail("host", 0, "%llu bytes that tasks share: %m", bytes);
		return -1;
	}
	s->tasks = (void *)(s + 1);
	s->objects = (void *)(s->tasks + h->nr_tasks);
	run.shared = s;
	return 0;
}

static int open_pipes(void)
{
	u32 i;
	int failed = sync_open(run.program, run.shared->objects, &i);

	if (failed)
		run_fail("host", 0, "pipe '%s' of %llu bytes: %s",
			 sl_program_string(run.program, sl_program_objects(run.program)[i].name),
			 (unsigned long long)sl_program_objects(run.program)[i].param,
			 strerror(-failed));
	return failed;
}

static int open_attributes(void)
{
	u32 map = run.options.attributes_map;

	run.attrs_fd = map ? attrs_open(map) : -1;
	if (!map || run.attrs_fd >= 0)
		return 0;
	if (run.attrs_fd == -ENOTSUP)
		run_fail("unavailable", 0,
			 "this container has process numbers of its own, by which a policy does not know tasks: run outside of it");
	else if (run.attrs_fd == -EPROTO)
		run_fail("policy", 0,
			 "its map task_attrs does not hold struct task_attr of this version: include scx/task_attr.h from here");
	else
		run_fail("unavailable", 0,
			 "the policy's map %u cannot be opened: %s; it needs CAP_SYS_ADMIN: run as root",
			 map, strerror(-run.attrs_fd));
	return -1;
}

static bool is_spawned(u32 i)
{
	return sl_program_tasks(run.program)[i].parent != SL_PROGRAM_NONE;
}

/* Return: how many wait for time 0; -1 after run_fail(). */
static s32 make_tasks(void)
{
	s32 nr = 0;

	for (u32 i = 0; i < run.nr_tasks; i++) {
		int failed;

		if (is_spawned(i))
			continue;
		run.shared->nr_alive++;
		failed = task_make(i);
		if (failed) {
			run.shared->nr_alive--;
			run_fail("host", (s32)i + 1,
				 "task %u cannot be made: %s; see ulimit -u and pids.max of the cgroup",
				 i + 1, strerror(-failed));
			return -1;
		}
		nr++;
	}
	return nr;
}

/*
 * Above the tasks, to end them at the horizon whatever they do. They are made
 * there too, so that no other program keeps them from being ready at time 0; then
 * they are put under their class, asleep. Where that is not allowed they are made
 * under it, and the keeper's timeout still ends them.
 */
static void rise_above(void)
{
	const struct sched_param top = { .sched_priority = TOP_PRIORITY };
	const struct sched_param plain = { .sched_priority = 0 };

	if (syscall(SYS_sched_getattr, 0, &class, sizeof(class), 0)) {
		run_fail("host", 0, "sched_getattr: %m");
		return;
	}
	is_above = !sched_setscheduler(0, SCHED_FIFO, &top);
	if (!is_above && run.options.nr_classes)
		run_fail("unavailable", 0,
			 "a task of a class of its own needs CAP_SYS_NICE: run as root");
	if (!is_above && class.policy == SCHED_IDLE)
		sched_setscheduler(0, SCHED_OTHER, &plain);
}

/* Beside their CPUs, where there are others. */
static void step_aside(void)
{
	cpu_set_t used, others;
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	if (sched_getaffinity(0, sizeof(used), &used))
		return;
	CPU_ZERO(&others);
	for (long cpu = 0; cpu < nr && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &used))
			CPU_SET(cpu, &others);
	}
	sched_setaffinity(0, sizeof(others), &others);
}

static void await_count(u32 *count, u32 wanted)
{
	u32 seen;

	while ((seen = __atomic_load_n(count, __ATOMIC_ACQUIRE)) < wanted)
		futex_wait(count, seen, ~0ULL);
}

static bool has_name(u32 i, const struct named_class *c)
{
	const char *name = sl_program_string(run.program, sl_program_tasks(run.program)[i].name);

	return strlen(name) == c->name_bytes && !memcmp(name, c->task, c->name_bytes);
}

/* Return: the class that the options give to tasks of this name, or NULL. */
static const struct named_class *named_class(u32 i)
{
	for (u32 n = 0; n < run.options.nr_classes; n++) {
		if (has_name(i, &run.options.classes[n]))
			return &run.options.classes[n];
	}
	return NULL;
}

/* Only a task that is there before time 0 can be put under a class of its own. */
static int check_classes(void)
{
	for (u32 n = 0; n < run.options.nr_classes; n++) {
		const struct named_class *c = &run.options.classes[n];
		u32 i = 0;

		while (i < run.nr_tasks && (is_spawned(i) || !has_name(i, c)))
			i++;
		if (i < run.nr_tasks)
			continue;
		run_fail("usage", 0,
			 "no task '%.*s' is there at time 0 to be given a class of its own; a spawned task has that of its parent",
			 (int)c->name_bytes, c->task);
		return -1;
	}
	return 0;
}

/* Each under its class; a spawned child inherits its parent's. */
static void put_under_class(void)
{
	for (u32 i = 0; i < run.nr_tasks; i++) {
		const struct named_class *named = named_class(i);
		struct scheduling own = class;

		if (is_spawned(i))
			continue;
		if (named) {
			own.policy = named->policy;
			own.priority = named->priority;
			own.nice = named->nice;
		} else if (run.options.has_weights) {
			own.nice = task_nice(i, class.nice);
		}
		if (syscall(SYS_sched_setattr, run.shared->tasks[i].tid, &own, 0))
			run_fail("host", (s32)i + 1, "sched_setattr: %m");
	}
}

/* Let all set their timers for time 0. Return: whether they did in time. */
static bool start(u32 nr)
{
	struct shared *s = run.shared;

	s->start_ns = monotonic_ns() + (is_above ? START_NS : START_NS_BELOW) +
		      nr * START_NS_PER_TASK;
	__atomic_store_n(&s->may_go, 1, __ATOMIC_RELEASE);
	futex_wake(&s->may_go, (int)nr);
	await_count(&s->nr_armed, nr);
	/* From saying so to being asleep it is one system call. */
	usleep(200);
	if (is_above)
		put_under_class();
	if (monotonic_ns() < s->start_ns)
		return true;
	run_fail("late", 0,
		 "this machine is too busy: tasks were not ready at time 0; run again when it is quieter");
	return false;
}

/* ---- while they run ------------------------------------------------------------- */

/* A task that ended is forgotten by the kernel; one that was killed is lost. */
static void reap(bool may_wait)
{
	int status;
	pid_t pid;

	if (run.options.are_threads)
		return;
	while ((pid = wait4(-1, &status, may_wait ? 0 : WNOHANG, NULL)) > 0 ||
	       (pid < 0 && errno == EINTR)) {
		if (pid > 0)
			task_reaped(pid, status);
	}
}

static u32 nr_alive(void)
{
	return __atomic_load_n(&run.shared->nr_alive, __ATOMIC_ACQUIRE);
}

static bool is_over(void)
{
	return !nr_alive() || run.error_kind ||
	       __atomic_load_n(&run.shared->lost_task, __ATOMIC_ACQUIRE);
}

static void tell_tasks(bool is_last)
{
	int failed = result_tell_tasks(is_last);

	if (failed)
		run_fail("host", 0, "%s: cannot be written: %s; make room and run again",
			 run.options.result_path, strerror(-failed));
}

static void watch(u64 horizon_ns)
{
	u64 until_ns = horizon_ns ? run.shared->start_ns + horizon_ns : ~0ULL;

	while (!is_over() && monotonic_ns() < until_ns) {
		u64 look_ns = monotonic_ns() + LOOK_NS;

		futex_wait(&run.shared->nr_alive, nr_alive(),
			   look_ns < until_ns ? look_ns : until_ns);
		reap(false);
		tell_tasks(false);
	}
}

/* ---- afterwards ------------------------------------------------------------------ */

/* A task has said that it ends: until the kernel has done with it. */
static void await_exits(void)
{
	char path[64];

	reap(true);
	for (u32 i = 0; i < run.nr_tasks && run.options.are_threads; i++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d", run.shared->tasks[i].tid);
		while (run.shared->tasks[i].tid && !access(path, F_OK))
			usleep(100);
	}
}

/* Threads end with this process; processes are killed, whichever made them. */
static void end_tasks(void)
{
	for (u32 i = 0; i < run.nr_tasks; i++) {
		struct task *t = &run.shared->tasks[i];

		if (t->state == TASK_ENDED || !t->tid)
			continue;
		t->used = usage_since(usage_of(t->tid), t->before);
		t->read_ns = monotonic_ns() - run.shared->start_ns;
		if (!run.options.are_threads)
			kill(t->tid, SIGKILL);
	}
}

/* A child between fork and its first line has no number yet: it is killed later. */
static void end_processes(void)
{
	while (!run.options.are_threads) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD)
			return;
		end_tasks();
		reap(false);
		usleep(1000);
	}
}

static const char *why_failed(s32 failed)
{
	switch (failed) {
	case SL_PLAYER_SPAWNED_OUT:
		return "it spawns more children than it has";
	case SL_PLAYER_WAIT_FOR_NONE:
		return "it waits for children that it never spawned";
	case SL_PLAYER_NO_VERB:
		return "this host has no such verb";
	}
	return strerror(-failed);
}

/* A call past the page cache that is no whole number of the device's blocks. */
static bool is_odd_direct(u32 number, const struct task *t)
{
	const struct sl_program_task *task = &sl_program_tasks(run.program)[number - 1];
	const struct sl_program_op *op = &sl_program_ops(run.program)[task->op_first + t->op];

	return t->failed == -EINVAL && op->flags & SL_OP_DIRECT &&
	       (op->verb == SL_VERB_READ || op->verb == SL_VERB_WRITE);
}

static void explain_lost_task(void)
{
	u32 number = run.shared->lost_task;
	const struct task *t;
	const char *name;

	if (!number)
		return;
	t = &run.shared->tasks[number - 1];
	name = sl_program_string(run.program, sl_program_tasks(run.program)[number - 1].name);
	if (t->signal)
		run_fail("crash", (s32)number, "%s[%d] was killed by signal %d (%s)", name, t->tid,
			 t->signal, strsignal(t->signal));
	else if (t->step == STEP_CPUS)
		run_fail("program", (s32)number, "%s[%d] may run on none of this run's CPUs: %s",
			 name, t->tid, why_failed(t->failed));
	else if (t->step == STEP_NICE)
		run_fail("unavailable", (s32)number,
			 "%s[%d] is to have nice value %d, which needs CAP_SYS_NICE: run as root, or raise RLIMIT_NICE (ulimit -e)",
			 name, t->tid, task_nice(number - 1, class.nice));
	else if (t->step == STEP_ATTRIBUTES)
		run_fail("host", (s32)number,
			 "%s[%d]: its attributes cannot be put into the policy's map: %s", name,
			 t->tid, why_failed(t->failed));
	else if (t->step == STEP_FILES)
		run_fail("host", (s32)number, "%s[%d]: no file to write in %s: %s", name, t->tid,
			 run.options.folder, why_failed(t->failed));
	else if (is_odd_direct(number, t))
		run_fail("program", (s32)number,
			 "%s[%d] cannot do op %u: O_DIRECT needs calls of whole blocks of the device; use a chunk of 512 or 4096 bytes, or multiples",
			 name, t->tid, t->op);
	else
		run_fail("program", (s32)number, "%s[%d] cannot do op %u: %s", name, t->tid, t->op,
			 why_failed(t->failed));
}

/* Of all tasks, with what their ends cost; without what came before time 0. */
static struct usage used_by_all(struct usage before)
{
	if (run.options.are_threads)
		return usage_since(usage_of_self(false), before);
	for (u32 i = 0; i < run.nr_tasks; i++) {
		const struct usage *b = &run.shared->tasks[i].before;

		before.user_us += b->user_us;
		before.system_us += b->system_us;
		before.nr_voluntary += b->nr_voluntary;
		before.nr_involuntary += b->nr_involuntary;
	}
	return usage_since(usage_of_children(), before);
}

static void play_tasks(void)
{
	u64 horizon_ns = sl_program_header(run.program)->horizon_ns;
	struct shared *s = run.shared;
	struct usage before = { 0 };
	s32 nr;

	rise_above();
	nr = run.error_kind ? -1 : make_tasks();
	step_aside();
	if (nr >= 0)
		await_count(&s->nr_ready, (u32)nr);
	if (run.options.are_threads)
		before = usage_of_self(false);
	if (!run.error_kind && start((u32)nr))
		watch(horizon_ns);
	explain_lost_task();
	/* A run that is cut off has ended before its tasks are killed. */
	run.end_ns = s->start_ns ? monotonic_ns() - s->start_ns : 0;
	if (!nr_alive() && s->start_ns) {
		await_exits();
		run.end_ns = monotonic_ns() - s->start_ns;
	} else if (horizon_ns && run.end_ns > horizon_ns) {
		run.end_ns = horizon_ns;
	}
	end_tasks();
	end_processes();
	run.used = used_by_all(before);
	tell_tasks(true);
}

/* Return: 0, or -1 after run_fail(). */
static int reserve(void)
{
	int failed = result_reserve();

	if (failed)
		run_fail("host", 0,
			 "%s: no room for a line of each of %u tasks: %s; make room and run again",
			 run.options.result_path, run.nr_tasks, strerror(-failed));
	return failed ? -1 : 0;
}

int play(void)
{
	/* Children of tasks that have ended come to this process. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "schedlab-play");
	if (result_open()) {
		fprintf(stderr, "error: %s: %s\n", run.options.result_path, strerror(errno));
		return 1;
	}
	if (!open_program(run.options.program_path) && !check_classes() && !reserve() &&
	    !make_shared() && !open_pipes() && !files_open() && !open_attributes()) {
		verbs_calibrate();
		play_tasks();
	}
	if (result_tell_run())
		run_fail("host", 0, "%s: cannot be written: %m; make room and run again",
			 run.options.result_path);
	if (run.error_kind)
		fprintf(stderr, "error: %s: %s\n", run.error_kind, run.error);
	return run.error_kind ? 1 : 0;
}
