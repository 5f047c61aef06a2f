/* SPDX-License-Identifier: MIT */
/*
 * coverage.c - which parts of a policy have run, in any world of any process.
 *
 *	--coverage FILE: a byte for each byte of the policy's file, 1 where a call returned to
 *
 * A policy that is compiled with -fsanitize-coverage=trace-pc makes a call at the beginning
 * of each basic block. The file is shared by all processes of a search, and a world that
 * ends its process loses nothing.
 *
 * Called by worlds.c. Read next: check/coverage.py, which knows the lines.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "policy_file.h"

#define COVERAGE_BYTES (4UL << 20)

static struct {
	unsigned char *map; /* NULL: not asked for */
	uintptr_t base;
} coverage;

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = (uintptr_t)__builtin_return_address(0) - coverage.base;

	if (coverage.map && at < COVERAGE_BYTES)
		coverage.map[at] = 1;
}

void check_open_coverage(const char *path)
{
	const struct link_map *loaded = sim_policy_file.handle;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *map = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, COVERAGE_BYTES))
		map = mmap(NULL, COVERAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	coverage.base = loaded->l_addr;
	coverage.map = map;
}
