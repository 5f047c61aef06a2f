/* SPDX-License-Identifier: MIT */
/*
 * machine.h - the machine and its policy: how they begin and end, and what is said of them.
 *
 * Read next: change.h.
 */
#ifndef SCHEDLAB_MACHINE_H
#define SCHEDLAB_MACHINE_H

#include <schedlab/host.h>
#include <scx/native.h>

#pragma GCC visibility push(hidden)

#define SL_MASK_WORDS (SCX_CPUS_MAX / 64)

struct sl_config {
	u32 nr_cpus; /* 1..SCX_CPUS_MAX */
	u32 tasks_max;
	const u16 *smt_of_cpu;	/* group numbers, shape (nr_cpus,); NULL: */
	const u16 *llc_of_cpu;	/* every CPU is its own core, and all share */
	const u16 *node_of_cpu; /* one cache and one node */
	u64 tick_ns;		/* what a policy has as CONFIG_HZ; 0: 1 ms */
	s32 user_half_pid;	/* of the task that is the policy's user half; 0: none */
	bool has_detail;	/* write ENQUEUE records, too */
};

int sl_core_init(const struct sl_config *config);
void sl_core_exit(void);

/* What the core has of a CPU, as its calls want it. */
struct sl_cpu *sl_core_cpu(s32 cpu);

int sl_policy_enable(const struct sl_policy *policy, bool is_live);
void sl_policy_disable(bool is_live);

/*
 * Entry @nr, from 0, of those that a hash has ever had.
 * Return: its value and, in @key, its key; NULL: it was deleted, or there were not so many.
 */
void *sl_hash_entry(struct sl_map *map, u32 nr, const void **key);

struct sl_map_info {
	u32 type, key_bytes, value_bytes, max_entries;
	u32 nr_queued; /* in a queue or stack; of an arena pages */
};
struct sl_map_info sl_map_info(const struct sl_map *map);

/*
 * Pages @nr, from 0, that were taken from an arena in one piece and not given back.
 * Return: where in Linux's arena they are, which has taken as many; ~0: there are not so many.
 */
u64 sl_arena_pages(const struct sl_map *map, u32 nr, void **at, u64 *bytes);

/* ---- what takes a CPU: another scheduling class, hotplug --------------------- */

void sl_cpu_take(struct sl_cpu *cpu, u64 now_ns);
void sl_cpu_give_back(struct sl_cpu *cpu);
bool sl_cpu_offline(struct sl_cpu *cpu, u64 now_ns);
void sl_cpu_online(struct sl_cpu *cpu);

/* ---- what a person is told ------------------------------------------------ */

/* Read without locks, and possibly while it changes. */
struct sl_report {
	const char *policy; /* name; "" without one */
	bool is_bypassed;   /* the built-in FIFO decides */
	bool has_failed;
	const struct scx_exit_info *exit; /* while `has_failed`, and after */
	const char *why;		  /* of the last enable or failure; "" */
};
struct sl_report sl_report(void);

struct sl_cpu_report {
	u64 nr_switches;
	u64 idle_ns;			     /* right after sl_stop_at_horizon() */
	const char *callback;		     /* which operation the policy is in; NULL: none */
	const struct sl_task *callback_task; /* about which; NULL: none */
};
struct sl_cpu_report sl_cpu_report(s32 cpu);

void sl_dump(void);

/* Text without a C library: bpf/print.c. */
u32 sl_format(char *to, u32 bytes, const char *fmt, __builtin_va_list args);
u32 sl_print_to(char *to, u32 bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What NULL is in an arena; NULL: the policy has none. Context: any, also a signal's handler. */
void *sl_arena_first_page(void);

#pragma GCC visibility pop

#endif
