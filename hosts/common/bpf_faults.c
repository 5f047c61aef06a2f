/* SPDX-License-Identifier: MIT */
/*
 * bpf_faults.c - what BPF defines and x86-64 raises a signal for, for published schedulers,
 * some of which rely on it.
 *
 * A division by zero has the quotient 0 and the dividend as its remainder. NULL in an arena is the
 * arena's first page. The signal's handler calls these, and the program goes on. Other
 * processors are not served.
 *
 * Read next: hosts/sim/worker.c, on_crash().
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "bpf_faults.h"

#ifdef __x86_64__
/* The registers by their numbers in an instruction. */
static const int registers[] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

struct operand {
	uint64_t value;
	const uint8_t *end; /* of the instruction */
};

/* The operand that begins with the byte at @at: a register, or memory. */
static struct operand operand_of(const greg_t *regs, const uint8_t *at, uint8_t rex)
{
	uint8_t mod = *at >> 6, rm = *at & 7;
	const uint8_t *next = at + 1;
	uint64_t address = 0, value = 0;
	int32_t offset = 0;
	int8_t small;

	if (mod == 3)
		return (struct operand){ (uint64_t)regs[registers[rm | (rex & 1) << 3]], next };
	if (rm == 4) {
		uint8_t sib = *next++, base = sib & 7, index = (sib >> 3 & 7) | (rex & 2) << 2;

		if (index != 4)
			address = (uint64_t)regs[registers[index]] << (sib >> 6);
		if (base == 5 && mod == 0)
			mod = 4; /* no base, and four bytes of offset */
		else
			address += (uint64_t)regs[registers[base | (rex & 1) << 3]];
	} else if (rm == 5 && mod == 0) {
		mod = 4;
		address = (uint64_t)(uintptr_t)(next + 4);
	} else {
		address = (uint64_t)regs[registers[rm | (rex & 1) << 3]];
	}
	if (mod == 1) {
		memcpy(&small, next++, 1);
		offset = small;
	} else if (mod) {
		memcpy(&offset, next, 4);
		next += 4;
	}
	memcpy(&value, (const void *)(uintptr_t)(address + (uint64_t)(int64_t)offset),
	       rex & 8 ? 8 : 4);
	return (struct operand){ value, next };
}

bool sl_divide_as_bpf(void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at = (const uint8_t *)(uintptr_t)regs[REG_RIP];
	uint8_t rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
	uint64_t mask = rex & 8 ? ~0ULL : 0xffffffff;
	struct operand divisor;

	/* DIV and IDIV of 32 and 64 bits. */
	if (at[0] != 0xf7 || (at[1] >> 3 & 7) < 6)
		return false;
	divisor = operand_of(regs, at + 1, rex);
	/* Else the quotient does not fit: the smallest number by -1, which is itself. */
	if (divisor.value & mask) {
		regs[REG_RDX] = 0;
	} else {
		regs[REG_RDX] = (greg_t)((uint64_t)regs[REG_RAX] & mask);
		regs[REG_RAX] = 0;
	}
	regs[REG_RIP] = (greg_t)(uintptr_t)divisor.end;
	return true;
}

static bool is_null(const greg_t *regs, int reg)
{
	return (uint64_t)regs[reg] < 1 << 16;
}

/* The register that the address of an operand begins with; -1: none. */
static int base_of(const uint8_t *at, uint8_t rex)
{
	uint8_t mod = at[0] >> 6, rm = at[0] & 7;

	if (rm == 4)
		rm = at[1] & 7;
	return mod == 3 || (mod == 0 && rm == 5) ? -1 : registers[rm | (rex & 1) << 3];
}

bool sl_null_as_bpf(void *context, void *first_page)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *at = (const uint8_t *)(uintptr_t)regs[REG_RIP];
	uint8_t rex = 0;
	int base;

	while (strchr("\x66\xf0\xf2\xf3", *at))
		at++;
	if ((*at & 0xf0) == 0x40)
		rex = *at++;
	/* Copies and fills of many bytes have fixed registers. */
	if ((*at & ~1) == 0xa4 && is_null(regs, REG_RSI))
		base = REG_RSI;
	else if ((*at & ~1) == 0xa4 || (*at & ~1) == 0xaa)
		base = REG_RDI;
	else if (*at != 0x0f)
		base = base_of(at + 1, rex);
	else
		base = base_of(at + (at[1] == 0x38 || at[1] == 0x3a ? 3 : 2), rex);
	if (!first_page || base < 0 || !is_null(regs, base))
		return false;
	regs[base] += (greg_t)(uintptr_t)first_page;
	return true;
}
#else
bool sl_divide_as_bpf(void *context)
{
	(void)context;
	return false;
}

bool sl_null_as_bpf(void *context, void *first_page)
{
	(void)context;
	(void)first_page;
	return false;
}
#endif
