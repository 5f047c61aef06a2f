/* SPDX-License-Identifier: MIT */
/*
 * numbers.h - options that are numbers, alone or as KEY=N,KEY=N.
 *
 * Read next: numbers.c; hosts/sim/options.c, whose tables they are.
 */
#ifndef COMMON_NUMBERS_H
#define COMMON_NUMBERS_H

#include <scx/types.h>

/* One option or key, its range, and where it goes; a table ends with no name. */
struct sl_number {
	const char *name;
	u64 min, max;
	u64 *to64;		/* or */
	u32 *to32;
};

/* Return: the row of that name; NULL if there is none. */
const struct sl_number *sl_number_find(const struct sl_number *table,
				       const char *name);

/**
 * sl_number_set - read a number
 * @n: what it is
 * @text: decimal, or 0x...
 * @why: what is wrong, with the option's name and range
 * @why_bytes: size of @why
 *
 * Return: 0, or -1 with @why filled in.
 */
int sl_number_set(const struct sl_number *n, const char *text, char *why,
		  u32 why_bytes);

/**
 * sl_numbers_set - read several
 * @option: for the message
 * @keys: what there may be
 * @text: KEY=N[,KEY=N...]
 * @why: what is wrong; for an unknown key, those that are known
 * @why_bytes: size of @why
 *
 * Return: 0, or -1 with @why filled in; what stands before the fault is set then.
 */
int sl_numbers_set(const char *option, const struct sl_number *keys,
		   const char *text, char *why, u32 why_bytes);

#endif
