/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * delays.bpf.h - hold a CPU at chosen instructions of a policy on Linux, so that another CPU comes in between.
 *
 * It follows the policy in a file that python/schedlab/policy/delays.py compiles; the calls are put into the
 * compiled code there. A delay is a bounded loop without a call, so it may be where a lock is held.
 *
 *	CPU 0: reads 3	 waits ...	    writes 4	<- sl_delay_write() has seen 4 come
 *	CPU 1:		 reads 3  writes 4
 *
 * What is seen is kept and shown at the beginning of the next callback, where no lock is held.
 *
 * Called by nothing in C. Read next: python/schedlab/check/on_linux.py, which tries seeds and lengths.
 */
#ifndef SCX_DELAYS_BPF_H
#define SCX_DELAYS_BPF_H

#define SL_DELAY static __attribute__((noinline, used))
#define SL_DELAY_EDEADLK (-35)
#define SL_DELAY_ETIMEDOUT (-110)

/* Set before the policy is loaded. */
const volatile u64 sl_delay_places; /* a bit for each that is used */
const volatile u64 sl_delay_seed;
const volatile u32 sl_delay_loops = 1; /* of the longest one; a loop takes some ns */

u64 sl_delay_passes; /* of all places, which draws differ by */

/* What was seen first: its kind, the place, and values. */
enum sl_delay_kind { SL_DELAY_NONE, SL_DELAY_LOST_UPDATE, SL_DELAY_DEADLOCK };
struct {
	u32 kind, place;
	u64 before, found, written;
} sl_delay_seen;

/* Half of the passes go on at once, so that tasks get further; the others wait for a length that is drawn. */
SL_DELAY void sl_delay(u32 place)
{
	u64 x, nr;

	if (place >= 64 || !(sl_delay_places >> place & 1))
		return;
	x = sl_delay_seed + __sync_fetch_and_add(&sl_delay_passes, 1) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	if (x & 1)
		return;
	nr = (x >> 1) % sl_delay_loops;
	while (nr) {
		nr--;
		__asm__ volatile goto("may_goto %l[too_long]" ::: "memory" : too_long);
	}
too_long:
	return;
}

static __inline__ __attribute__((always_inline)) void
sl_delay_note(enum sl_delay_kind kind, u32 place, u64 before, u64 found, u64 written)
{
	if (sl_delay_seen.kind)
		return;
	sl_delay_seen.place = place;
	sl_delay_seen.before = before;
	sl_delay_seen.found = found;
	sl_delay_seen.written = written;
	sl_delay_seen.kind = kind;
}

/*
 * Before @value is written over what the callback has read there. A change by another CPU meanwhile is
 * lost, unless both change a flag alike, 0 into 1 or 1 into 0, as hosts/check/updates.c has it.
 */
#define SL_DELAY_WRITE(bits)							\
	SL_DELAY void sl_delay_write##bits(u32 place, const volatile u##bits *at, u64 value) \
	{									\
		u64 before = *at, found;				\
										\
		sl_delay(place);						\
		found = *at;							\
		if (found != before && !(found == value && before <= 1 && value == !before)) \
			sl_delay_note(SL_DELAY_LOST_UPDATE, place, before, found, value); \
	}
SL_DELAY_WRITE(8)
SL_DELAY_WRITE(16)
SL_DELAY_WRITE(32)
SL_DELAY_WRITE(64)

/* After bpf_res_spin_lock() has returned @err. */
SL_DELAY void sl_delay_locked(u32 place, int err)
{
	if (err == SL_DELAY_EDEADLK || err == SL_DELAY_ETIMEDOUT)
		sl_delay_note(SL_DELAY_DEADLOCK, place, 0, 0, (u64)-err);
}

/* A callback begins. The text is read by python/schedlab/policy/delays.py. */
SL_DELAY void sl_delay_show(void)
{
	if (sl_delay_seen.kind)
		scx_bpf_error("schedlab delay: kind %u place %u values %llu %llu %llu",
			      sl_delay_seen.kind, sl_delay_seen.place, sl_delay_seen.before,
			      sl_delay_seen.found, sl_delay_seen.written);
}

#endif
