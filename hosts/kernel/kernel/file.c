/* SPDX-License-Identifier: MIT */
/*
 * file.c - open files: the table of them, and those that are files on the disk.
 *
 * Called by the system calls in sysfile.c, and by fork and exit. Must stay true:
 * a descriptor counts as one reference, and the last one closes.
 *
 * Read next: pipe.c.
 */
#include "file.h"

#include "inode.h"
#include "mem.h"
#include "print.h"
#include "proc.h"

#define NR_FILES 4096		/* open at once; xv6 has NFILE */

static int null_read(uint64 addr, int n)
{
	return 0;
}

static int null_write(uint64 addr, int n)
{
	return n;
}

struct devsw devsw[NDEV] = { [NULLDEV] = { null_read, null_write } };

static struct {
	struct spinlock lock;
	struct file *free;
	u32 nr_open;
} table;

void file_init(void)
{
	u64 bytes = NR_FILES * sizeof(struct file);
	struct file *files = kalloc_pages((bytes + PGSIZE - 1) / PGSIZE);

	if (!files)
		panic("no memory for the table of files");
	initlock(&table.lock, "files");
	for (u32 i = 0; i < NR_FILES; i++) {
		files[i].next_free = table.free;
		table.free = &files[i];
	}
}

u32 nr_files_open(void)
{
	return table.nr_open;
}

struct file *filealloc(void)
{
	struct file *f;

	acquire(&table.lock);
	f = table.free;
	if (f) {
		table.free = f->next_free;
		table.nr_open++;
	}
	release(&table.lock);
	if (f) {
		memset(f, 0, sizeof(*f));
		f->refs = 1;
	}
	return f;
}

struct file *filedup(struct file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
	return f;
}

void fileclose(struct file *f)
{
	if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (f->ops && f->ops->close)
		f->ops->close(f);
	acquire(&table.lock);
	f->next_free = table.free;
	table.free = f;
	table.nr_open--;
	release(&table.lock);
}

/* ---- files, directories and devices -------------------------------------- */

static int inode_read(struct file *f, uint64 addr, int n)
{
	int done;

	ilock(f->ip);
	done = readi(f->ip, true, addr, f->off, n);
	if (done > 0)
		f->off += done;
	iunlock(f->ip);
	return done;
}

/*
 * A few blocks per operation, since a transaction has to have room for it. A
 * write that fits into one of them is seen whole by every reader, and after a
 * power cut; a longer one may be cut at a multiple of a block.
 */
static int inode_write(struct file *f, uint64 addr, int n)
{
	int done = 0, step, written;

	do {
		begin_op();
		ilock(f->ip);
		if (f->append)
			f->off = f->ip->d.size;
		step = min_u32(WRITEI_BLOCKS * BSIZE - f->off % BSIZE, n - done);
		written = writei(f->ip, true, addr + done, f->off, step);
		if (written > 0)
			f->off += written;
		iunlock(f->ip);
		end_op();
		done += step;
	} while (written == step && done < n);
	return written == step ? n : -1;
}

static int inode_stat(struct file *f, struct stat *st)
{
	ilock(f->ip);
	stati(f->ip, st);
	iunlock(f->ip);
	return 0;
}

static void inode_close(struct file *f)
{
	begin_op();
	iput(f->ip);
	end_op();
}

const struct file_ops inode_file_ops = {
	.read = inode_read,
	.write = inode_write,
	.stat = inode_stat,
	.close = inode_close,
};

static int device_read(struct file *f, uint64 addr, int n)
{
	return devsw[f->major].read ? devsw[f->major].read(addr, n) : -1;
}

static int device_write(struct file *f, uint64 addr, int n)
{
	return devsw[f->major].write ? devsw[f->major].write(addr, n) : -1;
}

const struct file_ops device_file_ops = {
	.read = device_read,
	.write = device_write,
	.stat = inode_stat,
	.close = inode_close,
};
