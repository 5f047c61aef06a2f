/* SPDX-License-Identifier: MIT */
/*
 * ramdisk.c - a disk in RAM, which answers at once.
 *
 * It makes a run repeatable to the instruction: a real device answers when the host
 * gets round to it. Its image comes with the job: the boot argument ramdisk=OFFSET
 * says where in the initrd it begins, and what stands before it is the job, if
 * anything does. Nothing that is written to it outlives the machine.
 *
 * Called by kernel/disk.c through lab.h. Read next: job.c.
 */
#include <schedlab/host.h>

#include "bootargs.h"
#include "disk.h"
#include "fs.h"
#include "mem.h"
#include "print.h"
#include "spinlock.h"

#define NOWHERE (~0ULL)

static u8 *image; /* NULL: the disk is the machine's */

u32 lab_disk_init(void)
{
	u64 at = bootarg_u64("ramdisk", NOWHERE);
	u64 bytes = job_bytes - at;

	if (at == NOWHERE)
		return 0;
	if (at % sizeof(u64) || at >= job_bytes)
		panic("ramdisk=%llu is no place in the initrd of %llu bytes", at, job_bytes);
	image = job_start + at;
	job_bytes = at;
	return (u32)(bytes / BSIZE);
}

bool lab_disk_submit(struct disk_request *r)
{
	u8 *place = image + (u64)r->block * BSIZE;

	if (!image)
		return false;
	if (r->op == DISK_READ)
		memcpy(r->data, place, r->nr_blocks * BSIZE);
	else if (r->op == DISK_WRITE)
		memcpy(place, r->data, r->nr_blocks * BSIZE);
	r->has_failed = false;
	push_off();
	r->done(r);
	pop_off();
	return true;
}
