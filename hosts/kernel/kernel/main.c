/* SPDX-License-Identifier: MIT */
/*
 * main.c - booting: from one hart without memory to all of them with a process.
 *
 *	device tree -> pages -> page tables -> traps, timers -> the core ->
 *	devices -> first process -> the other harts -> idle loop
 *
 * The first process mounts the disk, since that has to sleep, and becomes /init.
 * Called by entry.S. Read next: fdt.c, page.c; or docs/kernel.md.
 */
#include <schedlab/linked.h>

#include <schedlab/host.h>

#include "board.h"
#include "bootargs.h"
#include "file.h"
#include "inode.h"
#include "memlayout.h"
#include "policy.h"
#include "print.h"
#include "proc.h"
#include "sched.h"
#include "trap.h"
#include "vm.h"

/* What entry_hart looks up by its number, paging off. */
struct start_hart {
	u64 satp;
	void *sp;
	struct proc *tp;
	u64 unused;
};
_Static_assert(sizeof(struct start_hart) == 32, "entry.S counts on it");

struct cpu cpus[NCPU];
u32 nr_cpus = 1;

struct start_hart start_harts[NCPU];

extern char entry_hart[], bss_end[];

static void cpus_init(void)
{
	for (u32 i = 0; i < NCPU; i++) {
		struct proc *idle = &cpus[i].idle;

		cpus[i].idx = i;
		cpus[i].proc = idle;
		idle->cpu = &cpus[i];
	}
}

/* Behind .bss the linker has put what the policies bring, see kernel.ld. */
static void *find_image_end(void)
{
	u64 end = (u64)bss_end;

	for (u32 i = 0; i < sl_nr_linked_policies; i++) {
		if ((u64)sl_policy_table[i].bss_end > end)
			end = (u64)sl_policy_table[i].bss_end;
	}
	return (void *)PGROUNDUP(end);
}

static void first_process(void)
{
	static char path[64] = "/init";
	static char run[BOOTARGS_MAX], words[BOOTARGS_MAX];
	static char *argv[MAXARG + 1] = { path };
	const char *rest = run;
	char *word = words;
	int argc = 1;

	if (fs_init())
		panic("no file system to start from");
	begin_op();
	myproc()->cwd = namei("/");
	end_op();
	bootarg("init", path, sizeof(path));
	/* run=PROGRAM ARGUMENTS become init's arguments. */
	bootarg("run", run, sizeof(run));
	for (; (rest = next_word(rest, word, BOOTARGS_MAX)); word += strlen(word) + 1) {
		if (argc == MAXARG)
			panic("run=: more than %d words", MAXARG - 1);
		argv[argc++] = word;
	}
	argc = kexec(path, argv);
	if (argc < 0)
		panic("%s cannot be run", path);
	myproc()->frame->a0 = (u64)argc;
}

static void start_other_harts(void)
{
	for (u32 i = 0; i < nr_cpus; i++) {
		struct start_hart *s = &start_harts[i];
		s64 err;

		if (i == mycpu()->idx)
			continue;
		s->satp = vm_satp(kernel_pages);
		s->sp = kernel_stack_top(i);
		s->tp = &cpus[i].idle;
		err = sbi_start_hart(i, virt_to_phys(entry_hart), 0);
		if (err)
			panic("hart %u does not start: SBI error %lld", i, err);
	}
}

/* The boot hart goes on here, on the stack of its idle loop. */
static void boot_devices(void)
{
	plic_init();
	file_init();
	console_init();
	lab_init();
	policy_init();
	proc_start_first(first_process);
	start_other_harts();
	idle_loop();
}

void kernel_main(u64 hart, u64 fdt_phys)
{
	struct machine m;
	void *image_end;

	asm volatile("mv tp, %0" : : "r"(&cpus[hart].idle));
	cpus_init();
	uart_init();
	fdt_read(phys_to_virt(fdt_phys), &m);
	nr_cpus = m.nr_harts;
	if (nr_cpus > NCPU || hart >= nr_cpus)
		panic("%u harts, of which hart %llu boots; 1 to %d are possible, "
		      "numbered from 0: -smp",
		      nr_cpus, hart, NCPU);
	clock_step_ns = 1000000000 / m.timebase_hz;
	has_sstc = m.has_sstc;
	procs_max = (u32)bootarg_u64("procs_max", 4096);
	image_end = find_image_end();
	page_init(virt_to_phys(image_end), m.ram_bytes);
	vm_init(m.ram_bytes, image_end, NCPU + procs_max);
	for (u32 i = 0; i < nr_cpus; i++)
		cpus[i].idle.pages = kernel_pages;
	trap_init_hart();
	timers_init();
	procs_init();
	sched_init();
	call_on_stack(kernel_stack_top((u32)hart), boot_devices);
}

void kernel_main_hart(void)
{
	trap_init_hart();
	idle_loop();
}
