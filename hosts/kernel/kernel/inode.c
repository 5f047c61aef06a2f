/* SPDX-License-Identifier: MIT */
/*
 * inode.c - files: a number, a few fields, and up to 268 blocks.
 *
 * The table holds the inodes that somebody has a reference to, and others for as
 * long as no one needs their place. A reference keeps an inode in its place; its
 * sleep lock is for whoever looks inside.
 *
 *	iget() ref 0->1        ilock() reads it from disk, once
 *	iput() ref 1->0        last name gone as well: blocks and inode are freed
 *
 * Called by dir.c, file.c, sysfile.c, exec.c. Must stay true: an inode is in the
 * table at most once; all changes are inside operations.
 *
 * Read next: dir.c.
 */
#include "inode.h"

#include "balloc.h"
#include "bio.h"
#include "log.h"
#include "mem.h"
#include "param.h"
#include "print.h"

#define NR_INODES	1024	/* in memory; references to more fail */
#define NR_BUCKETS	512

struct superblock sb;

static struct {
	struct spinlock lock;
	struct inode lru;		/* head of the ring; next: longest unused */
	struct inode *hash[NR_BUCKETS];
	u32 nr_in_use;
	u32 nr_free_on_disk;
	u32 next;			/* hint: no inode below it is free on disk */
} table;

static void lru_add(struct inode *ip)
{
	ip->lru_next = &table.lru;
	ip->lru_prev = table.lru.lru_prev;
	ip->lru_prev->lru_next = ip;
	table.lru.lru_prev = ip;
}

static void lru_remove(struct inode *ip)
{
	ip->lru_prev->lru_next = ip->lru_next;
	ip->lru_next->lru_prev = ip->lru_prev;
}

bool inode_init(u32 nr_free)
{
	u64 bytes = NR_INODES * sizeof(struct inode);
	struct inode *inodes = kalloc_pages((bytes + PGSIZE - 1) / PGSIZE);

	if (!inodes)
		return false;
	memset(inodes, 0, bytes);
	initlock(&table.lock, "itable");
	table.lru.lru_next = table.lru.lru_prev = &table.lru;
	for (u32 i = 0; i < NR_INODES; i++) {
		initsleeplock(&inodes[i].lock, "inode");
		lru_add(&inodes[i]);
	}
	table.nr_free_on_disk = nr_free;
	table.next = ROOTINO;
	return true;
}

u32 nr_inodes_free(void)
{
	return table.nr_free_on_disk;
}

u32 nr_inodes_in_use(void)
{
	return table.nr_in_use;
}

/* Put @inum in place of what was unused longest. Context: table.lock. */
static struct inode *recycle(u32 inum)
{
	struct inode *ip = table.lru.lru_next, **link;

	if (ip == &table.lru)
		return NULL;
	if (ip->inum) {
		for (link = &table.hash[ip->inum % NR_BUCKETS]; *link != ip;)
			link = &(*link)->hash_next;
		*link = ip->hash_next;
	}
	ip->inum = inum;
	ip->is_valid = false;
	ip->dir_hint = 0;
	ip->hash_next = table.hash[inum % NR_BUCKETS];
	table.hash[inum % NR_BUCKETS] = ip;
	return ip;
}

struct inode *iget(u32 inum)
{
	struct inode *ip;

	acquire(&table.lock);
	for (ip = table.hash[inum % NR_BUCKETS]; ip; ip = ip->hash_next) {
		if (ip->inum == inum)
			break;
	}
	if (!ip)
		ip = recycle(inum);
	if (ip && ip->refs++ == 0) {
		lru_remove(ip);
		table.nr_in_use++;
	}
	release(&table.lock);
	return ip;
}

struct inode *idup(struct inode *ip)
{
	acquire(&table.lock);
	ip->refs++;
	release(&table.lock);
	return ip;
}

void ilock(struct inode *ip)
{
	struct dinode *d;
	struct buf *b;

	acquiresleep(&ip->lock);
	if (ip->is_valid)
		return;
	b = bread(IBLOCK(ip->inum, sb));
	d = (struct dinode *)b->data + ip->inum % IPB;
	ip->type = d->type;
	ip->major = d->major;
	ip->minor = d->minor;
	ip->nlink = d->nlink;
	ip->size = d->size;
	memcpy(ip->addrs, d->addrs, sizeof(ip->addrs));
	brelse(b);
	ip->is_valid = true;
	if (!ip->type)
		panic("fs: inode %u is referred to, but free", ip->inum);
}

void iunlock(struct inode *ip)
{
	releasesleep(&ip->lock);
}

void iupdate(struct inode *ip)
{
	struct buf *b = bread(IBLOCK(ip->inum, sb));
	struct dinode *d = (struct dinode *)b->data + ip->inum % IPB;

	d->type = ip->type;
	d->major = ip->major;
	d->minor = ip->minor;
	d->nlink = ip->nlink;
	d->size = ip->size;
	memcpy(d->addrs, ip->addrs, sizeof(d->addrs));
	log_write(b);
	brelse(b);
}

/* The first free inode in block @block from @from on, marked; or 0. */
static u32 claim_inode(u32 block, u32 from, short type)
{
	struct buf *b = bread(block);
	u32 first = (block - sb.inodestart) * IPB, found = 0;

	for (u32 i = from > first ? from - first : 0;
	     i < IPB && first + i < sb.ninodes; i++) {
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

	acquire(&table.lock);
	is_there = table.nr_free_on_disk > 0;
	if (is_there)
		table.nr_free_on_disk--;
	*hint = table.next;
	release(&table.lock);
	return is_there;
}

static void unreserve_inode(u32 inum)
{
	acquire(&table.lock);
	table.nr_free_on_disk++;
	if (inum < table.next)
		table.next = inum;
	release(&table.lock);
}

/* The lowest free number, as in xv6: its programs take high ones for a leak. */
struct inode *ialloc(short type)
{
	u32 nr_blocks = (sb.ninodes + IPB - 1) / IPB;
	u32 hint, inum = 0, block;
	struct inode *ip;

	if (!reserve_inode(&hint))
		return NULL;
	for (u32 from = hint; !inum; from = 0) {
		block = from / IPB;
		for (; block < nr_blocks && !inum; block++)
			inum = claim_inode(sb.inodestart + block, from, type);
	}
	acquire(&table.lock);
	if (table.next == hint)		/* else a lower one was freed meanwhile */
		table.next = inum + 1;
	release(&table.lock);
	ip = iget(inum);
	if (ip) {
		ilock(ip);
		return ip;
	}
	/* It was ours alone so far, so nobody misses it. */
	struct buf *b = bread(IBLOCK(inum, sb));

	((struct dinode *)b->data)[inum % IPB].type = 0;
	log_write(b);
	brelse(b);
	unreserve_inode(inum);
	return NULL;
}

/* Free a file that has neither name nor reader. Context: in an operation. */
static void ifree(struct inode *ip)
{
	acquiresleep(&ip->lock);
	itrunc(ip);
	ip->type = 0;
	iupdate(ip);
	ip->is_valid = false;
	releasesleep(&ip->lock);
	unreserve_inode(ip->inum);
}

void iput(struct inode *ip)
{
	acquire(&table.lock);
	if (ip->refs == 1 && ip->is_valid && !ip->nlink) {
		/* No name and no other reference: no other can come about. */
		release(&table.lock);
		ifree(ip);
		acquire(&table.lock);
	}
	if (--ip->refs == 0) {
		lru_add(ip);
		table.nr_in_use--;
	}
	release(&table.lock);
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
	uint *slot = &ip->addrs[idx < NDIRECT ? idx : NDIRECT];
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
		if (ip->addrs[i])
			bfree(ip->addrs[i]);
	}
	if (ip->addrs[NDIRECT]) {
		struct buf *b = bread(ip->addrs[NDIRECT]);
		uint *list = (uint *)b->data;

		for (u32 i = 0; i < NINDIRECT; i++) {
			if (list[i])
				bfree(list[i]);
		}
		brelse(b);
		bfree(ip->addrs[NDIRECT]);
	}
	memset(ip->addrs, 0, sizeof(ip->addrs));
	ip->size = 0;
	ip->dir_hint = 0;
	iupdate(ip);
}

void stati(struct inode *ip, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->dev = ROOTDEV;
	st->ino = ip->inum;
	st->type = ip->type;
	st->nlink = ip->nlink;
	st->size = ip->size;
}

static u32 piece(u32 off, u32 left)
{
	u32 in_block = BSIZE - off % BSIZE;

	return in_block < left ? in_block : left;
}

int readi(struct inode *ip, bool is_user, uint64 to, uint off, uint n)
{
	u32 done, step;

	if (off >= ip->size)
		return 0;
	if (n > ip->size - off)
		n = ip->size - off;
	for (done = 0; done < n; done += step, off += step) {
		struct buf *b = bread(bmap(ip, off / BSIZE, NULL));
		int failed = 0;

		step = piece(off, n - done);
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

	if (off > ip->size || off + (u64)n > MAXFILE * BSIZE)
		return -1;
	for (done = 0; done < n; done += step, off += step) {
		bool is_new = false;
		u32 block = bmap(ip, off / BSIZE, &is_new);
		int failed = 0;
		struct buf *b;

		if (!block)
			break;
		step = piece(off, n - done);
		/* What another file left in a new block is nobody's to see. */
		b = is_new ? bzeroed(block) : bread(block);
		if (is_user)
			failed = copyin(b->data + off % BSIZE, from + done, step);
		else
			memcpy(b->data + off % BSIZE, (void *)(from + done), step);
		log_write(b);
		brelse(b);
		if (failed)
			break;
	}
	if (off > ip->size)
		ip->size = off;
	iupdate(ip);
	return done;
}
