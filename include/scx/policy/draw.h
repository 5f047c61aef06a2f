/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * draw.h - where the lottery's numbers come from.
 *
 * lfsr16 is the report's source: a 16-bit shift register, modulo the tickets. It
 * never gives a number above 65,535, so that with 100 tickets each no task behind the
 * first 655 that wait ever wins; smaller numbers come more often by up to one part in
 * 65,536 / tickets; and each number is the last one shifted by a bit, so that draws
 * follow each other in a pattern, which repeats after 65,535 of them.
 *
 * Read next: policies/lottery.bpf.c.
 */
#include <scx/common.bpf.h>

enum { RANDOM_BPF, RANDOM_LFSR16 };

/* Two CPUs that draw at once may draw the same number; no harm. */
static u32 lfsr;

/* Taps 16, 14, 13 and 11: the longest period that 16 bits allow. */
static u64 draw_lfsr16(void)
{
	u32 bit = (lfsr ^ (lfsr >> 2) ^ (lfsr >> 3) ^ (lfsr >> 5)) & 1;

	lfsr = (lfsr >> 1) | (bit << 15);
	return lfsr;
}

/* A number from 0 to @nr - 1; 0 if there is none. */
static u64 draw(u64 nr, u32 random_source)
{
	u64 high, low;

	if (!nr)
		return 0;
	if (random_source == RANDOM_LFSR16)
		return draw_lfsr16() % nr;
	high = bpf_get_prandom_u32();
	low = bpf_get_prandom_u32();
	return (high << 32 | low) % nr;
}
