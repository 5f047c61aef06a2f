/* SPDX-License-Identifier: MIT */
/*
 * virtio.h - devices that QEMU offers by way of shared memory: virtio 1.2,
 * the split queue, over registers in memory (mmio).
 *
 *	driver                  queue in RAM                     device
 *	virtq_add()   --> descriptors, available ring  -- notify --> works
 *	virtq_take()  <-- used ring                    <-- interrupt --'
 *
 * A driver finds its device, agrees on features, sets up queues, says that it
 * is ready, and then adds chains of buffers and takes back those that are done:
 *
 *	if (!virtio_find(&dev, VIRTIO_ID_BLOCK)) ...
 *	virtio_negotiate(&dev, wanted); virtq_setup(&vq, &dev, 0); virtio_ready(&dev);
 *	irq_register(dev.irq, handler, ...);
 *
 * Locking is the driver's: one lock around all that touches a queue. Buffers
 * must lie in the direct map of RAM (a static variable, a page of kalloc()), not
 * on a kernel stack, which has addresses of its own.
 *
 * Read next: virtio.c; virtio_blk.c and virtio_serial.c, its two drivers.
 */
#ifndef KERNEL_VIRTIO_H
#define KERNEL_VIRTIO_H

#include <scx/types.h>

enum virtio_id {
	VIRTIO_ID_BLOCK = 2,
	VIRTIO_ID_CONSOLE = 3, /* virtio-serial is this one */
};

#define VIRTIO_F_VERSION_1 (1ULL << 32)

struct virtio_dev {
	volatile u8 *regs; /* the mmio slot */
	u32 irq;	   /* for irq_register() */
	u64 features;	   /* agreed on by virtio_negotiate() */
};

/* Descriptors of a queue; a power of two. */
#define VIRTQ_SIZE 128

/* The three parts of a split queue, as the standard lays them out. */
struct virtq_desc {
	u64 addr;
	u32 len;
	u16 flags;
	u16 next;
};

struct virtq_avail {
	u16 flags;
	u16 idx;
	u16 ring[VIRTQ_SIZE];
};

struct virtq_used {
	u16 flags;
	u16 idx;
	struct {
		u32 id;
		u32 len;
	} ring[VIRTQ_SIZE];
};

/* About 4 KiB: a static variable of the driver, which the device sees. */
struct virtq {
	struct virtq_desc desc[VIRTQ_SIZE] __attribute__((aligned(16)));
	struct virtq_avail avail __attribute__((aligned(2)));
	struct virtq_used used __attribute__((aligned(4)));
	/* What follows is the driver's own. */
	struct virtio_dev *dev;
	u32 queue_idx;
	u16 free_head; /* list through desc[].next */
	u16 nr_free;
	u16 nr_seen;		 /* of used.idx */
	void *token[VIRTQ_SIZE]; /* by the head of its chain */
};

/* A piece of memory in a chain. */
struct virtq_buf {
	void *mem;
	u32 bytes;
};

/*
 * Look for a device of kind @id in the eight slots, and fill in @dev. Return: false
 * when there is none. QEMU fills the slots from the last to the first, so of two
 * alike it is the one that the command line names last.
 */
bool virtio_find(struct virtio_dev *dev, u32 id);

/**
 * virtio_negotiate - reset @dev and agree on features
 * @wanted: VIRTIO_F_* and the device's own bits; those that the device has are
 *	in dev->features afterwards. VIRTIO_F_VERSION_1 is always asked for.
 *
 * Return: false when the device refuses, or is of the legacy kind.
 */
bool virtio_negotiate(struct virtio_dev *dev, u64 wanted);

/**
 * virtq_setup - make @vq the device's queue number @queue_idx
 *
 * Between virtio_negotiate() and virtio_ready().
 * Return: false when the device has no such queue, or only a shorter one.
 */
bool virtq_setup(struct virtq *vq, struct virtio_dev *dev, u32 queue_idx);

/* The device may work from now on. */
void virtio_ready(struct virtio_dev *dev);

/**
 * virtq_add - queue one chain of buffers
 * @bufs: first @nr_out that the device reads, then @nr_in that it writes
 * @token: what virtq_take() will return for it; not NULL
 *
 * The device looks at it after the next virtq_notify().
 * Return: false when too few descriptors are free; nothing is changed then.
 */
bool virtq_add(struct virtq *vq, const struct virtq_buf *bufs, u32 nr_out, u32 nr_in, void *token);

/* Tell the device that chains were added. */
void virtq_notify(struct virtq *vq);

/* Return: the token of a chain that the device is done with; NULL: there is none. */
void *virtq_take(struct virtq *vq);

/* In the handler, before virtq_take(): the interrupt is seen. */
void virtio_ack(struct virtio_dev *dev);

/* The device's own configuration space, @offset bytes into it; at boot. */
u64 virtio_config_u64(struct virtio_dev *dev, u32 offset);

#endif
