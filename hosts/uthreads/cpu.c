/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - a kernel thread plays a CPU: its start, its idle loop, its end.
 *
 *	          +--> look at what is pending, ask the core
 *	          |      |            \__ a thread: run it until it leaves no
 *	          |    no thread           other one to run
 *	          |      |
 *	          |    spin a moment: to be woken takes the kernel 20 us and more
 *	          |      |
 *	          +--- sleep until a wake-up, or until a thread's time has come
 *
 * The idle loop of CPU 0 has a stack of its own, since the stack of its kernel
 * thread is the first user thread's; the others use their kernel thread's.
 *
 * Read next: preempt.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ut.h"

#define IDLE_STACK_BYTES 65536
#define SPIN_NS 10000
#define LOOK_NS 100000

/* C++'s runtime, if the program has one. */
__attribute__((weak)) void *__cxa_get_globals(void);

/**
 * ut_ring - want something of a CPU
 * @to: any CPU, the caller's own too
 * @pending: UT_PENDING_*
 *
 * A CPU looks at `pending` when preemption is enabled again, and in its idle
 * loop before it sleeps. So the caller's own needs no more; one that sleeps needs
 * its bell rung; one that runs a thread, a signal.
 *
 * Context: any, locks may be held.
 */
void ut_ring(struct ut_cpu *to, u32 pending)
{
	struct ut_kthread *k;
	bool is_put_off;
	u32 was;

	if (to == ut_this_cpu()) {
		__atomic_fetch_or(&to->pending, pending, __ATOMIC_RELAXED);
		return;
	}
	/* Said first: a kernel thread that spins may see `pending` at once. */
	is_put_off = pending == UT_PENDING_KICK && ut_put_off_kick(to);
	if (!is_put_off)
		WRITE_ONCE(to->put_off_ns, 0);
	was = __atomic_fetch_or(&to->pending, pending, __ATOMIC_SEQ_CST);
	k = __atomic_load_n(&to->k, __ATOMIC_SEQ_CST);
	switch (__atomic_load_n(&k->doorbell, __ATOMIC_SEQ_CST)) {
	case UT_BELL_SPINS:
	case UT_BELL_ASLEEP:
	case UT_BELL_TAKEN:
		ut_forced_pause();
		if (!is_put_off || !ut_stays_put_off(k)) {
			WRITE_ONCE(to->put_off_ns, 0);
			ut_wake_kthread(k);
		}
		break;
	case UT_BELL_OFF:
		/* If it was wanted before, its signal is on the way. */
		if (!was && !(ut.flags & UT_NO_PREEMPTION))
			ut_preempt_send(k);
		break;
	}
}

/* Sleep until @until_ns or the bell. */
static void sleep_in_kernel(struct ut_kthread *k, u64 until_ns)
{
	struct timespec at;
	u64 now_ns, ns;

	now_ns = ut_clock_ns();
	clock_gettime(CLOCK_MONOTONIC, &at);
	ns = until_ns > now_ns ? until_ns - now_ns : 0;
	/* A year is as good as no limit, and its sum fits. */
	if (ns > 365 * 86400 * 1000000000ULL)
		ns = 365 * 86400 * 1000000000ULL;
	ns += (u64)at.tv_nsec;
	at.tv_sec += (time_t)(ns / 1000000000);
	at.tv_nsec = (long)(ns % 1000000000);
	syscall(SYS_futex, &k->doorbell, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, UT_BELL_ASLEEP,
		&at, NULL, FUTEX_BITSET_MATCH_ANY);
}

/*
 * Look for a moment, without the kernel. The kernel thread may be handed another CPU
 * meanwhile, so nothing is written through ut_this_cpu().
 */
static struct ut_cpu *spin(struct ut_kthread *k, u64 until_ns)
{
	u64 now_ns = ut_clock_ns(), last_ns, longest_ns = 0;
	struct ut_cpu *cpu;

	WRITE_ONCE(k->until_ns, 0);
	__atomic_store_n(&k->doorbell, UT_BELL_SPINS, __ATOMIC_SEQ_CST);
	do {
		ut_pause();
		last_ns = now_ns;
		now_ns = ut_clock_ns();
		/* Another process had this CPU between the two. */
		if (now_ns - last_ns > longest_ns)
			longest_ns = now_ns - last_ns;
	} while (!ut_is_wanted(__atomic_load_n(&k->cpu, __ATOMIC_ACQUIRE)) && now_ns < until_ns);
	cpu = ut_unpark(k);
	ut_note_away(cpu, longest_ns);
	return cpu;
}

/*
 * Sleep until @until_ns or the bell; for LOOK_NS at most if there was something to do
 * since it last slept, or it was handed another CPU, or a kick is put off.
 */
static struct ut_cpu *doze(struct ut_kthread *k, u64 until_ns)
{
	u32 awake = UT_BELL_AWAKE, nr_active = READ_ONCE(k->nr_active);
	struct ut_cpu *cpu;
	bool is_rung;
	u64 woken_ns, now_ns;

	WRITE_ONCE(k->looks, nr_active != k->nr_active_seen || READ_ONCE(k->cpu->pending));
	k->nr_active_seen = nr_active;
	if (k->looks && until_ns > ut_clock_ns() + LOOK_NS)
		until_ns = ut_clock_ns() + LOOK_NS;
	WRITE_ONCE(k->until_ns, until_ns);
	if (!__atomic_compare_exchange_n(&k->doorbell, &awake, UT_BELL_ASLEEP, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return k->cpu;
	cpu = __atomic_load_n(&k->cpu, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&cpu->pending, __ATOMIC_SEQ_CST) || (k->looks && !ut_is_wanted(cpu)))
		sleep_in_kernel(k, until_ns);
	is_rung = __atomic_load_n(&k->doorbell, __ATOMIC_SEQ_CST) == UT_BELL_AWAKE;
	woken_ns = is_rung ? READ_ONCE(k->rung_ns) : until_ns;
	now_ns = ut_clock_ns();
	if (now_ns > woken_ns && !(k->looks && !is_rung))
		ut_note_away(ut_unpark(k), now_ns - woken_ns);
	return ut_unpark(k);
}

/*
 * No thread may run here. @may_spin: the last kick had brought one. Return: when something is pending, or due, on the CPU that
 * the kernel thread now plays.
 */
struct ut_cpu *ut_wait_for_work(struct ut_cpu *cpu, bool may_spin)
{
	struct ut_kthread *k = cpu->k;
	u64 now_ns = sl_host_now_ns();
	u64 first_ns = ut_timers_first_ns(cpu);

	ut_io_look();
	if (ut_is_smp && may_spin && !READ_ONCE(cpu->pending))
		cpu = spin(k, now_ns + SPIN_NS < first_ns ? now_ns + SPIN_NS : first_ns);
	for (;;) {
		first_ns = ut_timers_first_ns(cpu);
		if (sl_host_now_ns() >= first_ns)
			ut_ring(cpu, UT_PENDING_TIMER);
		if (ut_is_wanted(cpu))
			return cpu;
		ut_stolen_idle(cpu, sl_host_now_ns());
		cpu = doze(k, first_ns);
		ut_stolen_mark(cpu);
	}
}

/* The calling kernel thread is no CPU any more. */
void ut_cpu_leave(void)
{
	ut_tls = (struct ut_tls){ 0 };
	ut_kthread = NULL;
}

static void pin(struct ut_cpu *cpu)
{
	cpu_set_t allowed, one;
	s32 nr = cpu->id;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	nr %= CPU_COUNT(&allowed);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &allowed) || nr--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/* The calling kernel thread plays @cpu, and cannot be preempted. */
void ut_cpu_set_tls(struct ut_cpu *cpu)
{
	ut_tls = (struct ut_tls){
		.cpu = &cpu->hot, .preempt_count = 1, .cpu_idx = cpu->id, .core_cpu = cpu->core
	};
}

/* The calling kernel thread is @cpu's from now on; it cannot be preempted yet. */
void ut_cpu_enter(struct ut_cpu *cpu)
{
	ut_cpu_set_tls(cpu);
	ut_kthread = cpu->k;
	cpu->k->tid = (pid_t)syscall(SYS_gettid);
	pthread_getcpuclockid(pthread_self(), &cpu->k->clock);
	cpu->k->errno_at = &errno;
	cpu->only.bits[cpu->id / 64] = 1UL << cpu->id % 64;
	if (__cxa_get_globals)
		cpu->k->eh_globals = __cxa_get_globals();
	/* Or a sleeper is woken 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (ut.flags & UT_PIN_CPUS)
		pin(cpu);
}

/* The starter of the kernel threads waits here until each has reported its start. */
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready_cond = PTHREAD_COND_INITIALIZER;
static u32 nr_ready;
static int ready_err;
static bool is_open;  /* the gate behind which all begin at once */
static u64 opened_ns; /* when it was opened */

static void say_ready(int err)
{
	pthread_mutex_lock(&ready_lock);
	nr_ready++;
	if (err && !ready_err)
		ready_err = err;
	pthread_cond_broadcast(&ready_cond);
	while (!is_open)
		pthread_cond_wait(&ready_cond, &ready_lock);
	pthread_mutex_unlock(&ready_lock);
}

/* Kernel threads 1 and on begin their idle loops. */
void ut_cpus_begin(void)
{
	pthread_mutex_lock(&ready_lock);
	is_open = true;
	opened_ns = ut_clock_ns();
	pthread_cond_broadcast(&ready_cond);
	pthread_mutex_unlock(&ready_lock);
}

static void *kernel_thread(void *arg)
{
	struct ut_cpu *cpu = arg;
	int err;

	ut_cpu_enter(cpu);
	err = ut_preempt_init_cpu(cpu);
	if (!err)
		err = ut_stack_of_caller(&cpu->k->idle_stack);
	ut_sanitize_begin(&cpu->k->sanitized, true);
	say_ready(err);
	ut_note_away(cpu, ut_clock_ns() - opened_ns);
	if (!err)
		ut_idle_loop(cpu);
	ut_preempt_exit_cpu(ut_this_cpu());
	return NULL;
}

/* Have kernel threads 1 to @nr_started - 1 end. */
static void stop(u32 nr_started)
{
	smp_store_release(&ut.is_stopping, 1);
	ut_cpus_begin();
	for (u32 i = 0; i < nr_started; i++)
		ut_ring(&ut.cpus[i], UT_PENDING_KICK);
	for (u32 i = 1; i < nr_started; i++)
		pthread_join(ut.kthreads[i].pthread, NULL);
}

/*
 * Kernel threads 1 and on are made, and wait. Context: the calling kernel thread
 * is CPU 0 since ut_cpu_enter(). Return: 0; -errno, and then none is left.
 */
int ut_cpus_start(void)
{
	u32 nr_started = 1;
	int err = 0;

	nr_ready = 1;
	is_open = false;
	ready_err = ut_preempt_init_cpu(&ut.cpus[0]);
	for (; !ready_err && nr_started < ut.nr_cpus; nr_started++) {
		err = pthread_create(&ut.kthreads[nr_started].pthread, NULL, kernel_thread,
				     &ut.cpus[nr_started]);
		if (err)
			break;
	}
	pthread_mutex_lock(&ready_lock);
	while (nr_ready < nr_started)
		pthread_cond_wait(&ready_cond, &ready_lock);
	err = err ? -err : ready_err;
	pthread_mutex_unlock(&ready_lock);
	if (err)
		stop(nr_started);
	return err;
}

/* Context: CPU 0's kernel thread, when no thread is left. */
void ut_cpus_stop(void)
{
	if (ut.kthreads[0].has_timer)
		stop(ut.nr_cpus);
	ut_preempt_exit_cpu(ut.kthreads[0].cpu);
}

/* CPU 0 without a first thread: until the machine is told to stop. */
void ut_cpu_run(struct ut_cpu *cpu)
{
	ut_stack_of_caller(&cpu->k->idle_stack);
	ut_sanitize_begin(&cpu->k->sanitized, true);
	ut_idle_loop(cpu);
}

static void *idle_enter(void *arg)
{
	struct ut_cpu *cpu = arg;

	ut_sanitize_arrive(&cpu->k->sanitized);
	ut_start(ut.main, 0);
	ut_idle_loop(cpu);
	/* The first thread may have ended on another kernel thread. */
	while (!smp_load_acquire(&ut.main->has_ended))
		ut_relax();
	cpu = ut_this_cpu();
	/* main's own switch, which it comes back from, has nothing left to do. */
	cpu->left = NULL;
	ut_switch_sanitized(NULL, ut.main, cpu);
	__builtin_unreachable();
}

/*
 * Make the caller @t, the first thread: it goes to sleep here, CPU 0 begins its
 * idle loop, starts @t as any other, and sooner or later runs it.
 */
int ut_main_begin(struct ut_thread *t)
{
	struct ut_cpu *cpu = &ut.cpus[0];
	int err = ut_stack_alloc(&cpu->k->idle_stack, IDLE_STACK_BYTES);

	if (err)
		return err;
	ut_cpus_begin();
	cpu->k->idle_sp = ut_context_make(cpu->k->idle_stack.low + cpu->k->idle_stack.bytes,
					  idle_enter, cpu);
	ut_sanitize_begin(&t->sanitized, true);
	ut_sanitize_begin(&cpu->k->sanitized, false);
	ut_switch_sanitized(t, NULL, cpu);
	ut_finish_switch();
	return 0;
}

/* End @t as any other thread, then be CPU 0's kernel thread again. */
void ut_main_end(struct ut_thread *t)
{
	SL_ASSERT(t == ut.main);
	smp_store_release(&ut.is_stopping, 1);
	for (u32 i = 0; i < ut.nr_cpus; i++)
		ut_ring(&ut.cpus[i], UT_PENDING_KICK);
	ut_schedule(SL_WHY_EXIT);
	SL_ASSERT(ut_this_cpu()->k == &ut.kthreads[0]);
	ut_sanitize_end(&ut.kthreads[0].sanitized);
	ut_stack_free(&ut.kthreads[0].idle_stack);
}
