/* SPDX-License-Identifier: MIT */
/*
 * disk.c - where the blocks are: on the virtio disk, or in RAM.
 *
 * A disk in RAM makes a run repeatable to the instruction: a real device answers
 * when the host gets round to it. Its image comes with the job: the boot argument
 * ramdisk=OFFSET says where in the initrd it begins, and what stands before it is
 * the job. Nothing that is written to it outlives the machine.
 *
 * Called by bio.c, log.c and fsmount.c. Read next: virtio_blk.c.
 */
#include "disk.h"

#include "bootargs.h"
#include "fs.h"
#include "mem.h"
#include "print.h"
#include "wait.h"

static u8 *ram;			/* the disk in RAM, or NULL */
static struct spinlock wait_lock;	/* guards every struct waiter */

/* On the stack of who waits for a transfer. */
struct waiter {
	struct waitq q;
	bool is_done;
};

u32 disk_init(void)
{
	u64 at = bootarg_u64("ramdisk", 0);

	initlock(&wait_lock, "transfer");
	if (!at)
		return virtio_blk_init();
	if (at % sizeof(u64) || at >= job_bytes) {
		printk("disk: ramdisk=%llu is no place in the initrd of %llu bytes",
		       at, job_bytes);
		return 0;
	}
	ram = job_start + at;
	at = job_bytes - at;
	job_bytes -= at;
	return at / BSIZE;
}

static void ram_submit(struct disk_request *r)
{
	u8 *place = ram + (u64)r->block * BSIZE;

	if (r->op == DISK_READ)
		memcpy(r->data, place, r->nr_blocks * BSIZE);
	else if (r->op == DISK_WRITE)
		memcpy(place, r->data, r->nr_blocks * BSIZE);
	r->has_failed = false;
	push_off();
	r->done(r);
	pop_off();
}

void disk_submit(struct disk_request *r)
{
	if (ram)
		ram_submit(r);
	else
		virtio_blk_submit(r);
}

bool disk_is_busy(void)
{
	return !ram && virtio_blk_is_busy();
}

static void wake_waiter(struct disk_request *r)
{
	struct waiter *w = r->arg;

	acquire(&wait_lock);
	w->is_done = true;
	wake_one(&w->q);
	release(&wait_lock);
}

bool disk_transfer(enum disk_op op, u32 block, u32 nr_blocks, void *data)
{
	struct waiter w = { .is_done = false };
	struct disk_request r = {
		.op = op,
		.block = block,
		.nr_blocks = nr_blocks,
		.data = data,
		.done = wake_waiter,
		.arg = &w,
	};

	waitq_init(&w.q, "disk");
	disk_submit(&r);
	acquire(&wait_lock);
	while (!w.is_done)
		sleep_on(&w.q, &wait_lock);
	release(&wait_lock);
	return !r.has_failed;
}
