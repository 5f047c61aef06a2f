/* SPDX-License-Identifier: MIT */
/*
 * forks.c - forks all the time, so that whatever comes finds it in the middle of a
 * fork(); its children sleep. tests/kernel/test_kill.py ends it with ctrl-C.
 */
#include "kernel/types.h"
#include "user/user.h"

int main(void)
{
	printf("forking\n");
	for (;;) {
		if (fork() == 0)
			sleep(1000000);
	}
}
