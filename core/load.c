/* SPDX-License-Identifier: MIT */
/*
 * load.c - a policy's life: loading and unloading, also under running tasks.
 *
 *	enable:   maps -> ops -> ops.init -> ops.init_task of every task ->
 *	          all CPUs are held -> the story of every runnable task begins
 *	          and it is queued anew -> bypass ends -> CPUs go on
 *	disable:  bypass (built-in FIFO) -> no CPU is in the policy any more ->
 *	          every task is taken back -> ops.exit_task, ops.exit -> memory
 *
 * Called by hosts. Other CPUs need not be stopped: where they are at work, each is
 * waited for until it has come to sl_schedule() once, which it does because it is
 * kicked. Whatever a CPU begins after that sees what was written before.
 *
 * Read next: hotplug.c.
 */
#include "core.h"

/*
 * Wait until no other CPU does what it began before this call. Context: no lock
 * held; the other CPUs answer kicks.
 */
static void wait_for_others(struct sl_cpu *this_cpu)
{
	for_each_cpu(cpu) {
		if (cpu == this_cpu)
			continue;
		sl_lock(&cpu->lock);
		smp_store_release(&cpu->must_quiesce, true);
		sl_unlock(&cpu->lock);
		sl_host_kick(cpu->id);
	}
	for_each_cpu(cpu) {
		while (smp_load_acquire(&cpu->must_quiesce))
			sl_host_relax();
	}
}

/* What is wrong with the policy that is to be loaded, for sl_report(). Return: @err. */
static sl_cold int refuse_ops(int err, const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	sl_format(sl_core.exit_msg, sizeof(sl_core.exit_msg), fmt, args);
	__builtin_va_end(args);
	return err;
}

/* For launch files. Context: in sl_policy.start(). */
int sl_scx_launch_refuse(const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	sl_format(sl_core.exit_msg, sizeof(sl_core.exit_msg), fmt, args);
	__builtin_va_end(args);
	return -EINVAL;
}

#define OPS_FLAGS							\
	(SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST |			\
	 SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED |		\
	 SCX_OPS_ALLOW_QUEUED_WAKEUP | SCX_OPS_BUILTIN_IDLE_PER_NODE |	\
	 SCX_OPS_ALWAYS_ENQ_IMMED)

/* S23, S51: where the policy finds the idle CPUs. */
static enum sl_idle_tracking idle_tracking(const struct sched_ext_ops *ops)
{
	if (ops->update_idle && !(ops->flags & SCX_OPS_KEEP_BUILTIN_IDLE))
		return SL_IDLE_OWN;
	return ops->flags & SCX_OPS_BUILTIN_IDLE_PER_NODE ? SL_IDLE_PER_NODE : SL_IDLE_GLOBAL;
}

/* A flag that a policy asks for by its number: its name, if only Linux has it. */
static int check_flags(const struct sched_ext_ops *ops)
{
	u64 others = ops->flags & ~OPS_FLAGS;

	if (others & (1ULL << 3))
		return refuse_ops(-EINVAL,
				  "ops.flags has SCX_OPS_SWITCH_PARTIAL, which only Linux has");
	if (others)
		return refuse_ops(-EINVAL, "ops.flags has unknown bits 0x%llx", others);
	if ((ops->flags & SCX_OPS_ENQ_LAST) && !ops->enqueue)
		return refuse_ops(-EINVAL,
				  "SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented");
	if ((ops->flags & SCX_OPS_BUILTIN_IDLE_PER_NODE) && idle_tracking(ops) == SL_IDLE_OWN)
		return refuse_ops(-EINVAL,
				  "SCX_OPS_BUILTIN_IDLE_PER_NODE requires CPU idle selection enabled");
	return 0;
}

/* What Linux refuses, and what only Linux has. */
static int check_ops(const struct sched_ext_ops *ops)
{
	u32 i = 0;

	while (i < sizeof(ops->name) && ops->name[i])
		i++;
	if (i == 0 || i == sizeof(ops->name))
		return refuse_ops(-EINVAL, "ops.name is empty, or longer than %u characters",
				  (u32)sizeof(ops->name) - 1);
	if (ops->timeout_ms > 30000)
		return refuse_ops(-E2BIG, "ops.timeout_ms %u is more than 30000", ops->timeout_ms);
	if (ops->dispatch_max_batch > SL_DISPATCH_BATCH_MAX)
		return refuse_ops(-E2BIG, "ops.dispatch_max_batch %u is more than %u",
				  ops->dispatch_max_batch, SL_DISPATCH_BATCH_MAX);
	if (ops->hotplug_seq && ops->hotplug_seq != sl_core.hotplug_seq)
		return refuse_ops(-EBUSY, "expected hotplug seq %llu did not match actual %llu",
				  ops->hotplug_seq, sl_core.hotplug_seq);
	return check_flags(ops);
}

static void set_ops(const struct sched_ext_ops *ops)
{
	static const struct sched_ext_ops no_ops;

	/* The watchdog of another CPU may look. */
	copy_words(&sl_core.ops, ops ?: &no_ops, sizeof(sl_core.ops));
	set_idle_tracking(ops ? idle_tracking(ops) : SL_IDLE_GLOBAL);
}

static void destroy_dsqs(void)
{
	for (u32 i = 0; i <= SL_DSQ_BUCKETS; i++) {
		struct sl_dsq *q,
			**first = i < SL_DSQ_BUCKETS ? &sl_core.dsqs[i] : &sl_core.free_dsqs;

		while ((q = *first)) {
			SL_ASSERT(!q->first);
			smp_store_release(first, q->next);
			wait_for_dumps();
			sl_host_free(q, sizeof(*q));
		}
	}
	sl_core.nr_dsqs = 0;
	for_each_cpu(cpu)
		WRITE_ONCE(cpu->last_dsq, &sl_core.no_dsq);
}

/* Context: nothing of the policy is in use. */
static void forget_policy(void)
{
	set_ops(NULL);
	WRITE_ONCE(sl_core.watchdog_ns, ~0ULL);
	timers_destroy();
	spin_locks_reset();
	maps_destroy();
	objects_free();
	forget_cgroups();
	destroy_dsqs();
}

/* S1: the tasks that exist. Context: all tasks_locks held, no task comes or goes. */
static void init_tasks(struct sl_cpu *this_cpu)
{
	struct sl_task *t;

	for_each_task(t) {
		if (t->is_leaving)
			continue;
		t->is_known = true;
		init_task(this_cpu, t, false);
	}
}

/*
 * The policy's story of @t begins where @t is. Context: all CPUs are held, so it
 * is in one of its states for good, and in no policy's hands.
 */
static void attach_to_policy(struct sl_cpu *this_cpu, struct sl_task *t)
{
	struct sl_cpu *cpu = &sl_core.cpus[t->cpu];
	u8 state = READ_ONCE(t->state);

	if (state == SL_TASK_WAKING) {
		/* Its waker, which is about to queue it, calls ops.runnable(). */
		t->p.scx.flags &= ~SCX_TASK_QUEUED;
		return;
	}
	if (state != SL_TASK_RUNNING && state != SL_TASK_RUNNABLE)
		return;
	if (state == SL_TASK_RUNNABLE)
		SL_ASSERT(take_from_queue(cpu, t));
	if (state == SL_TASK_RUNNABLE && !sl_may_run_on(t, cpu->id)) {
		cpu = &sl_core.cpus[any_allowed_cpu(t, cpu->id)];
		WRITE_ONCE(t->cpu, cpu->id);
	}
	SL_CALL_OP(this_cpu, runnable, t, &t->p, ENQUEUE_RESTORE);
	if (state == SL_TASK_RUNNABLE)
		do_enqueue_task(this_cpu, cpu, t, ENQUEUE_RESTORE);
	else
		SL_CALL_OP(this_cpu, running, t, &t->p);
}

/*
 * From one moment on the policy decides. The CPUs' locks are held all at once
 * here and nowhere else: a holder of one waits for no other, so all are got.
 */
static void attach_all(struct sl_cpu *this_cpu)
{
	struct sl_task *t;

	lock_tasks();
	init_tasks(this_cpu);
	for_each_cpu(cpu)
		sl_lock(&cpu->lock);
	this_cpu->holds_lock = true;
	set_bypass(false);
	for_each_task(t)
		attach_to_policy(this_cpu, t);
	this_cpu->holds_lock = false;
	for_each_cpu(cpu)
		sl_unlock(&cpu->lock);
	unlock_tasks();
	kick_all();
}

static int enable(const struct sl_policy *policy, bool is_live)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sched_ext_ops *ops = policy->ops;
	struct scx_event_stats no_events = { 0 };
	int err;

	if (sl_core.is_loaded)
		return -EBUSY;
	sl_core.exit_msg[0] = 0;
	err = check_ops(ops);
	if (err)
		return err;
	/* `exit_done` later: another CPU may have seen that there is one. */
	WRITE_ONCE(sl_core.exit_claimed, 0);
	set_bypass(true);
	WRITE_ONCE(sl_core.exit_ready, 0);
	sl_core.exit_info = (struct scx_exit_info){ 0 };
	for_each_cpu(cpu)
		copy_words(&cpu->events, &no_events, sizeof(no_events));
	err = maps_create(policy);
	if (err)
		return err;
	set_ops(ops);
	sl_core.policy = policy;
	sl_core.dispatch_batch = ops->dispatch_max_batch ? ops->dispatch_max_batch : 32;
	if (policy->start) {
		/* There is no scheduler yet: an error that it reports concerns none. */
		WRITE_ONCE(sl_core.exit_claimed, 1);
		err = policy->start();
		WRITE_ONCE(sl_core.exit_claimed, 0);
		if (err && !sl_core.exit_msg[0])
			refuse_ops(err, "its launch() returned %d", err);
	}
	if (!err)
		err = SL_CALL_ERR(this_cpu, ops->init, init, NULL);
	if (!err) {
		err = init_cgroups(this_cpu, ops);
		if (err)
			refuse_ops(err, "ops.cgroup_init() failed (%d)", err);
	}
	if (err) {
		/* For the caller, not for the host. */
		smp_store_release(&sl_core.exit_done, 1);
		forget_policy();
		return err < 0 ? err : -EINVAL;
	}
	WRITE_ONCE(sl_core.is_loaded, true);
	if (is_live)
		wait_for_others(this_cpu);
	smp_store_release(&sl_core.exit_done, 0);
	attach_all(this_cpu);
	start_watchdog();
	flush(this_cpu);
	return 0;
}

static void exit_tasks(struct sl_cpu *this_cpu)
{
	struct sl_task *t;

	lock_tasks();
	for_each_task(t) {
		if (!t->is_leaving && t->is_known)
			exit_task(this_cpu, t, false);
	}
	exit_cgroups(this_cpu);
	unlock_tasks();
	sl_core.exit_info.kind = SCX_EXIT_UNREG;
	sl_core.exit_info.reason = exit_reason(SCX_EXIT_UNREG);
	sl_core.exit_info.msg = sl_core.exit_msg;
	sl_core.exit_msg[0] = 0;
	call_exit(this_cpu);
}

static void disable(bool is_live)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (!sl_core.is_loaded)
		return;
	flush(this_cpu);
	set_bypass(true);
	if (is_live)
		wait_for_others(this_cpu);
	reclaim_all(this_cpu);
	/* A failure has said its last word; otherwise there will be none. */
	if (sl_cas_u64(&sl_core.exit_claimed, 0, 1))
		exit_tasks(this_cpu);
	WRITE_ONCE(sl_core.is_loaded, false);
	forget_policy();
}

/**
 * sl_policy_enable - load a policy; tasks that exist are handed to it
 * @policy: what a compiled policy exports; its data is pristine
 * @is_live: other CPUs are at work
 *
 * Context: no policy loaded. Not live: no other CPU is in the core. Live: on any CPU,
 * also from a task, one call at a time (a lock of the host's that its tasks sleep on).
 * Nothing has to be stopped; other CPUs are kicked, and each must answer with
 * sl_schedule() whatever the caller holds. So the caller holds no lock that another CPU
 * may spin on. Between sl_policy_disable() and this tasks run under the built-in FIFO,
 * and the host may set the next policy's data and knobs. No task is lost, and a task
 * keeps its weight and attributes.
 *
 * Return: 0; -EBUSY; -EINVAL (name, flags); -E2BIG (timeout or batch too large);
 * -ENOMEM; or what ops.init() returned. On failure the built-in FIFO stays, and
 * sl_report() may say more.
 */
int sl_policy_enable(const struct sl_policy *policy, bool is_live)
{
	int err;

	/* Hosts change the policy from one place at a time. */
	SL_ASSERT(sl_cas_u64(&sl_core.is_changing, 0, 1));
	err = enable(policy, is_live);
	smp_store_release(&sl_core.is_changing, 0);
	return err;
}

/**
 * sl_policy_disable - unload the policy; its tasks go on under built-in FIFO
 * @is_live: other CPUs are at work; then the context is that of sl_policy_enable()
 *
 * When it returns, no pointer of the policy's is in use: its data may be set
 * anew, its code unmapped, and the memory of detached tasks given back. Does nothing
 * without a policy.
 */
void sl_policy_disable(bool is_live)
{
	SL_ASSERT(sl_cas_u64(&sl_core.is_changing, 0, 1));
	disable(is_live);
	smp_store_release(&sl_core.is_changing, 0);
}
