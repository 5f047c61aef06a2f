/* SPDX-License-Identifier: MIT */
/*
 * policy.c - how a policy fails, and the watchdog.
 *
 *	first error wins -> bypass (built-in FIFO) -> ops.dump -> every task is
 *	taken back -> ops.exit; the run goes on, no task is lost (S30)
 *
 * Called by hosts, and from everywhere in the core through sl_policy_error().
 *
 * Read next: load.c, how a policy comes and goes.
 */
#include "core.h"

/* In place of sl_core.asked: a policy that has failed is never asked again. */
#define SL_FAILED (1U << 31)

static const char *exit_reason(enum scx_exit_kind kind)
{
	switch (kind) {
	case SCX_EXIT_UNREG:
		return "unregistered from user space";
	case SCX_EXIT_UNREG_BPF:
		return "unregistered from BPF";
	case SCX_EXIT_UNREG_KERN:
		return "unregistered from the main kernel";
	case SCX_EXIT_ERROR:
		return "runtime error";
	case SCX_EXIT_ERROR_BPF:
		return "scx_bpf_error";
	case SCX_EXIT_ERROR_STALL:
		return "runnable task stall";
	default:
		return "none";
	}
}

const char *sl_callback_name(enum sl_callback callback)
{
	static const char *const names[] = {
#define SL_CALLBACK(name) [SL_IN_##name] = #name,
		SL_CALLBACKS(SL_CALLBACK)
#undef SL_CALLBACK
	};

	return names[callback];
}

/*
 * Whether the policy is asked; what it has is in sl_core.ops all the time. One that
 * has failed is not: another CPU may find it wrong while it still comes, and what it
 * takes back must not come again.
 */
static void set_bypass(bool is_bypassed)
{
	u32 bypassed = 0, asked = 1U << SL_IN_NOTHING;

	if (is_bypassed) {
		WRITE_ONCE(sl_core.asked, bypassed);
		return;
	}
#define SL_OP_BIT(name) asked |= sl_core.ops.name ? 1U << SL_IN_##name : 0;
	SL_OPERATIONS(SL_OP_BIT)
#undef SL_OP_BIT
	__atomic_compare_exchange_n(&sl_core.asked, &bypassed, asked, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

static void claim_exit(enum scx_exit_kind kind, s64 code, const struct sl_task *t, const char *fmt,
		       __builtin_va_list args)
{
	struct scx_exit_info *info = &sl_core.exit_info;

	if (!sl_cas_u64(&sl_core.exit_claimed, 0, 1))
		return;
	sl_format(sl_core.exit_msg, sizeof(sl_core.exit_msg), fmt, args);
	info->kind = kind;
	info->exit_code = code;
	info->reason = exit_reason(kind);
	info->msg = sl_core.exit_msg;
	info->exit_cpu = kind < SCX_EXIT_ERROR		   ? -1 :
			 kind == SCX_EXIT_ERROR_STALL && t ? scx_bpf_task_cpu(&t->p) :
							     (s32)sl_host_cpu();
	sl_core.exit_pid = t ? t->p.pid : 0;
	WRITE_ONCE(sl_core.asked, SL_FAILED);
	smp_store_release(&sl_core.exit_ready, 1);
}

/**
 * sl_policy_error - the policy did wrong
 * @kind: SCX_EXIT_ERROR*
 * @t: the task concerned, or NULL
 * @fmt: what it did
 *
 * The first report wins. From now on the policy is not asked; its tasks are
 * taken back when this CPU drops its locks.
 *
 * Context: any, locks may be held.
 */
void sl_policy_error(enum scx_exit_kind kind, const struct sl_task *t, const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	claim_exit(kind, 0, t, fmt, args);
	__builtin_va_end(args);
}

void sl_scx_error(const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	claim_exit(SCX_EXIT_ERROR_BPF, 0, sl_this_cpu()->callback_task, fmt, args);
	__builtin_va_end(args);
}

void sl_scx_exit(s64 code, const char *fmt, ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	claim_exit(SCX_EXIT_UNREG_BPF, code, NULL, fmt, args);
	__builtin_va_end(args);
}

/* The policy does nothing wrong, but cannot go on. */
static sl_cold __attribute__((format(printf, 2, 3))) void exit_by_kernel(s64 code, const char *fmt,
									 ...)
{
	__builtin_va_list args;

	__builtin_va_start(args, fmt);
	claim_exit(SCX_EXIT_UNREG_KERN, code, NULL, fmt, args);
	__builtin_va_end(args);
}

void sl_uei_record(struct user_exit_info *uei, const struct scx_exit_info *ei)
{
	sl_print_to(uei->reason, sizeof(uei->reason), "%s", ei->reason);
	sl_print_to(uei->msg, sizeof(uei->msg), "%s", ei->msg ? ei->msg : "");
	uei->exit_code = ei->exit_code;
	smp_store_release(&uei->kind, (int)ei->kind);
}

/*
 * Every runnable task goes to the global queue, wherever it is now. One that is being
 * woken is waited for: its waker may not have seen the bypass, and give it to the policy.
 */
static void reclaim_task(struct sl_cpu *this_cpu, struct sl_task *t)
{
	u8 state;
	struct sl_cpu *cpu = lock_and_take(t, &state);

	if (state == SL_TASK_RUNNABLE) {
		this_cpu->holds_lock = true;
		t->in_custody = false;
		t->p.scx.ddsp_dsq_id = SCX_DSQ_INVALID;
		do_enqueue_task(this_cpu, cpu, t, 0);
		this_cpu->holds_lock = false;
	}
	sl_unlock(&cpu->lock);
}

/*
 * Context: bypass is on, no lock held. Holds the table's locks, so that no task
 * is detached, and its memory given back, meanwhile.
 */
static void reclaim_all(struct sl_cpu *this_cpu)
{
	struct sl_task *t;

	lock_tasks();
	for_each_task(t)
		reclaim_task(this_cpu, t);
	unlock_tasks();
	flush_deferred(this_cpu);
	kick_all();
}

static void call_exit(struct sl_cpu *this_cpu)
{
	SL_CALL_LOADED(this_cpu, exit, NULL, &sl_core.exit_info);
}

/* The policy has failed, and this CPU may be the one that cleans up. */
static void finish_failure(struct sl_cpu *this_cpu)
{
	/* What it says of the failure is read from here on. */
	if (!smp_load_acquire(&sl_core.exit_ready) || READ_ONCE(sl_core.exit_done) ||
	    !sl_cas_u64(&sl_core.exit_done, 0, 1))
		return;
	SL_ASSERT(sl_is_bypassed());
	if (sl_core.exit_info.kind >= SCX_EXIT_ERROR)
		dump_policy(this_cpu);
	reclaim_all(this_cpu);
	call_exit(this_cpu);
	sl_host_policy_failed(&sl_core.exit_info, sl_core.exit_pid);
}

static u64 timeout_ns(void)
{
	u32 timeout_ms = READ_ONCE(sl_core.ops.timeout_ms);

	return (timeout_ms ? timeout_ms : 30000) * 1000000ULL;
}

/* The watchdog is one of the timers that the host is asked for; see bpf/timer.c. */
static void start_watchdog(void)
{
	smp_store_release(&sl_core.watchdog_ns, sl_host_policy_now_ns() + timeout_ns() / 2);
	set_host_timer(ANY_CPU);
}

/*
 * Say where @t has waited. Racy: it may move meanwhile. Context: a queue that it is
 * on stays one while the policy is loaded.
 */
static sl_cold void report_stall(const struct sl_task *t, u64 waited_ns)
{
	const struct sl_dsq *q = smp_load_acquire(&t->dsq);
	u64 state = smp_load_acquire(&t->ops_state) & SL_OPSS_MASK;
	char where[96] = "";

	if (q && q->is_local)
		sl_print_to(where, sizeof(where), ", in the local queue of CPU %d", q->cpu);
	else if (q)
		sl_print_to(where, sizeof(where), ", on DSQ 0x%llx, from which no CPU has taken it",
			    READ_ONCE(q->id));
	else if (state == SL_OPSS_QUEUED)
		sl_print_to(where, sizeof(where),
			    ", held by the policy, which has not dispatched it");
	sl_policy_error(SCX_EXIT_ERROR_STALL, t, "%s[%d] failed to run for %llu.%03llus%s",
			t->p.comm, t->p.pid, waited_ns / 1000000000, waited_ns / 1000000 % 1000,
			where);
}

/*
 * S29: a runnable task that has not run for the policy's timeout ends it. Looks
 * at every task: half a timeout apart, that costs little. Context: no lock held.
 */
static void watchdog(struct sl_cpu *this_cpu)
{
	u64 now_ns = sl_host_now_ns();
	struct sl_task *t;

	if (sl_is_bypassed())
		return;
	/* The table's locks keep the tasks from being detached and freed. */
	lock_tasks();
	for_each_task(t) {
		/* If it has run since, this is from before @now_ns or later. */
		u64 waited_ns = smp_load_acquire(&t->state) == SL_TASK_RUNNABLE ?
					now_ns - READ_ONCE(t->runnable_at_ns) :
					0;

		if ((s64)waited_ns > (s64)timeout_ns()) {
			report_stall(t, waited_ns);
			break;
		}
	}
	unlock_tasks();
	flush(this_cpu);
}

struct sl_report sl_report(void)
{
	return (struct sl_report){
		.policy = sl_core.ops.name,
		.is_bypassed = sl_is_bypassed(),
		.has_failed = READ_ONCE(sl_core.exit_ready),
		.exit = &sl_core.exit_info,
		.why = sl_core.exit_msg,
	};
}

struct sl_cpu_report sl_cpu_report(s32 cpu)
{
	const struct sl_cpu *c = &sl_core.cpus[cpu];

	return (struct sl_cpu_report){
		.nr_switches = READ_ONCE(c->nr_switches),
		.idle_ns = READ_ONCE(c->idle_ns),
		.callback = sl_callback_name(READ_ONCE(c->callback)),
		.callback_task = c->callback_task,
	};
}
