/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * everything.bpf.c - uses each part of the policy contract once.
 *
 * Not a scheduler to learn from: it shows that one text is accepted by the
 * native compilers, by clang for BPF, and by the verifier of a real kernel.
 * It schedules well enough to be held by one: FIFO, with detours.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

#define VTIME_DSQ 0
#define FIFO_DSQ 1
#define NR_LEVELS 8

const volatile u64 slice_ns = 5000000;

UEI_DEFINE(uei);

struct task_ctx {
	u64 nr_queued;
	u32 level;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct locked {
	struct bpf_spin_lock lock;
	u64 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct locked);
} locked_map SEC(".maps");

struct timed {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timed);
} timed_map SEC(".maps");

struct told {
	u64 pid_tgid;
	char text[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

static const char nr_tasks_text[] = "%llu tasks";

struct owner {
	struct bpf_cpumask __kptr *mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct owner);
} owner_map SEC(".maps");

/* The old way to give sizes, which upstream's schedulers use. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, 2);
} stats SEC(".maps");

private(LOCK) struct bpf_spin_lock global_lock;
u64 counts[NR_LEVELS];
u64 total;

static long add_index(u64 i, void *ctx)
{
	u64 *sum = ctx;

	*sum += i;
	return 0;
}

static int on_timer(void *map, int *key, struct timed *timed)
{
	__sync_fetch_and_add(&total, 1);
	bpf_timer_start(&timed->timer, 1000000, 0);
	return 0;
}

static void count(u32 idx)
{
	u64 *n = bpf_map_lookup_elem(&stats, &idx);

	if (n)
		(*n)++;
}

s32 BPF_STRUCT_OPS(everything_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	if (wake_flags & SCX_WAKE_SYNC) {
		cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, p->cpus_ptr,
					     SCX_PICK_IDLE_CORE);
		if (cpu >= 0)
			return cpu;
	}
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (is_idle) {
		count(0);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(everything_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *ctx = bpf_task_storage_get(&task_ctxs, p, 0,
						    BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_attr *attr = task_attr(p);
	u32 zero = 0;
	struct locked *locked = bpf_map_lookup_elem(&locked_map, &zero);
	u64 *n;

	if (!ctx || !locked) {
		scx_bpf_error("no memory for %s[%d], slice %llu", p->comm, p->pid, slice_ns);
		return;
	}
	if (task_attr_given(attr, TASK_ATTR_TICKETS))
		ctx->level = attr->tickets;
	bpf_spin_lock(&locked->lock);
	locked->nr++;
	bpf_spin_unlock(&locked->lock);
	bpf_spin_lock(&global_lock);
	total++;
	bpf_spin_unlock(&global_lock);
	n = MEMBER_VPTR(counts, [ctx->level]);
	if (n)
		(*n)++;
	n = ARRAY_ELEM_PTR(counts, ctx->level, NR_LEVELS);
	if (n)
		(*n)++;
	count(1);
	if (ctx->nr_queued++ % 2)
		scx_bpf_dsq_insert(p, FIFO_DSQ, slice_ns, enq_flags);
	else
		scx_bpf_dsq_insert_vtime(p, VTIME_DSQ, slice_ns, p->scx.dsq_vtime, enq_flags);
	if (enq_flags & SCX_ENQ_WAKEUP && bpf_get_prandom_u32() % 64 == 0)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(everything_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	u64 sum = 0;
	u32 n = 0;
	u32 i;

	bpf_for(i, 0, NR_LEVELS)
		n += counts[i];
	bpf_repeat(3)
		n++;
	bpf_loop(10, add_index, &sum, 0);
	bpf_for_each(scx_dsq, p, VTIME_DSQ, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || is_migration_disabled(p))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_ns);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0))
			return;
	}
	while (sum && can_loop)
		sum /= 3;
	/* On n the verifier would follow each value that it can have. */
	if (total % 1024 == 7)
		bpf_printk("cpu %d: %u %llu at %llu", cpu, n, sum, scx_bpf_now());
	if (scx_bpf_dsq_nr_queued(FIFO_DSQ) && scx_bpf_dsq_move_to_local(FIFO_DSQ))
		return;
	if (scx_bpf_dsq_move_to_local(VTIME_DSQ, 0))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, slice_ns);
}

void BPF_STRUCT_OPS(everything_tick, struct task_struct *p)
{
	if (p->se.sum_exec_runtime % 4096 == 1)
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(everything_stopping, struct task_struct *p, bool runnable)
{
	if (runnable)
		count(0);
	p->scx.dsq_vtime += 1000000 * 100 / p->scx.weight;
}

bool BPF_STRUCT_OPS(everything_yield, struct task_struct *from, struct task_struct *to)
{
	return !to && scx_bpf_task_running(from);
}

s32 BPF_STRUCT_OPS(everything_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (args->fork)
		count(1);
	if (!bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -12;
	return 0;
}

void BPF_STRUCT_OPS(everything_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, 0);
}

void BPF_STRUCT_OPS(everything_set_weight, struct task_struct *p, u32 weight)
{
	if (weight > 100)
		count(0);
}

static s32 keep_a_mask(void)
{
	u32 zero = 0;
	struct owner *owner = bpf_map_lookup_elem(&owner_map, &zero);
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -12;
	bpf_cpumask_clear(mask);
	bpf_cpumask_set_cpu(0, mask);
	if (bpf_cpumask_empty(cast_mask(mask)) || !owner) {
		bpf_cpumask_release(mask);
		return -22;
	}
	mask = bpf_kptr_xchg(&owner->mask, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

static s32 tell(void)
{
	struct told *told = bpf_ringbuf_reserve(&ring, sizeof(*told), 0);
	char text[16] = "";
	u64 data[] = { total };

	if (!told)
		return -12;
	bpf_snprintf(text, sizeof(text), nr_tasks_text, data, sizeof(data));
	bpf_probe_read_str(told->text, sizeof(told->text), text);
	told->pid_tgid = bpf_get_current_pid_tgid();
	bpf_ringbuf_submit(told, 0);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(everything_init)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	u32 nr_online = bpf_cpumask_weight(online);
	u32 zero = 0;
	struct timed *timed = bpf_map_lookup_elem(&timed_map, &zero);
	s32 failed;

	scx_bpf_put_cpumask(online);
	if (!timed || nr_online > scx_bpf_nr_cpu_ids())
		return -22;
	bpf_timer_init(&timed->timer, &timed_map, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timed->timer, on_timer);
	bpf_timer_start(&timed->timer, 1000000, 0);
	failed = keep_a_mask();
	if (!failed)
		failed = tell();
	if (failed)
		return failed;
	failed = scx_bpf_create_dsq(VTIME_DSQ, -1);
	if (failed)
		return failed;
	return scx_bpf_create_dsq(FIFO_DSQ, -1);
}

void BPF_STRUCT_OPS(everything_dump, struct scx_dump_ctx *ctx)
{
	scx_bpf_dump("total %llu", total);
}

void BPF_STRUCT_OPS(everything_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(everything_ops,
	       .select_cpu = (void *)everything_select_cpu,
	       .enqueue = (void *)everything_enqueue,
	       .dispatch = (void *)everything_dispatch,
	       .tick = (void *)everything_tick,
	       .stopping = (void *)everything_stopping,
	       .yield = (void *)everything_yield,
	       .init_task = (void *)everything_init_task,
	       .enable = (void *)everything_enable,
	       .set_weight = (void *)everything_set_weight,
	       .init = (void *)everything_init,
	       .dump = (void *)everything_dump,
	       .exit = (void *)everything_exit,
	       .timeout_ms = 5000,
	       .name = "everything");
