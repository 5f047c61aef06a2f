/* SPDX-License-Identifier: MIT */
/* family.c - what a process sees of the calls of others: nothing. */
#include "kernel/syscall.h"
#include "kernel/types.h"
#include "user/user.h"

/* A child that says what it finds, and then calls. */
static void run_child(const char *name)
{
	if (fork() == 0) {
		int found = ncalls(SYS_getpid);

		for (int i = 0; i < 7; i++)
			getpid();
		printf("%s: %d\n", name, found);
		exit(0);
	}
	wait(0);
}

int main(void)
{
	int before = ncalls(SYS_getpid);

	for (int i = 0; i < 5; i++)
		getpid();
	run_child("first child");
	/* It may get what the kernel remembered of the first. */
	run_child("second child");
	printf("parent: %d\n", ncalls(SYS_getpid) - before);
	return 0;
}
