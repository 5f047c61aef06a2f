/* SPDX-License-Identifier: MIT */
/*
 * calls.c - the system calls by which tasks wait for each other.
 *
 * A read that found something did not block, so the scheduler knows nothing of
 * it, but it could not have been earlier than what it read was written. Of other
 * calls the kernel makes no sample: calls_filter() is applied in the kernel.
 *
 * Called by ring.c. Read next: lives.c, which makes records of them.
 */
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <schedlab/record.h>

#include "record.h"

#define FUTEX -1

static const struct {
	int id;
	int call; /* SL_CALL_*, or FUTEX: the operation decides */
} calls[] = {
	{ SYS_read, SL_CALL_READ },
	{ SYS_readv, SL_CALL_READ },
	{ SYS_recvfrom, SL_CALL_READ },
	{ SYS_recvmsg, SL_CALL_READ },
	{ SYS_accept4, SL_CALL_READ },
	{ SYS_write, SL_CALL_WRITE },
	{ SYS_writev, SL_CALL_WRITE },
	{ SYS_sendto, SL_CALL_WRITE },
	{ SYS_sendmsg, SL_CALL_WRITE },
	{ SYS_ppoll, SL_CALL_POLL },
	{ SYS_pselect6, SL_CALL_POLL },
	{ SYS_epoll_pwait, SL_CALL_POLL },
	{ SYS_connect, SL_CALL_CONNECT },
	{ SYS_close, SL_CALL_CLOSE },
	{ SYS_futex, FUTEX },
#ifdef SYS_accept
	{ SYS_accept, SL_CALL_READ },
#endif
#ifdef SYS_poll
	{ SYS_poll, SL_CALL_POLL },
#endif
#ifdef SYS_select
	{ SYS_select, SL_CALL_POLL },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, SL_CALL_POLL },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, SL_CALL_POLL },
#endif
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

const char *calls_filter(void)
{
	static char filter[NR_CALLS * 16];
	size_t used = 0;

	for (size_t i = 0; i < NR_CALLS; i++)
		used += (size_t)snprintf(filter + used, sizeof(filter) - used, "%sid==%d",
					 i ? "||" : "", calls[i].id);
	return filter;
}

static uint8_t futex_of(uint64_t operation)
{
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
		return SL_CALL_FUTEX_WAIT;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
	case FUTEX_WAKE_OP:
	case FUTEX_UNLOCK_PI:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		return SL_CALL_FUTEX_WAKE;
	}
	return 0;
}

uint8_t call_of(uint64_t id, const uint64_t *args)
{
	for (size_t i = 0; i < NR_CALLS; i++) {
		if ((uint64_t)calls[i].id != id)
			continue;
		if (calls[i].call != FUTEX)
			/* A close never waits: where it ends is of no use. */
			return calls[i].call == SL_CALL_CLOSE && !args ? 0 : (uint8_t)calls[i].call;
		return args ? futex_of(args[1]) : SL_CALL_FUTEX_WAIT;
	}
	return 0;
}

uint32_t call_object(uint8_t call, const uint64_t *args)
{
	bool is_futex = call == SL_CALL_FUTEX_WAIT || call == SL_CALL_FUTEX_WAKE;

	/* A futex is aligned to 4 bytes; two of one process 16 GiB apart are one. */
	return (uint32_t)(is_futex ? args[0] >> 2 : args[0]);
}
