/* SPDX-License-Identifier: MIT */
/*
 * core.h - sched_ext's semantics, for any host: queues and CPUs. docs/semantics.md
 * states the rules (S1, S2, ...) that the code cites.
 *
 * The core is one translation unit: build.c includes its chapters in the order in
 * which they can be read. What is declared here and has the prefix sl_ is for hosts
 * and policies; what one chapter needs of a later one is declared in build.c.
 *
 * Locks. Each CPU has one, each user and the global queue has one. A CPU's
 * local queue and its running task are under the CPU's lock; a task on a user
 * queue is under that queue's. Order: CPU, then queue, and never two CPUs at
 * once: what a CPU wants from another CPU's local queue waits on its `moves`
 * list until its own lock is dropped. That rule alone excludes deadlock; it is
 * also why load.c may take all CPUs' locks when a policy begins. The table of
 * tasks has a lock per CPU too, taken before any of these and never while one is held:
 * a task comes or goes under that of the CPU that it comes or goes on, and all of them
 * together (lock_tasks()) keep the set of tasks as it is while all are visited.
 * `tables_lock` is for what seldom changes, the tables of queues, masks and maps; inside
 * it only one of their elements is locked.
 *
 * What is read without the lock that protects it is read and written with
 * READ_ONCE() and WRITE_ONCE(), or smp_load_acquire() and smp_store_release(); tests/core proves that
 * nothing is forgotten.
 *
 * Stacks. A task becomes visible to other CPUs when it is queued, which may be
 * before its host has left its stack. So the CPU that picks it waits for `on_cpu`
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
#include <schedlab/sched.h>
#include <scx/errno.h>
#include <scx/native.h>
#include <scx/attrs.h>

#define SL_DISPATCH_BATCH_MAX 512
#define SL_DISPATCH_LOOPS_MAX 32
#define SL_REENQUEUES_MAX 256
#define SL_DSQS_MAX 16384
#define SL_DSQ_BUCKETS 1024
#define SL_CGROUPS_MAX 256
#define SL_CGROUP_NAME_LEN 32

struct sl_dsq {
	u64 id;		/* SCX_DSQ_* or the policy's; changes while dead */
	sl_lock_t lock; /* unused by local queues: the CPU's lock serves */
	bool is_local;
	/* lock protects: */
	bool is_dead;
	u32 nr;		       /* length; read without lock as a hint */
	struct sl_task *first; /* next to run; read without lock as a hint */
	struct sl_task *last;
	struct sl_task *root;		    /* tree by vtime; NULL while FIFO */
	u64 seq;			    /* insertions so far */
	struct bpf_iter_scx_dsq *iterators; /* iterators standing on a task */

	s32 cpu;	     /* whose local queue; -1: none's */
	struct sl_dsq *next; /* in its bucket, or free; tables_lock protects it */
};

/*
 * Of cpuset.c: masks that tasks share, as long as the core stays. A block is a page. The first
 * comes with the core: a machine with up to five CPUs takes no memory for them later.
 */
#define SL_MASKS_PER_BLOCK 31
struct sl_masks {
	struct sl_masks *next;
	u32 nr;
	struct cpumask cpus[SL_MASKS_PER_BLOCK];
};

struct sl_cgroup {
	struct cgroup cgroup; /* first, for cgroup_of() */
	struct kernfs_node kn;
	struct css_set set; /* of the tasks in it */
	struct cpuset cpuset;
	struct sl_cgroup *parent; /* NULL: the root */
	struct scx_cgroup_init_args args;
	u32 idx;	    /* place in sl_core.cgroups */
	bool exists;	    /* atomic */
	bool is_known;	    /* ops.cgroup_init() was called */
	bool gives_cpusets; /* to its children: "+cpuset" in its cgroup.subtree_control */
	char name[SL_CGROUP_NAME_LEN];
};

/* Idle CPUs, of the machine or of one node (S51); atomic bits. */
struct sl_idle {
	struct cpumask cpus ____cacheline_aligned;
	struct cpumask smt; /* CPUs whose whole core is idle */
};

enum sl_idle_tracking {
	SL_IDLE_OWN, /* the policy may not ask for them; as SL_IDLE_GLOBAL for the next one */
	SL_IDLE_GLOBAL,
	SL_IDLE_PER_NODE,
};

/*
 * What the policy is doing on a CPU: which operation it is in, or a timer. This
 * also says which helpers it may use, as Linux's verifier enforces. The first have
 * a bit in sl_core.asked; the others are called bypassed or not, as it comes or goes.
 */
#define SL_OPERATIONS(X)						\
	X(select_cpu) X(enqueue) X(dequeue) X(dispatch) X(tick)		\
	X(runnable) X(running) X(stopping) X(quiescent) X(yield)	\
	X(set_weight) X(set_cpumask) X(update_idle)			\
	X(cpu_acquire) X(cpu_release) X(cpu_online) X(cpu_offline)	\
	X(cgroup_init) X(cgroup_exit) X(cgroup_prep_move)		\
	X(cgroup_move) X(cgroup_set_weight) X(cgroup_set_bandwidth)
#define SL_CALLBACKS(X)							\
	SL_OPERATIONS(X)						\
	X(init_task) X(exit_task) X(enable) X(disable) X(init) X(exit)	\
	X(dump) X(dump_cpu) X(dump_task) X(timer)
enum sl_callback {
	SL_IN_NOTHING,
#define SL_CALLBACK(name) SL_IN_##name,
	SL_CALLBACKS(SL_CALLBACK)
#undef SL_CALLBACK
};
_Static_assert(SL_IN_init_task < 31, "those that have a bit are in a word, beside SL_FAILED");

struct sl_insert {
	struct sl_task *task;
	u64 ops_seq; /* which turn of the task is meant */
	u64 dsq_id;
	u64 enq_flags;
};

/* What every switch touches comes first, so that it is in few cache lines. */
struct sl_cpu {
	sl_lock_t lock;
	/* lock protects: */
	bool must_quiesce;    /* another CPU waits for its next sl_schedule() */
	struct sl_task *curr; /* NULL: idle */
	bool is_scheduling;   /* between the start of a pick and its end */
	bool is_taken;	      /* a higher class has it, see sl_cpu_take(); */
	bool is_released;     /* it, or the one before it, found a task running */
	bool is_offline;      /* to tasks; see hotplug.c */
	bool has_higher;      /* a higher class runs there */
	bool is_open;	      /* it is choosing, or goes idle: what is put into its queue runs */
	bool must_reenqueue_immed; /* it is in one of the lists: */
	struct sl_cpu *next_reenqueue;

	/* This CPU alone touches: */
	bool holds_lock;	      /* its own, and so must not take another's */
	bool in_interrupt;	      /* not the running task's doing (S39) */
	bool has_deferred;	      /* something below waits for flush() */
	bool must_reenqueue;	      /* its local queue; see reenqueue_local() */
	bool must_reenqueue_released; /* the same, once ops.cpu_release() returns */
	struct sl_cpu *reenqueues; /* CPUs of which tasks with IMMED have to go (S50), linked by: */
	u32 nr_reenqueues;	   /* in this flush() */
	enum sl_callback callback; /* the one running; read by dumps */
	s32 id;
	struct sl_task *callback_task;
	const struct bpf_timer *timer;	       /* whose callback runs */
	const struct bpf_spin_lock *spin_lock; /* that the callback holds */
	enum sl_callback spin_lock_taken_in;
	const u32 *wanted_lock;	     /* a policy's; atomic: others look for a deadlock */
	struct sl_task *direct_task; /* select_cpu or enqueue may place it, once */
	struct sl_dsq *last_dsq;     /* what find_dsq() last found */
	u32 nr_inserts;
	u32 nr_moved; /* into local queues by this dispatch */

	u64 nr_switches;     /* lock protects writing */
	struct sl_dsq local; /* lock protects it */

	sl_lock_t tasks_lock; /* see "Locks" above */

	/* This CPU alone touches: */
	struct sl_task *moves; /* see "Locks" above; linked by `next` */
	struct sl_task *moves_last;
	struct sl_task *migrate; /* ran here, may no longer: to be re-queued */
	u16 *kicks;		 /* CPUs to kick once the lock is dropped */
	u8 *kick_flags;		 /* by CPU: SCX_KICK_* | SL_KICK_LISTED */
	u32 nr_kicks;
	s32 idle_cursor; /* where the last idle CPU was found */

	/* Accounting, ns; written under lock: */
	u64 idle_since_ns;
	u64 idle_ns;
	u64 offline_since_ns;
	u64 offline_ns;
	struct scx_event_stats events; /* this CPU alone counts; atomic, word by word */
	struct sl_task idle;	       /* current, while nothing runs; never queued */
	struct sl_insert inserts[SL_DISPATCH_BATCH_MAX];
} __attribute__((aligned(64)));

struct sl_core {
	u32 nr_cpus;
	u32 tasks_max;
	struct sl_cpu *cpus; /* [nr_cpus] */
	u16 *smt, *llc, *node;
	struct cpumask possible;
	struct cpumask online;	  /* as policies see it; see hotplug.c */
	struct cpumask *smt_mask; /* [nr_cpus] siblings, itself included */
	struct cpumask *llc_mask;
	struct cpumask *node_mask;
	u32 nr_nodes;
	u64 ticks_per_1024ns; /* times 2^34 */
	bool has_smt, has_llcs, has_nodes;

	/*
	 * Which of `ops` are asked now: a bit per enum sl_callback, and SL_IN_NOTHING's
	 * for the policy itself. None of them while bypassed. One word, so that a
	 * callback that was skipped is followed by none that depends on it.
	 */
	u32 asked;
	struct sched_ext_ops ops; /* a copy; constant while loaded */
	bool is_loaded;
	u8 idle_tracking;  /* enum sl_idle_tracking */
	bool has_detail;   /* host: write ENQUEUE records */
	bool uses_immed;   /* atomic: a task was ever inserted so (S50) */
	s32 user_half_pid; /* host: see struct sl_config */
	u32 dispatch_batch;

	struct sl_dsq global;
	struct sl_dsq no_dsq;  /* dead: sl_cpu.last_dsq before there is one */
	sl_lock_t tables_lock; /* of queues and masks, below, and of maps */
	u32 nr_dsqs;
	struct sl_dsq *free_dsqs; /* destroyed; another CPU may look at one */

	/* Every switch reads this; only a CPU that goes idle, or ends that, writes it. */
	struct sl_idle idle;
	struct sl_idle *idle_of_node; /* [nr_nodes]; instead of it, with SL_IDLE_PER_NODE */

	/* All tasks_locks protect the table, one is enough for a task's own slot: */
	struct sl_task **tasks ____cacheline_aligned; /* [tasks_max]; task_in_slot() */
	u64 nr_tasks_end; /* one past the last slot that was used; atomic */

	const struct sl_policy *policy ____cacheline_aligned;

	struct sl_cgroup *cgroups; /* [SL_CGROUPS_MAX]; see cgroup.c */
	struct sl_masks *masks;	   /* see cpuset.c; tables_lock protects it */
	u32 nr_cgroups;		   /* that were ever made; atomic */

	u64 nr_dumps;	  /* atomic: in progress */
	u64 is_changing;  /* atomic: a policy comes or goes */
	u64 exit_claimed; /* atomic: the exit has its reporter */
	u64 exit_ready;	  /* atomic: exit_info is complete */
	u64 exit_done;	  /* atomic: the hand-over has happened */
	u64 watchdog_ns;  /* atomic: when it looks next; on the policy's clock */
	u64 hotplug_seq;  /* CPUs that came or went */
	s32 exit_pid;
	struct scx_exit_info exit_info;
	char exit_msg[SCX_EXIT_MSG_LEN];

	struct sl_dsq *dsqs[SL_DSQ_BUCKETS]; /* by id; tables_lock, read without */
};

/* Nothing from here on is for other objects: no way around a global table. */
#pragma GCC visibility push(hidden)
extern struct sl_core sl_core;

/* Is the policy asked, and has it this operation? Linux's SCX_HAS_OP(). */
#define SL_HAS_OP(name) SL_IS_ASKED(READ_ONCE(sl_core.asked), name)
#define SL_IS_ASKED(asked, name) ((asked) & (1U << SL_IN_##name))
/* The built-in FIFO decides, as of a policy without operations. */
#define sl_is_bypassed() (!SL_HAS_OP(NOTHING))

#include "../bpf/helpers.h"

/* S43. Another CPU may be adding up. */
#define sl_event(cpu, name)						\
	WRITE_ONCE((cpu)->events.SCX_EV_##name,				\
		   READ_ONCE((cpu)->events.SCX_EV_##name) + 1)

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

#define for_each_cpu(cpu)						\
	for (struct sl_cpu *cpu = sl_core.cpus; cpu < sl_core.cpus + sl_core.nr_cpus; cpu++)

/* The attached task in a slot below nr_tasks_end, or NULL. */
static inline struct sl_task *task_in_slot(u32 idx)
{
	struct sl_task *t = smp_load_acquire(&sl_core.tasks[idx]);

	return t && smp_load_acquire(&t->is_attached) ? t : NULL;
}

#define for_each_task(t)						\
	for (u32 ___i = 0; ___i < READ_ONCE(sl_core.nr_tasks_end); ___i++) \
		if (((t) = task_in_slot(___i)))

/* @bytes: whole words. Another CPU may be reading any member of @to. */
static inline void copy_words(void *to, const void *from, u32 bytes)
{
	typedef u64 __attribute__((may_alias)) word;

	SL_ASSERT(bytes % sizeof(word) == 0);
#pragma GCC unroll 32
	for (u32 i = 0; i < bytes / sizeof(word); i++)
		WRITE_ONCE(((word *)to)[i], ((const word *)from)[i]);
}

static inline bool sl_time_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline bool sl_mask_test(const struct cpumask *mask, u32 cpu)
{
	return (__atomic_load_n(&mask->bits[cpu / 64], __ATOMIC_RELAXED) >> (cpu % 64)) & 1;
}

static inline void sl_set_slice(struct sl_task *t, u64 slice_ns)
{
	WRITE_ONCE(t->p.scx.slice, slice_ns);
}

static inline u64 policy_now_ns(void)
{
	return sl_host_policy_now_ns() + SL_UPTIME_NS;
}

/* A reading of the host's clock as the policy has it. */
static inline u64 policy_time_ns(u64 now_ns)
{
	return sl_host_policy_time_ns(now_ns) + SL_UPTIME_NS;
}

/* Since when a task waits. A policy has it in ticks, nearly those of bpf_jiffies64(), without a division. */
static inline void set_runnable_at(struct sl_task *t, u64 now_ns)
{
	WRITE_ONCE(t->runnable_at_ns, now_ns);
	WRITE_ONCE(t->p.scx.runnable_at,
		   (unsigned long)((policy_time_ns(now_ns) >> 10) * sl_core.ticks_per_1024ns >> 34));
}

/* May @t run on @cpu: its affinity, unless a disabled migration pins it. */
sl_inline bool sl_may_run_on(const struct sl_task *t, s32 cpu)
{
	const struct cpumask *mask = READ_ONCE(t->p.cpus_ptr);

	if (unlikely(READ_ONCE(t->p.migration_disabled)))
		return READ_ONCE(t->cpu) == cpu;
	return likely(mask == &sl_core.possible) || sl_mask_test(mask, (u32)cpu);
}

static inline void set_mask(struct sl_task *t, const struct cpumask *mask, u32 nr)
{
	smp_store_release(&t->p.cpus_ptr, mask);
	WRITE_ONCE(t->p.nr_cpus_allowed, (s32)nr);
}

/* May it be put there: sl_may_run_on(), and the CPU is online. */
sl_inline bool is_cpu_allowed(const struct sl_task *t, s32 cpu)
{
	return sl_may_run_on(t, cpu) && likely(!READ_ONCE(sl_core.cpus[cpu].is_offline));
}

/*
 * Call an operation of the policy on @cpu, this one, about task @subject or NULL.
 * SL_CALL_OP() does so where the policy has the operation and is not bypassed, and
 * SL_CALL_LOADED() also where it is bypassed, since it comes or goes. Where
 * there is a default for it, the caller asks SL_HAS_OP() once, and if it is there
 * gives SL_OP() to SL_CALL() or, for an answer, to SL_CALL_RET(). Only ops.dequeue() is
 * called from within another operation; end_custody() keeps what it finds.
 */
#define SL_OP(name) READ_ONCE(sl_core.ops.name)
#define SL_ENTER(cpu, name, subject)					\
	(WRITE_ONCE((cpu)->callback, SL_IN_##name),			\
	 (cpu)->callback_task = (subject))
#define SL_LEAVE(cpu) WRITE_ONCE((cpu)->callback, SL_IN_NOTHING)
#define SL_CALL_RET(cpu, op, name, subject, ...)			\
	({								\
		SL_ENTER(cpu, name, subject);				\
		sl_host_callback_begins(#name, subject, ##__VA_ARGS__); \
		__auto_type ___ret = (op)(__VA_ARGS__);			\
		sl_host_callback_returns(#name, ___ret);		\
		SL_LEAVE(cpu);						\
		___ret;							\
	})
#define SL_CALL(cpu, op, name, subject, ...)				\
	do {								\
		SL_ENTER(cpu, name, subject);				\
		sl_host_callback_begins(#name, subject, ##__VA_ARGS__); \
		(op)(__VA_ARGS__);					\
		sl_host_callback_ends(#name);				\
		SL_LEAVE(cpu);						\
	} while (0)
#define SL_CALL_OP(cpu, name, ...)					\
	do {								\
		if (SL_HAS_OP(name))					\
			SL_CALL(cpu, SL_OP(name), name, __VA_ARGS__);	\
	} while (0)
#define SL_CALL_LOADED(cpu, name, ...)					\
	do {								\
		if (SL_OP(name))					\
			SL_CALL(cpu, SL_OP(name), name, __VA_ARGS__);	\
	} while (0)
/* Return: what an operation returns that may fail; 0 where it is not there. */
#define SL_CALL_ERR(cpu, has_op, name, ...)				\
	((has_op) ? SL_CALL_RET(cpu, SL_OP(name), name, __VA_ARGS__) : 0)

sl_cold void sl_policy_error(enum scx_exit_kind kind, const struct sl_task *t, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define scx_error(t, ...) sl_policy_error(SCX_EXIT_ERROR, t, __VA_ARGS__)
const char *sl_callback_name(enum sl_callback callback);

#pragma GCC visibility pop

#endif
