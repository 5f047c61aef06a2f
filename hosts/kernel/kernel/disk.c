/* SPDX-License-Identifier: MIT */
/*
 * disk.c - the disk, and waiting for it: the virtio device, unless the laboratory
 * has one in RAM.
 *
 * Called by bio.c, log.c and fsmount.c. Read next: virtio_blk.c.
 */
#include "disk.h"

#include <schedlab/host.h>

#include "wait.h"

static struct spinlock wait_lock; /* guards every struct waiter */

/* On the stack of the process that waits for a transfer. */
struct waiter {
	struct waitq q;
	bool is_done;
};

u32 disk_init(void)
{
	u32 nr_blocks = lab_disk_init();

	initlock(&wait_lock, "transfer");
	return nr_blocks ? nr_blocks : virtio_blk_init();
}

void disk_submit(struct disk_request *r)
{
	if (!lab_disk_submit(r))
		virtio_blk_submit(r);
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
