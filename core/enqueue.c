/* SPDX-License-Identifier: MIT */
/*
 * enqueue.c - how a runnable task gets from the policy to a queue.
 *
 *	do_enqueue_task --> ops.enqueue --> direct: SCX_DSQ_LOCAL    -> local queue
 *	                               |            SCX_DSQ_LOCAL_ON -> `moves` list
 *	                               |            global or user   -> that queue
 *	                               \--> kept by the policy, until ops.dispatch
 *	                                    names it: buffered in `inserts`, placed
 *	                                    by flush_dispatch_buf()
 *
 * Functions have the names of their counterparts in kernel/sched/ext.c. A task
 * between two queues has ops_state DISPATCHING; a CPU that wants to take it away
 * waits until it has arrived.
 *
 * Read next: schedule.c, which takes from the local queue.
 */
#include "core.h"

/* The task has been claimed; other CPUs may be trying to. Keeps the count. */
sl_inline void set_ops_state(struct sl_task *t, enum sl_ops_state state)
{
	smp_store_release(&t->ops_state, (READ_ONCE(t->ops_state) & ~(u64)SL_OPSS_MASK) | state);
}

/* That may be while it dispatches, so the outer callback's place is kept. */
static __noinline void call_dequeue(struct sl_task *t, u64 deq_flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	enum sl_callback callback = this_cpu->callback;
	struct sl_task *subject = this_cpu->callback_task;

	SL_CALL_OP(this_cpu, dequeue, t, &t->p, deq_flags);
	WRITE_ONCE(this_cpu->callback, callback);
	this_cpu->callback_task = subject;
}

/* S22: the policy hears once that a task has left its custody. */
sl_inline void end_custody(struct sl_task *t, u64 deq_flags)
{
	if (!t->in_custody)
		return;
	t->in_custody = false;
	if (unlikely(SL_HAS_OP(dequeue)))
		call_dequeue(t, deq_flags);
}

sl_inline void record_enqueue(const struct sl_task *t, u64 dsq_id)
{
	if (unlikely(sl_core.has_detail))
		sl_host_record(SL_RECORD_ENQUEUE, t->p.pid, t->cpu, 0, dsq_id);
}

/* Linux's default, where the policy gives none. */
static void refill_task_slice_dfl(struct sl_cpu *this_cpu, struct sl_task *t)
{
	sl_event(this_cpu, REFILL_SLICE_DFL);
	sl_set_slice(t, SCX_SLICE_DFL);
}

/*
 * S50: would a task in the local queue of @cpu run at once? Where it would not, the CPU asks
 * the policy before it goes idle. Context: its lock is held.
 */
static bool rq_is_open(const struct sl_cpu *cpu, u64 enq_flags)
{
	if (cpu->has_higher || cpu->is_offline)
		return false;
	return cpu->is_open || !cpu->curr || (enq_flags & SCX_ENQ_PREEMPT);
}

/* From the next flush() of this CPU on. Context: the lock of @cpu is held. */
static void schedule_reenq_immed(struct sl_cpu *cpu)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (cpu->must_reenqueue_immed)
		return;
	cpu->must_reenqueue_immed = true;
	cpu->next_reenqueue = this_cpu->reenqueues;
	this_cpu->reenqueues = cpu;
	this_cpu->has_deferred = true;
}

/* Context: as above; @t has been put into the local queue. */
static __noinline void local_dsq_inserted_immed(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags)
{
	t->p.scx.flags |= SCX_TASK_IMMED;
	WRITE_ONCE(sl_core.uses_immed, true);
	if (cpu->local.nr > 1 || !rq_is_open(cpu, enq_flags))
		schedule_reenq_immed(cpu);
}

/* Context: as above. */
static __noinline void check_immed(struct sl_cpu *cpu)
{
	for (struct sl_task *t = cpu->local.first; t; t = t->next) {
		if (t->p.scx.flags & SCX_TASK_IMMED) {
			schedule_reenq_immed(cpu);
			return;
		}
	}
}

/**
 * local_dsq_enqueue - put a task on a CPU's local queue
 * @cpu: whose queue; its lock is held
 * @t: runnable, on no queue
 * @enq_flags: HEAD and PREEMPT put it first
 *
 * S5: an idle CPU is woken. S9: PREEMPT ends the running task's slice. A CPU
 * that is just choosing needs neither, it will look at its queue next.
 */
static void local_dsq_enqueue(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags)
{
	struct sl_task *curr = cpu->curr;

	end_custody(t, 0);
	WRITE_ONCE(t->cpu, cpu->id);
	record_enqueue(t, cpu->local.id);
	local_dsq_insert(cpu, t, enq_flags);
	set_ops_state(t, SL_OPSS_NONE);
	if (cpu->is_scheduling)
		return;
	if (!curr) {
		sl_host_kick(cpu->id);
	} else if ((enq_flags & SCX_ENQ_PREEMPT) && curr != t) {
		sl_set_slice(curr, 0);
		sl_host_kick(cpu->id);
	}
}

static sl_cold void refuse_insert(struct sl_task *t, u64 id, bool is_mixed, u64 enq_flags)
{
	if (is_mixed)
		scx_error(t, "DSQ 0x%llx holds tasks in %s order, %s[%d] was inserted in the other",
			  id, enq_flags & SCX_ENQ_DSQ_PRIQ ? "FIFO" : "vtime", t->p.comm, t->p.pid);
	else
		scx_error(t, "non-existent DSQ 0x%llx for %s[%d]", id, t->p.comm, t->p.pid);
}

/*
 * Put @t on @q, the global queue or a user queue that was found as @id. It may have
 * been destroyed since, or hold tasks in the other order: that is the policy's
 * error, and the global queue, so that @t still runs.
 */
sl_inline void dispatch_enqueue(struct sl_dsq *q, u64 id, struct sl_task *t, u64 enq_flags)
{
	bool is_there, is_queued;

	t->in_custody = true;
	record_enqueue(t, id);
	sl_lock(&q->lock);
	is_there = dsq_is(q, id);
	is_queued = is_there && dsq_insert(q, t, enq_flags);
	set_ops_state(t, SL_OPSS_NONE);
	sl_unlock(&q->lock);
	if (unlikely(!is_queued)) {
		refuse_insert(t, id, is_there, enq_flags);
		global_enqueue(t, 0);
	}
}

/* The global queue is a FIFO, and always there. */
static __noinline void global_enqueue(struct sl_task *t, u64 enq_flags)
{
	struct sl_dsq *q = &sl_core.global;

	end_custody(t, 0);
	record_enqueue(t, SCX_DSQ_GLOBAL);
	sl_lock(&q->lock);
	dsq_insert(q, t, enq_flags & ~SCX_ENQ_DSQ_PRIQ);
	set_ops_state(t, SL_OPSS_NONE);
	sl_unlock(&q->lock);
}

/* Set @t aside for the local queue of @cpu, another CPU; flush() puts it there. */
static void defer_move(struct sl_cpu *this_cpu, s32 cpu, struct sl_task *t, u64 enq_flags)
{
	SL_ASSERT(!t->dsq);
	this_cpu->has_deferred = true;
	t->p.scx.ddsp_dsq_id = SCX_DSQ_LOCAL_ON | (u64)cpu;
	t->p.scx.ddsp_enq_flags = enq_flags;
	set_ops_state(t, SL_OPSS_DISPATCHING);
	t->next = NULL;
	if (this_cpu->moves)
		this_cpu->moves_last->next = t;
	else
		this_cpu->moves = t;
	this_cpu->moves_last = t;
}

/* @t, which waits, may not run where it is: flush() finds it another CPU. */
static void defer_migration(struct sl_cpu *this_cpu, struct sl_task *t)
{
	this_cpu->has_deferred = true;
	this_cpu->migrate = t;
}

/* Which CPU's local queue @id means; -1: none's. SCX_DSQ_LOCAL means @local_cpu. */
static s32 local_dsq_cpu(u64 id, s32 local_cpu)
{
	if (id == SCX_DSQ_LOCAL)
		return local_cpu;
	if ((id & SCX_DSQ_LOCAL_ON) != SCX_DSQ_LOCAL_ON)
		return -1;
	id &= SCX_DSQ_LOCAL_CPU_MASK;
	return id < sl_core.nr_cpus ? (s32)id : -1;
}

/* What a wrong id or CPU is, which is the policy's error. */
static sl_cold void refuse_builtin(const struct sl_task *t, u64 id, s32 target)
{
	if (target >= 0)
		scx_error(t, "SCX_DSQ_LOCAL[_ON] target cpu %d not allowed for %s[%d]", target,
			  t->p.comm, t->p.pid);
	else if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON)
		scx_error(t, "invalid CPU %llu in SCX_DSQ_LOCAL_ON verdict for %s[%d]",
			  id & SCX_DSQ_LOCAL_CPU_MASK, t->p.comm, t->p.pid);
	else
		scx_error(t, "non-existent DSQ 0x%llx for %s[%d]", id, t->p.comm, t->p.pid);
}

/* The local queue of a CPU that is offline takes nothing (S47). */
static sl_cold void enqueue_for_offline(struct sl_cpu *this_cpu, struct sl_task *t)
{
	sl_event(this_cpu, DISPATCH_LOCAL_DSQ_OFFLINE);
	global_enqueue(t, 0);
}

/* A verdict of a built-in queue, or of none: then the global one, so that @t still runs. */
static __noinline void dispatch_to_builtin(struct sl_cpu *this_cpu, struct sl_cpu *locked,
					   struct sl_task *t, u64 id, u64 enq_flags)
{
	s32 target = local_dsq_cpu(id, locked ? locked->id : this_cpu->id);

	if (id == SCX_DSQ_GLOBAL) {
		global_enqueue(t, enq_flags);
	} else if (target < 0) {
		refuse_builtin(t, id, target);
		global_enqueue(t, enq_flags);
	} else if (!sl_may_run_on(t, target)) {
		refuse_builtin(t, id, target);
		global_enqueue(t, 0);
	} else if (locked && locked->id == target) {
		local_dsq_enqueue(locked, t, enq_flags);
	} else if (unlikely(sl_core.cpus[target].is_offline)) {
		enqueue_for_offline(this_cpu, t);
	} else {
		defer_move(this_cpu, target, t, enq_flags);
	}
	/* S2: it is a FIFO. */
	if (unlikely(enq_flags & SCX_ENQ_DSQ_PRIQ))
		scx_error(t, "cannot use vtime ordering for built-in DSQs");
}

/* Put @t where a verdict says. @locked: the CPU whose lock is held, or NULL. */
sl_inline void dispatch_to(struct sl_cpu *this_cpu, struct sl_cpu *locked, struct sl_task *t,
			   u64 id, u64 enq_flags)
{
	struct sl_dsq *q = find_dsq(this_cpu, id);

	if (likely(q))
		dispatch_enqueue(q, id, t, enq_flags);
	else
		dispatch_to_builtin(this_cpu, locked, t, id, enq_flags);
}

sl_inline void direct_dispatch(struct sl_cpu *this_cpu, struct sl_cpu *cpu, struct sl_task *t,
			       u64 enq_flags)
{
	u64 dsq_id = t->p.scx.ddsp_dsq_id;

	enq_flags |= t->p.scx.ddsp_enq_flags;
	t->p.scx.ddsp_dsq_id = SCX_DSQ_INVALID;
	t->p.scx.ddsp_enq_flags = 0;
	dispatch_to(this_cpu, cpu, t, dsq_id, enq_flags);
}

/* The built-in FIFO does what every policy has to, where the CPU of @t is busy (S5). */
static __noinline void kick_idle_for(struct sl_cpu *this_cpu, const struct sl_task *t)
{
	s32 cpu;

	/* One that is offline may be marked as idle, too: once. */
	do
		cpu = pick_for_policy(t->p.cpus_ptr, 0);
	while (cpu >= 0 && unlikely(READ_ONCE(sl_core.cpus[cpu].is_offline)));
	if (cpu >= 0)
		kick_cpu(this_cpu, cpu, SCX_KICK_IDLE);
}

/**
 * do_enqueue_task - a runnable task needs a queue: ask the policy
 * @this_cpu: the caller's
 * @cpu: the CPU the task is on; its lock is held
 * @t: runnable, on no queue
 * @enq_flags: SCX_ENQ_*
 *
 * S6: a task already placed by select_cpu skips ops.enqueue(). S19, S20: an
 * exiting or migration-disabled task goes to the local queue unless the policy
 * asked for it. S3: without ops.enqueue(), and so while the policy is bypassed,
 * everything goes to the global queue.
 */
static void do_enqueue_task(struct sl_cpu *this_cpu, struct sl_cpu *cpu, struct sl_task *t,
			    u64 enq_flags)
{
	u32 asked = READ_ONCE(sl_core.asked);
	u64 seq;

	/* S50: what was promised it was for the last time. */
	if (unlikely(t->p.scx.flags & SCX_TASK_IMMED))
		t->p.scx.flags &= ~SCX_TASK_IMMED;
	if (unlikely(!SL_IS_ASKED(asked, NOTHING))) {
		t->p.scx.ddsp_dsq_id = SCX_DSQ_INVALID;
		goto global;
	}
	if (t->p.scx.ddsp_dsq_id != SCX_DSQ_INVALID)
		goto direct;
	if (unlikely((t->p.flags & PF_EXITING) && !(SL_OP(flags) & SCX_OPS_ENQ_EXITING))) {
		sl_event(this_cpu, ENQ_SKIP_EXITING);
		goto local;
	}
	if (unlikely(READ_ONCE(t->p.migration_disabled) &&
		     !(SL_OP(flags) & SCX_OPS_ENQ_MIGRATION_DISABLED))) {
		sl_event(this_cpu, ENQ_SKIP_MIGRATION_DISABLED);
		goto local;
	}
	if (unlikely(!SL_IS_ASKED(asked, enqueue)))
		goto global;

	seq = (READ_ONCE(t->ops_state) & ~(u64)SL_OPSS_MASK) + SL_OPSS_SEQ_ONE;
	smp_store_release(&t->ops_state, seq | SL_OPSS_QUEUEING);
	this_cpu->direct_task = t;
	SL_CALL(this_cpu, SL_OP(enqueue), enqueue, t, &t->p, enq_flags);
	if (unlikely(t->p.scx.flags & SCX_TASK_REENQ_REASON_MASK))
		t->p.scx.flags &= ~SCX_TASK_REENQ_REASON_MASK;
	if (!this_cpu->direct_task)
		goto direct;
	this_cpu->direct_task = NULL;
	/* S4: the policy holds it until it dispatches it. */
	t->in_custody = true;
	smp_store_release(&t->ops_state, seq | SL_OPSS_QUEUED);
	return;

direct:
	direct_dispatch(this_cpu, cpu, t, enq_flags);
	return;
local:
	t->p.scx.flags &= ~SCX_TASK_REENQ_REASON_MASK;
	refill_task_slice_dfl(this_cpu, t);
	local_dsq_enqueue(cpu, t, enq_flags);
	return;
global:
	t->p.scx.flags &= ~SCX_TASK_REENQ_REASON_MASK;
	refill_task_slice_dfl(this_cpu, t);
	/* The kick is sent later; once it is queued, @t may run elsewhere, and end. */
	if (unlikely(!asked) && cpu->curr)
		kick_idle_for(this_cpu, t);
	global_enqueue(t, enq_flags);
}

/* Claim the task of one buffered insertion and place it; S21 if it is stale. */
static void finish_dispatch(struct sl_cpu *cpu, const struct sl_insert *in)
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
		if (sl_cas_u64(&t->ops_state, state, in->ops_seq | SL_OPSS_DISPATCHING))
			break;
	}
	dispatch_to(cpu, cpu, t, in->dsq_id, in->enq_flags);
}

/* Context: @cpu is this CPU and its lock is held. */
static __noinline void flush_dispatch_buf(struct sl_cpu *cpu)
{
	u32 nr = cpu->nr_inserts;

	for (u32 i = 0; i < nr; i++)
		finish_dispatch(cpu, &cpu->inserts[i]);
	cpu->nr_moved += nr;
	cpu->nr_inserts = 0;
}

/**
 * consume_dispatch_q - take the first task that may run here from a shared queue
 * @cpu: this CPU, which is choosing; its lock is held
 * @q: a user queue, found as @id, or the global one
 * @enq_flags: HEAD and PREEMPT put it first
 *
 * Return: whether a task was moved to @cpu's local queue.
 */
static bool consume_dispatch_q(struct sl_cpu *cpu, struct sl_dsq *q, u64 id, u64 enq_flags)
{
	struct sl_task *t;

	if (unlikely(!READ_ONCE(q->first)))
		return false;
	sl_lock(&q->lock);
	t = dsq_is(q, id) ? q->first : NULL;
	while (t && unlikely(!sl_may_run_on(t, cpu->id)))
		t = t->next;
	if (t) {
		dsq_remove(q, t);
		WRITE_ONCE(t->cpu, cpu->id);
		t->from_dsq_id = id;
		sl_host_prefetch_queue(q->first, q->nr);
	}
	sl_unlock(&q->lock);
	if (!t)
		return false;
	/* As local_dsq_enqueue(), for a CPU that looks at its queue next. */
	end_custody(t, 0);
	record_enqueue(t, cpu->local.id);
	local_dsq_insert(cpu, t, enq_flags);
	return true;
}

/* A task that may no longer run where it ran: queue it where it may. */
static void finish_migration(struct sl_cpu *this_cpu)
{
	struct sl_task *t = this_cpu->migrate;
	struct sl_cpu *cpu;

	this_cpu->migrate = NULL;
	cpu = lock_online(t, any_allowed_cpu(t, this_cpu->id));
	make_runnable(this_cpu, cpu, t, t->p.scx.flags & SCX_TASK_QUEUED, 0);
	sl_unlock(&cpu->lock);
}

/* Why @t has to be enqueued anew; 0: it stays. */
static u32 reason_to_reenqueue(struct sl_cpu *this_cpu, const struct sl_task *t, bool is_any,
			       bool is_kept)
{
	if ((t->p.scx.flags & SCX_TASK_IMMED) && !is_kept) {
		sl_event(this_cpu, REENQ_IMMED);
		return SCX_TASK_REENQ_IMMED;
	}
	return is_any ? SCX_TASK_REENQ_KFUNC : SCX_TASK_REENQ_NONE;
}

/*
 * S40, S50: what waits in the local queue of @cpu is enqueued anew: all (@is_any), or those that
 * were promised to run at once and do not; the first does if the CPU is open to it. All are
 * taken off first: the policy may put one back. Context: the CPU's lock is held.
 */
static void reenqueue_locked(struct sl_cpu *this_cpu, struct sl_cpu *cpu, bool is_any)
{
	struct sl_task *first = NULL, **end = &first, *t, *next;
	bool is_open;
	u32 reason;

	is_open = rq_is_open(cpu, 0);
	for (t = sl_is_bypassed() ? NULL : cpu->local.first; t; t = next) {
		next = t->next;
		reason = reason_to_reenqueue(this_cpu, t, is_any, is_open);
		is_open = false;
		if (!reason)
			continue;
		dsq_remove(&cpu->local, t);
		t->p.scx.flags |= reason;
		t->next = NULL;
		*end = t;
		end = &t->next;
	}
	while ((t = first)) {
		first = t->next;
		do_enqueue_task(this_cpu, cpu, t, SCX_ENQ_REENQ);
	}
}

/*
 * S40: the first form of the call works within ops.cpu_release(), in the place of @t, which
 * stops there. Linux keeps the task in whose place a program runs from migrating meanwhile.
 */
static __noinline void reenqueue_released(struct sl_cpu *cpu, struct sl_task *t)
{
	t->p.migration_disabled++;
	reenqueue_locked(cpu, cpu, true);
	t->p.migration_disabled--;
}

/* What was asked for: reenqueue_locked(), later. Context: no lock held. */
static void reenqueue_local(struct sl_cpu *this_cpu, struct sl_cpu *cpu, bool is_any)
{
	sl_lock(&cpu->lock);
	this_cpu->holds_lock = true;
	if (is_any)
		cpu->must_reenqueue = false;
	else
		cpu->must_reenqueue_immed = false;
	reenqueue_locked(this_cpu, cpu, is_any);
	this_cpu->holds_lock = false;
	sl_unlock(&cpu->lock);
	/* The policy wants it once more: when this CPU next comes here. */
	if (is_any && this_cpu->must_reenqueue)
		sl_host_kick(this_cpu->id);
}

/*
 * A policy that puts them back where they cannot run is asked again, so often: Linux counts
 * for each CPU, here all are counted that one flush() comes to.
 */
static __noinline void reenqueue_immed(struct sl_cpu *this_cpu)
{
	struct sl_cpu *last = NULL, *cpu;

	while ((cpu = this_cpu->reenqueues)) {
		this_cpu->reenqueues = cpu->next_reenqueue;
		if (cpu == last)
			sl_event(this_cpu, REENQ_LOCAL_REPEAT);
		last = cpu;
		if (++this_cpu->nr_reenqueues > SL_REENQUEUES_MAX + sl_core.nr_cpus)
			scx_error(NULL, "SCX_ENQ_REENQ on SCX_DSQ_LOCAL repeated %u times",
				  this_cpu->nr_reenqueues - 1);
		reenqueue_local(this_cpu, cpu, false);
	}
}

/* flush(), where there is something. */
static __noinline void flush_deferred(struct sl_cpu *this_cpu)
{
	struct sl_cpu *cpu;
	struct sl_task *t;

	if (this_cpu->must_reenqueue)
		reenqueue_local(this_cpu, this_cpu, true);
	while (this_cpu->moves || this_cpu->migrate) {
		if (this_cpu->migrate)
			finish_migration(this_cpu);
		t = this_cpu->moves;
		if (!t)
			continue;
		this_cpu->moves = t->next;
		cpu = &sl_core.cpus[t->p.scx.ddsp_dsq_id & SCX_DSQ_LOCAL_CPU_MASK];
		t->p.scx.ddsp_dsq_id = SCX_DSQ_INVALID;
		sl_lock(&cpu->lock);
		if (likely(!cpu->is_offline))
			local_dsq_enqueue(cpu, t, t->p.scx.ddsp_enq_flags);
		else
			enqueue_for_offline(this_cpu, t);
		sl_unlock(&cpu->lock);
	}
	if (unlikely(this_cpu->reenqueues)) {
		reenqueue_immed(this_cpu);
		return flush_deferred(this_cpu);
	}
	this_cpu->nr_reenqueues = 0;
	if (this_cpu->nr_kicks)
		flush_kicks(this_cpu);
	this_cpu->has_deferred = this_cpu->must_reenqueue;
}

/**
 * flush - do what had to wait until no lock is held
 * @this_cpu: the caller's
 *
 * Ends every call of a host into the core, and every callback outside one.
 */
sl_inline void flush(struct sl_cpu *this_cpu)
{
	SL_ASSERT(!this_cpu->holds_lock);
	if (unlikely(this_cpu->has_deferred))
		flush_deferred(this_cpu);
	if (unlikely(READ_ONCE(sl_core.exit_ready)))
		finish_failure(this_cpu);
}
