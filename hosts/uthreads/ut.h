/* SPDX-License-Identifier: MIT */
/*
 * ut.h - the thread library's own: kernel threads, user threads, what is where.
 *
 *	lib/: files and sockets, channels, slots       what a program calls
 *	thread.c  sync.c  timer.c
 *	     \       |       |
 *	      sched.c: block, yield, exit  ->  core/ and the policy
 *	     /       |                \
 *	preempt.c   cpu.c: idle loop   context_*.S
 *	 signals     kernel threads     registers
 *
 * Rules that hold everywhere in this folder:
 *
 * - Code that knows which kernel thread it is on runs with the preemption count
 *   above zero. It is exactly one whenever a context is left, so it is one when
 *   another goes on.
 * - After a switch nothing that was known of the kernel thread is true any more:
 *   ut_this_cpu() is asked again.
 * - Locks: an object's (mutex, channel, ...), then whatever the core takes. An
 *   object's lock is never held over a switch.
 *
 * Read next: sched.c.
 */
#ifndef UT_H
#define UT_H

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <schedlab/sched.h>
#include "sanitize.h"

#include <schedlab/uthreads.h>

#pragma GCC visibility push(hidden)

#define UT_GUARD_BYTES 65536	/* below each stack: no smaller frame jumps over it */
#define UT_NOT_IN_HEAP (~0U)	/* ut_thread.heap_idx */

/* Requests to a CPU, from any; it looks when it may be preempted. */
#define UT_PENDING_KICK		0x1	/* sl_schedule() */
#define UT_PENDING_TIMER	0x2	/* something may be due */
#define UT_PENDING_REMOTE	0x4	/* the list `remote` is not empty */
#define UT_PENDING_UNMASK	0x8	/* the kernel thread has signals blocked */

/* How a kick reaches a CPU: struct ut_cpu's doorbell. */
#define UT_BELL_OFF	0	/* runs a thread: send a signal */
#define UT_BELL_AWAKE	1	/* idle, and will look at `pending` */
#define UT_BELL_SPINS	2	/* idle, and looks; another one may play its CPU */
#define UT_BELL_ASLEEP	3	/* idle in the kernel: wake it; the same */
#define UT_BELL_TAKEN	4	/* one of these, and its CPU is just changing */

enum ut_wait {
	UT_WAIT_NONE,
	UT_WAIT_JOIN,
	UT_WAIT_SLEEP,
	UT_WAIT_MUTEX, /* from here to UT_WAIT_WRITE no cancellation points */
	UT_WAIT_ONCE,
	UT_WAIT_READ, /* of a lock of readers and writers */
	UT_WAIT_WRITE,
	UT_WAIT_COND,
	UT_WAIT_SEM,
	UT_WAIT_BARRIER,
	UT_WAIT_SEND,
	UT_WAIT_RECV,
	UT_WAIT_SELECT,
	UT_WAIT_IO,
	UT_WAIT_OBJECT, /* the runner's; `wait_object` is its kind, a text */
	UT_WAIT_ALL,	/* ut_exit(): for all others */
};

/* Threads that wait, in order of arrival; under the lock of what they wait for. */
struct ut_queue {
	struct ut_thread *first, *last;
};

struct ut_stack {
	char *low; /* lowest usable byte; the guard lies below */
	size_t bytes;
};

/* What a thread has under a key. */
struct ut_slot {
	void *value;
	u32 owner; /* of the key's place, when it was set */
};

/*
 * Stacks lie a whole number of pages apart. Began all at the same place in theirs,
 * a thousand of them would want the same few lines of a cache. So they begin lower,
 * by up to this.
 */
#define UT_COLOURS_BYTES 2048

struct request;

struct ut_thread {
	struct sl_task core;  /* first: a core task is a thread as well */
	void *sp;	      /* of its context, while it does not run; NULL before it begins */
	void *eh_globals[2];  /* C++: exceptions it is handling */
	int saved_errno;      /* while it does not run */
	u32 nr_pthread_locks; /* that it holds: it is not stopped */
	bool in_handler;      /* the library's, which returns to it: and restores the mask */
	struct ut_stack stack;
	struct ut_sanitized sanitized;
	ut_fn fn;
	void *arg;
	void *result;
	u32 slot;	/* its place in ut.threads */
	u32 generation; /* which thread of this place */

	/* lock protects: */
	sl_lock_t lock;
	bool is_joinable; /* not detached, not being joined */
	bool has_ended;	  /* and has left its stack */
	struct ut_thread *joiner;

	/* What it waits for, for people and for ut_exit(). */
	u8 wait; /* enum ut_wait */
	const void *wait_object;
	u64 wake_ns;		/* it sleeps until then */
	u64 deadline_ns;	/* no call of its waits longer; UT_NEVER */
	u32 heap_idx;		/* its place among a CPU's sleepers; atomic */
	s32 heap_cpu;		/* whose */
	bool is_cancelled;	/* atomic */
	struct ut_queue *queue; /* of waiters; NULL: taken out; atomic */
	void *message;		/* where to, or from where, while it waits */
	int answer;		/* from the waker that took it out; before, in a channel's */
				/* queue, its number of arrival */
	struct ut_attr attr;	/* what was given to it */
	s32 priority;		/* in effect: given, or inherited */
	ut_mutex *held;		/* its mutexes */
	struct ut_slot *slots;	/* [UT_KEYS_MAX] or NULL */
	struct ut_thread *next; /* on one list: of waiters, free ones, ... */
	struct ut_thread *prev;
} __attribute__((aligned(64)));

/* A kernel thread, which plays a CPU. */
struct ut_kthread {
	struct ut_cpu *cpu; /* that it plays */
	void *idle_sp;
	void **eh_globals; /* C++ runtime; NULL: there is none */
	int *errno_at;
	u64 armed_ns;	    /* the timer's time; UT_NEVER: off */
	u64 armed_floor_ns; /* a turn that is over later ends at a later tick; */
			    /* UT_NEVER: what is due was not looked at */
	u64 late_ns_max;    /* of the timer's signals; atomic */

	pid_t tid;
	clockid_t clock;   /* its CPU time */
	u64 clock_from_ns; /* what it said at time 0 */
	u64 clock_ns;	   /* CPU time of the whole run, when it has ended */
	u64 idle_ns;	   /* of that, awake and without a task */
	u64 idle_since_ns;
	u64 settled_ns; /* of stolen_ns, what no run has to give back any more */
	/* It writes them, others read; nr_marks is odd meanwhile: */
	u32 nr_marks;
	u64 marked_ns;	   /* when it was last idle, less stolen_ns then */
	u64 marked_cpu_ns; /* what `clock` said then */
	u64 stolen_ns;	   /* what others are known to have had of it; atomic */
	u64 away_ns_max;   /* longest that was found at once; atomic */
	pthread_t pthread;
	timer_t timer, beat;
	u64 beat_now_ns;   /* at the last beat, the time of the core's last entry */
	u32 nr_beats;	   /* since, in one callback of the policy */
	sigset_t mask;	   /* of signals, when the program changed none */
	void *fault_stack; /* of fault.c's handler */
	stack_t old_fault_stack;
	bool has_timer, has_beat;
	bool is_masked;		       /* in the kernel, since a handler switched away from here */
	uintptr_t tls_start, tls_end;  /* thread-local memory */
	struct ut_stack idle_stack;    /* of the idle loop */
	struct ut_sanitized sanitized; /* the same */

	/* Others write here: */
	u32 doorbell __attribute__((aligned(64))); /* futex */
	u64 rung_ns;				   /* when it was woken last; atomic */
	u64 until_ns;	    /* it sleeps; 0: it spins, and looks then what is due */
	u32 nr_active;	    /* how often it ran threads, or got another CPU; atomic */
	u32 nr_active_seen; /* when it went to sleep last */
	bool looks;	    /* it sleeps for LOOK_NS at most; atomic */
} __attribute__((aligned(64)));

struct ut_cpu {
	struct ut_cpu_inline hot; /* first; see host_inline.h */
	struct sl_cpu *core;
	struct ut_thread *curr;	   /* NULL: the idle loop */
	struct ut_thread *left;	   /* whose stack was left last; NULL: idle */
	struct ut_thread *awaited; /* chosen, its stack was in use; see hop() */
	struct ut_kthread *k;	   /* that plays it; atomic for others */
	u32 pending;		   /* UT_PENDING_*; atomic */
	s32 id;
	u64 ticked_ns;	/* the tick that was handled last */
	u64 timer_ns;	/* as policy_timer_ns of timer.c, of what is pinned here */
	u32 nr_retries; /* of a preemption that came at a bad moment */
	u32 nr_bound;	/* threads that are bound to it; see ut_bind() */

	/* handover.c: */
	struct ut_cpu *put_off; /* that a kick is put off for; NULL: none */
	u32 nr_direct;		/* kicks that are not put off, from now on */
	u32 penalty;		/* how many, when another one was not to be put off */
	u64 put_off_ns;		/* when a kick of this CPU was put off; 0: none is; atomic */

	/* Free memory, for this CPU alone: */
	struct ut_thread *free_threads; /* a bundle that is in use, by `next` */
	struct ut_thread *free_bundle;	/* a whole one; NULL: none */
	u32 nr_free;			/* in the first */
	struct ut_stack warm_stack;	/* its thread ended here last; 0 bytes: none */

	/* It alone writes them, others add them up: ut_threads_left(). */
	u64 nr_begun;	     /* threads that were created here; atomic */
	u64 nr_ended;	     /* threads that were reaped here; atomic */
	struct cpumask only; /* this CPU */

	/* Others write here: */
	struct request *remote
		__attribute__((aligned(64))); /* done by helpers; atomic, lib/io.c's */

	/* sleep_lock protects: */
	sl_lock_t sleep_lock;
	struct ut_thread **sleepers; /* heap by wake_ns */
	u32 nr_sleepers;
	u32 sleepers_room;
} __attribute__((aligned(64)));

/* What a CPU adds to ut_machine.idle when it has something to do again. */
#define UT_LEAVES_IDLE ((1ULL << 32) - 1)

struct ut_machine {
	u32 nr_cpus;
	u32 threads_max;
	u32 flags;
	u32 forced_points; /* of a build for tests; 0: none */
	int signal;
	u64 tick_ns;
	size_t stack_bytes;
	struct ut_cpu *cpus;
	struct ut_kthread *kthreads; /* as many; the first is the process's first */
	struct ut_thread *threads;   /* [threads_max], pages as they are used */
	u64 random;
	struct ut_thread *main; /* the caller of ut_init() */
	bool is_running;
	bool has_ticks;	  /* the policy has ops.tick() */
	u32 is_stopping;  /* atomic */
	u32 is_ending;	  /* what runs is abandoned; atomic */
	u32 *slot_of_pid; /* see ut_slot_of_pid(): slot + 1 */
	u32 pid_mask;

	/*
	 * Creating or ending a thread writes here. What every switch reads is
	 * above, in cache lines that no other CPU invalidates.
	 */
	u32 last_pid __attribute__((aligned(64))); /* atomic */
	sl_lock_t threads_lock;
	/* threads_lock protects: */
	struct ut_thread *free_bundles; /* by `prev` of each one's first */
	u32 nr_threads_used;		/* slots beyond were never used */

	char error[1280] __attribute__((aligned(64)));
	u32 failed_kind; /* of the policy: enum scx_exit_kind */
	s32 failed_pid;
	u64 idle;	/* CPUs with nothing to do, and in its upper */
			/* half, how often one had again; atomic */
	u32 nr_outside; /* requests that will wake a thread; atomic */

	/* The runner's: */
	void (*hook)(void); /* on CPU 0 at hook_ns */
	u64 hook_ns;
	void (*on_last)(void); /* no thread is left */
	void (*on_deadlock)(const char *text, s32 pid);
};

extern struct ut_machine ut;

/*
 * Where it is noted which thread has @pid. Neighbours are written by different CPUs at
 * the same time, so they are in different lines of the cache: any odd factor finds a
 * place of its own for each of pid_mask + 1 pids.
 */
static inline u32 *ut_slot_of_pid(s32 pid)
{
	return &ut.slot_of_pid[(u32)pid * 17 & ut.pid_mask];
}

static inline struct ut_cpu *ut_this_cpu(void)
{
	return ut_tls_cpu();
}

static inline struct ut_thread *ut_thread_of(struct sl_task *t)
{
	return (struct ut_thread *)t;
}

/*
 * This CPU will soon write all over @t, which another one may have had last. With one
 * kernel thread it is where it is.
 */
static inline void ut_prefetch_thread(const struct ut_thread *t)
{
	for (u32 i = 0; ut_is_smp && i < sizeof(*t) / 64; i++)
		ut_prefetch((const char *)t + i * 64);
}

/*
 * In a build for tests one call in ut.forced_points, drawn at random, ends its
 * caller's turn: places that a signal would find once in a million runs, or, under
 * a sanitizer that delivers it late, never.
 */
#ifndef UT_HAS_FORCED_POINTS
#define UT_HAS_FORCED_POINTS 0
#endif

/* preempt.c */
__noinline void ut_handle_pending(void);
void ut_forced_point(void);
bool ut_is_forced(void);
void ut_pause_for_others(void);

/* In such a build: time for other CPUs to do something meanwhile. */
static inline void ut_forced_pause(void)
{
	if (UT_HAS_FORCED_POINTS)
		ut_pause_for_others();
}

/* In such a build, now and then: the way that is seldom taken. */
static inline bool ut_forced_choice(void)
{
	return UT_HAS_FORCED_POINTS && ut_is_forced();
}

static inline void ut_disable(void)
{
	ut_count_up();
}

static inline void ut_enable(void)
{
	if (UT_HAS_FORCED_POINTS)
		ut_forced_point();
	if (ut_count_down() && __builtin_expect(READ_ONCE(ut_this_cpu()->pending), 0))
		ut_handle_pending();
}

/* What a program calls: @call with preemption disabled. -EPERM outside the machine. */
#define ut_inside(call)							\
	({								\
		__typeof__(call) result_ = -1;				\
									\
		if (ut_this_cpu()) {					\
			ut_disable();					\
			result_ = (call);				\
			ut_enable();					\
		}							\
		result_;						\
	})

/* Return: 0; -EPERM when the thread, and not only this call, disabled preemption. */
static inline int ut_may_block(void)
{
	return ut_count() == 1 ? 0 : -1; /* -EPERM */
}

int ut_sleeper_add(struct ut_thread *t, u64 at_ns);

/* Return: 0: the caller may block, and is woken at @until_ns; -EPERM; -ENOMEM. */
static inline int ut_begin_wait(struct ut_thread *self, u64 until_ns)
{
	int err = ut_may_block();

	return err || until_ns == UT_NEVER ? err : ut_sleeper_add(self, until_ns);
}

/* sched.c: all with preemption disabled */
void ut_switch(void **save_sp, void *load_sp);
void ut_context_entry(void);
void *ut_context_make(void *stack_top, void *(*fn)(void *), void *arg);
void ut_finish_switch(void);
void ut_switch_sanitized(struct ut_thread *from, struct ut_thread *to, struct ut_cpu *cpu);
void *ut_end_context(void);
void ut_schedule(enum sl_why why);
void ut_idle_loop(struct ut_cpu *cpu);
void ut_prepare_block(struct ut_thread *t, enum ut_wait wait, const void *object);
void ut_block(struct ut_thread *self);
void ut_give_way(void);
void ut_end_all(void);
_Noreturn void ut_abandon(struct ut_cpu *cpu);
void ut_preempt_here(bool is_bound);
void ut_wake(struct ut_thread *t, u64 wake_flags);
void ut_wake_by_interrupt(struct ut_thread *t);
bool ut_tick(struct ut_cpu *cpu, u64 now_ns);
void ut_start(struct ut_thread *t, s32 parent_pid);

static inline void ut_end_wait(struct ut_thread *self)
{
	WRITE_ONCE(self->wait, (u8)UT_WAIT_NONE);
}

/* A call of @self's may wait until @until_ns: or until when? */
static inline u64 ut_until(const struct ut_thread *self, u64 until_ns)
{
	return self->deadline_ns < until_ns ? self->deadline_ns : until_ns;
}

/* wait.c */
int ut_why_leave(const struct ut_thread *t, enum ut_wait wait, u64 until_ns);
void ut_end_timed_wait(struct ut_thread *self, u64 until_ns);
int ut_wait_in(struct ut_queue *q, sl_lock_t *lock, enum ut_wait wait, const void *object,
	       u64 until_ns);
struct ut_thread *ut_queue_take(struct ut_queue *q);
void ut_wake_taken(struct ut_thread *t);
void ut_wake_all(struct ut_queue *q);

/* inherit.c */
void ut_inherit_from(ut_mutex *m, const struct ut_thread *waiter);
void ut_inherit_begin(ut_mutex *m, struct ut_thread *owner);
void ut_inherit_end(ut_mutex *m, struct ut_thread *owner);
int ut_inherit_give(struct ut_thread *t, s32 priority);

/* sync.c */
void ut_mutexes_end(struct ut_thread *t);

/* cpu.c */
struct ut_cpu *ut_wait_for_work(struct ut_cpu *cpu, bool may_spin);
void ut_ring(struct ut_cpu *to, u32 pending);
void ut_cpu_enter(struct ut_cpu *cpu);
int ut_cpus_start(void);
void ut_cpus_begin(void);
void ut_cpus_stop(void);
void ut_cpu_leave(void);
void ut_cpu_run(struct ut_cpu *cpu);
int ut_main_begin(struct ut_thread *t);
void ut_main_end(struct ut_thread *t);

/* preempt.c */
int ut_preempt_init(void);
int ut_preempt_init_cpu(struct ut_cpu *cpu);
void ut_preempt_exit_cpu(struct ut_cpu *cpu);
void ut_preempt_exit(void);
void ut_preempt_send(const struct ut_kthread *to);
bool ut_interrupt(struct ut_cpu *cpu);
__noinline void ut_timer_arm(struct ut_cpu *cpu);
void ut_charge(struct ut_cpu *cpu, u64 now_ns);
void ut_unmask(struct ut_kthread *k);

/*
 * A thread goes on on @cpu: is the timer set for the end of its slice, or for
 * something earlier? Most often it is, and a switch makes no system call. A thread
 * that stays may have an end of its slice now, and had none (S12).
 */
static inline void ut_timer_check(struct ut_cpu *cpu)
{
	u64 slice_ns = READ_ONCE(ut.has_ticks) ? 0 : sl_slice(&cpu->curr->core);
	u64 floor_ns = cpu->k->armed_floor_ns;

	if (slice_ns < UT_NEVER / 8 ? cpu->hot.now_ns + slice_ns <= floor_ns : floor_ns == UT_NEVER)
		ut_timer_arm(cpu);
}

/* fault.c */
int ut_fault_init_cpu(struct ut_cpu *cpu);
void ut_fault_exit_cpu(struct ut_cpu *cpu);
void ut_fault_beat(struct ut_cpu *cpu);
void ut_fault_init(void);
void ut_fault_exit(void);
bool ut_fault_is_forked(void);
_Noreturn void ut_fault_no_machine(void);

/* handover.c */
extern __thread struct ut_kthread *ut_kthread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
bool ut_put_off_kick(struct ut_cpu *to);
bool ut_stays_put_off(struct ut_kthread *k);
void ut_give_kick(struct ut_cpu *cpu);
struct ut_cpu *ut_take_over(struct ut_cpu *cpu);
struct ut_cpu *ut_unpark(struct ut_kthread *k);
bool ut_is_wanted(struct ut_cpu *cpu);
void ut_wake_kthread(struct ut_kthread *k);
void ut_cpu_set_tls(struct ut_cpu *cpu);

/* code.c */
void ut_code_init(void);
bool ut_code_may_stop(uintptr_t pc);
extern uintptr_t ut_linker_start, ut_linker_end; /* its code */

/* locks.c */
static inline bool ut_holds_locks(const struct ut_cpu *cpu)
{
	return cpu->curr && cpu->curr->nr_pthread_locks;
}

/* held.c */
void ut_held_init_cpu(struct ut_cpu *cpu);
bool ut_holds_tls(const struct ut_cpu *cpu, const struct ut_thread *t, const void *frame);

/* dump.c */
void ut_look_for_deadlock(u64 idle);
void ut_dump_threads(void);

/* attr.c */
int ut_attr_check(const struct ut_attr *attr);
int ut_attr_give(struct ut_thread *t, const struct ut_attr *attr);
u64 ut_own_cpu_time_ns(u64 charge_from_ns);
void ut_stats_of(const struct ut_thread *t, struct ut_stats *stats);
void ut_bind(struct ut_thread *t, bool is_bound);
void ut_attr_set_priority(struct ut_thread *t, s32 priority);

/* thread.c */
struct ut_thread *ut_thread_lock(ut_id id);
struct ut_thread *ut_thread_new(const struct ut_attr *attr, ut_fn fn, void *arg, bool has_stack,
				int *err);
struct ut_thread *ut_thread_new_pid(const struct ut_attr *attr, ut_fn fn, void *arg, s32 pid,
				    int *err);
__noinline void ut_thread_begin(struct ut_cpu *cpu, struct ut_thread *t);
__noinline void ut_thread_reap(struct ut_thread *t);
u32 ut_threads_left(void);
void ut_wait_for_others(void);

/* place.c */
int ut_threads_init(void);
void ut_threads_exit(void);
struct ut_thread *ut_place_take(void);
void ut_place_give(struct ut_thread *t);
int ut_place_take_stack(struct ut_stack *stack, size_t bytes);
void ut_place_swap_stack(struct ut_cpu *cpu, struct ut_thread *t);
s32 ut_pid_take(const struct ut_thread *t);

/* stack.c */
int ut_stack_alloc(struct ut_stack *stack, size_t bytes);
void ut_stack_free(struct ut_stack *stack);
size_t ut_stack_bytes_min(void);
size_t ut_stack_round(size_t bytes);
int ut_stack_of_caller(struct ut_stack *stack);
void ut_stacks_exit(void);

/* timer.c */
void ut_timers_run(struct ut_cpu *cpu);
u64 ut_timers_first_ns(struct ut_cpu *cpu);
void ut_policy_timer_set(u64 at_ns, bool is_pinned);
bool ut_sleeper_remove(struct ut_thread *t);
void ut_timers_exit(void);

/* lib/: all that the machine asks of it */
void ut_io_finish(struct ut_cpu *cpu); /* a helper has told @cpu of finished requests */
void ut_io_look(void);
void ut_io_exit(void);
void ut_io_close(void);	 /* CPUs, which look at its descriptors, have ended */
void ut_slots_end(void); /* the current thread ends: so do its slots */

/* clock.c */
#define UT_CALIBRATION_NS 3000000	/* for which two clocks are compared */
void ut_clock_init(void);
void ut_clock_restart(void);
void ut_stolen_mark(struct ut_cpu *cpu);
void ut_stolen_idle(struct ut_cpu *cpu, u64 now_ns);
void ut_clock_end(struct ut_cpu *cpu);
void ut_stolen_look_everywhere(void);
void ut_note_away(struct ut_cpu *cpu, u64 away_ns);

/* cgroup.c */
int ut_cgroup_give(struct ut_thread *t, ut_cgroup *group);
int ut_cgroup_move_now(ut_id id, ut_cgroup *group);

/* policy.c */
extern ut_mutex ut_policy_lock;
int ut_policy_open(const char *path, const char *const *sets);
int ut_policy_start(void);
void ut_policy_close(void);
void ut_policy_failed(const struct scx_exit_info *info, s32 pid);

/* records.c */
int ut_records_open(const char *path);
int ut_records_close(void);

/* init.c */
extern struct ut_topology {
	const u16 *smt, *llc, *node; /* group numbers by CPU, or NULL */
} ut_topology;
int ut_run(const struct ut_config *config, int (*prepare)(void), void (*begin)(void),
	   void (*end)(void));
int ut_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#pragma GCC visibility pop

#endif
