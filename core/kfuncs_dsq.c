/* SPDX-License-Identifier: MIT */
/*
 * kfuncs_dsq.c - what a policy calls to work on dispatch queues.
 *
 * Checks what the policy gives, then uses enqueue.c and dsq.c. Names and meanings
 * are Linux's; include/scx/native.h lists them.
 *
 * Read next: kfuncs_cpu.c.
 */
#include "core.h"

/* S2: the global queue is not a policy's to look into. */
static struct sl_dsq *find_countable(u64 id)
{
	s32 cpu = (s32)(id & SCX_DSQ_LOCAL_CPU_MASK);

	if (!(id & SCX_DSQ_FLAG_BUILTIN))
		return find_dsq(sl_this_cpu(), id);
	if (id == SCX_DSQ_LOCAL)
		return &sl_this_cpu()->local;
	if ((id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON && ops_cpu_valid(cpu))
		return &sl_core.cpus[cpu].local;
	return NULL;
}

/* Return: length, a hint when other CPUs are at work; -ENOENT. */
s32 scx_bpf_dsq_nr_queued(u64 dsq_id)
{
	struct sl_dsq *q = find_countable(dsq_id);

	return q ? (s32)READ_ONCE(q->nr) : -ENOENT;
}

struct task_struct *scx_bpf_dsq_peek(u64 dsq_id)
{
	struct sl_dsq *q = find_dsq(sl_this_cpu(), dsq_id);
	struct sl_task *t;

	if (unlikely(!q)) {
		scx_error(NULL, "peek %s DSQ 0x%llx",
			  dsq_id & SCX_DSQ_FLAG_BUILTIN ? "disallowed on builtin" :
							  "on non-existent",
			  dsq_id);
		return NULL;
	}
	t = smp_load_acquire(&q->first);
	return t ? &t->p : NULL;
}

static sl_cold void refuse_verdict(struct sl_cpu *this_cpu, const struct sl_task *t)
{
	const char *name = sl_callback_name(this_cpu->callback) ?: "?";

	if (this_cpu->callback != SL_IN_enqueue && this_cpu->callback != SL_IN_select_cpu)
		scx_error(t, "scx_bpf_dsq_insert() called from ops.%s()", name);
	else if (t != this_cpu->callback_task)
		scx_error(t, "inserting %s[%d] from ops.%s() of another task", t->p.comm, t->p.pid,
			  name);
	else
		scx_error(t, "%s[%d] already direct-dispatched", t->p.comm, t->p.pid);
}

/* S10: a slice of 0 keeps what is left, or becomes the smallest there is. */
sl_inline void give_slice(struct sl_task *t, u64 slice)
{
	if (likely(slice))
		sl_set_slice(t, slice);
	else if (!sl_slice(t))
		sl_set_slice(t, 1);
}

/*
 * A verdict of select_cpu or enqueue is only noted, one of dispatch is buffered. The
 * slice is given at once.
 * Return: false if it was refused.
 */
sl_inline bool scx_dsq_insert_commit(struct sl_task *t, u64 dsq_id, u64 slice, u64 enq_flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_insert *in;

	if (likely(t == this_cpu->direct_task)) {
		this_cpu->direct_task = NULL;
		t->p.scx.ddsp_dsq_id = dsq_id;
		t->p.scx.ddsp_enq_flags = enq_flags;
		give_slice(t, slice);
		return true;
	}
	if (this_cpu->callback != SL_IN_dispatch) {
		refuse_verdict(this_cpu, t);
		return false;
	}
	if (this_cpu->nr_inserts >= sl_core.dispatch_batch) {
		scx_error(t, "dispatch buffer overflow");
		return false;
	}
	in = &this_cpu->inserts[this_cpu->nr_inserts++];
	in->task = t;
	in->ops_seq = smp_load_acquire(&t->ops_state) & ~(u64)SL_OPSS_MASK;
	in->dsq_id = dsq_id;
	in->enq_flags = enq_flags;
	give_slice(t, slice);
	/* A stale insertion (S21) may meet a task that runs. */
	if (unlikely(READ_ONCE(t->state) == SL_TASK_RUNNING))
		sl_host_slice_changed(t);
	return true;
}

static __noinline bool vet_unusual_flags(const struct sl_task *t, u64 dsq_id, u64 *enq_flags)
{
	bool is_local = dsq_id == SCX_DSQ_LOCAL || (dsq_id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON;

	if (*enq_flags & SCX_ENQ_INTERNAL_MASK) {
		scx_error(t, "invalid enq_flags 0x%llx", *enq_flags);
		return false;
	}
	/* S50: only a local queue can promise it. */
	if ((*enq_flags & SCX_ENQ_IMMED) && !is_local) {
		scx_error(t, "SCX_ENQ_IMMED on a non-local DSQ 0x%llx", dsq_id);
		return false;
	}
	if (is_local)
		*enq_flags |= SCX_ENQ_IMMED;
	return true;
}

/* Return: whether a policy may insert into @dsq_id with them; they are then complete. */
sl_inline bool vet_enq_flags(const struct sl_task *t, u64 dsq_id, u64 *enq_flags)
{
	return likely(!(*enq_flags & (SCX_ENQ_INTERNAL_MASK | SCX_ENQ_IMMED)) &&
		      !(SL_OP(flags) & SCX_OPS_ALWAYS_ENQ_IMMED)) ||
	       vet_unusual_flags(t, dsq_id, enq_flags);
}

bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	struct sl_task *t = sl_task_of(p);

	if (!vet_enq_flags(t, dsq_id, &enq_flags))
		return false;
	sl_host_does("insert", t, "DSQ 0x%llx, slice %llu ns, flags 0x%llx", dsq_id, slice,
		     enq_flags);
	return scx_dsq_insert_commit(t, dsq_id, slice, enq_flags);
}

bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime, u64 enq_flags)
{
	struct sl_task *t = sl_task_of(p);

	if (!vet_enq_flags(t, dsq_id, &enq_flags))
		return false;
	sl_host_does("insert", t, "DSQ 0x%llx, slice %llu ns, vtime %llu, flags 0x%llx", dsq_id,
		     slice, vtime, enq_flags);
	if (!scx_dsq_insert_commit(t, dsq_id, slice, enq_flags | SCX_ENQ_DSQ_PRIQ))
		return false;
	WRITE_ONCE(t->p.scx.dsq_vtime, vtime);
	return true;
}

__flatten bool sl_dsq_move_to_local(u64 dsq_id, u64 enq_flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_dsq *q;

	if (!vet_enq_flags(NULL, SCX_DSQ_LOCAL, &enq_flags))
		return false;
	if (unlikely(this_cpu->callback != SL_IN_dispatch)) {
		scx_error(NULL, "scx_bpf_dsq_move_to_local() called outside ops.dispatch()");
		return false;
	}
	if (unlikely(this_cpu->nr_inserts))
		flush_dispatch_buf(this_cpu);
	q = find_dsq(this_cpu, dsq_id);
	if (!q) {
		scx_error(NULL, "invalid DSQ ID 0x%llx in scx_bpf_dsq_move_to_local()", dsq_id);
		return false;
	}
	/*
	 * It comes from another CPU's cache while the lock is taken. It is not read
	 * before: without the lock another CPU may run it to its end and free it.
	 */
	sl_host_prefetch(READ_ONCE(q->first));
	if (!consume_dispatch_q(this_cpu, q, dsq_id, enq_flags)) {
		sl_host_does("take", NULL, "DSQ 0x%llx: none", dsq_id);
		return false;
	}
	sl_host_does("take", this_cpu->local.last, "DSQ 0x%llx", dsq_id);
	this_cpu->nr_moved++;
	return true;
}

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags)
{
	struct sl_dsq *q = find_dsq(sl_this_cpu(), dsq_id);

	__builtin_memset(it, 0, sizeof(*it));
	it->flags = flags;
	if (flags & ~SCX_DSQ_ITER_REV)
		return -EINVAL;
	if (!q)
		return -ENOENT;
	sl_lock(&q->lock);
	if (!dsq_is(q, dsq_id)) {
		sl_unlock(&q->lock);
		return -ENOENT;
	}
	it->dsq = q;
	it->next = flags & SCX_DSQ_ITER_REV ? q->last : q->first;
	it->seq = q->seq;
	it->link = q->iterators;
	q->iterators = it;
	sl_unlock(&q->lock);
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	struct sl_dsq *q = it->dsq;
	struct sl_task *t;

	it->has_slice = false;
	it->has_vtime = false;
	if (!q)
		return NULL;
	sl_lock(&q->lock);
	/* Tasks inserted since the iteration began are not part of it (S27). */
	for (t = it->next; t && t->dsq_seq >= it->seq;)
		t = iter_next(it, t);
	it->next = t ? iter_next(it, t) : NULL;
	sl_unlock(&q->lock);
	return t ? &t->p : NULL;
}

void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
	struct sl_dsq *q = it->dsq;
	struct bpf_iter_scx_dsq **link;

	if (!q)
		return;
	sl_lock(&q->lock);
	for (link = &q->iterators; *link != it; link = &(*link)->link)
		;
	*link = it->link;
	sl_unlock(&q->lock);
	it->dsq = NULL;
}

void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice)
{
	it->slice = slice;
	it->has_slice = true;
}

void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	it->vtime = vtime;
	it->has_vtime = true;
}

/*
 * Move @p from the queue of the iteration. Fails, without harm, if it has left the
 * queue since the iterator stood on it.
 */
static bool move_task(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags,
		      u64 order)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_task *t = sl_task_of(p);
	struct sl_dsq *from = it->dsq;
	bool is_there;

	if (!vet_enq_flags(t, dsq_id, &enq_flags))
		return false;
	/* Where locks are held, they must be those of dispatch. */
	if (this_cpu->callback != SL_IN_dispatch && this_cpu->callback != SL_IN_timer &&
	    this_cpu->callback != SL_IN_init && this_cpu->callback != SL_IN_init_task) {
		scx_error(t, "scx_bpf_dsq_move() called from ops.%s()",
			  sl_callback_name(this_cpu->callback) ?: "?");
		return false;
	}
	if (!from)
		return false;
	sl_lock(&from->lock);
	is_there = READ_ONCE(t->dsq) == from && t->dsq_seq < it->seq;
	if (is_there) {
		set_ops_state(t, SL_OPSS_DISPATCHING);
		dsq_remove(from, t);
		t->from_dsq_id = from->id;
		if (it->has_slice)
			sl_set_slice(t, it->slice);
		if (it->has_vtime)
			WRITE_ONCE(t->p.scx.dsq_vtime, it->vtime);
	}
	sl_unlock(&from->lock);
	sl_host_does("move", t, "DSQ 0x%llx%s", dsq_id, is_there ? "" : ": not there any more");
	it->has_slice = false;
	it->has_vtime = false;
	/* Its CPU stays what it was: only a local queue changes that. */
	if (is_there)
		dispatch_to(this_cpu, this_cpu->holds_lock ? this_cpu : NULL, t, dsq_id,
			    enq_flags | order);
	return is_there;
}

bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags)
{
	return move_task(it, p, dsq_id, enq_flags, 0);
}

bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags)
{
	return move_task(it, p, dsq_id, enq_flags, SCX_ENQ_DSQ_PRIQ);
}

/* S40: later, so that it may be called from anywhere; the number is not known. */
u32 scx_bpf_reenqueue_local(void)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	this_cpu->must_reenqueue = true;
	this_cpu->has_deferred = true;
	return 0;
}

/* The first form, in ops.cpu_release() alone, where it works once that returns. Return: how many there are. */
u32 scx_bpf_reenqueue_local___v1(void)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (this_cpu->callback != SL_IN_cpu_release) {
		scx_error(NULL,
			  "scx_bpf_reenqueue_local() of before Linux 6.19 outside of ops.cpu_release()");
		return 0;
	}
	this_cpu->must_reenqueue_released = true;
	return this_cpu->local.nr;
}

u32 scx_bpf_dispatch_nr_slots(void)
{
	return sl_core.dispatch_batch - sl_this_cpu()->nr_inserts;
}

void scx_bpf_dispatch_cancel(void)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (this_cpu->nr_inserts)
		this_cpu->nr_inserts--;
	else
		scx_error(NULL, "dispatch buffer underflow");
}
