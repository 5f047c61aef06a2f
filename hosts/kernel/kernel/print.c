/* SPDX-License-Identifier: MIT */
/*
 * print.c - printk() and panic().
 *
 * A panic names where it happened: the builder puts a table of all functions
 * into the image (python/schedlab/hosts/kernel/build.py), and the frame pointers
 * on the stack lead from one to the next.
 *
 * Called from everywhere. Must stay true: panic() takes no lock.
 * Read next: uart.c.
 */
#include <schedlab/machine.h>

#include "print.h"

#include "board.h"
#include "memlayout.h"
#include "proc.h"

#define BACKTRACE_MAX 24
#define PANIC_STATUS 99

struct kernel_symbol {
	u64 address;
	const char *name;
};

extern const struct kernel_symbol kernel_symbols[];
extern const u64 nr_kernel_symbols;
extern char text_start[], text_end[], bss_end[];

bool has_panicked;

static struct spinlock lock = { .name = "printk" };

static void put_text(const char *text)
{
	for (; *text; text++)
		uart_putc(*text);
}

static void vprint(const char *fmt, __builtin_va_list args)
{
	char line[256];

	sl_format(line, sizeof(line), fmt, args);
	put_text(line);
}

static void print_unlocked(const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	vprint(fmt, args);
	__builtin_va_end(args);
}

void printk(const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	acquire(&lock);
	vprint(fmt, args);
	release(&lock);
	__builtin_va_end(args);
}

/* The last function that begins at @at or before. */
static const struct kernel_symbol *symbol_of(u64 at)
{
	u64 low = 0, high = nr_kernel_symbols;

	if (!high || at < (u64)text_start || at >= (u64)text_end)
		return NULL;
	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (kernel_symbols[middle].address <= at)
			low = middle;
		else
			high = middle;
	}
	return kernel_symbols[low].address <= at ? &kernel_symbols[low] : NULL;
}

static void print_place(u64 at)
{
	const struct kernel_symbol *s = symbol_of(at);

	print_unlocked("  0x%llx  %s+0x%llx\n", at, s ? s->name : "?", s ? at - s->address : at);
}

/* Frame pointers are on kernel stacks, or on the two in the image. */
static bool is_stack(u64 at)
{
	return at % 8 == 0 && ((at >= STACKS_BASE && at >> STACK_BIT & 1) ||
			       (at >= (u64)text_end && at < (u64)bss_end));
}

static void print_backtrace(u64 frame)
{
	for (u32 i = 0; i < BACKTRACE_MAX && is_stack(frame - 16); i++) {
		u64 *saved = (u64 *)(frame - 16);

		/* The return address is behind the call. */
		print_place(saved[1] - 1);
		if (saved[0] <= frame)
			break;
		frame = saved[0];
	}
}

static void print_frame(const struct frame *f)
{
	const char *names = "ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 "
			    "s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6 epc status";
	const u64 *value = &f->ra;
	char name[8];

	for (u32 i = 1; (names = next_word(names, name, sizeof(name))); i++)
		print_unlocked("%6s %016llx%s", name, *value++, i % 4 ? "" : "\n");
	put_text("\n");
}

/* @f: what went wrong there, or NULL; @at: the frame pointer to begin with. */
static _Noreturn void die(const struct frame *f, u64 at, const char *fmt, __builtin_va_list args)
{
	struct proc *p = myproc();

	csr_clear(sstatus, SSTATUS_SIE);
	if (__atomic_exchange_n(&has_panicked, true, __ATOMIC_SEQ_CST))
		park(); /* another hart was first */
	for (u32 i = 0; i < nr_cpus; i++)
		if (i != p->cpu->idx)
			sbi_send_ipi(i);
	print_unlocked("\npanic: hart %u, %s[%d]: ", p->cpu->idx,
		       p == &p->cpu->idle ? "idle" : name_of(p), pid_of(p));
	vprint(fmt, args);
	put_text("\n");
	if (f) {
		print_frame(f);
		print_place(f->epc);
	}
	print_backtrace(at);
	poweroff(PANIC_STATUS);
}

void panic(const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	die(NULL, (u64)__builtin_frame_address(0), fmt, args);
}

void panic_frame(const struct frame *f, const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	die(f, f->s0, fmt, args);
}

void park(void)
{
	csr_clear(sstatus, SSTATUS_SIE);
	for (;;)
		asm volatile("wfi");
}

/* The board's "test finisher" ends QEMU with a status. */
void poweroff(int code)
{
	volatile u32 *finisher = phys_to_virt(FINISHER);

	*finisher = code ? (u32)(code & 127) << 16 | 0x3333 : 0x5555;
	park();
}
