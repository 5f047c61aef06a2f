/* SPDX-License-Identifier: MIT */
/* ln.c - give a file a second name. Read next: ls.c. */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	if (argc != 3)
		fail("usage: ln OLD NEW");
	if (link(argv[1], argv[2]) < 0)
		fail("ln: cannot name %s also %s", argv[1], argv[2]);
	return 0;
}
