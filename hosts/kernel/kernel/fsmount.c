/* SPDX-License-Identifier: MIT */
/*
 * fsmount.c - from a disk to a file system: replay, check, clean up.
 *
 * A file that had no name left but was open when the power went is still on the
 * disk, with nlink 0; no process can open it again, so it is freed here.
 *
 * Called once, by the first process. Read next: mkfs/fscheck.c.
 */
#include "inode.h"

#include "bio.h"
#include "disk.h"
#include "log.h"
#include "mem.h"
#include "mkfs/fscheck.h"
#include "print.h"

/* print.c of the core. */
u32 sl_format(char *to, u32 bytes, const char *fmt, va_list args);

static struct fs_check check;

static bool read_block(u32 block, void *to)
{
	struct buf *b = bread_if(block);

	if (!b)
		return false;
	memcpy(to, b->data, BSIZE);
	brelse(b);
	return true;
}

/* The first reason is enough to refuse. */
static void say(const char *fmt, va_list args)
{
	char line[160];

	if (check.nr_problems > 1)
		return;
	sl_format(line, sizeof(line), fmt, args);
	printk("fs: refused: %s", line);
}

static void free_orphans(u32 nr)
{
	for (u32 inum = ROOTINO; nr && inum < sb.ninodes; inum++) {
		struct buf *b = bread(IBLOCK(inum, sb));
		struct dinode *d = (struct dinode *)b->data + inum % IPB;
		bool is_orphan = d->type && !d->nlink;
		struct inode *ip;

		brelse(b);
		if (!is_orphan)
			continue;
		begin_op();
		ip = iget(inum);
		ilock(ip);
		iunlockput(ip); /* the last reference to no name */
		end_op();
		nr--;
	}
}

int fs_init(void)
{
	void *memory;
	u64 nr_pages;

	if (!bio_init())
		return -1;
	check.nr_device_blocks = disk_init();
	check.read = read_block;
	check.say = say;
	if (!check.nr_device_blocks || !fs_check_super(&check) || !log_init(&check))
		return -1;
	nr_pages = (fs_check_bytes(&check) + PGSIZE - 1) / PGSIZE;
	memory = kalloc_pages(nr_pages);
	if (!memory) {
		printk("fs: no memory to check the disk");
		return -1;
	}
	fs_check_all(&check, memory);
	kfree_pages(memory, nr_pages);
	sb = check.sb;
	if (check.nr_problems || !inode_init(check.nr_inodes_free))
		return -1;
	balloc_init(check.nr_blocks_free);
	free_orphans(check.nr_orphans);
	return 0;
}
