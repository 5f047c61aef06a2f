/* SPDX-License-Identifier: MIT */
/* rm.c - remove names of files, and empty folders. Read next: ln.c. */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("usage: rm FILE...");
	for (int i = 1; i < argc; i++)
		if (unlink(argv[i]) < 0)
			fail("rm: cannot remove %s", argv[i]);
	return 0;
}
