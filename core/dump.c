/* SPDX-License-Identifier: MIT */
/*
 * dump.c - CPUs, queues and tasks as text, one format on every host.
 *
 * Called by hosts at any moment, also for a machine that is stuck, and by an
 * interrupt that came while this CPU held a lock. So it never waits: it reads
 * without locks, a line may contradict the next. What it could find, and another CPU
 * is about to free, is kept until it has ended: see wait_for_dumps().
 *
 * Read next: kfuncs_dsq.c, what a policy calls.
 */
#include "core.h"

#define LINE_BYTES 200

static void count_dumps(u64 change)
{
	u64 nr;

	do {
		nr = smp_load_acquire(&sl_core.nr_dumps);
	} while (!sl_cas_u64(&sl_core.nr_dumps, nr, nr + change));
	sl_host_fence();
}

/*
 * Nothing can find any more what the caller is about to free; let those end that
 * may have found it before. Context: any, a dump never waits.
 */
static void wait_for_dumps(void)
{
	sl_host_fence();
	while (__builtin_expect(smp_load_acquire(&sl_core.nr_dumps) != 0, 0))
		sl_host_relax();
}

/* @from may be changing: a text of its size that ends is all that is sure. */
static const char *copy_text(char *to, const char *from, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++)
		to[i] = READ_ONCE(from[i]);
	to[bytes - 1] = 0;
	return to;
}

static const char *state_name(u8 state)
{
	static const char *const names[] = {
		[SL_TASK_NEW] = "new",	       [SL_TASK_BLOCKED] = "blocked",
		[SL_TASK_WAKING] = "waking",   [SL_TASK_RUNNABLE] = "runnable",
		[SL_TASK_RUNNING] = "running", [SL_TASK_DEAD] = "dead",
	};

	return names[state];
}

static void dump_cpu(struct sl_cpu *cpu)
{
	struct sl_task *t = smp_load_acquire(&cpu->curr);
	const char *callback = sl_callback_name(READ_ONCE(cpu->callback));
	char line[LINE_BYTES], comm[TASK_COMM_LEN];

	sl_print_to(line, sizeof(line), "cpu %d local %u switches %llu runs %s[%d] slice %llu%s%s",
		    cpu->id, READ_ONCE(cpu->local.nr), READ_ONCE(cpu->nr_switches),
		    t ? copy_text(comm, t->p.comm, sizeof(comm)) : "idle",
		    t ? READ_ONCE(t->p.pid) : 0, t ? sl_slice(t) : 0, callback ? " in " : "",
		    callback ? callback : "");
	sl_host_print(line);
}

static void dump_dsq(struct sl_dsq *q)
{
	struct sl_task *t = smp_load_acquire(&q->first);
	char line[LINE_BYTES];

	if (!t)
		return;
	sl_print_to(line, sizeof(line), "dsq 0x%llx queued %u first %d", READ_ONCE(q->id),
		    READ_ONCE(q->nr), READ_ONCE(t->p.pid));
	sl_host_print(line);
}

static void dump_task(struct sl_task *t, u64 now_ns)
{
	struct sl_dsq *q = smp_load_acquire(&t->dsq);
	u8 state = smp_load_acquire(&t->state);
	bool is_runnable = state == SL_TASK_RUNNABLE;
	bool is_held = (smp_load_acquire(&t->ops_state) & SL_OPSS_MASK) == SL_OPSS_QUEUED;
	const char *wait = state == SL_TASK_BLOCKED ? READ_ONCE(t->wait_for) : NULL;
	/* Below 0 if it has run since @now_ns, on another CPU. */
	s64 waits_ns = (s64)(now_ns - READ_ONCE(t->runnable_at_ns));
	char line[LINE_BYTES], comm[TASK_COMM_LEN];

	sl_print_to(line, sizeof(line),
		    "task %s[%d] %s cpu %d dsq 0x%llx slice %llu waits %llu ns%s%s%s",
		    copy_text(comm, t->p.comm, sizeof(comm)), READ_ONCE(t->p.pid),
		    state_name(state), READ_ONCE(t->cpu), q ? READ_ONCE(q->id) : 0, sl_slice(t),
		    is_runnable && waits_ns > 0 ? (u64)waits_ns : 0,
		    is_runnable && is_held ? " held" : "", wait ? " for " : "", wait ? wait : "");
	sl_host_print(line);
}

/* Print everything. Context: any, whatever locks are held, here or elsewhere. */
void sl_dump(void)
{
	char line[LINE_BYTES], name[sizeof(sl_core.ops.name)];
	u64 now_ns = sl_host_now_ns();
	bool is_loaded = READ_ONCE(sl_core.is_loaded);
	struct sl_task *t;
	struct sl_dsq *q;

	if (!sl_core.cpus)
		return;
	count_dumps(1);
	sl_print_to(line, sizeof(line), "t %llu ns, policy %s%s", now_ns,
		    is_loaded ? copy_text(name, sl_core.ops.name, sizeof(name)) : "(built-in fifo)",
		    is_loaded && sl_is_bypassed() ? " (bypassed)" : "");
	sl_host_print(line);
	for_each_cpu(cpu)
		dump_cpu(cpu);
	dump_dsq(&sl_core.global);
	for (u32 i = 0; i < SL_DSQ_BUCKETS; i++) {
		for (q = smp_load_acquire(&sl_core.dsqs[i]); q; q = smp_load_acquire(&q->next))
			dump_dsq(q);
	}
	for_each_task(t)
		dump_task(t, now_ns);
	count_dumps(-1ULL);
}

/* ---- what a policy that has failed writes down (S41) ---------------------- */

#define DUMP_LEN_DFL 32768

/* One policy fails at a time, on one CPU. */
static struct {
	char line[256];
	u32 used; /* bytes of the line so far */
	u32 left; /* bytes of the whole dump; 0: no more lines */
} policy_dump;

/* Lines that are complete go to the host. @is_last: so does one that is not. */
static void dump_lines(bool is_last)
{
	char *line = policy_dump.line;
	u32 start = 0;

	for (u32 i = 0; i < policy_dump.used; i++) {
		bool is_end = line[i] == '\n';

		if (!is_end && i + 1 < policy_dump.used)
			continue;
		if (!is_end && !is_last)
			break;
		if (is_end)
			line[i] = 0;
		if (policy_dump.left) {
			bool is_cut = i + 1 - start > policy_dump.left;

			sl_host_print(is_cut ? "~~~~ TRUNCATED ~~~~" : line + start);
			policy_dump.left -= is_cut ? policy_dump.left : i + 1 - start;
		}
		start = i + 1;
	}
	for (u32 i = start; i < policy_dump.used; i++)
		line[i - start] = line[i];
	policy_dump.used -= start;
	line[policy_dump.used] = 0;
}

/* A piece of a line, or some lines. Context: an operation of dump_policy(). */
void sl_scx_dump(const char *fmt, ...)
{
	enum sl_callback in = sl_this_cpu()->callback;
	__builtin_va_list args;
	u32 room = sizeof(policy_dump.line) - policy_dump.used;

	if (in != SL_IN_dump && in != SL_IN_dump_cpu && in != SL_IN_dump_task) {
		scx_error(NULL, "scx_bpf_dump() must only be called from ops.dump() and friends");
		return;
	}
	__builtin_va_start(args, fmt);
	policy_dump.used += sl_format(policy_dump.line + policy_dump.used, room, fmt, args);
	__builtin_va_end(args);
	dump_lines(policy_dump.used + 1 == sizeof(policy_dump.line));
}

/* The next runnable task of @cpu in the table from slot *@idx on, or NULL. */
static struct sl_task *next_waiting(const struct sl_cpu *cpu, u32 *idx)
{
	while (*idx < sl_core.nr_tasks_end) {
		struct sl_task *t = task_in_slot((*idx)++);

		if (t && READ_ONCE(t->cpu) == cpu->id &&
		    smp_load_acquire(&t->state) == SL_TASK_RUNNABLE)
			return t;
	}
	return NULL;
}

static void dump_policy_task(struct sl_cpu *this_cpu, struct scx_dump_ctx *ctx, struct sl_task *t)
{
	if (t)
		SL_CALL_LOADED(this_cpu, dump_task, t, ctx, &t->p);
	dump_lines(true);
}

/* The running task first, as on Linux. */
static void dump_policy_cpu(struct sl_cpu *this_cpu, struct scx_dump_ctx *ctx, struct sl_cpu *cpu)
{
	struct sl_task *curr = smp_load_acquire(&cpu->curr);
	u32 idx = 0;
	struct sl_task *t = next_waiting(cpu, &idx);

	SL_CALL_LOADED(this_cpu, dump_cpu, NULL, ctx, cpu->id, !curr && !t);
	dump_lines(true);
	dump_policy_task(this_cpu, ctx, curr);
	for (; t; t = next_waiting(cpu, &idx))
		dump_policy_task(this_cpu, ctx, t);
}

/*
 * Let a policy that has failed write down what it knows, while its tasks are where it
 * put them. They may move meanwhile. Context: no lock held.
 */
static void dump_policy(struct sl_cpu *this_cpu)
{
	const struct sched_ext_ops *ops = &sl_core.ops;
	u64 now_ns = policy_now_ns();
	struct scx_dump_ctx ctx = {
		.kind = sl_core.exit_info.kind,
		.exit_code = sl_core.exit_info.exit_code,
		.reason = sl_core.exit_info.reason,
		.at_ns = now_ns,
		.at_jiffies = now_ns / 1000000,
	};

	if (!ops->dump && !ops->dump_cpu && !ops->dump_task)
		return;
	policy_dump.used = 0;
	policy_dump.left = ops->exit_dump_len ? ops->exit_dump_len : DUMP_LEN_DFL;
	lock_tasks();
	SL_CALL_LOADED(this_cpu, dump, NULL, &ctx);
	dump_lines(true);
	for_each_cpu(cpu)
		dump_policy_cpu(this_cpu, &ctx, cpu);
	unlock_tasks();
}
