/* SPDX-License-Identifier: MIT */
/*
 * fscheck.c - what must hold of a file system on disk:
 *
 *  1. The superblock's areas follow each other and fit on the device.
 *  2. An inode has a known type; a file's size is within the limits, each block
 *     up to its size is there, and lies in the data area.
 *  3. No block belongs to two; the bitmap marks those that belong to an inode, those
 *  before the data area, and no other. 4. From the root every directory is reached
 *  exactly once; its first entries
 *     are "." and "..", itself and its parent; names are neither empty nor equal.
 *  5. An inode has as many names as its nlink says (a directory: its name and its
 *     children's ".."; the root: itself). One with nlink 0 is an orphan.
 *
 * Linked into the kernel (kernel/fsmount.c) and into mkfs (check.c). Must stay true: it reads
 * whatever bytes there are without a crash, an endless loop, or a read beyond
 * them; each message says what, where, and what was expected.
 *
 * Read next: check.c.
 */
#include "fscheck.h"

#include "kernel/log.h"
#include "kernel/stat.h"

#define FILE_BYTES_MAX ((u32)(MAXFILE * BSIZE))

static void problem(struct fs_check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct fs_check *c, const char *fmt, ...)
{
	va_list args;

	c->nr_problems++;
	va_start(args, fmt);
	c->say(fmt, args);
	va_end(args);
}

static bool read_block(struct fs_check *c, u32 block, void *to)
{
	if (c->read(block, to))
		return true;
	problem(c, "block %u cannot be read", block);
	return false;
}

static u32 nr_bitmaps(const struct superblock *sb)
{
	return ((u64)sb->size + BPB - 1) / BPB;
}

static u32 data_start(const struct superblock *sb)
{
	return sb->bmapstart + nr_bitmaps(sb);
}

/* ---- 1: the superblock --------------------------------------------------- */

bool fs_check_super(struct fs_check *c)
{
	struct superblock *sb = &c->sb;
	u32 before = c->nr_problems;

	if (c->nr_device_blocks < 3) {
		problem(c, "the device has %u blocks, too few for a file system",
			c->nr_device_blocks);
		return false;
	}
	if (!read_block(c, 1, c->data_block))
		return false;
	__builtin_memcpy(sb, c->data_block, sizeof(*sb));
	if (sb->magic != FSMAGIC) {
		problem(c, "superblock: magic is 0x%x, not 0x%x: this is no file system", sb->magic,
			FSMAGIC);
		return false;
	}
	if (sb->size > c->nr_device_blocks)
		problem(c, "superblock: size is %u blocks, but the device has %u: it was cut short",
			sb->size, c->nr_device_blocks);
	if (nr_bitmaps(sb) > BITMAPS_MAX)
		problem(c, "superblock: size is %u blocks, more than the %u that are supported",
			sb->size, (u32)(BITMAPS_MAX * BPB));
	if (sb->ninodes < 2 || sb->ninodes > 65535)
		problem(c, "superblock: ninodes is %u, not in 2..65535", sb->ninodes);
	if (c->nr_problems > before)
		return false;
	if (sb->nlog < 1 + OP_BLOCKS || sb->nlog > sb->size)
		problem(c, "superblock: nlog is %u, not in %u..%u", sb->nlog, 1 + OP_BLOCKS,
			sb->size);
	if (sb->logstart < 2 || sb->logstart > sb->size)
		problem(c, "superblock: logstart is %u, not in 2..%u", sb->logstart, sb->size);
	else if (sb->inodestart < (u64)sb->logstart + sb->nlog || sb->inodestart > sb->size)
		problem(c, "superblock: inodestart is %u, not in %llu..%u", sb->inodestart,
			(u64)sb->logstart + sb->nlog, sb->size);
	else if (sb->bmapstart < sb->inodestart + (sb->ninodes + IPB - 1) / IPB ||
		 sb->bmapstart > sb->size)
		problem(c, "superblock: bmapstart is %u, not behind the inodes from %u on",
			sb->bmapstart, sb->inodestart);
	else if (data_start(sb) >= sb->size)
		problem(c, "superblock: no room for data: it would begin at %u of %u",
			data_start(sb), sb->size);
	else if (sb->nblocks != sb->size - data_start(sb))
		problem(c, "superblock: nblocks is %u, not %u", sb->nblocks,
			sb->size - data_start(sb));
	return c->nr_problems == before;
}

s64 fs_check_log(struct fs_check *c, struct log_header *h)
{
	const struct superblock *sb = &c->sb;
	u64 sum = h->sum;
	bool is_whole = false;

	if (h->magic == LOG_MAGIC && h->nr < sb->nlog && h->nr <= LOG_BLOCKS_MAX) {
		h->sum = 0;
		is_whole = log_sum(h, (h->nr + 1) * BSIZE, LOG_SUM_START) == sum;
		h->sum = sum;
	}
	for (u32 i = 0; is_whole && i < h->nr; i++) {
		if (h->block[i] >= sb->inodestart && h->block[i] < sb->size)
			continue;
		problem(c, "entry %u of the log is for block %u, not in [%u, %u)", i, h->block[i],
			sb->inodestart, sb->size);
		return -1;
	}
	return is_whole ? h->nr : 0;
}

/* ---- 2: inodes and their blocks ------------------------------------------ */

/* @slot of inode @inum names @block. Return: whether it may. */
static bool claim_block(struct fs_check *c, u32 inum, u32 slot, u32 block)
{
	if (block < data_start(&c->sb) || block >= c->sb.size) {
		problem(c, "inode %u: block %u of the file is %u, not in the data area %u..%u",
			inum, slot, block, data_start(&c->sb), c->sb.size - 1);
		return false;
	}
	if (c->seen[block / 8] & 1 << block % 8) {
		problem(c, "inode %u: block %u of the file is %u, which belongs to another as well",
			inum, slot, block);
		return false;
	}
	c->seen[block / 8] |= 1 << block % 8;
	return true;
}

static void check_slot(struct fs_check *c, u32 inum, u32 slot, u32 block, u32 nr_needed)
{
	if (block)
		claim_block(c, inum, slot, block);
	else if (slot < nr_needed)
		problem(c, "inode %u: block %u of the file is missing, but its size needs %u", inum,
			slot, nr_needed);
}

static void check_blocks(struct fs_check *c, u32 inum, const struct dinode *d)
{
	u32 nr_needed = (d->size + BSIZE - 1) / BSIZE;
	u32 list = d->addrs[NDIRECT];

	for (u32 i = 0; i < NDIRECT; i++)
		check_slot(c, inum, i, d->addrs[i], nr_needed);
	if (!list) {
		if (nr_needed > NDIRECT)
			problem(c,
				"inode %u: its list of blocks is missing, but its size needs %u blocks",
				inum, nr_needed);
		return;
	}
	if (!claim_block(c, inum, NDIRECT, list) || !read_block(c, list, c->list_block))
		return;
	for (u32 i = 0; i < NINDIRECT; i++)
		check_slot(c, inum, NDIRECT + i, ((u32 *)c->list_block)[i], nr_needed);
}

static void check_inode(struct fs_check *c, u32 inum, const struct dinode *d)
{
	if (d->type < 0 || d->type > T_DEVICE) {
		problem(c, "inode %u: type is %d, not in 0..%d", inum, d->type, T_DEVICE);
		return;
	}
	c->type[inum] = d->type;
	if (!d->type) {
		c->nr_inodes_free += inum >= ROOTINO;
		return;
	}
	if (d->nlink < 0)
		problem(c, "inode %u: nlink is %d", inum, d->nlink);
	if (!d->nlink)
		c->nr_orphans++;
	if (d->size > FILE_BYTES_MAX) {
		problem(c, "inode %u: size is %u bytes, more than %u", inum, d->size,
			FILE_BYTES_MAX);
		return;
	}
	if (d->type == T_DIR && d->size % sizeof(struct dirent))
		problem(c, "inode %u: a directory of %u bytes, no multiple of %u", inum, d->size,
			(u32)sizeof(struct dirent));
	check_blocks(c, inum, d);
}

/* The inode on disk; NULL when its block cannot be read. Uses inode_block. */
static const struct dinode *load_inode(struct fs_check *c, u32 inum)
{
	if (!read_block(c, IBLOCK(inum, c->sb), c->inode_block))
		return NULL;
	return (struct dinode *)c->inode_block + inum % IPB;
}

static void check_inodes(struct fs_check *c)
{
	for (u32 first = 0; first < c->sb.ninodes; first += IPB) {
		if (!load_inode(c, first))
			return;
		for (u32 i = 0; i < IPB && first + i < c->sb.ninodes; i++)
			check_inode(c, first + i, (struct dinode *)c->inode_block + i);
	}
	if (c->type[ROOTINO] != T_DIR)
		problem(c, "inode %u: the root is no directory", ROOTINO);
}

/* ---- 3: the bitmap ------------------------------------------------------- */

static void check_bitmap(struct fs_check *c)
{
	for (u32 block = 0; block < c->sb.size; block++) {
		bool is_marked, is_used;

		if (block % BPB == 0 && !read_block(c, BBLOCK(block, c->sb), c->data_block))
			return;
		is_marked = c->data_block[block % BPB / 8] & 1 << block % 8;
		is_used = block < data_start(&c->sb) || (c->seen[block / 8] & 1 << block % 8);
		c->nr_blocks_free += !is_used;
		if (is_marked && !is_used)
			problem(c,
				"bitmap: block %u is marked as used, but belongs to nobody: it is lost",
				block);
		if (!is_marked && is_used)
			problem(c, "bitmap: block %u is marked as free, but is in use", block);
	}
}

/* ---- 4: directories ------------------------------------------------------ */

static bool is_name(const struct dirent *e, const char *name)
{
	return !__builtin_strncmp(e->name, name, DIRSIZ);
}

/* Entry @idx of directory @dir: one of the first two, as they must be? */
static void check_dot(struct fs_check *c, u32 dir, u32 idx, const struct dirent *e)
{
	const char *name = idx ? ".." : ".";
	u32 expected = idx && dir != ROOTINO ? c->parent[dir] : dir;

	if (!is_name(e, name) || e->inum != expected)
		problem(c,
			"directory %u: entry %u is \"%.14s\" of inode %u, not \"%s\" of inode %u",
			dir, idx, e->name, e->inum, name, expected);
}

static void check_entry(struct fs_check *c, u32 dir, u32 idx, const struct dirent *e, u32 *nr_queued)
{
	if (!e->inum)
		return;
	if (!e->name[0] || is_name(e, ".") || is_name(e, "..")) {
		problem(c, "directory %u: entry %u is called \"%.14s\"", dir, idx, e->name);
		return;
	}
	for (u32 i = 0; i < DIRSIZ && e->name[i]; i++) {
		if (e->name[i] == '/')
			problem(c, "directory %u: entry %u has a slash in its name \"%.14s\"", dir,
				idx, e->name);
	}
	if (e->inum >= c->sb.ninodes || !c->type[e->inum]) {
		problem(c, "directory %u: entry \"%.14s\" is of inode %u, which is %s", dir,
			e->name, e->inum, e->inum < c->sb.ninodes ? "free" : "none");
		return;
	}
	c->nr_names[e->inum]++;
	if (c->type[e->inum] != T_DIR)
		return;
	if (e->inum == ROOTINO || c->parent[e->inum]) {
		problem(c, "directory %u: entry \"%.14s\" is a second name of directory %u", dir,
			e->name, e->inum);
		return;
	}
	c->parent[e->inum] = dir;
	c->nr_names[dir]++; /* by its ".." */
	c->queue[(*nr_queued)++] = e->inum;
}

/* Block @idx of the file that load_inode() has just read, or 0. */
static u32 nth_block(struct fs_check *c, const struct dinode *d, u32 idx)
{
	if (idx < NDIRECT)
		return d->addrs[idx];
	if (!read_block(c, d->addrs[NDIRECT], c->list_block))
		return 0;
	return ((u32 *)c->list_block)[idx - NDIRECT];
}

/* Equal names: each entry of data_block against all that follow in the directory. */
static void check_equal(struct fs_check *c, u32 dir, const struct dinode *d, u32 idx,
			const struct dirent *e)
{
	const u32 per_block = BSIZE / sizeof(struct dirent);
	u32 nr = d->size / sizeof(struct dirent);
	u8 other[BSIZE];

	for (u32 i = idx + 1; e->inum && i < nr; i++) {
		const struct dirent *o = (struct dirent *)other + i % per_block;

		if ((i == idx + 1 || i % per_block == 0) &&
		    !read_block(c, nth_block(c, d, i / per_block), other))
			return;
		if (o->inum && is_name(o, e->name))
			problem(c, "directory %u: entries %u and %u are both called \"%.14s\"", dir,
				idx, i, e->name);
	}
}

static void check_directory(struct fs_check *c, u32 dir, u32 *nr_queued)
{
	const u32 per_block = BSIZE / sizeof(struct dirent);
	const struct dinode *d = load_inode(c, dir);
	u32 nr = d ? d->size / sizeof(struct dirent) : 0;

	if (nr < 2)
		problem(c, "directory %u: it has %u entries, not even \".\" and \"..\"", dir, nr);
	for (u32 i = 0; i < nr; i++) {
		const struct dirent *e = (struct dirent *)c->data_block + i % per_block;

		if (i % per_block == 0 &&
		    !read_block(c, nth_block(c, d, i / per_block), c->data_block))
			return;
		if (i < 2)
			check_dot(c, dir, i, e);
		else
			check_entry(c, dir, i, e, nr_queued);
		if (c->is_thorough)
			check_equal(c, dir, d, i, e);
	}
}

/* ---- 5: numbers of names ------------------------------------------------- */

static void check_names(struct fs_check *c)
{
	for (u32 inum = 0; inum < c->sb.ninodes; inum++) {
		const struct dinode *d;

		if (!c->type[inum])
			continue;
		d = load_inode(c, inum);
		if (!d)
			return;
		if (!d->nlink && !c->nr_names[inum])
			continue; /* an orphan */
		if (c->type[inum] == T_DIR && inum != ROOTINO && !c->parent[inum])
			problem(c, "inode %u: a directory that no path leads to", inum);
		else if (d->nlink != c->nr_names[inum])
			problem(c, "inode %u: nlink is %d, but it has %u names", inum, d->nlink,
				c->nr_names[inum]);
	}
}

/* Bits of blocks; then, by inode, two bytes each but for the last one. */
u64 fs_check_bytes(const struct fs_check *c)
{
	return (c->sb.size / 8 + 8) / 8 * 8 + c->sb.ninodes * (3 * sizeof(u16) + 1);
}

bool fs_check_all(struct fs_check *c, void *memory)
{
	u32 nr_queued = 0, before = c->nr_problems;
	u64 bytes = fs_check_bytes(c);

	__builtin_memset(memory, 0, bytes);
	c->seen = memory;
	c->nr_names = (u16 *)(c->seen + (c->sb.size / 8 + 8) / 8 * 8);
	c->parent = c->nr_names + c->sb.ninodes;
	c->queue = c->parent + c->sb.ninodes;
	c->type = (u8 *)(c->queue + c->sb.ninodes);
	c->nr_blocks_free = c->nr_inodes_free = c->nr_orphans = 0;
	check_inodes(c);
	check_bitmap(c);
	if (c->nr_problems > before)
		return false;
	c->queue[nr_queued++] = ROOTINO;
	c->nr_names[ROOTINO] = 1;
	for (u32 i = 0; i < nr_queued; i++)
		check_directory(c, c->queue[i], &nr_queued);
	check_names(c);
	return c->nr_problems == before;
}
