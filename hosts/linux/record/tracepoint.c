/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.c - which events of its scheduler this kernel shows.
 *
 * Their numbers and the places of their fields are read from tracefs, since they
 * differ from kernel to kernel. Where tracefs is mounted nowhere, it is mounted
 * in a mount namespace of its own: the machine stays as it was.
 *
 * Read next: ring.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

#define TRACEFS "/sys/kernel/tracing"
#define TRACEFS_OLD "/sys/kernel/debug/tracing"
#define FORMAT_BYTES_MAX 8192

/* ring.c takes the fields by their places in these lists. */
#define EVENT(path, made, ...) \
	{ .name = path, .kind = made, .fields = { __VA_ARGS__ } }

struct tracepoint tracepoints[NR_TRACEPOINTS] = {
	EVENT("sched/sched_switch", EVENT_SWITCH, "prev_pid", "next_pid", "prev_state", "next_prio",
	      "prev_comm", "next_comm"),
	EVENT("sched/sched_waking", EVENT_WAKING, "pid", "target_cpu"),
	EVENT("sched/sched_wakeup", EVENT_WAKEUP, "pid", "target_cpu"),
	EVENT("sched/sched_wakeup_new", EVENT_NEW, "pid", "target_cpu", "comm"),
	EVENT("sched/sched_migrate_task", EVENT_MIGRATE, "pid", "orig_cpu", "dest_cpu"),
	EVENT("sched/sched_process_fork", EVENT_FORK, "child_pid", "parent_pid"),
	EVENT("sched/sched_process_exit", EVENT_EXIT, "pid"),
	EVENT("sched/sched_process_exec", EVENT_EXEC, "pid", "old_pid"),
	/* Makes every system call of the machine slower: only where asked for. */
	EVENT("syscalls/sys_enter_sched_yield", EVENT_YIELD, NULL),
	/* These three, too: where the causes of waits are asked for. */
	EVENT("raw_syscalls/sys_enter", EVENT_CALL, "id", "args"),
	EVENT("raw_syscalls/sys_exit", EVENT_RETURN, "id", "ret"),
	EVENT("task/task_newtask", EVENT_THREAD, "pid", "clone_flags"),
	/* Tells of those from which the kernel has hidden a switch. */
	EVENT("sched/sched_stat_runtime", EVENT_RUNTIME, "pid", "runtime"),
};

static const char *const places[] = { TRACEFS, TRACEFS_OLD };
static char wrong[512];

static int read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, bytes - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

static const char *find_tracefs(void)
{
	char path[200];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/sched", places[i]);
		if (!access(path, X_OK))
			return places[i];
	}
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("nodev", TRACEFS, "tracefs", MS_RDONLY, NULL))
		return TRACEFS;
	return NULL;
}

/* One `field:...;	offset:N;	size:N;` of a format file. */
static bool find_field(const char *format, const char *name, uint16_t *offset, uint16_t *size)
{
	size_t length = strlen(name);
	const char *at = format;

	while ((at = strstr(at, name))) {
		const char *end = at + length;
		bool is_word = (at[-1] == ' ' || at[-1] == '\t') && (*end == ';' || *end == '[');

		at = end;
		if (!is_word)
			continue;
		end = strchr(end, ';');
		return end && sscanf(end, "; offset:%hu; size:%hu;", offset, size) == 2;
	}
	return false;
}

static const char *read_tracepoint(const char *tracefs, struct tracepoint *t)
{
	static char format[FORMAT_BYTES_MAX];
	char path[300];
	const char *id;
	int error;

	snprintf(path, sizeof(path), "%s/events/%s/format", tracefs, t->name);
	error = read_text(path, format, sizeof(format));
	if (error) {
		snprintf(wrong, sizeof(wrong), "%s: %s%s", path, strerror(-error),
			 error == -EACCES ? "; it needs root, or membership of "
					    "the group that may read tracefs" :
					    "");
		return wrong;
	}
	id = strstr(format, "\nID: ");
	t->id = id ? atoi(id + 5) : -1;
	for (int i = 0; t->fields[i]; i++) {
		if (t->id > 0 && find_field(format, t->fields[i], &t->offset[i], &t->size[i]))
			continue;
		snprintf(wrong, sizeof(wrong), "%s: this kernel's event has no field %s", path,
			 t->fields[i]);
		return wrong;
	}
	return NULL;
}

static bool is_wanted(uint8_t kind, bool with_yields, bool with_calls)
{
	if (kind == EVENT_CALL || kind == EVENT_RETURN || kind == EVENT_THREAD)
		return with_calls;
	return kind != EVENT_YIELD || with_yields;
}

const char *tracepoints_find(bool with_yields, bool with_calls)
{
	const char *tracefs = find_tracefs();

	if (!tracefs) {
		snprintf(wrong, sizeof(wrong),
			 "tracefs is not readable at %s, and mounting it needs "
			 "CAP_SYS_ADMIN: start as root, or have root do: mount "
			 "-t tracefs -o mode=755 nodev %s",
			 TRACEFS, TRACEFS);
		return wrong;
	}
	for (int i = 0; i < NR_TRACEPOINTS; i++) {
		const char *failed;

		tracepoints[i].id = -1;
		if (!is_wanted(tracepoints[i].kind, with_yields, with_calls))
			continue;
		failed = read_tracepoint(tracefs, &tracepoints[i]);
		if (failed)
			return failed;
	}
	return NULL;
}

int tracepoint_count(int id, int cpu, int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)id,
		/* A group has one clock. */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);

	return (int)fd;
}

int tracepoint_open(int id, int cpu, uint32_t watermark_bytes, bool is_leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)id,
		.sample_period = 1,
		/*
		 * The period is not read. But without it sched_stat_runtime,
		 * which counts nanoseconds, makes a sample of each one, and is
		 * throttled for good when a tick has had 400.
		 */
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW |
			       (is_leader ? PERF_SAMPLE_READ : 0),
		.read_format = PERF_FORMAT_LOST | (is_leader ? PERF_FORMAT_GROUP : 0),
		.disabled = 1,
		/* One clock for all CPUs, and for the launcher, which starts and ends commands. */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = watermark_bytes,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EINVAL) {
		/* Before Linux 6.0: what is lost last of all is not counted. */
		attr.read_format = is_leader ? PERF_FORMAT_GROUP : 0;
		fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : (int)fd;
}

const char *tracepoints_try(void)
{
	int fd = tracepoint_open(tracepoints[0].id, 0, 4096, false);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (fd == -EACCES || fd == -EPERM)
		snprintf(wrong, sizeof(wrong),
			 "perf_event_open of %s on a whole CPU is refused: it "
			 "needs CAP_PERFMON (or CAP_SYS_ADMIN), or "
			 "kernel.perf_event_paranoid of -1: start as root",
			 tracepoints[0].name);
	else
		snprintf(wrong, sizeof(wrong), "perf_event_open of %s: %s", tracepoints[0].name,
			 strerror(-fd));
	return wrong;
}
