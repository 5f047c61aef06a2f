/* SPDX-License-Identifier: MIT */
/*
 * worker.c - one simulation, in a process or an instance of its own.
 *
 * Reads the program, sets up core and policy, runs the loop, and writes one
 * JSON object to a file descriptor. A policy that crashes, or stays in one
 * callback for too long, is noticed by the platform, and reported from here.
 *
 * Called by serve.c and wasm.c. Read next: loop.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "sim.h"

struct sl_policy_file sim_policy_file;
static int result_fd;
static struct sim_options *worker_options;
static struct sim_result worker_result;

/*
 * Report from a signal or after a trap what the policy was doing; nothing of the
 * run may happen after it. What was recorded is kept: it shows what led there. No
 * memory is asked for, and no stream is used: the policy may have damaged the heap.
 */
void sim_worker_report(const char *kind, const char *what, u64 policy_offset)
{
	struct sl_cpu_report cpu = sim_core_cpu ? sl_cpu_report(sim_cpu_idx) :
						  (struct sl_cpu_report){ 0 };
	const struct sl_task *t = cpu.callback_task;

	worker_result.status = "failed";
	worker_result.error_kind = kind;
	worker_result.task = t ? t->p.pid : 0;
	worker_result.end_ns = sim_now_ns;
	worker_result.policy_offset = policy_offset;
	if (sim_assertion[0])
		sl_print_to(worker_result.error, sizeof(worker_result.error),
			    "an assertion of schedlab fails at %llu ns, %s: a schedlab bug, or the policy has written over its memory, which Linux' verifier refuses",
			    (unsigned long long)sim_now_ns, sim_assertion);
	else if (cpu.callback)
		sl_print_to(worker_result.error, sizeof(worker_result.error),
			    "policy '%s' %s in ops.%s() for task %s[%d] on CPU %d at %llu.%06llu ms",
			    sl_report().policy, what, cpu.callback, t ? t->p.comm : "-",
			    t ? t->p.pid : 0, sim_cpu_idx, (unsigned long long)sim_now_ns / 1000000,
			    (unsigned long long)sim_now_ns % 1000000);
	else
		sl_print_to(worker_result.error, sizeof(worker_result.error),
			    "the simulator %s outside the policy at %llu ns: the policy has written over its memory, which Linux' verifier refuses, or it is a schedlab bug",
			    what, (unsigned long long)sim_now_ns);
	worker_result.nr_records = sim_records_count();
	sim_records_close();
	sim_print_result(result_fd, worker_options, &worker_result);
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

/*
 * sim_mask - a mask of the program's values
 * @mask: gets those of its CPUs that exist
 *
 * Return: whether there are any.
 */
bool sim_mask(struct cpumask *mask, u32 first, u32 nr_words)
{
	const struct cpumask *possible = scx_bpf_get_possible_cpumask();
	const u64 *words = sl_program_values(sim.program) + first;
	u64 any = 0;

	*mask = (struct cpumask){ 0 };
	for (u32 i = 0; i < nr_words && i < SL_MASK_WORDS; i++) {
		mask->bits[i] = words[i] & possible->bits[i];
		any |= mask->bits[i];
	}
	return any;
}

/* Restrict @t to the CPUs of the program's mask that exist. */
static void set_affinity(struct sim_task *t, const struct sl_program_task *pt)
{
	struct cpumask mask;

	if (sim_mask(&mask, pt->affinity, pt->affinity_words))
		sl_task_set_affinity(&t->core, &mask);
	else
		sim_fail("usage", 0, "task '%s' may run on none of the %u CPUs of this run",
			 sl_program_string(sim.program, pt->name), sim.options->nr_cpus);
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

static void create_tasks(void)
{
	const struct sl_program_task *pts = sl_program_tasks(sim.program);
	u64 *slots = create_slots();
	char why[160];

	sim.groups = sl_groups_create(sim.program, why, sizeof(why));
	if (!sim.groups) {
		sim_fail("usage", 0, "%s", why);
		return;
	}
	sim.tasks = sl_host_alloc(((u64)sim.nr_tasks + sim.nr_user_tasks) * sizeof(struct sim_task));
	sim.arrivals = sl_host_alloc(sim.nr_tasks * sizeof(u32));
	SL_ASSERT(sim.tasks && sim.arrivals);
	sim.tasks_end = sim.tasks + sim.nr_tasks;
	for (u32 i = 0, own = 0; i < sim.nr_tasks; i++) {
		struct sim_task *t = &sim.tasks[i];

		own = nr_slots_of(i, own);
		sl_task_setup(&t->core, i, (s32)i + 1, sl_program_string(sim.program, pts[i].name));
		t->player.program = sim.program;
		t->player.task = i;
		sl_player_begin(&t->player, slots);
		slots += own;
		t->waiter.task = t;
		sl_task_set_weight(&t->core, pts[i].weight);
		sl_task_set_nice(&t->core, pts[i].nice);
		/* First what the task asks for, which its group may have none of (S49). */
		if (pts[i].affinity != SL_PROGRAM_NONE)
			set_affinity(t, &pts[i]);
		if (pts[i].group_object)
			sl_task_set_cgroup(&t->core, sim.groups[pts[i].group_object - 1]);
		if (pts[i].parent == SL_PROGRAM_NONE)
			sim.arrivals[sim.nr_arrivals++] = i;
	}
	qsort(sim.arrivals, sim.nr_arrivals, sizeof(u32), by_arrival);
}

/*
 * The policy's user half: the task that decides, and one that sleeps at first. They exist before
 * all tasks, and never end. Return: whether they are there.
 */
static bool start_user_half(void)
{
	for (u32 i = 0; i < sim.nr_user_tasks; i++) {
		u32 number = sim.nr_tasks + i;
		struct sim_task *t = &sim.tasks[number];
		bool is_thread = i || !sim_policy_file.user_half;

		sl_task_setup(&t->core, number, (s32)number + 1, sim_policy_file.policy->ops->name);
		t->waiter.task = t;
		t->player.task = number;
		t->player.next = is_thread ? &sim_user_thread_op : &sim_user_half_op;
		if (sim_attach(t, &(struct task_attr){ 0 }, NULL)) {
			sim_fail("policy", 0,
				 "no room for the policy's user half: the task_attrs map is full");
			return false;
		}
		if (is_thread)
			sim_user_thread_sleep(t);
		else
			sim_start(t, NULL);
	}
	return true;
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

static void create_machine(const struct sim_options *o)
{
	struct sl_config config = {
		.nr_cpus = o->nr_cpus,
		.tasks_max = sim.nr_tasks + sim.nr_user_tasks,
		.smt_of_cpu = groups_of(o->nr_cpus, o->smt),
		.llc_of_cpu = groups_of(o->nr_cpus, o->llc),
		.node_of_cpu = groups_of(o->nr_cpus, o->node),
		.tick_ns = o->tick_ns,
		.has_detail = o->has_detail,
		.user_half_pid = sim_policy_file.user_half ? (s32)sim.nr_tasks + 1 : 0,
	};

	sim.llc = config.llc_of_cpu;
	sim.node = config.node_of_cpu;
	sim.cpus = sl_host_alloc(o->nr_cpus * sizeof(struct sim_cpu));
	if (sl_core_init(&config) || sim_tree_init(o->nr_cpus) || !sim.cpus) {
		sim_fail("usage", 0, "not enough memory for this many CPUs");
		return;
	}
	sim.is_switch_free = !(o->costs.switch_ns | o->costs.leave_ns | o->costs.migrate_ns |
			       o->costs.migrate_llc_ns | o->costs.migrate_node_ns);
	sim.are_calls_free = !(o->costs.start_ns | o->costs.exit_ns | o->costs.call_ns |
			       o->costs.jitter_ns);
	for (u32 i = 0; i < o->nr_cpus; i++) {
		sim.cpus[i].idx = (s32)i;
		sim.cpus[i].timer_at_ns = SIM_NEVER;
		sim.cpus[i].core = sl_core_cpu((s32)i);
		sim.cpus[i].burst_at_ns = SIM_NEVER;
		sim.cpus[i].resched_at_ns = SIM_NEVER;
		sim.cpus[i].tick_at_ns = SIM_NEVER;
	}
	sim_set_cpu(0);
}

/* @assignment: NAME=VALUE. Return: 0, or -errno with @why filled in. */
int sim_policy_set(const char *assignment, char *why, u32 why_bytes)
{
	u32 used = (u32)snprintf(why, why_bytes, "--set ");

	return sl_policy_file_set(&sim_policy_file, assignment, why + used, why_bytes - used);
}

/* Return: whether it decides from now on. */
static bool start_policy(const struct sim_options *o)
{
	char why[512];
	int err;

	for (const char *const *set = o->sets; *set; set++) {
		if (sim_policy_set(*set, why, sizeof(why))) {
			sim_fail("usage", 0, "%s", why);
			return false;
		}
	}
	if (o->start)
		sim_policy_file.policy->start = o->start;
	err = sl_policy_enable(sim_policy_file.policy, false);
	if (err) {
		/* What ops.init() said of it is worth more than its number. */
		sim.result->error_kind = NULL;
		sim_fail("policy", sim.result->task, "policy '%s' could not be loaded: %s%s%.300s",
			 sim_policy_file.policy->ops->name, sim_error_text(-err),
			 sl_report().why[0] ? ": " : "", sl_report().why);
		return false;
	}
	sim.has_ticks = sim_policy_file.policy->ops->tick || o->costs.tick_ns;
	return start_user_half();
}

static void fail_records(const char *path, int err)
{
	sim_fail("usage", 0, "records %s: %s", path, sim_error_text(-err));
}

/* Return: whether the run can begin. */
static bool set_up(struct sim_options *o)
{
	char why[512];
	int err;

	sim.options = o;
	sim.result = &worker_result;
	sim.random = o->seed;
	sim.nr_calls = 0;
	sim.timer_at_ns = SIM_NEVER;
	sim.tick_at_ns = 0;
	sim.program = o->program ?: sim_program_open(o->program_path, why, sizeof(why));
	if (!sim.program) {
		sim_fail("usage", 0, "%s", why);
		return false;
	}
	sim.nr_tasks = sl_program_header(sim.program)->nr_tasks;
	sim.nr_left = sim.nr_tasks;
	sim.nr_user_tasks = !!sim_policy_file.user_half +
			    (sim_policy_file.user_thread && !o->has_no_user_thread);
	if (o->nr_cpus < sl_program_header(sim.program)->nr_cpus_min)
		sim_fail("usage", 0, "the program needs more CPUs than this run has");
	if (!sim.is_over)
		create_machine(o);
	if (!sim.is_over)
		create_tasks();
	create_objects();
	sim_loop_begin();
	if (!sim.is_over && o->records_path && (err = sim_records_open(o->records_path)))
		fail_records(o->records_path, err);
	if (!sim.is_over)
		sim_speed_begin();
	if (!sim.is_over && o->arrivals_wake)
		sim_task_attach_all();
	return !sim.is_over && start_policy(o);
}

/* Run one simulation; records stay open. @out_fd: for a policy that is stopped. */
const struct sim_result *sim_simulate(struct sim_options *o, int out_fd)
{
	result_fd = out_fd;
	worker_options = o;
	worker_result.status = "ok";
	if (set_up(o)) {
		sim_loop();
		worker_result.nr_records = sim_records_count();
		sl_policy_disable(false);
	}
	return &worker_result;
}

/* Run one simulation and write its result to @out_fd. Return: 0. */
int sim_worker(struct sim_options *o, int out_fd)
{
	int err;

	sim_catch_policy(o);
	sim_simulate(o, out_fd);
	err = sim_records_close();
	if (err)
		fail_records(o->records_path, err);
	sim_print_result(out_fd, o, &worker_result);
	return 0;
}
