/* SPDX-License-Identifier: MIT */
/*
 * preempt.c - timers, kicks and signals: a thread makes way without being asked.
 *
 * Each kernel thread has one timer, set for the first thing that may be due:
 * the end of the running thread's slice, or a sleeper's time. A switch leaves it
 * alone unless it comes too late. So threads that give way by themselves make no
 * system call, and an idle CPU gets no signal.
 *
 *	signal, on the thread's own stack
 *	  count > 0: in the library or the core. ut_enable() will see `pending`
 *	  in code that may hold a lock of the C library (code.c): again in a moment
 *	  with a lock of pthreads (locks.c): pthread_mutex_unlock() will see `pending`
 *	  otherwise: tick, and if the core says so, switch from here; the thread
 *	     comes back here when its turn has come, and returns from the signal
 *
 * The signal is blocked while its handler runs, so that handlers never nest, however
 * long the kernel, a tracer or an emulator takes for one, and so are the program's own
 * signals. A thread that a handler has switched to gets its mask back by returning from
 * its own handler, or else as it leaves the library.
 *
 * Read next: docs/design/0004-uthreads.md, why it is safe.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "ut.h"

#define RETRY_NS 50000
#define RETRY_NS_MAX 10000000
#define RETRIES_MAX 10
#define BEAT_S 1		/* of CPU time: a look at whether the policy returns */
#define KERNEL_SIGSET_BYTES 8	/* of a sigset_t; the rest the kernel never fills */

u64 ut_tick_late_ns;

static pid_t process;
static struct sigaction old_action; /* of the program, from before */

static uintptr_t pc_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#else
	return (uintptr_t)context->uc_mcontext.__gregs[REG_PC];
#endif
}

/* ---- ticks -------------------------------------------------------------------- */

/*
 * The last tick of @cpu at or before @t_ns. CPUs have theirs one after the other:
 * at the same instant, their signals would wait for one lock of the kernel.
 */
static u64 tick_before(const struct ut_cpu *cpu, u64 t_ns)
{
	u64 shift_ns = ut.tick_ns * (u64)cpu->id / ut.nr_cpus;

	if (t_ns < shift_ns)
		return 0;
	return (t_ns - shift_ns) / ut.tick_ns * ut.tick_ns + shift_ns;
}

/* S15: the tick that may end the running thread's turn; UT_NEVER. */
static u64 tick_due_ns(const struct ut_cpu *cpu)
{
	const struct sl_task *t = &cpu->curr->core;
	u64 slice_ns = sl_slice(t);
	u64 late_ns = slice_ns < ut_tick_late_ns ? slice_ns : ut_tick_late_ns;

	if (READ_ONCE(ut.has_ticks))
		return tick_before(cpu, cpu->ticked_ns) + ut.tick_ns;
	if (slice_ns > UT_NEVER / 8)
		return UT_NEVER;
	return tick_before(cpu, READ_ONCE(t->exec_start_ns) + slice_ns - late_ns - 1) + ut.tick_ns;
}

static void note_armed(struct ut_kthread *k, u64 at_ns)
{
	k->armed_ns = at_ns;
	k->armed_floor_ns = at_ns == UT_NEVER ? UT_NEVER : at_ns - ut.tick_ns + ut_tick_late_ns;
}

static void set_timer(struct ut_cpu *cpu, u64 at_ns)
{
	u64 now_ns = sl_host_now_ns();
	u64 ns = at_ns > now_ns ? at_ns - now_ns : 1;
	struct itimerspec spec = {
		.it_value = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) },
	};

	note_armed(cpu->k, now_ns + ns);
	timer_settime(cpu->k->timer, 0, &spec, NULL);
}

/* It has gone off, or is to be set anew: what may be due is looked at. */
static void note_timer(struct ut_kthread *k)
{
	note_armed(k, UT_NEVER);
	__atomic_fetch_or(&__atomic_load_n(&k->cpu, __ATOMIC_RELAXED)->pending, UT_PENDING_TIMER,
			  __ATOMIC_RELAXED);
}

/* Set the timer for the first thing that is due; earlier it may stay. */
void ut_timer_arm(struct ut_cpu *cpu)
{
	u64 at_ns = ut_timers_first_ns(cpu);
	u64 tick_ns = cpu->curr ? tick_due_ns(cpu) : UT_NEVER;

	if (tick_ns < at_ns)
		at_ns = tick_ns;
	if (at_ns < cpu->k->armed_ns)
		set_timer(cpu, at_ns);
	else if (cpu->k->armed_floor_ns == UT_NEVER)
		cpu->k->armed_floor_ns--;
}

/*
 * Charge the running thread between two ticks. A tick that is due is then this one:
 * what is charged is no longer in tick_due_ns(), which would name the next tick, time
 * and again. Context: preemption disabled.
 */
void ut_charge(struct ut_cpu *cpu, u64 now_ns)
{
	struct sl_task *t = &cpu->curr->core;
	bool is_due = now_ns >= tick_due_ns(cpu);

	sl_task_charge(t, now_ns);
	if (is_due && sl_slice(t) <= ut_tick_late_ns && !READ_ONCE(ut.has_ticks)) {
		sl_task_set_slice(t, 0);
		ut_ring(cpu, UT_PENDING_KICK);
	}
}

/* Return: whether the running thread has to make way. */
static bool tick(struct ut_cpu *cpu)
{
	u64 now_ns = cpu->hot.now_ns;

	if (now_ns < tick_due_ns(cpu))
		return false;
	cpu->ticked_ns = now_ns;
	return ut_tick(cpu, now_ns);
}

/**
 * ut_interrupt - do what is pending on this CPU
 *
 * Context: preemption disabled, no lock held.
 * Return: whether the CPU has to call the core.
 */
bool ut_interrupt(struct ut_cpu *cpu)
{
	u32 pending;
	bool must_schedule;

	if (!READ_ONCE(cpu->pending))
		return false;
	pending = __atomic_exchange_n(&cpu->pending, 0, __ATOMIC_SEQ_CST);
	if (smp_load_acquire(&ut.is_ending) && cpu->curr)
		ut_abandon(cpu);
	if (pending & UT_PENDING_REMOTE)
		ut_io_finish(cpu);
	must_schedule = pending & UT_PENDING_KICK;
	if (pending & UT_PENDING_TIMER) {
		ut_timers_run(cpu);
		if (cpu->curr && tick(cpu))
			must_schedule = true;
	}
	if (cpu->curr) {
		if (unlikely(cpu->put_off))
			ut_give_kick(cpu);
		/* The next thread's slice: see ut_timer_check(). */
		if (!must_schedule)
			ut_timer_arm(cpu);
	}
	return must_schedule;
}

/* A handler has switched away from @k, to what does not return from one. */
void ut_unmask(struct ut_kthread *k)
{
	k->is_masked = false;
	pthread_sigmask(SIG_SETMASK, &k->mask, NULL);
}

/*
 * The end of ut_enable(): the count is zero, and something is pending. A thread with a
 * lock of pthreads is left alone until it has unlocked it.
 */
void ut_handle_pending(void)
{
	do {
		/* Signals that waited begin here; the timer is set. */
		if (unlikely(ut_this_cpu()->k->is_masked))
			ut_unmask(ut_this_cpu()->k);
		if (ut_holds_locks(ut_this_cpu()))
			return;
		ut_count_up();
		if (ut_interrupt(ut_this_cpu()))
			ut_schedule(SL_WHY_RESCHED);
	} while (ut_count_down() && READ_ONCE(ut_this_cpu()->pending));
}

bool ut_is_forced(void)
{
	return ut.forced_points && !(sl_host_random() % ut.forced_points);
}

/* Perhaps the caller's slice is over, as if a tick had come just now. */
void ut_forced_point(void)
{
	struct ut_cpu *cpu = ut_this_cpu();

	if (ut_count() > 1 || !cpu->curr || !ut_is_forced())
		return;
	sl_task_set_slice(&cpu->curr->core, 0);
	ut_ring(cpu, UT_PENDING_KICK);
}

void ut_pause_for_others(void)
{
	if (ut.forced_points)
		usleep(100);
}

void ut_slice_changed(struct sl_task *t)
{
	ut_ring(&ut.cpus[READ_ONCE(t->cpu)], UT_PENDING_TIMER);
}

/* ---- signals ------------------------------------------------------------------ */

/* What compilers may not take for a constant, in this file neither. */
__attribute__((noinline)) int *ut_errno(void)
{
	__asm__ volatile("");
	return __errno_location();
}

/*
 * Returning from a signal brings back the alternate stack of the kernel thread
 * that took it, which may be another one.
 */
static void set_signal_stack(ucontext_t *context)
{
	sigaltstack(NULL, &context->uc_stack);
}

/*
 * Whether the program blocked signals, itself or by being in a handler of its own.
 * The kernel restores the mask, and what else a handler came with, on the kernel
 * thread where that handler returns: so the thread has to stay on this one.
 */
static bool has_own_mask(const struct ut_cpu *cpu, const ucontext_t *context)
{
	return memcmp(&context->uc_sigmask, &cpu->k->mask, KERNEL_SIGSET_BYTES);
}

/*
 * Registers often hold the remains of what the C library did, and look as if the
 * thread were bound; a moment later they do not. So it is tried again a few
 * times before a thread is believed to hold an address for good.
 *
 * Return: whether this is a moment to stop the thread.
 */
static bool is_good_moment(struct ut_cpu *cpu, const ucontext_t *context, bool *is_bound)
{
	*is_bound = false;
	if (!ut_code_may_stop(pc_of(context)))
		return false;
	if (has_own_mask(cpu, context))
		*is_bound = true;
	else if (ut_is_smp && !(ut.flags & UT_MIGRATE_PREEMPTED))
		*is_bound = ut_holds_tls(cpu, cpu->curr, context);
	if (!*is_bound || cpu->curr->core.is_bound || ++cpu->nr_retries > RETRIES_MAX) {
		cpu->nr_retries = 0;
		return true;
	}
	return false;
}

/*
 * When to try again, from now. Where a signal, its handler and the return take longer than
 * the retry, as under strace, the thread would get no instruction done in between: so
 * the retry is four times what the last signal was late.
 */
static u64 retry_ns(u64 late_ns)
{
	u64 ns = RETRY_NS + 4 * late_ns;

	return ns < RETRY_NS_MAX ? ns : RETRY_NS_MAX;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct ut_kthread *k = ut_kthread;
	struct ut_cpu *cpu;
	int saved_errno = errno;
	u64 now_ns, late_ns;
	bool is_bound;

	(void)signal;
	if (!k)
		return;
	/* If it is idle, it may be just getting another one. */
	cpu = __atomic_load_n(&k->cpu, __ATOMIC_RELAXED);
	/* While a beat is pending the kernel drops a kick, so the beat stands for that, too. */
	if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &k->beat)
		ut_fault_beat(cpu);
	ut_count_up();
	now_ns = ut_clock_ns();
	late_ns = now_ns > k->armed_ns ? now_ns - k->armed_ns : 0;
	/* Not every emulator says that it was the timer. */
	if (info->si_code == SI_TIMER || late_ns) {
		if (late_ns > k->late_ns_max)
			WRITE_ONCE(k->late_ns_max, late_ns);
		note_timer(k);
	}
	/* Not the outermost: the library is at work, or the idle loop. */
	if (!ut_count_down())
		goto out;
	if ((ut.flags & UT_NO_PREEMPTION) || !READ_ONCE(cpu->pending) || ut_holds_locks(cpu))
		goto out;
	if (!is_good_moment(cpu, context, &is_bound)) {
		if (now_ns + retry_ns(late_ns) < cpu->k->armed_ns)
			set_timer(cpu, ut_clock_ns() + retry_ns(late_ns));
		goto out;
	}
	/*
	 * Other threads are not to run with what this thread, or this handler, has
	 * blocked: see ut_unmask(). This one gets its mask back as the handler returns.
	 */
	k->is_masked = true;
	do {
		ut_count_up();
		if (ut_interrupt(ut_this_cpu()))
			ut_preempt_here(is_bound);
	} while (ut_count_down() && READ_ONCE(ut_this_cpu()->pending));
	if (ut_this_cpu()->k != k)
		set_signal_stack(context);
	ut_this_cpu()->k->is_masked = false;
out:
	errno = saved_errno;
}

void ut_preempt_send(const struct ut_kthread *to)
{
	syscall(SYS_tgkill, process, to->tid, ut.signal);
}

/* All but the library's, and those by which the processor says what is wrong here. */
static void set_signals_of_program(sigset_t *set)
{
	const int others[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };

	sigfillset(set);
	sigdelset(set, ut.signal);
	for (u32 i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		sigdelset(set, others[i]);
}

/* Return: 0 or -errno. Context: before any kernel thread runs a thread. */
int ut_preempt_init(void)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	ut_code_init();
	set_signals_of_program(&act.sa_mask);
	if (sigaction(ut.signal, &act, &old_action))
		return ut_fail(-errno, "signal %d cannot be used for preemption: %s", ut.signal,
			       strerror(errno));
	process = getpid();
	ut_fault_init();
	return 0;
}

void ut_preempt_exit(void)
{
	if (!process)
		return;
	ut_fault_exit();
	sigaction(ut.signal, &old_action, NULL);
	process = 0;
}

/* An idle CPU has no beat: it uses no CPU time. */
static bool start_beat(struct ut_cpu *cpu, struct sigevent event)
{
	struct itimerspec spec = { .it_interval = { BEAT_S, 0 }, .it_value = { BEAT_S, 0 } };

	event.sigev_value.sival_ptr = &cpu->k->beat;
	return !timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &cpu->k->beat) &&
	       !timer_settime(cpu->k->beat, 0, &spec, NULL);
}

/* Context: on @cpu's own kernel thread. Return: 0 or -errno. */
int ut_preempt_init_cpu(struct ut_cpu *cpu)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = ut.signal };
	sigset_t set;
	int err = ut_fault_init_cpu(cpu);

	if (err)
		return ut_fail(err, "no memory for a signal stack");
	event._sigev_un._tid = cpu->k->tid;
	sigemptyset(&set);
	sigaddset(&set, ut.signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &cpu->k->mask);
	ut_held_init_cpu(cpu);
	note_armed(cpu->k, UT_NEVER);
	cpu->k->has_beat = start_beat(cpu, event);
	cpu->k->has_timer = !timer_create(CLOCK_MONOTONIC, &event, &cpu->k->timer);
	return cpu->k->has_timer ? 0 : ut_fail(-errno, "timer_create: %s", strerror(errno));
}

void ut_preempt_exit_cpu(struct ut_cpu *cpu)
{
	if (cpu->k->has_beat)
		timer_delete(cpu->k->beat);
	if (cpu->k->has_timer)
		timer_delete(cpu->k->timer);
	cpu->k->has_timer = cpu->k->has_beat = false;
	ut_fault_exit_cpu(cpu);
}
