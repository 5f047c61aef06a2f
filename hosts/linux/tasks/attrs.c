/* SPDX-License-Identifier: MIT */
/*
 * attrs.c - a task's attributes, where a policy finds them: in its map, by pid.
 *
 * The calls are plain bpf(2), so that a program that only plays workloads needs no
 * library for them.
 *
 * Read next: include/scx/task_attr.h, the policy's side.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <stdint.h>
#include <unistd.h>

#include <scx/ops.h>
#include <scx/attrs.h>

#include "tasks.h"

/* The machine's own namespace of process numbers: PROC_PID_INIT_INO. */
#define FIRST_PIDS 0xEFFFFFFCU

static int bpf(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

static int access_map(int command, int fd, s32 *pid, struct task_attr *attrs)
{
	union bpf_attr attr = { 0 };

	attr.map_fd = (u32)fd;
	attr.key = (uintptr_t)pid;
	attr.value = (uintptr_t)attrs;
	return bpf(command, &attr);
}

int attrs_open(u32 map_id)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr by_id = { .map_id = map_id };
	union bpf_attr about = { 0 };
	struct stat pids;
	int failed;
	int fd;

	/* A policy knows tasks by the machine's numbers, this program by its namespace's. */
	if (stat("/proc/self/ns/pid", &pids) || pids.st_ino != FIRST_PIDS)
		return -ENOTSUP;
	fd = bpf(BPF_MAP_GET_FD_BY_ID, &by_id);
	if (fd < 0)
		return fd;
	about.info.bpf_fd = (u32)fd;
	about.info.info_len = sizeof(info);
	about.info.info = (uintptr_t)&info;
	failed = bpf(BPF_OBJ_GET_INFO_BY_FD, &about);
	if (!failed && info.value_size == sizeof(struct task_attr))
		return fd;
	close(fd);
	return failed ? failed : -EPROTO;
}

int attrs_write(int attrs_fd, s32 pid, const struct sl_program_task *task)
{
	struct task_attr attrs = {
		.deadline_ns = task->deadline_ns,
		.burst_ns = task->burst_ns,
		.priority = task->priority,
		.tickets = task->tickets,
		.credits = task->credits,
		.cap_percent = task->cap_percent,
		.group = task->group,
		.given = task->attr_given,
	};

	return attrs_fd < 0 ? 0 : access_map(BPF_MAP_UPDATE_ELEM, attrs_fd, &pid, &attrs);
}

/*
 * S17: writing into a map does not queue a task anew, changing its Linux scheduling
 * policy does. SCHED_OTHER and SCHED_BATCH are the same to a sched_ext policy that
 * has all tasks. One that has those of SCHED_EXT alone would lose the task by it;
 * it reads the value at the task's next enqueue.
 */
static int requeue(s32 pid)
{
	struct sched_param no_priority = { 0 };
	int from = sched_getscheduler(pid);
	int to = from == SCHED_BATCH ? SCHED_OTHER : SCHED_BATCH;

	if (from != SCHED_OTHER && from != SCHED_BATCH)
		return 0;
	return sched_setscheduler(pid, to, &no_priority) ? -errno : 0;
}

int attrs_change(int attrs_fd, s32 pid, u32 key, u64 value)
{
	struct task_attr attrs = { 0 };
	int failed;

	if (attrs_fd < 0)
		return 0;
	access_map(BPF_MAP_LOOKUP_ELEM, attrs_fd, &pid, &attrs);
	switch (key) {
	case TASK_ATTR_PRIORITY:
		attrs.priority = (s32)value;
		break;
	case TASK_ATTR_TICKETS:
		attrs.tickets = (u32)value;
		break;
	case TASK_ATTR_CREDITS:
		attrs.credits = (s32)value;
		break;
	case TASK_ATTR_CAP:
		attrs.cap_percent = (u32)value;
		break;
	case TASK_ATTR_GROUP:
		attrs.group = (u32)value;
		break;
	case TASK_ATTR_DEADLINE:
		attrs.deadline_ns = value;
		break;
	case TASK_ATTR_BURST:
		attrs.burst_ns = value;
		break;
	}
	attrs.given |= 1U << key;
	failed = access_map(BPF_MAP_UPDATE_ELEM, attrs_fd, &pid, &attrs);
	return failed ? failed : requeue(pid);
}
