/* SPDX-License-Identifier: MIT */
/*
 * dump.c - prints what is in an image that was checked.
 *
 * Read next: kernel/fs.h.
 */
#include "mkfs.h"

#include <stdio.h>
#include <string.h>

#include "kernel/log.h"
#include "kernel/stat.h"

static void dump_super(const struct image *image)
{
	const struct superblock *sb = &image->sb;
	u32 data = sb->size - sb->nblocks, nr_used = 0;

	for (u32 block = data; block < sb->size; block++) {
		const u8 *bits = block_of(image, BBLOCK(block, *sb));

		nr_used += bits[block % BPB / 8] >> block % 8 & 1;
	}
	printf("blocks  %u of %d bytes: log %u..%u, inodes %u..%u, bitmap %u..%u, data %u..%u\n",
	       sb->size, BSIZE, sb->logstart, sb->logstart + sb->nlog - 1, sb->inodestart,
	       sb->bmapstart - 1, sb->bmapstart, data - 1, data, sb->size - 1);
	printf("data    %u blocks used, %u free\n", nr_used, sb->nblocks - nr_used);
}

static void dump_log(const struct image *image)
{
	const struct log_header *h = block_of(image, image->sb.logstart);

	if (!image->nr_logged) {
		puts("log     nothing in it is valid");
		return;
	}
	printf("log     transaction %llu:", h->seq);
	for (u32 i = 0; i < image->nr_logged; i++)
		printf(" %u", h->block[i]);
	putchar('\n');
}

/* Runs of adjoining blocks, as "50-57 60". */
static void dump_blocks(const struct image *image, const struct dinode *d)
{
	u32 nr = (d->size + BSIZE - 1) / BSIZE, last;

	for (u32 i = 0; i < nr; i = last + 1) {
		u32 first = file_block(image, d, i);

		for (last = i;
		     last + 1 < nr && file_block(image, d, last + 1) == first + last + 1 - i;)
			last++;
		printf(first == first + last - i ? " %u" : " %u-%u", first, first + last - i);
	}
	if (d->addrs[NDIRECT])
		printf(" (listed in %u)", d->addrs[NDIRECT]);
}

static void dump_inode(const struct image *image, u32 inum, const char *path)
{
	static const char *const types[] = { "free", "dir", "file", "device" };
	const struct dinode *d = inode_of(image, inum);

	printf("%5u  %-6s  %5d  %7u  %s ", inum, types[d->type], d->nlink, d->size, path);
	if (d->type == T_DEVICE)
		printf(" major %d minor %d", d->major, d->minor);
	else
		dump_blocks(image, d);
	putchar('\n');
}

static void dump_dir(const struct image *image, u32 dir, const char *path)
{
	const struct dinode *d = inode_of(image, dir);

	for (u32 i = 0; i < d->size / sizeof(struct dirent); i++) {
		const struct dirent *e = block_of(image,
						  file_block(image, d, i * sizeof(*e) / BSIZE));
		char name[4096];

		e += i % (BSIZE / sizeof(*e));
		if (!e->inum || !strcmp(e->name, ".") || !strcmp(e->name, ".."))
			continue;
		snprintf(name, sizeof(name), "%s/%.*s", path, DIRSIZ, e->name);
		dump_inode(image, e->inum, name);
		if (inode_of(image, e->inum)->type == T_DIR)
			dump_dir(image, e->inum, name);
	}
}

void dump_image(struct image *image)
{
	dump_super(image);
	dump_log(image);
	puts("inode  type    nlink    bytes  path, and blocks");
	dump_inode(image, ROOTINO, "/");
	dump_dir(image, ROOTINO, "");
	for (u32 inum = ROOTINO; inum < image->sb.ninodes; inum++) {
		if (inode_of(image, inum)->type && !inode_of(image, inum)->nlink)
			dump_inode(image, inum, "(open when the power went; no name)");
	}
}
