/* SPDX-License-Identifier: MIT */
/*
 * trace.c - has the kernel record what its scheduler does.
 *
 * The kernel writes binary events into a ring per CPU; nothing reads while tasks
 * run, so that reading is not part of what is measured. A full ring drops what
 * comes later and counts it. Python makes records of the pages.
 *
 * Read next: python/schedlab/records/ftrace.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define ROOT "/trace/"
#define RING_KIB "32768"
#define SCHED_YIELD_NUMBER "24"	/* x86-64 */

static const char *const events[] = {
	"sched/sched_switch",	  "sched/sched_waking",	      "sched/sched_wakeup",
	"sched/sched_wakeup_new", "sched/sched_migrate_task", "raw_syscalls/sys_enter",
};

#define NR_EVENTS (sizeof(events) / sizeof(events[0]))
/* What bpf_printk() writes; Linux enables it with the first program that does. */
#define PRINTK "bpf_trace/bpf_trace_printk"

static void put(const char *name, const char *text)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), ROOT "%s", name);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		frame_text("fatal", "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void trace_init(void)
{
	char path[200];
	u64 i;

	put("tracing_on", "0");
	put("trace_clock", "mono");
	put("options/overwrite", "0");
	put("buffer_size_kb", RING_KIB);
	/* Of all system calls, sched_yield: a switch alone does not show why. */
	put("events/raw_syscalls/sys_enter/filter", "id == " SCHED_YIELD_NUMBER);
	for (i = 0; i < NR_EVENTS; i++) {
		snprintf(path, sizeof(path), "events/%s/enable", events[i]);
		put(path, "1");
	}
}

static void send_format(const char *event)
{
	char path[200];
	char name[100];

	snprintf(name, sizeof(name), "format %s", event);
	snprintf(path, sizeof(path), ROOT "events/%s/format", event);
	frame_file(name, path);
}

void trace_send_formats(void)
{
	u64 i;

	frame_file("format header_page", ROOT "events/header_page");
	for (i = 0; i < NR_EVENTS; i++)
		send_format(events[i]);
	send_format(PRINTK);
}

void trace_start(void)
{
	put("trace", ""); /* opening it for writing empties the rings */
	put("tracing_on", "1");
}

void trace_stop(void)
{
	put("tracing_on", "0");
}

static void send_ring(int cpu)
{
	static char page[65536];
	char path[100];
	char name[32];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "page %d", cpu);
	snprintf(path, sizeof(path), ROOT "per_cpu/cpu%d/trace_pipe_raw", cpu);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return;
	while ((n = read(fd, page, 4096)) > 0)
		frame_bytes(name, page, n);
	close(fd);
	snprintf(name, sizeof(name), "stats %d", cpu);
	snprintf(path, sizeof(path), ROOT "per_cpu/cpu%d/stats", cpu);
	frame_file(name, path);
}

void trace_send(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int cpu;

	for (cpu = 0; cpu < cpus; cpu++)
		send_ring(cpu);
}
