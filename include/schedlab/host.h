/* SPDX-License-Identifier: MIT */
/*
 * host.h - what the core asks of the machine under it.
 *
 * The core never reads a clock, allocates memory or takes an OS lock by
 * itself: it calls these functions. hosts/sim, hosts/uthreads and hosts/kernel
 * implement them, each in its own host.c; tests/core/fake_host.c implements
 * them for unit tests. What must be inline to be fast (locks, clock, current
 * CPU, atomics, records) is in the host's host_inline.h, which this file
 * includes from the include path:
 *
 *	sl_lock_t, sl_lock_init(), sl_lock(), sl_unlock()
 *	u64  sl_host_now_ns(void)     time since the host started; never backward
 *	s32  sl_host_cpu(void)        the CPU this code runs on
 *	void sl_host_relax(void)      one turn of a busy wait
 *	bool sl_bit_test_and_set(u64 *words, u32 bit)      atomic where hosts
 *	bool sl_bit_test_and_clear(u64 *words, u32 bit)    have several CPUs
 *	bool sl_cas_u64(u64 *at, u64 old, u64 new)         the same
 *	void sl_host_fence(void)      full memory fence; a macro, may be absent
 *	READ_ONCE(), smp_load_acquire() and their like, where a plain access will do
 *	void sl_host_record(kind, task, cpu, flags, arg)   see record.h; may drop
 *	void sl_host_slice_changed(t)   a running task's slice was set by hand
 *	u64  sl_host_stolen_ns(t, ran_ns)  of the last @ran_ns of task t's CPU, what
 *		the machine below gave to other processes (steal time); asked once for each
 *
 * What a host owes the core: while a CPU is inside the core it is neither
 * preempted nor interrupted by anything that calls the core on that CPU; a
 * task that sl_schedule() returned is run until the next sl_schedule() of that
 * CPU; sl_switched() is called once the old task's stack is out of use; the
 * memory of a task that ended stays one, see task.h.
 *
 * Going idle. When sl_schedule() has returned NULL (and sl_switched() has been
 * called, if a task was left), a CPU sleeps until it is kicked. A kick that came while
 * it was in sl_schedule(), or comes at any time after, ends the sleep or keeps it from
 * beginning. An interrupt alone does not make an idle CPU call sl_schedule(): on Linux
 * it would not, and a policy that forgets a kick has to be seen to (S5).
 *
 * Read next: sched.h, what a host calls in turn.
 */
#ifndef SCHEDLAB_HOST_H
#define SCHEDLAB_HOST_H

#include <scx/types.h>
#include <schedlab/compiler.h>

#include <host_inline.h>
#include <schedlab/record.h>
#include <schedlab/task.h>

/*
 * What a policy is told of the time. A host whose clock moves while it schedules
 * gives it another reading, which does not count as the time of what follows.
 */
#ifndef sl_host_policy_now_ns
#define sl_host_policy_now_ns() sl_host_now_ns()
#endif

/*
 * A reading of sl_host_now_ns() as the policy's clock has it, where they differ: a
 * policy may be shown a machine whose time stands still while another process has it.
 */
#ifndef sl_host_policy_time_ns
#define sl_host_policy_time_ns(ns) (ns)
#endif

/* S34: to a policy the machine has been up for an hour when the host starts: no time is near 0, as on Linux. */
#define SL_UPTIME_NS 3600000000000ULL

/* How far this CPU's clock is ahead, where those of CPUs differ: scx_bpf_now() is read from it. */
#ifndef sl_host_clock_ahead_ns
#define sl_host_clock_ahead_ns() 0
#endif

/*
 * This CPU is about to write there, or all over a task, whichever CPU wrote last. A host with
 * caches may fetch it; @t may be NULL.
 */
#ifndef sl_host_prefetch
#define sl_host_prefetch(at) ((void)(at))
#define sl_host_prefetch_task(t) ((void)0)
#endif

/* The first of a queue of @nr tasks, whose lock is held: it will run soon, the others later. */
#ifndef sl_host_prefetch_queue
#define sl_host_prefetch_queue(first, nr) ((void)0)
#endif

/*
 * The next task of this CPU begins when @cpu, which was kicked, has called sl_schedule(). A
 * host that has no such thing refuses SCX_KICK_WAIT.
 */
#ifdef sl_host_wait_for
#define SL_HOST_CAN_WAIT 1
#else
#define SL_HOST_CAN_WAIT 0
#define sl_host_wait_for(cpu) ((void)(cpu))
#endif

/*
 * A callback is about to take @lock of the policy, whose holder is CPU *@holder - 1, or has
 * dropped it. Return: whether it will never be free, as a host may find that has all CPUs.
 */
#ifndef sl_host_policy_lock
#define sl_host_policy_lock(holder, lock, caller) ((void)(holder), (void)(lock), (void)(caller), false)
#define sl_host_policy_unlock(holder) ((void)(holder))
#endif

/*
 * A callback begins, with these arguments after those of SL_CALL(); it has returned @value, or
 * nothing; and what is done within it, as for printf: @kind is one word, @t the task or NULL.
 * Only a host that shows them evaluates any of it.
 */
#ifndef sl_host_callback_begins
#define sl_host_callback_begins(...) ((void)0)
#define sl_host_callback_ends(callback) ((void)0)
#define sl_host_callback_returns(callback, value) ((void)0)
#define sl_host_does(kind, t, ...) ((void)0)
#endif

/*
 * How fast a CPU is beside the fastest one at its highest clock frequency, and its frequency,
 * as parts of SCX_CPUPERF_ONE. A host without such differences ignores what is asked for.
 */
#ifndef sl_host_capacity
#define sl_host_capacity(cpu) ((void)(cpu), SCX_CPUPERF_ONE)
#define sl_host_frequency(cpu) ((void)(cpu), SCX_CPUPERF_ONE)
#define sl_host_set_frequency(cpu, to) ((void)(cpu), (void)(to))
#endif

/* CPU time of tasks on a CPU until now; only a host on which a policy's user half runs has it. */
#ifndef sl_host_user_ns
#define sl_host_user_ns(cpu) ((void)(cpu), 0ULL)
#endif

/* Without stacks (a task is data) nothing has to wait until one is left. */
#ifndef SL_HOST_HAS_STACKS
#define SL_HOST_HAS_STACKS 1
#endif

#ifndef sl_host_fence
#define sl_host_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/*
 * Make @cpu call sl_schedule() soon: from its idle loop, or by interrupting its
 * task. @cpu may be the caller's own. Kicking twice is the same as once.
 * Context: any; locks of the core may be held; must not re-enter the core.
 */
void sl_host_kick(s32 cpu);

/*
 * Zeroed memory, aligned to 64 bytes, or NULL. Called at start and while a
 * policy is loaded, never while it schedules.
 */
void *sl_host_alloc(u64 bytes);
void sl_host_free(void *mem, u64 bytes);

/* A random number; the same sequence for the same seed. */
u32 sl_host_random(void);

/* The attached task with this pid, or NULL. */
struct sl_task *sl_host_task(s32 pid);

/*
 * Call sl_timers_run() at or after @at_ns of the policy's clock, on some CPU or, if it
 * @is_pinned, on this one: a CPU has a time for itself beside that for all, and a later
 * call replaces its own kind. Without a policy there is nothing to be called for.
 */
void sl_host_set_timer(u64 at_ns, bool is_pinned);

/* One line of text for a person: a policy's printk, a dump. No newline. */
void sl_host_print(const char *line);

/* The policy has failed: @info lives until another one is loaded. Called once. */
void sl_host_policy_failed(const struct scx_exit_info *info, s32 pid);

/* A bug of the project: print and stop. */
_Noreturn sl_cold void sl_host_panic(const char *file, int line, const char *what);

/* Always on, in every build: one condition each. */
#define SL_ASSERT(cond)							\
	do {								\
		if (__builtin_expect(!(cond), 0))			\
			sl_host_panic(__FILE__, __LINE__, #cond);	\
	} while (0)

#endif
