/* SPDX-License-Identifier: MIT */
/*
 * host.c - the host contract (include/schedlab/host.h) in the teaching kernel.
 *
 * A kick is a flag of the hart, and an interrupt if it is another one; memory is
 * pages. Locks and the clock are in host_inline.h. The functions stand in the
 * contract's order; compare hosts/sim/host.c and hosts/uthreads/host.c.
 *
 * Read next: sched.c, which calls the core in turn.
 */
#include <schedlab/sched.h>

#include "board.h"
#include "bootargs.h"
#include "print.h"
#include "proc.h"
#include "sched.h"

void sl_host_kick(s32 cpu)
{
	/* The first to ask has sent the interrupt as well. */
	if (__atomic_exchange_n(&cpus[cpu].resched, true, __ATOMIC_ACQ_REL))
		return;
	if (cpu != sl_host_cpu())
		sbi_send_ipi((u32)cpu);
}

/* Whole pages: the core asks for little else than tables, and not often. */
void *sl_host_alloc(u64 bytes)
{
	u64 pages = PGROUNDUP(bytes) / PGSIZE;
	void *mem = pages > 1 ? kalloc_pages(pages) : kalloc();

	return mem ? memset(mem, 0, pages * PGSIZE) : NULL;
}

void sl_host_free(void *mem, u64 bytes)
{
	if (mem)
		kfree_pages(mem, PGROUNDUP(bytes) / PGSIZE);
}

static u64 random_state;

void host_init(void)
{
	random_state = bootarg_u64("seed", 1);
}

/* splitmix64 (Steele, Lea and Flood 2014), its upper half. */
u32 sl_host_random(void)
{
	u64 z;

	z = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)((z ^ (z >> 31)) >> 32);
}

struct sl_task *sl_host_task(s32 pid)
{
	struct proc *p = pid > 0 ? proc_find(pid) : NULL;

	return p && smp_load_acquire(&p->task.is_attached) ? &p->task : NULL;
}

static void timers_fire(struct timer *timer, void *arg)
{
	u32 was = overhead_enter(OVERHEAD_SCHED);

	(void)timer;
	(void)arg;
	sl_timers_run();
	overhead_leave(was);
}

void sl_host_set_timer(u64 at_ns, bool is_pinned)
{
	static struct timer for_any, pinned[NCPU];

	/* Each is put into the heap of the hart that starts it. */
	timer_start(is_pinned ? &pinned[sl_host_cpu()] : &for_any, at_ns, timers_fire, NULL);
}

void sl_host_print(const char *line)
{
	if (!lab_print(line))
		printk("%s\n", line);
}

void sl_host_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	printk("policy '%s' has ended: %s: %s; the built-in FIFO goes on\n", sl_report().policy,
	       info->reason, info->msg);
	lab_policy_failed(info, pid);
}

void sl_host_panic(const char *file, int line, const char *what)
{
	panic("%s:%d: assertion failed: %s", file, line, what);
}
