/* SPDX-License-Identifier: MIT */
/*
 * echo.c - print the arguments on one line.
 *
 * Read next: cat.c.
 */
#include "kernel/types.h"
#include "user/user.h"

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		printf("%s%s", argv[i], i + 1 < argc ? " " : "");
	printf("\n");
	return 0;
}
