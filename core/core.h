/* SPDX-License-Identifier: MIT */
/*
 * core.h - sched_ext's semantics, for any host: queues, CPUs, and what a host
 * calls. docs/semantics.md states the rules (S1, S2, ...) that the code cites.
 *
 * Locks. Each CPU has one, each user and the global queue has one. A CPU's
 * local queue and its running task are under the CPU's lock; a task on a user
 * queue is under that queue's. Order: CPU, then queue, and never two CPUs at
 * once: what a CPU wants from another CPU's local queue waits on its `moves`
 * list until its own lock is dropped. That rule alone excludes deadlock; it is
 * also why load.c may take all CPUs' locks when a policy begins. The table of
 * tasks has a lock too, taken before any of these and never while one is held: it
 * keeps tasks from coming and going while somebody looks at all of them.
 *
 * What is read without the lock that protects it is read and written with
 * sl_peek() and sl_poke(), or sl_load() and sl_store(); tests/core proves that
 * nothing is forgotten.
 *
 * Stacks. A task becomes visible to other CPUs when it is queued, which may be
 * before its host has left its stack. So whoever picks it waits for `on_cpu`
 * to fall. A CPU chooses its next task before it queues its previous one, so
 * these waits cannot form a circle (docs/design/0002).
 *
 * Read next: schedule.c, the heart; then wake.c and dispatch.c.
 */
#ifndef SL_CORE_H
#define SL_CORE_H

#include <schedlab/host.h>
#include <scx/native.h>
#include <scx/attrs.h>

#define SL_DISPATCH_BATCH_MAX 64
#define SL_DISPATCH_LOOPS_MAX 32
#define SL_DSQS_MAX 16384
#define SL_MAPS_MAX 64
#define SL_TIMERS_MAX 256
#define SL_MASK_WORDS (SCX_CPUS_MAX / 64)

struct sl_dsq {
	u64		id;	/* SCX_DSQ_* or the policy's; changes while dead */
	bool		is_local;
	s32		cpu;	/* whose local queue; -1: none's */
	sl_lock_t	lock;	/* unused by local queues: the CPU's lock serves */
	/* lock protects: */
	struct sl_task	*first;	/* next to run; read without lock as a hint */
	struct sl_task	*last;
	struct sl_task	*root;	/* tree by vtime; NULL while FIFO */
	u32		nr;	/* length; read without lock as a hint */
	u64		seq;	/* insertions so far */
	struct bpf_iter_scx_dsq *walks;	/* iterators standing on a task */
	bool		is_dead;
	struct sl_dsq	*next_free;	/* dsqs_lock protects it */
};

/* Which helpers a callback may use, as Linux's verifier enforces. */
enum sl_context {
	SL_CTX_NONE,		/* a callback that may not insert */
	SL_CTX_UNLOCKED,	/* init, init_task, timers: may create queues */
	SL_CTX_SELECT_CPU,
	SL_CTX_ENQUEUE,
	SL_CTX_DISPATCH,
};

struct sl_insert {
	struct sl_task	*task;
	u64		ops_seq;	/* which turn of the task is meant */
	u64		dsq_id;
	u64		enq_flags;
};

struct sl_cpu {
	sl_lock_t	lock;
	/* lock protects: */
	struct sl_dsq	local;
	struct sl_task	*curr;		/* NULL: idle */
	bool		is_scheduling;	/* between the start of a pick and its end */
	bool		must_pass;	/* somebody waits for its next sl_schedule() */

	/* This CPU alone touches: */
	s32		id;
	bool		holds_lock;	/* its own, and so must not take another's */
	bool		in_interrupt;	/* not the running task's doing (S39) */
	struct sl_task	idle;		/* current, while nothing runs; never queued */
	enum sl_context	context;
	const char	*callback;	/* name of the one running; read by dumps */
	struct sl_task	*callback_task;
	struct sl_task	*direct_task;	/* being placed by select_cpu or enqueue */
	struct sl_insert inserts[SL_DISPATCH_BATCH_MAX];
	u32		nr_inserts;
	u32		nr_moved;	/* into local queues by this dispatch */
	struct sl_task	*moves;		/* see "Locks" above; linked by `next` */
	struct sl_task	*moves_last;
	struct sl_task	*migrate;	/* ran here, may no longer: to be re-queued */
	u16		*kicks;		/* CPUs to kick once the lock is dropped */
	u8		*kick_flags;	/* by CPU: SCX_KICK_* | SL_KICK_LISTED */
	u32		nr_kicks;
	s32		idle_cursor;	/* where the last idle CPU was found */
	struct sl_dsq	*last_dsq;	/* what sl_dsq_find() last found */
	u64		idle_seen;	/* sl_core.idle_seq before the policy looked */
	bool		must_look;	/* it has shown that it is idle, not looked since */

	/* Read by all: */
	u64		idle_seq;	/* of its last showing; ~0: just now */

	/* Accounting, ns; written under lock: */
	u64		nr_switches;
	u64		idle_since_ns;
	u64		idle_ns;
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

	struct sched_ext_ops ops;	/* a copy; constant while loaded */
	bool		is_loaded;
	bool		bypass;		/* built-in FIFO; the policy is not asked */
	bool		builtin_idle;	/* the policy may ask for the idle masks */
	bool		has_detail;	/* host: write ENQUEUE records */
	u32		dispatch_batch;

	struct sl_dsq	global;
	sl_lock_t	dsqs_lock;	/* protects the table below */
	struct sl_dsq	**dsqs;		/* open addressing by id; read without lock */
	u32		nr_dsqs;
	struct sl_dsq	*free_dsqs;	/* destroyed; another CPU may look at one */

	struct cpumask	idle;		/* atomic bits */
	struct cpumask	idle_smt;	/* CPUs whose whole core is idle */
	u64		idle_seq;	/* atomic: how often a CPU showed that it is idle */

	sl_lock_t	tasks_lock;	/* protects the table */
	struct sl_task	**tasks;	/* [tasks_max], holes are NULL */
	u32		nr_tasks_end;	/* one past the last used slot */
	u32		free_hint;

	sl_lock_t	maps_lock;	/* outside callbacks, protects these: */
	struct sl_map	*maps;
	u32		nr_maps;
	struct sl_map	*attr_map;	/* task_attrs of the policy, or NULL */
	const struct sl_policy *policy;

	struct sl_timer	*timers;
	sl_lock_t	timers_lock;

	u64		nr_dumps;	/* atomic: in progress */
	u64		is_changing;	/* atomic: a policy comes or goes */
	u64		exit_claimed;	/* atomic: who reports the exit */
	u64		exit_ready;	/* atomic: exit_info is complete */
	u64		exit_done;	/* atomic: the hand-over has happened */
	s32		exit_pid;
	struct scx_exit_info exit_info;
	char		exit_msg[SCX_EXIT_MSG_LEN];
};

extern struct sl_core sl_core;

/* ---- what a host calls: core.c, schedule.c, wake.c, change.c, policy.c --- */

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
bool sl_task_wake(struct sl_task *t, u64 wake_flags, s32 waker_pid);
void sl_task_prepare_block(struct sl_task *t);
void sl_task_detach(struct sl_task *t);
void sl_task_set_weight(struct sl_task *t, u32 weight);
void sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask);
void sl_task_disable_migration(struct sl_task *t);
void sl_task_enable_migration(struct sl_task *t);
int sl_task_set_attr(struct sl_task *t, u32 key, u64 value);
void sl_attr_set(struct task_attr *attr, u32 key, u64 value);
int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr);

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
void sl_timers_run(void);

/* ---- between the files of the core --------------------------------------- */

static inline struct sl_cpu *sl_this_cpu(void)
{
	return &sl_core.cpus[sl_host_cpu()];
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

/* Atomic where it matters; plain moves on every machine we have. */
#define sl_load(at) __atomic_load_n((at), __ATOMIC_ACQUIRE)
#define sl_store(at, value) __atomic_store_n((at), (value), __ATOMIC_RELEASE)
#define sl_peek(at) __atomic_load_n((at), __ATOMIC_RELAXED)
#define sl_poke(at, value) __atomic_store_n((at), (value), __ATOMIC_RELAXED)

/*
 * A policy may write the slice of any task from any CPU, also that of a task
 * it no longer holds: the last write wins, and a tick mends what went wrong.
 */
static inline u64 sl_slice(const struct sl_task *t)
{
	return sl_peek(&t->p.scx.slice);
}

static inline void sl_set_slice(struct sl_task *t, u64 slice_ns)
{
	sl_poke(&t->p.scx.slice, slice_ns);
}

/* By whoever has claimed @t; others may be trying to. Keeps the count. */
static inline void sl_set_ops_state(struct sl_task *t, enum sl_ops_state state)
{
	sl_store(&t->ops_state,
		 (sl_peek(&t->ops_state) & ~(u64)SL_OPSS_MASK) | state);
}

/* May @t run on @cpu: its affinity, unless a disabled migration pins it. */
static inline bool sl_may_run_on(const struct sl_task *t, s32 cpu)
{
	if (__builtin_expect(sl_peek(&t->p.migration_disabled), 0))
		return sl_peek(&t->cpu) == cpu;
	return sl_mask_test(t->p.cpus_ptr, cpu);
}

/*
 * Call an operation of the policy, where it has one and is not bypassed.
 * SL_HAS_OP is a statement of its own so that the caller can do the default.
 * Only ops.dequeue() is called from within another operation; sl_end_custody()
 * keeps what it finds.
 */
#define SL_HAS_OP(op) \
	(sl_peek(&sl_core.ops.op) && !__builtin_expect(sl_peek(&sl_core.bypass), 0))
#define SL_ENTER(here, ctx, op, subject)				\
	((here)->context = (ctx), sl_poke(&(here)->callback, #op),	\
	 (here)->callback_task = (subject))
#define SL_LEAVE(here)							\
	((here)->context = SL_CTX_NONE, sl_poke(&(here)->callback, NULL))
#define SL_CALL(here, ctx, op, subject, ...)				\
	({								\
		SL_ENTER(here, ctx, op, subject);			\
		__auto_type ___ret = sl_core.ops.op(__VA_ARGS__);	\
		SL_LEAVE(here);						\
		___ret;							\
	})
#define SL_CALL_VOID(here, ctx, op, subject, ...)			\
	do {								\
		SL_ENTER(here, ctx, op, subject);			\
		sl_core.ops.op(__VA_ARGS__);				\
		SL_LEAVE(here);						\
	} while (0)

/* Is @q, whose lock is held, still what was found as @id? */
static inline bool sl_dsq_is(const struct sl_dsq *q, u64 id)
{
	return q->id == id && !q->is_dead;
}

/* dsq.c: one queue. The caller holds what protects it. */
void sl_dsq_init(struct sl_dsq *q, u64 id, s32 cpu);
void sl_dsq_insert(struct sl_dsq *q, struct sl_task *t, bool at_head);
bool sl_dsq_insert_vtime(struct sl_dsq *q, struct sl_task *t, u64 vtime);
void sl_dsq_remove(struct sl_dsq *q, struct sl_task *t);

/* dispatch.c: from the policy to the queues */
u32 sl_dsq_slot(u64 id);
struct sl_dsq *sl_dsq_search(u64 id);
struct sl_dsq *sl_dsq_find(u64 id);
struct sl_dsq *sl_dsq_of(struct sl_task *t, u64 id, struct sl_cpu *local_cpu);
void sl_enqueue(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags);
void sl_insert_local(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags);
bool sl_move_to_local(struct sl_cpu *cpu, struct sl_dsq *q, u64 id);
void sl_flush_inserts(struct sl_cpu *cpu);
void sl_call_dequeue(struct sl_task *t, u64 deq_flags);
/* S22: the policy hears once that a task has left its custody. */
static inline void sl_end_custody(struct sl_task *t, u64 deq_flags)
{
	if (!t->in_custody)
		return;
	t->in_custody = false;
	if (SL_HAS_OP(dequeue))
		sl_call_dequeue(t, deq_flags);
}
void sl_place(struct sl_cpu *here, struct sl_task *t, u64 dsq_id,
	      u64 enq_flags, bool by_vtime);
bool sl_verdict(struct sl_task *t, u64 dsq_id, u64 enq_flags, bool by_vtime);
void sl_defer_move(struct sl_cpu *here, struct sl_task *t);
void sl_flush(struct sl_cpu *here);

/* schedule.c */
void sl_charge(struct sl_task *t, u64 now_ns);

/* wake.c */
struct sl_cpu *sl_lock_cpu_of(struct sl_task *t, u8 *state);
void sl_make_runnable(struct sl_cpu *cpu, struct sl_task *t, u64 enq_flags);
s32 sl_any_allowed_cpu(const struct sl_task *t, s32 preferred);

/* change.c */
bool sl_take_from_queue(struct sl_cpu *cpu, struct sl_task *t);

/* idle.c */
s32 sl_select_cpu_default(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			  const struct cpumask *allowed, u64 flags);
void sl_update_idle(struct sl_cpu *cpu, bool is_idle, bool is_change);
void sl_kick(struct sl_cpu *here, s32 cpu, u64 flags);
void sl_kick_new_idlers(struct sl_cpu *here);
void sl_flush_kicks(struct sl_cpu *here);

/* Before the policy may look for an idle CPU for what is going to be queued. */
static inline void sl_watch_idlers(struct sl_cpu *here)
{
	here->idle_seen = sl_load(&sl_core.idle_seq);
}

/*
 * A task has been queued where other CPUs can find it, or is the policy's. One
 * that has gone idle since sl_watch_idlers() may have missed it, and the policy may
 * have missed that CPU; idle.c says why nothing else is missed.
 */
static inline void sl_check_idlers(struct sl_cpu *here)
{
	if (sl_core.nr_cpus == 1)
		return;
	sl_host_fence();
	if (__builtin_expect(sl_peek(&sl_core.idle_seq) != here->idle_seen, 0))
		sl_kick_new_idlers(here);
}

/* policy.c */
void sl_policy_error(enum scx_exit_kind kind, s32 pid, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void sl_policy_finish_failure(struct sl_cpu *here);
const char *sl_exit_reason(enum scx_exit_kind kind);
void sl_take_back_all(struct sl_cpu *here);
void sl_call_exit(struct sl_cpu *here);
static inline void sl_check_failure(struct sl_cpu *here)
{
	if (__builtin_expect(sl_peek(&sl_core.exit_ready), 0) &&
	    !sl_peek(&sl_core.exit_done))
		sl_policy_finish_failure(here);
}

/* dump.c */
void sl_wait_for_dumps(void);

/* attr.c, maps.c, timer.c */
int sl_task_give_kept_attrs(struct sl_task *t);
int sl_maps_create(const struct sl_policy *policy);
void sl_maps_destroy(void);
void sl_maps_forget_task(struct sl_task *t);
void sl_map_has_timers(struct sl_map *map);
void sl_timers_forget(const void *value, u32 bytes);
struct sl_map *sl_map_of_value(const void *value, u32 *number, void **key,
			       void **element);
void sl_timers_destroy(void);
void sl_spin_locks_reset(void);

/* print.c */
u32 sl_format(char *to, u32 bytes, const char *fmt, __builtin_va_list args);
u32 sl_print_to(char *to, u32 bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
