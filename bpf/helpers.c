/* SPDX-License-Identifier: MIT */
/*
 * helpers.c - BPF's helpers of a few lines: loops, time, random numbers, the CPU and
 * the task that are running.
 *
 * Thin wrappers with Linux's names; include/scx/native.h lists them.
 *
 * Read next: print.c.
 */
#include "../core/core.h"

#define BPF_MAX_LOOPS (8U << 20)

/* For `extern ... CONFIG_HZ __kconfig` of a policy, of whatever size: little-endian. */
__attribute__((visibility("default"))) u64 CONFIG_HZ = 1000;

long sl_bpf_loop(u32 nr_loops, long (*callback)(u64 i, void *ctx), void *ctx, u64 flags)
{
	if (flags)
		return -EINVAL;
	if (nr_loops > BPF_MAX_LOOPS)
		return -E2BIG;
	for (u32 i = 0; i < nr_loops; i++) {
		if (callback(i, ctx))
			return i + 1;
	}
	return nr_loops;
}

u32 bpf_get_prandom_u32(void)
{
	return sl_host_random();
}

u64 bpf_ktime_get_ns(void)
{
	return policy_now_ns();
}

/* S43: ticks of the policy's clock. */
u64 bpf_jiffies64(void)
{
	return policy_now_ns() * CONFIG_HZ / 1000000000;
}

long bpf_strncmp(const char *text, u32 bytes, const char *other)
{
	for (u32 i = 0; i < bytes; i++) {
		if (text[i] != other[i])
			return (u8)text[i] - (u8)other[i];
		if (!text[i])
			break;
	}
	return 0;
}

long bpf_probe_read_kernel_str(void *dst, u32 bytes, const void *src)
{
	const char *from = src;
	char *to = dst;
	u32 nr = 0;

	if (!bytes)
		return 0;
	while (nr < bytes - 1 && from[nr]) {
		to[nr] = from[nr];
		nr++;
	}
	to[nr] = 0;
	return nr + 1;
}

u32 bpf_get_smp_processor_id(void)
{
	return (u32)sl_host_cpu();
}

/* S39: never NULL; an idle CPU has its idle task, as on Linux. */
struct task_struct *bpf_get_current_task_btf(void)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	return this_cpu->curr ? &this_cpu->curr->p : &this_cpu->idle.p;
}

bool bpf_in_task(void)
{
	return !sl_this_cpu()->in_interrupt;
}

struct task_struct *bpf_task_from_pid(s32 pid)
{
	struct sl_task *t = sl_host_task(pid);

	return t ? &t->p : NULL;
}

/* A task's memory outlives the policy (task.h): no count is needed. */
struct task_struct *bpf_task_acquire(struct task_struct *p)
{
	return p;
}

void bpf_task_release(struct task_struct *p)
{
	(void)p;
}
