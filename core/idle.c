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

/* Keep the mask of whole idle cores in step with the bit of @cpu. */
static void update_core_idle(s32 cpu, bool is_idle)
{
	const u64 *siblings = (const u64 *)sl_core.smt_mask[cpu].bits;
	u64 *idle_smt = (u64 *)sl_core.idle_smt.bits;
	u32 nr_words = (sl_core.nr_cpus + 63) / 64;
	bool all = is_idle;

	for (u32 w = 0; all && w < nr_words; w++)
		all = !(siblings[w] & READ_ONCE(sl_core.online.bits[w]) &
			~(u64)READ_ONCE(sl_core.idle.bits[w]));
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

static bool claim(s32 cpu)
{
	/*
	 * Also when the CPU turns out to be taken: two siblings that come and go
	 * at once can leave the core marked idle, and a search of that mask
	 * would find the same CPU indefinitely.
	 */
	if (sl_core.has_smt)
		update_core_idle(cpu, false);
	return sl_bit_test_and_clear((u64 *)sl_core.idle.bits, (u32)cpu);
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
	/* Also for a policy that keeps its own: the next one finds them right. */
	if (!is_idle) {
		claim(cpu->id);
	} else if (!sl_bit_test_and_set((u64 *)sl_core.idle.bits, (u32)cpu->id) && sl_core.has_smt) {
		update_core_idle(cpu->id, true);
	}
	if (is_change)
		SL_CALL_OP(cpu, update_idle, NULL, cpu->id, is_idle);
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

/* Claim an idle CPU of @allowed and, unless NULL, of @near. */
static s32 pick_idle(const struct cpumask *allowed, const struct cpumask *near, bool whole_core)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	const struct cpumask *idle = whole_core && sl_core.has_smt ? &sl_core.idle_smt :
								     &sl_core.idle;
	struct cpumask both;
	s32 cpu;

	if (near)
		allowed = mask_and(&both, allowed, near);
	while ((cpu = next_in(idle, allowed, this_cpu->idle_cursor)) >= 0) {
		if (claim(cpu)) {
			this_cpu->idle_cursor = cpu;
			return cpu;
		}
	}
	return -1;
}

static bool has_idle(const struct cpumask *may)
{
	u64 any = READ_ONCE(sl_core.idle.bits[0]) & may->bits[0];

	for (u32 w = 1; unlikely(w * 64 < sl_core.nr_cpus); w++)
		any |= READ_ONCE(sl_core.idle.bits[w]) & may->bits[w];
	return any;
}

/*
 * S23: built-in idle tracking is off when the policy does its own. Return:
 * whether it may be asked.
 */
static bool check_builtin_idle(void)
{
	if (READ_ONCE(sl_core.builtin_idle))
		return true;
	scx_error(NULL, "built-in idle tracking is disabled");
	return false;
}

/**
 * select_cpu_default - an idle CPU for a task, the nearest first
 * @t: the task
 * @prev_cpu: where it was; tried first
 * @wake_flags: SCX_WAKE_SYNC: the waker is about to sleep, its CPU will do
 * @allowed: restrict to these as well; NULL: only to the task's own
 * @flags: SCX_PICK_IDLE_CORE
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
	struct sl_cpu *this_cpu = sl_this_cpu();
	const struct cpumask *may = t->p.cpus_ptr;
	s32 cpu;

	if (!READ_ONCE(sl_core.builtin_idle))
		return -EBUSY;
	if (allowed)
		may = mask_and(&both, may, allowed);
	if (wake_flags & SCX_WAKE_SYNC) {
		if (sl_core.llc[this_cpu->id] == sl_core.llc[prev_cpu] &&
		    sl_mask_test(may, (u32)prev_cpu) && claim(prev_cpu))
			return prev_cpu;
		if (this_cpu->curr && !(this_cpu->curr->p.flags & PF_EXITING) &&
		    !READ_ONCE(this_cpu->local.first) && sl_mask_test(may, (u32)this_cpu->id) &&
		    next_in(&sl_core.idle, &sl_core.possible, this_cpu->id) >= 0)
			return this_cpu->id;
	}
	/* On a busy machine this is the answer nearly always. */
	if (!has_idle(may))
		return -EBUSY;
	for (int whole_core = sl_core.has_smt; whole_core >= 0; whole_core--) {
		if (sl_mask_test(may, (u32)prev_cpu) &&
		    (!whole_core || sl_mask_test(&sl_core.idle_smt, (u32)prev_cpu)) &&
		    claim(prev_cpu))
			return prev_cpu;
		cpu = -1;
		if (sl_core.has_smt && !whole_core)
			cpu = pick_idle(may, &sl_core.smt_mask[prev_cpu], false);
		if (cpu < 0 && sl_core.has_llcs)
			cpu = pick_idle(may, &sl_core.llc_mask[prev_cpu], whole_core);
		if (cpu < 0 && sl_core.has_nodes)
			cpu = pick_idle(may, &sl_core.node_mask[prev_cpu], whole_core);
		if (cpu < 0)
			cpu = pick_idle(may, NULL, whole_core);
		if (cpu >= 0)
			return cpu;
		if (flags & SCX_PICK_IDLE_CORE)
			break;
	}
	return -EBUSY;
}

/* The default choice, as a policy asks for it. Return: see above; -EINVAL. */
static s32 select_for_policy(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			     const struct cpumask *allowed, u64 flags)
{
	const struct cpumask *may = allowed ? allowed : t->p.cpus_ptr;

	if ((u32)prev_cpu >= sl_core.nr_cpus) {
		scx_error(t, "invalid CPU %d", prev_cpu);
		return -EINVAL;
	}
	if (!check_builtin_idle())
		return -EBUSY;
	/* From ops.enqueue(), also asked about tasks that have no choice. */
	if (t->p.nr_cpus_allowed == 1 || READ_ONCE(t->p.migration_disabled))
		return sl_mask_test(may, (u32)prev_cpu) && claim(prev_cpu) ? prev_cpu : -EBUSY;
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
	if (likely(READ_ONCE(sl_core.builtin_idle) && (u32)prev_cpu < sl_core.nr_cpus &&
		   !(wake_flags & SCX_WAKE_SYNC) && !has_idle(p->cpus_ptr))) {
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

/* As on Linux: a whole idle core first, whether or not the flag insists. */
static s32 pick_for_policy(const struct cpumask *allowed, u64 flags)
{
	s32 cpu = -1;

	/* On a busy machine this is the answer nearly always. */
	if (likely(!has_idle(allowed)))
		return -EBUSY;
	if (sl_core.has_smt)
		cpu = pick_idle(allowed, NULL, true);
	if (cpu < 0 && !(sl_core.has_smt && (flags & SCX_PICK_IDLE_CORE)))
		cpu = pick_idle(allowed, NULL, false);
	return cpu < 0 ? -EBUSY : cpu;
}

/* Return: a CPU, whose idle bit is now claimed; or -EBUSY. */
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	return check_builtin_idle() ? pick_for_policy(allowed, flags) : -EBUSY;
}

s32 scx_bpf_pick_any_cpu(const struct cpumask *allowed, u64 flags)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	s32 cpu = -1;

	if (READ_ONCE(sl_core.builtin_idle))
		cpu = pick_for_policy(allowed, flags);
	if (cpu < 0)
		cpu = next_in(&sl_core.possible, allowed, this_cpu->idle_cursor);
	if (cpu < 0)
		return -EBUSY;
	this_cpu->idle_cursor = cpu;
	return cpu;
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
