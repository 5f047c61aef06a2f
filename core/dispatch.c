/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c - how a runnable task gets from the policy to a queue.
 *
 *	sl_enqueue --> ops.enqueue --> direct: SCX_DSQ_LOCAL    -> local queue
 *	                          |            SCX_DSQ_LOCAL_ON -> `moves` list
 *	                          |            global or user   -> that queue
 *	                          \--> kept by the policy, until ops.dispatch
 *	                               names it: buffered in `inserts`, placed
 *	                               by sl_flush_inserts()
 *
 * Called by schedule.c and wake.c, and by policies through kfuncs_dsq.c.
 * A task between two queues has ops_state DISPATCHING; whoever wants to take it
 * away waits until it has arrived.
 *
 * Read next: schedule.c, which takes from the local queue.
 */
#include "core.h"

/* Internal flag, as on Linux: insert by p->scx.dsq_vtime. */
#define ENQ_DSQ_PRIQ (1ULL << 57)

/* Where the search for this id begins in sl_core.dsqs. */
u32 sl_dsq_slot(u64 id)
{
	return (u32)((id * 0x9e3779b97f4a7c15ULL) >> 40) % (2 * SL_DSQS_MAX);
}

/* Context: dsqs_lock held; without it one that exists may be missed. */
struct sl_dsq *sl_dsq_search(u64 id)
{
	u32 slot = sl_dsq_slot(id);

	for (u32 i = 0; i < 2 * SL_DSQS_MAX; i++) {
		struct sl_dsq *q = smp_load_acquire(&sl_core.dsqs[slot]);

		if (!q)
			return NULL;
		if (READ_ONCE(q->id) == id && !READ_ONCE(q->is_dead))
			return q;
		slot = (slot + 1) % (2 * SL_DSQS_MAX);
	}
	return NULL;
}

/* sl_dsq_find() for another one than last time. */
struct sl_dsq *sl_dsq_find_another(struct sl_cpu *here, u64 id)
{
	struct sl_dsq *q = sl_dsq_search(id);

	if (!q) {
		/* Those behind one that was destroyed move up. */
		sl_lock(&sl_core.dsqs_lock);
		q = sl_dsq_search(id);
		sl_unlock(&sl_core.dsqs_lock);
	}
	if (q)
		WRITE_ONCE(here->last_dsq, q);
	return q;
}

/*
 * The built-in queue that @id means for @t. Local ids mean a queue of @local_cpu
 * or of the CPU they name. An id that means nothing is the policy's error, and the
 * global queue, so that @t still runs.
 */
static struct sl_dsq *builtin_dsq(struct sl_task *t, u64 id,
				  struct sl_cpu *local_cpu)
{
	u64 cpu;

	if (id == SCX_DSQ_LOCAL) {
		return &local_cpu->local;
	} else if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON) {
		cpu = id & SCX_DSQ_LOCAL_CPU_MASK;
		if (cpu < sl_core.nr_cpus)
			return &sl_core.cpus[cpu].local;
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"invalid CPU %llu in SCX_DSQ_LOCAL_ON verdict for %s[%d]",
				(unsigned long long)cpu, t->p.comm, t->p.pid);
		return &sl_core.global;
	} else if (id == SCX_DSQ_GLOBAL) {
		return &sl_core.global;
	}
	sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
			"non-existent DSQ 0x%llx for %s[%d]",
			(unsigned long long)id, t->p.comm, t->p.pid);
	return &sl_core.global;
}

/* That may be while it dispatches, so the outer callback's place is kept. */
void sl_call_dequeue(struct sl_task *t, u64 deq_flags)
{
	struct sl_cpu *here = sl_this_cpu();
	enum sl_callback callback = here->callback;
	struct sl_task *subject = here->callback_task;

	SL_TELL(here, dequeue, t, &t->p, deq_flags);
	WRITE_ONCE(here->callback, callback);
	here->callback_task = subject;
}

static void record_enqueue(const struct sl_task *t, u64 dsq_id)
{
	if (unlikely(sl_core.has_detail))
		sl_host_record(SL_RECORD_ENQUEUE, t->p.pid, t->cpu, 0, dsq_id);
}

/**
 * sl_insert_local - put a task on a CPU's local queue
 * @cpu: whose queue; its lock is held
 * @t: runnable, on no queue
 * @enq_flags: HEAD and PREEMPT put it first
 *
 * S5: an idle CPU is woken. S9: PREEMPT ends the running task's slice. A CPU
 * that is just choosing needs neither, it will look at its queue next.
 */
void sl_insert_local(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags)
{
	struct sl_task *curr = cpu->curr;

	sl_end_custody(t, 0);
	WRITE_ONCE(t->cpu, cpu->id);
	record_enqueue(t, cpu->local.id);
	sl_dsq_insert(&cpu->local, t,
		      enq_flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT));
	sl_set_ops_state(t, SL_OPSS_NONE);
	if (cpu->is_scheduling)
		return;
	if (!curr) {
		sl_host_kick(cpu->id);
	} else if ((enq_flags & SCX_ENQ_PREEMPT) && curr != t) {
		sl_set_slice(curr, 0);
		sl_host_kick(cpu->id);
	}
}

/* A user queue is dead, or holds tasks in the other order: @t was not queued. */
static sl_cold void refuse_insert(struct sl_task *t, u64 id, bool is_mixed,
				  bool by_vtime)
{
	if (is_mixed)
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"DSQ 0x%llx holds tasks in %s order, %s[%d] was inserted in the other",
				(unsigned long long)id,
				by_vtime ? "FIFO" : "vtime", t->p.comm,
				t->p.pid);
	else
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"non-existent DSQ 0x%llx for %s[%d]",
				(unsigned long long)id, t->p.comm, t->p.pid);
}

/* The global queue is a FIFO, and always there. */
static sl_cold void insert_global(struct sl_cpu *here, struct sl_task *t, u64 enq_flags)
{
	struct sl_dsq *q = &sl_core.global;

	sl_end_custody(t, 0);
	record_enqueue(t, SCX_DSQ_GLOBAL);
	sl_lock(&q->lock);
	sl_dsq_insert(q, t, enq_flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT));
	sl_set_ops_state(t, SL_OPSS_NONE);
	sl_unlock(&q->lock);
	if (unlikely(enq_flags & ENQ_DSQ_PRIQ))
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"cannot use vtime ordering for built-in DSQs");
	sl_check_idlers(here);
}

/* Return: false if @q holds tasks in the other order. Context: q->lock held. */
static __noinline bool insert_in_order(struct sl_dsq *q, struct sl_task *t, u64 order)
{
	if (order & ENQ_DSQ_PRIQ)
		return sl_dsq_insert_vtime(q, t, READ_ONCE(t->p.scx.dsq_vtime));
	if (q->root)
		return false;
	sl_dsq_insert(q, t, order);
	return true;
}

/* Put @t on the user queue that was found as @id. */
sl_inline void insert_shared(struct sl_cpu *here, struct sl_dsq *q, u64 id,
			     struct sl_task *t, u64 enq_flags)
{
	u64 order = enq_flags & (ENQ_DSQ_PRIQ | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
	/* It may have been destroyed since it was found. */
	bool is_there, is_queued;

	t->in_custody = true;
	record_enqueue(t, id);
	sl_lock(&q->lock);
	is_there = sl_dsq_is(q, id);
	is_queued = is_there && !order && !q->root;
	if (likely(is_queued))
		sl_dsq_append(q, t);
	else if (is_there)
		is_queued = insert_in_order(q, t, order);
	sl_set_ops_state(t, SL_OPSS_NONE);
	sl_unlock(&q->lock);
	if (unlikely(!is_queued)) {
		refuse_insert(t, id, is_there, order & ENQ_DSQ_PRIQ);
		insert_global(here, t, 0);
		return;
	}
	sl_check_idlers(here);
}

/* Set @t aside for another CPU's local queue; sl_flush() puts it there. */
static void defer_move(struct sl_cpu *here, struct sl_task *t)
{
	SL_ASSERT(!t->dsq);
	here->has_deferred = true;
	sl_set_ops_state(t, SL_OPSS_DISPATCHING);
	t->next = NULL;
	if (here->moves)
		here->moves_last->next = t;
	else
		here->moves = t;
	here->moves_last = t;
}

/* @t, which waits, may not run where it is: sl_flush() finds it another CPU. */
void sl_defer_migration(struct sl_cpu *here, struct sl_task *t)
{
	here->has_deferred = true;
	here->migrate = t;
}

/*
 * Place @t where a verdict says. @cpu is the CPU whose lock is held, or NULL;
 * SCX_DSQ_LOCAL means its queue, or this CPU's.
 */
static __noinline void place_builtin(struct sl_cpu *here, struct sl_cpu *cpu,
			  struct sl_task *t, u64 dsq_id, u64 enq_flags)
{
	struct sl_dsq *q = builtin_dsq(t, dsq_id, cpu ? cpu : here);

	if (!q->is_local) {
		insert_global(here, t, enq_flags);
		return;
	}
	if (!sl_may_run_on(t, q->cpu)) {
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"SCX_DSQ_LOCAL[_ON] target cpu %d not allowed for %s[%d]",
				q->cpu, t->p.comm, t->p.pid);
		insert_global(here, t, 0);
		return;
	}
	if (cpu && q->cpu == cpu->id) {
		sl_insert_local(cpu, t, enq_flags);
		return;
	}
	t->ddsp_dsq_id = SCX_DSQ_LOCAL_ON | (u64)q->cpu;
	t->ddsp_enq_flags = enq_flags;
	defer_move(here, t);
}

sl_inline void place(struct sl_cpu *here, struct sl_cpu *cpu, struct sl_task *t,
		     u64 dsq_id, u64 enq_flags)
{
	struct sl_dsq *q = dsq_id & SCX_DSQ_FLAG_BUILTIN ? NULL :
							   sl_dsq_find(here, dsq_id);

	if (likely(q))
		insert_shared(here, q, dsq_id, t, enq_flags);
	else
		place_builtin(here, cpu, t, dsq_id, enq_flags);
}

sl_inline void place_direct(struct sl_cpu *here, struct sl_cpu *cpu,
			 struct sl_task *t, u64 enq_flags)
{
	u64 dsq_id = t->ddsp_dsq_id;

	enq_flags |= t->ddsp_enq_flags;
	t->ddsp_dsq_id = SCX_DSQ_INVALID;
	t->ddsp_enq_flags = 0;
	place(here, cpu, t, dsq_id, enq_flags);
}

/* S19, S20: the policy does not want to hear of such a task. */
static bool is_kept_from(const struct sl_task *t)
{
	u64 flags = SL_OP(flags);

	return ((t->p.flags & PF_EXITING) && !(flags & SCX_OPS_ENQ_EXITING)) ||
	       (READ_ONCE(t->p.migration_disabled) &&
		!(flags & SCX_OPS_ENQ_MIGRATION_DISABLED));
}

/* Return: whether @t was queued; otherwise ops.enqueue(), which is there, is asked. */
static __noinline bool enqueue_unasked(struct sl_cpu *here, struct sl_cpu *cpu,
				     struct sl_task *t, u64 enq_flags, bool is_absent)
{
	bool is_bypassed = sl_is_bypassed();

	if (!is_bypassed && t->ddsp_dsq_id != SCX_DSQ_INVALID) {
		place_direct(here, cpu, t, enq_flags);
		return true;
	}
	if (!is_bypassed && is_kept_from(t)) {
		sl_set_slice(t, SCX_SLICE_DFL);
		sl_insert_local(cpu, t, enq_flags);
		return true;
	}
	if (!is_bypassed && !is_absent)
		return false;
	t->ddsp_dsq_id = SCX_DSQ_INVALID;
	sl_set_slice(t, SCX_SLICE_DFL);
	insert_global(here, t, enq_flags);
	return true;
}

/**
 * sl_enqueue - a runnable task needs a queue: ask the policy
 * @cpu: the CPU the task is on; its lock is held
 * @t: runnable, on no queue
 * @enq_flags: SCX_ENQ_*
 *
 * S6: a task already placed by select_cpu skips ops.enqueue(). S19, S20: an
 * exiting or migration-disabled task goes to the local queue unless the policy
 * asked for it. S3: without ops.enqueue() everything goes to the global queue.
 *
 * Context: @here is this CPU; @cpu->lock held.
 */
__flatten void sl_enqueue(struct sl_cpu *here, struct sl_cpu *cpu,
				struct sl_task *t, u64 enq_flags)
{
	void (*ask)(struct task_struct *p, u64 enq_flags) = SL_OP(enqueue);
	u64 seq;

	if (unlikely(!ask || t->ddsp_dsq_id != SCX_DSQ_INVALID ||
			(t->p.flags & PF_EXITING) ||
			READ_ONCE(t->p.migration_disabled)) &&
	    enqueue_unasked(here, cpu, t, enq_flags, !ask))
		return;
	seq = (READ_ONCE(t->ops_state) & ~(u64)SL_OPSS_MASK) + SL_OPSS_SEQ_ONE;
	smp_store_release(&t->ops_state, seq | SL_OPSS_QUEUEING);
	here->direct_task = t;
	SL_CALL(here, ask, enqueue, t, &t->p, enq_flags);
	here->direct_task = NULL;
	if (t->ddsp_dsq_id != SCX_DSQ_INVALID) {
		place_direct(here, cpu, t, enq_flags);
		return;
	}
	/* S4: the policy holds it until it dispatches it. */
	t->in_custody = true;
	smp_store_release(&t->ops_state, seq | SL_OPSS_QUEUED);
	sl_check_idlers(here);
}

/* Claim the task of one buffered insertion and place it; S21 if it is stale. */
static void finish_insert(struct sl_cpu *cpu, const struct sl_insert *in)
{
	struct sl_task *t = in->task;
	u64 state;

	for (;;) {
		state = smp_load_acquire(&t->ops_state);
		if ((state & SL_OPSS_MASK) == SL_OPSS_QUEUEING) {
			sl_host_relax();
			continue;
		}
		if ((state & SL_OPSS_MASK) != SL_OPSS_QUEUED ||
		    (state & ~(u64)SL_OPSS_MASK) != in->ops_seq)
			return;
		if (sl_cas_u64(&t->ops_state, state,
			       in->ops_seq | SL_OPSS_DISPATCHING))
			break;
	}
	place(cpu, cpu, t, in->dsq_id, in->enq_flags);
}

/* Context: @cpu is this CPU and its lock is held. */
void sl_flush_inserts(struct sl_cpu *cpu)
{
	u32 nr = cpu->nr_inserts;

	for (u32 i = 0; i < nr; i++)
		finish_insert(cpu, &cpu->inserts[i]);
	cpu->nr_moved += nr;
	cpu->nr_inserts = 0;
}

/**
 * sl_move_to_local - take the first task that may run here from a shared queue
 * @cpu: this CPU, which is choosing; its lock is held
 * @q: a user queue, found as @id, or the global one
 *
 * Return: whether a task was moved to the end of @cpu's local queue.
 */
bool sl_move_to_local(struct sl_cpu *cpu, struct sl_dsq *q, u64 id)
{
	struct sl_task *t;

	if (unlikely(!READ_ONCE(q->first)))
		return false;
	sl_lock(&q->lock);
	t = sl_dsq_is(q, id) ? q->first : NULL;
	while (t && unlikely(!sl_may_run_on(t, cpu->id)))
		t = t->next;
	if (t) {
		sl_dsq_remove(q, t);
		WRITE_ONCE(t->cpu, cpu->id);
		t->from_dsq_id = id;
	}
	sl_unlock(&q->lock);
	if (!t)
		return false;
	/* As sl_insert_local(), for a CPU that looks at its queue next. */
	sl_end_custody(t, 0);
	record_enqueue(t, cpu->local.id);
	sl_dsq_append_unwalked(&cpu->local, t);
	return true;
}

/* A task that may no longer run where it ran: queue it where it may. */
static void finish_migration(struct sl_cpu *here)
{
	struct sl_task *t = here->migrate;
	struct sl_cpu *cpu;

	here->migrate = NULL;
	cpu = &sl_core.cpus[sl_any_allowed_cpu(t, here->id)];
	sl_lock(&cpu->lock);
	sl_make_runnable(here, cpu, t, 0);
	sl_unlock(&cpu->lock);
}

/* sl_flush(), where there is something. */
void sl_flush_deferred(struct sl_cpu *here)
{
	struct sl_cpu *cpu;
	struct sl_task *t;

	while (here->moves || here->migrate) {
		if (here->migrate)
			finish_migration(here);
		t = here->moves;
		if (!t)
			continue;
		here->moves = t->next;
		cpu = &sl_core.cpus[t->ddsp_dsq_id & SCX_DSQ_LOCAL_CPU_MASK];
		t->ddsp_dsq_id = SCX_DSQ_INVALID;
		sl_lock(&cpu->lock);
		sl_insert_local(cpu, t, t->ddsp_enq_flags);
		sl_unlock(&cpu->lock);
	}
	if (here->nr_kicks)
		sl_flush_kicks(here);
	here->has_deferred = false;
}

/*
 * Used by kfuncs_dsq.c: place a task that was taken off a queue, from dispatch
 * (this CPU's lock is held) or from a place without locks.
 */
void sl_place(struct sl_cpu *here, struct sl_task *t, u64 dsq_id,
	      u64 enq_flags, bool by_vtime)
{
	struct sl_cpu *cpu = here->holds_lock ? here : NULL;

	/* Its CPU stays what it was: only a local queue changes that. */
	place(here, cpu, t, dsq_id, by_vtime ? enq_flags | ENQ_DSQ_PRIQ :
					       enq_flags);
}

static sl_cold bool refuse_verdict(struct sl_cpu *here, const struct sl_task *t)
{
	const char *name = sl_callback_name(here->callback) ?: "?";

	if (here->callback != SL_IN_enqueue && here->callback != SL_IN_select_cpu)
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"scx_bpf_dsq_insert() called from ops.%s()",
				name);
	else if (t != here->direct_task)
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"inserting %s[%d] from ops.%s() of another task",
				t->p.comm, t->p.pid, name);
	else
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"%s[%d] already direct-dispatched",
				t->p.comm, t->p.pid);
	return false;
}

/*
 * Used by kfuncs_dsq.c: a verdict of select_cpu or enqueue is only noted, one
 * of dispatch is buffered. Return: false if it was refused.
 */
bool sl_verdict(struct sl_task *t, u64 dsq_id, u64 enq_flags, bool by_vtime)
{
	struct sl_cpu *here = sl_this_cpu();
	struct sl_insert *in;

	if (by_vtime)
		enq_flags |= ENQ_DSQ_PRIQ;
	if (likely(t == here->direct_task &&
		      t->ddsp_dsq_id == SCX_DSQ_INVALID)) {
		t->ddsp_dsq_id = dsq_id;
		t->ddsp_enq_flags = enq_flags;
		return true;
	}
	if (here->callback != SL_IN_dispatch)
		return refuse_verdict(here, t);
	if (here->nr_inserts >= sl_core.dispatch_batch) {
		sl_policy_error(SCX_EXIT_ERROR, t->p.pid,
				"dispatch buffer overflow");
		return false;
	}
	in = &here->inserts[here->nr_inserts++];
	in->task = t;
	in->ops_seq = smp_load_acquire(&t->ops_state) & ~(u64)SL_OPSS_MASK;
	in->dsq_id = dsq_id;
	in->enq_flags = enq_flags;
	return true;
}
