/* SPDX-License-Identifier: MIT */
/*
 * check.c - the kernel's own check of a file system, for an image in a file.
 *
 * What the log has promised is put into place first, in memory, as a mount would
 * do. Beyond the kernel's check, no directory may have two equal names.
 *
 * Read next: fscheck.c, which is linked into the kernel as well.
 */
#include "mkfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fscheck.h"
#include "kernel/log.h"

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

/* Put into place, in memory, what the log has promised. */
static void replay(struct image *image, struct fs_check *c)
{
	struct log_header *h = block_of(image, c->sb.logstart);
	s64 nr = fs_check_log(c, h);

	for (u32 i = 0; i < nr; i++)
		memcpy(block_of(image, h->block[i]), (u8 *)h + (i + 1) * BSIZE, BSIZE);
	image->nr_logged = nr > 0 ? nr : 0;
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
		replay(image, c);
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
