/* SPDX-License-Identifier: MIT */
/*
 * speed.c - CPUs of different capacity, whose clock frequency a policy may set.
 *
 * A CPU of capacity c at frequency f, both of SCX_CPUPERF_ONE, does c * f / SCX_CPUPERF_ONE
 * parts of what the fastest one does meanwhile: that is its speed. Work is counted in parts
 * of a nanosecond. A burst ends with the first nanosecond in which all of it is done; what
 * was done beyond is work of the next burst. So all time is whole, and no work is lost.
 *
 * Only a machine with --capacity has speeds; on any other one nothing here is called.
 *
 * Called by options.c, worker.c, interpret.c and sched.c. Read next: cpu.c.
 */
#include <stdio.h>

#include <scx/native.h>

#include "sim.h"

#define FULL SCX_CPUPERF_ONE
/* The lowest frequency of a CPU, also for a policy that asks for less. */
#define FREQUENCY_MIN (FULL / 4)

static int parse(const struct sim_options *o, u16 *capacity)
{
	const char *text = o->capacity;
	u64 first, last, value;

	while (text && *text) {
		if (!sim_take_number(&text, '-', &first)) {
			if (!sim_take_number(&text, '=', &first))
				return -1;
			last = first;
		} else if (!sim_take_number(&text, '=', &last)) {
			return -1;
		}
		if (!sim_take_number(&text, ',', &value) || first > last || last >= o->nr_cpus ||
		    !value || value > FULL)
			return -1;
		for (u64 cpu = first; capacity && cpu <= last; cpu++)
			capacity[cpu] = (u16)value;
	}
	return 0;
}

/* Return: 0, or -1 with @why filled in. */
int sim_speed_parse(const struct sim_options *o, char *why, u32 why_bytes)
{
	if (!parse(o, NULL))
		return 0;
	snprintf(why, why_bytes,
		 "--capacity: '%.40s' is no list of FIRST-LAST=CAPACITY, of CPUs from 0 to %u, each 1 to %u",
		 o->capacity, o->nr_cpus - 1, FULL);
	return -1;
}

static void set_speed(struct sim_cpu *c, u32 frequency)
{
	c->frequency = (u16)frequency;
	c->speed = (u16)(c->capacity * frequency / FULL);
	if (!c->speed)
		c->speed = 1;
	sl_host_record(SL_RECORD_SPEED, 0, c->idx, 0, c->speed);
}

/* Before the first task begins. */
void sim_speed_begin(void)
{
	u16 capacity[SCX_CPUS_MAX];

	if (!sim.options->capacity)
		return;
	sim.has_speeds = true;
	/* What looks at speeds is where costs are looked at. */
	sim.is_switch_free = false;
	sim.are_calls_free = false;
	for (u32 i = 0; i < sim.options->nr_cpus; i++)
		capacity[i] = FULL;
	parse(sim.options, capacity);
	for (u32 i = 0; i < sim.options->nr_cpus; i++) {
		sim.cpus[i].capacity = capacity[i];
		set_speed(&sim.cpus[i], FULL);
	}
}

/* What is left of the burst of @t takes another time on @cpu than where that was computed. */
void sim_speed_fit(struct sim_task *t, s32 cpu)
{
	u32 speed = sim.cpus[cpu].speed;
	unsigned __int128 left;

	if (!t->remaining_ns || t->speed == speed)
		return;
	left = (unsigned __int128)t->remaining_ns * t->speed - t->done_ahead;
	t->remaining_ns = sim_time((left + speed - 1) / speed);
	t->done_ahead = (u16)((unsigned __int128)t->remaining_ns * speed - left);
	t->speed = (u16)speed;
}

/* @t begins a burst, whose length is that on the fastest CPU. */
void sim_speed_begin_burst(struct sim_task *t)
{
	t->speed = FULL;
	sim_speed_fit(t, sim_cpu_idx);
}

u32 sim_capacity(s32 cpu)
{
	return sim.has_speeds ? sim.cpus[cpu].capacity : FULL;
}

u32 sim_frequency(s32 cpu)
{
	return sim.has_speeds ? sim.cpus[cpu].frequency : FULL;
}

/* It changes at once. A machine without speeds has one frequency. */
void sim_set_frequency(s32 cpu, u32 frequency)
{
	struct sim_cpu *c = &sim.cpus[cpu];

	if (frequency < FREQUENCY_MIN)
		frequency = FREQUENCY_MIN;
	if (!sim.has_speeds || frequency == c->frequency)
		return;
	set_speed(c, frequency);
	sim_cpu_speed_changed(c);
}
