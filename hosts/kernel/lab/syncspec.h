/* SPDX-License-Identifier: MIT */
/*
 * syncspec.h - what syncs() makes and syncop() does; kernel and programs agree.
 *
 * The kinds 1 to 4 are those of a workload program (enum sl_object_kind); play
 * adds counters, by which a task hears that others have ended, and a device.
 *
 * Read next: sync.c; user/play.c, which uses all of it.
 */
#ifndef KERNEL_SYNCSPEC_H
#define KERNEL_SYNCSPEC_H

#define SYNC_OBJECTS_MAX 16384		/* in one set */

enum sync_kind {
	SYNC_LOCK = 1,
	SYNC_PIPE,    /* param[0]: capacity in bytes; no byte is copied */
	SYNC_BARRIER, /* param[0]: parties */
	SYNC_CONDITION,
	SYNC_COUNTER, /* starts at 0 */
	SYNC_DEVICE,  /* param: ns per request, ns per KiB, requests at once */
};

struct sync_spec {
	unsigned int kind; /* enum sync_kind */
	unsigned int reserved;
	unsigned long param[3];
};

/*
 * A process that has to wait does so in line, and what it waits for is handed
 * to it before it is woken. -1: no such object, an op of another kind, a lock
 * that is held already or not held, or killed meanwhile.
 */
enum sync_op {
	SYNC_TAKE_LOCK = 1,
	SYNC_DROP_LOCK,
	SYNC_SEND,	  /* arg: bytes */
	SYNC_RECV,	  /* arg: bytes */
	SYNC_ARRIVE,	  /* wait until all parties are at the barrier */
	SYNC_AWAIT,	  /* arg: 1 + the lock to drop meanwhile; 0: none */
	SYNC_SIGNAL,	  /* arg: 0 the first waiter, 1 all */
	SYNC_ADD,	  /* arg: how much is added to the counter */
	SYNC_ADD_AT_EXIT, /* arg: added when the caller has ended */
	SYNC_TAKE,	  /* arg: wait until it is so much; take it away */
	SYNC_REQUEST,	  /* arg: bytes; wait for the device */
	SYNC_OFF_AT,	  /* arg: the machine goes off when it is so much */
	SYNC_NR_OPS,
};

#endif
