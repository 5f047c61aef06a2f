/* SPDX-License-Identifier: MIT */
/*
 * lastwords.c - ends the machine while other harts change the policy, which has its
 * last words then. tests/kernel/test_boot.py boots it.
 */
#include "kernel/types.h"
#include "user/user.h"

int main(void)
{
	int fds[2];
	char c;

	if (pipe(fds) < 0)
		fail("lastwords: no pipe");
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		setpolicy("rr");
		write(fds[1], "x", 1);
		for (;;)
			setpolicy("rr");
	}
	for (int i = 0; i < 3; i++)
		read(fds[0], &c, 1);
	return poweroff(7);
}
