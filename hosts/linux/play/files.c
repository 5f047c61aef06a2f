/* SPDX-License-Identifier: MIT */
/*
 * files.c - `read` and `write`: real files, on the disk that the folder is on.
 *
 * All tasks read one file that was written to the disk before the run, each from
 * a place of its own; each writes a file of its own. They have no names, so that
 * nothing is left of them, however the run ends.
 *
 * `sync` means that every call waits for the device: a read's pages are dropped
 * from the page cache before it, a write is followed by fdatasync(). `direct`
 * goes past the cache, and then needs whole blocks of the device.
 *
 * Read next: task.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "play.h"

#define MIB (1ULL << 20)
#define FILE_BYTES_MIN (4 * MIB)
#define FILE_BYTES_MAX (256 * MIB)
/* No call moves more at once; larger ones are made in several. */
#define CALL_BYTES_MAX (16 * MIB)
#define BLOCK_BYTES 4096

static int input_fd = -1;
static int input_direct_fd = -1;
static u64 file_bytes = FILE_BYTES_MIN;
static u64 call_bytes = BLOCK_BYTES;

/* A task's own; a spawned child sets its own anew. */
static _Thread_local int output_fd = -1;
static _Thread_local int output_direct_fd = -1;
static _Thread_local u64 read_at, write_at;
static _Thread_local char *buffer;

static bool is_file_op(const struct sl_program_op *op)
{
	return op->verb == SL_VERB_READ || op->verb == SL_VERB_WRITE;
}

/* Does a task have such an op? @verb: SL_NR_VERBS, either. */
static bool has_op(u32 task, u32 verb, u8 flags)
{
	const struct sl_program_task *t = &sl_program_tasks(run.program)[task];
	const struct sl_program_op *op = sl_program_ops(run.program) + t->op_first;

	for (u32 i = 0; i < t->nr_ops; i++, op++) {
		if ((verb == SL_NR_VERBS ? is_file_op(op) : op->verb == verb) &&
		    (op->flags & flags) == flags)
			return true;
	}
	return false;
}

const char *files_system_name(void)
{
	static const struct {
		long magic;
		const char *name;
	} known[] = {
		{ 0xef53, "ext4" },	 { 0x01021994, "tmpfs" },     { 0x58465342, "xfs" },
		{ 0x9123683e, "btrfs" }, { 0x794c7630, "overlayfs" }, { 0x6969, "nfs" },
		{ 0x2fc12fc1, "zfs" },	 { 0xf2f52010, "f2fs" },
	};
	struct statfs fs;

	if (input_fd < 0 || fstatfs(input_fd, &fs))
		return "";
	for (u32 i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].magic == (long)fs.f_type)
			return known[i].name;
	}
	return "unknown";
}

static int open_unnamed(void)
{
	return open(run.options.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* The same file without the page cache; -1 with errno where that is refused. */
static int open_direct(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
}

/* Real bytes, on the device: a hole is never read from there. */
static int fill(int fd)
{
	char *bytes = malloc(MIB);
	int failed = bytes ? 0 : ENOMEM;

	for (u64 at = 0; at < file_bytes && !failed; at += MIB) {
		memset(bytes, (int)(at / MIB) + 1, MIB);
		if (pwrite(fd, bytes, MIB, (off_t)at) != (ssize_t)MIB)
			failed = errno ? errno : ENOSPC;
	}
	if (!failed && fsync(fd))
		failed = errno;
	free(bytes);
	return failed;
}

/* The largest call, and the largest transfer, decide about the sizes. */
static void measure_ops(void)
{
	const struct sl_program_op *ops = sl_program_ops(run.program);
	u32 nr = sl_program_header(run.program)->nr_ops;

	for (u32 i = 0; i < nr; i++) {
		u64 bytes = ops[i].flags & SL_OP_TABLE ? 0 : ops[i].b;

		if (!is_file_op(&ops[i]))
			continue;
		while (file_bytes < bytes && file_bytes < FILE_BYTES_MAX)
			file_bytes *= 2;
		while (call_bytes < ops[i].a && call_bytes < CALL_BYTES_MAX)
			call_bytes *= 2;
	}
}

int files_open(void)
{
	bool is_wanted = false;
	bool is_direct = false;
	int failed;

	for (u32 i = 0; i < run.nr_tasks; i++) {
		is_wanted |= has_op(i, SL_NR_VERBS, 0);
		is_direct |= has_op(i, SL_NR_VERBS, SL_OP_DIRECT);
	}
	if (!is_wanted)
		return 0;
	measure_ops();
	input_fd = open_unnamed();
	failed = input_fd < 0 ? errno : fill(input_fd);
	if (failed) {
		run_fail("host", 0,
			 "%s: no room for the %llu MiB that the tasks read: %s; make room there",
			 run.options.folder, file_bytes / MIB, strerror(failed));
		return -1;
	}
	posix_fadvise(input_fd, 0, 0, POSIX_FADV_RANDOM);
	if (is_direct) {
		input_direct_fd = open_direct(input_fd);
		if (input_direct_fd < 0) {
			run_fail("host", 0,
				 "%s: its file system (%s) has no O_DIRECT, which the workload asks for: %m; run it in a folder on a disk",
				 run.options.folder, files_system_name());
			return -1;
		}
	}
	return 0;
}

int files_open_own(u32 task)
{
	output_fd = output_direct_fd = -1;
	buffer = NULL;
	if (!has_op(task, SL_NR_VERBS, 0))
		return 0;
	/* In the middle of the file for every other, and so on. */
	read_at = (u64)task * 7 * MIB % file_bytes;
	write_at = 0;
	buffer = mmap(NULL, call_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffer == MAP_FAILED)
		return -ENOMEM;
	if (!has_op(task, SL_VERB_WRITE, 0))
		return 0;
	output_fd = open_unnamed();
	if (output_fd < 0)
		return -errno;
	if (has_op(task, SL_VERB_WRITE, SL_OP_DIRECT)) {
		output_direct_fd = open_direct(output_fd);
		if (output_direct_fd < 0)
			return -errno;
	}
	return 0;
}

/* Where the next call begins, and how long it is, within the file. */
static u64 next_call(u64 *at, u64 left, u32 chunk_bytes)
{
	u64 bytes = chunk_bytes < left ? chunk_bytes : left;

	if (bytes > call_bytes)
		bytes = call_bytes;
	if (*at + bytes > file_bytes)
		*at = 0;
	return bytes;
}

int files_read(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	int fd = flags & SL_OP_DIRECT ? input_direct_fd : input_fd;

	(void)p;
	while (bytes) {
		u64 nr = next_call(&read_at, bytes, chunk_bytes);
		ssize_t got;

		if ((flags & (SL_OP_SYNC | SL_OP_DIRECT)) == SL_OP_SYNC)
			posix_fadvise(fd, (off_t)read_at, (off_t)nr, POSIX_FADV_DONTNEED);
		got = pread(fd, buffer, nr, (off_t)read_at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got != (ssize_t)nr)
			return got < 0 ? -errno : -EIO;
		read_at += nr;
		bytes -= nr;
	}
	return 0;
}

int files_write(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	int fd = flags & SL_OP_DIRECT ? output_direct_fd : output_fd;

	(void)p;
	while (bytes) {
		u64 nr = next_call(&write_at, bytes, chunk_bytes);
		ssize_t put = pwrite(fd, buffer, nr, (off_t)write_at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put != (ssize_t)nr)
			return put < 0 ? -errno : -ENOSPC;
		if (flags & SL_OP_SYNC && fdatasync(fd))
			return -errno;
		write_at += nr;
		bytes -= nr;
	}
	return 0;
}
