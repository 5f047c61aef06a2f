/* SPDX-License-Identifier: MIT */
/*
 * io.h - a request done outside the machine: what the files of I/O share.
 *
 * Read next: io.c.
 */
#ifndef UT_IO_H
#define UT_IO_H

#include "ut.h"

#pragma GCC visibility push(hidden)

struct io_uring_sqe;

/* Lies on the stack of the thread that waits for it. */
struct request {
	int (*fn)(void *arg);
	void *arg;
	int answer;
	int watched_fd;		/* the watcher's own number for what it watches */
	const struct io_uring_sqe *sqe;	/* what the kernel is to do */
	bool may_last;		/* it waits for a peer, and can be taken back */
	int given_up;		/* why its thread has asked for it to be taken back */
	bool is_watched;	/* the watcher has it; io.c's lock protects it */
	bool is_armed;		/* a socket's; see arm() */
	bool is_done;		/* atomic */
	struct ut_cpu *cpu;	/* to be told */
	struct ut_thread *thread;
	struct request *next;
};

#define UT_IO_OWN_PLACE (-1)	/* where the file is read or written next */

struct vector {
	int fd;
	const struct iovec *parts;
	size_t nr;
	bool is_write;
	off_t at;
	ssize_t result;
};

/* io.c */
void ut_io_hand_back(struct request *r);
int ut_io_error(void);
int ut_io_call_outside(int (*fn)(void *), void *arg);
bool ut_io_ask_kernel(const struct io_uring_sqe *sqe, bool may_last, ssize_t *result);
int ut_io_wait_ready(int fd, u32 events);
int ut_io_wait_socket(int fd, u32 events);

/* calls.c */
#define UT_IO_PAUSE_NS 100000	/* the first of ut_io_pause() */
bool ut_io_is_nonblocking(int fd);
ssize_t ut_io_write(int fd, const void *buffer, size_t bytes, int flags);
size_t ut_io_bytes(const struct vector *v);
ssize_t ut_io_use_other(const struct vector *v);
int ut_io_pause(u64 *pause_ns);

/* uring.c */
int ut_uring_start(void);
int ut_uring_submit(struct request *r);
void ut_uring_cancel(const struct request *r);
void ut_uring_reap(void);
void ut_uring_exit(void);

#pragma GCC visibility pop

#endif
