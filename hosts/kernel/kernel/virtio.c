/* SPDX-License-Identifier: MIT */
/*
 * virtio.c - the split queue and the registers of virtio over mmio.
 *
 * Offsets and bits are those of the virtio 1.2 standard: section 4.2.2 for the
 * registers, 2.7 for the queue, 3.1 for the order of steps at the start. Memory
 * that the device shares is written before the index that announces it, and
 * registers after both; the fences below say so to the hart.
 *
 * Must stay true: a descriptor is on the free list or in a chain of the device,
 * never both.
 *
 * Read next: virtio_blk.c.
 */
#include "virtio.h"

#include "mem.h"
#include "memlayout.h"
#include "print.h"

enum virtio_reg {
	REG_MAGIC = 0x000,
	REG_VERSION = 0x004,
	REG_DEVICE_ID = 0x008,
	REG_DEVICE_FEATURES = 0x010,
	REG_DEVICE_FEATURES_SEL = 0x014,
	REG_DRIVER_FEATURES = 0x020,
	REG_DRIVER_FEATURES_SEL = 0x024,
	REG_QUEUE_SEL = 0x030,
	REG_QUEUE_NUM_MAX = 0x034,
	REG_QUEUE_NUM = 0x038,
	REG_QUEUE_READY = 0x044,
	REG_QUEUE_NOTIFY = 0x050,
	REG_INTERRUPT_STATUS = 0x060,
	REG_INTERRUPT_ACK = 0x064,
	REG_STATUS = 0x070,
	REG_QUEUE_DESC = 0x080,
	REG_QUEUE_DRIVER = 0x090,
	REG_QUEUE_DEVICE = 0x0a0,
	REG_CONFIG = 0x100,
};

#define VIRTIO_MAGIC		0x74726976	/* "virt" */
#define VIRTIO_VERSION_MODERN	2

#define STATUS_ACKNOWLEDGE	1
#define STATUS_DRIVER		2
#define STATUS_DRIVER_OK	4
#define STATUS_FEATURES_OK	8

#define DESC_NEXT	1
#define DESC_WRITE	2			/* the device writes it */

static u32 reg_read(struct virtio_dev *dev, u32 reg)
{
	return *(volatile u32 *)(dev->regs + reg);
}

static void reg_write(struct virtio_dev *dev, u32 reg, u32 value)
{
	*(volatile u32 *)(dev->regs + reg) = value;
}

static void reg_write_u64(struct virtio_dev *dev, u32 reg, u64 value)
{
	reg_write(dev, reg, (u32)value);
	reg_write(dev, reg + 4, (u32)(value >> 32));
}

/* Memory and registers, before and after: what a device needs. */
static void fence(void)
{
	asm volatile("fence iorw, iorw" : : : "memory");
}

bool virtio_find(struct virtio_dev *dev, u32 id)
{
	for (u32 slot = 0; slot < VIRTIO_SLOTS; slot++) {
		dev->regs = phys_to_virt(VIRTIO0 + slot * VIRTIO_STRIDE);
		dev->irq = VIRTIO0_IRQ + slot;
		dev->features = 0;
		if (reg_read(dev, REG_MAGIC) == VIRTIO_MAGIC && reg_read(dev, REG_DEVICE_ID) == id)
			return true;
	}
	return false;
}

bool virtio_negotiate(struct virtio_dev *dev, u64 wanted)
{
	u32 status = STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK;
	u64 offered;

	if (reg_read(dev, REG_VERSION) != VIRTIO_VERSION_MODERN) {
		printk("virtio: a legacy device; start QEMU with -global virtio-mmio.force-legacy=false");
		return false;
	}
	reg_write(dev, REG_STATUS, 0);
	reg_write(dev, REG_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	reg_write(dev, REG_DEVICE_FEATURES_SEL, 1);
	offered = (u64)reg_read(dev, REG_DEVICE_FEATURES) << 32;
	reg_write(dev, REG_DEVICE_FEATURES_SEL, 0);
	offered |= reg_read(dev, REG_DEVICE_FEATURES);
	dev->features = offered & (wanted | VIRTIO_F_VERSION_1);
	if (!(dev->features & VIRTIO_F_VERSION_1))
		return false;
	reg_write(dev, REG_DRIVER_FEATURES_SEL, 1);
	reg_write(dev, REG_DRIVER_FEATURES, (u32)(dev->features >> 32));
	reg_write(dev, REG_DRIVER_FEATURES_SEL, 0);
	reg_write(dev, REG_DRIVER_FEATURES, (u32)dev->features);
	reg_write(dev, REG_STATUS, status);
	return reg_read(dev, REG_STATUS) & STATUS_FEATURES_OK;
}

bool virtq_setup(struct virtq *vq, struct virtio_dev *dev, u32 queue_idx)
{
	reg_write(dev, REG_QUEUE_SEL, queue_idx);
	if (reg_read(dev, REG_QUEUE_READY) || reg_read(dev, REG_QUEUE_NUM_MAX) < VIRTQ_SIZE)
		return false;
	memset(vq, 0, sizeof(*vq));
	vq->dev = dev;
	vq->queue_idx = queue_idx;
	vq->nr_free = VIRTQ_SIZE;
	for (u32 i = 0; i < VIRTQ_SIZE; i++)
		vq->desc[i].next = i + 1;
	reg_write(dev, REG_QUEUE_NUM, VIRTQ_SIZE);
	reg_write_u64(dev, REG_QUEUE_DESC, virt_to_phys(vq->desc));
	reg_write_u64(dev, REG_QUEUE_DRIVER, virt_to_phys(&vq->avail));
	reg_write_u64(dev, REG_QUEUE_DEVICE, virt_to_phys(&vq->used));
	fence();
	reg_write(dev, REG_QUEUE_READY, 1);
	return true;
}

void virtio_ready(struct virtio_dev *dev)
{
	fence();
	reg_write(dev, REG_STATUS, reg_read(dev, REG_STATUS) | STATUS_DRIVER_OK);
}

bool virtq_add(struct virtq *vq, const struct virtq_buf *bufs, u32 nr_out, u32 nr_in, void *token)
{
	u32 nr = nr_out + nr_in;
	u16 head = vq->free_head, at = head, last = head;

	if (nr > vq->nr_free)
		return false;
	for (u32 i = 0; i < nr; i++) {
		struct virtq_desc *d = &vq->desc[at];

		d->addr = virt_to_phys(bufs[i].mem);
		d->len = bufs[i].bytes;
		d->flags = (i + 1 < nr ? DESC_NEXT : 0) | (i < nr_out ? 0 : DESC_WRITE);
		last = at;
		at = d->next;
	}
	vq->free_head = vq->desc[last].next;
	vq->nr_free -= nr;
	vq->token[head] = token;
	vq->avail.ring[vq->avail.idx % VIRTQ_SIZE] = head;
	fence();
	*(volatile u16 *)&vq->avail.idx += 1;
	return true;
}

void virtq_notify(struct virtq *vq)
{
	fence();
	reg_write(vq->dev, REG_QUEUE_NOTIFY, vq->queue_idx);
}

void *virtq_take(struct virtq *vq)
{
	u16 head, last;
	u32 nr = 1;

	if (*(volatile u16 *)&vq->used.idx == vq->nr_seen)
		return NULL;
	fence();
	head = vq->used.ring[vq->nr_seen % VIRTQ_SIZE].id;
	vq->nr_seen++;
	for (last = head; vq->desc[last].flags & DESC_NEXT; nr++)
		last = vq->desc[last].next;
	vq->desc[last].next = vq->free_head;
	vq->free_head = head;
	vq->nr_free += nr;
	return vq->token[head];
}

void virtio_ack(struct virtio_dev *dev)
{
	reg_write(dev, REG_INTERRUPT_ACK, reg_read(dev, REG_INTERRUPT_STATUS));
}

u64 virtio_config_u64(struct virtio_dev *dev, u32 offset)
{
	return reg_read(dev, REG_CONFIG + offset) | (u64)reg_read(dev, REG_CONFIG + offset + 4)
							    << 32;
}
