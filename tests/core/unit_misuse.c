/* SPDX-License-Identifier: MIT */
/*
 * unit_misuse.c - everything a policy may do wrong: reported, and survived.
 *
 * One policy, which at one moment of one callback does the wrong thing that the
 * test names. The report must say what it was, name the task where there is
 * one, and every task must come to its end under the built-in FIFO.
 *
 * Read next: core/policy.c.
 */
#include "unit.h"

#define DSQ 1
#define VTIME_DSQ 2
#define NR_CPUS 3

enum where {
	IN_SELECT_CPU,
	IN_ENQUEUE,
	IN_DISPATCH,
	IN_RUNNING,
	IN_TICK,
	IN_STOPPING,
	IN_QUIESCENT,
	IN_RUNNABLE,
	IN_INIT_TASK,
	IN_TIMER,
	NR_WHERE
};

struct wrong {
	enum where where;
	void (*act)(struct task_struct *p);
	const char *says; /* part of the message */
	s32 pid;	  /* blamed; 0: nobody, -1: whoever it was about, -2: any */
	bool own_idle;	  /* the policy tracks idle CPUs itself */
	bool no_direct;	  /* enqueue does nothing besides */
};

static const struct wrong *wrong;
static bool is_done;
static s32 wrong_pid; /* whom the callback was about */
static s32 wrong_cpu;

static bool act(enum where where, struct task_struct *p)
{
	if (wrong->where != where || is_done)
		return false;
	/* Not before there are enough tasks about. */
	if (p && p->pid < 4)
		return false;
	if (where == IN_DISPATCH && scx_bpf_dsq_nr_queued(DSQ) < 2)
		return false;
	is_done = true;
	wrong_pid = p ? p->pid : 0;
	wrong->act(p);
	return true;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bpf_timer);
} misuse_timer SEC(".maps");

static int timer_callback(void *map, u32 *key, struct bpf_timer *timer)
{
	(void)map;
	(void)key;
	(void)timer;
	act(IN_TIMER, NULL);
	return 0;
}

static s32 misuse_init(void)
{
	u32 zero = 0;
	struct bpf_timer *t = bpf_map_lookup_elem(&misuse_timer, &zero);

	CHECK(!bpf_timer_init(t, &misuse_timer, CLOCK_MONOTONIC));
	CHECK(!bpf_timer_set_callback(t, timer_callback));
	CHECK(!bpf_timer_start(t, 2500000, 0));
	return scx_bpf_create_dsq(DSQ, -1) | scx_bpf_create_dsq(VTIME_DSQ, -1);
}

static s32 misuse_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	(void)wake_flags;
	wrong_cpu = prev_cpu;
	act(IN_SELECT_CPU, p);
	return wrong_cpu;
}

static void misuse_enqueue(struct task_struct *p, u64 flags)
{
	if (act(IN_ENQUEUE, p) && wrong->no_direct)
		return;
	scx_bpf_dsq_insert(p, DSQ, 1000000, flags);
}

static void misuse_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)cpu;
	(void)prev;
	act(IN_DISPATCH, NULL);
	scx_bpf_dsq_move_to_local(DSQ);
}

static void misuse_running(struct task_struct *p)
{
	act(IN_RUNNING, p);
}
static void misuse_tick(struct task_struct *p)
{
	act(IN_TICK, p);
}

static void misuse_stopping(struct task_struct *p, bool runnable)
{
	(void)runnable;
	act(IN_STOPPING, p);
}

static void misuse_quiescent(struct task_struct *p, u64 flags)
{
	(void)flags;
	act(IN_QUIESCENT, p);
}

static void misuse_runnable(struct task_struct *p, u64 flags)
{
	(void)flags;
	act(IN_RUNNABLE, p);
}

static s32 misuse_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	(void)args;
	return act(IN_INIT_TASK, p) ? -12 : 0;
}

static void misuse_update_idle(s32 cpu, bool idle)
{
	(void)cpu;
	(void)idle;
}

/* ---- the wrong things ---------------------------------------------------- */

static struct task_struct *other(struct task_struct *p)
{
	return bpf_task_from_pid(p && p->pid == 1 ? 2 : 1);
}

static void insert(struct task_struct *p)
{
	scx_bpf_dsq_insert(p ? p : other(p), DSQ, 1000000, 0);
}

static void insert_other(struct task_struct *p)
{
	scx_bpf_dsq_insert(other(p), DSQ, 1000000, 0);
}

static void insert_nowhere(struct task_struct *p)
{
	scx_bpf_dsq_insert(p, 0xdead, 1000000, 0);
}

static void insert_by_vtime_locally(struct task_struct *p)
{
	scx_bpf_dsq_insert_vtime(p, SCX_DSQ_GLOBAL, 1000000, 5, 0);
}

static void mix_orders(struct task_struct *p)
{
	scx_bpf_dsq_insert_vtime(p, DSQ, 1000000, 5, 0);
}

static void insert_on_no_cpu(struct task_struct *p)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 77, 1000000, 0);
}

/* Task 4 may not run on CPU 2. */
static void insert_on_wrong_cpu(struct task_struct *p)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | 2, 1000000, 0);
}

static void overflow(struct task_struct *p)
{
	for (u32 i = 0; i <= 32; i++) {
		CHECK(scx_bpf_dispatch_nr_slots() == 32 - i);
		CHECK(scx_bpf_dsq_insert(other(p), DSQ, 1, 0) == (i < 32));
	}
}

static void underflow(struct task_struct *p)
{
	insert_other(p);
	scx_bpf_dispatch_cancel();
	scx_bpf_dispatch_cancel();
}

static void take_from_nowhere(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_dsq_move_to_local(0xdead));
}

static void take_from_global(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_dsq_move_to_local(SCX_DSQ_GLOBAL));
}

static void peek_nowhere(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_dsq_peek(0xdead));
}

static void peek_at_builtin(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_dsq_peek(SCX_DSQ_LOCAL));
}

static void take_elsewhere(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_dsq_move_to_local(DSQ));
}

static void move_elsewhere(struct task_struct *p)
{
	struct bpf_iter_scx_dsq it;

	CHECK(!bpf_iter_scx_dsq_new(&it, DSQ, 0));
	CHECK(!scx_bpf_dsq_move(&it, p, VTIME_DSQ, 0));
	bpf_iter_scx_dsq_destroy(&it);
}

static void destroy_full(struct task_struct *p)
{
	(void)p;
	scx_bpf_destroy_dsq(DSQ);
}

static void kick_no_cpu(struct task_struct *p)
{
	(void)p;
	scx_bpf_kick_cpu(NR_CPUS, 0);
}

static void count_no_cpu(struct task_struct *p)
{
	(void)p;
	CHECK(scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | NR_CPUS) == -2);
}

static void claim_no_cpu(struct task_struct *p)
{
	(void)p;
	CHECK(!scx_bpf_test_and_clear_cpu_idle(-1));
}

static void node_of_no_cpu(struct task_struct *p)
{
	(void)p;
	CHECK(scx_bpf_cpu_node(NR_CPUS) == -1);
}

static void speed_of_no_cpu(struct task_struct *p)
{
	(void)p;
	CHECK(scx_bpf_cpuperf_cap(0) == SCX_CPUPERF_ONE);
	scx_bpf_cpuperf_cap(NR_CPUS);
}

static void speed_now_of_no_cpu(struct task_struct *p)
{
	(void)p;
	scx_bpf_cpuperf_cur(NR_CPUS);
}

static void set_speed_of_no_cpu(struct task_struct *p)
{
	(void)p;
	scx_bpf_cpuperf_set(0, SCX_CPUPERF_ONE);
	scx_bpf_cpuperf_set(NR_CPUS, 0);
}

static void set_too_high_a_speed(struct task_struct *p)
{
	(void)p;
	scx_bpf_cpuperf_set(0, SCX_CPUPERF_ONE + 1);
}

static void kick_two_ways(struct task_struct *p)
{
	(void)p;
	scx_bpf_kick_cpu(0, SCX_KICK_IDLE | SCX_KICK_PREEMPT);
}

static void choose_no_cpu(struct task_struct *p)
{
	(void)p;
	wrong_cpu = NR_CPUS;
}

static void ask_for_idle(struct task_struct *p)
{
	CHECK(scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) == -16);
}

struct locked {
	struct bpf_spin_lock lock;
	u64 value;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct locked);
} misuse_locked SEC(".maps");

static void lock_two(u32 first, u32 second)
{
	struct locked *one = bpf_map_lookup_elem(&misuse_locked, &first);
	struct locked *two = bpf_map_lookup_elem(&misuse_locked, &second);

	bpf_spin_lock(&one->lock);
	bpf_spin_lock(&two->lock);
	bpf_spin_unlock(&two->lock);
	bpf_spin_unlock(&one->lock);
	/* It is free again. */
	bpf_spin_lock(&one->lock);
	bpf_spin_unlock(&one->lock);
}

static void lock_twice(struct task_struct *p)
{
	(void)p;
	lock_two(0, 0);
}

static void lock_a_second(struct task_struct *p)
{
	(void)p;
	lock_two(0, 1);
}

static void say_so(struct task_struct *p)
{
	scx_bpf_error("own words %d", p ? p->pid : 7);
}

static void fail_init_task(struct task_struct *p)
{
	(void)p;
}

#define W(where_, act_, says_, pid_, ...)				\
	{ .where = where_, .act = act_, .says = says_, .pid = pid_, __VA_ARGS__ }

static const struct wrong wrongs[] = {
	W(IN_ENQUEUE, insert, "already direct-dispatched", -1),
	W(IN_ENQUEUE, insert_other, "of another task", 1),
	W(IN_ENQUEUE, insert_nowhere, "non-existent DSQ 0xdead", -1, .no_direct = true),
	W(IN_ENQUEUE, insert_by_vtime_locally, "cannot use vtime ordering", -1, .no_direct = true),
	W(IN_ENQUEUE, mix_orders, "holds tasks in FIFO order", -1, .no_direct = true),
	W(IN_ENQUEUE, insert_on_no_cpu, "invalid CPU 77", -1, .no_direct = true),
	W(IN_ENQUEUE, insert_on_wrong_cpu, "target cpu 2 not allowed", -1, .no_direct = true),
	W(IN_ENQUEUE, say_so, "own words", -1),
	W(IN_ENQUEUE, say_so, "own words", -1, .no_direct = true),
	W(IN_ENQUEUE, take_elsewhere, "outside ops.dispatch()", 0),
	W(IN_ENQUEUE, move_elsewhere, "called from ops.enqueue()", -1),
	W(IN_ENQUEUE, ask_for_idle, "idle tracking is disabled", 0, .own_idle = true),
	W(IN_ENQUEUE, lock_twice,
	  "a bpf_spin_lock that ops.enqueue() has taken and not dropped, in misuse_locked", -1),
	W(IN_TICK, lock_a_second,
	  "a second bpf_spin_lock, in misuse_locked, while ops.tick() has one", -1),
	W(IN_DISPATCH, overflow, "dispatch buffer overflow", 1),
	W(IN_DISPATCH, underflow, "dispatch buffer underflow", 0),
	W(IN_DISPATCH, take_from_nowhere, "invalid DSQ ID 0xdead", 0),
	W(IN_DISPATCH, take_from_global, "invalid DSQ ID 0x8000000000000001", 0),
	W(IN_DISPATCH, peek_nowhere, "peek on non-existent DSQ 0xdead", 0),
	W(IN_DISPATCH, peek_at_builtin, "peek disallowed on builtin DSQ", 0),
	W(IN_ENQUEUE, peek_at_builtin, "peek disallowed on builtin DSQ", 0),
	W(IN_DISPATCH, destroy_full, "destroying DSQ 0x1 with", -2),
	W(IN_DISPATCH, kick_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, count_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, claim_no_cpu, "invalid CPU -1", 0),
	W(IN_DISPATCH, node_of_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, speed_of_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, speed_now_of_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, set_speed_of_no_cpu, "invalid CPU 3", 0),
	W(IN_DISPATCH, set_too_high_a_speed, "Invalid cpuperf target 1025 for CPU 0", 0),
	W(IN_DISPATCH, kick_two_ways, "cannot be used with SCX_KICK_IDLE", 0),
	/* Perhaps the task that ran until now. */
	W(IN_DISPATCH, say_so, "own words 7", -2),
	W(IN_SELECT_CPU, choose_no_cpu, "invalid CPU 3 from ops.select_cpu()", -1),
	W(IN_SELECT_CPU, insert_other, "of another task", 1),
	W(IN_RUNNING, insert, "called from ops.running()", -1),
	W(IN_TICK, insert, "called from ops.tick()", -1),
	W(IN_STOPPING, insert, "called from ops.stopping()", -1),
	W(IN_QUIESCENT, insert, "called from ops.quiescent()", -1),
	W(IN_RUNNABLE, insert, "called from ops.runnable()", -1),
	W(IN_RUNNING, say_so, "own words", -1),
	W(IN_TICK, say_so, "own words", -1),
	W(IN_STOPPING, say_so, "own words", -1),
	W(IN_QUIESCENT, say_so, "own words", -1),
	W(IN_RUNNABLE, say_so, "own words", -1),
	W(IN_INIT_TASK, fail_init_task, "ops.init_task() failed", -1),
	W(IN_TIMER, insert, "called from ops.timer()", 1),
	W(IN_TIMER, say_so, "own words 7", 0),
};

static void start_tasks(void)
{
	static const struct cpumask two = { { 3 } };
	struct unit_task *t;

	for (u32 i = 1; i <= 8; i++) {
		fake_cpu = (s32)fake_below(NR_CPUS);
		t = unit_attach(5 + fake_below(5));
		if (i >= 4)
			t->core.p.cpus_ptr = &two;
		if (i >= 4)
			t->core.p.nr_cpus_allowed = 2;
		here_start(&t->core, SCX_WAKE_FORK, 0);
	}
	fake_cpu = 0;
}

static void misuse(const struct wrong *w)
{
	struct sched_ext_ops ops = {
		.name = "misuse",
		.init = misuse_init,
		.select_cpu = misuse_select_cpu,
		.enqueue = misuse_enqueue,
		.dispatch = misuse_dispatch,
		.running = misuse_running,
		.tick = misuse_tick,
		.stopping = misuse_stopping,
		.quiescent = misuse_quiescent,
		.runnable = misuse_runnable,
		.init_task = misuse_init_task,
		.update_idle = w->own_idle ? misuse_update_idle : NULL,
	};
	s32 pid;

	wrong = w;
	is_done = false;
	unit_nr_tasks = 0;
	memset(unit_tasks, 0, sizeof(unit_tasks));
	fake.nr_failures = 0;
	fake.now_ns = 0;
	fake.timer_at_ns = ~0ULL;
	unit_machine(NR_CPUS);
	CHECK(!unit_enable(&ops));
	start_tasks();
	unit_turns(3);
	if (w->where == IN_TIMER)
		sl_timers_run();
	unit_run_to_end();
	CHECK(is_done, "nothing went wrong: %s", w->says);
	CHECK(fake.nr_failures == 1, "%s: %llu failures", w->says, fake.nr_failures);
	CHECK(strstr(fake.failure_msg, w->says), "\"%s\", not \"%s\"", fake.failure_msg, w->says);
	pid = w->pid == -1 ? wrong_pid : w->pid;
	CHECK(w->pid == -2 || fake.failure_pid == pid, "%s blames [%d], not [%d]", fake.failure_msg,
	      fake.failure_pid, pid);
	CHECK(fake.failure_kind == (w->act == say_so ? SCX_EXIT_ERROR_BPF : SCX_EXIT_ERROR));
	unit_end();
}

TEST(misuse_is_reported_and_survived)
{
	for (u32 i = 0; i < ARRAY_SIZE(wrongs); i++)
		misuse(&wrongs[i]);
}

/* ---- allowed, though it looks wrong -------------------------------------- */

static s32 kept[16];
static u32 nr_kept;

static void stale_enqueue(struct task_struct *p, u64 flags)
{
	(void)flags;
	kept[nr_kept++ % 16] = p->pid;
}

/* Dispatches every task twice, and some that run: only the first counts. */
static void stale_dispatch(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	(void)cpu;
	(void)prev;
	for (u32 i = 0; i < 16 && scx_bpf_dispatch_nr_slots() > 2; i++) {
		p = kept[i] ? bpf_task_from_pid(kept[i]) : NULL;
		if (!p)
			continue;
		CHECK(scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 1000000, 0));
		CHECK(scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, 0));
	}
}

TEST(stale_dispatches_are_ignored)
{
	struct sched_ext_ops ops = { .name = "stale",
				     .enqueue = stale_enqueue,
				     .dispatch = stale_dispatch };

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	for (u32 i = 0; i < 6; i++)
		unit_start(20);
	unit_run_to_end();
	CHECK(!fake.nr_failures, "%s", fake.failure_msg);
	CHECK(nr_kept > 20);
	unit_end();
}

/* A policy may end itself without an error. */
static void exiting_enqueue(struct task_struct *p, u64 flags)
{
	(void)flags;
	if (p->pid == 3)
		scx_bpf_exit(42, "enough");
}

static struct user_exit_info uei;
static void exiting_exit(struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

TEST(a_policy_may_leave)
{
	struct sched_ext_ops ops = { .name = "exiting",
				     .exit = exiting_exit,
				     .enqueue = exiting_enqueue };

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	for (u32 i = 0; i < 4; i++)
		unit_start(2);
	unit_run_to_end();
	CHECK(uei.kind == SCX_EXIT_UNREG_BPF && uei.exit_code == 42);
	CHECK(!strcmp(uei.msg, "enough"), "%s", uei.msg);
	unit_end();
}
