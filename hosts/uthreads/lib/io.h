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

/* Lies on the stack of the thread that waits for it. */
struct request {
	int (*fn)(void *arg); /* what a helper is to call */
	void *arg;
	int fd;		    /* or what is to be ready, */
	u32 events;	    /* and for what */
	int answer;	    /* of @fn; events; -errno */
	bool may_last;	    /* it waits for a peer, and can be taken back */
	int given_up;	    /* why its thread has asked for it to be taken back */
	bool is_armed;	    /* no event for it has come; changed by the holder of take_waiters() */
	bool is_done;	    /* atomic */
	struct ut_cpu *cpu; /* to be told */
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
int ut_io_error(void);
int ut_io_call_outside(int (*fn)(void *), void *arg);
int ut_io_wait_ready(int fd, u32 events);

/* calls.c */
int ut_io_poll(int fd, short events, u64 until_ns);
#define UT_IO_PAUSE_NS 100000	/* the first of ut_io_pause() */
bool ut_io_is_nonblocking(int fd);
ssize_t ut_io_write(int fd, const void *buffer, size_t bytes, int flags);
size_t ut_io_bytes(const struct vector *v);
ssize_t ut_io_use_other(const struct vector *v);
int ut_io_pause(u64 *pause_ns);

#pragma GCC visibility pop

#endif
