/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the simulator: virtual CPUs in virtual time.
 *
 *	main.c -> serve.c -> worker.c -> loop.c --> cpu.c ------> core/
 *	 options   one fork    one run    events     one CPU      policy
 *	           per run                   \-----> interpret.c -> device.c
 *	                                             a task's program
 *	posix.c, or wasm.c in the place of the first two: platform.h
 *
 * Order of what happens at one instant (docs/semantics.md, "Time in the
 * simulator"): arrivals, wake-ups and timers; ends of bursts; CPUs that were
 * kicked; ticks. Within a kind: in the order they were asked for, or by CPU.
 *
 * Read next: loop.c.
 */
#ifndef SIM_H
#define SIM_H

#include <schedlab/sched.h>

#include "objects.h"
#include "options.h"
#include "platform.h"
#include "player.h"
#include "policy_file.h"

#define SIM_NEVER (~0ULL)

/*
 * A policy that makes the same CPU look for work, or its timers call back, so
 * often at one instant would never end: here that takes no time.
 */
#define SIM_PER_INSTANT_MAX 20000

#define SIM_RECORDS_BUFFER 32768

/* The kinds of instant, in the order they are handled; part of an event's key. */
enum sim_class {
	SIM_CLASS_WAKE,
	SIM_CLASS_BURST,
	SIM_CLASS_RESCHED,
	SIM_CLASS_TICK,
};

/* 146 years. Later times have no key; a run that comes so far ends (loop.c). */
#define SIM_TIME_MAX ((1ULL << 62) - 2)

/* What lies behind the end of time is there. */
static inline u64 sim_instant(u64 t_ns)
{
	return t_ns < SIM_TIME_MAX ? t_ns : SIM_TIME_MAX;
}

/* Sort key of an event: its instant first. Keys of SIM_NEVER are the last four. */
static inline u64 sim_key(u64 t_ns, enum sim_class class)
{
	return t_ns * 4 + class;
}
#define SIM_KEY_NEVER (SIM_NEVER - 3)

/* A product of program and options as a time: what does not fit is never over. */
static inline u64 sim_time(unsigned __int128 ns)
{
	return ns < SIM_TIME_MAX ? (u64)ns : SIM_TIME_MAX;
}

struct sim_costs {
	u64 switch_ns;	     /* from one task to another, or from idle */
	u64 leave_ns;	     /* more, when the one before blocked, yielded or ended */
	u64 migrate_ns;	     /* more, when the task last ran elsewhere, ... */
	u64 migrate_llc_ns;  /* ... and across caches, */
	u64 migrate_node_ns; /* ... and across nodes */
	u64 start_ns;	     /* CPU time of a task before its first op */
	u64 exit_ns;	     /* ... and after its last one */
	u64 call_ns;	     /* CPU time of an op that is a system call */
	u64 wakeup_ns;	     /* from a timer or device to the task's wake-up */
	u64 tick_ns;	     /* each tick takes this from the running task */
	u64 ipi_ns;	     /* from a kick to the kicked CPU's schedule */
	u64 timer_ns;	     /* from when a bpf_timer is due to its callback */
	u64 jitter_ns; /* up to so much more for a call, and earlier for what a tick reads of the clock */
};

struct sim_device_config {
	u64 latency_ns; /* per request */
	u64 ns_per_kib;
	u64 call_ns; /* CPU time per read or write call */
	u32 depth;   /* requests the device works on at once */
};

struct sim_options {
	const char *policy_path;
	const char *program_path;
	const void *program;	  /* in memory, checked: in place of a path */
	const char *records_path; /* NULL: none are kept */
	const char *image_path;	  /* image.c; NULL: a run as others */
	int (*start)(void);	  /* in place of launch(), or NULL */
	const char *id;
	u32 nr_cpus;
	u64 seed;
	u64 tick_ns;
	u64 limit_ns;	       /* of virtual time; 0: none */
	u64 dump_at_ns;	       /* 0: never */
	u32 callback_limit_ms; /* of CPU time in one callback */
	bool has_detail;
	bool no_fork;
	const char *arrivals;
	const char *above, *offline; /* above.c; NULL: no task is, no CPU */
	const char *capacity;	     /* speed.c; NULL: all CPUs are alike */
	const char *user_thread;
	bool has_no_user_thread; /* as in Linux's guest */
	const char *exits;
	bool exits_regroup; /* a task that ends leaves its group first */
	/* Tasks exist before, asleep: all, as in Linux's guest, or those not spawned. */
	bool arrivals_wake, roots_wake;
	u32 smt, llc, node; /* CPUs per core, cache, node; 0: see sched.h */
	struct sim_costs costs;
	struct sim_device_config device;
	u64 work_ps[SL_NR_WORKS];	/* per unit */
	const char *interleave;		/* hosts/check; NULL: no CPU preempts another */
	bool serves_worlds;		/* hosts/check */
	const char *coverage;		/* hosts/check; NULL: which lines run is not asked for */
	const char *promises;		/* hosts/check; NULL: none is looked at */
	const char *events;		/* hosts/check; NULL: the machine stays as it is */
	const char *calls;		/* hosts/check; NULL: callbacks are not written */
	u64 calls_from_ns, calls_to_ns; /* which are: those of this time; 0: to the end */
	const char *sets[SL_WORDS_MAX + 1]; /* NAME=VALUE of knobs */
};

/* How a run ended; worker.c prints it. */
struct sim_result {
	const char *status;
	const char *error_kind; /* NULL: none */
	char error[SCX_EXIT_MSG_LEN + 256];
	s32 task;	  /* pid, 0: none */
	u64 failed_at_ns; /* the run may go on, under built-in FIFO */
	u64 end_ns;
	u32 nr_exited;
	u64 nr_records;
	u64 policy_offset; /* in its file, where it was stopped; 0: unknown */
};

struct sim_task {
	struct sl_task core;	 /* first: a core task is the simulator's as well */
	u64 remaining_ns;	 /* of the current burst */
	u64 owed_ns;		 /* what the last run left to the call after it */
	bool has_begun;		 /* start_ns is over */
	bool has_paid;		 /* the next op's costs are over */
	bool has_left;		 /* its group, and ends */
	bool is_in_call;	 /* the CPU part of an I/O call is done */
	u32 nr_children;	 /* ended, not yet waited for */
	struct sl_player player; /* its place in the program */
	/* A task that only runs and sleeps touches none of these where calls are free: */
	u64 called_ns;			   /* what calls took since the last run, beyond owed_ns */
	u64 io_left_bytes;		   /* of the transfer @io; its player waits meanwhile */
	const struct sl_program_op *after; /* a transfer or a move between groups */
	const char *waits_for;		   /* what it blocks on, or did last; not in a sleep */
	u32 nr_children_needed;		   /* blocked in wait for so many; 0: not */
	u16 speed;			   /* for which remaining_ns is right; and */
	u16 done_ahead;			   /* so much of it is done, see speed.c */
	struct sl_program_op io;
	struct sl_waiter waiter; /* for an object or, its bytes, the device */
	struct sim_task *parent;
} __attribute__((aligned(64)));

enum sim_event_kind {
	SIM_EVENT_END,	  /* of the run: before all else, */
	SIM_EVENT_ARRIVE, /* then the next task of the program */
	SIM_EVENT_TIMER,  /* the core's timers */
	SIM_EVENT_DUMP,
	SIM_EVENT_MACHINE, /* of hosts/check: events.c */
	SIM_EVENT_ABOVE,   /* task: the entry of the list in above.c */
	SIM_EVENT_POLL,	   /* task: wake it, the user half's thread */
	SIM_EVENT_WAKE,	   /* task: wake it */
	SIM_EVENT_DEVICE,  /* task: its request is done */
};

struct sim_cpu {
	s32 idx;
	struct sl_cpu *core;
	struct sim_task *running;  /* its burst counts down */
	struct sim_task *incoming; /* chosen, the switch takes time: */
	u64 switch_ns;		   /* so much */
	u64 wait_until_ns;	   /* no task begins before: SCX_KICK_WAIT */
	u64 run_from_ns;	   /* remaining_ns was right at this time */
	u64 run_start_ns;	   /* since when it has been on the CPU */
	u64 burst_at_ns;	   /* instants: end of the burst, or of the switch */
	u64 resched_at_ns;
	u64 tick_at_ns;			/* next tick that matters */
	u64 stolen_ns;			/* by ticks, since run_start_ns */
	u64 timer_at_ns;		/* asked for, on this CPU; SIM_NEVER: none */
	u64 above_ns;			/* so long a task of a higher class wants it, */
	u64 above_from_ns;		/* or had it, from then */
	u64 above_until_ns;		/* until now or later; 0: none has it */
	bool goes_offline;		/* in place of that task; and */
	bool is_offline;		/* it is */
	u16 capacity, frequency, speed; /* speed.c */
	u64 kicked_at_ns;		/* last kick that was handled, and how many */
	u32 nr_kicks;			/* at that instant got no program any further */
	u64 busy_ns;
	u64 overhead_ns;
} __attribute__((aligned(64)));

struct sim {
	struct sim_options *options;
	struct sim_result *result;
	const void *program;
	struct sim_task *tasks;
	u32 nr_tasks;		    /* of the program */
	u32 nr_user_tasks;	    /* of the policy's user half: 0 to 2, ... */
	struct sim_task *tasks_end; /* ... from here on */
	u32 nr_left;		    /* not yet ended */
	u32 nr_started;
	u32 *arrivals; /* task numbers by arrival */
	u32 nr_arrivals;
	u32 next_arrival;
	struct sl_object *objects;
	struct cgroup **groups; /* by object; NULL where it is no group */
	struct sim_cpu *cpus;
	const u16 *llc, *node; /* numbers by CPU; NULL: one for all */
	u64 end_ns;	       /* the run ends here, whatever is left */
	u64 nr_zero_ops;       /* ops and events since time last moved */
	u64 timer_at_ns;       /* asked for, on any CPU; SIM_NEVER: none */
	u64 timers_ran_at_ns;  /* last, and how often */
	u32 nr_timer_runs;     /* at that instant */
	u64 random;
	u64 nr_calls;	     /* that --cost jitter_ns made longer */
	bool has_ticks;	     /* every tick matters */
	u64 tick_at_ns;	     /* then: the next one, unless that is over */
	bool is_switch_free; /* switches and migrations take no time */
	bool are_calls_free; /* nor do the calls of a program, its begin and exit */
	bool has_speeds;     /* then neither is said to be free */
	bool is_over;
};

extern struct sim sim;

/* What happens now happens on this CPU. */
static inline void sim_set_cpu(s32 idx)
{
	sim_cpu_idx = idx;
	sim_core_cpu = sim.cpus[idx].core;
}

/* A timer interrupts the CPU on which its task went to sleep, while that is there. */
static inline s32 sim_woken_on(const struct sim_task *t)
{
	return unlikely(sim.cpus[t->core.cpu].is_offline) ? 0 : t->core.cpu;
}

/* heap.c: what will happen to tasks and timers */
void sim_heap_push(u64 t_ns, enum sim_event_kind kind, u32 task);
void sim_heap_push_first(u64 t_ns, enum sim_event_kind kind, u32 task);
extern u64 sim_heap_first_key; /* SIM_NEVER: nothing has been put in yet */
enum sim_event_kind sim_heap_pop(struct sim_task **task);
enum sim_event_kind sim_heap_first(struct sim_task **task);
bool sim_heap_will_wake(void);

/* tree.c: which CPU is next */
int sim_tree_init(u32 nr_cpus);
void sim_tree_update(u32 cpu, u64 key);
extern u64 *sim_tree_keys;     /* by CPU */
extern u32 sim_tree_first;     /* the CPU that is first, */
extern u64 sim_tree_first_key; /* and its key */

/* host.c */
u64 sim_jitter_ns(u64 nr);

/* sched.c */
struct sim_task *sim_schedule(struct sim_cpu *c, enum sl_why why);
void sim_finish_switch(struct sim_cpu *c, struct sim_task *t);
void sim_prepare_block(struct sim_task *t);
void sim_wake(struct sim_task *t, u64 wake_flags, s32 waker_pid);
bool sim_tick(u64 reads_ns);
void sim_take(struct sim_cpu *c);
void sim_give_back(struct sim_cpu *c);
int sim_attach(struct sim_task *t, const struct task_attr *attr, struct sim_task *parent);
void sim_start(struct sim_task *t, struct sim_task *parent);
void sim_wake_user_thread(struct sim_task *t);
void sim_cpu_end_all(void);

/* cpu.c */
void sim_cpu_handle(s32 cpu, enum sim_class class);
void sim_cpu_set_resched(u32 cpu, u64 t_ns);
sl_cold void sim_cpu_speed_changed(struct sim_cpu *c);

/* interpret.c */
/* What a CPU does next: it schedules, and why, or one of the others. */
enum sim_next {
	SIM_NEXT_RESCHED = SL_WHY_RESCHED,
	SIM_NEXT_YIELD = SL_WHY_YIELD,
	SIM_NEXT_BLOCK = SL_WHY_BLOCK, /* has announced it to the core */
	SIM_NEXT_EXIT = SL_WHY_EXIT,
	SIM_NEXT_RUN = SL_NR_WHYS, /* its task: remaining_ns is set, or the next op is due */
	SIM_NEXT_NOTHING,
};
/* They are never over. */
extern const struct sl_program_op sim_user_half_op, sim_user_thread_op;
enum sim_next sim_interpret(struct sim_task *t);
void sim_user_thread_sleep(struct sim_task *t);
void sim_task_attach_all(void);
void sim_task_begin(struct sim_task *t, struct sim_task *parent);

/* above.c */
int sim_above_parse(const struct sim_options *o, char *why, u32 why_bytes);
void sim_above_push_all(void);
void sim_above_begin(u32 i);
void sim_above_want(u32 cpu, u64 length_ns, bool is_offline);
void sim_offline_later(u32 cpu, u64 length_ns);
bool sim_take_number(const char **text, char end, u64 *number);

/* speed.c */
int sim_speed_parse(const struct sim_options *o, char *why, u32 why_bytes);
void sim_speed_begin(void);
sl_cold void sim_speed_fit(struct sim_task *t, s32 cpu);
sl_cold void sim_speed_begin_burst(struct sim_task *t);

/* device.c */
void sim_device_request(struct sim_task *t, u64 bytes);
void sim_device_done(void);

/* loop.c */
void sim_loop_begin(void);
void sim_loop(void);
void sim_handle_heap(void);
bool sim_is_endless(void);

/* result.c */
sl_cold void sim_fail(const char *kind, s32 pid, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void sim_print_result(int fd, const struct sim_options *options, const struct sim_result *result);
void sim_print_failure(int fd, const struct sim_options *options, const char *kind, const char *why);

/* record.c */
int sim_records_open(const char *path);
void sim_records_keep(struct sl_record *buffer, u64 nr);
extern struct sl_record sim_records_buffer[SIM_RECORDS_BUFFER];
int sim_records_close(void);
u64 sim_records_count(void);

/*
 * worker.c: the policy of this process. The parent loads it and the forked child sets
 * its knobs, so that the parent's copy stays as it was for the next run.
 */
extern struct sl_policy_file sim_policy_file;
int sim_policy_set(const char *assignment, char *why, u32 why_bytes);

/* image.c: what to call in place of launch(); it writes @to and ends the process. */
int (*sim_image(const char *to))(void);

/* options.c */
extern const struct sim_options sim_default_options;
int sim_parse(struct sim_options *options, int argc, char **argv, char *why, u32 why_bytes);
int sim_parse_request(struct sim_options *options, char *line, char *why, u32 why_bytes);

/* Exit code of a process that has reported its policy's end, and printed the result. */
#define SIM_EXIT_REPORTED 113

/* The assertion that has failed; empty: none has. */
extern char sim_assertion[160];

/* What SIGILL, and a trap of WebAssembly that has no other name, mean. */
#define SIM_TRAPPED "used an index outside of its array, or reached another trap,"

/* serve.c -> worker.c -> result.c */
int sim_run_forked(struct sim_options *options);
int sim_serve(const struct sim_options *defaults);
void sim_report_death(const struct sim_options *options, int status);
int sim_worker(struct sim_options *options, int out_fd);
const struct sim_result *sim_simulate(struct sim_options *options, int out_fd);
bool sim_mask(struct cpumask *mask, u32 first, u32 nr_words);
void sim_worker_report(const char *kind, const char *what, u64 policy_offset);

#endif
