/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * o1.bpf.c - two arrays: all tasks run once before any runs again (report 3).
 *
 * Each CPU has an active and an expired array, in the order of priorities, 0 the
 * highest, of groups within a priority, and of arrival within a group. The CPU takes
 * the first task of the active array. A task that has had its slice, or is
 * interrupted for any other reason, goes to the expired array; when the active one
 * is empty, the two change places, which begins another round.
 *
 *	new, woken with slice left --> active --> runs --interrupted--> expired
 *	                                 ^                                 |
 *	                                 +------- a new round begins ------+
 *
 * The level is the task's priority; without one it follows nice, one level per
 * factor of two in weight, 100 being level 5. A task that sleeps keeps what it used
 * of its slice until the round is over, so that it cannot run all through one.
 *
 * Good at: constant cost per decision on any number of CPUs, each with queues of its
 * own; no task starves: a round is at most one slice for each task.
 * Bad at: shares; a priority decides which task is first in a round, not which gets
 * more. A task that wakes up does not preempt, and waits for the end of a slice, or of
 * a whole round. With cosched, a task that begins late in that time has a short slice
 * and still waits for a whole round. A CPU takes from another one only when it is
 * idle: loads stay uneven.
 *
 * @knob slice_ns ns 1000 10000000000  slice (default 30 ms, as in report 3)
 * @knob cosched bool 0 1  all CPUs end their slices at the same time, as the report's
 *       package relays one timer to all of its kernel threads (default 0)
 * @knob group_order enum arrival=0,number=1  groups of a level by first
 *       arrival or by number (default arrival)
 * @knob balance enum none=0,pull=1  none, as in the report, or an idle CPU pulls
 *       (default pull)
 * @latency wake-up within slice_ns
 * @work-conserving no  without balance, a CPU is idle beside the queues of others
 * @starvation-free yes  a round is at most one slice for each task
 * @source report 3, sections 2.c and 3; I. Molnar's scheduler of Linux 2.6, for what
 *         a sleep leaves of a slice
 *
 * Read next: policies/credit.bpf.c, what report 3 made of it.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/level.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>
#include <scx/policy/percpu.h>

char _license[] SEC("license") = "GPL";

enum { ORDER_ARRIVAL, ORDER_NUMBER };
enum { BALANCE_NONE, BALANCE_PULL };

#define NR_LEVELS 32
#define NR_GROUPS 64
#define NR_ARRAYS 2
#define DEFAULT_LEVEL 5

/* Order within an array: the level, the place of the group, then arrival. */
#define LEVEL_SHIFT 48
#define GROUP_SHIFT 40
#define ARRIVAL_MASK ((1ULL << GROUP_SHIFT) - 1)

const volatile u64 slice_ns = 30000000;
const volatile u32 cosched = 0;
const volatile u32 group_order = ORDER_ARRIVAL;
const volatile u32 balance = BALANCE_PULL;

/* Rounds are counted for each CPU; those of two CPUs have nothing in common. */
struct task_ctx {
	u64 round;	  /* the first in which it may run */
	u64 run_round;	  /* in which it came to run */
	u64 used_ns;	  /* of its slice in that round */
	u64 exec_ns;	  /* its CPU time when it was last charged */
	s32 cpu;	  /* whose rounds these are */
	bool has_stopped; /* and was not queued since */
};
DEFINE_TASK_CTX(struct task_ctx);

/*
 * Written by that CPU alone. Another CPU that queues a task there may read it too
 * early: the task then runs one round late.
 */
static u64 cpu_round[SCX_CPUS_MAX];
/* Place of each group at its level, from 1; 0: it was not seen yet. Atomic. */
static u32 group_place[NR_LEVELS * NR_GROUPS];
static u32 nr_places[NR_LEVELS];
static u64 nr_arrivals; /* atomic */

static u64 dsq_of(s32 cpu, u64 round)
{
	return (u64)(u32)cpu * NR_ARRAYS + round % NR_ARRAYS;
}

static u64 round_of(s32 cpu)
{
	u64 *round = ARRAY_ELEM_PTR(cpu_round, cpu, SCX_CPUS_MAX);

	return round ? *round : 0;
}

/* ---- the order within an array ------------------------------------------- */

/* Two CPUs that see a group first at the same time agree on one place. */
static u32 place_of(u32 level, u32 group)
{
	u32 *place = ARRAY_ELEM_PTR(group_place, level * NR_GROUPS + group, NR_LEVELS * NR_GROUPS);
	u32 *nr = ARRAY_ELEM_PTR(nr_places, level, NR_LEVELS);

	if (group_order == ORDER_NUMBER || !place || !nr)
		return group;
	if (!*place)
		__sync_val_compare_and_swap(place, 0, __sync_fetch_and_add(nr, 1) + 1);
	return *place;
}

/* Level and group of @p, as the upper part of its key in an array. */
static u64 rank_of(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	u32 level = task_level(p, attr, DEFAULT_LEVEL, NR_LEVELS);
	u32 group = task_attr_given(attr, TASK_ATTR_GROUP) ? attr->group % NR_GROUPS : 0;

	return ((u64)level << LEVEL_SHIFT) + ((u64)place_of(level, group) << GROUP_SHIFT);
}

/* ---- rounds ---------------------------------------------------------------- */

/* It has had its slice in the round in which it came to run. */
static void expire(struct task_ctx *tc)
{
	tc->round = tc->run_round + 1;
	tc->used_ns = 0;
}

static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	if (tc->used_ns >= slice_ns)
		expire(tc);
}

static u64 slice_of(const struct task_ctx *tc)
{
	return cosched ? SCX_SLICE_INF : slice_ns - tc->used_ns;
}

static void enter_round(struct task_struct *p, struct task_ctx *tc, s32 cpu)
{
	tc->cpu = cpu;
	tc->round = round_of(cpu);
	tc->run_round = tc->round;
	tc->exec_ns = p->se.sum_exec_runtime;
}

/*
 * To a CPU that is in round @now. A task that has had its slice in the round of its old CPU has had it here, too:
 * else one that moves on and on is never behind others. The old CPU may have begun another round since it stopped.
 */
static void move_round(struct task_ctx *tc, u64 now)
{
	u64 old = round_of(tc->cpu);
	bool has_had = tc->has_stopped ?
			       tc->round != tc->run_round && !time_before(tc->round, old) :
			       time_before(old, tc->round);

	tc->round = now + has_had;
}

/* ---- the way to a queue ---------------------------------------------------- */

s32 BPF_STRUCT_OPS(o1_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = prev_cpu;

	if (balance != BALANCE_NONE)
		cpu = select_idle_cpu(p, prev_cpu, wake_flags, &is_idle);
	if (!is_idle && (wake_flags & SCX_WAKE_FORK))
		return deal_cpu(p, cpu);
	return cpu;
}

void BPF_STRUCT_OPS(o1_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = round_of(cpu);
	u64 key;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	if (tc->cpu != cpu) {
		move_round(tc, now);
		tc->cpu = cpu;
	} else if (time_before(tc->round, now)) {
		tc->round = now;
		tc->used_ns = 0;
	}
	tc->has_stopped = false;
	key = rank_of(p) + (__sync_fetch_and_add(&nr_arrivals, 1) & ARRIVAL_MASK);
	scx_bpf_dsq_insert_vtime(p, dsq_of(cpu, tc->round), slice_of(tc), key, enq_flags);
	if (balance != BALANCE_NONE)
		kick_idle_cpu(p, enq_flags);
}

/* ---- the choice -------------------------------------------------------------- */

/* Take a task from the next CPU that has one, from its active array if it can be. */
static void pull(s32 cpu)
{
	u32 nr_cpus = scx_bpf_nr_cpu_ids();
	s32 i;

	bpf_for(i, 1, nr_cpus) {
		s32 from = (s32)(((u32)cpu + (u32)i) % nr_cpus);
		u64 round = round_of(from);

		if (scx_bpf_dsq_move_to_local(dsq_of(from, round)) ||
		    scx_bpf_dsq_move_to_local(dsq_of(from, round + 1)))
			return;
	}
}

/*
 * @prev has had its slice; it is in no queue, but when a round begins it is the last
 * of its group there. If none of that round comes before it, it continues.
 */
void BPF_STRUCT_OPS(o1_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 *current = ARRAY_ELEM_PTR(cpu_round, cpu, SCX_CPUS_MAX);
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u64 id;

	if (!current)
		return;
	if (prev && tc) {
		charge(prev, tc);
		expire(tc);
	}
	if (scx_bpf_dsq_move_to_local(dsq_of(cpu, *current)))
		return;
	id = dsq_of(cpu, ++*current);
	if ((!prev || !tc || is_queued_before(id, cpu, rank_of(prev) + ARRIVAL_MASK + 1)) &&
	    scx_bpf_dsq_move_to_local(id))
		return;
	if (prev && tc) {
		enter_round(prev, tc, cpu);
		scx_bpf_task_set_slice(prev, slice_of(tc));
	} else if (balance == BALANCE_PULL) {
		pull(cpu);
	}
}

void BPF_STRUCT_OPS(o1_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	/* Stopped and not queued: an attribute has changed. That begins no other slice. */
	if (!tc->has_stopped)
		enter_round(p, tc, scx_bpf_task_cpu(p));
	tc->has_stopped = false;
}

/* A task that is interrupted has had its slice, however short it was. */
void BPF_STRUCT_OPS(o1_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	tc->has_stopped = true;
	if (runnable)
		expire(tc);
}

/* With cosched: interrupt all CPUs. */
static int on_period(void *map, u32 *key, struct period_timer *t)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	t->next_ns += slice_ns;
	set_period_timer(t, slice_ns);
	return 0;
}

s32 BPF_STRUCT_OPS(o1_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(o1_init)
{
	s32 err = create_dsqs((s32)scx_bpf_nr_cpu_ids() * NR_ARRAYS);

	return err || !cosched ? err : start_periods(slice_ns);
}

SCX_OPS_DEFINE(o1_ops,
	       .select_cpu = (void *)o1_select_cpu,
	       .enqueue = (void *)o1_enqueue,
	       .dispatch = (void *)o1_dispatch,
	       .running = (void *)o1_running,
	       .stopping = (void *)o1_stopping,
	       .init_task = (void *)o1_init_task,
	       .init = (void *)o1_init,
	       .name = "o1");
