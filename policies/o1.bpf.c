/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * o1.bpf.c - two arrays: everybody runs once before anybody runs again (report 3).
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
 * factor of two in weight, 100 being level 5. Groups come in the order in which they
 * were first seen at their level, or by number. A task that sleeps keeps what it used
 * of its slice until the round is over, so that it cannot run for ever in one.
 *
 * With cosched all CPUs are interrupted at the same time, every slice_ns, as the
 * report's package relays one timer to all of its kernel threads (ksched_cosched());
 * otherwise each task has a slice from when it begins to run.
 *
 * Good at: constant cost per decision on any number of CPUs, each with queues of its
 * own; nobody starves: a round is at most one slice for each task.
 * Bad at: shares; a priority decides who is first in a round, not who gets more. A
 * task that wakes up does not preempt, and waits for the end of a slice, or of a
 * whole round. With cosched, who begins after the others of that time, since one
 * before it blocked, has a short slice and still has to wait for a whole round. A CPU
 * takes from another one only when it is idle: loads stay uneven.
 *
 * @knob slice_ns ns 1000 10000000000  slice (default 30 ms, as in report 3)
 * @knob cosched bool 0 1  all CPUs end their slices together (default 0)
 * @knob group_order enum arrival=0,number=1  groups by first arrival or by number
 *       (default arrival)
 * @knob balance enum none=0,pull=1  none, as in the report, or an idle CPU pulls
 *       (default pull)
 * @work-conserving no  without balance, a CPU is idle beside the queues of others
 * @source report 3, sections 2.c and 3; I. Molnar's scheduler of Linux 2.6, for what
 *         a sleep leaves of a slice
 *
 * Read next: policies/credit.bpf.c, what report 3 made of it.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

enum { ORDER_ARRIVAL, ORDER_NUMBER };
enum { BALANCE_NONE, BALANCE_PULL };

#define NR_LEVELS 32
#define NR_GROUPS 64
#define NR_ARRAYS 2
#define DEFAULT_LEVEL 5
#define DEFAULT_WEIGHT 100U
#define DOUBLINGS_MAX 7		/* a weight is 10,000 at most */

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
	u64 round;		/* the first in which it may run */
	u64 run_round;		/* in which it came to run */
	u64 used_ns;		/* of its slice in that round */
	u64 exec_ns;		/* its CPU time when it was last charged */
	s32 cpu;		/* whose rounds these are; -1: it is new */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct cosched_timer {
	struct bpf_timer timer;
	u64 next_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_timer);
} cosched_timers SEC(".maps");

/*
 * The round of each CPU, written by that CPU alone. Whoever queues a task there may
 * read it too early: the task then runs one round late.
 */
static u64 cpu_round[SCX_CPUS_MAX];
/* Place of each group at its level, from 1; 0: it was not seen yet. Atomic. */
static u32 group_place[NR_LEVELS * NR_GROUPS];
static u32 nr_places[NR_LEVELS];
static u64 nr_arrivals;		/* atomic */
static u32 next_cpu;		/* where the next new task goes; atomic */

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static u64 dsq_of(s32 cpu, u64 round)
{
	return (u64)(u32)cpu * NR_ARRAYS + round % NR_ARRAYS;
}

static u64 round_of(s32 cpu)
{
	u64 *round = ARRAY_ELEM_PTR(cpu_round, cpu, SCX_CPUS_MAX);

	return round ? *round : 0;
}

static void begin_round(s32 cpu, u64 new_round)
{
	u64 *round = ARRAY_ELEM_PTR(cpu_round, cpu, SCX_CPUS_MAX);

	if (round)
		*round = new_round;
}

/* ---- the order within an array ------------------------------------------- */

/* How many times a weight is twice that of nice 0; negative if it is less. */
static s32 doublings(u32 weight)
{
	s32 nr = 0;
	u32 i;

	for (i = 1; i <= DOUBLINGS_MAX; i++) {
		nr += weight >= DEFAULT_WEIGHT << i;
		nr -= weight << i <= DEFAULT_WEIGHT;
	}
	return nr;
}

static u32 own_level(struct task_struct *p, const struct task_attr *attr)
{
	s32 level;

	if (task_attr_given(attr, TASK_ATTR_PRIORITY))
		level = attr->priority;
	else
		level = DEFAULT_LEVEL - doublings(p->scx.weight);
	if (level < 0)
		return 0;
	return level < NR_LEVELS ? (u32)level : NR_LEVELS - 1;
}

/* Two CPUs that see a group first at the same time agree on one place. */
static u32 place_of(u32 level, u32 group)
{
	u32 *place = ARRAY_ELEM_PTR(group_place, level * NR_GROUPS + group,
				    NR_LEVELS * NR_GROUPS);
	u32 *nr = ARRAY_ELEM_PTR(nr_places, level, NR_LEVELS);

	if (group_order == ORDER_NUMBER || !place || !nr)
		return group;
	if (!*place)
		__sync_val_compare_and_swap(place, 0,
					    __sync_fetch_and_add(nr, 1) + 1);
	return *place;
}

/* Level and group of @p, as the upper part of its key in an array. */
static u64 rank_of(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	u32 level = own_level(p, attr);
	u32 group = task_attr_given(attr, TASK_ATTR_GROUP) ?
		    attr->group % NR_GROUPS : 0;

	return ((u64)level << LEVEL_SHIFT) +
	       ((u64)place_of(level, group) << GROUP_SHIFT);
}

/* ---- rounds ---------------------------------------------------------------- */

/* It has had its turn in the round in which it came to run. */
static void expire(struct task_ctx *tc)
{
	tc->round = tc->run_round + 1;
	tc->used_ns = 0;
}

/* Charge the CPU time since the last call. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += p->se.sum_exec_runtime - tc->exec_ns;
	tc->exec_ns = p->se.sum_exec_runtime;
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

/* ---- the way to a queue ---------------------------------------------------- */

/* The report deals new threads out in turn. Return: a CPU, or @otherwise. */
static s32 deal_cpu(struct task_struct *p, s32 otherwise)
{
	s32 cpu = (s32)(__sync_fetch_and_add(&next_cpu, 1) %
			scx_bpf_nr_cpu_ids());

	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : otherwise;
}

/*
 * An idle CPU is only chosen here. The task goes through the queue even then, or
 * it would pass by one of a higher level that is about to be fetched by that CPU.
 */
s32 BPF_STRUCT_OPS(o1_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = prev_cpu;

	if (balance != BALANCE_NONE)
		/* Not behind a waker that may run on: another CPU is idle. */
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					     wake_flags & ~SCX_WAKE_SYNC, &is_idle);
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
		tc->cpu = cpu;
		tc->round = now;
	} else if (time_before(tc->round, now)) {
		tc->round = now;
		tc->used_ns = 0;
	}
	key = rank_of(p) +
	      (__sync_fetch_and_add(&nr_arrivals, 1) & ARRIVAL_MASK);
	scx_bpf_dsq_insert_vtime(p, dsq_of(cpu, tc->round), slice_of(tc), key,
				 enq_flags);
	if (balance == BALANCE_NONE || (enq_flags & SCX_ENQ_CPU_SELECTED))
		return;
	/* It made way, or is bound here; another CPU may be idle, and pull. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* ---- the choice -------------------------------------------------------------- */

/* Whether the first task of a queue comes before one of @rank that joins it now. */
static bool is_one_before(u64 dsq_id, u64 rank)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_id, 0)
		return (p->scx.dsq_vtime & ~ARRIVAL_MASK) <= rank;
	return false;
}

/* Take the first task of a queue that may run on @cpu. */
static bool take_from(u64 dsq_id, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/* Take a task from the next CPU that has one, from its active array if it can be. */
static void pull(s32 cpu)
{
	u32 nr_cpus = scx_bpf_nr_cpu_ids();
	s32 i;

	bpf_for(i, 1, nr_cpus) {
		s32 from = (s32)(((u32)cpu + (u32)i) % nr_cpus);
		u64 round = round_of(from);

		if (take_from(dsq_of(from, round), cpu) ||
		    take_from(dsq_of(from, round + 1), cpu))
			return;
	}
}

/*
 * @prev has had its turn; it is in no queue, but when a round begins it is the last
 * of its group there. If nobody of that round comes before it, it goes on.
 */
void BPF_STRUCT_OPS(o1_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 round = round_of(cpu);
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) &&
	    bpf_cpumask_test_cpu(cpu, prev->cpus_ptr))
		tc = task_ctx(prev);
	if (prev && tc) {
		charge(prev, tc);
		expire(tc);
	}
	if (scx_bpf_dsq_move_to_local(dsq_of(cpu, round)))
		return;
	begin_round(cpu, ++round);
	if (!prev || !tc) {
		if (!scx_bpf_dsq_move_to_local(dsq_of(cpu, round)) &&
		    balance == BALANCE_PULL)
			pull(cpu);
		return;
	}
	if (is_one_before(dsq_of(cpu, round), rank_of(prev)) &&
	    scx_bpf_dsq_move_to_local(dsq_of(cpu, round)))
		return;
	enter_round(prev, tc, cpu);
	scx_bpf_task_set_slice(prev, slice_of(tc));
}

void BPF_STRUCT_OPS(o1_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		enter_round(p, tc, scx_bpf_task_cpu(p));
}

/* Who is interrupted has had its turn, however short it was. */
void BPF_STRUCT_OPS(o1_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	if (runnable)
		expire(tc);
}

static int interrupt_all(void *map, u32 *key, struct cosched_timer *t)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	u64 now_ns = bpf_ktime_get_ns();
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	t->next_ns += slice_ns;
	if (time_before(t->next_ns, now_ns))
		t->next_ns = now_ns + slice_ns;
	bpf_timer_start(&t->timer, t->next_ns, BPF_F_TIMER_ABS);
	return 0;
}

s32 BPF_STRUCT_OPS(o1_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->cpu = -1;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(o1_init)
{
	s32 nr_queues = (s32)scx_bpf_nr_cpu_ids() * NR_ARRAYS;
	struct cosched_timer *t;
	u32 key = 0;
	s32 err, i;

	bpf_for(i, 0, nr_queues) {
		err = scx_bpf_create_dsq(i, -1);
		if (err)
			return err;
	}
	if (!cosched)
		return 0;
	t = bpf_map_lookup_elem(&cosched_timers, &key);
	if (!t)
		return -2;	/* ENOENT */
	bpf_timer_init(&t->timer, &cosched_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, interrupt_all);
	t->next_ns = bpf_ktime_get_ns() + slice_ns;
	return (s32)bpf_timer_start(&t->timer, t->next_ns, BPF_F_TIMER_ABS);
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
