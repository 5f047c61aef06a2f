/* SPDX-License-Identifier: MIT */
/*
 * inode.c - files: a number, a few fields, and up to 268 blocks.
 *
 * Those that are referenced are in a cache (cache.h), and others for as long as
 * their place is not needed.
 *
 *	iget() ref 0->1        ilock() reads it from disk, once
 *	iput() ref 1->0        last name gone as well: blocks and inode are freed
 *
 * Called by dir.c, file.c, sysfile.c, exec.c. Must stay true: all changes are
 * inside operations.
 *
 * Read next: dir.c.
 */
#include "inode.h"

#include "bio.h"
#include "log.h"
#include "mem.h"
#include "param.h"
#include "print.h"

#define NR_INODES	1024	/* in memory; references to more fail */

struct superblock sb;

static struct cache inodes;

static struct {
	struct spinlock lock;
	u32 nr_free;
	u32 next; /* hint: no inode below it is free */
} on_disk;

bool inode_init(u32 nr_free)
{
	initlock(&on_disk.lock, "free inodes");
	on_disk.nr_free = nr_free;
	on_disk.next = ROOTINO;
	return cache_init(&inodes, NR_INODES, sizeof(struct inode), "inode");
}

u32 nr_inodes_free(void)
{
	return on_disk.nr_free;
}

u32 nr_inodes_in_use(void)
{
	return inodes.nr_in_use;
}

struct inode *iget(u32 inum)
{
	return (struct inode *)cache_get(&inodes, inum);
}

struct inode *idup(struct inode *ip)
{
	cache_keep(&inodes, &ip->c);
	return ip;
}

/* The block of an inode, and its place there. */
static struct dinode *read_inode(u32 inum, struct buf **b)
{
	*b = bread(IBLOCK(inum, sb));
	return (struct dinode *)(*b)->data + inum % IPB;
}

void ilock(struct inode *ip)
{
	struct dinode *d;
	struct buf *b;

	acquiresleep(&ip->c.lock);
	if (ip->c.is_valid)
		return;
	d = read_inode(ip->c.number, &b);
	ip->d = *d;
	ip->dir_hint = 0;
	brelse(b);
	ip->c.is_valid = true;
	if (!ip->d.type)
		panic("fs: inode %u is referred to, but free", ip->c.number);
}

void iunlock(struct inode *ip)
{
	releasesleep(&ip->c.lock);
}

void iupdate(struct inode *ip)
{
	struct buf *b;

	*read_inode(ip->c.number, &b) = ip->d;
	log_write(b);
	brelse(b);
}

/* The first free inode in block @block from @from on, marked; or 0. */
static u32 claim_inode(u32 block, u32 from, short type)
{
	struct buf *b = bread(block);
	u32 first = (block - sb.inodestart) * IPB, found = 0;

	for (u32 i = from > first ? from - first : 0; i < IPB && first + i < sb.ninodes; i++) {
		struct dinode *d = (struct dinode *)b->data + i;

		if (d->type || first + i < ROOTINO)
			continue;
		memset(d, 0, sizeof(*d));
		d->type = type;
		log_write(b);
		found = first + i;
		break;
	}
	brelse(b);
	return found;
}

/* Take one from the count. Return: false when there is none. */
static bool reserve_inode(u32 *hint)
{
	bool is_there;

	acquire(&on_disk.lock);
	is_there = on_disk.nr_free > 0;
	if (is_there)
		on_disk.nr_free--;
	*hint = on_disk.next;
	release(&on_disk.lock);
	return is_there;
}

static void unreserve_inode(u32 inum)
{
	acquire(&on_disk.lock);
	on_disk.nr_free++;
	if (inum < on_disk.next)
		on_disk.next = inum;
	release(&on_disk.lock);
}

/* The lowest free number, as in xv6: its programs take high ones for a leak. */
struct inode *ialloc(short type)
{
	u32 nr_blocks = (sb.ninodes + IPB - 1) / IPB;
	u32 hint, inum = 0, block;
	struct inode *ip;
	struct buf *b;

	if (!reserve_inode(&hint))
		return NULL;
	for (u32 from = hint; !inum; from = 0) {
		block = from / IPB;
		for (; block < nr_blocks && !inum; block++)
			inum = claim_inode(sb.inodestart + block, from, type);
	}
	acquire(&on_disk.lock);
	if (on_disk.next == hint) /* else a lower one was freed meanwhile */
		on_disk.next = inum + 1;
	release(&on_disk.lock);
	ip = iget(inum);
	if (ip) {
		ilock(ip);
		return ip;
	}
	/* It belonged to this process alone so far, so no other process misses it. */
	read_inode(inum, &b)->type = 0;
	log_write(b);
	brelse(b);
	unreserve_inode(inum);
	return NULL;
}

/* Free a file that has neither name nor reader. Context: in an operation. */
static void ifree(struct inode *ip)
{
	acquiresleep(&ip->c.lock);
	itrunc(ip);
	ip->d.type = 0;
	iupdate(ip);
	ip->c.is_valid = false;
	releasesleep(&ip->c.lock);
	unreserve_inode(ip->c.number);
}

void iput(struct inode *ip)
{
	acquire(&inodes.lock);
	/*
	 * No name and no other reference: none can come about until ifree() has made
	 * the number free. From then on a new file may have it, and if that has lost
	 * its name again by now, it is freed here, too.
	 */
	while (ip->c.refs == 1 && ip->c.is_valid && !ip->d.nlink) {
		release(&inodes.lock);
		ifree(ip);
		acquire(&inodes.lock);
	}
	cache_put(&inodes, &ip->c);
	release(&inodes.lock);
}

void iunlockput(struct inode *ip)
{
	iunlock(ip);
	iput(ip);
}

/*
 * The block that holds byte @idx * BSIZE of a file; where there is none yet and
 * @is_new is not NULL, one is taken and *@is_new set. Return: 0: the disk is full.
 */
static u32 bmap(struct inode *ip, u32 idx, bool *is_new)
{
	bool is_list_new = false;
	uint *slot = &ip->d.addrs[idx < NDIRECT ? idx : NDIRECT];
	struct buf *b;
	u32 block;

	if (!*slot) {
		if (!is_new || !(*slot = balloc()))
			return 0;
		if (idx < NDIRECT) {
			*is_new = true;
			return *slot;
		}
		is_list_new = true;
	}
	if (idx < NDIRECT)
		return *slot;
	b = is_list_new ? bzeroed(*slot) : bread(*slot);
	slot = (uint *)b->data + idx - NDIRECT;
	block = *slot;
	if (!block && is_new) {
		block = *slot = balloc();
		*is_new = block;
	}
	if (is_list_new || (is_new && *is_new))
		log_write(b);
	brelse(b);
	return block;
}

void itrunc(struct inode *ip)
{
	for (u32 i = 0; i < NDIRECT; i++) {
		if (ip->d.addrs[i])
			bfree(ip->d.addrs[i]);
	}
	if (ip->d.addrs[NDIRECT]) {
		struct buf *b = bread(ip->d.addrs[NDIRECT]);
		uint *list = (uint *)b->data;

		for (u32 i = 0; i < NINDIRECT; i++) {
			if (list[i])
				bfree(list[i]);
		}
		brelse(b);
		bfree(ip->d.addrs[NDIRECT]);
	}
	memset(ip->d.addrs, 0, sizeof(ip->d.addrs));
	ip->d.size = 0;
	ip->dir_hint = 0;
	iupdate(ip);
}

void stati(struct inode *ip, struct stat *st)
{
	memset(st, 0, sizeof(*st)); /* what lies between its members, too */
	st->dev = ROOTDEV;
	st->ino = ip->c.number;
	st->type = ip->d.type;
	st->nlink = ip->d.nlink;
	st->size = ip->d.size;
}

int readi(struct inode *ip, bool is_user, uint64 to, uint off, uint n)
{
	u32 done, step;

	if (off >= ip->d.size)
		return 0;
	if (n > ip->d.size - off)
		n = ip->d.size - off;
	for (done = 0; done < n; done += step, off += step) {
		struct buf *b = bread_if(bmap(ip, off / BSIZE, NULL));
		int failed = 0;

		if (!b)
			return -1;
		step = min_u32(BSIZE - off % BSIZE, n - done);
		if (is_user)
			failed = copyout(to + done, b->data + off % BSIZE, step);
		else
			memcpy((void *)(to + done), b->data + off % BSIZE, step);
		brelse(b);
		if (failed)
			return -1;
	}
	return n;
}

int writei(struct inode *ip, bool is_user, uint64 from, uint off, uint n)
{
	u32 done, step;

	if (off > ip->d.size || off + (u64)n > MAXFILE * BSIZE)
		return -1;
	for (done = 0; done < n; done += step, off += step) {
		bool is_new = false;
		u32 block = bmap(ip, off / BSIZE, &is_new);
		int failed = 0;
		struct buf *b;

		if (!block)
			break;
		step = min_u32(BSIZE - off % BSIZE, n - done);
		/* What another file left in a new block must not be seen. */
		b = is_new ? bzeroed(block) : bread_if(block);
		if (!b)
			break;
		if (is_user)
			failed = copyin(b->data + off % BSIZE, from + done, step);
		else
			memcpy(b->data + off % BSIZE, (void *)(from + done), step);
		log_write(b);
		brelse(b);
		if (failed)
			break;
	}
	if (off > ip->d.size)
		ip->d.size = off;
	iupdate(ip);
	return done;
}
