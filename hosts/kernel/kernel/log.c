/* SPDX-License-Identifier: MIT */
/*
 * log.c - operations in groups, each group on the disk whole or not at all.
 *
 * What operations change gathers in the *running* transaction: a list of pinned
 * buffers. When it is wanted on the disk (fs_sync), when it gets full, or
 * COMMIT_NS after its first change, it is committed: copied to the *staging* area,
 * after which operations go on; the rest is done by the disk's interrupts.
 *
 *	IDLE -> STAGING    copy header and blocks; no operation is under way
 *	     -> LOGGING    they are written to the log, in one piece
 *	     -> FLUSHING   the flush after which the transaction is *promised*
 *	     -> INSTALLING its blocks are written where they belong
 *	     -> SETTLING   the flush after which the log may be overwritten -> IDLE
 *
 * At any moment the log on the disk holds the last transaction that was promised,
 * perhaps installed already (doing it again changes nothing, as nothing newer is
 * installed), or a torn one, whose checksum is wrong: then the one before it is
 * wholly installed. So a mount needs to look at one header.
 *
 * Must stay true: a buffer that is not yet installed is pinned, so that its old
 * contents are not read from the disk; the log's lock is dropped before anything
 * is submitted.
 *
 * Read next: inode.c, which changes blocks; docs/kernel-files.md, what is
 * promised.
 */
#include "log.h"

#include "bio.h"
#include "disk.h"
#include "inode.h"
#include "mkfs/fscheck.h"
#include "mem.h"
#include "print.h"
#include "timer.h"

#define COMMIT_NS 500000000ULL	/* how long a change may wait for its commit */

enum log_phase { IDLE, STAGING, LOGGING, FLUSHING, INSTALLING, SETTLING };

static struct {
	struct spinlock lock; /* guards all but what the phase gives to one */
	struct waitq room;    /* wait here to begin an operation */
	struct waitq promise; /* and here in fs_sync() */
	u32 start;	      /* the log's first block */
	u32 nr_max;	      /* blocks of a transaction */
	struct timer timer;
	bool timer_runs;

	/* The running transaction: */
	u64 seq;
	u32 nr;
	u32 nr_reserved;		  /* that operations under way may still log */
	bool is_wanted;			  /* commit it as soon as possible */
	struct buf *bufs[LOG_BLOCKS_MAX]; /* by rising block */

	/* The transaction that is being committed: */
	enum log_phase phase;
	u64 promised_seq; /* this one and all before it survive a power cut */
	u32 nr_staged;
	u32 nr_pending; /* requests with the disk */
	struct buf *staged[LOG_BLOCKS_MAX];
	struct disk_request requests[LOG_BLOCKS_MAX];
	struct log_header *header; /* the staging area: it and the blocks */
} journal;

static void *staged_data(u32 i)
{
	return (u8 *)journal.header + (i + 1) * BSIZE;
}

/* May a commit begin? If so it is the caller's: stage(). Context: journal.lock. */
static bool claim_commit(void)
{
	if (!journal.is_wanted || journal.phase != IDLE || journal.nr_reserved)
		return false;
	journal.is_wanted = false;
	if (!journal.nr)
		return false;
	journal.phase = STAGING;
	return true;
}

static void submit(u32 i, enum disk_op op, u32 block, u32 nr, void *data,
		   void (*done)(struct disk_request *))
{
	journal.requests[i] = (struct disk_request){
		.op = op,
		.block = block,
		.nr_blocks = nr,
		.data = data,
		.done = done,
	};
	disk_submit(&journal.requests[i]);
}

static void check_transfer(const struct disk_request *r)
{
	if (r->has_failed)
		panic("disk: block %u cannot be written, nor anything promised", r->block);
}

static void logged(struct disk_request *r);

/*
 * Copy the running transaction and send it off; a new one runs from here on.
 * Context: after claim_commit(), no lock held; operations wait meanwhile.
 */
static void stage(void)
{
	u32 nr = journal.nr;

	memset(journal.header, 0, BSIZE);
	journal.header->magic = LOG_MAGIC;
	journal.header->nr = nr;
	journal.header->seq = journal.seq;
	for (u32 i = 0; i < nr; i++) {
		journal.header->block[i] = journal.bufs[i]->c.number;
		memcpy(staged_data(i), journal.bufs[i]->data, BSIZE);
	}
	journal.header->sum = log_sum(journal.header, (nr + 1) * BSIZE, LOG_SUM_START);

	acquire(&journal.lock);
	for (u32 i = 0; i < nr; i++) {
		journal.staged[i] = journal.bufs[i];
		journal.staged[i]->is_logged = false;
	}
	journal.nr_staged = nr;
	journal.nr = 0;
	journal.seq++;
	journal.phase = LOGGING;
	wake_one(&journal.room);
	release(&journal.lock);
	submit(0, DISK_WRITE, journal.start, nr + 1, journal.header, logged);
}

/* Context: journal.lock is held, and released. */
static void release_and_commit(void)
{
	bool is_ours = claim_commit();

	release(&journal.lock);
	if (is_ours)
		stage();
}

/* Begin a commit if that is possible, or wait. Context: journal.lock. */
static void commit_or_wait(struct waitq *q)
{
	if (claim_commit()) {
		release(&journal.lock);
		stage();
		acquire(&journal.lock);
	} else {
		sleep_on(q, &journal.lock);
	}
}

static void settled(struct disk_request *r)
{
	check_transfer(r);
	for (u32 i = 0; i < journal.nr_staged; i++)
		bunpin(journal.staged[i]);
	acquire(&journal.lock);
	journal.phase = IDLE;
	release_and_commit();
}

static void installed(struct disk_request *r)
{
	bool is_last;

	check_transfer(r);
	acquire(&journal.lock);
	is_last = --journal.nr_pending == 0;
	if (is_last)
		journal.phase = SETTLING;
	release(&journal.lock);
	if (is_last)
		submit(0, DISK_FLUSH, 0, 0, NULL, settled);
}

/* Blocks that adjoin on the disk do so in the staging area: one request. */
static u32 run_length(u32 first)
{
	const u32 *block = journal.header->block;
	u32 nr = 1;

	while (first + nr < journal.nr_staged && block[first + nr] == block[first] + nr)
		nr++;
	return nr;
}

static void promised(struct disk_request *r)
{
	u32 nr_runs = 0, nr_staged = journal.nr_staged;

	check_transfer(r);
	for (u32 i = 0; i < nr_staged; i += run_length(i))
		nr_runs++;
	acquire(&journal.lock);
	journal.promised_seq = journal.header->seq;
	journal.phase = INSTALLING;
	journal.nr_pending = nr_runs;
	wake_all(&journal.promise);
	release(&journal.lock);
	/*
	 * The last of them may be done, and the staging area be in use again,
	 * before the last submit() returns: so the end is counted, not looked up.
	 */
	for (u32 i = 0, first = 0; i < nr_runs; i++) {
		u32 nr = run_length(first), at = first;

		first += nr;
		submit(i, DISK_WRITE, journal.header->block[at], nr, staged_data(at), installed);
	}
}

static void logged(struct disk_request *r)
{
	check_transfer(r);
	acquire(&journal.lock);
	journal.phase = FLUSHING;
	release(&journal.lock);
	submit(0, DISK_FLUSH, 0, 0, NULL, promised);
}

static void commit_is_due(struct timer *timer, void *arg)
{
	acquire(&journal.lock);
	journal.timer_runs = false;
	journal.is_wanted = journal.nr > 0;
	release_and_commit();
}

/* Room for one more operation now, or must it wait? Context: journal.lock. */
static bool may_begin(void)
{
	if (journal.phase == STAGING || (journal.is_wanted && journal.phase == IDLE))
		return false;
	if (journal.nr + journal.nr_reserved + OP_BLOCKS <= journal.nr_max)
		return true;
	if (journal.nr)
		journal.is_wanted = true;
	return false;
}

void begin_op(void)
{
	acquire(&journal.lock);
	while (!may_begin())
		commit_or_wait(&journal.room);
	journal.nr_reserved += OP_BLOCKS;
	/* Wake-ups are passed on one by one, as long as there is room. */
	if (journal.nr + journal.nr_reserved + OP_BLOCKS <= journal.nr_max)
		wake_one(&journal.room);
	release(&journal.lock);
}

void end_op(void)
{
	bool is_ours;

	acquire(&journal.lock);
	journal.nr_reserved -= OP_BLOCKS;
	is_ours = claim_commit();
	if (!is_ours)
		wake_one(&journal.room);
	release(&journal.lock);
	if (is_ours)
		stage();
}

void log_write(struct buf *b)
{
	u32 at;

	acquire(&journal.lock);
	if (!journal.nr_reserved || journal.nr == journal.nr_max)
		panic("log: a write outside an operation, or a too large one");
	if (b->is_logged) {
		release(&journal.lock);
		return;
	}
	for (at = journal.nr++; at && journal.bufs[at - 1]->c.number > b->c.number; at--)
		journal.bufs[at] = journal.bufs[at - 1];
	journal.bufs[at] = b;
	b->is_logged = true;
	bpin(b);
	if (!journal.timer_runs) {
		journal.timer_runs = true;
		timer_start(&journal.timer, now_ns() + COMMIT_NS, commit_is_due, NULL);
	}
	release(&journal.lock);
}

void fs_sync(void)
{
	u64 seq;

	acquire(&journal.lock);
	seq = journal.nr ? journal.seq : journal.seq - 1;
	while (journal.promised_seq < seq) {
		if (journal.seq == seq)
			journal.is_wanted = true;
		commit_or_wait(&journal.promise);
	}
	release(&journal.lock);
}

bool log_init(struct fs_check *check)
{
	const struct superblock *sb = &check->sb;
	s64 nr;

	initlock(&journal.lock, "log");
	waitq_init(&journal.room, "log");
	waitq_init(&journal.promise, "commit");
	journal.start = sb->logstart;
	journal.nr_max = sb->nlog - 1 < LOG_BLOCKS_MAX ? sb->nlog - 1 : LOG_BLOCKS_MAX;
	journal.header = kalloc_pages(((journal.nr_max + 1) * BSIZE + PGSIZE - 1) / PGSIZE);
	if (!journal.header)
		return false;
	if (!disk_transfer(DISK_READ, journal.start, journal.nr_max + 1, journal.header)) {
		printk("fs: refused: the log, blocks %u to %u, cannot be read", journal.start,
		       journal.start + journal.nr_max);
		return false;
	}
	nr = fs_check_log(check, journal.header);
	if (nr < 0)
		return false;
	for (u32 i = 0; i < nr; i++) {
		if (!disk_transfer(DISK_WRITE, journal.header->block[i], 1, staged_data(i)))
			panic("disk: block %u cannot be written", journal.header->block[i]);
	}
	if (nr && !disk_transfer(DISK_FLUSH, 0, 0, NULL))
		panic("disk: a flush has failed");
	journal.promised_seq = nr ? journal.header->seq : 0;
	journal.seq = journal.promised_seq + 1;
	return true;
}
