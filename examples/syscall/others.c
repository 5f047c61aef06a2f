/* SPDX-License-Identifier: MIT */
/* others.c - the kernel's own checks of its calls. */
#include "kernel/types.h"
#include "user/user.h"

int main(void)
{
	char *argv[] = { "checks", "-q", 0 };

	exec("/checks", argv);
	return 1;
}
