/* SPDX-License-Identifier: MIT */
/*
 * helpers.h - what BPF gives a policy, as far as core/ and the hosts see it: maps,
 * timers, spin locks, task attributes, formatted text.
 *
 * Policies call these by their names in Linux; include/scx/native.h lists them. Part of
 * core.h, which includes it.
 *
 * Read next: README.md.
 */
#ifndef SL_BPF_HELPERS_H
#define SL_BPF_HELPERS_H

#define SL_MAPS_MAX 64
#define SL_TIMERS_MAX 256

struct sl_bpf {
	sl_lock_t	maps_lock;	/* outside callbacks, protects these: */
	struct sl_map	*maps;
	u32		nr_maps;	/* read without lock */
	struct sl_map	*attr_map;	/* task_attrs of the policy, or NULL */

	sl_lock_t	timers_lock;
	struct sl_timer	*timers;	/* timers_lock protects it */
} ____cacheline_aligned;

extern struct sl_bpf sl_bpf;

/* ---- what a host calls: attr.c, timer.c, print.c --------------------------- */

SL_EXPORT int sl_task_set_attr(struct sl_task *t, u32 key, u64 value);
void sl_attr_set(struct task_attr *attr, u32 key, u64 value);
int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr);
void sl_timers_run(void);
u32 sl_format(char *to, u32 bytes, const char *fmt, __builtin_va_list args);
u32 sl_print_to(char *to, u32 bytes, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
