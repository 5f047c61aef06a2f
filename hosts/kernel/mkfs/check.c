/* SPDX-License-Identifier: MIT */
/*
 * check.c - the kernel's own check of a file system, for an image in a file.
 *
 * What the log has promised is put into place first, in memory, as a mount would
 * do. Beyond the kernel's check, no directory may have two equal names.
 *
 * Read next: kernel/fscheck.c, which is compiled into this file.
 */
#include "mkfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One source for the kernel and for this machine. */
#include "kernel/fscheck.c"

#define PRINTED_MAX 100

static struct image *checked;
static u32 nr_printed;

static bool read_image(u32 block, void *to)
{
	if (block >= checked->nr_blocks)
		return false;
	memcpy(to, (u8 *)checked->data + (size_t)block * BSIZE, BSIZE);
	return true;
}

static void say(const char *fmt, va_list args)
{
	if (nr_printed++ >= PRINTED_MAX)
		return;
	printf("%s: ", checked->path);
	vprintf(fmt, args);
	putchar('\n');
	if (nr_printed == PRINTED_MAX)
		printf("%s: further problems are only counted\n", checked->path);
}

u32 replay(struct image *image)
{
	const struct superblock *sb = &image->sb;
	u8 *area = block_of(image, sb->logstart);
	struct log_header *h = (struct log_header *)area;
	u64 sum = h->sum;
	bool is_whole;

	if (h->magic != LOG_MAGIC || !h->nr || h->nr >= sb->nlog ||
	    h->nr > LOG_BLOCKS_MAX)
		return 0;
	h->sum = 0;
	is_whole = log_sum(area, (h->nr + 1) * BSIZE, LOG_SUM_START) == sum;
	h->sum = sum;
	for (u32 i = 0; is_whole && i < h->nr; i++) {
		if (h->block[i] < sb->inodestart || h->block[i] >= sb->size) {
			printf("%s: entry %u of the log is for block %u, not in [%u, %u)\n",
			       image->path, i, h->block[i], sb->inodestart, sb->size);
			return 0xffffffff;
		}
	}
	for (u32 i = 0; is_whole && i < h->nr; i++)
		memcpy(block_of(image, h->block[i]), area + (i + 1) * BSIZE, BSIZE);
	return is_whole ? h->nr : 0;
}

u32 check_image(struct image *image)
{
	struct fs_check *c = calloc(1, sizeof(*c));
	u32 nr_problems;
	void *memory;

	if (!c)
		die("no memory");
	checked = image;
	c->nr_device_blocks = image->nr_blocks;
	c->read = read_image;
	c->say = say;
	c->is_thorough = true;
	if (fs_check_super(c)) {
		image->sb = c->sb;
		if (replay(image) == 0xffffffff)
			c->nr_problems++;
		memory = malloc(fs_check_bytes(c));
		if (!memory)
			die("no memory");
		fs_check_all(c, memory);
		free(memory);
	}
	nr_problems = c->nr_problems;
	free(c);
	return nr_problems;
}
