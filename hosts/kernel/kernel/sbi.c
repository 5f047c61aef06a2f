/* SPDX-License-Identifier: MIT */
/*
 * sbi.c - calls of the firmware, by the RISC-V SBI specification 1.0.
 *
 * Read next: timer.c, the main caller.
 */
#include "board.h"

#include "riscv.h"

enum sbi_extension {
	SBI_TIMER = 0x54494d45,
	SBI_IPI = 0x735049,
	SBI_HART_STATE = 0x48534d,
};

bool has_sstc;

static s64 sbi_call(u64 extension, u64 function, u64 arg0, u64 arg1, u64 arg2)
{
	register u64 a0 asm("a0") = arg0;
	register u64 a1 asm("a1") = arg1;
	register u64 a2 asm("a2") = arg2;
	register u64 a6 asm("a6") = function;
	register u64 a7 asm("a7") = extension;

	asm volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
	return (s64)a0;
}

void sbi_set_timer(u64 steps)
{
	if (has_sstc)
		asm volatile("csrw 0x14d, %0" : : "r"(steps) : "memory");
	else
		sbi_call(SBI_TIMER, 0, steps, 0, 0);
}

void sbi_send_ipi(u32 hart)
{
	sbi_call(SBI_IPI, 0, 1, hart, 0);
}

s64 sbi_start_hart(u32 hart, u64 entry, u64 arg)
{
	return sbi_call(SBI_HART_STATE, 0, hart, entry, arg);
}
