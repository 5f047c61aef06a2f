/* SPDX-License-Identifier: MIT */
/*
 * crash.c - power cuts. Random operations run once, on a disk that keeps its
 * history; then the disk is made again as a cut may have left it, at one event
 * after the other, and mounted by a process that starts anew.
 *
 * What was promised when the power went must be there, what had not begun must
 * not, and what is there must be the state after some operation: nothing halfway.
 */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../hosts/kernel/kernel/inode.h"
#include "../../../hosts/kernel/kernel/log.h"
#include "model.h"

#define OPS_MAX 10000

/* Shared with the process that makes the history. */
static struct {
	u32 nr_ops;
	u64 hash[OPS_MAX + 1]; /* of the tree after each operation */
} *past;

/* ---- the tree, read through the kernel ----------------------------------- */

static u64 hash_inode(u32 inum, u64 path)
{
	static u8 data[MAXFILE * BSIZE];
	struct inode *ip = iget(inum);
	u8 *entries;
	u64 sum;
	int type, nlink, major;
	u32 size;

	CHECK(ip, "inode %u cannot be had", inum);
	ilock(ip);
	type = ip->d.type;
	nlink = ip->d.nlink;
	major = ip->d.major;
	size = ip->d.size;
	CHECK(readi(ip, false, (uint64)data, 0, size) == (int)size, "inode %u", inum);
	iunlock(ip);
	begin_op();
	iput(ip);
	end_op();
	sum = hash_bytes(path, &type, sizeof(type));
	sum = hash_bytes(sum, &nlink, sizeof(nlink));
	if (type == T_DEVICE)
		sum = hash_bytes(sum, &major, sizeof(major));
	if (type == T_FILE) {
		sum = hash_bytes(sum, &size, sizeof(size));
		return hash_bytes(sum, data, size);
	}
	if (type != T_DIR)
		return sum;
	entries = malloc(size + 1);
	memcpy(entries, data, size);
	for (u32 i = 2; i < size / sizeof(struct dirent); i++) {
		struct dirent *e = (struct dirent *)entries + i;

		if (e->inum)
			sum += hash_inode(e->inum,
					  hash_bytes(path * 31, e->name, strnlen(e->name, DIRSIZ)));
	}
	free(entries);
	return sum;
}

u64 kernel_tree_hash(void)
{
	return hash_inode(ROOTINO, 1);
}

/* ---- making a history ---------------------------------------------------- */

static void after_each(u32 op)
{
	past->hash[op] = m_tree_hash();
	past->nr_ops = op;
	if (random_below(12) == 0) {
		fs_sync();
		ops_promised = op;
	}
}

static void make_history(u32 nr_ops, u8 *image, u32 nr_blocks)
{
	disk_use(image, nr_blocks);
	CHECK(fs_init() == 0, "an empty file system is refused");
	is_recorded = true;
	random_begin(2);
	past->hash[0] = m_tree_hash();
	random_ops(nr_ops, after_each);
	fs_sync();
}

/* ---- looking at what a cut left ------------------------------------------ */

static void mount_and_compare(u8 *image, u32 nr_blocks, u32 promised, u32 started)
{
	u64 hash;
	u32 op;

	current = proc_new();
	disk_use(image, nr_blocks);
	CHECK(fs_init() == 0, "after a power cut: %s", last_printk);
	hash = kernel_tree_hash();
	for (op = promised; op <= started && past->hash[op] != hash;)
		op++;
	if (op > started) {
		for (op = 0; op <= past->nr_ops && past->hash[op] != hash;)
			op++;
		CHECK(false, "it is as after operation %d, promised were %u, begun %u",
		      op > past->nr_ops ? -1 : (int)op, promised, started);
	}
	fs_sync();
	check_disk("after a power cut");
}

/* Run @fn in a process of its own, whose kernel has not been started yet. */
static void apart(void (*fn)(void *), void *arg, const char *what, u32 number)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork fails");
	if (!pid) {
		fn(arg);
		fflush(NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s %u fails", what, number);
}

struct cut {
	u8 *image;
	u32 nr_ops, nr_blocks, promised, started;
};

static void history_of(void *arg)
{
	struct cut *c = arg;

	make_history(c->nr_ops, c->image, c->nr_blocks);
}

static void look_at(void *arg)
{
	struct cut *c = arg;

	is_quiet = true;
	mount_and_compare(c->image, c->nr_blocks, c->promised, c->started);
}

static void *shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED, "no memory");
	return memory;
}

void run_crash(u32 nr_ops, u32 nr_cuts)
{
	struct cut c = { .nr_ops = nr_ops, .nr_blocks = 400 };
	size_t bytes = (size_t)c.nr_blocks * BSIZE;
	u8 *start = shared(bytes);
	u32 length, step, nr = 0;

	CHECK(nr_ops <= OPS_MAX, "at most %d operations", OPS_MAX);
	past = shared(sizeof(*past));
	c.image = shared(bytes);
	format(start, c.nr_blocks, 64, 1 + OP_BLOCKS * 3);
	memcpy(c.image, start, bytes);
	history_new();
	apart(history_of, &c, "the history", 0);
	length = history_length();
	step = length / nr_cuts ? length / nr_cuts : 1;
	disk_use(c.image, c.nr_blocks);
	for (u32 at = 0; at < length; at += 1 + random_below(2 * step - 1)) {
		history_cut(at, c.image, start, &c.promised, &c.started);
		apart(look_at, &c, "the cut before event", at);
		nr++;
	}
	printf("crash: %u operations, %u events of the disk, %u power cuts\n", nr_ops, length, nr);
}
