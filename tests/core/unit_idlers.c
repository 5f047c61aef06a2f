/* SPDX-License-Identifier: MIT */
/*
 * unit_idlers.c - a task becomes runnable on a CPU that is just going idle (S5).
 *
 * Two threads. CPU 0 wakes one task after the other on CPU 1, and queues it without a
 * kick; CPU 1 runs each to its end and sleeps. Now and then either waits a moment where it hurts: after
 * it looked, and before the other can see what it does. A lost wake-up needs no
 * clock to be recognised: CPU 1 sleeps, nobody has kicked it, CPU 0 has nothing
 * left to do, and the task is in the queue.
 *
 * Read next: unit_races.c, the same step by step, for other CPUs; core/wake.c, why it holds.
 */
#include <pthread.h>
#include <sched.h>

#include "unit.h"

#define DSQ 1
#define NR_TASKS 4
#define NR_ROUNDS 3000

static struct {
	struct unit_task tasks[NR_TASKS];
	u32 nr_started; /* atomic, as all */
	u32 nr_running; /* tasks that CPU 1 has begun */
	u32 nr_ended;
	u32 sleep_nr; /* odd: CPU 1 sleeps */
	bool is_over;
} two;

/* Long enough for the other one to come to this place, on a busy machine too. */
static void linger(void)
{
	u32 dice = fake_below(3);
	u32 turns = dice == 1 ? fake_below(4000) : 0;

	for (u32 i = 0; i < turns; i++)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	turns = dice == 2 ? fake_below(4) : 0;
	for (u32 i = 0; i < turns; i++)
		sched_yield();
}

static s32 two_init(void)
{
	return scx_bpf_create_dsq(DSQ, -1);
}

static s32 two_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	(void)p;
	(void)prev_cpu;
	(void)wake_flags;
	return 1;
}

static void two_enqueue(struct task_struct *p, u64 enq_flags)
{
	linger();
	scx_bpf_dsq_insert(p, DSQ, SCX_SLICE_DFL, enq_flags);
}

static void two_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)prev;
	if (!scx_bpf_dsq_move_to_local(DSQ) && cpu == 1)
		linger();
}

static struct sched_ext_ops two_ops = {
	.name = "two",
	.init = two_init,
	.select_cpu = two_select_cpu,
	.enqueue = two_enqueue,
	.dispatch = two_dispatch,
};

static struct sl_task *run_and_end(struct sl_task *t)
{
	struct sl_task *next;

	__atomic_fetch_add(&two.nr_running, 1, __ATOMIC_RELEASE);
	linger();
	next = here_schedule(SL_WHY_EXIT);
	here_switched(t);
	sl_task_detach(t);
	__atomic_fetch_add(&two.nr_ended, 1, __ATOMIC_RELEASE);
	return next;
}

static void sleep_until_kicked(void)
{
	__atomic_fetch_add(&two.sleep_nr, 1, __ATOMIC_SEQ_CST);
	fake_spins = 0;
	while (!__atomic_load_n(&fake.cpus[1].is_kicked, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&two.is_over, __ATOMIC_RELAXED))
		fake_wait_a_turn();
	__atomic_fetch_add(&two.sleep_nr, 1, __ATOMIC_SEQ_CST);
	fake_take_kick(1);
}

static void *second_cpu(void *seed)
{
	struct sl_task *t = NULL;

	fake_cpu = 1;
	fake_seed_thread((u64)(uintptr_t)seed);
	while (t || !__atomic_load_n(&two.is_over, __ATOMIC_RELAXED)) {
		if (t) {
			t = run_and_end(t);
			if (t)
				here_switched(NULL);
			continue;
		}
		sleep_until_kicked();
		t = here_schedule(SL_WHY_RESCHED);
		if (t)
			here_switched(NULL);
	}
	return NULL;
}

/* CPU 0 has done all it had to do for @t: who does not come now never comes. */
static bool is_lost(struct sl_task *t)
{
	u32 nr = __atomic_load_n(&two.sleep_nr, __ATOMIC_SEQ_CST);

	return nr % 2 && !__atomic_load_n(&fake.cpus[1].is_kicked, __ATOMIC_SEQ_CST) &&
	       smp_load_acquire(&t->dsq) && nr == __atomic_load_n(&two.sleep_nr, __ATOMIC_SEQ_CST);
}

static void queue_one(u32 i)
{
	struct sl_task *t = &two.tasks[i % NR_TASKS].core;

	sl_task_setup(t, 1 + i % NR_TASKS, (s32)(2 + i), "one");
	sl_task_attach(t, NULL);
	here_start(t, SCX_WAKE_FORK, 1);
	fake_spins = 0;
	while (__atomic_load_n(&two.nr_running, __ATOMIC_ACQUIRE) <= i) {
		CHECK(!is_lost(t), "cpu 1 sleeps beside task %u", i);
		fake_wait_a_turn();
	}
	/* The next one comes while CPU 1 ends this one; its memory is there. */
	while (__atomic_load_n(&two.nr_ended, __ATOMIC_ACQUIRE) + NR_TASKS < i + 2)
		fake_wait_a_turn();
	linger();
}

TEST(a_cpu_misses_no_task_that_becomes_runnable_on_it)
{
	pthread_t thread;

	unit_machine(2);
	CHECK(!unit_enable(&two_ops));
	fake_cpu = 0;
	CHECK(!pthread_create(&thread, NULL, second_cpu, (void *)(uintptr_t)sl_host_random()));
	for (u32 i = 0; i < NR_ROUNDS; i++)
		queue_one(i);
	__atomic_store_n(&two.is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(two.nr_ended == NR_ROUNDS);
	unit_end();
}
