/* SPDX-License-Identifier: MIT */
/*
 * records.c - what happened, kept by each CPU for itself, merged at the end.
 *
 * A CPU fills blocks of records; no other CPU looks at them while it runs. At the
 * end they are merged by time into one file (record.h). When the memory set aside
 * for them is full, records are lost, and the file says how many.
 *
 * Read next: include/schedlab/record.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ut.h"

#define BLOCK_RECORDS 32768
#define BLOCKS_MAX 4096		/* of all CPUs together: 3 GiB */
#define OUT_RECORDS 4096

struct block {
	struct block *next;
	struct sl_record records[BLOCK_RECORDS];
};

/* One per CPU. */
struct log {
	struct block *first, *last;
	u64 nr_lost;
	/* While merging: */
	struct block *block;
	const struct sl_record *at, *end;
};

static struct log *logs;
static u32 nr_blocks;
bool ut_has_records;
static int fd = -1;
static int write_error;
static struct sl_record out[OUT_RECORDS];
static u32 nr_out;
static u64 nr_written;

static bool add_block(struct ut_cpu *cpu, struct log *log)
{
	struct block *block = NULL;

	if (__atomic_add_fetch(&nr_blocks, 1, __ATOMIC_RELAXED) <= BLOCKS_MAX)
		block = sl_host_alloc(sizeof(*block));
	if (!block)
		return false;
	if (log->last)
		log->last->next = block;
	else
		log->first = block;
	log->last = block;
	cpu->hot.record_at = block->records;
	cpu->hot.record_end = block->records + BLOCK_RECORDS;
	return true;
}

/* The last record of a block is taken. Context: on that CPU. */
static void take_block(struct ut_cpu *cpu)
{
	struct log *log = &logs[cpu->id];

	if (add_block(cpu, log))
		return;
	/* The last place is used again and again: all but one are lost. */
	log->nr_lost++;
	cpu->hot.record_at = cpu->hot.record_end - 1;
}

/* Stamped with the last reading of the clock: the core has just asked it. */
void ut_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	struct ut_cpu *here = ut_this_cpu();

	*here->hot.record_at++ = (struct sl_record){
		.t_ns = here->hot.now_ns,
		.task = (u32)task,
		.cpu = (u16)cpu,
		.kind = kind,
		.flags = flags,
		.arg = arg,
	};
	if (here->hot.record_at == here->hot.record_end)
		take_block(here);
}

static void write_out(void)
{
	const char *at = (const char *)out;
	size_t bytes = nr_out * sizeof(out[0]);

	while (bytes && !write_error) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			write_error = -errno;
			break;
		}
		at += n;
		bytes -= (size_t)n;
	}
	nr_out = 0;
}

static void put(const struct sl_record *r)
{
	out[nr_out++] = *r;
	nr_written++;
	if (nr_out == OUT_RECORDS)
		write_out();
}

/* Return: 0 or -errno. Context: before any kernel thread runs. */
int ut_records_open(const char *path)
{
	struct sl_record_header h = {
		.version = SL_RECORD_VERSION,
		.header_bytes = sizeof(h),
		.record_bytes = sizeof(struct sl_record),
		.nr_cpus = ut.nr_cpus,
		.tick_ns = ut.tick_ns,
	};

	memcpy(h.magic, SL_RECORD_MAGIC, sizeof(h.magic));
	write_error = 0;
	nr_out = 0;
	nr_written = 0;
	nr_blocks = 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return ut_fail(-errno, "records %s: %s", path, strerror(errno));
	logs = sl_host_alloc(ut.nr_cpus * sizeof(*logs));
	if (!logs || write(fd, &h, sizeof(h)) != sizeof(h))
		return ut_fail(-EIO, "records %s: cannot be written", path);
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		if (!add_block(&ut.cpus[i], &logs[i]))
			return -ENOMEM;
	}
	ut_has_records = true;
	return 0;
}

static void set_block(struct log *log, struct block *block, const struct sl_record *last_at)
{
	log->block = block;
	if (!block)
		return;
	log->at = block->records;
	log->end = block == log->last ? last_at : block->records + BLOCK_RECORDS;
}

/* Step over the ends of blocks. Return: whether there is a record left. */
static bool has_more(struct log *log, const struct sl_record *last_at)
{
	while (log->block && log->at == log->end)
		set_block(log, log->block->next, last_at);
	return log->block;
}

static void merge(void)
{
	for (;;) {
		struct log *first = NULL;

		for (u32 i = 0; i < ut.nr_cpus; i++) {
			if (has_more(&logs[i], ut.cpus[i].hot.record_at) &&
			    (!first || logs[i].at->t_ns < first->at->t_ns))
				first = &logs[i];
		}
		if (!first)
			return;
		put(first->at++);
	}
}

static void free_log(struct log *log)
{
	while (log->first) {
		struct block *block = log->first;

		log->first = block->next;
		sl_host_free(block, sizeof(*block));
	}
}

/* Return: 0, or -errno of the first write that failed. */
int ut_records_close(void)
{
	struct sl_record end = { .t_ns = ut_clock_ns(), .kind = SL_RECORD_END };

	if (fd < 0)
		return 0;
	ut_has_records = false;
	for (u32 i = 0; logs && i < ut.nr_cpus; i++)
		set_block(&logs[i], logs[i].first, ut.cpus[i].hot.record_at);
	if (logs)
		merge();
	for (u32 i = 0; logs && i < ut.nr_cpus; i++) {
		struct sl_record lost = { .t_ns = end.t_ns,
					  .cpu = (u16)i,
					  .kind = SL_RECORD_LOST,
					  .arg = logs[i].nr_lost };

		if (lost.arg)
			put(&lost);
		free_log(&logs[i]);
	}
	end.arg = nr_written;
	put(&end);
	write_out();
	sl_host_free(logs, ut.nr_cpus * sizeof(*logs));
	logs = NULL;
	if (close(fd) && !write_error)
		write_error = -errno;
	fd = -1;
	return write_error;
}
