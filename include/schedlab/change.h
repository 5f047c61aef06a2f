/* SPDX-License-Identifier: MIT */
/*
 * change.h - what a host gives a task before it is attached, and changes later.
 *
 * Most of these do either: of a task that is attached the policy hears (S17, S18). Unless
 * it says otherwise a call is made with no lock held, on any CPU.
 *
 * Read next: sched.h; core/change.c and bpf/attr.c, what they do.
 */
#ifndef SCHEDLAB_CHANGE_H
#define SCHEDLAB_CHANGE_H

#include <schedlab/host.h>
#include <scx/attrs.h>
#include <scx/native.h>

#pragma GCC visibility push(hidden)
/* tests/conformance has policies that do by name what no program can. */
#define SL_EXPORT __attribute__((visibility("default")))

void sl_task_setup(struct sl_task *t, u32 idx, s32 pid, const char *comm);
int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr);
void sl_task_inherit(struct sl_task *t, const struct sl_task *parent);
void sl_task_set_nice(struct sl_task *t, s32 nice);

SL_EXPORT int sl_task_set_attr(struct sl_task *t, u32 key, u64 value);
SL_EXPORT void sl_task_set_weight(struct sl_task *t, u32 weight);
SL_EXPORT int sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask);
void sl_task_bind(struct sl_task *t, const struct cpumask *only);
void sl_task_set_exiting(struct sl_task *t);
void sl_task_leave_group(struct sl_task *t);

/* What it has run, and may still run: */
void sl_task_set_slice(struct sl_task *t, u64 slice_ns);
void sl_task_charge(struct sl_task *t, u64 until_ns);
void sl_task_steal(struct sl_task *t, u64 stolen_ns);

/* ---- cgroups: core/cgroup.c, core/cpuset.c; NULL is the root --------------- */

SL_EXPORT int sl_cgroup_create(struct cgroup *parent, const char *name, u32 weight,
			       struct cgroup **made);
SL_EXPORT int sl_cgroup_remove(struct cgroup *cgrp);
bool sl_cgroup_has_cgroups(struct cgroup *cgrp);
bool sl_cgroup_has_tasks(struct cgroup *cgrp);
SL_EXPORT void sl_cgroup_set_weight(struct cgroup *cgrp, u32 weight);
void sl_cgroup_set_bandwidth(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us);
SL_EXPORT int sl_cgroup_set_cpus(struct cgroup *cgrp, const struct cpumask *cpus);
SL_EXPORT int sl_task_set_cgroup(struct sl_task *t, struct cgroup *cgrp);
int sl_task_finish_move(struct sl_task *t);

#pragma GCC visibility pop

#endif
