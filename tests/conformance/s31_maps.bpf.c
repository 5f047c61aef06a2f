/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S31: what every kind of map returns. */
#include "conform.h"

struct pair {
	u64 a, b;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct pair);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} percpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} storage SEC(".maps");

static u64 nr_fresh, nr_kept, nr_stale, here, elsewhere;

static void use_hash(void)
{
	struct pair value = { 1, 2 };
	u32 one = 1, two = 2, three = 3;
	struct pair *found;
	s64 absent_is_null = !bpf_map_lookup_elem(&hash, &one);
	s64 only_old = bpf_map_update_elem(&hash, &one, &value, BPF_EXIST);
	s64 added = bpf_map_update_elem(&hash, &one, &value, BPF_NOEXIST);
	s64 only_new = bpf_map_update_elem(&hash, &one, &value, BPF_NOEXIST);
	s64 second = bpf_map_update_elem(&hash, &two, &value, BPF_ANY);
	s64 full = bpf_map_update_elem(&hash, &three, &value, BPF_ANY);
	s64 deleted = bpf_map_delete_elem(&hash, &one);
	s64 twice = bpf_map_delete_elem(&hash, &one);
	s64 room = bpf_map_update_elem(&hash, &three, &value, BPF_ANY);
	s64 sum = 0;

	found = bpf_map_lookup_elem(&hash, &three);
	if (found) {
		found->a = 40;
		found = bpf_map_lookup_elem(&hash, &three);
		if (found)
			sum = found->a + found->b;
	}
	TELL(absent_is_null);
	TELL(only_old);
	TELL(added);
	TELL(only_new);
	TELL(second);
	TELL(full);
	TELL(deleted);
	TELL(twice);
	TELL(room);
	TELL(sum);
}

static void use_arrays(void)
{
	u32 zero = 0, two = 2;
	u64 value = 9;
	u64 *found = bpf_map_lookup_elem(&array, &zero);
	s64 starts_as_zero = found && *found == 0;
	s64 outside_is_null = !bpf_map_lookup_elem(&array, &two);
	s64 outside = bpf_map_update_elem(&array, &two, &value, BPF_ANY);
	s64 exists = bpf_map_update_elem(&array, &zero, &value, BPF_NOEXIST);
	s64 not_deleted = bpf_map_delete_elem(&array, &zero);

	TELL(starts_as_zero);
	TELL(outside_is_null);
	TELL(outside);
	TELL(exists);
	TELL(not_deleted);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u32 zero = 0;
	u64 *mine = bpf_map_lookup_elem(&percpu, &zero);
	u64 *found = bpf_task_storage_get(&storage, p, NULL, 0);

	if (mine)
		++*mine;
	if (found) {
		nr_kept += *found == (u64)p->pid;
		return;
	}
	found = bpf_task_storage_get(&storage, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!found)
		return;
	nr_fresh++;
	/* The place may have been another task's, who is gone. */
	nr_stale += *found != 0;
	*found = p->pid;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	use_hash();
	use_arrays();
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	u32 zero = 0;
	u64 *found = bpf_map_lookup_percpu_elem(&percpu, &zero, 0);

	here = found ? *found : 0;
	found = bpf_map_lookup_percpu_elem(&percpu, &zero, 1);
	elsewhere = found ? *found : 0;
	TELL(here);
	TELL(elsewhere);
	TELL(nr_fresh);
	TELL(nr_kept);
	TELL(nr_stale);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
