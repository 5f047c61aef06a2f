/* SPDX-License-Identifier: MIT */
/*
 * program_file.c - maps a workload program and has it checked.
 *
 * Called by each host that is a program of its own, before anything runs.
 * Read next: player/program.c, the check.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "program_file.h"

const void *sl_program_file_map(const char *path, char *why, u32 why_bytes)
{
	char fault[256];
	struct stat st;
	void *data = MAP_FAILED;
	int fd;

	errno = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED) {
		snprintf(why, why_bytes, "program %s: %s", path,
			 errno ? strerror(errno) : "empty file");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	close(fd);
	if (sl_program_check(data, (u64)st.st_size, fault, sizeof(fault))) {
		snprintf(why, why_bytes, "program %s: %s", path, fault);
		munmap(data, (size_t)st.st_size);
		return NULL;
	}
	return data;
}
