/* SPDX-License-Identifier: MIT */
/*
 * record.c - writes the record file as the run goes on, in constant memory.
 *
 * sl_host_record() in host_inline.h fills a buffer; this file empties it. A
 * write that fails is remembered and reported when the file is closed: the END
 * record is then missing, and readers refuse the file.
 *
 * Read next: include/schedlab/record.h.
 */
#include <string.h>

#include "sim.h"

struct sl_record *sim_record_at;
struct sl_record *sim_record_end;

struct sl_record sim_records_buffer[SIM_RECORDS_BUFFER];
static struct sl_record *buffer = sim_records_buffer;
static int fd = -1;
static int write_error;
static u64 nr_written;

static void write_all(const void *data, u64 bytes)
{
	if (fd >= 0 && !write_error)
		write_error = sim_file_write(fd, data, bytes);
}

/*
 * The policy's user half is no task of the workload: what it ran is overhead, and the rest of its
 * records goes. Return: how many of the buffer's records are left.
 */
static size_t hide_user_half(void)
{
	size_t nr = 0, nr_all = (size_t)(sim_record_at - buffer);

	if (!sim.nr_user_tasks)
		return nr_all;
	for (size_t i = 0; i < nr_all; i++) {
		struct sl_record r = buffer[i];

		if (r.task > sim.nr_tasks && r.kind != SL_RECORD_STOP)
			continue;
		if (r.task > sim.nr_tasks) {
			r.task = 0;
			r.kind = SL_RECORD_OVERHEAD;
			r.flags = SL_OVERHEAD_USER_HALF;
		}
		buffer[nr++] = r;
	}
	sim_record_at = buffer + nr;
	return nr;
}

void sim_records_flush(void)
{
	size_t nr = hide_user_half();

	write_all(buffer, nr * sizeof(buffer[0]));
	nr_written += nr;
	sim_record_at = buffer;
}

/* Return: 0 or -errno. Context: before the first record. */
int sim_records_open(const char *path)
{
	struct sl_record_header h = {
		.version = SL_RECORD_VERSION,
		.header_bytes = sizeof(h),
		.record_bytes = sizeof(struct sl_record),
		.nr_cpus = sim.options->nr_cpus,
		.tick_ns = sim.options->tick_ns,
	};

	memcpy(h.magic, SL_RECORD_MAGIC, sizeof(h.magic));
	fd = sim_file_create(path);
	if (fd < 0)
		return fd;
	write_all(&h, sizeof(h));
	sim_record_at = buffer;
	sim_record_end = buffer + SIM_RECORDS_BUFFER;
	return write_error;
}

/* Keep the records in memory: @nr at @at; what is more overwrites them. */
void sim_records_keep(struct sl_record *at, u64 nr)
{
	buffer = at;
	sim_record_at = at;
	sim_record_end = at + nr;
}

u64 sim_records_count(void)
{
	return nr_written + (sim_record_at ? hide_user_half() : 0);
}

/* Return: 0, or -errno of the first write that failed. */
int sim_records_close(void)
{
	u64 nr = sim_records_count();
	int err;

	if (!sim_record_at)
		return 0;
	sl_host_record(SL_RECORD_END, 0, 0, 0, nr);
	sim_records_flush();
	sim_record_at = NULL;
	err = fd >= 0 ? sim_file_close(fd) : 0;
	return write_error ? write_error : err;
}
