/* SPDX-License-Identifier: MIT */
/*
 * preempted.c - is a process that is busy in the kernel preempted there?
 *
 *	preempted [WAKES]
 *
 * One process does nothing but sbrk(), each of which clears 32 MiB, without
 * waiting for anything. Another one wakes every 2 ms and prints how late it was at
 * most, beside how long one sbrk() takes: in a kernel that is not preempted, it
 * would be that late.
 */
#include "kernel/types.h"
#include "user/user.h"

#define BYTES	(32 << 20)
#define WAKES	100	/* unless told otherwise */
#define PERIOD_NS 2000000

int main(int argc, char **argv)
{
	unsigned long begin_ns, took_ns, at_ns, late_ns, late_ns_max = 0;
	int nr_wakes = argc > 1 ? atoi(argv[1]) : WAKES;
	int pid;

	printf("it begins\n");
	begin_ns = clock_ns();
	sbrk(BYTES);
	took_ns = clock_ns() - begin_ns;
	sbrk(-BYTES);
	pid = fork();
	if (!pid) {
		for (;;) {
			sbrk(BYTES);
			sbrk(-BYTES);
		}
	}
	at_ns = clock_ns() + 10 * PERIOD_NS;
	for (int i = 0; i < nr_wakes; i++, at_ns += PERIOD_NS) {
		sleep_until_ns(at_ns);
		late_ns = clock_ns() - at_ns;
		if (late_ns > late_ns_max)
			late_ns_max = late_ns;
	}
	kill(pid);
	wait(0);
	printf("one call %lu us, late at most %lu us\n", took_ns / 1000, late_ns_max / 1000);
	return 0;
}
