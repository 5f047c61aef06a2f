/* SPDX-License-Identifier: MIT */
/*
 * device.c - one block device with a queue.
 *
 * Works on up to `depth` requests at once, the rest wait in order of arrival. A
 * request takes latency_ns plus its size; nothing else is modelled (no heads,
 * no merging, no cache: the program says which calls reach the device).
 *
 * Called by interpret.c and loop.c. Read next: loop.c.
 */
#include "sim.h"

static struct sl_waiters waiters; /* for the device */
static u32 nr_active;

static void start(struct sim_task *t)
{
	const struct sim_device_config *d = &sim.options->device;
	u64 took_ns = d->latency_ns +
		      sim_time(((unsigned __int128)t->waiter.need * d->ns_per_kib + 1023) / 1024);

	nr_active++;
	sim_heap_push(sim_now_ns + took_ns + sim.options->costs.wakeup_ns, SIM_EVENT_DEVICE,
		      t->player.task);
}

/* The running task asks for @bytes; it blocks until loop.c wakes it. */
void sim_device_request(struct sim_task *t, u64 bytes)
{
	t->waiter.need = bytes;
	if (nr_active < sim.options->device.depth) {
		start(t);
		return;
	}
	sl_waiters_add(&waiters, &t->waiter);
}

/* A request is done: begin the next one. */
void sim_device_done(void)
{
	struct sl_waiter *w = sl_waiters_take(&waiters);

	SL_ASSERT(nr_active > 0);
	nr_active--;
	if (w)
		start(w->task);
}
