/* SPDX-License-Identifier: MIT */
/* numbers.c - numbers that are no system call's. */
#include "kernel/types.h"
#include "user/user.h"

int main(void)
{
	printf("%d %d %d %d\n", ncalls(-1), ncalls(-2147483647), ncalls(1000), ncalls(2147483647));
	return 0;
}
