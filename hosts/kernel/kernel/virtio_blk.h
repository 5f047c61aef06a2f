/* SPDX-License-Identifier: MIT */
/*
 * virtio_blk.h - the driver of QEMU's block device, behind disk.h.
 *
 * Read next: virtio_blk.c.
 */
#ifndef KERNEL_VIRTIO_BLK_H
#define KERNEL_VIRTIO_BLK_H

#include "disk.h"

/* Return: blocks of BSIZE bytes; 0 when there is no disk, the reason printed. */
u32 virtio_blk_init(void);

/* As in disk.h. */
void virtio_blk_submit(struct disk_request *r);
bool virtio_blk_is_busy(void);

#endif
