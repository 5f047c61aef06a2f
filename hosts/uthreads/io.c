/* SPDX-License-Identifier: MIT */
/*
 * io.c - calls that block the thread and not its kernel thread.
 *
 * A request is done by a helper, a kernel thread outside the machine, which then
 * hands the thread to the CPU it came from; that CPU wakes it. Helpers are made
 * as they are needed, up to a limit, and wait for more.
 *
 *	thread: queue the request, block     helper: do it, put the thread on the
 *	                                     CPU's `remote` list, ring its bell
 *
 * Helpers must not wait for what only another request can bring about: all of them
 * might. So what waits for somebody else (a socket, a pipe, a terminal) waits with
 * the watcher, one kernel thread for all of them; sockets are then read and written
 * by the thread itself, and need no helper.
 *
 * Read next: cpu.c, ut_ring().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ut.h"

#define HELPERS_MAX 16
#define HELPER_STACK_BYTES (256U << 10)
#define WATCHED_AT_ONCE 64

struct request {
	int (*fn)(void *arg);
	void *arg;
	int answer;
	int watched_fd;		/* the watcher's own number for what it watches */
	bool is_done;		/* atomic */
	struct ut_cpu *cpu;	/* to be told */
	struct ut_thread *thread;
	struct request *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
/* lock protects: */
static struct request *first, **last = &first;
static pthread_t helpers[HELPERS_MAX];
static u32 nr_helpers, nr_waiting, nr_queued;
static bool must_end;
static pthread_t watcher;
static int epoll_fd = -1, end_fd = -1;	/* -1: there is no watcher */

/* After a wait errno is another kernel thread's: its address is asked for anew. */
__attribute__((noinline)) static int last_error(void)
{
	__asm__ volatile("");
	return -errno;
}

/* Context: a helper. The request is the thread's, and gone once it is woken. */
static void hand_back(struct request *r)
{
	struct ut_cpu *cpu = r->cpu;
	struct request *head = __atomic_load_n(&cpu->remote, __ATOMIC_RELAXED);

	do {
		r->next = head;
	} while (!__atomic_compare_exchange_n(&cpu->remote, &head, r, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	ut_ring(cpu, UT_PENDING_REMOTE);
}

/* Wake those whose requests are done. Context: preemption disabled, on @cpu. */
void ut_io_finish(struct ut_cpu *cpu)
{
	struct request *r = __atomic_exchange_n(&cpu->remote, NULL,
						__ATOMIC_SEQ_CST);

	while (r) {
		struct request *next = r->next;
		struct ut_thread *t = r->thread;

		sl_store(&r->is_done, true);
		sl_task_wake(&t->core, 0, 0);
		__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
		r = next;
	}
}

static void *help(void *arg)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!first && !must_end) {
			nr_waiting++;
			pthread_cond_wait(&has_work, &lock);
			nr_waiting--;
		}
		r = first;
		if (!r)
			break;
		first = r->next;
		if (!first)
			last = &first;
		nr_queued--;
		pthread_mutex_unlock(&lock);
		r->answer = r->fn(r->arg);
		hand_back(r);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* A kernel thread outside must not take our signals, nor the program's. */
static int start_outside(pthread_t *id, void *(*fn)(void *))
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, HELPER_STACK_BYTES);
	err = pthread_create(id, &attr, fn, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

/* Context: lock held. */
static void add_helper(void)
{
	if (nr_queued > nr_waiting && nr_helpers < HELPERS_MAX &&
	    !start_outside(&helpers[nr_helpers], help))
		nr_helpers++;
}

/* Return: 0; -EAGAIN when there is nobody to do it. */
static int submit(struct request *r)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	r->next = NULL;
	*last = r;
	last = &r->next;
	nr_queued++;
	add_helper();
	if (nr_helpers)
		pthread_cond_signal(&has_work);
	else
		err = -EAGAIN;
	if (err) {
		first = NULL;
		last = &first;
		nr_queued = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* Give @r to somebody outside, and wait until it comes back. Return: as @give. */
static int wait_for(struct request *r, int (*give)(struct request *))
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err = ut_may_block();

	if (err)
		return err;
	r->cpu = ut_this_cpu();
	r->thread = self;
	__atomic_add_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
	ut_prepare_wait(self, UT_WAIT_IO, NULL);
	err = give(r);
	if (err) {
		__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
		sl_poke(&self->wait, (u8)UT_WAIT_NONE);
		return err;
	}
	/* Not to be cancelled: somebody has our stack in its hands. */
	while (!sl_load(&r->is_done)) {
		ut_block();
		ut_prepare_wait(self, UT_WAIT_IO, NULL);
	}
	sl_poke(&self->wait, (u8)UT_WAIT_NONE);
	return 0;
}

static int call_outside(int (*fn)(void *), void *arg)
{
	struct request r = { .fn = fn, .arg = arg };
	int err = wait_for(&r, submit);

	return err ? err : r.answer;
}

int ut_outside(int (*fn)(void *arg), void *arg)
{
	int answer;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	answer = call_outside(fn, arg);
	ut_enable();
	return answer;
}

void ut_io_exit(void)
{
	pthread_mutex_lock(&lock);
	must_end = true;
	pthread_cond_broadcast(&has_work);
	pthread_mutex_unlock(&lock);
	for (u32 i = 0; i < nr_helpers; i++)
		pthread_join(helpers[i], NULL);
	nr_helpers = 0;
	must_end = false;
	if (epoll_fd < 0)
		return;
	if (!eventfd_write(end_fd, 1))
		pthread_join(watcher, NULL);
	close(epoll_fd);
	close(end_fd);
	epoll_fd = -1;
	end_fd = -1;
}

/* ---- the watcher: who waits for a descriptor to be ready ------------------------ */

static void *watch(void *arg)
{
	struct epoll_event events[WATCHED_AT_ONCE];

	for (;;) {
		int nr = epoll_wait(epoll_fd, events, WATCHED_AT_ONCE, -1);

		for (int i = 0; i < nr; i++) {
			struct request *r = events[i].data.ptr;

			if (!r)
				return arg;	/* end_fd */
			/* The program has the same file open: no end of the watch. */
			epoll_ctl(epoll_fd, EPOLL_CTL_DEL, r->watched_fd, NULL);
			close(r->watched_fd);
			/* From here on @r is gone. */
			hand_back(r);
		}
	}
}

/* Context: lock held. Return: 0; -errno: there is no watcher. */
static int start_watcher(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (epoll_fd >= 0)
		return 0;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	end_fd = eventfd(0, EFD_CLOEXEC);
	err = epoll_fd < 0 || end_fd < 0 ||
	      epoll_ctl(epoll_fd, EPOLL_CTL_ADD, end_fd, &event) ? last_error() : 0;
	if (!err)
		err = start_outside(&watcher, watch);
	if (err) {
		close(epoll_fd);
		close(end_fd);
		epoll_fd = -1;
		end_fd = -1;
	}
	return err;
}

/*
 * A number of its own for each watch: two threads may wait for one descriptor, and
 * the program may close it meanwhile. `answer` holds the events.
 */
static int submit_watch(struct request *r)
{
	struct epoll_event event = { .events = (u32)r->answer | EPOLLONESHOT,
				     .data.ptr = r };
	int fd = r->watched_fd;
	int err;

	r->watched_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (r->watched_fd < 0)
		return last_error();
	pthread_mutex_lock(&lock);
	err = start_watcher();
	if (!err && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, r->watched_fd, &event))
		err = last_error();
	pthread_mutex_unlock(&lock);
	if (err)
		close(r->watched_fd);
	return err;
}

/*
 * Wait until @fd is ready for @events, or has an error. Return: 0; -EPERM: it is a
 * file, which always is; -errno. Context: preemption disabled.
 */
static int wait_ready(int fd, u32 events)
{
	struct request r = { .watched_fd = fd, .answer = (int)events };

	return ut_may_block() ? -EPERM : wait_for(&r, submit_watch);
}

/* ---- the calls of files and sockets ------------------------------------------- */

struct call {
	int fd;
	void *buffer;
	size_t bytes;
	off_t at;
	int flags;
	struct sockaddr *address;
	socklen_t *address_bytes;
	ssize_t result;
};

/* The result of a system call, or -errno. */
static int finish(struct call *c, ssize_t result)
{
	c->result = result < 0 ? -errno : result;
	return 0;
}

static int do_read(void *arg)
{
	struct call *c = arg;

	return finish(c, read(c->fd, c->buffer, c->bytes));
}

static int do_write(void *arg)
{
	struct call *c = arg;

	return finish(c, write(c->fd, c->buffer, c->bytes));
}

static int do_pread(void *arg)
{
	struct call *c = arg;

	return finish(c, pread(c->fd, c->buffer, c->bytes, c->at));
}

static int do_pwrite(void *arg)
{
	struct call *c = arg;

	return finish(c, pwrite(c->fd, c->buffer, c->bytes, c->at));
}

static int do_fsync(void *arg)
{
	struct call *c = arg;

	return finish(c, fsync(c->fd));
}

static int do_accept(void *arg)
{
	struct call *c = arg;

	return finish(c, accept4(c->fd, c->address, c->address_bytes, c->flags));
}

static int do_connect(void *arg)
{
	struct call *c = arg;

	return finish(c, connect(c->fd, c->address, *c->address_bytes));
}

static bool is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

/*
 * Read from, or write to, a socket: the thread does it itself, and waits while the
 * socket is not ready. As a call that blocks, a write goes on until all is written.
 * Return: bytes; -ENOTSOCK; -errno. Context: preemption disabled.
 */
static ssize_t use_socket(int fd, char *buffer, size_t bytes, bool is_write)
{
	size_t written = 0;
	int err = 0;

	for (;;) {
		ssize_t n = is_write ? send(fd, buffer + written, bytes - written,
					    MSG_DONTWAIT) :
				       recv(fd, buffer, bytes, MSG_DONTWAIT);

		if (n >= 0 && !is_write)
			return n;
		if (n >= 0) {
			written += (size_t)n;
			if (written >= bytes || is_nonblocking(fd))
				return (ssize_t)written;
			continue;
		}
		err = last_error();
		if (err == -EINTR)
			continue;
		if (err == -EAGAIN && !is_nonblocking(fd))
			err = wait_ready(fd, is_write ? EPOLLOUT : EPOLLIN);
		if (err)
			return written ? (ssize_t)written : err;
	}
}

/*
 * What is no socket is for a helper, which must not wait for anybody: that is done
 * before. Return: bytes; -errno.
 */
static ssize_t transfer(int (*fn)(void *), struct call *c, bool is_write)
{
	ssize_t n;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	n = ut_may_block() ? -EPERM :
			     use_socket(c->fd, c->buffer, c->bytes, is_write);
	if (n == -ENOTSOCK) {
		/* A file is always ready (-EPERM); other errors the call tells. */
		if (!is_nonblocking(c->fd))
			wait_ready(c->fd, is_write ? EPOLLOUT : EPOLLIN);
		n = call_outside(fn, c);
		n = n ? n : c->result;
	}
	ut_enable();
	return n;
}

static ssize_t do_call(int (*fn)(void *), struct call *c)
{
	int err = ut_outside(fn, c);

	return err ? err : c->result;
}

ssize_t ut_read(int fd, void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes };

	return transfer(do_read, &c, false);
}

ssize_t ut_write(int fd, const void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			  .bytes = bytes };

	return transfer(do_write, &c, true);
}

ssize_t ut_pread(int fd, void *buffer, size_t bytes, off_t at)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes, .at = at };

	return do_call(do_pread, &c);
}

ssize_t ut_pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
	struct call c = { .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			  .bytes = bytes, .at = at };

	return do_call(do_pwrite, &c);
}

int ut_fsync(int fd)
{
	struct call c = { .fd = fd };

	return (int)do_call(do_fsync, &c);
}

int ut_accept(int fd, struct sockaddr *address, socklen_t *address_bytes, int flags)
{
	struct call c = { .fd = fd, .address = address,
			  .address_bytes = address_bytes, .flags = flags };
	int err = 0;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	/* Whoever else accepts may be faster: then the helper waits. */
	if (!is_nonblocking(fd))
		wait_ready(fd, EPOLLIN);
	err = call_outside(do_accept, &c);
	ut_enable();
	return err ? err : (int)c.result;
}

/* Without blocking, then wait for how it went. -EAGAIN: a local socket cannot. */
static int connect_and_wait(struct call *c)
{
	socklen_t bytes = sizeof(int);
	int flags = fcntl(c->fd, F_GETFL);
	int err = 0;

	if (flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK))
		return last_error();
	if (connect(c->fd, c->address, *c->address_bytes))
		err = last_error();
	fcntl(c->fd, F_SETFL, flags);
	if (err != -EINPROGRESS)
		return err;
	err = wait_ready(c->fd, EPOLLOUT);
	if (!err && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		return last_error();
	return err > 0 ? -err : err;
}

int ut_connect(int fd, const struct sockaddr *address, socklen_t address_bytes)
{
	struct call c = { .fd = fd,
			  .address = (struct sockaddr *)(uintptr_t)address,
			  .address_bytes = &address_bytes };
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (ut_may_block()) {
		err = -EPERM;
	} else if (is_nonblocking(fd)) {
		err = connect(fd, address, address_bytes) ? last_error() : 0;
	} else {
		err = connect_and_wait(&c);
		if (err == -EAGAIN) {
			err = call_outside(do_connect, &c);
			err = err ? err : (int)c.result;
		}
	}
	ut_enable();
	return err;
}
