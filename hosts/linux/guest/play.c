/* SPDX-License-Identifier: MIT */
/*
 * play.c - real processes play a workload program under a policy.
 *
 * All processes are made before the policy is attached, those too that a parent
 * will spawn: making a process costs Linux half a tick here, which the program
 * does not ask for. Each then waits for its time, or its parent, asleep; to the
 * policy that is a wake-up. Their attributes are in place before that.
 *
 * The kernel's own threads are put above the policy, in a real-time class: they
 * act as interrupts do, and the policy decides about the workload alone.
 *
 *	load policy -> fork -> arm timers one by one -> attach policy
 *	-> time 0: traced until all have ended or the horizon -> detach -> send
 *
 * How long a scheduler's own program takes until its scheduler has the CPUs is not known, and to set a timer of
 * its own then a task would run. So there the timers are this process's, set when it is known:
 *
 *	fork -> start the program (loader.c) -> it is attached -> set timers one by one -> time 0
 *
 * Read next: verbs.c.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <scx/types.h>
#include <scx/attrs.h>

#include "guest.h"

#define MS 1000000ULL
#define LIFT_MS 100	/* of lead_ms, under a scheduler's own program */
#define ARM_MS 20	/* from arming to attaching, and one for each task */
/* From there to ops.init, 866 us under credit, and a little: timers that it starts go off just before. */
#define ATTACH_NS 900000ULL
/* Of a task: its pid in the program more. So policies that sort by pid agree. */
#define PID_BASE 8192

/*
 * From attaching to time 0; attaching takes about 20 ms with one CPU. A policy whose
 * timer goes off every so often has begun a period at time 0, as in the simulator,
 * where that divides this; and one that gives sleepers something gives them little.
 */
static u64 lead_ms = 60;

void play_lead(u64 ms)
{
	lead_ms = ms;
}

struct run {
	const void *program;
	u64 program_bytes;
	u64 shared_bytes;
	struct shared *shared;
};

static u32 nr_tasks(const struct run *run)
{
	return sl_program_header(run->program)->nr_tasks;
}

static int open_program(struct run *run, const char *path)
{
	char why[200];
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st)) {
		frame_text("fatal", "%s: %s", path, strerror(errno));
		return -1;
	}
	run->program_bytes = st.st_size;
	run->program = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (run->program == MAP_FAILED) {
		frame_text("fatal", "%s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	close(fd);
	if (sl_program_check(run->program, st.st_size, why, sizeof(why))) {
		frame_text("fatal", "%s: %s", path, why);
		return -1;
	}
	return 0;
}

static int make_shared(struct run *run)
{
	const struct sl_program_header *h = run->program;
	struct shared *s;

	run->shared_bytes = sizeof(*s) + device_bytes() + sizeof(*s->tasks) * h->nr_tasks +
			    handover_bytes() * h->nr_objects + sizeof(*s->objects) * h->nr_objects;
	s = mmap(NULL, run->shared_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s == MAP_FAILED) {
		frame_text("fatal", "shared memory: %s", strerror(errno));
		return -1;
	}
	s->device = (void *)(s + 1);
	s->tasks = (void *)((char *)s->device + device_bytes());
	s->handovers = (void *)(s->tasks + h->nr_tasks);
	s->objects = (void *)((char *)s->handovers + handover_bytes() * h->nr_objects);
	s->nr_left = h->nr_tasks;
	run->shared = s;
	return 0;
}

static void wait_for(u32 *word)
{
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		futex_wait(word, 0, ~0ULL);
}

void sleep_until_ns(u64 at_ns)
{
	const struct timespec at = { .tv_sec = at_ns / (1000 * MS), .tv_nsec = at_ns % (1000 * MS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Asleep until the task's arrival; then its time, in ns since time 0. */
static u64 await_arrival(struct shared *s, struct shared_task *me, u64 arrival_ns)
{
	u64 nr_times;

	wait_for(&me->may_arm);
	__atomic_add_fetch(&s->nr_armed, 1, __ATOMIC_RELEASE);
	futex_wake(&s->nr_armed, 1);
	if (arrival_ns == ~0ULL) {
		wait_for(&me->started);
		return monotonic_ns() - s->start_ns;
	}
	if (me->timer_fd < 0)
		sleep_until_ns(s->start_ns + arrival_ns);
	else if (read(me->timer_fd, &nr_times, sizeof(nr_times)) < 0)
		_exit(1); /* never: it is a timer, and set */
	return arrival_ns;
}

static void be_task(const struct run *run, u32 i)
{
	const struct sl_program_task *task = &sl_program_tasks(run->program)[i];
	struct shared *s = run->shared;
	struct shared_task *me = &s->tasks[i];
	struct sl_player player = {
		.program = run->program,
		.task = i,
		.ops = &verbs,
		.host = s,
	};

	prctl(PR_SET_TIMERSLACK, 1);
	/* Policies print it, and the kernel's complaints name it. */
	prctl(PR_SET_NAME, sl_program_string(run->program, task->name));
	player.arrival_ns = await_arrival(s, me, task->arrival_ns);
	verbs_begin();
	me->result = sl_player_run(&player);
	if (task->parent != SL_PROGRAM_NONE)
		verbs_end(&s->tasks[task->parent]);
	if (!__atomic_sub_fetch(&s->nr_left, 1, __ATOMIC_ACQ_REL))
		futex_wake(&s->nr_left, 1);
	_exit(0);
}

/* fork(), with a chosen pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (u64)&pid,
		.set_tid_size = 1,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

/* Return: 0, or -1 with errno. */
static int give_attributes(struct run *run, u32 i, pid_t pid)
{
	const struct sl_program_task *task = &sl_program_tasks(run->program)[i];
	int failed;

	if (setpriority(PRIO_PROCESS, pid, nice_of_weight(task->weight)))
		return -1;
	failed = attrs_write(run->shared->attrs_fd, pid, task);
	/* First what the task asks for, which its group may have none of (S49). */
	if (!failed && task->affinity != SL_PROGRAM_NONE)
		failed = bind_cpus(pid, sl_program_values(run->program)[task->affinity]);
	run->shared->tasks[i].group = groups_first(run->program, i);
	if (!failed && run->shared->tasks[i].group)
		failed = groups_join(run->program, run->shared->tasks[i].group, pid);
	errno = -failed;
	return failed ? -1 : 0;
}

static int fork_tasks(struct run *run, bool has_timers)
{
	u32 i;

	for (i = 0; i < nr_tasks(run); i++) {
		pid_t pid;

		run->shared->tasks[i].timer_fd = -1;
		if (has_timers) {
			run->shared->tasks[i].timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
			if (run->shared->tasks[i].timer_fd < 0) {
				frame_text("fatal", "task %u: a timer: %s", i, strerror(errno));
				return -1;
			}
		}
		pid = fork_as(PID_BASE + i + 1);
		if (pid < 0) {
			frame_text("fatal", "task %u: fork: %s", i, strerror(errno));
			return -1;
		}
		if (!pid)
			be_task(run, i);
		run->shared->tasks[i].pid = pid;
		if (give_attributes(run, i, pid)) {
			frame_text("fatal", "task %u: attributes: %s", i, strerror(errno));
			return -1;
		}
		frame_text("task", "%u %d", i, pid);
	}
	return 0;
}

#define KTHREADD 2	/* parent of all threads of the kernel */

static void lift_self(bool is_lifted)
{
	const struct sched_param param = { .sched_priority = is_lifted };

	sched_setscheduler(0, is_lifted ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* Those that may not be moved (the stop class) are above the policy already. */
static void lift_kernel_threads(void)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		char path[300];
		int parent = 0;
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		stat = atoi(entry->d_name) ? fopen(path, "r") : NULL;
		if (!stat)
			continue;
		if (fscanf(stat, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == KTHREADD &&
		    sched_getscheduler(atoi(entry->d_name)) == SCHED_OTHER)
			sched_setscheduler(atoi(entry->d_name), SCHED_FIFO, &lowest);
		fclose(stat);
	}
	if (proc)
		closedir(proc);
}

/* The last one needs as long as the first: 300 us each is ample. Linux's ticks are at multiples of the tick; time 0
 * is one, as in sim. */
static void set_start(struct run *run, u64 from_now_ms)
{
	u64 at_ns = monotonic_ns() + (from_now_ms + nr_tasks(run)) * MS;

	run->shared->start_ns = at_ns + tick_ns() - at_ns % tick_ns();
}

/* One by one, so that timers for the same time go off in the tasks' order. */
static void arm_tasks(struct run *run)
{
	const struct timespec moment = { .tv_nsec = 200 * 1000 };
	struct shared *s = run->shared;
	u32 i;

	for (i = 0; i < nr_tasks(run); i++) {
		__atomic_store_n(&s->tasks[i].may_arm, 1, __ATOMIC_RELEASE);
		futex_wake(&s->tasks[i].may_arm, 1);
		while (__atomic_load_n(&s->nr_armed, __ATOMIC_ACQUIRE) <= i)
			futex_wait(&s->nr_armed, i, ~0ULL);
		nanosleep(&moment, NULL);
	}
}

/* What armed tasks wait for that have not set their own. */
static int set_timers(struct run *run)
{
	const struct sl_program_task *tasks = sl_program_tasks(run->program);
	u32 i;

	for (i = 0; i < nr_tasks(run); i++) {
		u64 at_ns = run->shared->start_ns + tasks[i].arrival_ns;
		const struct itimerspec at = { .it_value = { .tv_sec = at_ns / (1000 * MS),
							     .tv_nsec = at_ns % (1000 * MS) } };

		if (tasks[i].arrival_ns != ~0ULL &&
		    timerfd_settime(run->shared->tasks[i].timer_fd, TFD_TIMER_ABSTIME, &at, NULL)) {
			frame_text("fatal", "task %u: a timer: %s", i, strerror(errno));
			return -1;
		}
	}
	return 0;
}

/* SIGCHLD is ignored, so this returns when the last process is gone. */
static void await_processes(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static void await_end(struct run *run)
{
	u64 horizon_ns = sl_program_header(run->program)->horizon_ns;
	u64 until_ns = horizon_ns ? run->shared->start_ns + horizon_ns : ~0ULL;
	u32 *left = &run->shared->nr_left;
	u32 seen;

	while ((seen = __atomic_load_n(left, __ATOMIC_ACQUIRE)) && monotonic_ns() < until_ns)
		futex_wait(left, seen, until_ns);
	above_end();
	if (!seen) {
		/* A process is forgotten just before it leaves its CPU; in real time an
		 * emulator needs a while for that. */
		await_processes();
		nanosleep(&(struct timespec){ .tv_nsec = 50 * MS }, NULL);
	}
}

static void kill_tasks(struct run *run)
{
	u32 i;

	for (i = 0; i < nr_tasks(run); i++)
		if (run->shared->tasks[i].pid > 0)
			kill(run->shared->tasks[i].pid, SIGKILL);
	await_processes();
}

/* Of this process, which is above all else: it must be awake when the run ends, not in a queue. */
static void record(struct run *run, struct policy *policy)
{
	struct shared *s = run->shared;
	u64 end_ns;
	u32 i;

	trace_start();
	await_end(run);
	end_ns = monotonic_ns();
	trace_stop();
	frame_text("played", "%llu %llu %u %s", s->start_ns, end_ns - s->start_ns, s->nr_left,
		   (policy ? policy_is_attached(policy) : loader_is_attached()) ? "attached" :
										  "thrown out");
	for (i = 0; i < nr_tasks(run); i++)
		if (s->tasks[i].result)
			frame_text("result", "%u %d", i, s->tasks[i].result);
}

static void play_attached(struct policy *policy, struct run *run)
{
	u64 start_ns;

	set_start(run, lead_ms + ARM_MS);
	start_ns = run->shared->start_ns;
	arm_tasks(run);
	above_begin(run->program, start_ns);
	sleep_until_ns(start_ns - lead_ms * MS - ATTACH_NS);
	/* Before it is attached: a policy that forgets tasks shall forget others. */
	lift_self(true);
	if (!policy_attach(policy)) {
		if (monotonic_ns() + 5 * MS > start_ns)
			frame_text("fatal", "attaching took longer than %llu ms", lead_ms);
		else
			record(run, policy);
	}
	lift_self(false);
}

static void play_under_loader(struct run *run)
{
	arm_tasks(run);
	lift_self(true);
	if (!loader_start()) {
		set_start(run, lead_ms);
		if (!set_timers(run)) {
			above_begin(run->program, run->shared->start_ns);
			/* Those too that loading has made the kernel start. */
			sleep_until_ns(run->shared->start_ns - LIFT_MS * MS);
			lift_kernel_threads();
			record(run, NULL);
		}
		/* Before tasks are killed: it need not let them run. */
		loader_end();
	}
	lift_self(false);
}

static void close_timers(struct run *run)
{
	u32 i;

	for (i = 0; i < nr_tasks(run); i++)
		if (run->shared->tasks[i].timer_fd > 0)
			close(run->shared->tasks[i].timer_fd);
}

void play(struct policy *policy, const char *path)
{
	struct run run = { 0 };
	u32 value_bytes = 0;

	if (open_program(&run, path) || (policy && policy_load(policy)) || make_shared(&run))
		return;
	run.shared->attrs_fd = policy ? policy_map(policy, "task_attrs", &value_bytes) : -1;
	if (run.shared->attrs_fd >= 0 && value_bytes != sizeof(struct task_attr)) {
		frame_text("fatal",
			   "task_attrs holds %u bytes, not %zu: another "
			   "version of scx/task_attr.h",
			   value_bytes, sizeof(struct task_attr));
	} else {
		above_prepare();
		if (!groups_make(run.program) && !fork_tasks(&run, !policy)) {
			lift_kernel_threads();
			if (policy)
				play_attached(policy, &run);
			else
				play_under_loader(&run);
		}
		above_end();
		kill_tasks(&run);
		close_timers(&run);
		groups_remove(run.program);
		trace_send();
	}
	munmap(run.shared, run.shared_bytes);
	munmap((void *)run.program, run.program_bytes);
}
