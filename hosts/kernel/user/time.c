/* SPDX-License-Identifier: MIT */
/*
 * time.c - run a command and say how long it took.
 *
 *	time COMMAND [ARGUMENT]...
 *
 * Real time is the clock's. "ran" and "waited" are waitx()'s: ticks on a CPU,
 * and ticks runnable without one; the rest it was blocked. waitx() does not tell
 * the command's status, so this one's is 0.
 *
 * Read next: timings.c.
 */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	unsigned long start_ns, real_ns;
	int pid, wait_ticks = 0, run_ticks = 0, switches;

	if (argc < 2)
		fail("usage: time COMMAND [ARGUMENT]...");
	switches = getcontextswitches();
	start_ns = clock_ns();
	pid = fork();
	if (pid < 0)
		fail("time: fork failed");
	if (pid == 0) {
		exec(argv[1], argv + 1);
		fail("time: cannot run %s", argv[1]);
	}
	if (waitx(&wait_ticks, &run_ticks) != pid)
		fail("time: the command was not waited for");
	real_ns = clock_ns() - start_ns;
	fprintf(2, "real %lu.%03lu s, ran %d ticks, waited for a CPU %d ticks, %d switches\n",
		real_ns / 1000000000, real_ns / 1000000 % 1000, run_ticks, wait_ticks,
		getcontextswitches() - switches);
	return 0;
}
