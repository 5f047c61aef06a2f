/* SPDX-License-Identifier: MIT */
/* mkdir.c - make folders. Read next: rm.c. */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("usage: mkdir FOLDER...");
	for (int i = 1; i < argc; i++)
		if (mkdir(argv[i]) < 0)
			fail("mkdir: cannot make %s", argv[i]);
	return 0;
}
