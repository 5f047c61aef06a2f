/* SPDX-License-Identifier: MIT */
/*
 * sync.c - locks, pipes, barriers and conditions between processes or threads.
 *
 * Called by the tasks of a run, each for itself. All but pipes are futexes in
 * the shared mapping, so that waiting is the kernel's business and a lock that
 * is free costs no system call.
 *
 * Read next: verbs.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"

#define PIPE_CHUNK 65536
#define ALL_WAITERS (1 << 30)

enum { LOCK_FREE, LOCK_HELD, LOCK_WANTED };

void futex_wait(u32 *word, u32 seen, u64 until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
				  .tv_nsec = (long)(until_ns % NS_PER_S) };

	/* The bitset form takes an absolute time of the monotonic clock. */
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, until_ns == ~0ULL ? NULL : &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(u32 *word, int how_many)
{
	syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

/* The mutex of Drepper's "Futexes Are Tricky" (2005): 2 says that one waits. */
void futex_lock(u32 *word)
{
	u32 seen = LOCK_FREE;

	if (__atomic_compare_exchange_n(word, &seen, LOCK_HELD, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(word, LOCK_WANTED, __ATOMIC_ACQUIRE))
		futex_wait(word, LOCK_WANTED, ~0ULL);
}

void futex_unlock(u32 *word)
{
	if (__atomic_exchange_n(word, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WANTED)
		futex_wake(word, 1);
}

int sync_lock(struct sl_player *p, u32 object)
{
	futex_lock(&sync_object(p, object)->word);
	return 0;
}

int sync_unlock(struct sl_player *p, u32 object)
{
	futex_unlock(&sync_object(p, object)->word);
	return 0;
}

int sync_send(struct sl_player *p, u32 object, u64 bytes)
{
	static const char nothing[PIPE_CHUNK];

	while (bytes) {
		u64 chunk = bytes < PIPE_CHUNK ? bytes : PIPE_CHUNK;
		ssize_t n = write(sync_object(p, object)->pipe_fds[1], nothing, chunk);

		if (n < 0)
			return -errno;
		bytes -= (u64)n;
	}
	return 0;
}

int sync_recv(struct sl_player *p, u32 object, u64 bytes)
{
	static _Thread_local char received[PIPE_CHUNK];

	while (bytes) {
		u64 chunk = bytes < PIPE_CHUNK ? bytes : PIPE_CHUNK;
		ssize_t n = read(sync_object(p, object)->pipe_fds[0], received, chunk);

		if (n <= 0)
			return n ? -errno : -EPIPE;
		bytes -= (u64)n;
	}
	return 0;
}

int sync_barrier(struct sl_player *p, u32 object)
{
	struct sync_object *o = sync_object(p, object);
	u64 parties = sl_program_objects(p->program)[object].param;
	u32 round = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&o->count, 1, __ATOMIC_ACQ_REL) == parties) {
		__atomic_store_n(&o->count, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&o->word, round + 1, __ATOMIC_RELEASE);
		futex_wake(&o->word, ALL_WAITERS);
		return 0;
	}
	while (__atomic_load_n(&o->word, __ATOMIC_ACQUIRE) == round)
		futex_wait(&o->word, round, ~0ULL);
	return 0;
}

/*
 * A waiter draws a number, and is let go when more than that many have been. So
 * a signal wakes exactly the task that has waited longest, and one that comes between letting
 * go of the lock and sleeping is not missed. Of 32 futex bits each waiter listens
 * to its own, so that few are woken without need.
 */
int sync_await(struct sl_player *p, u32 object, u32 lock)
{
	struct sync_object *o = sync_object(p, object);
	u32 number = __atomic_fetch_add(&o->count, 1, __ATOMIC_ACQ_REL);
	u32 seen;

	if (lock != SL_PROGRAM_NONE)
		p->ops->unlock(p, lock);
	for (;;) {
		seen = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);
		if ((s32)(seen - number) > 0)
			break;
		syscall(SYS_futex, &o->word, FUTEX_WAIT_BITSET, seen, NULL, NULL, 1U << number % 32);
	}
	return lock == SL_PROGRAM_NONE ? 0 : p->ops->lock(p, lock);
}

int sync_signal(struct sl_player *p, u32 object, bool all)
{
	struct sync_object *o = sync_object(p, object);
	u32 gone = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);
	u32 come, next;

	do {
		come = __atomic_load_n(&o->count, __ATOMIC_ACQUIRE);
		if (gone == come)
			return 0;
		next = all ? come : gone + 1;
	} while (!__atomic_compare_exchange_n(&o->word, &gone, next, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	syscall(SYS_futex, &o->word, FUTEX_WAKE_BITSET, ALL_WAITERS, NULL, NULL,
		all ? FUTEX_BITSET_MATCH_ANY : 1U << gone % 32);
	return 0;
}

void sync_close(const void *program, struct sync_object *objects)
{
	for (u32 i = 0; i < sl_program_header(program)->nr_objects; i++) {
		if (objects[i].pipe_fds[0] < 0)
			continue;
		close(objects[i].pipe_fds[0]);
		close(objects[i].pipe_fds[1]);
	}
}

/* Linux keeps at least a page in a pipe, and at most what it allows a user. */
int sync_open(const void *program, struct sync_object *objects, u32 *fault_object)
{
	u32 nr_objects = sl_program_header(program)->nr_objects;

	for (u32 i = 0; i < nr_objects; i++)
		objects[i].pipe_fds[0] = objects[i].pipe_fds[1] = -1;
	for (u32 i = 0; i < nr_objects; i++) {
		const struct sl_program_object *o = &sl_program_objects(program)[i];
		int *fds = objects[i].pipe_fds;

		if (o->kind != SL_OBJECT_PIPE)
			continue;
		if (pipe2(fds, O_CLOEXEC) || fcntl(fds[1], F_SETPIPE_SZ, (int)o->param) < 0) {
			int err = -errno;

			*fault_object = i;
			sync_close(program, objects);
			return err;
		}
	}
	return 0;
}
