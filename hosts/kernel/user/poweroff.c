/* SPDX-License-Identifier: MIT */
/* poweroff.c - switch the machine off; QEMU ends. Read next: init.c. */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	return poweroff(argc > 1 ? atoi(argv[1]) : 0);
}
