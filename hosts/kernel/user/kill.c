/* SPDX-License-Identifier: MIT */
/* kill.c - end processes by number. Read next: ps.c. */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	long pid;

	if (argc < 2)
		fail("usage: kill PID...");
	for (int i = 1; i < argc; i++)
		if (!parse_number(argv[i], &pid) || pid <= 0 || pid > 0x7fffffff || kill(pid) < 0)
			fail("kill: there is no process %s; `ps` lists them", argv[i]);
	return 0;
}
