/* SPDX-License-Identifier: MIT */
/*
 * pipe.c - 512 bytes between writers and readers.
 *
 * nr_read and nr_written count bytes since the ring was last empty; what is between
 * them is in the ring, at their values modulo its size. A ring wraps once, so a
 * transfer is two pieces at most, copied whole; and as an empty ring starts anew,
 * both are aligned as long as readers take what writers gave.
 *
 *	data:  [ . . r x x x w . . ]	r: nr_read, w: nr_written, x: to be read
 *
 * One reader and one writer are woken at a time; one that leaves something over
 * wakes the next of its own kind, so a crowd is not woken for one byte. This loses
 * nothing, because a woken process looks at the ring before it gives up.
 *
 * Called through file_ops. Must stay true: the page goes when both ends are closed.
 *
 * Read next: wait.h.
 */
#include "file.h"

#include "mem.h"
#include "proc.h"

#define PIPE_BYTES 512

struct pipe {
	struct spinlock lock; /* guards all */
	struct waitq readers, writers;
	u32 nr_read, nr_written;
	bool is_read_open, is_write_open;
	char data[PIPE_BYTES] __attribute__((aligned(64))); /* copied by words */
};

_Static_assert(sizeof(struct pipe) <= PGSIZE, "a pipe is one page");

static int pipe_read(struct file *f, uint64 addr, int n)
{
	struct pipe *p = f->object;
	u32 done, step, at;
	int failed = 0;

	acquire(&p->lock);
	while (p->nr_read == p->nr_written && p->is_write_open && n) {
		if (killed(myproc())) {
			release(&p->lock);
			return -1;
		}
		sleep_on(&p->readers, &p->lock);
	}
	n = min_u32(n, p->nr_written - p->nr_read);
	for (done = 0; done < (u32)n && !failed; done += step) {
		at = p->nr_read % PIPE_BYTES;
		step = min_u32(n - done, PIPE_BYTES - at);
		failed = copyout(addr + done, p->data + at, step);
		if (failed)
			step = 0;
		p->nr_read += step;
	}
	if (p->nr_read == p->nr_written)
		p->nr_read = p->nr_written = 0;
	if (!waitq_is_empty(&p->writers) && p->nr_written - p->nr_read < PIPE_BYTES)
		wake_one(&p->writers);
	if (!waitq_is_empty(&p->readers) && p->nr_read != p->nr_written)
		wake_one(&p->readers);
	release(&p->lock);
	return failed && !done ? -1 : (int)done;
}

/* Wait for room. Return: false when no reader is left, or killed. */
static bool wait_for_room(struct pipe *p)
{
	while (p->is_read_open && p->nr_written - p->nr_read == PIPE_BYTES) {
		if (killed(myproc()))
			return false;
		if (!waitq_is_empty(&p->readers))
			wake_one(&p->readers);
		sleep_on(&p->writers, &p->lock);
	}
	return p->is_read_open;
}

static int pipe_write(struct file *f, uint64 addr, int n)
{
	struct pipe *p = f->object;
	u32 done = 0, step, at;

	acquire(&p->lock);
	while (done < (u32)n) {
		if (!wait_for_room(p)) {
			release(&p->lock);
			return -1;
		}
		at = p->nr_written % PIPE_BYTES;
		step = min_u32(n - done, PIPE_BYTES - (p->nr_written - p->nr_read));
		step = min_u32(step, PIPE_BYTES - at);
		if (copyin(p->data + at, addr + done, step))
			break;
		p->nr_written += step;
		done += step;
	}
	if (!waitq_is_empty(&p->readers) && p->nr_read != p->nr_written)
		wake_one(&p->readers);
	if (!waitq_is_empty(&p->writers) && p->nr_written - p->nr_read < PIPE_BYTES)
		wake_one(&p->writers);
	release(&p->lock);
	return done < (u32)n && !done ? -1 : (int)done;
}

static void pipe_close(struct file *f)
{
	struct pipe *p = f->object;
	bool is_over;

	acquire(&p->lock);
	if (f->writable) {
		p->is_write_open = false;
		wake_all(&p->readers);
	} else {
		p->is_read_open = false;
		wake_all(&p->writers);
	}
	is_over = !p->is_read_open && !p->is_write_open;
	release(&p->lock);
	if (is_over)
		kfree(p);
}

static const struct file_ops pipe_ops = {
	.read = pipe_read,
	.write = pipe_write,
	.close = pipe_close,
};

int pipealloc(struct file **reader, struct file **writer)
{
	struct pipe *p = kalloc();

	*reader = filealloc();
	*writer = filealloc();
	if (!p || !*reader || !*writer) {
		kfree(p);
		if (*reader)
			fileclose(*reader);
		if (*writer)
			fileclose(*writer);
		return -1;
	}
	initlock(&p->lock, "pipe");
	waitq_init(&p->readers, "pipe");
	waitq_init(&p->writers, "pipe");
	p->nr_read = p->nr_written = 0;
	p->is_read_open = p->is_write_open = true;
	(*reader)->ops = (*writer)->ops = &pipe_ops;
	(*reader)->object = (*writer)->object = p;
	(*reader)->readable = true;
	(*writer)->writable = true;
	return 0;
}
