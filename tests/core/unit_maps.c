/* SPDX-License-Identifier: MIT */
/*
 * unit_maps.c - BPF maps against plain arrays: full, empty, reused.
 *
 * Read next: bpf/maps.c.
 */
#include "core.h"
#include "unit.h"

int sl_arena_spin_lock(u32 *holder);

#define HASH_MAX 50
#define NR_KEYS 120

/* 12 bytes, and no padding: keys are compared byte by byte. */
struct key {
	u32 a, b, c;
};
struct value {
	u64 x;
	u32 y;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HASH_MAX);
	__type(key, u32);
	__type(value, struct value);
} by_number SEC(".maps");

/* The old way to say it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HASH_MAX);
	__uint(key_size, sizeof(struct key));
	__uint(value_size, sizeof(struct value));
} by_struct SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 5);
	__type(key, u32);
	__type(value, u64);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, u32);
} per_cpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct value);
} storage SEC(".maps");

static struct sched_ext_ops empty_ops = { .name = "maps" };

struct model {
	bool is_there;
	struct value value;
	struct value *at; /* stays while it is there */
};

/* The same operation on either hash. */
static void *hash_find(bool wide, u32 k)
{
	struct key key = { k, 7, k * k };

	return wide ? bpf_map_lookup_elem(&by_struct, &key) : bpf_map_lookup_elem(&by_number, &k);
}

static long hash_put(bool wide, u32 k, struct value *value, u64 flags)
{
	struct key key = { k, 7, k * k };

	return wide ? bpf_map_update_elem(&by_struct, &key, value, flags) :
		      bpf_map_update_elem(&by_number, &k, value, flags);
}

static long hash_delete(bool wide, u32 k)
{
	struct key key = { k, 7, k * k };

	return wide ? bpf_map_delete_elem(&by_struct, &key) : bpf_map_delete_elem(&by_number, &k);
}

static void put_random(bool wide, struct model *m, u32 k, u32 *nr)
{
	struct value v = { sl_host_random(), k };
	u64 flags = fake_below(3); /* ANY, NOEXIST, EXIST */
	long expected = 0;

	if (m->is_there && flags == BPF_NOEXIST)
		expected = -17;
	else if (!m->is_there && flags == BPF_EXIST)
		expected = -2;
	else if (!m->is_there && *nr == HASH_MAX)
		expected = -7;
	CHECK(hash_put(wide, k, &v, flags) == expected, "flags %llu", flags);
	if (expected)
		return;
	if (!m->is_there) {
		++*nr;
		m->at = hash_find(wide, k);
	}
	m->is_there = true;
	m->value = v;
}

TEST(map_hash)
{
	static struct model model[NR_KEYS];
	bool wide = fake_below(2);
	u32 nr = 0;

	unit_machine(1);
	CHECK(!unit_enable(&empty_ops));
	for (u32 i = 0; i < 30000; i++) {
		u32 k = fake_below(NR_KEYS);
		struct model *m = &model[k];
		struct value *v = hash_find(wide, k);

		CHECK(v == (m->is_there ? m->at : NULL));
		CHECK(!v || (v->x == m->value.x && v->y == m->value.y));
		if (fake_below(5) < (i / 1000 % 2 ? 4U : 2U)) {
			put_random(wide, m, k, &nr);
		} else {
			CHECK(hash_delete(wide, k) == (m->is_there ? 0 : -2));
			nr -= m->is_there;
			m->is_there = false;
		}
	}
	unit_end();
}

TEST(map_arrays)
{
	u64 nine = 9;
	u32 two = 2, key = 4, out = 5;
	u32 *cell;

	unit_machine(3);
	CHECK(!unit_enable(&empty_ops));
	CHECK(*(u64 *)bpf_map_lookup_elem(&numbers, &key) == 0);
	CHECK(!bpf_map_update_elem(&numbers, &key, &nine, BPF_ANY));
	CHECK(*(u64 *)bpf_map_lookup_elem(&numbers, &key) == 9);
	CHECK(bpf_map_update_elem(&numbers, &key, &nine, BPF_NOEXIST) == -17);
	CHECK(bpf_map_update_elem(&numbers, &out, &nine, BPF_ANY) == -7);
	CHECK(!bpf_map_lookup_elem(&numbers, &out));
	CHECK(bpf_map_delete_elem(&numbers, &key) == -22);
	for (fake_cpu = 0; fake_cpu < 3; fake_cpu++) {
		cell = bpf_map_lookup_elem(&per_cpu, &two);
		CHECK(cell && !*cell);
		*cell = 100 + (u32)fake_cpu;
	}
	fake_cpu = 0;
	for (u32 cpu = 0; cpu < 3; cpu++) {
		cell = bpf_map_lookup_percpu_elem(&per_cpu, &two, cpu);
		CHECK(cell && *cell == 100 + cpu);
	}
	CHECK(!bpf_map_lookup_percpu_elem(&per_cpu, &two, 3));
	unit_end();
}

TEST(map_task_storage)
{
	struct unit_task *t, *other;
	struct value first = { 5, 6 };
	struct value *v;

	unit_machine(1);
	CHECK(!unit_enable(&empty_ops));
	t = unit_attach(1);
	CHECK(!bpf_task_storage_get(&storage, &t->core.p, NULL, 0));
	CHECK(!bpf_task_storage_get(&numbers, &t->core.p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE));
	CHECK(bpf_task_storage_delete(&storage, &t->core.p) == -2);
	v = bpf_task_storage_get(&storage, &t->core.p, &first, BPF_LOCAL_STORAGE_GET_F_CREATE);
	CHECK(v && v->x == 5 && v->y == 6);
	v->x = 8;
	CHECK(bpf_task_storage_get(&storage, &t->core.p, &first, BPF_LOCAL_STORAGE_GET_F_CREATE) ==
	      v);
	CHECK(v->x == 8);
	sl_task_detach(&t->core);
	CHECK(!bpf_task_storage_get(&storage, &t->core.p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE));
	/* The next task with its number starts without. */
	other = t;
	sl_task_setup(&other->core, t->core.idx, 2, "next");
	sl_task_attach(&other->core, NULL);
	CHECK(!bpf_task_storage_get(&storage, &other->core.p, NULL, 0));
	v = bpf_task_storage_get(&storage, &other->core.p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	CHECK(v && !v->x && !v->y);
	CHECK(!bpf_task_storage_delete(&storage, &other->core.p));
	CHECK(!bpf_task_storage_get(&storage, &other->core.p, NULL, 0));
	sl_task_detach(&other->core);
	unit_end();
}

/* Data are pristine at each start. */
TEST(map_contents_do_not_outlive_the_policy)
{
	struct value v = { 1, 2 };
	u32 key = 1;

	unit_machine(1);
	for (u32 round = 0; round < 2; round++) {
		CHECK(!unit_enable(&empty_ops));
		CHECK(!hash_find(false, 3));
		CHECK(!*(u64 *)bpf_map_lookup_elem(&numbers, &key));
		CHECK(!hash_put(false, 3, &v, BPF_ANY));
		*(u64 *)bpf_map_lookup_elem(&numbers, &key) = 4;
		sl_policy_disable(false);
	}
	unit_end();
}

/* Wherever memory ends, loading fails cleanly. */
TEST(map_no_memory)
{
	u64 before;
	int err = -12;
	u32 nr = 0;

	unit_machine(2);
	before = fake.alloc_bytes;
	for (; err; nr++) {
		fake.alloc_fail_after = nr;
		err = unit_enable(&empty_ops);
		fake.alloc_fail_after = ~0ULL;
		CHECK(err == 0 || err == -12, "%d", err);
		CHECK(!err || fake.alloc_bytes == before, "failing allocation %u leaves %llu bytes",
		      nr, fake.alloc_bytes - before);
	}
	CHECK(nr > 7, "%u allocations", nr);
	unit_end();
}

static int enable_site(u32 type, u32 key_bytes, u32 value_bytes, u32 nr_max)
{
	static void *variable;
	struct sl_map_site site = {
		.map = &variable,
		.name = "&bad",
		.type = type,
		.key_bytes = key_bytes,
		.value_bytes = value_bytes,
		.max_entries = nr_max,
	};
	struct sl_policy policy = { .ops = &empty_ops, .sites = &site, .sites_end = &site + 1 };
	int err = sl_policy_enable(&policy, false);

	if (!err)
		sl_policy_disable(false);
	CHECK(!variable, "the handle stays");
	return err;
}

TEST(map_impossible_ones)
{
	unit_machine(1);
	CHECK(enable_site(BPF_MAP_TYPE_LRU_HASH, 4, 4, 1) == -95);
	CHECK(enable_site(BPF_MAP_TYPE_HASH, 4, 4, 0) == -22);
	CHECK(enable_site(BPF_MAP_TYPE_HASH, 4, 0, 1) == -22);
	CHECK(enable_site(BPF_MAP_TYPE_ARRAY, 8, 4, 1) == -22);
	CHECK(enable_site(BPF_MAP_TYPE_HASH, 4, 4, (1U << 31) + 1) == -7);
	CHECK(enable_site(BPF_MAP_TYPE_HASH, 1, 1, 1) == 0);
	unit_end();
}

/* What a host writes into task_attrs must fit what the policy calls so. */
TEST(map_of_the_same_name)
{
	static void *variable;
	static struct sl_map_site site = {
		.map = &variable,
		.name = "&task_attrs",
		.key_bytes = 4,
		.type = BPF_MAP_TYPE_HASH,
		.max_entries = 4,
	};
	struct sl_policy policy = { .ops = &empty_ops, .sites = &site, .sites_end = &site + 1 };

	unit_machine(1);
	site.value_bytes = sizeof(struct task_attr) + 200;
	CHECK(!sl_policy_enable(&policy, false) && !sl_bpf.attr_map);
	sl_policy_disable(false);
	site.value_bytes = sizeof(struct task_attr);
	CHECK(!sl_policy_enable(&policy, false) && sl_bpf.attr_map);
	unit_end();
}

TEST(map_too_many)
{
	static void *variables[SL_MAPS_MAX + 1];
	static struct sl_map_site sites[SL_MAPS_MAX + 1];
	struct sl_policy policy = { .ops = &empty_ops, .sites = sites };

	unit_machine(1);
	for (u32 i = 0; i <= SL_MAPS_MAX; i++)
		sites[i] = (struct sl_map_site){
			.map = &variables[i],
			.name = "&m",
			.key_bytes = 4,
			.type = BPF_MAP_TYPE_ARRAY,
			.value_bytes = 4,
			.max_entries = 1,
		};
	policy.sites_end = &sites[SL_MAPS_MAX + 1];
	CHECK(sl_policy_enable(&policy, false) == -7);
	policy.sites_end = &sites[SL_MAPS_MAX];
	CHECK(!sl_policy_enable(&policy, false));
	unit_end();
}

/* ---- what a value holds for the core ------------------------------------- */

struct holder {
	struct bpf_spin_lock lock;
	u32 number;
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct holder);
} held_array SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct holder);
} held_hash SEC(".maps");

static u32 nr_fired;

static int on_fire(void *map, u32 *key, struct holder *h)
{
	(void)map;
	(void)key;
	nr_fired += h->number;
	return 0;
}

/* Start the timer of @h, which must not have been there before. */
static void arm(struct holder *h, bool is_hash)
{
	CHECK(h);
	CHECK(bpf_timer_start(&h->timer, 100, 0) == -22);
	CHECK(!(is_hash ? bpf_timer_init(&h->timer, &held_hash, CLOCK_MONOTONIC) :
			  bpf_timer_init(&h->timer, &held_array, CLOCK_MONOTONIC)));
	CHECK(!bpf_timer_set_callback(&h->timer, on_fire));
	CHECK(!bpf_timer_start(&h->timer, 100, 0));
}

static u32 fired_after(u64 ns)
{
	u32 before = nr_fired;

	fake.now_ns += ns;
	sl_timers_run();
	return nr_fired - before;
}

TEST(map_values_hold_timers_and_locks)
{
	struct holder fresh = { .number = 1, .lock = { 7 } };
	struct holder *h;
	u32 key = 1;

	unit_machine(1);
	CHECK(!unit_enable(&empty_ops));
	h = bpf_map_lookup_elem(&held_array, &key);
	CHECK(!bpf_map_update_elem(&held_array, &key, &fresh, BPF_ANY));
	arm(h, false);
	CHECK(fired_after(200) == 1);
	CHECK(!bpf_timer_start(&h->timer, 100, 0));
	/* As on Linux: an update ends what the old value had started. */
	CHECK(!bpf_map_update_elem(&held_array, &key, &fresh, BPF_ANY));
	CHECK(fired_after(200) == 0 && bpf_timer_cancel(&h->timer) == -22);
	arm(h, false);
	CHECK(fired_after(200) == 1);
	/* A lock that is held stays so, whatever is written over it. */
	bpf_spin_lock(&h->lock);
	fresh.lock.val = 0;
	CHECK(!bpf_map_update_elem(&held_array, &key, &fresh, BPF_ANY));
	bpf_spin_unlock(&h->lock);
	fresh.lock.val = 1;
	CHECK(!bpf_map_update_elem(&held_array, &key, &fresh, BPF_ANY));
	bpf_spin_lock(&h->lock);
	bpf_spin_unlock(&h->lock);

	CHECK(!bpf_map_update_elem(&held_hash, &key, &fresh, BPF_ANY));
	h = bpf_map_lookup_elem(&held_hash, &key);
	arm(h, true);
	CHECK(!bpf_map_update_elem(&held_hash, &key, &fresh, BPF_EXIST));
	CHECK(fired_after(200) == 0);
	arm(bpf_map_lookup_elem(&held_hash, &key), true);
	CHECK(!bpf_map_delete_elem(&held_hash, &key));
	CHECK(fired_after(200) == 0);
	/* The entry is another element's, and starts without a timer. */
	key = 9;
	CHECK(!bpf_map_update_elem(&held_hash, &key, &fresh, BPF_NOEXIST));
	arm(bpf_map_lookup_elem(&held_hash, &key), true);
	CHECK(fired_after(200) == 1);
	unit_end();
}

static struct bpf_res_spin_lock lock_a, lock_b;

TEST(locks_that_wait_for_each_other)
{
	unit_machine(3);
	fake_cpu = 1;
	CHECK(!bpf_res_spin_lock(&lock_b));
	fake_cpu = 0;
	CHECK(!bpf_res_spin_lock(&lock_a));
	CHECK(bpf_res_spin_lock(&lock_a) == -35);
	/* CPU 1 is where it waits for the other lock. */
	sl_core.cpus[1].wanted_lock = &lock_a.val;
	CHECK(bpf_res_spin_lock(&lock_b) == -35 && !sl_core.cpus[0].wanted_lock);
	CHECK(sl_arena_spin_lock(&lock_b.val) == -110);
	bpf_res_spin_unlock(&lock_a);
	fake_cpu = 1;
	bpf_res_spin_unlock(&lock_b);
	CHECK(!bpf_res_spin_lock(&lock_a) && !bpf_res_spin_lock(&lock_b));
	unit_end();
}
