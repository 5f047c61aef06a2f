/* SPDX-License-Identifier: MIT */
/*
 * cat.c - copy files, or the standard input, to the standard output.
 *
 * Read next: wc.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "user/user.h"

static void copy(int fd, const char *name)
{
	static char buffer[4096];
	int bytes;

	while ((bytes = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(1, buffer, bytes) != bytes)
			fail("cat: cannot write");
	if (bytes < 0)
		fail("cat: cannot read %s", name);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		copy(0, "the standard input");
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);

		if (fd < 0)
			fail("cat: cannot open %s", argv[i]);
		copy(fd, argv[i]);
		close(fd);
	}
	return 0;
}
