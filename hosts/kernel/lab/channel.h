/* SPDX-License-Identifier: MIT */
/*
 * channel.h - the binary way to the host: frames through a virtio port.
 *
 * Everything that a run has to say beside the console's text goes this way: the
 * chunks of records, lines of text, and the end. python/schedlab/hosts/kernel/host.py
 * reads it. A machine without the device has no channel; then nothing is sent.
 *
 * Read next: virtio_serial.c.
 */
#ifndef KERNEL_CHANNEL_H
#define KERNEL_CHANNEL_H

#include <scx/types.h>

#define CHANNEL_MAGIC 0x4c434853U	/* "SHCL" */

enum channel_kind {
	CHANNEL_RECORDS = 1, /* of one hart; arg: how many it lost before them */
	CHANNEL_TEXT,	     /* one line, without its end */
	CHANNEL_END,	     /* nothing follows; arg: status of the job */
};

/* As long as a record, so that a chunk of records begins with one. */
struct channel_frame {
	u32 magic;
	u16 kind; /* enum channel_kind */
	u16 hart;
	u32 bytes; /* that follow this frame */
	u32 seq;   /* of this hart's chunks, or of all other frames */
	u64 arg;
};

_Static_assert(sizeof(struct channel_frame) == 24, "the frame is fixed");

/* Finds the device; at boot, after memory and the PLIC. */
void channel_init(void);

bool channel_is_open(void);

/**
 * channel_send - hand memory to the host, which reads it in place
 * @frame: head->bytes more follow it; untouched until *@is_sent
 * @is_sent: set to false here, and to true when the host has read it
 *
 * Context: any, with interrupts off; takes the channel's lock, a leaf.
 */
void channel_send(struct channel_frame *frame, bool *is_sent);

/* Notice what the host has read meanwhile. Context: as channel_send(). */
void channel_poll(void);

/* Send one line of text and wait until it is out. Context: any. */
void channel_text(const char *text, u32 bytes);

/* Send the end. Context: any; nothing may be sent after it. */
void channel_end(s64 status);

#endif
