/* SPDX-License-Identifier: MIT */
/*
 * handover.c - a kernel thread that becomes idle plays the CPU it has just kicked.
 *
 * A thread that wakes another one often blocks at once: it starts a thread and joins it,
 * or sends and waits for the answer. The policy gives the woken thread to an idle CPU,
 * whose kernel thread is asleep. To wake it costs 5 to 30 us, and 2 us if it spins; and
 * then this one is idle. So the kick of an idle CPU is put off for a moment. If this
 * kernel thread becomes idle meanwhile, it takes over the other CPU, with what waits
 * there, and leaves its own one to the sleeping kernel thread:
 *
 *	kernel thread 1   CPU 0: wakes t on CPU 1, blocks | CPU 1: runs t
 *	kernel thread 2   CPU 1: idle, asleep             | CPU 0: idle, asleep
 *
 * The policy, the records and the threads see CPUs, and no difference: t was given to
 * CPU 1 and runs there. Otherwise the kick is given: when the kernel thread goes on with
 * another thread, kicks again, or has a tick; or the idle kernel thread finds it, which
 * spins for SPIN_NS and, while kicks are put off, looks each LOOK_NS. A waker that goes
 * on after all has cost LOOK_NS at most, and its CPU puts off no kick for a while, twice
 * as many each time.
 *
 * Only an idle kernel thread whose doorbell says so is handed a CPU; the one that takes
 * over has set it to TAKEN meanwhile. A kick that goes to the wrong kernel thread,
 * because the CPU has changed hands in between, wakes one that finds nothing; it is not
 * lost, since `pending` was set before, and the other one looks there after the change.
 *
 * Read next: cpu.c, the idle loop.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ut.h"

#define HOLD_NS 3000		/* a spinning kernel thread leaves a put-off kick alone */
#define PENALTY_MAX 15

__thread struct ut_kthread *ut_kthread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static bool is_parked(u32 bell)
{
	return bell == UT_BELL_SPINS || bell == UT_BELL_ASLEEP;
}

/* Context: any. It may be awake by itself, and run a thread: its bell is then OFF. */
void ut_wake_kthread(struct ut_kthread *k)
{
	u32 asleep = UT_BELL_ASLEEP;

	WRITE_ONCE(k->rung_ns, ut_clock_ns());
	if (__atomic_compare_exchange_n(&k->doorbell, &asleep, UT_BELL_AWAKE, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &k->doorbell, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/**
 * ut_put_off_kick - may the kick of a CPU wait for what its waker does next
 * @to: the CPU
 *
 * Return: whether it does, if its kernel thread is idle. Context: any.
 */
bool ut_put_off_kick(struct ut_cpu *to)
{
	struct ut_cpu *cpu = ut_this_cpu();

	if (!cpu || !cpu->curr || (ut.flags & UT_PIN_CPUS))
		return false;
	if (READ_ONCE(to->pending))
		return cpu->put_off == to && READ_ONCE(to->put_off_ns);
	/* The last one was put off for nothing: this waker goes on. */
	if (cpu->put_off)
		ut_give_kick(cpu);
	if (cpu->nr_direct) {
		cpu->nr_direct--;
		return false;
	}
	cpu->put_off = to;
	/* The core has just read the clock. */
	WRITE_ONCE(to->put_off_ns, cpu->hot.now_ns);
	return true;
}

/* @k is idle: will it look by itself, before long? */
bool ut_stays_put_off(struct ut_kthread *k)
{
	return __atomic_load_n(&k->doorbell, __ATOMIC_SEQ_CST) != UT_BELL_ASLEEP ||
	       READ_ONCE(k->looks);
}

static void give_kick(struct ut_cpu *cpu)
{
	struct ut_cpu *to = cpu->put_off;

	cpu->put_off = NULL;
	WRITE_ONCE(to->put_off_ns, 0);
	if (__atomic_load_n(&to->pending, __ATOMIC_SEQ_CST))
		ut_wake_kthread(__atomic_load_n(&to->k, __ATOMIC_SEQ_CST));
}

/* What was put off was put off for nothing: the waker goes on. Context: on @cpu. */
void ut_give_kick(struct ut_cpu *cpu)
{
	cpu->penalty = cpu->penalty < PENALTY_MAX ? 2 * cpu->penalty + 1 : PENALTY_MAX;
	cpu->nr_direct = cpu->penalty;
	give_kick(cpu);
}

static void exchange(struct ut_cpu *cpu, struct ut_cpu *to)
{
	struct ut_kthread *own = cpu->k, *other = to->k;

	to->hot.looked_ns = cpu->hot.looked_ns;
	WRITE_ONCE(to->put_off_ns, 0);
	WRITE_ONCE(other->nr_active, other->nr_active + 1);
	smp_store_release(&own->cpu, to);
	smp_store_release(&other->cpu, cpu);
	/* Before `pending` is looked at, in let_go(): its writing of the bell is a fence. */
	smp_store_release(&cpu->k, other);
	smp_store_release(&to->k, own);
	ut_cpu_set_tls(to);
}

/*
 * The bell of @other, which plays @cpu, is no longer TAKEN. What was wanted of @cpu
 * meanwhile may not have rung it, and a sleeper there may be due earlier.
 */
static void let_go(struct ut_kthread *other, struct ut_cpu *cpu, u32 bell)
{
	u64 until_ns = READ_ONCE(other->until_ns);

	__atomic_store_n(&other->doorbell, bell, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&cpu->pending, __ATOMIC_SEQ_CST) || ut_timers_first_ns(cpu) < until_ns)
		ut_wake_kthread(other);
}

/**
 * ut_take_over - play the CPU whose kick was put off
 * @cpu: the caller's, idle; nothing is to be done there
 *
 * Return: the CPU that the calling kernel thread plays from now on. If it is another
 * one, its clock is held until the next switch.
 */
struct ut_cpu *ut_take_over(struct ut_cpu *cpu)
{
	struct ut_cpu *to = cpu->put_off;
	struct ut_kthread *other;
	u32 bell;

	if (!to)
		return cpu;
	/* One that has just become idle will spin in a moment. */
	do {
		other = __atomic_load_n(&to->k, __ATOMIC_SEQ_CST);
		bell = __atomic_load_n(&other->doorbell, __ATOMIC_SEQ_CST);
	} while (bell == UT_BELL_AWAKE && READ_ONCE(to->pending) && !ut_is_wanted(to));
	if (smp_load_acquire(&ut.is_stopping) || cpu->nr_bound || READ_ONCE(to->nr_bound) ||
	    !READ_ONCE(to->pending) || !is_parked(bell) ||
	    !__atomic_compare_exchange_n(&other->doorbell, &bell, UT_BELL_TAKEN, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		give_kick(cpu);
		return cpu;
	}
	if (__atomic_load_n(&to->k, __ATOMIC_SEQ_CST) != other) {
		let_go(other, other->cpu, bell);
		give_kick(cpu);
		return cpu;
	}
	cpu->put_off = NULL;
	cpu->penalty = 0;
	/* It looks for a task at the time at which this one became idle. */
	if (to->hot.now_ns < cpu->hot.now_ns)
		to->hot.now_ns = cpu->hot.now_ns;
	to->hot.is_held = true;
	cpu->hot.is_held = false;
	exchange(cpu, to);
	let_go(other, cpu, bell);
	return to;
}

/**
 * ut_unpark - an idle kernel thread goes on
 * @k: the caller
 *
 * Return: the CPU that it plays, perhaps another one than before.
 */
struct ut_cpu *ut_unpark(struct ut_kthread *k)
{
	u32 bell = __atomic_load_n(&k->doorbell, __ATOMIC_SEQ_CST);

	while (bell == UT_BELL_TAKEN ||
	       (bell != UT_BELL_AWAKE &&
		!__atomic_compare_exchange_n(&k->doorbell, &bell, UT_BELL_AWAKE, false,
					     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))) {
		if (bell == UT_BELL_TAKEN) {
			ut_wait_turn();
			bell = __atomic_load_n(&k->doorbell, __ATOMIC_SEQ_CST);
		}
	}
	if (ut_this_cpu() != k->cpu)
		ut_cpu_set_tls(k->cpu);
	return k->cpu;
}

/* Is an idle CPU to look at what is pending, now? */
bool ut_is_wanted(struct ut_cpu *cpu)
{
	u64 put_off_ns = READ_ONCE(cpu->put_off_ns);

	return READ_ONCE(cpu->pending) &&
	       (!put_off_ns || (s64)(ut_clock_ns() - put_off_ns) >= HOLD_NS);
}
