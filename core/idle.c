/* SPDX-License-Identifier: MIT */
/*
 * idle.c - which CPUs are idle, choosing one of them, and kicking CPUs.
 *
 * Called by schedule.c when a CPU goes idle or comes back, by wake.c for the
 * default choice, and by policies through kfuncs_cpu.c. The masks are hints
 * that are claimed bit by bit: the CPU that clears a bit has claimed it (S23).
 *
 * An idle CPU schedules when it is kicked, for nothing else (S5). As on Linux a policy
 * that looks for an idle CPU while one goes idle can miss it, and it the task: the CPU
 * has asked ops.dispatch() and not yet set its bit, or the task is not queued yet. The
 * task then waits until a CPU schedules; the one that it became runnable on does.
 *
 * Read next: enqueue.c.
 */
#include "core.h"

#define KICK_LISTED 0x80	/* the CPU is on the list of kicks already */

/* Whether @cpu, which a policy gave, is one; its error if not. */
static bool ops_cpu_valid(s32 cpu)
{
	if (likely((u32)cpu < sl_core.nr_cpus))
		return true;
	scx_error(NULL, "invalid CPU %d", cpu);
	return false;
}

/**
 * kick_cpu - note a kick, to be sent when no lock is held
 * @this_cpu: this CPU
 * @cpu: the CPU to kick, checked by the caller
 * @flags: SCX_KICK_*
 */
static void kick_cpu(struct sl_cpu *this_cpu, s32 cpu, u64 flags)
{
	this_cpu->has_deferred = true;
	if (!(this_cpu->kick_flags[cpu] & KICK_LISTED))
		this_cpu->kicks[this_cpu->nr_kicks++] = (u16)cpu;
	/* A plain kick is stronger than "only if idle". */
	if (this_cpu->kick_flags[cpu] == 0 || !(flags & SCX_KICK_IDLE))
		this_cpu->kick_flags[cpu] = (u8)(KICK_LISTED | flags |
						 (this_cpu->kick_flags[cpu] &
						  (SCX_KICK_PREEMPT | SCX_KICK_WAIT)));
}

/* Context: no lock held. */
static void flush_kicks(struct sl_cpu *this_cpu)
{
	struct sl_cpu *cpu;
	u8 flags;

	for (u32 i = 0; i < this_cpu->nr_kicks; i++) {
		cpu = &sl_core.cpus[this_cpu->kicks[i]];
		flags = this_cpu->kick_flags[cpu->id];
		this_cpu->kick_flags[cpu->id] = 0;
		sl_lock(&cpu->lock);
		if (!(flags & SCX_KICK_IDLE) || !cpu->curr) {
			if ((flags & SCX_KICK_PREEMPT) && cpu->curr)
				sl_set_slice(cpu->curr, 0);
			sl_host_kick(cpu->id);
		}
		if ((flags & SCX_KICK_WAIT) && cpu != this_cpu)
			sl_host_wait_for(cpu->id);
		sl_unlock(&cpu->lock);
	}
	this_cpu->nr_kicks = 0;
}

static void kick_all(void)
{
	for_each_cpu(cpu)
		sl_host_kick(cpu->id);
}

/* Where the bits of @cpu are. */
sl_inline struct sl_idle *idle_of(s32 cpu)
{
	return likely(READ_ONCE(sl_core.idle_tracking) != SL_IDLE_PER_NODE) ?
		       &sl_core.idle :
		       &sl_core.idle_of_node[sl_core.node[cpu]];
}

/* Keep the mask of whole idle cores in step with the bit of @cpu. */
static void update_core_idle(struct sl_idle *idle, s32 cpu, bool is_idle)
{
	const u64 *siblings = (const u64 *)sl_core.smt_mask[cpu].bits;
	u64 *idle_smt = (u64 *)idle->smt.bits;
	u32 nr_words = (sl_core.nr_cpus + 63) / 64;
	bool all = is_idle;

	for (u32 w = 0; all && w < nr_words; w++)
		all = !(siblings[w] & READ_ONCE(sl_core.online.bits[w]) &
			~(u64)READ_ONCE(idle->cpus.bits[w]));
	for (u32 w = 0; w < nr_words; w++) {
		for (u64 left = siblings[w]; left; left &= left - 1) {
			u32 i = w * 64 + (u32)__builtin_ctzll(left);

			if (all)
				sl_bit_test_and_set(idle_smt, i);
			else
				sl_bit_test_and_clear(idle_smt, i);
		}
	}
}

/* @idle: where the bits of @cpu are. */
sl_inline bool claim_in(struct sl_idle *idle, s32 cpu)
{
	/*
	 * Also when the CPU turns out to be taken: two siblings that come and go
	 * at once can leave the core marked idle, and a search of that mask
	 * would find the same CPU indefinitely.
	 */
	if (sl_core.has_smt)
		update_core_idle(idle, cpu, false);
	return sl_bit_test_and_clear((u64 *)idle->cpus.bits, (u32)cpu);
}

static bool claim(s32 cpu)
{
	return claim_in(idle_of(cpu), cpu);
}

/* Also for a policy that keeps its own: the next one finds them right. */
sl_inline void set_idle(struct sl_idle *idle, s32 cpu, bool is_idle)
{
	if (!is_idle)
		claim_in(idle, cpu);
	else if (!sl_bit_test_and_set((u64 *)idle->cpus.bits, (u32)cpu) && sl_core.has_smt)
		update_core_idle(idle, cpu, true);
}

static __noinline void set_idle_in_node(s32 cpu, bool is_idle)
{
	set_idle(idle_of(cpu), cpu, is_idle);
}

/**
 * update_idle - a CPU goes idle, stays idle, or starts to work
 * @cpu: the CPU; its lock is held
 * @is_idle: what it is now
 * @is_change: false when an idle CPU looked for work and found none; its bit
 *	may have been claimed meanwhile and is set again (S24)
 */
static void update_idle(struct sl_cpu *cpu, bool is_idle, bool is_change)
{
	if (likely(READ_ONCE(sl_core.idle_tracking) != SL_IDLE_PER_NODE))
		set_idle(&sl_core.idle, cpu->id, is_idle);
	else
		set_idle_in_node(cpu->id, is_idle);
	if (is_change)
		SL_CALL_OP(cpu, update_idle, NULL, cpu->id, is_idle);
}

static void move_bit(struct cpumask *from, struct cpumask *to, s32 cpu)
{
	if (sl_bit_test_and_clear((u64 *)from->bits, (u32)cpu))
		sl_bit_test_and_set((u64 *)to->bits, (u32)cpu);
}

/*
 * Another policy, or none, finds the idle CPUs where it looks for them. Context: no lock
 * held, no policy is asked. All CPUs' locks, so that none goes idle where no search finds it.
 */
static void set_idle_tracking(enum sl_idle_tracking tracking)
{
	struct sl_idle *from;

	if ((tracking == SL_IDLE_PER_NODE) == (sl_core.idle_tracking == SL_IDLE_PER_NODE)) {
		WRITE_ONCE(sl_core.idle_tracking, tracking);
		return;
	}
	for_each_cpu(cpu)
		sl_lock(&cpu->lock);
	WRITE_ONCE(sl_core.idle_tracking, tracking);
	for_each_cpu(cpu) {
		from = tracking == SL_IDLE_PER_NODE ? &sl_core.idle :
						      &sl_core.idle_of_node[sl_core.node[cpu->id]];
		move_bit(&from->cpus, &idle_of(cpu->id)->cpus, cpu->id);
		move_bit(&from->smt, &idle_of(cpu->id)->smt, cpu->id);
	}
	for_each_cpu(cpu)
		sl_unlock(&cpu->lock);
}

/*
 * First CPU in @among and @allowed, going round from @after + 1, so that work
 * spreads. Return: the CPU, or -1.
 */
static s32 next_in(const struct cpumask *among, const struct cpumask *allowed, s32 after)
{
	u32 nr_words = (sl_core.nr_cpus + 63) / 64;
	u32 start = (u32)(after + 1);
	u32 w = start / 64;
	u64 above = ~0ULL << (start % 64);
	u64 word;

	if (start >= sl_core.nr_cpus) {
		w = 0;
		above = ~0ULL;
	}
	/* The first word is looked at twice: its upper part, then its lower. */
	for (u32 i = 0; i <= nr_words; i++) {
		word = READ_ONCE(among->bits[w]) & allowed->bits[w];
		if (i == 0)
			word &= above;
		else if (i == nr_words)
			word &= ~above;
		if (word)
			return (s32)(w * 64 + (u32)__builtin_ctzll(word));
		if (++w == nr_words)
			w = 0;
	}
	return -1;
}

static const struct cpumask *mask_and(struct cpumask *both, const struct cpumask *a,
				      const struct cpumask *b)
{
	for (u32 w = 0; w < (sl_core.nr_cpus + 63) / 64; w++)
		both->bits[w] = a->bits[w] & b->bits[w];
	return both;
}

/* Claim a CPU of @idle, of @allowed and, unless NULL, of @near. */
static s32 pick_idle(struct sl_idle *idle, const struct cpumask *allowed,
		     const struct cpumask *near, bool whole_core)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	const struct cpumask *among = whole_core && sl_core.has_smt ? &idle->smt : &idle->cpus;
	struct cpumask both;
	s32 cpu;

	if (near)
		allowed = mask_and(&both, allowed, near);
	while ((cpu = next_in(among, allowed, this_cpu->idle_cursor)) >= 0) {
		if (claim_in(idle, cpu)) {
			this_cpu->idle_cursor = cpu;
			return cpu;
		}
	}
	return -1;
}

/* As on Linux: a whole idle core first, whether or not the flag insists. */
static s32 pick_core_first(struct sl_idle *idle, const struct cpumask *allowed, u64 flags)
{
	s32 cpu = -1;

	if (sl_core.has_smt)
		cpu = pick_idle(idle, allowed, NULL, true);
	if (cpu < 0 && !(sl_core.has_smt && (flags & SCX_PICK_IDLE_CORE)))
		cpu = pick_idle(idle, allowed, NULL, false);
	return cpu < 0 ? -EBUSY : cpu;
}

/* S51: in @node, then in the others, all of which are as far. Return: a CPU, or -EBUSY. */
static s32 pick_near_node(const struct cpumask *allowed, s32 node, u64 flags)
{
	s32 cpu = pick_core_first(&sl_core.idle_of_node[node], allowed, flags);

	for (s32 i = 0; cpu < 0 && i < (s32)sl_core.nr_nodes; i++) {
		if (flags & SCX_PICK_IDLE_IN_NODE)
			break;
		if (i != node)
			cpu = pick_core_first(&sl_core.idle_of_node[i], allowed, flags);
	}
	return cpu;
}

/* Is one of @may idle? Not for SL_IDLE_PER_NODE. */
static bool has_idle(const struct cpumask *may)
{
	u64 any = READ_ONCE(sl_core.idle.cpus.bits[0]) & may->bits[0];

	for (u32 w = 1; unlikely(w * 64 < sl_core.nr_cpus); w++)
		any |= READ_ONCE(sl_core.idle.cpus.bits[w]) & may->bits[w];
	return any;
}

/*
 * S23: built-in idle tracking is off when the policy does its own. Return:
 * whether it may be asked.
 */
static bool check_builtin_idle(void)
{
	if (READ_ONCE(sl_core.idle_tracking) != SL_IDLE_OWN)
		return true;
	scx_error(NULL, "built-in idle tracking is disabled");
	return false;
}

/* What needs one mask for all nodes is not for a policy that has one for each. */
static bool check_one_mask(const char *why)
{
	if (likely(READ_ONCE(sl_core.idle_tracking) == SL_IDLE_GLOBAL))
		return true;
	if (check_builtin_idle())
		scx_error(NULL, "%s", why);
	return false;
}

/* S51. Return: whether there is a mask for @node; *@err: if not. */
static bool check_node(s32 node, s32 *err)
{
	*err = node == -1 ? -ENOENT : -EINVAL;
	if (READ_ONCE(sl_core.idle_tracking) != SL_IDLE_PER_NODE) {
		*err = -EOPNOTSUPP;
		scx_error(NULL, "per-node idle tracking is disabled");
		return false;
	}
	if (node >= 0 && node < (s32)sl_core.nr_nodes)
		return true;
	/* NUMA_NO_NODE is no error of the policy's. */
	if (node != -1)
		scx_error(NULL, "invalid node %d", node);
	return false;
}

/* S25: SCX_WAKE_SYNC. Return: the CPU, or -1. */
static s32 select_cpu_sync(s32 prev_cpu, const struct cpumask *may, u64 flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	const struct sl_idle *idle = idle_of(this_cpu->id);

	if (sl_core.llc[this_cpu->id] == sl_core.llc[prev_cpu] &&
	    sl_mask_test(may, (u32)prev_cpu) && claim(prev_cpu))
		return prev_cpu;
	if (!this_cpu->curr || (this_cpu->curr->p.flags & PF_EXITING) ||
	    READ_ONCE(this_cpu->local.first) || !sl_mask_test(may, (u32)this_cpu->id))
		return -1;
	if ((flags & SCX_PICK_IDLE_IN_NODE) && idle != idle_of(prev_cpu))
		return -1;
	return next_in(&idle->cpus, &sl_core.possible, this_cpu->id) >= 0 ? this_cpu->id : -1;
}

/**
 * select_cpu_default - an idle CPU for a task, the nearest first
 * @t: the task
 * @prev_cpu: where it was; tried first
 * @wake_flags: SCX_WAKE_SYNC: the waker is about to sleep, its CPU will do
 * @allowed: restrict to these as well; NULL: only to the task's own
 * @flags: SCX_PICK_IDLE_CORE, SCX_PICK_IDLE_IN_NODE
 *
 * S25: whole idle cores come before idle siblings of busy ones; within each,
 * the previous CPU, its siblings, its cache, its node, then anywhere.
 *
 * Return: a CPU, whose idle bit is now claimed; or -EBUSY.
 */
static s32 select_cpu_default(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			      const struct cpumask *allowed, u64 flags)
{
	struct cpumask both;
	struct sl_idle *idle = idle_of(prev_cpu);
	const struct cpumask *may = t->p.cpus_ptr;
	bool is_per_node = idle != &sl_core.idle;
	s32 cpu;

	if (READ_ONCE(sl_core.idle_tracking) == SL_IDLE_OWN)
		return -EBUSY;
	if (allowed)
		may = mask_and(&both, may, allowed);
	if (wake_flags & SCX_WAKE_SYNC) {
		cpu = select_cpu_sync(prev_cpu, may, flags);
		if (cpu >= 0)
			return cpu;
	}
	/* On a busy machine this is the answer nearly always. */
	if (!is_per_node && !has_idle(may))
		return -EBUSY;
	for (int whole_core = sl_core.has_smt; whole_core >= 0; whole_core--) {
		if (sl_mask_test(may, (u32)prev_cpu) &&
		    (!whole_core || sl_mask_test(&idle->smt, (u32)prev_cpu)) &&
		    claim_in(idle, prev_cpu))
			return prev_cpu;
		cpu = -1;
		if (sl_core.has_smt && !whole_core)
			cpu = pick_idle(idle, may, &sl_core.smt_mask[prev_cpu], false);
		if (cpu < 0 && sl_core.has_llcs)
			cpu = pick_idle(idle, may, &sl_core.llc_mask[prev_cpu], whole_core);
		if (cpu < 0 && sl_core.has_nodes && !is_per_node)
			cpu = pick_idle(idle, may, &sl_core.node_mask[prev_cpu], whole_core);
		if (cpu < 0 && is_per_node)
			cpu = pick_near_node(may, sl_core.node[prev_cpu],
					     whole_core ? flags | SCX_PICK_IDLE_CORE : flags);
		else if (cpu < 0)
			cpu = pick_idle(idle, may, NULL, whole_core);
		if (cpu >= 0)
			return cpu;
		if (flags & SCX_PICK_IDLE_CORE)
			break;
	}
	return -EBUSY;
}

/* Of a task that may run on one CPU. Return: that one, claimed; or -EBUSY. */
static s32 select_cpu_only(struct sl_task *t, s32 prev_cpu, const struct cpumask *allowed, u64 flags)
{
	const struct cpumask *may = t->p.cpus_ptr;
	s32 cpu = READ_ONCE(t->p.migration_disabled) ? READ_ONCE(t->cpu) :
						       (s32)bpf_cpumask_first(may);

	if (!sl_mask_test(may, (u32)cpu) || (allowed && !sl_mask_test(allowed, (u32)cpu)))
		return -EBUSY;
	if ((flags & SCX_PICK_IDLE_IN_NODE) && idle_of(cpu) != idle_of(prev_cpu))
		return -EBUSY;
	return claim(cpu) ? cpu : -EBUSY;
}

/* The default choice, as a policy asks for it. Return: see above; -EINVAL. */
static s32 select_for_policy(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			     const struct cpumask *allowed, u64 flags)
{
	if ((u32)prev_cpu >= sl_core.nr_cpus) {
		scx_error(t, "invalid CPU %d", prev_cpu);
		return -EINVAL;
	}
	if (!check_builtin_idle())
		return -EBUSY;
	/* From ops.enqueue(), also asked about tasks that have no choice. */
	if (t->p.nr_cpus_allowed == 1 || READ_ONCE(t->p.migration_disabled))
		return select_cpu_only(t, prev_cpu, allowed, flags);
	return select_cpu_default(t, prev_cpu, wake_flags, allowed, flags);
}

static __noinline s32 select_with_default(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					  bool *is_idle)
{
	s32 cpu = select_for_policy(sl_task_of(p), prev_cpu, wake_flags, NULL, 0);

	sl_host_does("idle", sl_task_of(p), "CPU %d", cpu);
	*is_idle = cpu >= 0;
	return cpu >= 0 ? cpu : prev_cpu;
}

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	/* On a busy machine nearly always: then it is a handful of instructions. */
	if (likely(READ_ONCE(sl_core.idle_tracking) == SL_IDLE_GLOBAL &&
		   (u32)prev_cpu < sl_core.nr_cpus && !(wake_flags & SCX_WAKE_SYNC) &&
		   !has_idle(p->cpus_ptr))) {
		*is_idle = false;
		sl_host_does("idle", sl_task_of(p), "none");
		return prev_cpu;
	}
	return select_with_default(p, prev_cpu, wake_flags, is_idle);
}

s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *cpus_allowed, u64 flags)
{
	return select_for_policy(sl_task_of(p), prev_cpu, wake_flags, cpus_allowed, flags);
}

bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	return check_builtin_idle() && ops_cpu_valid(cpu) && claim(cpu);
}

static s32 pick_for_policy(const struct cpumask *allowed, u64 flags)
{
	/* On a busy machine this is the answer nearly always. */
	if (likely(!has_idle(allowed)))
		return -EBUSY;
	return pick_core_first(&sl_core.idle, allowed, flags);
}

/* Return: a CPU, whose idle bit is now claimed; or -EBUSY. */
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	if (!check_one_mask("per-node idle tracking is enabled"))
		return -EBUSY;
	return pick_for_policy(allowed, flags);
}

/* Any CPU of @allowed and @among; or -EBUSY. */
static s32 pick_busy(const struct cpumask *among, const struct cpumask *allowed)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	s32 cpu = next_in(among, allowed, this_cpu->idle_cursor);

	if (cpu < 0)
		return -EBUSY;
	this_cpu->idle_cursor = cpu;
	return cpu;
}

s32 scx_bpf_pick_any_cpu(const struct cpumask *allowed, u64 flags)
{
	u8 tracking = READ_ONCE(sl_core.idle_tracking);
	s32 cpu = -1;

	if (tracking == SL_IDLE_PER_NODE) {
		check_one_mask("per-node idle tracking is enabled");
		return -EBUSY;
	}
	if (tracking == SL_IDLE_GLOBAL)
		cpu = pick_for_policy(allowed, flags);
	return cpu < 0 ? pick_busy(&sl_core.possible, allowed) : cpu;
}

/* S51. Return: as without a node; or -EOPNOTSUPP, -EINVAL, -ENOENT. */
s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *allowed, int node, u64 flags)
{
	s32 err;

	return check_node(node, &err) ? pick_near_node(allowed, node, flags) : err;
}

s32 scx_bpf_pick_any_cpu_node(const struct cpumask *allowed, int node, u64 flags)
{
	s32 cpu;

	if (!check_node(node, &cpu))
		return cpu;
	cpu = pick_near_node(allowed, node, flags);
	if (cpu >= 0)
		return cpu;
	if (!(flags & SCX_PICK_IDLE_IN_NODE))
		return pick_busy(&sl_core.possible, allowed);
	for (u32 i = 0; i < sl_core.nr_cpus; i++) {
		if (sl_core.node[i] == node)
			return pick_busy(&sl_core.node_mask[i], allowed);
	}
	return -EBUSY;
}

/* S26: IDLE kicks only an idle CPU, PREEMPT ends the running task's slice. */
void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (!ops_cpu_valid(cpu))
		return;
	if ((flags & SCX_KICK_IDLE) && (flags & (SCX_KICK_PREEMPT | SCX_KICK_WAIT))) {
		scx_error(NULL, "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE");
		return;
	}
	if ((flags & SCX_KICK_WAIT) && !SL_HOST_CAN_WAIT) {
		scx_error(NULL,
			  "SCX_KICK_WAIT: no CPU of this host waits for another one that it has kicked");
		return;
	}
	sl_host_does("kick", NULL, "CPU %d, flags 0x%llx", cpu, flags);
	kick_cpu(this_cpu, cpu, flags);
}
