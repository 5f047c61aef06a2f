/* SPDX-License-Identifier: MIT */
/*
 * uthreads.h - preemptive user-level threads whose scheduler is a policy file.
 *
 *	struct ut_config config = UT_CONFIG_INIT;
 *	config.nr_cpus = 2;
 *	config.policy = "rr";
 *	ut_init(&config);
 *	ut_create(&id, NULL, function, argument);
 *	ut_join(id, &result);
 *	ut_exit();
 *
 * A function returns 0 or a negative errno, and prints nothing; each says
 * which. "May switch": another thread may run before it returns, and the caller
 * may go on on another kernel thread, so whatever it knows by the address of a
 * thread-local variable is to be looked up again. docs/uthreads.md is the manual.
 *
 * Any function but ut_init() and ut_once_call() returns -EPERM when it is called from a kernel
 * thread that the library did not start, and all of them do in a child of fork().
 */
#ifndef SCHEDLAB_UTHREADS_H
#define SCHEDLAB_UTHREADS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ut_init(3): start and end -------------------------------------------- */

struct ut_config {
	uint32_t config_bytes;	 /* sizeof(struct ut_config); UT_CONFIG_INIT */
	uint32_t nr_cpus;	 /* kernel threads; 0: as many as there are CPUs */
	const char *policy;	 /* a compiled policy's path, or the name of one that is */
				 /* installed, "credit"; NULL: the library's FIFO */
	const char *const *sets; /* its knobs, "name=value"; ends with NULL */
	uint32_t threads_max;	 /* 0: 65,536 */
	uint32_t stack_bytes;	 /* of a thread that asks for none; 0: 65,536 */
	uint64_t tick_ns;	 /* slices end at multiples; 0: 100 us, or 1 ms for */
				 /* a policy that has ops.tick() */
	uint64_t seed;		 /* of the policy's random numbers */
	const char *records;	 /* file of what happened, record.h; NULL: none */
	uint32_t flags;		 /* UT_* below */
	int preempt_signal;	 /* 0: SIGURG */
};

/* A field that is not mentioned is zero, and means its default. */
#define UT_CONFIG_INIT { sizeof(struct ut_config), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#define UT_NO_PREEMPTION	0x1	/* threads make way in library calls only */
#define UT_PIN_CPUS		0x2	/* kernel thread n stays on the n-th CPU */
/*
 * A thread that was stopped by a signal may go on on another kernel thread at
 * once. Only for programs that use no thread-local variable, errno included, in
 * code that can be preempted.
 */
#define UT_MIGRATE_PREEMPTED	0x4
#define UT_RECORD_DETAIL	0x8	/* record every insertion into a queue */
#define UT_NO_SIGQUIT		0x10	/* leave that signal alone; see ut_dump() */

/**
 * ut_init - start the machine; the caller becomes its first thread
 * @config: copied; NULL: all defaults
 *
 * Return: 0; -EBUSY when it runs already; -EINVAL for an impossible
 * configuration or policy (ut_error_text() says more); -ENOENT for a policy that
 * is not there; -EAGAIN or -ENOMEM when kernel threads or memory are short.
 */
int ut_init(const struct ut_config *config);

/**
 * ut_exit - wait for all other threads, then stop the machine
 *
 * Called by the thread that called ut_init(). May switch.
 *
 * Return: 0; -EPERM for any other thread, and while preemption is disabled; -EIO when
 * the records could not be written.
 */
int ut_exit(void);

/**
 * ut_set_policy - change the scheduler while threads run
 * @path: as config's `policy`
 * @sets: its knobs, "name=value", ends with NULL; may be NULL
 *
 * Threads keep their attributes. May switch.
 *
 * Return: 0; or as ut_init() of a policy, and then the library's FIFO decides.
 */
int ut_set_policy(const char *path, const char *const *sets);

/* What went wrong in the last ut_init() or change of policy, for people. */
const char *ut_error_text(void);

/* ---- ut_thread(3): threads ------------------------------------------------ */

/* Names a thread for as long as it can be joined, and never another one. */
typedef uint64_t ut_id;

typedef void *(*ut_fn)(void *arg);

/* A group of threads; see ut_cgroup(3). */
typedef struct cgroup ut_cgroup;

struct ut_attr {
	uint32_t attr_bytes; /* sizeof(struct ut_attr); UT_ATTR_INIT */
	uint32_t given;	     /* UT_GIVES_*: which of these to use */
	int32_t priority;
	uint32_t tickets;
	int32_t credits;
	uint32_t cap_percent; /* of one CPU */
	uint32_t group;
	uint32_t weight; /* 1 to 10,000; 100 is usual */
	uint64_t deadline_ns;
	uint64_t burst_ns;
	const uint64_t *affinity; /* bits of CPUs; NULL: all */
	uint32_t affinity_words;
	uint32_t is_detached; /* it is never joined */
	size_t stack_bytes;   /* 0: config's; at least 16 KiB and a signal; rounded up */
	const char *name;     /* copied, cut at 15 characters; NULL: "thread" */
	ut_cgroup *cgroup;    /* NULL: its creator's */
};

#define UT_ATTR_INIT \
	{ sizeof(struct ut_attr), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#define UT_GIVES_PRIORITY	0x01
#define UT_GIVES_TICKETS	0x02
#define UT_GIVES_CREDITS	0x04
#define UT_GIVES_CAP		0x08
#define UT_GIVES_GROUP		0x10
#define UT_GIVES_WEIGHT		0x20
#define UT_GIVES_DEADLINE	0x40
#define UT_GIVES_BURST		0x80

/**
 * ut_create - start a thread
 * @id: where to put its name; may be NULL for a detached one
 * @attr: NULL: all defaults
 * @fn: what it runs; returning ends it
 * @arg: for @fn
 *
 * May switch.
 *
 * Return: 0; -EINVAL for a bad attribute; -EAGAIN when threads_max are there;
 * -ENOMEM when there is no memory, or no mapping left, for its stack; -E2BIG when the
 * policy's map of attributes is full; -EBUSY for a group with groups in it; what the policy's
 * ops.init_task() says.
 */
int ut_create(ut_id *id, const struct ut_attr *attr, ut_fn fn, void *arg);

/**
 * ut_join - wait until a thread has ended, and forget it
 * @id: a thread that is not detached, and that no other thread joins
 * @result: what it returned; may be NULL
 *
 * May switch.
 *
 * Return: 0; -ESRCH when there is no such thread (any more); -EINVAL for a
 * detached one or one that another thread joins already; -EDEADLK for the
 * caller, or one that waits for the caller; -ECANCELED; -ETIMEDOUT.
 */
int ut_join(ut_id id, void **result);

/*
 * The thread will not be joined. Return: 0; -ESRCH; -EINVAL: it is detached
 * already, or being joined.
 */
int ut_detach(ut_id id);

/* Ends the calling thread; as returning from its function. The first thread waits for
 * all others, and ends the process with status 0. */
void ut_thread_exit(void *result) __attribute__((noreturn));

/* The calling thread; 0 outside the machine. */
ut_id ut_self(void);

/* Lets others run, as the policy sees it. May switch. Return: 0; -EPERM while
 * preemption is disabled. */
int ut_yield(void);

/* Sleeps for at least @ns. May switch. Return: 0; -ECANCELED; -ETIMEDOUT; -ENOMEM. */
int ut_sleep_ns(uint64_t ns);

/*
 * From now on calls of the caller's that wait return -ETIMEDOUT at @until_ns, a time of
 * ut_now_ns(), as those with an `until_ns` of their own do: whichever is first. That is
 * every cancellation point (below), ut_mutex_lock() and ut_rwlock_*lock(), but not what
 * waits for a mutex after a condition. UT_NEVER: no deadline. Return: the former one; UT_NEVER outside.
 */
#define UT_NEVER (~0ULL)
uint64_t ut_set_deadline(uint64_t until_ns);

/* ns since ut_init(), from a clock that costs some 20 ns; 0 outside. */
uint64_t ut_now_ns(void);

/* Which kernel thread runs the caller: 0 to nr_cpus - 1; -1: none of the machine's. */
int ut_cpu(void);

/*
 * Between the two, the caller is not preempted; they nest. Enabling may switch; once
 * too often does nothing. A call that would block fails with -EPERM in between. A
 * thread that ends in between is named on standard error, and preemption goes on.
 */
void ut_preempt_disable(void);
void ut_preempt_enable(void);

/*
 * Asks a thread to end: from now on every call of its that would block, and is
 * marked as a cancellation point below, returns -ECANCELED, also one that it is
 * blocked in. What it does then is its own affair; it should return.
 * ut_join, ut_sleep_ns, ut_cond_wait*, ut_sem_wait*, ut_barrier_wait, ut_chan_send,
 * ut_chan_recv, ut_select, ut_poll, ut_accept, ut_connect, and ut_read, ut_write and their like of
 * what waits for a peer (of a socket, a pipe, a terminal) are such points. Locks are
 * none, nor are files and ut_outside(), which end by themselves.
 *
 * Return: 0; -ESRCH.
 */
int ut_cancel(ut_id id);

/* Whether the caller has been asked to end. */
int ut_is_cancelled(void);

/*
 * Change what @attr->given and @attr->affinity say of a thread that lives; the
 * policy hears of it. The mask of CPUs changes when affinity is not NULL. May
 * switch. While a mutex lends it a more urgent priority, it keeps that. Return: 0;
 * -ESRCH; -EINVAL, also where its group has none of the CPUs; -ENOMEM; -E2BIG: the
 * policy's map of attributes is full.
 */
int ut_setattr(ut_id id, const struct ut_attr *attr);

/* What was given to it so far, by ut_create() and ut_setattr(). Name and affinity are
 * the thread's own, until it is joined; the group is where it is. Return: 0; -ESRCH; -EINVAL. */
int ut_getattr(ut_id id, struct ut_attr *attr);

struct ut_stats {
	uint64_t cpu_time_ns;
	uint64_t wait_ns; /* runnable, and not running */
	uint64_t wait_ns_max;
	uint64_t voluntary_switches;
	uint64_t involuntary_switches;
	uint64_t migrations;
	char name[16];
};

/* As ut_join(), and what the thread used all in all. */
int ut_join_stats(ut_id id, void **result, struct ut_stats *stats);

/* Of a thread that has not been joined. Return: 0; -ESRCH. */
int ut_stats(ut_id id, struct ut_stats *stats);
uint64_t ut_cpu_time_ns(ut_id id);

/*
 * Prints every CPU, queue and thread to standard error: state, what it waits for,
 * stack. SIGQUIT does the same from outside (Ctrl-\ in a terminal).
 */
void ut_dump(void);

/* ---- ut_cgroup(3): groups of threads ---------------------------------------- */

/*
 * A cgroup: what its weight and bandwidth mean is the policy's, which is told of them
 * (`credit`, `cfs` and `eevdf` go by weights with the knob groups=flat), and nothing else limits
 * it. Its CPUs hold under each policy. A thread begins in its creator's, or in that of its
 * attributes; the first one is in the root, which is always there, and has no limits. Threads are in
 * groups without groups in them, as on Linux, and in the root. A group stays until ut_exit().
 *
 * All of these may switch, and return -EPERM while preemption is disabled.
 */

/**
 * ut_cgroup_create - make a group
 * @made: where to put it
 * @parent: the group that it is in; NULL: the root
 * @name: copied, cut at 31 characters
 * @weight: 1 to 10,000; 0: 100, which is usual
 *
 * Return: 0; -EINVAL; -EBUSY: threads are in @parent; -ENOSPC: there are 255, or 31 in each
 * other; -ETIMEDOUT; what the policy's ops.cgroup_init() says.
 */
int ut_cgroup_create(ut_cgroup **made, ut_cgroup *parent, const char *name, uint32_t weight);

/* Return: 0; -EINVAL; -ETIMEDOUT. */
int ut_cgroup_set_weight(ut_cgroup *group, uint32_t weight);

/* In each @period_us it has @quota_us of CPU time; ~0: no limit. Return: 0; -EINVAL; -ETIMEDOUT. */
int ut_cgroup_set_bandwidth(ut_cgroup *group, uint64_t period_us, uint64_t quota_us);

/*
 * Its threads run on those of @cpus, bits of CPUs, that they ask for (their affinity), and if that
 * is none, on all of @cpus; and so those of groups that are made in it. Return: 0; -EINVAL: a CPU
 * that is not there; -EBUSY: it has threads or groups already; -ETIMEDOUT.
 */
int ut_cgroup_set_cpus(ut_cgroup *group, const uint64_t *cpus, uint32_t words);

/*
 * Move a thread to @group; NULL: the root. It has left a CPU that it may not use there when this
 * returns. Return: 0; -ESRCH; -EBUSY: there are groups in @group; -ETIMEDOUT; what the policy's
 * ops.cgroup_prep_move() says, and then it stays where it is.
 */
int ut_cgroup_move(ut_id id, ut_cgroup *group);

/* ---- ut_sync(3): waiting for each other ----------------------------------- */

/*
 * All of these begin as zeros (UT_..._INIT), need no destruction, and may not be
 * moved. Waiters are served in order of arrival. "until" is a time of ut_now_ns();
 * such a call returns -ETIMEDOUT when it has passed, and -ENOMEM where there is no
 * memory for one more time.
 */
struct ut_waiters_ {
	void *first, *last;
};

typedef struct {
	struct {
		uint32_t is_held;
	} lock_;
	uint32_t flags_;
	void *owner_;
	struct ut_waiters_ waiters_;
	void *next_held_;
	int32_t donated_;
	uint32_t has_donated_;
} ut_mutex;

#define UT_MUTEX_INIT UT_MUTEX_INIT_INHERIT(0)
/*
 * While a thread waits for it, its owner has the priority of the waiter that is
 * the most urgent: the smallest number, as in policy `priority`, or the largest,
 * as in `rt_fifo` and `rt_rr` with rt_priority=1. Between threads that were given
 * priorities.
 */
#define UT_MUTEX_INHERIT_SMALLEST 0x1
#define UT_MUTEX_INHERIT_LARGEST 0x2
#define UT_MUTEX_INIT_INHERIT(which) { { 0 }, (which), 0, { 0, 0 }, 0, 0, 0 }

/*
 * lock: may switch. Return: 0; -EDEADLK: the caller owns it; -EOWNERDEAD: the
 * caller owns it now, but its last owner ended without letting it go; -ETIMEDOUT.
 * trylock: Return: 0; -EBUSY; -EOWNERDEAD.
 * unlock: may switch. Return: 0; -EPERM: the caller does not own it. It belongs to
 * the first waiter, if there is one, before that thread runs.
 */
int ut_mutex_lock(ut_mutex *mutex);
int ut_mutex_trylock(ut_mutex *mutex);
int ut_mutex_unlock(ut_mutex *mutex);

typedef struct {
	struct {
		uint32_t is_held;
	} lock_;
	struct ut_waiters_ waiters_;
} ut_cond;

#define UT_COND_INIT { { 0 }, { 0, 0 } }

/* Return: 0; -EPERM: @mutex is not the caller's; -ECANCELED; -ETIMEDOUT. */
int ut_cond_wait(ut_cond *cond, ut_mutex *mutex);
int ut_cond_wait_until(ut_cond *cond, ut_mutex *mutex, uint64_t until_ns);
int ut_cond_signal(ut_cond *cond);
int ut_cond_broadcast(ut_cond *cond);

typedef struct {
	struct {
		uint32_t is_held;
	} lock_;
	uint32_t count_;
	struct ut_waiters_ waiters_;
} ut_sem;

#define UT_SEM_INIT(count) { { 0 }, (count), { 0, 0 } }

/* wait: Return: 0; -ECANCELED; -ETIMEDOUT. trywait: 0; -EAGAIN.
 * post: Return: 0; -EOVERFLOW. */
int ut_sem_wait(ut_sem *sem);
int ut_sem_wait_until(ut_sem *sem, uint64_t until_ns);
int ut_sem_trywait(ut_sem *sem);
int ut_sem_post(ut_sem *sem);

typedef struct {
	struct {
		uint32_t is_held;
	} lock_;
	uint32_t nr_parties_;
	uint32_t nr_here_;
	struct ut_waiters_ waiters_;
} ut_barrier;

#define UT_BARRIER_INIT(parties) { { 0 }, (parties), 0, { 0, 0 } }

/* Return: 1 to the last that came, 0 to the others; -EINVAL: for 0 parties;
 * -ECANCELED, -ETIMEDOUT: the caller does not count as having come. */
int ut_barrier_wait(ut_barrier *barrier);

typedef struct {
	struct {
		uint32_t is_held;
	} lock_;
	int32_t nr_owners_; /* -1: a writer */
	struct ut_waiters_ waiters_;
} ut_rwlock;

#define UT_RWLOCK_INIT { { 0 }, 0, { 0, 0 } }

/*
 * Many readers, or one writer. A reader waits for the writers that came before it, also
 * a thread that reads already: it must not lock it once more. rdlock, wrlock: may
 * switch; no cancellation points. Return: 0; -ETIMEDOUT; try: -EBUSY. unlock: may
 * switch. Return: 0; -EPERM: no thread owns it.
 */
int ut_rwlock_rdlock(ut_rwlock *lock);
int ut_rwlock_wrlock(ut_rwlock *lock);
int ut_rwlock_tryrdlock(ut_rwlock *lock);
int ut_rwlock_trywrlock(ut_rwlock *lock);
int ut_rwlock_unlock(ut_rwlock *lock);

typedef struct {
	uint64_t state_;
} ut_once;

#define UT_ONCE_INIT { 0 }

/* Call @fn, unless that has been done; if another thread is at it, wait until it has.
 * Kernel threads outside may call it, too; no cancellation point. May switch. Return:
 * 0: it has been called; -EDEADLK: by @fn itself; -EPERM: preemption is disabled. */
int ut_once_call(ut_once *once, void (*fn)(void *arg), void *arg);

/* ---- ut_channel(3): channels ---------------------------------------------- */

/* Messages of one size, in order; with room for @capacity, or for none: then a
 * sender waits until a thread has received. */
typedef struct ut_chan ut_chan;

/* Return: 0; -EINVAL: no bytes, or too many; -ENOMEM. */
int ut_chan_create(ut_chan **chan, size_t message_bytes, size_t capacity);

/* Return: 0; -EPIPE: it is closed; -ECANCELED; -ETIMEDOUT; try: -EAGAIN. */
int ut_chan_send(ut_chan *chan, const void *message);
int ut_chan_try_send(ut_chan *chan, const void *message);

/* Return: 0; -EPIPE: it is closed, and empty; -ECANCELED; -ETIMEDOUT; try: -EAGAIN. */
int ut_chan_recv(ut_chan *chan, void *message);
int ut_chan_try_recv(ut_chan *chan, void *message);

/* What ut_select() is to do, if it can: to send on @chan, or to receive. */
struct ut_case {
	ut_chan *chan;	  /* NULL: never */
	const void *send; /* the message; NULL: receive */
	void *recv;	  /* where to put one; NULL: send */
	int result;	  /* of the chosen one: 0; -EPIPE: closed (and empty) */
	uint32_t arrival_, order_;
	void *selection_;
	struct ut_case *next_, *prev_;
};

#define UT_CASE_SEND(chan, message) { (chan), (message), 0, 0, 0, 0, 0, 0, 0 }
#define UT_CASE_RECV(chan, message) { (chan), 0, (message), 0, 0, 0, 0, 0, 0 }

/**
 * ut_select - send or receive on one of several channels: the first that can
 * @cases: what to do on which; the caller's alone until the call returns
 * @nr: how many
 * @until_ns: a time of ut_now_ns(); UT_NEVER; 0: do not wait
 *
 * If several can, each is as likely. One that is closed can, with result -EPIPE; nothing
 * was done for the cases that are not returned. May switch.
 *
 * Return: the number of the case in @cases; -ETIMEDOUT: none could; -ECANCELED; -EINVAL: a
 * case with both messages or none; -ENOMEM.
 */
int ut_select(struct ut_case *cases, int nr, uint64_t until_ns);

/* No thread can send any more. Return: 0; -EPIPE: it was closed. */
int ut_chan_close(ut_chan *chan);

/* Return: 0; -EBUSY: a thread waits for it. */
int ut_chan_destroy(ut_chan *chan);

/* ---- ut_key(3): values of a thread ---------------------------------------- */

/*
 * errno's value is the thread's own, wherever it runs; its address is that of the
 * kernel thread. A C library's declaration lets compilers keep the address over calls,
 * so with this header errno asks for it each time. A file that includes only
 * <errno.h> reads errno before the next call that may switch.
 */
int *ut_errno(void);
#undef errno
#define errno (*ut_errno())

typedef uint32_t ut_key;

/* @end: called with a thread's value, unless that is NULL, when the thread ends.
 * A new key's values are NULL; those of a deleted one are forgotten, without @end.
 * create: Return: 0; -EAGAIN: UT_KEYS_MAX are in use. delete: 0; -EINVAL: no key.
 * set: 0; -EINVAL: no key; -ENOMEM. */
#define UT_KEYS_MAX 128
int ut_key_create(ut_key *key, void (*end)(void *value));
int ut_key_delete(ut_key key);
int ut_setspecific(ut_key key, void *value);
void *ut_getspecific(ut_key key);

/* ---- ut_io(3): calls that block the thread, and not its kernel thread ----- */

/*
 * ut_poll() waits until @fd is ready for @events of poll(2), or in error: Return: what it
 * is ready for, not 0; -ETIMEDOUT; -ECANCELED; -EBADF; -EMFILE: it is 2^20 or more. With @until_ns 0 it only looks.
 * The others are as the system calls of these names, with -errno for errors; but no signal ends one
 * with -EINTR. Whether SIGPIPE comes beside -EPIPE depends on which thread does the
 * work: ignore it. MSG_WAITALL has no effect. A cancelled ut_write(), or one whose time is over, that has written
 * something returns how much.
 * close() does not end a call that waits: shut the socket down, or cancel the waiter.
 */
int ut_poll(int fd, short events, uint64_t until_ns);
ssize_t ut_read(int fd, void *buffer, size_t bytes);
ssize_t ut_write(int fd, const void *buffer, size_t bytes);
ssize_t ut_pread(int fd, void *buffer, size_t bytes, off_t at);
ssize_t ut_pwrite(int fd, const void *buffer, size_t bytes, off_t at);
int ut_fsync(int fd);
ssize_t ut_readv(int fd, const struct iovec *parts, int nr);
ssize_t ut_writev(int fd, const struct iovec *parts, int nr);
ssize_t ut_recvfrom(int fd, void *buffer, size_t bytes, int flags, struct sockaddr *address,
		    socklen_t *address_bytes);
ssize_t ut_sendto(int fd, const void *buffer, size_t bytes, int flags,
		  const struct sockaddr *address, socklen_t address_bytes);
ssize_t ut_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t ut_sendmsg(int fd, const struct msghdr *message, int flags);
int ut_accept(int fd, struct sockaddr *address, socklen_t *address_bytes, int flags);
int ut_connect(int fd, const struct sockaddr *address, socklen_t address_bytes);

/*
 * Have a kernel thread outside the machine call @fn, and wait for its result: for
 * any other call that may block, getaddrinfo() for one.
 * Return: what @fn returned; -EAGAIN when no kernel thread can be made.
 */
int ut_outside(int (*fn)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
