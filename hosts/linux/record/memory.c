/* SPDX-License-Identifier: MIT */
/*
 * memory.c - large tables, and what is written whole.
 *
 * Called by capture.c, lives.c, output.c and ../import/sink.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

void *reserve(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		refuse("no memory");
	return memory;
}

int write_whole(int fd, const void *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, data, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : ENOSPC;
		data = (const char *)data + n;
		bytes -= (size_t)n;
	}
	return 0;
}
