/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * outside.h - does from a timer what no workload program can express.
 *
 * Another task's weight, attributes or affinity change in a real system through a
 * system call on some CPU. Here a timer of the policy calls the core as a host
 * would, 2 ms after the start; so these cases do not run in Linux.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include "conform.h"

struct sl_task;
void sl_task_set_weight(struct sl_task *t, u32 weight);
int sl_task_set_attr(struct sl_task *t, u32 key, u64 value);
int sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask);
int sl_task_set_cgroup(struct sl_task *t, struct cgroup *cgrp);
int sl_cgroup_create(struct cgroup *parent, const char *name, u32 weight, struct cgroup **made);
int sl_cgroup_remove(struct cgroup *cgrp);
void sl_cgroup_set_weight(struct cgroup *cgrp, u32 weight);
int sl_cgroup_set_cpus(struct cgroup *cgrp, const struct cpumask *cpus);

struct timer_value {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timer_value);
} timers SEC(".maps");

/* Have @callback called once, 2 ms from now. */
#define LATER(callback)							\
	({								\
		u32 ___key = 0;						\
		struct timer_value *___v =				\
			bpf_map_lookup_elem(&timers, &___key);		\
		if (___v) {						\
			bpf_timer_init(&___v->timer, &timers, CLOCK_MONOTONIC); \
			bpf_timer_set_callback(&___v->timer, callback);	\
			bpf_timer_start(&___v->timer, 2000000, 0);	\
		}							\
	})

#endif
