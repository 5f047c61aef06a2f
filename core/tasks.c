/* SPDX-License-Identifier: MIT */
/*
 * tasks.c - the core's memory: CPUs, topology, and the table of tasks.
 *
 * Called by a host once at start, and for every task at its birth and end. The memory
 * that scheduling needs comes from sl_host_alloc() here. Otherwise only loading a policy
 * asks for some, and what a policy makes: queues, timers, masks, objects, pages of an arena.
 *
 * Read next: policy.c, how a policy fails.
 */
#include "core.h"

/* Three levels: cores, caches, nodes. */
static int alloc_masks(void)
{
	u32 nr = sl_core.nr_cpus;

	sl_core.smt_mask = sl_host_alloc(3 * nr * sizeof(struct cpumask));
	sl_core.smt = sl_host_alloc(3 * nr * sizeof(u16));
	if (!sl_core.smt_mask || !sl_core.smt)
		return -ENOMEM;
	sl_core.llc_mask = sl_core.smt_mask + nr;
	sl_core.node_mask = sl_core.llc_mask + nr;
	sl_core.llc = sl_core.smt + nr;
	sl_core.node = sl_core.llc + nr;
	return 0;
}

static void set_bit(struct cpumask *mask, u32 cpu)
{
	mask->bits[cpu / 64] |= 1ULL << (cpu % 64);
}

static void set_topology(const struct sl_config *config)
{
	u32 nr = sl_core.nr_cpus;

	for (u32 i = 0; i < nr; i++) {
		sl_core.smt[i] = config->smt_of_cpu ? config->smt_of_cpu[i] : (u16)i;
		sl_core.llc[i] = config->llc_of_cpu ? config->llc_of_cpu[i] : 0;
		sl_core.node[i] = config->node_of_cpu ? config->node_of_cpu[i] : 0;
		if (sl_core.node[i] >= sl_core.nr_nodes)
			sl_core.nr_nodes = sl_core.node[i] + 1U;
	}
	for (u32 i = 0; i < nr; i++) {
		for (u32 j = 0; j < nr; j++) {
			bool same_smt = sl_core.smt[i] == sl_core.smt[j];
			bool same_llc = sl_core.llc[i] == sl_core.llc[j];
			bool same_node = sl_core.node[i] == sl_core.node[j];

			if (same_smt)
				set_bit(&sl_core.smt_mask[i], j);
			if (same_llc)
				set_bit(&sl_core.llc_mask[i], j);
			if (same_node)
				set_bit(&sl_core.node_mask[i], j);
			sl_core.has_smt |= same_smt && i != j;
			sl_core.has_llcs |= !same_llc;
			sl_core.has_nodes |= !same_node;
		}
	}
}

static int init_cpus(void)
{
	u32 nr = sl_core.nr_cpus;

	for (u32 i = 0; i < nr; i++) {
		struct sl_cpu *cpu = &sl_core.cpus[i];

		cpu->id = (s32)i;
		cpu->idle_cursor = -1;
		cpu->last_dsq = &sl_core.no_dsq;
		sl_lock_init(&cpu->lock);
		sl_lock_init(&cpu->tasks_lock);
		dsq_init(&cpu->local, SCX_DSQ_LOCAL_ON | i, (s32)i);
		sl_task_setup(&cpu->idle, 0, 0, "swapper");
		cpu->idle.p.flags = PF_IDLE;
		cpu->idle.cpu = (s32)i;
		cpu->kicks = sl_host_alloc(nr * sizeof(u16));
		cpu->kick_flags = sl_host_alloc(nr);
		if (!cpu->kicks || !cpu->kick_flags)
			return -ENOMEM;
		set_bit(&sl_core.online, i);
		set_bit(&sl_core.idle.cpus, i);
		set_bit(&sl_core.idle.smt, i);
	}
	return 0;
}

/**
 * sl_core_init - set up an idle machine without a policy
 * @config: see struct sl_config; copied
 *
 * Context: once, before any other call of the core.
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int sl_core_init(const struct sl_config *config)
{
	SL_ASSERT(!sl_core.cpus);
	if (config->nr_cpus < 1 || config->nr_cpus > SCX_CPUS_MAX || config->tasks_max < 1)
		return -EINVAL;
	sl_core.nr_cpus = config->nr_cpus;
	sl_core.tasks_max = config->tasks_max;
	sl_core.has_detail = config->has_detail;
	sl_core.user_half_pid = config->user_half_pid;
	sl_core.idle_tracking = SL_IDLE_GLOBAL;
	sl_core.watchdog_ns = ~0ULL;
	dsq_init(&sl_core.global, SCX_DSQ_GLOBAL, -1);
	dsq_init(&sl_core.no_dsq, SCX_DSQ_INVALID, -1);
	sl_core.no_dsq.is_dead = true;
	sl_lock_init(&sl_core.tables_lock);
	bpf_init();
	CONFIG_HZ = 1000000000 / (config->tick_ns ? config->tick_ns : 1000000);
	/* Of a tick longer than a second, too, a policy may divide by it. */
	CONFIG_HZ = CONFIG_HZ ? CONFIG_HZ : 1;
	sl_core.ticks_per_1024ns = (1ULL << 44) / (1000000000 / CONFIG_HZ) + 1;
	sl_core.cpus = sl_host_alloc(sl_core.nr_cpus * sizeof(struct sl_cpu));
	sl_core.tasks = sl_host_alloc(sl_core.tasks_max * sizeof(struct sl_task *));
	for (u32 i = 0; i < sl_core.nr_cpus; i++)
		set_bit(&sl_core.possible, i);
	if (!sl_core.cpus || !sl_core.tasks || alloc_masks() || alloc_cgroups())
		return -ENOMEM;
	set_topology(config);
	sl_core.idle_of_node = sl_host_alloc(sl_core.nr_nodes * sizeof(struct sl_idle));
	return sl_core.idle_of_node ? init_cpus() : -ENOMEM;
}

struct sl_cpu *sl_core_cpu(s32 cpu)
{
	return &sl_core.cpus[cpu];
}

/* Give all memory back. Context: no CPU is in the core any more. */
void sl_core_exit(void)
{
	u32 nr = sl_core.nr_cpus;

	for_each_cpu(cpu) {
		sl_host_free(cpu->kicks, nr * sizeof(u16));
		sl_host_free(cpu->kick_flags, nr);
	}
	sl_host_free(sl_core.smt_mask, 3 * nr * sizeof(struct cpumask));
	sl_host_free(sl_core.smt, 3 * nr * sizeof(u16));
	sl_host_free(sl_core.idle_of_node, sl_core.nr_nodes * sizeof(struct sl_idle));
	free_cgroups();
	sl_host_free(sl_core.tasks, sl_core.tasks_max * sizeof(struct sl_task *));
	sl_host_free(sl_core.cpus, nr * sizeof(struct sl_cpu));
	bpf_exit();
	__builtin_memset(&sl_core, 0, sizeof(sl_core));
}

/* Of every task. */
static const struct cred root_cred;
static struct signal_struct one_thread;

/* What a policy sees of a task. It may be looking: see sl_task_setup(). */
static void setup_visible(struct task_struct *p, s32 pid, const char *comm)
{
	struct task_struct fresh;

	/* Between its members, too. */
	__builtin_memset(&fresh, 0, sizeof(fresh));
	fresh.scx.slice = SCX_SLICE_DFL;
	fresh.scx.sticky_cpu = -1;
	fresh.scx.selected_cpu = -1;
	fresh.cpus_ptr = &sl_core.possible;
	fresh.nr_cpus_allowed = (s32)sl_core.nr_cpus;
	fresh.pid = fresh.tgid = pid;
	fresh.real_parent = fresh.group_leader = p;
	fresh.prio = fresh.static_prio = fresh.normal_prio = 120;
	fresh.numa_preferred_nid = -1;
	fresh.policy = 7; /* SCHED_EXT */
	fresh.cgroups = &cgroup_of(NULL)->set;
	fresh.real_cred = &root_cred;
	fresh.signal = &one_thread;
	fresh.thread_node.next = &one_thread.thread_head;
	for (u32 i = 0; i < TASK_COMM_LEN - 1 && comm[i]; i++)
		fresh.comm[i] = comm[i];
	copy_words(p, &fresh, sizeof(fresh));
}

/**
 * sl_task_setup - bring a task to where every task starts
 * @t: zeroed, or detached
 * @idx: below tasks_max; no other attached task has it
 * @pid: unique among attached tasks
 * @comm: its name; cut if it is too long
 *
 * The host may then give it weight, attributes and affinity before it attaches the
 * task. Another CPU may still hold the last task's pointer and look at it, or dispatch
 * it (S21). So its CPU stays a CPU, and what tells one turn from the next goes on
 * counting.
 *
 * Context: nothing but stale pointers of the policy refers to @t.
 */
void sl_task_setup(struct sl_task *t, u32 idx, s32 pid, const char *comm)
{
	SL_ASSERT(idx < sl_core.tasks_max);
	SL_ASSERT(!t->is_attached);
	SL_ASSERT(!t->dsq && !READ_ONCE(t->on_cpu));
	setup_visible(&t->p, pid, comm);
	WRITE_ONCE(t->idx, idx);
	WRITE_ONCE(t->weight, 100);
	WRITE_ONCE(t->user_mask, NULL);
	t->is_bound = false;
	set_sched_cgroup(t);
	smp_store_release(&t->state, SL_TASK_NEW);
	set_ops_state(t, SL_OPSS_NONE);
	t->is_leaving = false;
	t->is_known = false;
	t->is_blocking = false;
	t->in_custody = false;
	t->last_cpu = -1;
	t->p.scx.ddsp_dsq_id = SCX_DSQ_INVALID;
	t->p.scx.ddsp_enq_flags = 0;
	WRITE_ONCE(t->exec_start_ns, 0ULL);
	t->charged_ns = 0;
	WRITE_ONCE(t->runnable_at_ns, 0ULL);
	WRITE_ONCE(t->wait_for, NULL);
	t->wait_ns = 0;
	t->wait_ns_max = 0;
	t->nr_migrations = 0;
	t->from_dsq_id = 0;
	t->attr = (struct task_attr){ 0 };
}

/* Context: set up, not attached. */
void sl_task_set_nice(struct sl_task *t, s32 nice)
{
	WRITE_ONCE(t->p.static_prio, 120 + nice);
	WRITE_ONCE(t->p.normal_prio, 120 + nice);
	WRITE_ONCE(t->p.prio, 120 + nice);
}

/* What a child has of its parent; the affinity is the host's. Context: as above. */
void sl_task_inherit(struct sl_task *t, const struct sl_task *parent)
{
	t->attr = parent->attr;
	WRITE_ONCE(t->p.cgroups, READ_ONCE(parent->p.cgroups));
	set_sched_cgroup(t);
	WRITE_ONCE(t->weight, READ_ONCE(parent->weight));
}

/* It runs its last steps: the policy may want to hear of it no more (S19). */
void sl_task_set_exiting(struct sl_task *t)
{
	WRITE_ONCE(t->p.flags, t->p.flags | PF_EXITING);
}

/* From now on no task comes or goes. Context: no lock held. */
static void lock_tasks(void)
{
	for_each_cpu(cpu)
		sl_lock(&cpu->tasks_lock);
}

static void unlock_tasks(void)
{
	for_each_cpu(cpu)
		sl_unlock(&cpu->tasks_lock);
}

/*
 * Under the lock it is decided which calls ops.init_task() or ops.exit_task():
 * its host's call, or load.c, for all that are in the table. Return: whether this one.
 */
static bool enter_table(struct sl_cpu *this_cpu, struct sl_task *t)
{
	bool is_known;
	u64 end;

	sl_lock(&this_cpu->tasks_lock);
	do
		end = READ_ONCE(sl_core.nr_tasks_end);
	while (t->idx >= end && !sl_cas_u64(&sl_core.nr_tasks_end, end, t->idx + 1ULL));
	SL_ASSERT(!READ_ONCE(sl_core.tasks[t->idx]));
	is_known = !sl_is_bypassed();
	t->is_known = is_known;
	smp_store_release(&t->is_attached, true);
	smp_store_release(&sl_core.tasks[t->idx], t);
	sl_unlock(&this_cpu->tasks_lock);
	return is_known;
}

/*
 * ops.init_task(), ops.enable(), ops.set_weight() and, unless the task is new itself (@is_fork),
 * ops.set_cpumask() of a task that is new to the policy. A failure is the policy's; @t goes on. On Linux
 * it is ops.enable() that gives a task its weight, which later policies find.
 */
static void init_task(struct sl_cpu *this_cpu, struct sl_task *t, bool is_fork)
{
	struct scx_init_task_args args = { .fork = is_fork, .cgroup = t->p.cgroups->dfl_cgrp };
	int err;

	/* A move of which another policy was asked is over for this one. */
	set_sched_cgroup(t);
	/* Without the lock no other CPU changes those of a task that is new. */
	if ((!is_fork || t->attr.given) && give_kept_attrs(t))
		scx_error(t, "the task_attrs map has no room for %s[%d]", t->p.comm, t->p.pid);
	WRITE_ONCE(t->p.scx.disallow, false);
	err = SL_CALL_ERR(this_cpu, SL_OP(init_task), init_task, t, &t->p, &args);
	if (err)
		scx_error(t, "ops.init_task() failed (%d) for %s[%d]", err, t->p.comm, t->p.pid);
	else if (t->p.scx.disallow)
		scx_error(t, "ops.init_task() set task->scx.disallow for %s[%d]%s", t->p.comm,
			  t->p.pid,
			  is_fork ? " during fork" : ": there is no other scheduling class");
	/* As long as the policy is being enabled, that is the default. */
	if (!is_fork)
		sl_set_slice(t, SCX_SLICE_BYPASS);
	WRITE_ONCE(t->p.scx.weight, READ_ONCE(t->weight));
	SL_CALL_LOADED(this_cpu, enable, t, &t->p);
	SL_CALL_LOADED(this_cpu, set_weight, t, &t->p, t->p.scx.weight);
	/* It comes from another class, in which they could change. */
	if (!is_fork)
		SL_CALL_LOADED(this_cpu, set_cpumask, t, &t->p, READ_ONCE(t->p.cpus_ptr));
}

/* And its end: of the task, or of the policy. @is_new: it was never started. */
static void exit_task(struct sl_cpu *this_cpu, struct sl_task *t, bool is_new)
{
	struct scx_exit_task_args args = { .cancelled = is_new };

	SL_CALL_LOADED(this_cpu, disable, t, &t->p);
	SL_CALL_LOADED(this_cpu, exit_task, t, &t->p, &args);
}

/**
 * sl_task_attach - make a task known to the core and to the policy
 * @t: set up, not attached
 * @parent: its creator; NULL: the host
 *
 * Context: no lock held. May take long: the policy allocates its state here.
 */
void sl_task_attach(struct sl_task *t, const struct sl_task *parent)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	SL_ASSERT(!t->is_attached);
	SL_ASSERT(t->state == SL_TASK_NEW);
	if (parent)
		WRITE_ONCE(t->p.real_parent, (struct task_struct *)&parent->p);
	/* Where it may run for certain is chosen when it starts. */
	WRITE_ONCE(t->cpu, sl_may_run_on(t, this_cpu->id) ? this_cpu->id :
							    (s32)bpf_cpumask_first(t->p.cpus_ptr));
	if (enter_table(this_cpu, t))
		init_task(this_cpu, t, true);
	flush(this_cpu);
}

/**
 * sl_task_detach - forget a task
 * @t: dead, or never started, or blocked for good; its stack is out of use
 *
 * Its memory stays a task until the policy is disabled; see task.h.
 *
 * Context: no lock held; @t is not in use any more.
 */
void sl_task_detach(struct sl_task *t)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	SL_ASSERT(t->is_attached);
	SL_ASSERT(t->state != SL_TASK_RUNNABLE && t->state != SL_TASK_RUNNING);
	sl_lock(&this_cpu->tasks_lock);
	t->is_leaving = true;
	if (t->is_known && !sl_is_bypassed()) {
		/* It keeps its slot meanwhile: it may have storage still. */
		sl_unlock(&this_cpu->tasks_lock);
		exit_task(this_cpu, t, t->state == SL_TASK_NEW);
		sl_lock(&this_cpu->tasks_lock);
	}
	/* First of all, so that no storage is made for it any more. */
	WRITE_ONCE(t->is_attached, false);
	/* In a map that this does not see yet, nothing of it was stored. */
	sl_host_fence();
	if (READ_ONCE(sl_bpf.nr_maps))
		maps_forget_task(t);
	WRITE_ONCE(sl_core.tasks[t->idx], NULL);
	sl_unlock(&this_cpu->tasks_lock);
	flush(this_cpu);
	wait_for_dumps();
}
