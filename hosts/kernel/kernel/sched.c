/* SPDX-License-Identifier: MIT */
/*
 * sched.c - the only file that asks the core what runs next, and switches to it.
 *
 * Four reasons bring a process here: it blocks, yields, ends, or resched was set
 * for its hart: by the tick, or by a kick. In each case the core chooses
 * (core/schedule.c), and this file goes to the chosen one's kernel stack. There
 * the one that was left is let go by sl_switched(): another hart may take it.
 *
 * Must stay true: interrupts are off from before sl_schedule() until after
 * sl_switched(), with exactly one push_off() of the process's own.
 *
 * Read next: swtch.S, wait.c, host.c.
 */
#include "sched.h"

#include "disk.h"
#include "print.h"
#include "timer.h"
#include "trap.h"
#include "vm.h"

/* The idle loop is no process, and has no pid. */
static bool is_idle(const struct proc *p)
{
	return !pid_of(p);
}

static void finish_switch(struct proc *prev);

/*
 * Leave @prev, go on in @next. Return: the process left, in the new one. All registers that
 * a called function would keep count as changed, so the compiler has saved those in use.
 */
static inline struct proc *swtch(struct proc *prev, struct proc *next)
{
	register struct proc *a0 asm("a0") = prev;
	register struct proc *a1 asm("a1") = next;
	register struct context *a2 asm("a2") = &prev->context;
	register struct context *a3 asm("a3") = &next->context;

	asm volatile("call swtch"
		     : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3)
		     :
		     : "memory", "ra", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5",
		       "t6", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11");
	return a0;
}

static void switch_to(struct proc *prev, struct proc *next)
{
	struct cpu *c = prev->cpu;

	SL_ASSERT(prev->nr_off == 1 && next->nr_off == 1);
	if (prev->uses_fp && (prev->frame->status & SSTATUS_FS) == SSTATUS_FS_DIRTY) {
		fp_save(&prev->fp);
		prev->frame->status ^= SSTATUS_FS_DIRTY ^ SSTATUS_FS_CLEAN;
	}
	next->cpu = c;
	c->proc = next;
	[[clang::always_inline]] finish_switch(swtch(prev, next));
}

void schedule(enum sl_why why)
{
	struct proc *p = myproc();
	struct cpu *c = p->cpu;
	u32 was = overhead_enter(OVERHEAD_SCHED);
	struct sl_task *chosen;
	struct proc *next;

	SL_ASSERT(p->nr_off == 1);
	/* Before the core looks: a later kick wants another look. */
	__atomic_exchange_n(&c->resched, false, __ATOMIC_SEQ_CST);
	[[clang::always_inline]] chosen = sl_schedule(c->core, why, sl_host_now_ns());
	next = chosen ? proc_of(chosen) : &c->idle;
	if (next != p) {
		overhead_enter(OVERHEAD_SWITCH);
		switch_to(p, next);
	}
	overhead_leave(was);
}

void sched_exit(void)
{
	schedule(SL_WHY_EXIT);
	panic("a process runs that has ended");
}

/* On the new stack: @prev has been left, and this process runs now. */
static void finish_switch(struct proc *prev)
{
	struct proc *p = myproc();
	struct cpu *c = p->cpu;

	vm_load(p->pages);
	if (p->uses_fp)
		fp_restore(&p->fp);
	if (is_idle(prev) != is_idle(p))
		timer_arm_tick(c);
	overhead_enter(OVERHEAD_SCHED);
	/* The policy hears of an end at once, not when the parent waits for it. */
	if (!is_idle(prev) && prev->state == PROC_ENDED)
		sl_task_detach(&prev->task);
	[[clang::always_inline]] sl_switched(c->core, is_idle(prev) ? NULL : &prev->task,
					     sl_host_now_ns());
}

struct frame *sched_begin(struct proc *prev)
{
	struct proc *p = myproc();
	void (*start)(void) = p->start;

	finish_switch(prev);
	overhead_leave(OVERHEAD_KERNEL);
	if (start) {
		p->start = NULL;
		pop_off();
		start();
	} else {
		p->nr_off = 0; /* and interrupts stay off until it is out */
	}
	return trap_leave();
}

/*
 * Where QEMU counts instructions, an idle machine's clock jumps to the next timer:
 * the seconds to the watchdog would pass while the disk reads a block.
 */
static bool may_sleep(void)
{
	return nr_cpus > 1 || !disk_is_busy();
}

/*
 * An idle hart asks the core when it was kicked; an interrupt alone is no reason. One
 * that is pending ends wfi even while interrupts are off, so none is slept through.
 */
void idle_loop(void)
{
	struct cpu *c = mycpu();

	push_off();
	overhead_enter(OVERHEAD_IDLE);
	for (;;) {
		while (__atomic_load_n(&c->resched, __ATOMIC_RELAXED))
			schedule(SL_WHY_RESCHED);
		lab_clock_go_on();
		if (!__atomic_load_n(&c->resched, __ATOMIC_RELAXED) && may_sleep())
			asm volatile("wfi" : : : "memory");
		csr_set(sstatus, SSTATUS_SIE);
		csr_clear(sstatus, SSTATUS_SIE);
	}
}

void sched_prepare_block(struct proc *p, const char *what)
{
	u32 was = overhead_enter(OVERHEAD_SCHED);

	WRITE_ONCE(p->task.wait_for, what);
	sl_task_prepare_block(mycpu()->core, &p->task);
	overhead_leave(was);
}

/* The process that wakes; 0 in an interrupt or on an idle hart: none in particular. */
static s32 waker(void)
{
	struct cpu *c = mycpu();

	return c->in_interrupt ? 0 : pid_of(c->proc);
}

void sched_wake(struct proc *p, u64 flags)
{
	u32 was = overhead_enter(OVERHEAD_SCHED);

	sl_task_wake(mycpu()->core, &p->task, flags, waker());
	overhead_leave(was);
}

void sched_start(struct proc *p)
{
	u32 was = overhead_enter(OVERHEAD_SCHED);

	sl_task_attach(&p->task, p->parent ? &p->parent->task : NULL);
	sl_task_start(mycpu()->core, &p->task, SCX_WAKE_FORK, p->parent ? pid_of(p->parent) : 0);
	overhead_leave(was);
}

void sched_init(void)
{
	struct sl_config config = { .nr_cpus = nr_cpus, .tasks_max = procs_max, .tick_ns = tick_ns };

	lab_topology(&config);
	host_init();
	if (sl_core_init(&config))
		panic("no memory for %u processes; make procs_max less", procs_max);
	for (u32 i = 0; i < nr_cpus; i++)
		cpus[i].core = sl_core_cpu((s32)i);
}
