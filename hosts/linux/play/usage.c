/* SPDX-License-Identifier: MIT */
/*
 * usage.c - what Linux has counted of a task: CPU time, switches, waiting.
 *
 * User and system time are Linux's own split of the exact sum, by samples taken
 * at ticks. schedstat counts in nanoseconds and needs no privilege.
 *
 * Read next: task.c, which reads it at both ends of a task.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "play.h"

static u64 us_of(struct timeval t)
{
	return (u64)t.tv_sec * 1000000 + (u64)t.tv_usec;
}

static struct usage usage_of_rusage(const struct rusage *r)
{
	return (struct usage){
		.user_us = us_of(r->ru_utime),
		.system_us = us_of(r->ru_stime),
		.nr_voluntary = (u64)r->ru_nvcsw,
		.nr_involuntary = (u64)r->ru_nivcsw,
	};
}

/* A small file's text; "" where it cannot be read. No stdio: it would allocate. */
static void read_small(const char *path, char *text, u32 bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static void add_schedstat(struct usage *u, const char *path)
{
	char text[100];

	read_small(path, text, sizeof(text));
	if (sscanf(text, "%llu %llu", &u->run_ns, &u->wait_ns) != 2)
		u->run_ns = u->wait_ns = 0;
}

struct usage usage_of_self(bool is_thread)
{
	struct usage u;
	struct rusage r;
	struct timespec t;

	getrusage(is_thread ? RUSAGE_THREAD : RUSAGE_SELF, &r);
	u = usage_of_rusage(&r);
	add_schedstat(&u, "/proc/thread-self/schedstat");
	/* schedstat's own is as old as the last tick or switch. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	u.run_ns = (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
	return u;
}

struct usage usage_of_children(void)
{
	struct rusage r;

	getrusage(RUSAGE_CHILDREN, &r);
	return usage_of_rusage(&r);
}

/* The number behind KEY in a text of lines KEY: NUMBER. */
static u64 number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	unsigned long long value = 0;

	if (at && sscanf(at + strlen(key), " %llu", &value) != 1)
		value = 0;
	return value;
}

struct usage usage_of(s32 tid)
{
	unsigned long long user = 0, system = 0;
	char path[64], text[4096];
	struct usage u = { 0 };
	u64 ticks_per_s = (u64)sysconf(_SC_CLK_TCK);
	char *end;

	/* Threads of this process too: /proc knows them by number, unlisted. */
	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	add_schedstat(&u, path);
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	read_small(path, text, sizeof(text));
	u.nr_voluntary = number_of(text, "\nvoluntary_ctxt_switches:");
	u.nr_involuntary = number_of(text, "nonvoluntary_ctxt_switches:");
	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	read_small(path, text, sizeof(text));
	end = strrchr(text, ')');
	if (end && sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			  &system) == 2) {
		u.user_us = user * 1000000 / ticks_per_s;
		u.system_us = system * 1000000 / ticks_per_s;
	}
	return u;
}

/* Linux mends the split of CPU time backwards now and then: never below 0. */
static u64 since(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

struct usage usage_since(struct usage now, struct usage before)
{
	return (struct usage){
		.user_us = since(now.user_us, before.user_us),
		.system_us = since(now.system_us, before.system_us),
		.nr_voluntary = since(now.nr_voluntary, before.nr_voluntary),
		.nr_involuntary = since(now.nr_involuntary, before.nr_involuntary),
		.run_ns = since(now.run_ns, before.run_ns),
		.wait_ns = since(now.wait_ns, before.wait_ns),
	};
}
