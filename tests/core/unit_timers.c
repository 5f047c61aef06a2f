/* SPDX-License-Identifier: MIT */
/*
 * unit_timers.c - bpf_timer: order, pinned ones, and how many there may be.
 *
 * Read next: unit_maps.c, in whose elements they are.
 */
#include "unit.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct bpf_timer);
} timers SEC(".maps");

static struct bpf_timer *timer_at(u32 key)
{
	return bpf_map_lookup_elem(&timers, &key);
}

static u32 fired[64];
static u32 nr_fired;
static u64 again_ns;

static int on_timer(void *map, u32 *key, struct bpf_timer *timer)
{
	CHECK(map);
	CHECK(key, "an array's element has a number");
	CHECK(timer == timer_at(*key));
	fired[nr_fired++] = *key;
	if (again_ns)
		CHECK(!bpf_timer_start(timer, again_ns, 0));
	return 0;
}

static s32 timers_init(void)
{
	CHECK(bpf_timer_start(timer_at(0), 1, 0) == -22);
	CHECK(bpf_timer_cancel(timer_at(0)) == -22);
	for (u32 i = 0; i < 8; i++) {
		CHECK(!bpf_timer_init(timer_at(i), &timers, CLOCK_MONOTONIC));
		CHECK(bpf_timer_start(timer_at(i), 1, 0) == -22);
		CHECK(!bpf_timer_set_callback(timer_at(i), on_timer));
	}
	CHECK(bpf_timer_init(timer_at(3), &timers, CLOCK_MONOTONIC) == -16);
	return 0;
}

TEST(timers_in_order)
{
	struct sched_ext_ops ops = { .name = "timers", .init = timers_init };
	static const u32 expected[] = { 5, 2, 1, 0 };

	unit_machine(1);
	fake.now_ns = 1000;
	CHECK(!unit_enable(&ops));
	CHECK(fake.timer_at_ns == sl_core.watchdog_ns);
	CHECK(!bpf_timer_start(timer_at(2), 500, 0));
	CHECK(!bpf_timer_start(timer_at(0), 9000, 0));
	CHECK(!bpf_timer_start(timer_at(5), SL_UPTIME_NS + 1400, BPF_F_TIMER_ABS));
	CHECK(!bpf_timer_start(timer_at(4), 100, 0));
	CHECK(fake.timer_at_ns == 1100);
	CHECK(bpf_timer_cancel(timer_at(4)) == 1);
	CHECK(bpf_timer_cancel(timer_at(4)) == 0);
	CHECK(bpf_timer_start(timer_at(1), 800, 4) == -22);
	CHECK(!bpf_timer_start(timer_at(1), 800, 0));
	/* Starting again replaces. */
	CHECK(!bpf_timer_start(timer_at(1), 700, 0));
	fake.now_ns = 1100;
	sl_timers_run();
	CHECK(!nr_fired && fake.timer_at_ns == 1400);
	fake.now_ns = 1700;
	sl_timers_run();
	CHECK(nr_fired == 3 && fake.timer_at_ns == 10000);
	fake.now_ns = 10000;
	sl_timers_run();
	CHECK(nr_fired == 4 && !memcmp(fired, expected, sizeof(expected)));
	/* One that starts itself does not run twice in one go. */
	again_ns = 10;
	CHECK(!bpf_timer_start(timer_at(7), 0, 0));
	sl_timers_run();
	CHECK(nr_fired == 5 && fired[4] == 7 && fake.timer_at_ns == 10010);
	CHECK(bpf_timer_cancel(timer_at(7)) == 1);
	/* What lies behind the end of time is never. */
	fake.timer_at_ns = ~0ULL;
	CHECK(!bpf_timer_start(timer_at(6), ~0ULL, 0));
	sl_timers_run();
	CHECK(nr_fired == 5 && fake.timer_at_ns == sl_core.watchdog_ns);
	unit_end();
}

static void goes_offline(s32 cpu)
{
	CHECK(cpu == 1);
}

TEST(pinned_timers_run_where_they_were_started)
{
	struct sched_ext_ops ops = {
		.name = "timers",
		.init = timers_init,
		.cpu_offline = goes_offline,
	};

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	fake_cpu = 1;
	CHECK(!bpf_timer_start(timer_at(3), 500, BPF_F_TIMER_CPU_PIN));
	CHECK(!bpf_timer_start(timer_at(2), 400, 0));
	CHECK(fake.cpus[1].timer_at_ns == 500 && fake.timer_at_ns == 400);
	fake_cpu = 0;
	fake.now_ns = 500;
	sl_timers_run();
	CHECK(nr_fired == 1 && fired[0] == 2, "the other one is CPU 1's");
	CHECK(fake.timer_at_ns == sl_core.watchdog_ns);
	fake_cpu = 1;
	again_ns = 100;
	CHECK(!bpf_timer_start(timer_at(1), 0, BPF_F_TIMER_CPU_PIN | BPF_F_TIMER_ABS));
	sl_timers_run();
	/* In the order of their times; each is started again, and not pinned any more. */
	CHECK(nr_fired == 3 && fired[1] == 1 && fired[2] == 3 && fake.timer_at_ns == 600);
	again_ns = 0;
	/* A CPU that goes offline leaves them to the others. */
	CHECK(bpf_timer_cancel(timer_at(1)) == 1 && bpf_timer_cancel(timer_at(3)) == 1);
	CHECK(!bpf_timer_set_callback(timer_at(3), on_timer));
	CHECK(!bpf_timer_start(timer_at(3), 100, BPF_F_TIMER_CPU_PIN));
	fake.timer_at_ns = ~0ULL;
	CHECK(sl_cpu_offline(sl_this_cpu(), fake.now_ns));
	fake_cpu = 0;
	CHECK(fake.timer_at_ns == 600);
	fake.now_ns = 600;
	sl_timers_run();
	CHECK(nr_fired == 4 && fired[3] == 3);
	unit_end();
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SL_TIMERS_MAX + 1);
	__type(key, u64);
	__type(value, struct bpf_timer);
} many SEC(".maps");

static int on_many(void *map, u64 *key, struct bpf_timer *timer)
{
	CHECK(map && *key == 17 && timer == bpf_map_lookup_elem(&many, key));
	nr_fired++;
	return 0;
}

TEST(timers_have_an_end)
{
	struct sched_ext_ops ops = { .name = "many" };
	struct bpf_timer none = { { 0 } };
	struct bpf_timer *timer;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	for (u64 i = 0; i <= SL_TIMERS_MAX; i++) {
		CHECK(!bpf_map_update_elem(&many, &i, &none, BPF_ANY));
		timer = bpf_map_lookup_elem(&many, &i);
		CHECK(bpf_timer_init(timer, &many, CLOCK_MONOTONIC) ==
		      (i == SL_TIMERS_MAX ? -12 : 0));
		if (i != 17)
			continue;
		CHECK(!bpf_timer_set_callback(timer, on_many));
		CHECK(!bpf_timer_start(timer, 5, 0));
	}
	fake.now_ns = 6;
	sl_timers_run();
	CHECK(nr_fired == 1);
	unit_end();
}
