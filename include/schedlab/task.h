/* SPDX-License-Identifier: MIT */
/*
 * task.h - a task as the core keeps it.
 *
 * A host allocates the structure (usually inside one of its own), zeroed, and
 * gives it to sl_task_setup() and sl_task_attach(). It is the core's: a host reads it,
 * and writes `wait_for`. `p` is first, so that a policy's pointer is
 * the core's as well.
 *
 * Memory. A policy may hold a task's pointer when the task is no more: it is
 * about to dispatch it, or walks a queue where it was. So memory that was given
 * to sl_task_attach() while a policy was loaded stays a struct sl_task until
 * sl_policy_disable() has returned, or sl_core_exit(). After sl_task_detach() it
 * may be reused: sl_task_setup() makes it the next task, and what a policy still
 * does with the old pointer then concerns the new task, or is dropped (S21). It
 * must not be zeroed in between, nor be written by the host in any other way;
 * the same holds for a mask of CPUs that it pointed to.
 *
 *              start                    picked
 *	NEW ----------> RUNNABLE --------------------> RUNNING --> DEAD
 *	                 ^  ^  \_ on a DSQ, or held     |   |
 *	            wake |  |     by the policy         |   |
 *	                 |  +---------------------------+   |
 *	              WAKING       preempted, yielded       |
 *	                 ^                                  |
 *	                 +------------ BLOCKED <------------+
 *
 * Read next: sched.h, what a host calls.
 */
#ifndef SCHEDLAB_TASK_H
#define SCHEDLAB_TASK_H

#include <scx/types.h>
#include <scx/attrs.h>
#include <scx/words.h>

enum sl_task_state {
	SL_TASK_NEW,
	SL_TASK_BLOCKED,
	SL_TASK_WAKING, /* a waker has claimed it and is choosing a CPU */
	SL_TASK_RUNNABLE,
	SL_TASK_RUNNING,
	SL_TASK_DEAD,
};

/*
 * Where a runnable task is, as in Linux: the low two bits of ops_state. The
 * rest counts how often it was given to the policy, so that a late dispatch of
 * an earlier turn is told from a valid one.
 */
enum sl_ops_state {
	SL_OPSS_NONE,	     /* the core: on a DSQ, running, or not runnable */
	SL_OPSS_QUEUEING,    /* on its way to the policy */
	SL_OPSS_QUEUED,	     /* the policy */
	SL_OPSS_DISPATCHING, /* on its way back */
	SL_OPSS_MASK = 3,
	SL_OPSS_SEQ_ONE = 4,
};

struct sl_dsq;

struct sl_task {
	struct task_struct p;

	/* Seldom touched, as the second half of @p. The lock of the queue protects: */
	struct sl_task *left; /* tree of a vtime queue */
	struct sl_task *right;
	struct sl_task *parent;
	u64 key; /* vtime it is queued under */

	u64 nr_migrations;     /* the lock of CPU `cpu` protects it */
	struct task_attr attr; /* as given, for every policy that comes */
	u32 idx;	       /* the host's number: place in the core's table */
	u16 weight;	       /* what a policy sees from ops.enable() on; atomic */
	bool is_bound;	       /* to a CPU; see sl_task_bind() */

	/* Each switch writes what follows: two cache lines, in which nothing else is. */

	/* The lock of the queue it is on, or of its CPU, protects: */
	struct sl_dsq *dsq;   /* read without lock, then checked */
	struct sl_task *next; /* order on the queue */
	struct sl_task *prev;
	u64 dsq_seq; /* the queue's count when it was inserted */

	/* The lock of CPU `cpu` protects: */
	s32 cpu;	  /* whose lock; changes under the new one's */
	s32 last_cpu;	  /* where it last ran; -1: nowhere yet */
	u8 state;	  /* enum sl_task_state */
	bool is_blocking; /* has announced that it will block */
	bool in_custody;  /* the policy is owed an ops.dequeue() */
	bool on_cpu;	  /* its stack is in use; atomic */

	/* tasks_lock protects: */
	bool is_attached; /* read without lock */
	bool is_known;	  /* the policy knows it */
	bool is_leaving;  /* no other policy will */

	/* The lock of CPU `cpu` protects: */
	u8 cgroup_idx;	    /* that a policy has it in; in a move, not yet that of `p` */
	u64 runnable_at_ns; /* since when it waits for a CPU */
	u64 ops_state;	    /* enum sl_ops_state and count; atomic */
	u64 exec_start_ns;  /* charged up to here while it runs */
	u64 charged_ns;	    /* CPU time since it was last put on a CPU */
	u64 from_dsq_id;    /* the queue it was picked from */
	u64 wait_ns;	    /* total so far */
	u64 wait_ns_max;

	/* Seldom touched, and there is room. */
	const char *wait_for;		 /* host: constant text, for people; or NULL */
	const struct cpumask *user_mask; /* the CPUs that it has asked for; NULL: it has not */
};

/*
 * A policy may write the slice of any task from any CPU, also that of a task
 * it no longer holds: the last write wins, and a tick mends what went wrong.
 */
static inline u64 sl_slice(const struct sl_task *t)
{
	return READ_ONCE(t->p.scx.slice);
}

/* Hosts and core turn a policy's pointer into the core's with this. */
static inline struct sl_task *sl_task_of(const struct task_struct *p)
{
	return (struct sl_task *)(uintptr_t)p;
}

#endif
