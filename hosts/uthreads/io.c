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
 * Read next: cpu.c, ut_ring().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ut.h"

#define HELPERS_MAX 16
#define HELPER_STACK_BYTES (256U << 10)

struct request {
	int (*fn)(void *arg);
	void *arg;
	int answer;
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

/* Context: lock held. A helper must not take our signals, nor the program's. */
static void add_helper(void)
{
	pthread_attr_t attr;
	sigset_t all, old;

	if (nr_queued <= nr_waiting || nr_helpers == HELPERS_MAX)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, HELPER_STACK_BYTES);
	if (!pthread_create(&helpers[nr_helpers], &attr, help, NULL))
		nr_helpers++;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
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

static int call_outside(int (*fn)(void *), void *arg)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	struct request r = { .fn = fn, .arg = arg, .cpu = ut_this_cpu(),
			     .thread = self };
	int err = ut_may_block();

	if (err)
		return err;
	__atomic_add_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
	ut_prepare_wait(self, UT_WAIT_IO, NULL);
	err = submit(&r);
	if (err) {
		__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
		self->wait = UT_WAIT_NONE;
		return err;
	}
	/* Not to be cancelled: a helper has our stack in its hands. */
	while (!sl_load(&r.is_done)) {
		ut_block();
		ut_prepare_wait(self, UT_WAIT_IO, NULL);
	}
	self->wait = UT_WAIT_NONE;
	return r.answer;
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

static ssize_t do_call(int (*fn)(void *), struct call *c)
{
	int err = ut_outside(fn, c);

	return err ? err : c->result;
}

ssize_t ut_read(int fd, void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = buffer, .bytes = bytes };

	return do_call(do_read, &c);
}

ssize_t ut_write(int fd, const void *buffer, size_t bytes)
{
	struct call c = { .fd = fd, .buffer = (void *)(uintptr_t)buffer,
			  .bytes = bytes };

	return do_call(do_write, &c);
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

	return (int)do_call(do_accept, &c);
}

int ut_connect(int fd, const struct sockaddr *address, socklen_t address_bytes)
{
	struct call c = { .fd = fd,
			  .address = (struct sockaddr *)(uintptr_t)address,
			  .address_bytes = &address_bytes };

	return (int)do_call(do_connect, &c);
}
