/* SPDX-License-Identifier: MIT */
/*
 * device.c - `read` and `write`: a device like the simulator's.
 *
 * The guest has no disk, and one of QEMU's would answer when the machine outside
 * gets round to it. So a call costs its CPU time, and one that goes to the device
 * sleeps until the device of the run would have answered: it works on so many
 * requests at once, in order of arrival, each for its latency and its size.
 *
 * Called by the processes of a run. Read next: hosts/sim/device.c, the model.
 */
#include <time.h>

#include "guest.h"

#define DEPTH_MAX 256

/* Set before the processes of a run are made, so all of them see it. */
static u64 latency_ns, ns_per_kib, call_ns;
static u32 depth = 1;

struct shared_device {
	u32 lock;		   /* 0 free, 1 held */
	u64 free_at_ns[DEPTH_MAX]; /* when each of its slots is free again */
};

u64 device_bytes(void)
{
	return sizeof(struct shared_device);
}

int device_set(u64 latency, u64 per_kib, u64 call, u64 at_once)
{
	if (!at_once || at_once > DEPTH_MAX)
		return -1;
	latency_ns = latency;
	ns_per_kib = per_kib;
	call_ns = call;
	depth = at_once;
	return 0;
}

/* When a request of now is done. The lock is held for less than a system call. */
static u64 done_at_ns(struct shared_device *d, u64 now_ns, u64 bytes)
{
	u64 took_ns = latency_ns + (bytes * ns_per_kib + 1023) / 1024;
	u32 first = 0;
	u64 start_ns;
	u32 i;

	futex_lock(&d->lock);
	for (i = 1; i < depth; i++)
		if (d->free_at_ns[i] < d->free_at_ns[first])
			first = i;
	start_ns = d->free_at_ns[first] > now_ns ? d->free_at_ns[first] : now_ns;
	d->free_at_ns[first] = start_ns + took_ns;
	futex_unlock(&d->lock);
	return start_ns + took_ns;
}

int device_transfer(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	struct shared *s = p->host;
	bool to_device = flags & (SL_OP_SYNC | SL_OP_DIRECT);

	while (bytes) {
		u64 call_bytes = chunk_bytes && chunk_bytes < bytes ? chunk_bytes : bytes;

		if (call_ns)
			verbs.run(p, call_ns);
		if (to_device)
			verbs.sleep_until(p, done_at_ns(s->device, verbs.now_ns(p), call_bytes));
		bytes -= call_bytes;
	}
	return 0;
}
