/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of a host that is a program, as a table.
 *
 * Read next: options.c; hosts/sim/options.c, a table.
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <scx/types.h>

/* Of an option that may be given several times. */
#define SL_WORDS_MAX 64

/* One option, or key of one: its name, and where what it takes goes. The first that is there: */
struct sl_option {
	const char *name; /* a table ends with NULL */
	u64 min, max;	  /* of a number */
	u64 *to64;
	u32 *to32;
	bool *flag;		      /* it takes nothing */
	const char **text;	      /* a word as it is */
	const char **words;	      /* one more, of at most SL_WORDS_MAX and then NULL */
	const struct sl_option *keys; /* KEY=N[,KEY=N...] */
};

/**
 * sl_options_parse - read a command line
 * @table: what there may be
 * @argc, @argv: as main() has them; words stay in use
 * @why: what is wrong, with the option's name and range, or with the keys that there are
 * @why_bytes: size of @why
 *
 * Return: 0, or -1 with @why filled in; what stands before the fault is set then.
 */
int sl_options_parse(const struct sl_option *table, int argc, char **argv, char *why, u32 why_bytes);

#endif
