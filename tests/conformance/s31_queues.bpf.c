/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S31: queues and stacks, also as the inner maps of an array of maps. */
#include "conform.h"

struct two {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 2);
	__type(value, u32);
} left SEC(".maps"), right SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 2);
	__type(value, u32);
} stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__type(key, int);
	__array(values, struct two);
} both SEC(".maps") = {
	.values = { [0] = &left, [1] = &right },
};

static void use_queue(void)
{
	u32 one = 1, two = 2, three = 3, first = 9, next = 9, last = 9, none = 9, seen = 9;
	s64 empty = bpf_map_peek_elem(&left, &none);
	s64 pushed = bpf_map_push_elem(&left, &one, BPF_ANY);
	s64 again = bpf_map_push_elem(&left, &two, BPF_ANY);
	s64 full = bpf_map_push_elem(&left, &three, BPF_ANY);
	s64 no_flag = bpf_map_push_elem(&left, &three, BPF_NOEXIST);
	s64 forced = bpf_map_push_elem(&left, &three, BPF_EXIST);
	s64 peeked = bpf_map_peek_elem(&left, &seen);

	bpf_map_pop_elem(&left, &first);
	bpf_map_pop_elem(&left, &next);
	s64 at_end = bpf_map_pop_elem(&left, &last);

	TELL(empty);
	TELL(none);
	TELL(pushed);
	TELL(again);
	TELL(full);
	TELL(no_flag);
	TELL(forced);
	TELL(peeked);
	TELL(seen);
	TELL(first);
	TELL(next);
	TELL(at_end);
	TELL(last);
}

static void use_stack(void)
{
	u32 one = 1, two = 2, top = 0, bottom = 0;

	bpf_map_push_elem(&stack, &one, BPF_ANY);
	bpf_map_push_elem(&stack, &two, BPF_ANY);
	bpf_map_pop_elem(&stack, &top);
	bpf_map_pop_elem(&stack, &bottom);
	TELL(top);
	TELL(bottom);
}

static void use_array_of_maps(void)
{
	u32 which = 1, hole = 2, outside = 3, value = 7, through = 0;
	void *inner = bpf_map_lookup_elem(&both, &which);
	s64 no_map = !bpf_map_lookup_elem(&both, &hole);
	s64 no_element = !bpf_map_lookup_elem(&both, &outside);

	if (inner)
		bpf_map_push_elem(inner, &value, BPF_ANY);
	bpf_map_pop_elem(&right, &through);
	TELL(no_map);
	TELL(no_element);
	TELL(through);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	use_queue();
	use_stack();
	use_array_of_maps();
	return 0;
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .name = "t");
