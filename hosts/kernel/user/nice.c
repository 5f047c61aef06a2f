/* SPDX-License-Identifier: MIT */
/*
 * nice.c - run a command with another nice value, hence another weight.
 *
 *	nice INCREMENT COMMAND [ARGUMENT]...
 *
 * Read next: policies/cfs.bpf.c, what a weight does.
 */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	long increment;

	if (argc < 3 || !parse_number(argv[1], &increment))
		fail("usage: nice INCREMENT COMMAND [ARGUMENT]...");
	if (increment < -39 || increment > 39)
		fail("nice: %ld is not in -39..39", increment);
	nice(increment);
	exec(argv[2], argv + 2);
	fail("nice: cannot run %s", argv[2]);
}
