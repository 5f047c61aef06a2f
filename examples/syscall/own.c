/* SPDX-License-Identifier: MIT */
/* own.c - what a process sees of its own calls. */
#include "kernel/syscall.h"
#include "kernel/types.h"
#include "user/user.h"

int main(void)
{
	int before = ncalls(SYS_getpid);

	for (int i = 0; i < 3; i++)
		getpid();
	printf("getpid: %d\n", ncalls(SYS_getpid) - before);
	printf("uptime: %d\n", ncalls(SYS_uptime));
	before = ncalls(SYS_ncalls);
	printf("ncalls: %d\n", ncalls(SYS_ncalls) - before);
	return 0;
}
