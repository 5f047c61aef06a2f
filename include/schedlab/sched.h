/* SPDX-License-Identifier: MIT */
/*
 * sched.h - what a host calls: its CPUs schedule, its tasks come, wake, block and go.
 *
 * A host includes this header and host.h, never core/core.h: what it gets is complete,
 * and it writes no member of the core's structures. A task (task.h) is read freely.
 *
 * Unless it says otherwise a call is made with no lock held, on the CPU concerned,
 * which is then neither preempted nor interrupted; see host.h.
 *
 * Read next: core/README.md, the life of a task; hosts/sim/sched.c, a caller.
 */
#ifndef SCHEDLAB_SCHED_H
#define SCHEDLAB_SCHED_H

#include <schedlab/host.h>
#include <scx/native.h>
#include <scx/attrs.h>



#pragma GCC visibility push(hidden)
/* tests/conformance has policies that do by name what no program can. */
#define SL_EXPORT __attribute__((visibility("default")))

#define SL_MASK_WORDS (SCX_CPUS_MAX / 64)

/* ---- the machine --------------------------------------------------------- */

struct sl_config {
	u32 nr_cpus;			/* 1..SCX_CPUS_MAX */
	u32 tasks_max;
	const u16 *smt_of_cpu;		/* group numbers, shape (nr_cpus,); NULL: */
	const u16 *llc_of_cpu;		/* every CPU is its own core, and all share */
	const u16 *node_of_cpu;		/* one cache and one node */
	u64 tick_ns;			/* what a policy has as CONFIG_HZ; 0: 1 ms */
	bool has_detail;		/* write ENQUEUE records, too */
};

int sl_core_init(const struct sl_config *config);
void sl_core_exit(void);

/* What the core has of @cpu, for sl_host_core_cpu(). */
struct sl_cpu *sl_core_cpu(s32 cpu);

/* ---- a CPU --------------------------------------------------------------- */

enum sl_why {
	SL_WHY_RESCHED,		/* the tick said so, or a kick */
	SL_WHY_YIELD,
	SL_WHY_BLOCK,		/* after sl_task_prepare_block() */
	SL_WHY_EXIT,
	SL_WHY_TAKE_OVER,	/* an idle CPU, by one that stands on a task's stack still */
};

struct sl_task *sl_schedule(enum sl_why why);
void sl_switched(struct sl_task *prev);
void sl_task_take_stack(struct sl_task *t);
void sl_task_leave_stack(struct sl_task *t);
bool sl_tick(void);
void sl_timers_run(void);
void sl_stop_at_horizon(s32 cpu);

/* ---- a task -------------------------------------------------------------- */

void sl_task_setup(struct sl_task *t, u32 idx, s32 pid, const char *comm);
void sl_task_attach(struct sl_task *t, const struct sl_task *parent);
void sl_task_start(struct sl_task *t, u64 wake_flags, s32 origin_pid);
bool sl_task_wake(struct sl_task *t, u64 wake_flags, s32 waker_pid);
void sl_task_prepare_block(struct sl_task *t);
void sl_task_detach(struct sl_task *t);

int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr);
SL_EXPORT int sl_task_set_attr(struct sl_task *t, u32 key, u64 value);
SL_EXPORT void sl_task_set_weight(struct sl_task *t, u32 weight);
SL_EXPORT void sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask);
void sl_task_set_nice(struct sl_task *t, s32 nice);
void sl_task_set_exiting(struct sl_task *t);
void sl_task_inherit(struct sl_task *t, const struct sl_task *parent);
void sl_migrate_disable(struct sl_task *t);
void sl_migrate_enable(struct sl_task *t);
void sl_task_set_slice(struct sl_task *t, u64 slice_ns);
void sl_task_charge(struct sl_task *t, u64 until_ns);
void sl_task_steal(struct sl_task *t, u64 stolen_ns);

/* ---- the policy ---------------------------------------------------------- */

int sl_policy_enable(const struct sl_policy *policy, bool is_live);
void sl_policy_disable(bool is_live);

/* What a person is told. Read without locks, and possibly while it changes. */
struct sl_report {
	const char *policy;		/* name; "" without one */
	bool is_bypassed;		/* the built-in FIFO decides */
	bool has_failed;
	const struct scx_exit_info *exit;	/* while `has_failed`, and after */
	const char *why;		/* of the last enable or failure; "" */
};
struct sl_report sl_report(void);

struct sl_cpu_report {
	u64 nr_switches;
	u64 idle_ns;			/* right after sl_stop_at_horizon() */
	const char *callback;		/* which operation the policy is in; NULL: none */
	const struct sl_task *callback_task;	/* about which; NULL: none */
};
struct sl_cpu_report sl_cpu_report(s32 cpu);

void sl_dump(void);

/* ---- text without a C library: bpf/print.c ------------------------------- */

u32 sl_format(char *to, u32 bytes, const char *fmt, __builtin_va_list args);
u32 sl_print_to(char *to, u32 bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#pragma GCC visibility pop

#endif
