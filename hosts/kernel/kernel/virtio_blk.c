/* SPDX-License-Identifier: MIT */
/*
 * virtio_blk.c - the first block device of the machine.
 *
 * A request is a chain of three buffers: what is wanted, the data, a byte for
 * how it went (virtio 1.2, section 5.2.6); a flush has no data. Up to NR_SLOTS
 * are with the device, the rest wait in order.
 *
 *	disk_submit() --> [waiting] --> slot, queue --> device --interrupt--> done()
 *
 * Called by disk.c. Must stay true: `done` is called without the lock, since it
 * may submit the next request.
 *
 * Read next: virtio.c; bio.c, which asks.
 */
#include "board.h"
#include "disk.h"

#include "fs.h"
#include "mem.h"
#include "print.h"
#include "spinlock.h"
#include "virtio.h"

#define SECTOR_BYTES	512
#define NR_SLOTS	(VIRTQ_SIZE / 3)

#define VIRTIO_BLK_F_RO		(1ULL << 5)
#define VIRTIO_BLK_F_FLUSH	(1ULL << 9)
#define STATUS_OK		0

struct blk_head {
	u32 type; /* enum disk_op */
	u32 reserved;
	u64 sector;
};

/* What the device needs of a request; it cannot see the kernel stack. */
struct blk_slot {
	struct blk_head head;
	u8 status; /* the device writes it */
	struct disk_request *request;
	struct blk_slot *next_free;
};

static struct {
	struct virtio_dev dev;
	struct spinlock lock; /* guards all below */
	struct virtq vq;
	struct blk_slot slots[NR_SLOTS];
	struct blk_slot *free;
	struct disk_request *first, *last; /* waiting for a slot */
	u32 nr_pending;			   /* requests submitted and not done */
} blk;

/* Give @r to the device. Return: false when no slot is free. Context: blk.lock. */
static bool start(struct disk_request *r)
{
	struct blk_slot *slot = blk.free;
	struct virtq_buf bufs[3];
	u32 nr = 0, nr_out;

	if (!slot)
		return false;
	blk.free = slot->next_free;
	slot->request = r;
	slot->status = 0xff;
	slot->head = (struct blk_head){
		.type = r->op,
		.sector = r->op == DISK_FLUSH ? 0 : (u64)r->block * (BSIZE / SECTOR_BYTES),
	};
	bufs[nr++] = (struct virtq_buf){ &slot->head, sizeof(slot->head) };
	if (r->op != DISK_FLUSH)
		bufs[nr++] = (struct virtq_buf){ r->data, r->nr_blocks * BSIZE };
	nr_out = r->op == DISK_WRITE ? 2 : 1;
	bufs[nr++] = (struct virtq_buf){ &slot->status, 1 };
	if (!virtq_add(&blk.vq, bufs, nr_out, nr - nr_out, slot))
		panic("disk: a free slot, but no descriptors");
	return true;
}

void virtio_blk_submit(struct disk_request *r)
{
	r->next = NULL;
	acquire(&blk.lock);
	blk.nr_pending++;
	if (blk.first) {
		blk.last->next = r;
		blk.last = r;
	} else if (!start(r)) {
		blk.first = blk.last = r;
	}
	virtq_notify(&blk.vq);
	release(&blk.lock);
}

/* Take one request back and start those that wait. Return: it, or NULL. */
static struct disk_request *take_done(void)
{
	struct disk_request *r = NULL;
	struct blk_slot *slot;

	acquire(&blk.lock);
	slot = virtq_take(&blk.vq);
	if (slot) {
		r = slot->request;
		blk.nr_pending--;
		r->has_failed = slot->status != STATUS_OK;
		slot->next_free = blk.free;
		blk.free = slot;
		if (blk.first && start(blk.first)) {
			blk.first = blk.first->next;
			virtq_notify(&blk.vq);
		}
	}
	release(&blk.lock);
	return r;
}

bool disk_is_busy(void)
{
	return __atomic_load_n(&blk.nr_pending, __ATOMIC_RELAXED);
}

static void interrupt(void *arg)
{
	struct disk_request *r;

	virtio_ack(&blk.dev);
	while ((r = take_done()))
		r->done(r);
}

u32 virtio_blk_init(void)
{
	if (!virtio_find(&blk.dev, VIRTIO_ID_BLOCK)) {
		printk("disk: there is none; give QEMU a virtio-blk-device");
		return 0;
	}
	if (!virtio_negotiate(&blk.dev, VIRTIO_BLK_F_FLUSH | VIRTIO_BLK_F_RO) ||
	    !(blk.dev.features & VIRTIO_BLK_F_FLUSH) || !virtq_setup(&blk.vq, &blk.dev, 0)) {
		printk("disk: the device and its driver do not agree");
		return 0;
	}
	if (blk.dev.features & VIRTIO_BLK_F_RO) {
		printk("disk: it is read-only; give QEMU a copy, or snapshot=on");
		return 0;
	}
	initlock(&blk.lock, "disk");
	for (u32 i = 0; i < NR_SLOTS; i++) {
		blk.slots[i].next_free = blk.free;
		blk.free = &blk.slots[i];
	}
	irq_register(blk.dev.irq, interrupt, NULL);
	virtio_ready(&blk.dev);
	return virtio_config_u64(&blk.dev, 0) / (BSIZE / SECTOR_BYTES);
}
