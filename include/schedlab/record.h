/* SPDX-License-Identifier: MIT */
/*
 * record.h - what happened: the one event format that every host writes.
 *
 * A record file is a header, records in order of time, and an END record that
 * counts them; little-endian, no padding. docs/formats.md is the reference.
 * Every metric, picture and check is computed from this file and nothing else.
 *
 * Read next: core/schedule.c, which writes most of them.
 */
#ifndef SCHEDLAB_RECORD_H
#define SCHEDLAB_RECORD_H

#include <scx/types.h>

#define SL_RECORD_MAGIC "SLREC\0\0\1"
#define SL_RECORD_VERSION 1

struct sl_record_header {
	char magic[8];
	u32 version;
	u32 header_bytes; /* sizeof(struct sl_record_header) */
	u32 record_bytes; /* sizeof(struct sl_record) */
	u32 nr_cpus;
	u64 tick_ns;
	u64 reserved[4];
};

/*
 * kind       cpu             flags         arg
 * ARRIVE     chosen cpu      0             pid of the parent, 0: none
 * WAKE       chosen cpu      0             pid of the waker, 0: a timer or device
 * RUN        where           0             DSQ id it came from, 0: unknown
 * STOP       where           SL_STOP_*     ns it ran since RUN
 * MIGRATE    to              0             from cpu
 * ENQUEUE    where           0             DSQ id (only with dispatch detail)
 * NOTE       where           0             what the policy said: key << 32 | value
 * ATTR       where           key           new value of the attribute
 * END        0               0             number of records before this one
 * LOST       where           0             number of records lost here
 * CALL       where           SL_CALL_*     process << 32 | descriptor or address
 * RETURN     where           SL_CALL_*     what it returned, signed
 * SPEED      where           0             work it does from now on, of SCX_CPUPERF_ONE
 *
 * Times never go backward within the file. RUN and STOP alternate per task and
 * per CPU. The time between a STOP and the next RUN on a CPU is overhead if an
 * OVERHEAD record says so, and idle otherwise.
 * OVERHEAD   where           SL_OVERHEAD_* ns just spent in the scheduler
 */
enum sl_record_kind {
	SL_RECORD_ARRIVE = 1,
	SL_RECORD_WAKE,
	SL_RECORD_RUN,
	SL_RECORD_STOP,
	SL_RECORD_MIGRATE,
	SL_RECORD_ENQUEUE,
	SL_RECORD_NOTE,
	SL_RECORD_ATTR,
	SL_RECORD_OVERHEAD,
	SL_RECORD_LOST,
	SL_RECORD_CALL,
	SL_RECORD_RETURN,
	SL_RECORD_SPEED,
	SL_RECORD_END = 255,
};

/* Why a task stopped running. */
enum sl_stop {
	SL_STOP_PREEMPTED, /* its slice ended, or it was kicked off */
	SL_STOP_YIELDED,
	SL_STOP_BLOCKED,
	SL_STOP_EXITED,
	SL_STOP_HORIZON, /* the run ended while it was on the CPU */
};

/* System calls of Linux by which tasks wait for each other. */
enum sl_call {
	SL_CALL_READ = 1, /* read, recv, accept: from a descriptor */
	SL_CALL_WRITE,	  /* write, send */
	SL_CALL_POLL,	  /* poll, select, epoll_wait: on several */
	SL_CALL_CONNECT,
	SL_CALL_CLOSE, /* has no RETURN */
	SL_CALL_FUTEX_WAIT,
	SL_CALL_FUTEX_WAKE,
};

enum sl_overhead {
	SL_OVERHEAD_SWITCH,
	SL_OVERHEAD_MIGRATE,
	SL_OVERHEAD_TICK,
	SL_OVERHEAD_WAKEUP,
	SL_OVERHEAD_STOLEN,    /* the machine below ran something else */
	SL_OVERHEAD_USER_HALF, /* the process that is a part of the policy */
};

struct sl_record {
	u64 t_ns;
	u32 task; /* pid; 0: the CPU itself */
	u16 cpu;
	u8 kind; /* SL_RECORD_* */
	u8 flags;
	u64 arg;
};

_Static_assert(sizeof(struct sl_record) == 24, "the record format is fixed");
_Static_assert(sizeof(struct sl_record_header) == 64, "so is its header");

#endif
