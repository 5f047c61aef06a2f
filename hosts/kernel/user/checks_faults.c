/* SPDX-License-Identifier: MIT */
/*
 * checks_faults.c - what ends a process, and only it: each must give status -1.
 *
 * Read next: checks_files.c.
 */
#include "kernel/types.h"
#include "kernel/memlayout.h"
#include "kernel/param.h"
#include "kernel/riscv.h"
#include "user/checks.h"
#include "user/user.h"

/* The same function for an address that is read, written, or jumped to. */
static unsigned long victim;
static int access; /* 0 read, 1 write, 2 execute */

static void touch_victim(void)
{
	if (access == 0)
		(void)*(volatile char *)victim;
	else if (access == 1)
		*(volatile char *)victim = 1;
	else
		((void (*)(void))victim)();
}

static void wild_addresses(void)
{
	for (int i = 0; check_wild[i]; i++) {
		victim = check_wild[i];
		for (access = 0; access < 3; access++)
			CHECK_EQUAL(check_status(touch_victim), -1);
	}
}

/* 0 is text here: a program may read it, not write it. */
static void null_is_not_writable(void)
{
	victim = 0;
	access = 1;
	CHECK_EQUAL(check_status(touch_victim), -1);
}

static void text_is_read_only(void)
{
	access = 1;
	victim = (unsigned long)touch_victim;
	CHECK_EQUAL(check_status(touch_victim), -1);
	victim = (unsigned long)"a constant";
	CHECK_EQUAL(check_status(touch_victim), -1);
}

/* Neither variables, nor heap, nor stack can be executed. */
static void data_is_not_executable(void)
{
	static uint ret[] = { 0x00008067 };
	uint on_stack[] = { 0x00008067 };
	uint *on_heap = malloc(sizeof(ret));

	*on_heap = ret[0];
	access = 2;
	victim = (unsigned long)ret;
	CHECK_EQUAL(check_status(touch_victim), -1);
	victim = (unsigned long)on_stack;
	CHECK_EQUAL(check_status(touch_victim), -1);
	victim = (unsigned long)on_heap;
	CHECK_EQUAL(check_status(touch_victim), -1);
}

static int deeper(int n)
{
	volatile char frame[256];

	frame[0] = n;
	return n ? deeper(n - 1) + frame[0] : 0;
}

static void overflow_stack(void)
{
	deeper(1 << 20);
}

static void stack_overflow(void)
{
	CHECK_EQUAL(check_status(overflow_stack), -1);
}

static void touch_below_stack(void)
{
	(void)*(volatile char *)(r_sp() - USERSTACK * PGSIZE - 64);
}

static void stack_has_a_guard(void)
{
	CHECK_EQUAL(check_status(touch_below_stack), -1);
}

static void behind_the_heap(void)
{
	access = 0;
	victim = PGROUNDUP((unsigned long)sbrk(0));
	CHECK_EQUAL(check_status(touch_victim), -1);
	victim += 1UL << 30;
	CHECK_EQUAL(check_status(touch_victim), -1);
}

#define INSTRUCTION(name, text)			\
	static void name(void)			\
	{					\
		asm volatile(text);		\
	}

INSTRUCTION(no_instruction, ".4byte 0xffffffff")
INSTRUCTION(zero_instruction, ".2byte 0")
INSTRUCTION(breakpoint, "ebreak")
INSTRUCTION(read_sstatus, "csrr t0, sstatus")
INSTRUCTION(write_satp, "csrw satp, zero")
INSTRUCTION(read_mhartid, "csrr t0, mhartid")
INSTRUCTION(return_from_trap, "sret")
INSTRUCTION(wait_for_interrupt, "wfi")
INSTRUCTION(flush_tables, "sfence.vma")

static void forbidden_instructions(void)
{
	CHECK_EQUAL(check_status(no_instruction), -1);
	CHECK_EQUAL(check_status(zero_instruction), -1);
	CHECK_EQUAL(check_status(breakpoint), -1);
	CHECK_EQUAL(check_status(read_sstatus), -1);
	CHECK_EQUAL(check_status(write_satp), -1);
	CHECK_EQUAL(check_status(read_mhartid), -1);
	CHECK_EQUAL(check_status(return_from_trap), -1);
	CHECK_EQUAL(check_status(flush_tables), -1);
}

/* A machine may allow a program to wait; then it must come back. */
static void waiting_for_an_interrupt(void)
{
	int status = check_status(wait_for_interrupt);

	CHECK(status == -1 || status == 0);
}

/* Registers that a program may spoil: the kernel does not trust them. */
static void spoil_registers(void)
{
	asm volatile("li tp, -1; li gp, -1; li sp, 16; li s0, -8; ld t0, 0(s0)");
}

static void spoil_stack_and_call(void)
{
	asm volatile("li tp, -1; li gp, 0; li sp, -16; li a7, 11; ecall;"
		     "li a0, 7; li a7, 2; ecall");
}

static void spoiled_registers(void)
{
	CHECK_EQUAL(check_status(spoil_registers), -1);
	/* A call does not use the caller's stack: this one ends as it wanted. */
	CHECK_EQUAL(check_status(spoil_stack_and_call), 7);
}

static void odd_jump(void)
{
	asm volatile("li t0, 0x3ffffffff1; jr t0");
}

static void wild_jumps(void)
{
	CHECK_EQUAL(check_status(odd_jump), -1);
}

/* Many at the same time, on all harts. */
static void faults_at_once(void)
{
	enum { CHILDREN = 12 };

	access = 1;
	for (int i = 0; i < CHILDREN; i++) {
		if (check_fork() == 0) {
			victim = check_wild[i];
			touch_victim();
			exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQUAL(check_wait(), -1);
}

const struct check checks_faults[] = {
	{ "wild-addresses", wild_addresses, 0 },
	{ "null-is-not-writable", null_is_not_writable, 0 },
	{ "text-is-read-only", text_is_read_only, 0 },
	{ "data-is-not-executable", data_is_not_executable, 0 },
	{ "stack-overflow", stack_overflow, 0 },
	{ "stack-has-a-guard", stack_has_a_guard, 0 },
	{ "behind-the-heap", behind_the_heap, 0 },
	{ "forbidden-instructions", forbidden_instructions, 0 },
	{ "waiting-for-an-interrupt", waiting_for_an_interrupt, 0 },
	{ "spoiled-registers", spoiled_registers, 0 },
	{ "wild-jumps", wild_jumps, 0 },
	{ "faults-at-once", faults_at_once, 0 },
	{ 0, 0, 0 },
};
