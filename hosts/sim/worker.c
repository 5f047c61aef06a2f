/* SPDX-License-Identifier: MIT */
/*
 * worker.c - one simulation, in a process of its own.
 *
 * Reads the program, sets up core and policy, runs the loop, and writes one
 * JSON object to a file descriptor. A policy that crashes, or stays in one
 * callback for too long, is caught by a signal here: the process reports which
 * callback and task it was, and ends.
 *
 * Called by serve.c. Read next: loop.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "program_file.h"
#include "sim.h"

#define CHECK_EVERY_MS 100	/* of CPU time */
#define WALL_TIMES 10		/* the limit on the wall clock, times that of CPU time */
#define WAIT_CPU_NS_MAX 1000000	/* of a second in which a callback only waited */

static int result_fd;
static struct sim_options *worker_options;
static struct sim_result worker_result;

static void fail_setup(const char *kind, const char *why)
{
	worker_result.status = "failed";
	worker_result.error_kind = kind;
	snprintf(worker_result.error, sizeof(worker_result.error), "%s", why);
}

/* The instruction that a signal interrupted; NULL where that is not known. */
static const void *interrupted_at(const void *context)
{
	const ucontext_t *at = context;

#if defined(__x86_64__)
	return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (const void *)at->uc_mcontext.pc;
#elif defined(__riscv)
	return (const void *)at->uc_mcontext.__gregs[REG_PC];
#else
	return at ? NULL : at;
#endif
}

/* Where that is in the policy's file, for its source line; 0: outside. */
static u64 policy_offset(const void *at)
{
	Dl_info place, own;

	if (!at || !sim_policy() || !dladdr(at, &place) ||
	    !dladdr(sim_policy(), &own) || place.dli_fbase != own.dli_fbase)
		return 0;
	return (u64)at - (u64)place.dli_fbase;
}

/*
 * Report from a signal: what the policy was doing, then end the process. What
 * was recorded is kept: it shows what led there. Memory is not asked for, and
 * nothing is printed but with write(): the policy may have damaged the heap.
 */
static void report_and_end(const char *kind, const char *what, const void *context)
{
	struct sl_cpu_report cpu = sim_core_cpu ? sl_cpu_report(sim_cpu_idx) :
						  (struct sl_cpu_report){ 0 };
	const struct sl_task *t = cpu.callback_task;

	worker_result.status = "failed";
	worker_result.error_kind = kind;
	worker_result.task = t ? t->p.pid : 0;
	worker_result.end_ns = sim_now_ns;
	worker_result.policy_offset = policy_offset(interrupted_at(context));
	if (cpu.callback)
		sl_print_to(worker_result.error, sizeof(worker_result.error),
			    "policy '%s' %s in ops.%s() for task %s[%d] on CPU %d at %llu.%06llu ms",
			    sl_report().policy, what, cpu.callback,
			    t ? t->p.comm : "-", t ? t->p.pid : 0, sim_cpu_idx,
			    (unsigned long long)sim_now_ns / 1000000,
			    (unsigned long long)sim_now_ns % 1000000);
	else
		sl_print_to(worker_result.error, sizeof(worker_result.error),
			    "simulation %s outside the policy at %llu ns (a schedlab bug)",
			    what, (unsigned long long)sim_now_ns);
	worker_result.nr_records = sim_records_count();
	sim_records_close();
	sim_print_result(result_fd, worker_options, &worker_result);
	_exit(0);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
	(void)info;
	signal(sig, SIG_DFL);
	report_and_end("crash", sig == SIGABRT ? "aborted" :
		       sig == SIGFPE ? "divided by zero" :
		       sig == SIGILL ? "used an index outside of its array, or reached another trap," :
		       "accessed invalid memory", context);
}

/* What a check saw last, and how often in a row it saw the same callback. */
struct stuck_check {
	u64 seen;
	u32 nr_times;
};

/* Return: for how many checks the policy has been in one callback. */
static u32 count_checks(struct stuck_check *check)
{
	bool is_in_callback = sim_core_cpu && sl_cpu_report(sim_cpu_idx).callback;
	u64 seen = sim_now_ns + sim.nr_zero_ops;

	if (!is_in_callback || seen != check->seen) {
		check->seen = seen;
		check->nr_times = 0;
		return 0;
	}
	return ++check->nr_times;
}

/* This process has used another CHECK_EVERY_MS of CPU time. */
static void on_cpu_check(int sig, siginfo_t *info, void *context)
{
	static struct stuck_check check;

	(void)sig;
	(void)info;
	if (count_checks(&check) * CHECK_EVERY_MS >=
	    worker_options->callback_limit_ms)
		report_and_end("spin", "did not return", context);
}

/*
 * Another second has passed. A callback that sleeps or waits uses no CPU time;
 * one that computes does, however busy the machine is, and is on_cpu_check()'s.
 */
static void on_wall_check(int sig, siginfo_t *info, void *context)
{
	static struct stuck_check check;
	static u64 cpu_ns_before;
	struct timespec cpu;
	u64 cpu_ns;

	(void)sig;
	(void)info;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	cpu_ns = (u64)cpu.tv_sec * 1000000000 + (u64)cpu.tv_nsec;
	if (cpu_ns - cpu_ns_before > WAIT_CPU_NS_MAX)
		check.nr_times = 0;
	cpu_ns_before = cpu_ns;
	if (count_checks(&check) * 1000ULL >=
	    WALL_TIMES * (u64)worker_options->callback_limit_ms)
		report_and_end("spin", "waits and did not return", context);
}

static void catch_signals(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	struct sigaction act = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
	struct itimerval every = {
		.it_interval = { .tv_usec = CHECK_EVERY_MS * 1000 },
		.it_value = { .tv_usec = CHECK_EVERY_MS * 1000 },
	};
	struct itimerval every_second = {
		.it_interval = { .tv_sec = 1 },
		.it_value = { .tv_sec = 1 },
	};
	stack_t stack = { .ss_size = 1 << 18 };

	/* A policy that recurses without end has no stack left for a handler. */
	stack.ss_sp = malloc(stack.ss_size);
	if (stack.ss_sp && !sigaltstack(&stack, NULL))
		act.sa_flags |= SA_ONSTACK;
	for (u32 i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &act, NULL);
	act.sa_sigaction = on_cpu_check;
	act.sa_flags |= SA_RESTART;
	sigaction(SIGPROF, &act, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	act.sa_sigaction = on_wall_check;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every_second, NULL);
}

/* Return: 0, or -1 with a setup failure noted. */
static int read_program(const char *path)
{
	char why[512];

	sim.program = sl_program_file_map(path, why, sizeof(why));
	if (!sim.program)
		fail_setup("usage", why);
	return sim.program ? 0 : -1;
}

static int by_arrival(const void *a, const void *b)
{
	const struct sl_program_task *tasks = sl_program_tasks(sim.program);
	u32 i = *(const u32 *)a;
	u32 j = *(const u32 *)b;

	if (tasks[i].arrival_ns != tasks[j].arrival_ns)
		return tasks[i].arrival_ns < tasks[j].arrival_ns ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Restrict @t to the CPUs of the program's mask that exist. */
static int set_affinity(struct sim_task *t, const struct sl_program_task *pt)
{
	const u64 *words = sl_program_values(sim.program) + pt->affinity;
	struct cpumask *mask = calloc(1, sizeof(*mask));
	s32 nr = 0;

	SL_ASSERT(mask);
	for (u32 cpu = 0; cpu < sim.options->nr_cpus; cpu++) {
		if (cpu / 64 >= pt->affinity_words ||
		    !(words[cpu / 64] >> (cpu % 64) & 1))
			continue;
		mask->bits[cpu / 64] |= 1UL << (cpu % 64);
		nr++;
	}
	if (!nr) {
		char text[256];

		free(mask);
		snprintf(text, sizeof(text),
			 "task '%s' may run on none of the %u CPUs of this run",
			 sl_program_string(sim.program, pt->name),
			 sim.options->nr_cpus);
		fail_setup("usage", text);
		return -1;
	}
	sl_task_set_affinity(&t->core, mask);
	return 0;
}

/* @before: those of the task before it: tasks that share their ops stand together. */
static u32 nr_slots_of(u32 i, u32 before)
{
	const struct sl_program_task *pts = sl_program_tasks(sim.program);

	if (i && pts[i].op_first == pts[i - 1].op_first && pts[i].nr_ops == pts[i - 1].nr_ops)
		return before;
	return sl_program_nr_slots(sim.program, i);
}

/*
 * The players' slots, one array: few tasks need more than one or two, and what a
 * hundred thousand tasks do not have need not pass through the caches.
 */
static u64 *create_slots(void)
{
	u64 nr = 0;
	u64 *slots;

	for (u32 i = 0, own = 0; i < sim.nr_tasks; i++) {
		own = nr_slots_of(i, own);
		nr += own;
	}
	slots = sl_host_alloc(nr * sizeof(*slots));
	SL_ASSERT(slots);
	return slots;
}

static int create_tasks(void)
{
	const struct sl_program_task *pts = sl_program_tasks(sim.program);
	u64 *slots = create_slots();

	sim.tasks = sl_host_alloc(sim.nr_tasks * sizeof(struct sim_task));
	sim.arrivals = sl_host_alloc(sim.nr_tasks * sizeof(u32));
	SL_ASSERT(sim.tasks && sim.arrivals);
	for (u32 i = 0, own = 0; i < sim.nr_tasks; i++) {
		struct sim_task *t = &sim.tasks[i];

		own = nr_slots_of(i, own);
		sl_task_setup(&t->core, i, (s32)i + 1,
			      sl_program_string(sim.program, pts[i].name));
		t->player.program = sim.program;
		t->player.task = i;
		sl_player_begin(&t->player, slots);
		slots += own;
		t->waiter.task = t;
		sl_task_set_weight(&t->core, pts[i].weight);
		sl_task_set_nice(&t->core, pts[i].nice);
		if (pts[i].affinity != SL_PROGRAM_NONE &&
		    set_affinity(t, &pts[i]))
			return -1;
		if (pts[i].parent == SL_PROGRAM_NONE)
			sim.arrivals[sim.nr_arrivals++] = i;
	}
	qsort(sim.arrivals, sim.nr_arrivals, sizeof(u32), by_arrival);
	return 0;
}

static void create_objects(void)
{
	const struct sl_program_object *pos = sl_program_objects(sim.program);
	u32 nr = sl_program_header(sim.program)->nr_objects;

	sim.objects = calloc(nr ? nr : 1, sizeof(*sim.objects));
	SL_ASSERT(sim.objects);
	for (u32 i = 0; i < nr; i++)
		sim.objects[i].size = pos[i].param;
}

static const u16 *groups_of(u32 nr_cpus, u32 cpus_per_group)
{
	u16 *groups;

	if (!cpus_per_group)
		return NULL;
	groups = calloc(nr_cpus, sizeof(*groups));
	SL_ASSERT(groups);
	for (u32 i = 0; i < nr_cpus; i++)
		groups[i] = (u16)(i / cpus_per_group);
	return groups;
}

static int create_machine(const struct sim_options *o)
{
	struct sl_config config = {
		.nr_cpus = o->nr_cpus,
		.tasks_max = sim.nr_tasks,
		.smt_of_cpu = groups_of(o->nr_cpus, o->smt),
		.llc_of_cpu = groups_of(o->nr_cpus, o->llc),
		.node_of_cpu = groups_of(o->nr_cpus, o->node),
		.tick_ns = o->tick_ns,
		.has_detail = o->has_detail,
	};

	sim.llc = config.llc_of_cpu;
	sim.node = config.node_of_cpu;
	sim.cpus = sl_host_alloc(o->nr_cpus * sizeof(struct sim_cpu));
	if (sl_core_init(&config) || sim_tree_init(o->nr_cpus) || !sim.cpus) {
		fail_setup("usage", "not enough memory for this many CPUs");
		return -1;
	}
	sim.is_switch_free = !(o->costs.switch_ns | o->costs.leave_ns | o->costs.migrate_ns |
			       o->costs.migrate_llc_ns | o->costs.migrate_node_ns);
	sim.are_calls_free = !(o->costs.start_ns | o->costs.exit_ns | o->costs.call_ns);
	for (u32 i = 0; i < o->nr_cpus; i++) {
		sim.cpus[i].idx = (s32)i;
		sim.cpus[i].core = sl_core_cpu((s32)i);
		sim.cpus[i].burst_at_ns = SIM_NEVER;
		sim.cpus[i].resched_at_ns = SIM_NEVER;
		sim.cpus[i].tick_at_ns = SIM_NEVER;
	}
	sim_set_cpu(0);
	return 0;
}

static int start_policy(const struct sim_options *o)
{
	char why[512];
	int err;

	for (u32 i = 0; i < o->nr_sets; i++) {
		if (sim_policy_set(o->sets[i], why, sizeof(why))) {
			fail_setup("usage", why);
			return -1;
		}
	}
	err = sl_policy_enable(sim_policy(), false);
	if (err) {
		/* What ops.init() said of it is worth more than its number. */
		snprintf(why, sizeof(why), "policy '%s' could not be loaded: %s%s%.300s",
			 sim_policy()->ops->name, strerror(-err),
			 sl_report().why[0] ? ": " : "", sl_report().why);
		fail_setup("policy", why);
		return -1;
	}
	sim.has_ticks = sim_policy()->ops->tick || o->costs.tick_ns;
	return 0;
}

static int set_up(struct sim_options *o)
{
	int err;

	sim.options = o;
	sim.result = &worker_result;
	sim.random = o->seed;
	sim.timer_at_ns = SIM_NEVER;
	if (read_program(o->program_path))
		return -1;
	sim.nr_tasks = sl_program_header(sim.program)->nr_tasks;
	sim.nr_left = sim.nr_tasks;
	if (o->nr_cpus < sl_program_header(sim.program)->nr_cpus_min) {
		fail_setup("usage", "the program needs more CPUs than this run has");
		return -1;
	}
	if (create_machine(o) || create_tasks())
		return -1;
	create_objects();
	if (o->records_path && (err = sim_records_open(o->records_path))) {
		char why[512];

		snprintf(why, sizeof(why), "records %s: %s", o->records_path,
			 strerror(-err));
		fail_setup("usage", why);
		return -1;
	}
	return start_policy(o);
}

/* Run one simulation and write its result to @out_fd. Return: 0. */
int sim_worker(struct sim_options *o, int out_fd)
{
	int err;

	result_fd = out_fd;
	worker_options = o;
	worker_result.status = "ok";
	catch_signals();
	if (!set_up(o)) {
		sim_loop();
		worker_result.nr_records = sim_records_count();
		sl_policy_disable(false);
	}
	err = sim_records_close();
	if (err && !worker_result.error_kind) {
		char why[512];

		snprintf(why, sizeof(why), "records %s: %s", o->records_path,
			 strerror(-err));
		fail_setup("usage", why);
	}
	sim_print_result(out_fd, o, &worker_result);
	return 0;
}
