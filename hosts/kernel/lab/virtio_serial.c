/* SPDX-License-Identifier: MIT */
/*
 * virtio_serial.c - the channel: frames to the host through a virtio console.
 *
 * One queue, towards the host. The device reads buffers in place, so a chunk of
 * records is sent where it lies. QEMU reads them while it handles the
 * notification; but the standard does not promise that, so a buffer is in use
 * until virtq_take() returns it. The device interrupts no hart: it is looked at
 * when a buffer is needed.
 *
 * The device file `channel` sends what a program writes, one line per call.
 *
 * Called by record.c and the devices' table. Read next: virtio.h.
 */
#include "channel.h"

#include <schedlab/host.h>

#include "file.h"
#include "proc.h"
#include "virtio.h"

#define QUEUE_TO_HOST 1		/* of port 0; 0 is the other direction */
#define TEXT_MAX 1000

static struct virtio_dev dev;
static struct virtq queue;
static struct spinlock lock;
static bool is_open;

/* Texts are copied here, one at a time: they are few. `lock` guards it. */
static struct {
	struct channel_frame head;
	char text[TEXT_MAX];
} line;
static u32 nr_lines;

bool channel_is_open(void)
{
	return is_open;
}

/* Context: lock held. */
static void take_sent(void)
{
	bool *is_sent;

	while ((is_sent = virtq_take(&queue)))
		__atomic_store_n(is_sent, true, __ATOMIC_RELEASE);
}

void channel_poll(void)
{
	acquire(&lock);
	take_sent();
	release(&lock);
}

/* Context: lock held; *@is_sent and the memory in the direct map. */
static void send(struct channel_frame *frame, bool *is_sent)
{
	struct virtq_buf buf = { frame, sizeof(*frame) + frame->bytes };

	__atomic_store_n(is_sent, false, __ATOMIC_RELAXED);
	/* Two buffers per hart and one line: the queue is never full for long. */
	while (!virtq_add(&queue, &buf, 1, 0, is_sent)) {
		take_sent();
		sl_host_relax();
	}
	virtq_notify(&queue);
	take_sent();
}

void channel_send(struct channel_frame *frame, bool *is_sent)
{
	acquire(&lock);
	send(frame, is_sent);
	release(&lock);
}

/* Send the line and wait until it is out. Context: lock held. */
static void send_line(enum channel_kind kind, u32 bytes, u64 arg)
{
	static bool is_sent;

	line.head = (struct channel_frame){
		.magic = CHANNEL_MAGIC,
		.kind = kind,
		.bytes = bytes,
		.seq = nr_lines++,
		.arg = arg,
	};
	send(&line.head, &is_sent);
	while (!__atomic_load_n(&is_sent, __ATOMIC_ACQUIRE)) {
		take_sent();
		sl_host_relax();
	}
}

void channel_text(const char *text, u32 bytes)
{
	if (!is_open)
		return;
	acquire(&lock);
	bytes = bytes < TEXT_MAX ? bytes : TEXT_MAX;
	memcpy(line.text, text, bytes);
	send_line(CHANNEL_TEXT, bytes, 0);
	release(&lock);
}

void channel_end(s64 status)
{
	if (!is_open)
		return;
	acquire(&lock);
	send_line(CHANNEL_END, 0, (u64)status);
	release(&lock);
}

/* What a program writes at once is one line. */
static int channel_write(uint64 addr, int n)
{
	int err;

	if (!is_open || n > TEXT_MAX)
		return -1;
	acquire(&lock);
	err = copyin(line.text, addr, n);
	if (!err)
		send_line(CHANNEL_TEXT, n, 0);
	release(&lock);
	return err ? -1 : n;
}

void channel_init(void)
{
	initlock(&lock, "channel");
	devsw[CHANNEL].write = channel_write;
	if (!virtio_find(&dev, VIRTIO_ID_CONSOLE) || !virtio_negotiate(&dev, 0) ||
	    !virtq_setup(&queue, &dev, QUEUE_TO_HOST))
		return;
	queue.avail.flags = 1; /* VIRTQ_AVAIL_F_NO_INTERRUPT */
	virtio_ready(&dev);
	is_open = true;
}
