/* SPDX-License-Identifier: MIT */
/*
 * timer.c - timers, the tick, and the interrupt that serves both.
 *
 * Each hart has a pairing heap (Fredman, Sedgewick, Sleator and Tarjan 1986):
 * starting a timer is O(1), taking the earliest O(log n) amortised. Timers for
 * the same time go off in the order they were started.
 *
 *	interrupt -> timers that are due -> tick, if a process runs here
 *	          -> set the clock to whatever comes next
 *
 * Must stay true: no function of a timer is called with a lock held; the lock of
 * a heap is a leaf, taken inside the core's locks too.
 *
 * Read next: sched.c, what follows from a tick.
 */
#include <schedlab/host.h>

#include "timer.h"

#include "board.h"
#include "bootargs.h"
#include "print.h"
#include "proc.h"
#include "sched.h"

#define NEVER (~0ULL)
#define BEAT_NS 10000000000ULL

u64 tick_ns;
u64 clock_step_ns;

static bool is_earlier(const struct timer *a, const struct timer *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->seq < b->seq);
}

/* Two heaps become one. Either may be NULL; neither has siblings. */
static struct timer *merge(struct timer *a, struct timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (is_earlier(b, a)) {
		struct timer *swap = a;

		a = b;
		b = swap;
	}
	b->next = a->child;
	b->prev = a;
	if (a->child)
		a->child->prev = b;
	a->child = b;
	a->next = NULL;
	a->prev = NULL;
	return a;
}

/* Siblings become one heap: in pairs from the left, then from the right. */
static struct timer *merge_siblings(struct timer *first)
{
	struct timer *pairs = NULL;
	struct timer *all = NULL;

	while (first) {
		struct timer *a = first;
		struct timer *b = a->next;
		struct timer *pair;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		pair = merge(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		pair->prev = NULL;
		all = merge(all, pair);
	}
	return all;
}

/* Context: the heap's lock is held, @t is in it. */
static void take_out(struct timers *heap, struct timer *t)
{
	struct timer *children = merge_siblings(t->child);

	t->child = NULL;
	if (heap->first == t) {
		heap->first = children;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		heap->first = merge(heap->first, children);
	}
	t->next = NULL;
	t->prev = NULL;
	__atomic_store_n(&t->cpu, NULL, __ATOMIC_RELEASE);
}

/* Set this hart's clock to @at_ns, or leave it if it is set to that. */
static void arm(struct cpu *c, u64 at_ns)
{
	if (at_ns == c->timers.armed_ns)
		return;
	c->timers.armed_ns = at_ns;
	sbi_set_timer(at_ns > NEVER / 2 ? NEVER : (at_ns + clock_step_ns - 1) / clock_step_ns);
}

/* Context: interrupts off. */
static void arm_next(struct cpu *c)
{
	u64 at_ns = c->proc == &c->idle ? NEVER : c->next_tick_ns;

	acquire(&c->timers.lock);
	if (c->timers.first && c->timers.first->at_ns < at_ns)
		at_ns = c->timers.first->at_ns;
	arm(c, at_ns);
	release(&c->timers.lock);
}

void timer_start(struct timer *timer, u64 at_ns, timer_fn fn, void *arg)
{
	struct cpu *c;

	timer_stop(timer);
	push_off();
	c = mycpu();
	acquire(&c->timers.lock);
	timer->at_ns = at_ns;
	timer->seq = ++c->timers.seq;
	timer->fn = fn;
	timer->arg = arg;
	timer->cpu = c;
	timer->child = NULL;
	c->timers.first = merge(c->timers.first, timer);
	if (at_ns < c->timers.armed_ns)
		arm(c, at_ns);
	release(&c->timers.lock);
	pop_off();
}

bool timer_stop(struct timer *timer)
{
	struct cpu *c;

	/* It may be started or stopped meanwhile: look again under the lock. */
	while ((c = __atomic_load_n(&timer->cpu, __ATOMIC_ACQUIRE))) {
		acquire(&c->timers.lock);
		if (timer->cpu == c) {
			take_out(&c->timers, timer);
			release(&c->timers.lock);
			return true;
		}
		release(&c->timers.lock);
	}
	return false;
}

/*
 * Call what is due. A timer that starts itself again for now waits its turn. A first look
 * without the lock: other harts only take timers out, and arm_next() looks again.
 */
static void run_due(struct cpu *c)
{
	u64 now = now_ns();

	for (;;) {
		struct timer *t = READ_ONCE(c->timers.first);

		if (!t || READ_ONCE(t->at_ns) > now)
			return;
		acquire(&c->timers.lock);
		t = c->timers.first;
		if (!t || t->at_ns > now) {
			release(&c->timers.lock);
			return;
		}
		take_out(&c->timers, t);
		release(&c->timers.lock);
		t->fn(t, t->arg);
	}
}

static void tick(struct cpu *c)
{
	u64 now = now_ns();
	u32 was;

	if (c->proc == &c->idle || now < c->next_tick_ns)
		return;
	c->next_tick_ns = now - now % tick_ns + tick_ns;
	was = overhead_enter(OVERHEAD_SCHED);
	if (sched_tick())
		__atomic_store_n(&c->resched, true, __ATOMIC_RELAXED);
	overhead_leave(was);
}

void timer_interrupt(void)
{
	struct cpu *c = mycpu();

	lab_clock_hold(c->timers.armed_ns);
	/* It is pending until the clock is set anew. */
	c->timers.armed_ns = NEVER - 1;
	run_due(c);
	tick(c);
	lab_acknowledge(c);
	arm_next(c);
}

void timer_arm_tick(struct cpu *c)
{
	u64 now;

	if (c->proc != &c->idle) {
		now = now_ns();
		if (c->next_tick_ns <= now)
			c->next_tick_ns = now - now % tick_ns + tick_ns;
	}
	arm_next(c);
}

/*
 * An emulator that counts instructions sets its clock to the next timer when all
 * harts wait. Without one it would be the end of time, and no key typed would count.
 */
static void beat(struct timer *t, void *arg)
{
	timer_start(t, now_ns() + BEAT_NS, beat, arg);
}

void timers_init(void)
{
	static struct timer beats;

	tick_ns = bootarg_u64("tick_ns", 10000000);
	if (tick_ns < 10000)
		panic("tick_ns=%llu is less than 10000", tick_ns);
	for (u32 i = 0; i < nr_cpus; i++) {
		initlock(&cpus[i].timers.lock, "timers");
		cpus[i].timers.armed_ns = NEVER;
	}
	beat(&beats, NULL);
}
