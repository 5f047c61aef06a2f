/* SPDX-License-Identifier: MIT */
/*
 * output.c - the file of records, put in order of time as they are found out.
 *
 * What happened to a task is at times known only a little later: when an unseen
 * start was, on which CPU a woken task will run. So the last records stay in
 * memory, where they can be inserted before and changed.
 *
 * Called by lives.c. Read next: include/schedlab/record.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <schedlab/record.h>

#include "record.h"

/* Records that may still be changed. */
#define OUT_RECORDS 65536
/* How far back the wake-up is looked for. */
#define WAKE_RECORDS 64

static struct {
	int fd;
	u64 nr_flushed;
	u32 nr;
	struct sl_record records[OUT_RECORDS];
} out;

static void write_out(const void *data, size_t bytes)
{
	int error = write_whole(out.fd, data, bytes);

	if (error)
		refuse("the records cannot be written: %s; the recorded events "
		       "are kept: make room, then schedlab import",
		       strerror(error));
}

/* The younger half stays, so that it can be changed. */
static void flush_records(u32 nr)
{
	write_out(out.records, nr * sizeof(out.records[0]));
	memmove(out.records, out.records + nr, (out.nr - nr) * sizeof(out.records[0]));
	out.nr -= nr;
	out.nr_flushed += nr;
}

void output_put(uint64_t t_ns, uint32_t task, uint16_t cpu, uint8_t kind, uint8_t flags,
		uint64_t arg)
{
	u32 at;

	if (out.nr == OUT_RECORDS)
		flush_records(OUT_RECORDS / 2);
	at = out.nr++;
	while (at && out.records[at - 1].t_ns > t_ns) {
		out.records[at] = out.records[at - 1];
		at--;
	}
	/* What is older is written, and time does not go back. */
	if (!at && out.nr > 1 && out.nr_flushed)
		t_ns = out.records[1].t_ns;
	out.records[at] = (struct sl_record){
		.t_ns = t_ns,
		.task = task,
		.cpu = cpu,
		.kind = kind,
		.flags = flags,
		.arg = arg,
	};
}

void output_set_wake_cpu(uint32_t task, uint16_t cpu)
{
	u32 last = out.nr > WAKE_RECORDS ? out.nr - WAKE_RECORDS : 0;

	for (u32 i = out.nr; task && i-- > last;) {
		struct sl_record *r = &out.records[i];

		if (r->task == task && (r->kind == SL_RECORD_WAKE || r->kind == SL_RECORD_ARRIVE)) {
			r->cpu = cpu;
			return;
		}
	}
}

bool output_set_blocked(uint32_t task)
{
	for (u32 i = out.nr; task && i--;) {
		struct sl_record *r = &out.records[i];

		if (r->task == task && r->kind == SL_RECORD_STOP) {
			r->flags = SL_STOP_BLOCKED;
			return true;
		}
	}
	return false;
}

void output_open(const char *path, uint32_t nr_cpus, uint64_t tick_ns)
{
	struct sl_record_header header = {
		.magic = SL_RECORD_MAGIC,
		.version = SL_RECORD_VERSION,
		.header_bytes = sizeof(header),
		.record_bytes = sizeof(struct sl_record),
		.nr_cpus = nr_cpus,
		.tick_ns = tick_ns,
	};

	out.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out.fd < 0)
		refuse("%s: %s", path, strerror(errno));
	write_out(&header, sizeof(header));
}

uint64_t output_close(uint64_t end_ns)
{
	u64 nr = out.nr_flushed + out.nr;

	output_put(end_ns, 0, 0, SL_RECORD_END, 0, nr);
	flush_records(out.nr);
	if (close(out.fd))
		refuse("the records cannot be written: %s", strerror(errno));
	return nr;
}
