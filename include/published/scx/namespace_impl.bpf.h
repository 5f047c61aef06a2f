/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For published schedulers: no task here is in a pid namespace of its own. */
#ifndef SL_PUBLISHED_NAMESPACE_H
#define SL_PUBLISHED_NAMESPACE_H

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
struct pid;
struct pid_namespace {
	struct {
		u32 inum;
	} ns;
};

static inline struct pid *get_task_pid_ptr(const struct task_struct *p, enum pid_type type)
{
	return NULL;
}

static inline struct pid_namespace *get_task_pid_ns(const struct task_struct *p, enum pid_type type)
{
	return NULL;
}

static inline pid_t get_pid_nr_ns(struct pid *pid, struct pid_namespace *ns)
{
	return 0;
}

static inline pid_t get_task_ns_pid(const struct task_struct *p)
{
	return (p ? p : bpf_get_current_task_btf())->pid;
}

static inline pid_t get_ns_pid(void)
{
	return get_task_ns_pid(NULL);
}

#endif
