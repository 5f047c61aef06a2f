/* SPDX-License-Identifier: MIT */
/*
 * work.c - fixed amounts of computing, for the `work` verb.
 *
 * Called by every host that runs real code. A unit must stay the same number of
 * the same operations in every version: calibrations and published results count them.
 *
 * Read next: python/schedlab/calibration.py, what a unit costs where.
 */
#include "player.h"

/* pi = 4/1 - 4/3 + 4/5 - ..., a term per unit, in units of 2^-60. */
static u64 work_pi(u64 terms)
{
	u64 sum = 0;

	for (u64 i = 0; i < terms; i++) {
		u64 term = (4ULL << 60) / (2 * i + 1);

		sum = i % 2 ? sum - term : sum + term;
	}
	return sum;
}

#define MATRIX_SIDE 32

/*
 * A multiply-add per unit, in the order of a textbook's product of two square
 * matrices, over and over. Their elements are made up as they are needed, or
 * each task would want 24 KiB of memory.
 */
static u64 work_matmul(u64 multiply_adds)
{
	u64 total = 0;
	u64 dot = 0;

	for (u64 i = 0; i < multiply_adds; i++) {
		u64 inner = i % MATRIX_SIDE;
		u64 column = i / MATRIX_SIDE % MATRIX_SIDE;
		u64 row = i / MATRIX_SIDE / MATRIX_SIDE % MATRIX_SIDE;

		dot += (row * 3 + inner + 1) * (inner * 5 + column + 2);
		if (inner == MATRIX_SIDE - 1) {
			total = total * 31 + dot;
			dot = 0;
		}
	}
	return total + dot;
}

static u64 work_spin(u64 rounds)
{
	u64 i;

	/* The empty statement stands for memory that changes: not left out. */
	for (i = 0; i < rounds; i++)
		__asm__ volatile("" : "+r"(i));
	return i;
}

u64 sl_work(u32 work, u64 units)
{
	switch (work) {
	case SL_WORK_PI:
		return work_pi(units);
	case SL_WORK_MATMUL:
		return work_matmul(units);
	case SL_WORK_SPIN:
		return work_spin(units);
	}
	return 0;
}
