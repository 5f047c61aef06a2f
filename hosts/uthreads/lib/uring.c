/* SPDX-License-Identifier: MIT */
/*
 * uring.c - the kernel does what is asked, with no kernel thread waiting: io_uring.
 *
 *	thread: request -> submission ring, io_uring_enter()
 *	          done at once (a file that is cached): its answer is there already
 *	          otherwise: block
 *	kernel: answer -> completion ring, and the eventfd that the watcher listens to
 *	watcher: gives each answer to its thread
 *
 * One ring for all kernel threads: a request is handed over by a system call of some
 * hundred ns, beside which a lock is nothing. The kernel does part of the work on the
 * kernel thread that asked, when it comes back from the kernel; these live as long
 * as the ring.
 *
 * Called by io.c, which has helpers for kernels that have no io_uring, or forbid it.
 *
 * Read next: io.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"

#define ENTRIES 256
/* Answers that find no room wait in the kernel; both rings are one mapping; a file's
 * own position can be meant. Linux 5.6 has them, and the operations. */
#define FEATURES (IORING_FEAT_NODROP | IORING_FEAT_SINGLE_MMAP | IORING_FEAT_RW_CUR_POS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* lock protects: */
static struct {
	int fd, event_fd;
	char *rings;
	size_t rings_bytes;
	struct io_uring_sqe *sqes;
	size_t sqes_bytes;
	struct io_uring_params p;
} ring = { .fd = -1, .event_fd = -1 };

static u32 *ring_word(u32 offset)
{
	return (u32 *)(void *)(ring.rings + offset);
}

static int map_rings(void)
{
	size_t sq_bytes = ring.p.sq_off.array + ring.p.sq_entries * sizeof(u32);
	size_t cq_bytes = ring.p.cq_off.cqes +
			  ring.p.cq_entries * sizeof(struct io_uring_cqe);

	ring.rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
	ring.rings = mmap(NULL, ring.rings_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	if (ring.rings == MAP_FAILED) {
		ring.rings = NULL;
		return -ENOMEM;
	}
	ring.sqes_bytes = ring.p.sq_entries * sizeof(struct io_uring_sqe);
	ring.sqes = mmap(NULL, ring.sqes_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	if (ring.sqes == MAP_FAILED) {
		ring.sqes = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int set_up(void)
{
	memset(&ring.p, 0, sizeof(ring.p));
	ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &ring.p);
	if (ring.fd < 0)
		return -errno;
	if ((ring.p.features & FEATURES) != FEATURES)
		return -ENOSYS;
	ring.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring.event_fd < 0 ||
	    syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_EVENTFD,
		    &ring.event_fd, 1))
		return -errno;
	return map_rings();
}

/**
 * ut_uring_start - have a ring
 *
 * Return: the eventfd that says when ut_uring_reap() is due; -errno: there is none.
 */
int ut_uring_start(void)
{
	int err = set_up();

	if (!err)
		return ring.event_fd;
	ut_uring_exit();
	return err;
}

void ut_uring_exit(void)
{
	if (ring.sqes)
		munmap(ring.sqes, ring.sqes_bytes);
	if (ring.rings)
		munmap(ring.rings, ring.rings_bytes);
	if (ring.event_fd >= 0)
		close(ring.event_fd);
	if (ring.fd >= 0)
		close(ring.fd);
	ring.sqes = NULL;
	ring.rings = NULL;
	ring.event_fd = -1;
	ring.fd = -1;
}

/*
 * Give out the answers that are there. Context: lock held.
 * Return: whether @own was among them; it is not handed back, but just done.
 */
static bool give_out(const struct request *own)
{
	struct io_uring_cqe *cqes = (void *)(ring.rings + ring.p.cq_off.cqes);
	u32 mask = *ring_word(ring.p.cq_off.ring_mask);
	u32 *head = ring_word(ring.p.cq_off.head);
	u32 at = *head;
	bool has_own = false;

	while (at != __atomic_load_n(ring_word(ring.p.cq_off.tail),
				     __ATOMIC_ACQUIRE)) {
		const struct io_uring_cqe *cqe = &cqes[at++ & mask];
		struct request *r = (void *)(uintptr_t)cqe->user_data;

		if (r)
			r->answer = cqe->res;
		__atomic_store_n(head, at, __ATOMIC_RELEASE);
		if (!r)
			continue;	/* how a cancellation went */
		if (r == own)
			has_own = true;
		else
			ut_io_hand_back(r);
	}
	return has_own;
}

/* The eventfd has rung. Context: the watcher. */
void ut_uring_reap(void)
{
	eventfd_t nr;

	/* Before looking: what comes after the look rings again. */
	eventfd_read(ring.event_fd, &nr);
	pthread_mutex_lock(&lock);
	give_out(NULL);
	/* Those that found no room are put into it by the next call. */
	if (__atomic_load_n(ring_word(ring.p.sq_off.flags), __ATOMIC_ACQUIRE) &
	    IORING_SQ_CQ_OVERFLOW) {
		syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_GETEVENTS,
			NULL, 0);
		give_out(NULL);
	}
	pthread_mutex_unlock(&lock);
}

/* Context: lock held. Return: 0; -errno. */
static int enter(const struct io_uring_sqe *sqe, const struct request *r)
{
	u32 mask = *ring_word(ring.p.sq_off.ring_mask);
	/* Every call takes what it put in: there is always room. */
	u32 at = *ring_word(ring.p.sq_off.tail);
	long nr;

	ring.sqes[at & mask] = *sqe;
	ring.sqes[at & mask].user_data = (uintptr_t)r;
	ring_word(ring.p.sq_off.array)[at & mask] = at & mask;
	__atomic_store_n(ring_word(ring.p.sq_off.tail), at + 1, __ATOMIC_RELEASE);
	do {
		nr = syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0);
	} while (nr < 0 && errno == EINTR);
	if (nr == 1)
		return 0;
	nr = nr < 0 ? -errno : -EAGAIN;
	__atomic_store_n(ring_word(ring.p.sq_off.tail), at, __ATOMIC_RELEASE);
	return (int)nr;
}

/**
 * ut_uring_submit - ask the kernel
 * @r: its `sqe` says for what
 *
 * Context: preemption disabled.
 * Return: 0, and @r will be handed back; 1: its answer is there; -errno.
 */
int ut_uring_submit(struct request *r)
{
	int err;

	pthread_mutex_lock(&lock);
	err = enter(r->sqe, r);
	if (!err)
		err = give_out(r);
	pthread_mutex_unlock(&lock);
	return err;
}

/* Have @r handed back soon, done or not. Context: it has not been, as far as known. */
void ut_uring_cancel(const struct request *r)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_ASYNC_CANCEL, .fd = -1,
				    .addr = (uintptr_t)r };

	pthread_mutex_lock(&lock);
	if (!enter(&sqe, NULL))
		give_out(NULL);
	pthread_mutex_unlock(&lock);
}
