/* SPDX-License-Identifier: MIT */
/*
 * core.h - sched_ext's semantics, for any host: queues, CPUs, and what a host
 * calls. docs/semantics.md states the rules (S1, S2, ...) that the code cites.
 *
 * The core is one translation unit: build.c includes its chapters in the order in
 * which they can be read. What is declared here and has the prefix sl_ is for hosts
 * and policies; what one chapter needs of a later one is declared at the end.
 *
 * Locks. Each CPU has one, each user and the global queue has one. A CPU's
 * local queue and its running task are under the CPU's lock; a task on a user
 * queue is under that queue's. Order: CPU, then queue, and never two CPUs at
 * once: what a CPU wants from another CPU's local queue waits on its `moves`
 * list until its own lock is dropped. That rule alone excludes deadlock; it is
 * also why load.c may take all CPUs' locks when a policy begins. The table of
 * tasks has a lock per CPU too, taken before any of these and never while one is held:
 * a task comes or goes under that of the CPU that it comes or goes on, and all of them
 * together (sl_lock_tasks()) keep the tasks there are while somebody looks at all of
 * them. Whatever is held, `bypass_lock` may be taken; whoever has it takes no other.
 *
 * What is read without the lock that protects it is read and written with
 * READ_ONCE() and WRITE_ONCE(), or smp_load_acquire() and smp_store_release(); tests/core proves that
 * nothing is forgotten.
 *
 * Stacks. A task becomes visible to other CPUs when it is queued, which may be
 * before its host has left its stack. So whoever picks it waits for `on_cpu`
 * to fall. A CPU chooses its next task before it queues its previous one, so
 * these waits cannot form a circle (docs/design/0002).
 *
 * What BPF gives a policy beside sched_ext, maps and timers for example, is in bpf/.
 *
 * Read next: build.c, the chapters in order; schedule.c is the heart.
 */
#ifndef SL_CORE_H
#define SL_CORE_H

#include <schedlab/host.h>
#include <scx/native.h>
#include <scx/attrs.h>

#define SL_DISPATCH_BATCH_MAX 64
#define SL_DISPATCH_LOOPS_MAX 32
#define SL_DSQS_MAX 16384
#define SL_MASK_WORDS (SCX_CPUS_MAX / 64)
#define ____cacheline_aligned __attribute__((aligned(64)))	/* of the cache */

struct sl_dsq {
	u64		id;	/* SCX_DSQ_* or the policy's; changes while dead */
	sl_lock_t	lock;	/* unused by local queues: the CPU's lock serves */
	bool		is_local;
	/* lock protects: */
	bool		is_dead;
	u32		nr;	/* length; read without lock as a hint */
	struct sl_task	*first;	/* next to run; read without lock as a hint */
	struct sl_task	*last;
	struct sl_task	*root;	/* tree by vtime; NULL while FIFO */
	u64		seq;	/* insertions so far */
	struct bpf_iter_scx_dsq *walks;	/* iterators standing on a task */

	s32		cpu;	/* whose local queue; -1: none's */
	struct sl_dsq	*next_free;	/* dsqs_lock protects it */
};

/*
 * What the policy is doing on a CPU: which operation it is in, or a timer. This
 * also says which helpers it may use, as Linux's verifier enforces.
 */
#define SL_CALLBACKS(X)							\
	X(select_cpu) X(enqueue) X(dequeue) X(dispatch) X(tick)		\
	X(runnable) X(running) X(stopping) X(quiescent) X(yield)	\
	X(set_weight) X(set_cpumask) X(update_idle) X(init_task)	\
	X(exit_task) X(enable) X(disable) X(init) X(exit) X(timer)
enum sl_callback {
	SL_IN_NOTHING,
#define SL_CALLBACK(name) SL_IN_##name,
	SL_CALLBACKS(SL_CALLBACK)
#undef SL_CALLBACK
};

struct sl_insert {
	struct sl_task	*task;
	u64		ops_seq;	/* which turn of the task is meant */
	u64		dsq_id;
	u64		enq_flags;
};

/* What every switch touches comes first, so that it is in few cache lines. */
struct sl_cpu {
	sl_lock_t	lock;
	/* lock protects: */
	bool		must_pass;	/* somebody waits for its next sl_schedule() */
	struct sl_task	*curr;		/* NULL: idle */
	bool		is_scheduling;	/* between the start of a pick and its end */

	/* This CPU alone touches: */
	bool		holds_lock;	/* its own, and so must not take another's */
	bool		must_look;	/* it has shown that it is idle, not looked since */
	bool		in_interrupt;	/* not the running task's doing (S39) */
	bool		has_deferred;	/* moves, migrate or kicks wait for flush() */
	enum sl_callback callback;	/* the one running; read by dumps */
	s32		id;
	struct sl_task	*callback_task;
	const struct bpf_spin_lock *spin_lock;	/* that the callback holds */
	enum sl_callback spin_lock_taken_in;
	struct sl_task	*direct_task;	/* being placed by select_cpu or enqueue */
	struct sl_dsq	*last_dsq;	/* what find_dsq() last found */
	u64		idle_seen;	/* sl_core.idle_seq before the policy looked */
	u32		nr_inserts;
	u32		nr_moved;	/* into local queues by this dispatch */

	u64		nr_switches;	/* lock protects writing */
	struct sl_dsq	local;		/* lock protects it */

	sl_lock_t	tasks_lock;	/* see "Locks" above */

	/* This CPU alone touches: */
	struct sl_task	*moves;		/* see "Locks" above; linked by `next` */
	struct sl_task	*moves_last;
	struct sl_task	*migrate;	/* ran here, may no longer: to be re-queued */
	u16		*kicks;		/* CPUs to kick once the lock is dropped */
	u8		*kick_flags;	/* by CPU: SCX_KICK_* | SL_KICK_LISTED */
	u32		nr_kicks;
	s32		idle_cursor;	/* where the last idle CPU was found */
	struct sl_insert inserts[SL_DISPATCH_BATCH_MAX];

	u64		idle_seq;	/* of its last showing; ~0: just now; all read it */

	/* Accounting, ns; written under lock: */
	u64		idle_since_ns;
	u64		idle_ns;
	struct sl_task	idle;		/* current, while nothing runs; never queued */
} __attribute__((aligned(64)));

struct sl_config {
	u32 nr_cpus;			/* 1..SCX_CPUS_MAX */
	u32 tasks_max;
	const u16 *smt_of_cpu;		/* group numbers, shape (nr_cpus,); NULL: */
	const u16 *llc_of_cpu;		/* every CPU is its own core, and all share */
	const u16 *node_of_cpu;		/* one cache and one node */
};

struct sl_core {
	u32		nr_cpus;
	u32		tasks_max;
	struct sl_cpu	*cpus;		/* [nr_cpus] */
	u16		*smt, *llc, *node;
	struct cpumask	possible;
	struct cpumask	*smt_mask;	/* [nr_cpus] siblings, itself included */
	struct cpumask	*llc_mask;
	struct cpumask	*node_mask;
	u32		nr_nodes;
	bool		has_smt, has_llcs, has_nodes;

	sl_lock_t	bypass_lock;	/* for changing `live` */
	/*
	 * What is asked now: &ops, or &sl_no_ops while bypassed. One word, so that who
	 * was once not told of something is told of nothing that follows from it.
	 */
	const struct sched_ext_ops *live;
	struct sched_ext_ops ops;	/* a copy; constant while loaded */
	bool		is_loaded;
	bool		builtin_idle;	/* the policy may ask for the idle masks */
	bool		has_detail;	/* host: write ENQUEUE records */
	u32		dispatch_batch;

	struct sl_dsq	global;
	struct sl_dsq	no_dsq;		/* dead: sl_cpu.last_dsq before there is one */
	sl_lock_t	dsqs_lock;	/* protects the table below */
	struct sl_dsq	**dsqs;		/* open addressing by id; read without lock */
	u32		nr_dsqs;
	struct sl_dsq	*free_dsqs;	/* destroyed; another CPU may look at one */

	/* Every switch reads this; only who goes idle, or ends that, writes it. */
	struct cpumask	idle ____cacheline_aligned;	/* atomic bits */
	struct cpumask	idle_smt;	/* CPUs whose whole core is idle */
	u64		idle_seq;	/* atomic: how often a CPU showed that it is idle */

	/* All tasks_locks protect the table, one is enough for a task's own slot: */
	struct sl_task	**tasks ____cacheline_aligned;	/* [tasks_max]; sl_task_in_slot() */
	u32		nr_tasks_end;	/* one past the last used slot; atomic */
	sl_lock_t	slots_lock;	/* for finding a slot; see sl_host_task_slot() */
	u32		free_hint;	/* slots_lock protects it */

	const struct sl_policy *policy ____cacheline_aligned;

	u64		nr_dumps;	/* atomic: in progress */
	u64		is_changing;	/* atomic: a policy comes or goes */
	u64		exit_claimed;	/* atomic: who reports the exit */
	u64		exit_ready;	/* atomic: exit_info is complete */
	u64		exit_done;	/* atomic: the hand-over has happened */
	s32		exit_pid;
	struct scx_exit_info exit_info;
	char		exit_msg[SCX_EXIT_MSG_LEN];
};

/*
 * Nothing from here on is for other objects: no way around a global table. But
 * tests/conformance has policies that do by name what no program can.
 */
#pragma GCC visibility push(hidden)
#define SL_EXPORT __attribute__((visibility("default")))

extern struct sl_core sl_core;
/* Of the built-in FIFO. */
extern const struct sched_ext_ops sl_no_ops;

/* The built-in FIFO decides; the policy, if there is one, is not asked. */
#define sl_is_bypassed() (READ_ONCE(sl_core.live) == &sl_no_ops)

/* ---- what a host calls: tasks.c, schedule.c, wake.c, change.c, policy.c --- */

int sl_core_init(const struct sl_config *config);
void sl_core_exit(void);

/*
 * Changing the policy. At start and end, when no other CPU is in the core:
 * sl_policy_enable(), sl_policy_disable(). While other CPUs are at work, the same
 * two that end in "live": on any CPU, also from a task, in the context of every
 * other call of the core (host.h), and one at a time (a lock of the host's that
 * its tasks sleep on). Nothing has to be stopped; other CPUs are kicked, and each
 * must answer with sl_schedule() whatever the caller holds. So the caller holds no
 * lock that another CPU may spin on. Between the two, tasks run under the
 * built-in FIFO, and the host may set the next policy's data:
 *
 *	sl_policy_disable_live();
 *	... pristine data, knobs ...
 *	err = sl_policy_enable_live(next);
 *
 * No task is lost, and a task keeps its weight and attributes. If it returns an
 * error the built-in FIFO stays, and sl_core.exit_msg may say more.
 */
int sl_policy_enable(const struct sl_policy *policy);
int sl_policy_enable_live(const struct sl_policy *policy);
void sl_policy_disable(void);
void sl_policy_disable_live(void);
u64 sl_watchdog_period_ns(void);
void sl_watchdog(void);
void sl_dump(void);

void sl_task_setup(struct sl_task *t, s32 pid, const char *comm);
int sl_task_attach(struct sl_task *t, bool is_fork);
void sl_task_start(struct sl_task *t, s32 parent_pid);
void sl_task_start_woken(struct sl_task *t, s32 waker_pid);
bool sl_task_wake(struct sl_task *t, u64 wake_flags, s32 waker_pid);
void sl_task_prepare_block(struct sl_task *t);
void sl_task_detach(struct sl_task *t);
SL_EXPORT void sl_task_set_weight(struct sl_task *t, u32 weight);
SL_EXPORT void sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask);
void sl_task_disable_migration(struct sl_task *t);
void sl_task_enable_migration(struct sl_task *t);

enum sl_why {
	SL_WHY_RESCHED,		/* the tick said so, or a kick */
	SL_WHY_YIELD,
	SL_WHY_BLOCK,		/* after sl_task_prepare_block() */
	SL_WHY_EXIT,
};

struct sl_task *sl_schedule(enum sl_why why);
bool sl_must_look_again(void);
void sl_switched(struct sl_task *prev);
bool sl_tick(void);

#include "../bpf/helpers.h"

/* ---- the core and bpf/ ---------------------------------------------------- */

/* A host that has the pointer at hand says so. */
sl_inline struct sl_cpu *sl_this_cpu(void)
{
#ifdef sl_host_core_cpu
	return sl_host_core_cpu();
#else
	return &sl_core.cpus[sl_host_cpu()];
#endif
}

static inline bool sl_time_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline bool sl_mask_test(const struct cpumask *mask, u32 cpu)
{
	return (__atomic_load_n(&mask->bits[cpu / 64], __ATOMIC_RELAXED) >>
		(cpu % 64)) & 1;
}

/* Plain moves on every machine we have. READ_ONCE() and WRITE_ONCE() are in scx/words.h. */
#define smp_load_acquire(at) __atomic_load_n((at), __ATOMIC_ACQUIRE)
#define smp_store_release(at, value) __atomic_store_n((at), (value), __ATOMIC_RELEASE)

/* This CPU will soon ask for another task. Most likely it comes from where the last did. */
sl_inline void sl_expect_schedule(void)
{
	sl_host_prefetch(READ_ONCE(sl_this_cpu()->last_dsq));
}

/*
 * A policy may write the slice of any task from any CPU, also that of a task
 * it no longer holds: the last write wins, and a tick mends what went wrong.
 */
static inline u64 sl_slice(const struct sl_task *t)
{
	return READ_ONCE(t->p.scx.slice);
}

static inline void sl_set_slice(struct sl_task *t, u64 slice_ns)
{
	WRITE_ONCE(t->p.scx.slice, slice_ns);
}

/* May @t run on @cpu: its affinity, unless a disabled migration pins it. */
sl_inline bool sl_may_run_on(const struct sl_task *t, s32 cpu)
{
	const struct cpumask *mask = READ_ONCE(t->p.cpus_ptr);

	if (unlikely(READ_ONCE(t->p.migration_disabled)))
		return READ_ONCE(t->cpu) == cpu;
	return likely(mask == &sl_core.possible) ||
	       sl_mask_test(mask, (u32)cpu);
}

/*
 * Call an operation of the policy on @cpu, this one, about task @subject or NULL.
 * SL_CALL_OP() does so where the policy has the operation and is not bypassed. Where
 * there is a default for it, the caller takes SL_OP() once, and if it is not NULL
 * gives it to SL_CALL() or, for an answer, to SL_CALL_RET(). Only ops.dequeue() is
 * called from within another operation; end_custody() keeps what it finds.
 */
#define SL_OP(name) READ_ONCE(READ_ONCE(sl_core.live)->name)
#define SL_ENTER(cpu, name, subject)					\
	(WRITE_ONCE((cpu)->callback, SL_IN_##name),			\
	 (cpu)->callback_task = (subject))
#define SL_LEAVE(cpu) WRITE_ONCE((cpu)->callback, SL_IN_NOTHING)
#define SL_CALL_RET(cpu, op, name, subject, ...)			\
	({								\
		SL_ENTER(cpu, name, subject);				\
		__auto_type ___ret = (op)(__VA_ARGS__);			\
		SL_LEAVE(cpu);						\
		___ret;							\
	})
#define SL_CALL(cpu, op, name, subject, ...)				\
	do {								\
		SL_ENTER(cpu, name, subject);				\
		(op)(__VA_ARGS__);					\
		SL_LEAVE(cpu);						\
	} while (0)
#define SL_CALL_OP(cpu, name, subject, ...)				\
	do {								\
		__auto_type ___op = SL_OP(name);			\
		if (___op)						\
			SL_CALL(cpu, ___op, name, subject, __VA_ARGS__); \
	} while (0)

sl_cold void sl_policy_error(enum scx_exit_kind kind, s32 pid, const char *fmt,
			     ...) __attribute__((format(printf, 3, 4)));
const char *sl_callback_name(enum sl_callback callback);
void sl_charge(struct sl_task *t, u64 now_ns);

#pragma GCC visibility pop

#endif
