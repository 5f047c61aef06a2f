/* SPDX-License-Identifier: MIT */
/*
 * random_ops.c - random operations on all CPUs at once, against a naive model.
 *
 *	random_ops POLICY [--seed N] [--cpus N] [--tasks N] [--rounds N]
 *	                  [--round-ms N]
 *
 * Each CPU is a thread. A task has no stack: "it runs" means that the thread
 * which sl_schedule() told to run it rolls dice for it (tick, yield, block,
 * exit, wake or change somebody, create a task). Now and
 * then one of them unloads the policy and loads it again. In between rounds all
 * threads park outside the core, the model looks at every queue, and the policy
 * is changed with nobody in the core. At the end every task must
 * exit; a task that was lost never does.
 *
 * Built with ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer
 * by test_core.py.
 *
 * Read next: random_check.c, what is checked while all are parked.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "random_run.h"

#define ROUND_STEPS_MIN 10000

struct random_run run = {
	.nr_cpus = 4,
	.nr_tasks = 24,
	.nr_rounds = 8,
	.round_ms = 100,
};

/* ---- tasks --------------------------------------------------------------- */

/* A task from slot @i that stays for as long as it is used here, or NULL. */
static struct model_task *get_task(u32 i)
{
	struct model_task *t;

	pthread_mutex_lock(&run.slots_lock);
	t = run.slots[i];
	if (t)
		t->refs++;
	pthread_mutex_unlock(&run.slots_lock);
	return t;
}

/*
 * The policy may hold a pointer to it: then its memory is the next task's, and is
 * given back when the policy is unloaded. A policy that holds none shows
 * that the core holds none either.
 */
static void bury(struct model_task *t)
{
	if (!run.policy->holds_pointers) {
		free(t);
		return;
	}
	pthread_mutex_lock(&run.slots_lock);
	t->next_grave = run.graves;
	run.graves = t;
	pthread_mutex_unlock(&run.slots_lock);
}

/* Memory for a task. Context: slots_lock held. */
static struct model_task *take_grave(void)
{
	struct model_task *t = run.graves;

	if (!t) {
		t = aligned_alloc(64, (sizeof(*t) + 63) & ~63UL);
		memset(t, 0, sizeof(*t));
		return t;
	}
	run.graves = t->next_grave;
	__atomic_fetch_add(&run.nr_reused, 1, __ATOMIC_RELAXED);
	/* The core's part stays a task. */
	memset((u8 *)t + sizeof(t->core), 0, sizeof(*t) - sizeof(t->core));
	return t;
}

static void put_task(struct model_task *t)
{
	bool is_last;

	pthread_mutex_lock(&run.slots_lock);
	is_last = --t->refs == 0;
	if (is_last)
		run.slots[t->slot] = NULL;
	pthread_mutex_unlock(&run.slots_lock);
	if (!is_last)
		return;
	__atomic_store_n(&fake.by_pid[t->core.p.pid], NULL, __ATOMIC_RELEASE);
	sl_task_detach(&t->core);
	pthread_mutex_lock(&run.slots_lock);
	run.idx_in_use[t->core.idx] = false;
	pthread_mutex_unlock(&run.slots_lock);
	__atomic_fetch_sub(&run.nr_alive, 1, __ATOMIC_RELEASE);
	bury(t);
}

/* The policy is unloaded: nobody holds a pointer to the dead. */
static void free_graves(void)
{
	struct model_task *t;

	pthread_mutex_lock(&run.slots_lock);
	while ((t = run.graves)) {
		run.graves = t->next_grave;
		free(t);
	}
	pthread_mutex_unlock(&run.slots_lock);
}

/* The lowest number that no task has. Context: slots_lock held. */
static u32 take_idx(void)
{
	u32 idx = 0;

	while (run.idx_in_use[idx])
		CHECK(++idx < RANDOM_IDX_MAX);
	run.idx_in_use[idx] = true;
	return idx;
}

static void spawn(s32 parent_pid)
{
	struct model_task *t;
	u32 slot = fake_below(run.nr_tasks);
	s32 pid;

	pthread_mutex_lock(&run.slots_lock);
	if (run.slots[slot] || run.next_pid >= FAKE_PIDS_MAX) {
		pthread_mutex_unlock(&run.slots_lock);
		return;
	}
	t = take_grave();
	t->slot = slot;
	t->refs = 2; /* its own life, and this use */
	t->runs_on = -1;
	t->pinned_to = -1;
	pid = run.next_pid++;
	sl_task_setup(&t->core, take_idx(), pid, "random");
	/* Others see it from now on; they must not change it yet. */
	t->change_lock = 1;
	run.slots[slot] = t;
	pthread_mutex_unlock(&run.slots_lock);
	if (!run.policy->no_affinity && !fake_below(4)) {
		u32 mask = 1 + fake_below(run.nr_masks - 1);

		sl_task_set_affinity(&t->core, &run.masks[mask]);
	}
	__atomic_fetch_add(&run.nr_alive, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&run.nr_spawned, 1, __ATOMIC_RELAXED);
	t->arrive_ns = fake_now_ns();
	sl_task_attach(&t->core, NULL);
	__atomic_store_n(&fake.by_pid[pid], &t->core, __ATOMIC_RELEASE);
	here_start(&t->core, SCX_WAKE_FORK, parent_pid);
	__atomic_store_n(&t->change_lock, 0, __ATOMIC_RELEASE);
	put_task(t);
}

/* ---- what happens to tasks ----------------------------------------------- */

/*
 * A task that has announced that it blocks needs exactly one wake-up that says
 * it made a difference. One that has had it must run without another.
 */
static void wake(u32 slot, s32 waker_pid)
{
	struct model_task *t = get_task(slot);
	u32 nr_announced, nr_woken;
	bool needs_one;

	if (!t)
		return;
	nr_woken = __atomic_load_n(&t->nr_woken, __ATOMIC_ACQUIRE);
	nr_announced = __atomic_load_n(&t->nr_announced, __ATOMIC_ACQUIRE);
	needs_one = nr_announced != nr_woken;
	/* While draining, a needless wake-up would hide one that was lost. */
	if (needs_one || !__atomic_load_n(&run.is_draining, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&t->change_lock, __ATOMIC_ACQUIRE) != 1 &&
		    here_wake(&t->core, fake_below(4) ? 0 : SCX_WAKE_SYNC, waker_pid))
			__atomic_fetch_add(&t->nr_woken, 1, __ATOMIC_RELEASE);
	}
	put_task(t);
}

static void change(u32 slot)
{
	struct model_task *t = get_task(slot);
	u32 free_lock = 0;
	u32 mask;

	if (!t)
		return;
	if (__atomic_compare_exchange_n(&t->change_lock, &free_lock, 2, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED)) {
		if (run.policy->no_affinity || fake_below(2)) {
			sl_task_set_weight(&t->core, 1 + fake_below(10000));
		} else {
			mask = fake_below(2) ? run.nr_masks - 1 : 1 + fake_below(run.nr_masks - 1);
			__atomic_fetch_add(&t->version, 1, __ATOMIC_SEQ_CST);
			sl_task_set_affinity(&t->core, &run.masks[mask]);
			__atomic_fetch_add(&t->version, 1, __ATOMIC_SEQ_CST);
		}
		__atomic_store_n(&t->change_lock, 0, __ATOMIC_RELEASE);
	}
	put_task(t);
}

static void forget_and_load(bool is_live)
{
	random_forget_seen();
	if (!run.policy->ops)
		return;
	run.loaded = random_policy_of(run.policy);
	random_policies_reset(is_live);
	CHECK(!sl_policy_enable(&run.loaded, is_live));
}

static void unload(bool is_live)
{
	u64 nr_failures;

	if (is_live)
		sl_policy_disable(true);
	else
		sl_policy_disable(false);
	free_graves();
	nr_failures = __atomic_exchange_n(&fake.nr_failures, 0, __ATOMIC_ACQ_REL);
	CHECK(!nr_failures || run.policy->may_fail, "%s", fake.failure_msg);
	run.nr_failures += nr_failures;
}

/* The policy goes, and comes again, while other CPUs do what they do. */
static void switch_policy(void)
{
	if (!run.policy->ops || run.policy->counts_idle || pthread_mutex_trylock(&run.switch_lock))
		return;
	unload(true);
	if (!fake_below(4))
		sched_yield();
	forget_and_load(true);
	run.nr_switched++;
	pthread_mutex_unlock(&run.switch_lock);
}

/* Things that happen on a CPU whatever runs there. */
static void disturb(s32 pid)
{
	u32 slot = fake_below(run.nr_tasks);
	u64 at_ns = __atomic_load_n(&fake.timer_at_ns, __ATOMIC_RELAXED);

	if (at_ns <= fake_now_ns() &&
	    __atomic_exchange_n(&fake.timer_at_ns, ~0ULL, __ATOMIC_ACQ_REL) != ~0ULL)
		sl_timers_run();
	switch (fake_below(16)) {
	case 0:
	case 1:
		change(slot);
		break;
	case 2:
		if (!__atomic_load_n(&run.is_draining, __ATOMIC_RELAXED))
			spawn(pid);
		break;
	case 3:
		if (!fake_below(8))
			inside_watchdog();
		break;
	case 4:
		if (!fake_below(64))
			switch_policy();
		if (!fake_below(64))
			sl_dump();
		sl_host_kick((s32)fake_below(run.nr_cpus));
		break;
	default:
		wake(slot, pid);
	}
}

/* ---- a CPU --------------------------------------------------------------- */

/* Affinity holds, unless it was just changed and the kick is on its way. */
static void check_affinity(struct model_task *t)
{
	u32 version = __atomic_load_n(&t->version, __ATOMIC_SEQ_CST);
	bool may, is_kicked;

	if (version & 1)
		return;
	may = t->pinned_to == fake_cpu ||
	      sl_mask_test(READ_ONCE(t->core.p.cpus_ptr), (u32)fake_cpu);
	is_kicked = __atomic_load_n(&fake.cpus[fake_cpu].is_kicked, __ATOMIC_SEQ_CST);
	if (may || is_kicked || version != __atomic_load_n(&t->version, __ATOMIC_SEQ_CST))
		return;
	CHECK(may, "[%d] runs on cpu %d", t->core.p.pid, fake_cpu);
}

/* Let the core choose. Return: what runs now. */
static struct model_task *schedule(struct model_task *prev, enum sl_why why)
{
	struct model_task *next = (struct model_task *)here_schedule(why);
	s32 none = -1;

	if (next && next == prev)
		return prev;
	if (prev) {
		CHECK(prev->runs_on == fake_cpu);
		__atomic_store_n(&prev->runs_on, -1, __ATOMIC_RELEASE);
	}
	if (next)
		CHECK(__atomic_compare_exchange_n(&next->runs_on, &none, fake_cpu, false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE),
		      "[%d] runs on cpus %d and %d", next->core.p.pid, none, fake_cpu);
	if (next)
		CHECK(next->pinned_to < 0 || next->pinned_to == fake_cpu,
		      "[%d] runs on cpu %d, pinned to %d", next->core.p.pid, fake_cpu,
		      next->pinned_to);
	here_switched(prev ? &prev->core : NULL);
	if (prev && why == SL_WHY_EXIT)
		put_task(prev);
	return next;
}

static struct model_task *block(struct model_task *t)
{
	here_prepare_block(&t->core);
	__atomic_fetch_add(&t->nr_announced, 1, __ATOMIC_RELEASE);
	if (!fake_below(4))
		sched_yield();
	if (!fake_below(4))
		disturb(t->core.p.pid);
	return schedule(t, SL_WHY_BLOCK);
}

/* It runs: every block it announced was ended by one wake-up, no more. */
static void check_wakes(struct model_task *t)
{
	u32 nr_announced = t->nr_announced;
	u32 nr_woken;

	fake_spins = 0;
	/* The waker may not have come to counting yet. */
	while ((nr_woken = __atomic_load_n(&t->nr_woken, __ATOMIC_ACQUIRE)) != nr_announced) {
		CHECK(nr_woken < nr_announced, "[%d] %u blocks, %u wake-ups", t->core.p.pid,
		      nr_announced, nr_woken);
		fake_wait_a_turn();
	}
}

static void pin_or_unpin(struct model_task *t)
{
	if (t->pinned_to < 0) {
		fake_migrate_disable(&t->core);
		t->pinned_to = fake_cpu;
	} else {
		t->pinned_to = -1;
		fake_migrate_enable(&t->core);
	}
}

static struct model_task *step(struct model_task *t)
{
	bool is_draining = __atomic_load_n(&run.is_draining, __ATOMIC_RELAXED);

	check_affinity(t);
	if (fake_take_kick(fake_cpu))
		return schedule(t, SL_WHY_RESCHED);
	switch (fake_below(is_draining ? 4 : 32)) {
	case 0:
	case 1:
		return here_tick() ? schedule(t, SL_WHY_RESCHED) : t;
	case 2:
		if (!is_draining && fake_below(4))
			return t;
		check_wakes(t);
		t->core.p.flags |= PF_EXITING;
		return schedule(t, SL_WHY_EXIT);
	case 3:
	case 4:
		return schedule(t, SL_WHY_YIELD);
	case 5:
	case 6:
	case 7:
	case 8:
		check_wakes(t);
		return block(t);
	case 10:
		/* Refused when the policy has no room for it, or no policy. */
		sl_task_set_attr(&t->core, TASK_ATTR_TICKETS, (u64)t->core.p.pid);
		return t;
	case 11:
		pin_or_unpin(t);
		return t;
	case 9:
		/* A host's own reason to look again. */
		return schedule(t, SL_WHY_RESCHED);
	default:
		disturb(t->core.p.pid);
		return t;
	}
}

/* Nothing runs here. What is for this CPU must come with a kick. */
static struct model_task *idle(u32 *nr_dull)
{
	struct sl_cpu *cpu = &sl_core.cpus[fake_cpu];
	bool has_work;

	if (fake_take_kick(fake_cpu)) {
		*nr_dull = 0;
		return schedule(NULL, SL_WHY_RESCHED);
	}
	if (fake_below(2)) {
		disturb(0);
		return NULL;
	}
	sl_lock(&cpu->lock);
	has_work = cpu->local.first &&
		   !__atomic_load_n(&fake.cpus[fake_cpu].is_kicked, __ATOMIC_SEQ_CST);
	sl_unlock(&cpu->lock);
	CHECK(!has_work, "cpu %d sleeps with a task in its local queue", fake_cpu);
	fake_sleep(fake_cpu, 300000);
	/*
	 * A policy that wakes one CPU for each task may choose one that just
	 * finds another task, as on Linux: then another event ends the wait.
	 */
	if (++*nr_dull % 8)
		return NULL;
	return schedule(NULL, SL_WHY_RESCHED);
}

static void park(void)
{
	pthread_mutex_lock(&run.park_lock);
	run.nr_parked++;
	pthread_cond_broadcast(&run.park_changed);
	while (run.must_park)
		pthread_cond_wait(&run.park_changed, &run.park_lock);
	run.nr_parked--;
	pthread_cond_broadcast(&run.park_changed);
	pthread_mutex_unlock(&run.park_lock);
}

static void *cpu_main(void *arg)
{
	struct model_task *t = NULL;
	u32 nr_dull = 0;

	fake_cpu = (s32)(uintptr_t)arg;
	fake_seed_thread(run.seed * 1000 + (u64)fake_cpu + 1);
	while (!__atomic_load_n(&run.is_over, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&run.must_park, __ATOMIC_ACQUIRE))
			park();
		t = t ? step(t) : idle(&nr_dull);
		__atomic_fetch_add(&run.nr_steps, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- rounds -------------------------------------------------------------- */

/* Whoever changes the policy needs the others: not while they park. */
static void park_all(void)
{
	pthread_mutex_lock(&run.switch_lock);
	pthread_mutex_lock(&run.park_lock);
	__atomic_store_n(&run.must_park, true, __ATOMIC_RELEASE);
	while (run.nr_parked < run.nr_cpus)
		pthread_cond_wait(&run.park_changed, &run.park_lock);
	pthread_mutex_unlock(&run.park_lock);
}

static void unpark_all(void)
{
	pthread_mutex_lock(&run.park_lock);
	__atomic_store_n(&run.must_park, false, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&run.park_changed);
	while (run.nr_parked)
		pthread_cond_wait(&run.park_changed, &run.park_lock);
	pthread_mutex_unlock(&run.park_lock);
	pthread_mutex_unlock(&run.switch_lock);
}

/* At least so long, and so much that a slow machine tests something, too. */
static void wait_a_round(void)
{
	u64 nr_steps = __atomic_load_n(&run.nr_steps, __ATOMIC_RELAXED);

	do {
		usleep(run.round_ms * 1000);
	} while (__atomic_load_n(&run.nr_steps, __ATOMIC_RELAXED) - nr_steps < ROUND_STEPS_MIN);
}

static void rounds(void)
{
	for (u32 i = 0; i < run.nr_rounds; i++) {
		wait_a_round();
		park_all();
		fake_cpu = 0;
		random_check_all();
		if (i + 1 < run.nr_rounds && (i & 1 || run.policy->may_fail)) {
			unload(false);
			random_check_all();
			forget_and_load(false);
			random_check_all();
		}
		unpark_all();
	}
}

/* Everybody runs to the end. Whoever does not was lost. */
static void drain(void)
{
	u64 end_ns = fake_now_ns() + 60000000000ULL;

	__atomic_store_n(&run.is_draining, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&run.nr_alive, __ATOMIC_ACQUIRE)) {
		CHECK(fake_now_ns() < end_ns, "%u tasks never ended", run.nr_alive);
		usleep(1000);
	}
}

/* With an odd seed, two CPUs to a core and four to a cache. */
static void init_core(void)
{
	static u16 smt[FAKE_CPUS_MAX], llc[FAKE_CPUS_MAX];
	struct sl_config config = { .tasks_max = RANDOM_IDX_MAX, .nr_cpus = run.nr_cpus };

	for (u32 i = 0; i < run.nr_cpus; i++) {
		smt[i] = (u16)(i / 2);
		llc[i] = (u16)(i / 4);
	}
	if (run.seed & 1) {
		config.smt_of_cpu = smt;
		config.llc_of_cpu = llc;
	}
	CHECK(!sl_core_init(&config));
}

int main(int argc, char **argv)
{
	pthread_t threads[FAKE_CPUS_MAX];

	random_options(argc, argv);
	init_core();
	forget_and_load(false);
	for (u32 i = 0; i < run.nr_cpus; i++)
		CHECK(!pthread_create(&threads[i], NULL, cpu_main, (void *)(uintptr_t)i));
	rounds();
	drain();
	pthread_mutex_lock(&run.switch_lock);
	__atomic_store_n(&run.is_over, true, __ATOMIC_RELEASE);
	for (u32 i = 0; i < run.nr_cpus; i++)
		pthread_join(threads[i], NULL);
	fake_cpu = 0;
	random_check_all();
	unload(false);
	sl_core_exit();
	CHECK(!fake.alloc_bytes, "%llu bytes were not given back", fake.alloc_bytes);
	random_report();
	return 0;
}
