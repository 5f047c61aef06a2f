/* SPDX-License-Identifier: MIT */
/*
 * trap.c - why the kernel was entered, and what is done about it.
 *
 *	from user mode:   system call | interrupt | fault -> mended, or killed
 *	from the kernel:  interrupt | fault in user_copy() -> -1 | panic
 *
 * After an interrupt either may lose the hart, the kernel too: interrupts are on
 * in it only while it holds no lock. Called by trap.S with interrupts off.
 *
 * Read next: syscall.c, timer.c.
 */
#include "trap.h"

#include "board.h"
#include "print.h"
#include "proc.h"
#include "sched.h"
#include "vm.h"

/* scause without its top bit */
enum interrupt {
	INTERRUPT_SOFTWARE = 1,
	INTERRUPT_TIMER = 5,
	INTERRUPT_DEVICE = 9,
};
enum exception {
	EXCEPTION_ILLEGAL = 2,
	EXCEPTION_SYSCALL = 8,
	EXCEPTION_STORE_PAGE = 15,
	NR_EXCEPTIONS,
};

static const char *const exceptions[NR_EXCEPTIONS] = {
	[0] = "misaligned instruction",	 [1] = "instruction access fault",
	[2] = "illegal instruction",	 [3] = "breakpoint",
	[4] = "misaligned load",	 [5] = "load access fault",
	[6] = "misaligned store",	 [7] = "store access fault",
	[12] = "instruction page fault", [13] = "load page fault",
	[15] = "store page fault",
};

static const char *exception_name(u64 cause)
{
	if (cause >= NR_EXCEPTIONS || !exceptions[cause])
		return "unknown exception";
	return exceptions[cause];
}

void trap_init_hart(void)
{
	csr_write(sie, SIE_SSIE | SIE_STIE | SIE_SEIE);
	/* The user may read cycle, time and instret. */
	csr_write(scounteren, 7);
	csr_clear(sstatus, SSTATUS_FS | SSTATUS_SUM | SSTATUS_SIE);
}

static __noinline void handle_interrupt(u64 cause)
{
	struct cpu *c = mycpu();

	c->in_interrupt = true;
	switch (cause & ~SCAUSE_INTERRUPT) {
	case INTERRUPT_SOFTWARE:
		/* A kick: resched is set already. Or another hart's panic. */
		csr_clear(sip, SIE_SSIE);
		if (has_panicked)
			park();
		break;
	case INTERRUPT_TIMER:
		timer_interrupt();
		break;
	case INTERRUPT_DEVICE:
		plic_interrupt();
		break;
	default:
		panic("unexpected interrupt %llu", cause & ~SCAUSE_INTERRUPT);
	}
	c->in_interrupt = false;
}

/* Floating point is off until a process first uses it. */
static bool turn_fp_on(struct proc *p)
{
	if (p->frame->status & SSTATUS_FS)
		return false;
	p->uses_fp = true;
	memset(&p->fp, 0, sizeof(p->fp));
	fp_restore(&p->fp);
	p->frame->status |= SSTATUS_FS_CLEAN;
	return true;
}

static __noinline void user_fault(struct proc *p, u64 cause)
{
	u64 value = csr_read(stval);
	const char *what = exception_name(cause);
	enum vm_verdict verdict = VM_FORBIDDEN;

	if (cause == EXCEPTION_STORE_PAGE)
		verdict = vm_fault(value);
	if (verdict == VM_MENDED || (cause == EXCEPTION_ILLEGAL && turn_fp_on(p)))
		return;
	if (verdict == VM_NO_MEMORY)
		what = "out of memory";
	printk("%s[%d]: %s at pc 0x%llx, address 0x%llx\n", name_of(p), pid_of(p), what,
	       p->frame->epc, value);
	proc_kill(p);
}

struct frame *trap_leave(void)
{
	struct proc *p = myproc();

	for (;;) {
		csr_clear(sstatus, SSTATUS_SIE);
		if (__builtin_expect(killed(p), 0)) {
			csr_set(sstatus, SSTATUS_SIE);
			kexit(-1);
		}
		if (!__atomic_load_n(&p->cpu->resched, __ATOMIC_RELAXED))
			break;
		preempt(p);
	}
	lab_clock_go_on();
	overhead_leave(OVERHEAD_USER);
	return p->frame;
}

void user_trap(struct frame *f)
{
	struct proc *p = myproc();
	u64 cause = csr_read(scause);

	SL_ASSERT(p->nr_off == 0 && f == p->frame);
	overhead_enter(OVERHEAD_TRAP);
	if (cause == EXCEPTION_SYSCALL) {
		f->epc += 4;
		overhead_enter(OVERHEAD_KERNEL);
		csr_set(sstatus, SSTATUS_SIE);
		syscall(f);
		csr_clear(sstatus, SSTATUS_SIE);
		overhead_leave(OVERHEAD_TRAP);
	} else if (cause & SCAUSE_INTERRUPT) {
		handle_interrupt(cause);
	} else {
		user_fault(p, cause);
	}
	[[clang::always_inline]] trap_leave();
}

void kernel_trap(struct frame *f)
{
	struct proc *p = myproc();
	u64 cause = csr_read(scause);
	u64 value = csr_read(stval);
	u32 was;

	if (!(cause & SCAUSE_INTERRUPT)) {
		if (f->epc < (u64)user_copy_begin || f->epc >= (u64)user_copy_end)
			panic_frame(f, "%s, address 0x%llx", exception_name(cause), value);
		if (cause != EXCEPTION_STORE_PAGE || vm_fault(value) != VM_MENDED)
			f->epc = (u64)user_copy_failed;
		return;
	}
	was = overhead_enter(OVERHEAD_TRAP);
	handle_interrupt(cause);
	/* Interrupts were on, so this process holds nothing: it may be switched. */
	if (p->nr_off == 0 && __atomic_load_n(&p->cpu->resched, __ATOMIC_RELAXED))
		preempt(p);
	/*
	 * The idle loop looks for work first, in the same moment; and it gets to
	 * do so, however many timers are due by then.
	 */
	if (p == &p->cpu->idle)
		f->status &= ~SSTATUS_SPIE;
	else
		lab_clock_go_on();
	overhead_leave(was);
}

void kernel_stack_overflow(struct frame *f)
{
	panic_frame(f, "kernel stack overflow");
}
